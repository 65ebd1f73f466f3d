/*
 * Paths are always relative to descriptors: of the store's directory, kept open and locked, and of a
 * job's, opened for each call. What must survive a power cut follows one pattern: data of a file,
 * fsync of the file, its name by rename, fsync of the directory. Names in one directory may become
 * durable in any order, so wherever one name promises others, they are synced before it is made.
 */
#include "daemon/store.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/store_os.h"

#define ID_CHARS 16
#define IDS_AT_A_TIME 1024 /* so that one job in so many pays for the sync of the counter */
#define COUNTER_FILE "store"
#define COUNTER_FORMAT "proofd store 1 next %" PRIu64 "\n"
#define NAME_BYTES 32 /* of every file and directory of ours */
#define FLUSH_BYTES ((uint64_t)4 << 20)

struct store {
    int dir;
    pthread_mutex_t ids;  /* held while the counter's file is written */
    uint64_t next, limit; /* guarded by ids: numbers in [next, limit) are ours to give */
};

static const char *const file_names[STORE_FILES] = {
    [STORE_C1] = "c1",       [STORE_DECODED] = "decoded",
    [STORE_RECORD] = "job",  [STORE_PARTITIONS] = "partitions",
    [STORE_PROOF] = "proof", [STORE_REPORT] = "report",
    [STORE_ERROR] = "error",
};

static int real_openat(int dir, const char *name, int flags, mode_t mode)
{
    return openat(dir, name, flags, mode);
}

const struct store_os store_os_real = {
    .mkdirat = mkdirat,
    .openat = real_openat,
    .pwrite = pwrite,
    .ftruncate = ftruncate,
    .fsync = fsync,
    .renameat = renameat,
    .unlinkat = unlinkat,
    .close = close,
};

const struct store_os *store_os = &store_os_real;

/* ---- files ---- */

static int errno_of(int ret)
{
    return ret < 0 ? -errno : 0;
}

static void close_fd(int fd)
{
    if (fd >= 0)
        store_os->close(fd);
}

static int open_at(int dir, const char *name, int flags, int *fd)
{
    int got = store_os->openat(dir, name, flags | O_CLOEXEC | O_NOFOLLOW, 0600);

    if (got < 0)
        return -errno;
    *fd = got;
    return 0;
}

static int write_all(int fd, const void *buf, size_t len, uint64_t offset)
{
    const uint8_t *p = buf;

    while (len > 0) {
        ssize_t n = store_os->pwrite(fd, p, len, (off_t)offset);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return n < 0 ? -errno : -EIO;
        p += n;
        offset += (uint64_t)n;
        len -= (size_t)n;
    }
    return 0;
}

/* Writes a whole new file and syncs its bytes. */
static int write_new_file(int dir, const char *name, const void *bytes, size_t len)
{
    int fd = -1;
    int ret = open_at(dir, name, O_WRONLY | O_CREAT | O_TRUNC, &fd);

    if (ret < 0)
        return ret;
    ret = write_all(fd, bytes, len, 0);
    if (ret == 0)
        ret = errno_of(store_os->fsync(fd));
    close_fd(fd);
    return ret;
}

/* Puts a file in place of the old one of that name. Its name is not synced yet. */
static int put_at(int dir, const char *name, const void *bytes, size_t len)
{
    char temporary[NAME_BYTES];

    snprintf(temporary, sizeof(temporary), "%s.tmp", name);
    int ret = write_new_file(dir, temporary, bytes, len);
    if (ret == 0)
        ret = errno_of(store_os->renameat(dir, temporary, dir, name));
    if (ret < 0)
        store_os->unlinkat(dir, temporary, 0);
    return ret;
}

static int read_whole(int fd, uint8_t **bytes, size_t *len)
{
    struct stat st;

    if (fstat(fd, &st) < 0)
        return -errno;
    uint8_t *buf = malloc((size_t)st.st_size + 1);
    if (!buf)
        return -ENOMEM;
    int ret = pread_full(fd, buf, (size_t)st.st_size, 0);
    if (ret < 0) {
        free(buf);
        return ret;
    }
    buf[st.st_size] = '\0'; /* texts are strings at once */
    *bytes = buf;
    *len = (size_t)st.st_size;
    return 0;
}

static int get_at(int dir, const char *name, uint8_t **bytes, size_t *len)
{
    int fd = -1;
    int ret = open_at(dir, name, O_RDONLY, &fd);

    if (ret < 0)
        return ret;
    ret = read_whole(fd, bytes, len);
    close_fd(fd);
    return ret;
}

static void id_name(char out[NAME_BYTES], uint64_t id)
{
    snprintf(out, NAME_BYTES, "%0*" PRIx64, ID_CHARS, id);
}

static int open_job_dir(struct store *store, uint64_t id, int *fd)
{
    char name[NAME_BYTES];

    id_name(name, id);
    return open_at(store->dir, name, O_RDONLY | O_DIRECTORY, fd);
}

/* ---- the counter ---- */

static int counter_write(struct store *store, uint64_t limit)
{
    char text[64];
    int len = snprintf(text, sizeof(text), COUNTER_FORMAT, limit);
    int ret = put_at(store->dir, COUNTER_FILE, text, (size_t)len);

    return ret < 0 ? ret : errno_of(store_os->fsync(store->dir));
}

static int counter_read(struct store *store, struct errmsg *err)
{
    uint8_t *text = NULL;
    size_t len = 0;
    int ret = get_at(store->dir, COUNTER_FILE, &text, &len);

    if (ret == -ENOENT) {
        store->next = store->limit = 1;
        return 0;
    }
    if (ret < 0)
        return errmsg_set(err, ret, "%s: cannot read: %s", COUNTER_FILE, strerror(-ret));
    if (sscanf((char *)text, COUNTER_FORMAT, &store->next) != 1)
        ret = errmsg_set(err, -EPROTO, "%s: not a job store of this version", COUNTER_FILE);
    store->limit = store->next;
    free(text);
    return ret;
}

int store_next_id(struct store *store, uint64_t *out)
{
    int ret = 0;

    pthread_mutex_lock(&store->ids);
    if (store->next == store->limit) {
        ret = counter_write(store, store->limit + IDS_AT_A_TIME);
        if (ret == 0)
            store->limit += IDS_AT_A_TIME;
    }
    if (ret == 0)
        *out = store->next++;
    pthread_mutex_unlock(&store->ids);
    return ret;
}

/* ---- opening ---- */

/* Makes the directory; its name is synced in its parent. */
static int make_store_dir(const char *dir)
{
    int fd = -1, ret;

    if (store_os->mkdirat(AT_FDCWD, dir, 0700) < 0)
        return errno == EEXIST ? 0 : -errno;
    char *parent = NULL;
    if (asprintf(&parent, "%s/..", dir) < 0)
        return -ENOMEM;
    ret = open_at(AT_FDCWD, parent, O_RDONLY | O_DIRECTORY, &fd);
    if (ret == 0)
        ret = errno_of(store_os->fsync(fd));
    close_fd(fd);
    free(parent);
    return ret;
}

int store_open(const char *dir, struct store **out, struct errmsg *err)
{
    struct store *store = calloc(1, sizeof(*store));
    int ret;

    if (!store)
        return -ENOMEM;
    store->dir = -1;
    pthread_mutex_init(&store->ids, NULL);
    ret = make_store_dir(dir);
    if (ret == 0) {
        store->dir = store_os->openat(AT_FDCWD, dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
        ret = errno_of(store->dir);
    }
    if (ret < 0) {
        errmsg_set(err, ret, "%s: %s", dir, strerror(-ret));
        goto out;
    }
    if (flock(store->dir, LOCK_EX | LOCK_NB) < 0) {
        ret = errno == EWOULDBLOCK ? -EBUSY : -errno;
        errmsg_set(err, ret, "%s: %s", dir,
                   ret == -EBUSY ? "another service uses this store" : strerror(-ret));
        goto out;
    }
    ret = counter_read(store, err);
    if (ret < 0) {
        errmsg_prefix(err, ret, "%s", dir);
        goto out;
    }
    *out = store;
    store = NULL; /* now the caller's */
out:
    store_close(store);
    return ret;
}

void store_close(struct store *store)
{
    if (!store)
        return;
    close_fd(store->dir); /* with it goes the lock */
    pthread_mutex_destroy(&store->ids);
    free(store);
}

/* ---- looking through the store at start ---- */

static bool parse_id(const char *name, uint64_t *id)
{
    uint8_t bytes[ID_CHARS / 2];

    if (strlen(name) != ID_CHARS || hex_decode(bytes, name, sizeof(bytes)) < 0)
        return false;
    *id = load_be64(bytes);
    return *id != 0;
}

static int compare_ids(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return (x > y) - (x < y);
}

/* All job directories, in order. */
static int list_ids(struct store *store, uint64_t **out, size_t *len)
{
    uint64_t *ids = NULL;
    size_t n = 0, room = 0;
    int fd = openat(store->dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
    int ret = 0;

    if (!dir) {
        ret = -errno;
        if (fd >= 0)
            close(fd);
        return ret;
    }
    for (struct dirent *e; (e = readdir(dir)) != NULL;) {
        uint64_t id;
        if (!parse_id(e->d_name, &id))
            continue;
        if (n == room) {
            room = room ? 2 * room : 64;
            uint64_t *more = reallocarray(ids, room, sizeof(*ids));
            if (!more) {
                ret = -ENOMEM;
                break;
            }
            ids = more;
        }
        ids[n++] = id;
    }
    closedir(dir);
    if (ret < 0) {
        free(ids);
        return ret;
    }
    if (n > 0)
        qsort(ids, n, sizeof(*ids), compare_ids);
    *out = ids;
    *len = n;
    return 0;
}

static void drop_temporaries(int dir)
{
    for (size_t i = 0; i < STORE_FILES; i++) {
        char name[NAME_BYTES];
        snprintf(name, sizeof(name), "%s.tmp", file_names[i]);
        store_os->unlinkat(dir, name, 0);
    }
}

static void set_aside(struct store *store, uint64_t id)
{
    char name[NAME_BYTES], aside[NAME_BYTES];

    id_name(name, id);
    snprintf(aside, sizeof(aside), "%.16s.damaged", name);
    store_os->renameat(store->dir, name, store->dir, aside);
    store_os->fsync(store->dir);
}

static int scan_one(struct store *store, uint64_t id, struct job_record *record, bool *there)
{
    int ret = store_record_get(store, id, record);

    *there = false;
    if (ret == -ENOENT) {
        store_remove(store, id);
        return 0;
    }
    if (ret == -EBADMSG || ret == -EIO || (ret == 0 && record->id != id)) {
        set_aside(store, id);
        return 0;
    }
    if (ret < 0)
        return ret;

    int dir = -1;
    ret = open_job_dir(store, id, &dir);
    if (ret < 0)
        return ret;
    drop_temporaries(dir);
    close_fd(dir);
    *there = true;
    return 0;
}

int store_scan(struct store *store, void (*each)(void *ctx, const struct job_record *record),
               void *ctx, struct errmsg *err)
{
    struct job_record record;
    uint64_t *ids = NULL;
    size_t len = 0;
    int ret = list_ids(store, &ids, &len);

    store_os->unlinkat(store->dir, COUNTER_FILE ".tmp", 0);
    for (size_t i = 0; i < len && ret == 0; i++) {
        bool there = false;
        ret = scan_one(store, ids[i], &record, &there);
        if (ret < 0)
            errmsg_set(err, ret, "job %016" PRIx64 ": %s", ids[i], strerror(-ret));
        if (ret == 0 && there)
            each(ctx, &record);
    }
    /* A counter that was lost or put back by hand must not give numbers twice. */
    if (ret == 0 && len > 0 && ids[len - 1] >= store->next)
        store->next = store->limit = ids[len - 1] + 1;
    free(ids);
    return ret;
}

/* ---- the C1 file as it arrives ---- */

int store_spool_open(struct store *store, uint64_t id, int *fd)
{
    char name[NAME_BYTES];
    int dir = -1, ret;

    id_name(name, id);
    if (store_os->mkdirat(store->dir, name, 0700) < 0 && errno != EEXIST)
        return -errno;
    ret = open_at(store->dir, name, O_RDONLY | O_DIRECTORY, &dir);
    if (ret < 0)
        return ret;
    ret = open_at(dir, file_names[STORE_C1], O_RDWR | O_CREAT, fd);
    close_fd(dir);
    return ret;
}

/* The disk begins to write while the rest arrives, so the sync at the end is short. */
int store_spool_write(int fd, const void *buf, size_t len, uint64_t offset)
{
    int ret = write_all(fd, buf, len, offset);

    if (ret == 0 && offset / FLUSH_BYTES != (offset + len) / FLUSH_BYTES)
        sync_file_range(fd, 0, 0,
                        SYNC_FILE_RANGE_WRITE); /* a hint: where it fails nothing is lost */
    return ret;
}

int store_spool_truncate(int fd, uint64_t bytes)
{
    return errno_of(store_os->ftruncate(fd, (off_t)bytes));
}

int store_spool_sync(int fd)
{
    return errno_of(store_os->fsync(fd));
}

void store_spool_close(int fd)
{
    close_fd(fd);
}

/* ---- whole files ---- */

int store_put(struct store *store, uint64_t id, enum store_file file, const void *bytes, size_t len)
{
    int dir = -1;
    int ret = open_job_dir(store, id, &dir);

    if (ret < 0)
        return ret;
    ret = put_at(dir, file_names[file], bytes, len);
    close_fd(dir);
    return ret;
}

int store_sync(struct store *store, uint64_t id)
{
    int dir = -1;
    int ret = open_job_dir(store, id, &dir);

    if (ret < 0)
        return ret;
    ret = errno_of(store_os->fsync(dir));
    if (ret == 0)
        ret = errno_of(store_os->fsync(store->dir));
    close_fd(dir);
    return ret;
}

int store_open_file(struct store *store, uint64_t id, enum store_file file, int *fd)
{
    int dir = -1;
    int ret = open_job_dir(store, id, &dir);

    if (ret < 0)
        return ret;
    ret = open_at(dir, file_names[file], O_RDONLY, fd);
    close_fd(dir);
    return ret;
}

int store_get(struct store *store, uint64_t id, enum store_file file, uint8_t **bytes, size_t *len)
{
    int fd = -1;
    int ret = store_open_file(store, id, file, &fd);

    if (ret < 0)
        return ret;
    ret = read_whole(fd, bytes, len);
    close_fd(fd);
    return ret;
}

ssize_t store_read(struct store *store, uint64_t id, enum store_file file, void *buf, size_t len,
                   uint64_t offset)
{
    int fd = -1;
    int ret = store_open_file(store, id, file, &fd);

    if (ret < 0)
        return ret;
    ssize_t n = pread(fd, buf, len, (off_t)offset);
    ssize_t got = n < 0 ? -errno : n;
    close_fd(fd);
    return got;
}

int64_t store_file_bytes(struct store *store, uint64_t id, enum store_file file)
{
    struct stat st;
    int fd = -1;
    int ret = store_open_file(store, id, file, &fd);

    if (ret < 0)
        return ret;
    ret = errno_of(fstat(fd, &st));
    close_fd(fd);
    return ret < 0 ? ret : (int64_t)st.st_size;
}

void store_drop(struct store *store, uint64_t id, enum store_file file)
{
    int dir = -1;

    if (open_job_dir(store, id, &dir) < 0)
        return;
    store_os->unlinkat(dir, file_names[file], 0);
    close_fd(dir);
}

/* ---- the record ---- */

int store_record_put(struct store *store, const struct job_record *record)
{
    uint8_t bytes[JOB_RECORD_MAX];
    size_t len = job_record_encode(bytes, record);
    int dir = -1;
    int ret = store_sync(store, record->id); /* first what the record promises */

    if (ret < 0)
        return ret;
    ret = open_job_dir(store, record->id, &dir);
    if (ret < 0)
        return ret;
    ret = put_at(dir, file_names[STORE_RECORD], bytes, len);
    if (ret == 0)
        ret = errno_of(store_os->fsync(dir));
    close_fd(dir);
    return ret;
}

int store_record_get(struct store *store, uint64_t id, struct job_record *out)
{
    uint8_t *bytes = NULL;
    size_t len = 0;
    int ret = store_get(store, id, STORE_RECORD, &bytes, &len);

    if (ret < 0)
        return ret;
    ret = job_record_decode(bytes, len, out);
    free(bytes);
    return ret;
}

int store_record_remove(struct store *store, uint64_t id)
{
    int dir = -1;
    int ret = open_job_dir(store, id, &dir);

    if (ret < 0)
        return ret == -ENOENT ? 0 : ret;
    if (store_os->unlinkat(dir, file_names[STORE_RECORD], 0) < 0 && errno != ENOENT)
        ret = -errno;
    if (ret == 0)
        ret = errno_of(store_os->fsync(dir));
    close_fd(dir);
    return ret;
}

int store_remove(struct store *store, uint64_t id)
{
    char name[NAME_BYTES];
    int dir = -1;
    int ret = open_job_dir(store, id, &dir);

    if (ret < 0)
        return ret == -ENOENT ? 0 : ret;
    for (size_t i = 0; i < STORE_FILES; i++)
        store_os->unlinkat(dir, file_names[i], 0);
    drop_temporaries(dir);
    close_fd(dir);
    id_name(name, id);
    return errno_of(store_os->unlinkat(store->dir, name, AT_REMOVEDIR));
}

/* ---- the journal ---- */

int store_journal_append(struct store *store, uint64_t id, const void *bytes, size_t len,
                         uint64_t offset)
{
    int dir = -1, fd = -1;
    int ret = open_job_dir(store, id, &dir);

    if (ret < 0)
        return ret;
    ret = open_at(dir, file_names[STORE_PARTITIONS], O_WRONLY | O_CREAT, &fd);
    if (ret == 0)
        ret = errno_of(store_os->ftruncate(fd, (off_t)offset));
    if (ret == 0)
        ret = write_all(fd, bytes, len, offset);
    if (ret == 0)
        ret = errno_of(store_os->fsync(fd));
    if (ret == 0 && offset == 0) /* the file may be new */
        ret = errno_of(store_os->fsync(dir));
    close_fd(fd);
    close_fd(dir);
    return ret;
}
