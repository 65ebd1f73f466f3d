#include "gpu/newfile.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

/* Whether `path` still names the file of `fd`: another writer may have renamed it while we waited for nothing but
 * the open. */
static bool still_named(int fd, const char *path)
{
    struct stat ours, there;

    return fstat(fd, &ours) == 0 && stat(path, &there) == 0 && ours.st_dev == there.st_dev &&
           ours.st_ino == there.st_ino;
}

uint64_t newfile_left(const char *path)
{
    char temporary[4128];
    struct stat st;

    if (snprintf(temporary, sizeof(temporary), "%s.tmp", path) >= (int)sizeof(temporary) ||
        lstat(temporary, &st) < 0 || !S_ISREG(st.st_mode))
        return 0;
    return (uint64_t)st.st_blocks * 512;
}

int newfile_open(struct newfile *f, const char *path, uint64_t bytes, struct errmsg *err)
{
    f->fd = -1;
    f->at = 0;
    if (snprintf(f->path, sizeof(f->path), "%s", path) >= (int)sizeof(f->path))
        return errmsg_set(err, -ENAMETOOLONG, "%s: name too long", path);
    snprintf(f->temporary, sizeof(f->temporary), "%s.tmp", path);

    int fd = open(f->temporary, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0644);
    if (fd < 0)
        return errmsg_set(err, -errno, "%s: cannot create: %s", f->temporary, strerror(errno));
    if (flock(fd, LOCK_EX | LOCK_NB) < 0 || !still_named(fd, f->temporary)) {
        close(fd);
        return errmsg_set(err, -EBUSY, "%s: another process is writing it", path);
    }
    f->fd = fd;
    /* Not posix_fallocate, which writes every block where the filesystem cannot reserve. */
    if (ftruncate(fd, 0) == 0 && (bytes == 0 || fallocate(fd, 0, 0, (off_t)bytes) == 0 ||
                                  errno == EOPNOTSUPP || errno == ENOSYS))
        return 0;
    int ret = -errno;
    newfile_close(f);
    return errmsg_set(err, ret, "%s: no room for %llu bytes: %s", path, (unsigned long long)bytes,
                      strerror(-ret));
}

int newfile_write(struct newfile *f, const void *data, size_t len, struct errmsg *err)
{
    int ret = pwrite_full(f->fd, data, len, f->at);

    if (ret < 0)
        return errmsg_set(err, ret, "%s: cannot write: %s", f->path, strerror(-ret));
    /* Only a hint, so that the sync at the end has little left to do. */
    (void)sync_file_range(f->fd, (off_t)f->at, (off_t)len, SYNC_FILE_RANGE_WRITE);
    f->at += len;
    return 0;
}

static int sync_directory(const char *path)
{
    char copy[4096];

    snprintf(copy, sizeof(copy), "%s", path);
    int fd = open(dirname(copy), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    int ret = fsync(fd) < 0 ? -errno : 0;
    close(fd);
    return ret;
}

int newfile_commit(struct newfile *f, struct errmsg *err)
{
    int ret;

    if (ftruncate(f->fd, (off_t)f->at) < 0 || fsync(f->fd) < 0 ||
        rename(f->temporary, f->path) < 0) {
        ret = -errno;
        return errmsg_set(err, ret, "%s: cannot bring to disk: %s", f->path, strerror(-ret));
    }
    close(f->fd);
    f->fd = -1;
    ret = sync_directory(f->path);
    if (ret < 0)
        return errmsg_set(err, ret, "%s: cannot sync its directory: %s", f->path, strerror(-ret));
    return 0;
}

void newfile_close(struct newfile *f)
{
    if (f->fd < 0)
        return;
    unlink(f->temporary); /* before the lock goes: the name is still ours */
    close(f->fd);
    f->fd = -1;
}

int newfile_put(const char *path, const void *data, size_t len, struct errmsg *err)
{
    struct newfile f;

    int ret = newfile_open(&f, path, 0, err);
    if (ret == 0)
        ret = newfile_write(&f, data, len, err);
    if (ret == 0)
        ret = newfile_commit(&f, err);
    newfile_close(&f);
    return ret;
}
