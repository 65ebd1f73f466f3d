#include "daemon/grpc/watch.h"

#include <cerrno>
#include <chrono>
#include <poll.h>
#include <pthread.h>
#include <sys/inotify.h>
#include <unistd.h>

static const int look_again_ms = 1000; /* whether the mount still serves, and whether to stop */
static const int retry_ms = 100;       /* while it does not */

Watch::Watch(const Mount &mount, std::function<void(bool)> served)
    : mount_(mount), served_(std::move(served)), thread_([this] { run(); })
{
    pthread_setname_np(thread_.native_handle(), "watch");
}

Watch::~Watch()
{
    stop_ = true;
    thread_.join();
}

Watch::Waiter::Waiter(Watch *watch, const std::string &job) : watch_(watch)
{
    std::lock_guard<std::mutex> guard(watch_->lock_);
    place_ = watch_->waiters_.emplace(job, this);
}

Watch::Waiter::~Waiter()
{
    std::lock_guard<std::mutex> guard(watch_->lock_);
    watch_->waiters_.erase(place_);
}

bool Watch::Waiter::wait(int timeout_ms)
{
    std::unique_lock<std::mutex> guard(watch_->lock_);
    bool changed =
        changed_.wait_for(guard, std::chrono::milliseconds(timeout_ms), [this] { return fresh_; });
    fresh_ = false;
    return changed;
}

void Watch::tell(const std::string &job)
{
    std::lock_guard<std::mutex> guard(lock_);
    auto range = waiters_.equal_range(job);
    for (auto it = range.first; it != range.second; ++it) {
        it->second->fresh_ = true;
        it->second->changed_.notify_one();
    }
}

void Watch::tell_all()
{
    std::lock_guard<std::mutex> guard(lock_);
    for (auto &waiter : waiters_) {
        waiter.second->fresh_ = true;
        waiter.second->changed_.notify_one();
    }
}

/* Names of our jobs have no dot: the suffix begins at the first. */
static std::string job_of_file(const std::string &file)
{
    return file.substr(0, file.find('.'));
}

/* False when the mount is gone. */
bool Watch::read_events(int fd)
{
    alignas(inotify_event) char events[16384];
    ssize_t n;

    while ((n = read(fd, events, sizeof(events))) > 0) {
        const inotify_event *e;
        for (const char *at = events; at < events + n; at += sizeof(*e) + e->len) {
            e = reinterpret_cast<const inotify_event *>(at);
            if (e->mask & (IN_UNMOUNT | IN_IGNORED))
                return false;
            if (e->mask & IN_Q_OVERFLOW)
                tell_all();
            else if (e->len > 0)
                tell(job_of_file(e->name));
        }
    }
    return true;
}

int Watch::follow()
{
    int fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);

    if (fd < 0)
        return -errno;
    int ret =
        inotify_add_watch(fd, (mount_.path() + "/jobs").c_str(),
                          IN_CREATE | IN_MOVED_TO | IN_MOVED_FROM | IN_DELETE | IN_ONLYDIR) < 0
            ? -errno
            : mount_.serves();
    if (ret == 0) {
        served_(true);
        tell_all(); /* they may look, now that they are watched for */
    }
    while (ret == 0 && !stop_) {
        pollfd p = {fd, POLLIN, 0};
        poll(&p, 1, look_again_ms);
        if (!read_events(fd) || mount_.serves() < 0)
            ret = -ENOTCONN;
    }
    close(fd);
    return ret;
}

void Watch::run()
{
    while (!stop_) {
        follow();
        served_(false);
        if (!stop_)
            std::this_thread::sleep_for(std::chrono::milliseconds(retry_ms));
    }
}
