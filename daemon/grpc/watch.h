/*
 * Tells who waits for a job that its files have changed: one thread, one inotify watch, over every restart of proofd.
 *
 * Any thread.
 */
#ifndef GRPC_WATCH_H
#define GRPC_WATCH_H

#include <atomic>
#include <condition_variable>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <thread>

#include "daemon/grpc/mount.h"

class Watch
{
  public:
    /* `served` is told by the thread, at its start too, whether proofd serves. */
    Watch(const Mount &mount, std::function<void(bool)> served);
    ~Watch();

    /* Who waits for one job, from its making on: nothing that happens later is missed. */
    class Waiter
    {
      public:
        Waiter(Watch *watch, const std::string &job);
        ~Waiter();
        /* Until something has changed since the last call, at most so long. Whether it has. */
        bool wait(int timeout_ms);

      private:
        friend class Watch;
        Watch *watch_;
        std::multimap<std::string, Waiter *>::iterator place_;
        std::condition_variable changed_;
        bool fresh_ = false; /* guarded by watch_->lock_ */
    };

  private:
    void run();
    int follow(); /* one mount, to its end */
    bool read_events(int fd);
    void tell(const std::string &job);
    void tell_all();

    const Mount &mount_;
    std::function<void(bool)> served_;
    std::mutex lock_;
    std::multimap<std::string, Waiter *> waiters_; /* guarded by lock_ */
    std::atomic<bool> stop_{false};
    std::thread thread_;
};

#endif
