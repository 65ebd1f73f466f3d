/*
 * What the service does with jobs of the mount: submit, wait, cancel. It remembers nothing of them: a job is its name, which follows from
 * the request id.
 *
 * Any thread.
 */
#ifndef GRPC_JOBS_H
#define GRPC_JOBS_H

#include <chrono>
#include <condition_variable>
#include <functional>
#include <grpcpp/support/status.h>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "daemon/grpc/facts.h"
#include "daemon/grpc/message.h"
#include "daemon/grpc/mount.h"
#include "daemon/grpc/watch.h"

/* How long a caller waits, and whether it still does. */
struct Patience {
    std::chrono::system_clock::time_point until;
    std::function<bool()> gone;
    bool over() const
    {
        return gone() || std::chrono::system_clock::now() >= until;
    }
};

/* The end of a job. Times are of the critical path, not sums over partitions. */
struct Outcome {
    enum { DONE, FAILED, CANCELLED, TIMEOUT } end = TIMEOUT;
    std::string proof, error;
    uint64_t queue_wait_ms = 0, srs_load_ms = 0, synthesis_ms = 0, gpu_compute_ms = 0, total_ms = 0;
};

class Jobs
{
  public:
    Jobs(const Mount &mount, Watch *watch) : mount_(mount), watch_(watch) {}
    /* Drops what an instance that is dead has left half-written. */
    void tidy() const;
    /* OK: the job of this id is this document, new, under way or done; *file says which job that is. */
    grpc::Status submit(const std::string &id, const Message &message, const Patience &patience,
                        uint64_t *file);
    /* OK with *out; NOT_FOUND. TIMEOUT where patience ends first. `file`: of submit, or 0 for the job that has the name now; one that takes
     * its name later is not waited for. */
    grpc::Status await(const std::string &id, uint64_t file, const Patience &patience,
                       Outcome *out);
    /* OK with *was_running: it was there and had not ended. */
    grpc::Status cancel(const std::string &id, bool *was_running);

  private:
    /* Of one id one caller at a time submits. */
    class Turn;
    /* An attempt at a submission; -ENOTCONN: the service went away meanwhile. */
    struct Attempt {
        std::string name;
        const Message *message;
        const Patience *patience;
        uint64_t *file;
    };
    int attempt(const Attempt &a, grpc::Status *status);
    int join_or_upload(const Attempt &a, const JobView &view, grpc::Status *status);
    int upload(const Attempt &a, grpc::Status *status);
    void forget_refusal(const std::string &name);
    int upload_as(const Attempt &a, const std::string &head, grpc::Status *status);
    int create_temporary(const Attempt &a, std::string *temporary, grpc::Status *status);
    int write_document(const Attempt &a, const std::string &head, std::string *temporary,
                       grpc::Status *status);
    int wait_for_place(const Attempt &a, grpc::Status *status);
    bool is_still(const std::string &name, uint64_t file) const;
    int is_same(const Attempt &a, const JobView &view, const facts &facts, bool *same);
    int content_of_file(const std::string &name, uint8_t content_id[32]);
    int read_outcome(const std::string &name, const JobView &view, Outcome *out);
    void prioritize(const Attempt &a) const;

    const Mount &mount_;
    Watch *watch_;
    std::mutex lock_;
    std::condition_variable freed_;
    std::set<std::string> submitting_; /* guarded by lock_ */
};

#endif
