#include "daemon/grpc/uploads.h"

#include <malloc.h>

using std::chrono::steady_clock;

static const std::chrono::milliseconds step(100);

uint64_t Uploads::taken()
{
    std::lock_guard<std::mutex> guard(lock_);

    return taken_;
}

/* Under the lock, so that no call ends meanwhile. */
void Uploads::break_off_late()
{
    const steady_clock::time_point now = steady_clock::now();

    for (Place *p : arriving_) {
        if (p->broken_off_ || now < p->until_)
            continue;
        p->broken_off_ = true;
        p->call_->TryCancel();
    }
}

/* First come, first served is not promised; that nobody waits beyond his patience is. */
bool Uploads::Place::take(const Patience &patience)
{
    std::unique_lock<std::mutex> guard(uploads_->lock_);

    while (uploads_->taken_ >= uploads_->places_) {
        if (patience.over())
            return false;
        uploads_->break_off_late();
        uploads_->freed_.wait_for(guard, step);
    }
    uploads_->taken_++;
    mine_ = arriving_ = true;
    until_ = steady_clock::now() + uploads_->limit_;
    uploads_->arriving_.push_back(this);
    return true;
}

bool Uploads::Place::arrived()
{
    std::lock_guard<std::mutex> guard(uploads_->lock_);

    if (arriving_)
        uploads_->arriving_.remove(this);
    arriving_ = false;
    return !broken_off_;
}

/* What the document took goes back to the system, too. */
Uploads::Place::~Place()
{
    if (!mine_)
        return;
    arrived();
    malloc_trim(0);
    std::lock_guard<std::mutex> guard(uploads_->lock_);
    uploads_->taken_--;
    uploads_->freed_.notify_one();
}
