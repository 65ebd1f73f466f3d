/*
 * The mount of proofd, as any of its clients has it: files, and nothing else.
 *
 * A service that is down has no mount, or a dead one: every call then gives -ENOTCONN, and so nothing that is said of a job comes from a
 * mount that does not serve.
 *
 * Functions return 0 or a negative errno. Any thread.
 */
#ifndef GRPC_MOUNT_H
#define GRPC_MOUNT_H

#include <cstdint>
#include <string>
#include <vector>

/* A job as its files show it. */
enum class JobState {
    ABSENT,
    UNFINISHED,
    PUBLISHING, /* done, and its proof not seen yet, or taken away */
    DONE,
    FAILED
};

struct JobView {
    JobState state = JobState::ABSENT;
    bool running = false; /* UNFINISHED: an engine is at it */
    uint64_t file = 0; /* which job it is: the inode of its document, over renames and restarts */
};

class Mount
{
  public:
    explicit Mount(const std::string &path) : path_(path) {}
    /* 0 where proofd serves. */
    int serves() const;
    /* A file below the mount, at most `max` bytes: -EFBIG. */
    int read(const std::string &file, size_t max, std::string *out) const;
    int list(const std::string &dir, std::vector<std::string> *out) const;
    int write(const std::string &file, const std::string &text) const;
    /* Places that are left in the queue; UINT64_MAX where it has no bound. */
    int places_left(uint64_t *out) const;

    /* ---- jobs ---- */

    int look(const std::string &job, JobView *out) const;
    int read_of_job(const std::string &job, const char *suffix, size_t max, std::string *out) const;
    /* A new file, to be written: its descriptor or a negative errno, -EAGAIN where a place has to be waited for,
     * -ESHUTDOWN where the service is stopping, -EEXIST. */
    int create(const std::string &job) const;
    /* Whether it is this user's. */
    bool is_own(const std::string &job) const;
    int open_document(const std::string &job) const;
    int rename(const std::string &from, const std::string &to) const;
    int remove(const std::string &job) const;

    const std::string &path() const
    {
        return path_;
    }

  private:
    int jobs() const;
    int exists(int jobs, const std::string &file) const;
    std::string path_;
};

/* What a dead mount, or one that went away in between or is about to, answers. */
bool is_gone(int error);

#endif
