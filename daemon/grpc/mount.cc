/*
 * Every call opens the directory of jobs anew and goes on from there: an open directory of a dead mount says so, where a path beneath it
 * would just be missing.
 */
#include "daemon/grpc/mount.h"

#include <cerrno>
#include <cstdio>
#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

static const size_t text_max = 1 << 20;

bool is_gone(int error)
{
    return error == -ENOTCONN || error == -ECONNABORTED || error == -ENODEV || error == -ESHUTDOWN;
}

/* The directory of jobs. */
int Mount::jobs() const
{
    int fd = open((path_ + "/jobs").c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (fd >= 0)
        return fd;
    return errno == ENOENT || errno == ENOTDIR ? -ENOTCONN : -errno;
}

int Mount::serves() const
{
    int dir = jobs();

    if (dir < 0)
        return dir;
    int ret = faccessat(dir, "../status", F_OK, 0) < 0 ? -ENOTCONN : 0;
    close(dir);
    return ret;
}

/* `fd`, or the errno of open, is taken over. */
static int read_all(int fd, size_t max, std::string *out)
{
    char piece[16384];
    ssize_t n;

    if (fd < 0)
        return -errno;
    out->clear();
    while ((n = read(fd, piece, sizeof(piece))) != 0) {
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 || out->size() + static_cast<size_t>(n) > max)
            break;
        out->append(piece, static_cast<size_t>(n));
    }
    int ret = n < 0 ? -errno : n > 0 ? -EFBIG : 0;
    close(fd);
    return ret;
}

int Mount::read(const std::string &file, size_t max, std::string *out) const
{
    return read_all(open((path_ + "/" + file).c_str(), O_RDONLY | O_CLOEXEC), max, out);
}

int Mount::list(const std::string &dir, std::vector<std::string> *out) const
{
    DIR *d = opendir((path_ + "/" + dir).c_str());

    if (!d)
        return -errno;
    out->clear();
    while (const dirent *entry = readdir(d)) {
        out->push_back(entry->d_name);
    }
    closedir(d);
    return 0;
}

int Mount::write(const std::string &file, const std::string &text) const
{
    int fd = open((path_ + "/" + file).c_str(), O_WRONLY | O_CLOEXEC);

    if (fd < 0)
        return -errno;
    int ret = ::write(fd, text.data(), text.size()) < 0 ? -errno : 0;
    close(fd);
    return ret;
}

int Mount::places_left(uint64_t *out) const
{
    struct statvfs st;
    int dir = jobs();

    if (dir < 0)
        return dir;
    int ret = fstatvfs(dir, &st) < 0 ? -errno : 0;
    close(dir);
    if (ret == 0)
        *out = st.f_files ? st.f_ffree : UINT64_MAX;
    return ret;
}

/* 1 or 0, or a negative errno. */
int Mount::exists(int jobs, const std::string &file) const
{
    if (faccessat(jobs, file.c_str(), F_OK, 0) == 0)
        return 1;
    return errno == ENOENT ? 0 : -errno;
}

static bool begins_with(const std::string &text, const char *word)
{
    return text.rfind(word, 0) == 0;
}

int Mount::look(const std::string &job, JobView *out) const
{
    std::string status;
    struct stat st;
    int dir = jobs();

    if (dir < 0)
        return dir;
    *out = JobView();
    int ret = fstatat(dir, job.c_str(), &st, AT_SYMLINK_NOFOLLOW) < 0 ? -errno : 0;
    if (ret == 0) {
        out->file = st.st_ino;
        ret = exists(dir, job + ".proof"); /* the last of the results */
    }
    if (ret == 1)
        out->state = JobState::DONE;
    if (ret == 0) {
        ret = read_all(openat(dir, (job + ".status").c_str(), O_RDONLY | O_CLOEXEC), text_max,
                       &status);
        if (ret == 0 && begins_with(status, "failed"))
            out->state = exists(dir, job + ".error") == 1 ? JobState::FAILED : JobState::UNFINISHED;
        else if (ret == 0)
            out->state = begins_with(status, "done") ? JobState::PUBLISHING : JobState::UNFINISHED;
        out->running = begins_with(status, "synthesizing") || begins_with(status, "proving");
    }
    close(dir);
    return ret == -ENOENT || ret > 0 ? 0 : ret;
}

int Mount::read_of_job(const std::string &job, const char *suffix, size_t max,
                       std::string *out) const
{
    int dir = jobs();

    if (dir < 0)
        return dir;
    int ret = read_all(openat(dir, (job + suffix).c_str(), O_RDONLY | O_CLOEXEC), max, out);
    close(dir);
    return ret;
}

/* Non-blocking, for an open that waits could not be taken back. A service that is stopping opens nothing to write any more. Never what is
 * there already: it would be somebody else's to read. */
int Mount::create(const std::string &job) const
{
    int dir = jobs();

    if (dir < 0)
        return dir;
    int fd = openat(dir, job.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NONBLOCK | O_CLOEXEC, 0640);
    int ret = fd >= 0 ? fd : errno == ECANCELED ? -ESHUTDOWN : -errno;
    close(dir);
    return ret;
}

bool Mount::is_own(const std::string &job) const
{
    struct stat st;
    int dir = jobs();

    if (dir < 0)
        return false;
    bool own = fstatat(dir, job.c_str(), &st, AT_SYMLINK_NOFOLLOW) == 0 && st.st_uid == geteuid();
    close(dir);
    return own;
}

int Mount::open_document(const std::string &job) const
{
    int dir = jobs();

    if (dir < 0)
        return dir;
    int fd = openat(dir, job.c_str(), O_RDONLY | O_CLOEXEC);
    int ret = fd < 0 ? -errno : fd;
    close(dir);
    return ret;
}

int Mount::rename(const std::string &from, const std::string &to) const
{
    int dir = jobs();

    if (dir < 0)
        return dir;
    int ret = renameat(dir, from.c_str(), dir, to.c_str()) < 0 ? -errno : 0;
    close(dir);
    return ret;
}

int Mount::remove(const std::string &job) const
{
    int dir = jobs();

    if (dir < 0)
        return dir;
    int ret = unlinkat(dir, job.c_str(), 0) < 0 ? -errno : 0;
    close(dir);
    return ret;
}
