/*
 * Places for documents that are being received, so many and no more, and how long one may take to arrive.
 *
 * Who takes longer than that keeps his place while nobody wants it. Who waits for one breaks off the call of such a holder, which may be one
 * that never sends anything.
 *
 * Any thread; a Place belongs to one.
 */
#ifndef GRPC_UPLOADS_H
#define GRPC_UPLOADS_H

#include <chrono>
#include <condition_variable>
#include <grpcpp/server_context.h>
#include <list>
#include <mutex>

#include "daemon/grpc/jobs.h"

class Uploads
{
  public:
    Uploads(uint64_t places, std::chrono::seconds limit) : places_(places), limit_(limit) {}
    std::chrono::seconds limit() const
    {
        return limit_;
    }
    uint64_t taken();

    class Place
    {
      public:
        /* The call is the place's until it has arrived or the place ends. */
        Place(Uploads *uploads, grpc::ServerContext *call) : uploads_(uploads), call_(call) {}
        /* False when patience ends first. */
        bool take(const Patience &patience);
        /* All of it is here. False: the call was broken off. */
        bool arrived();
        ~Place();

      private:
        friend class Uploads;
        Uploads *uploads_;
        grpc::ServerContext *call_;
        bool mine_ = false;
        /* guarded by uploads_->lock_: */
        std::chrono::steady_clock::time_point until_;
        bool arriving_ = false, broken_off_ = false;
    };

  private:
    void break_off_late();
    std::mutex lock_;
    std::condition_variable freed_;
    const uint64_t places_;
    const std::chrono::seconds limit_;
    /* guarded by lock_: */
    uint64_t taken_ = 0;
    std::list<Place *> arriving_;
};

#endif
