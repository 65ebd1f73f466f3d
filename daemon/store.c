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
#include <openssl/sha.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "daemon/log.h"
#include "daemon/paths.h"
#include "daemon/store_os.h"

#define LOG_MODULE LOG_JOBS

#define ID_CHARS 16
#define IDS_AT_A_TIME 1024 /* so that one job in so many pays for the sync of the counter */
#define COUNTER_FORMAT "proofd store 2 next %" PRIu64 "\n"
#define COUNTER_MAX_BYTES 256
#define ASIDE ".damaged"
#define ASIDE_NAMES 1000 /* of one id */
#define NAME_BYTES 32    /* of every file and directory of ours */
#define ID_BYTES sizeof(uint64_t)
#define SEAL_BYTES SHA256_DIGEST_LENGTH
#define FLUSH_BYTES ((uint64_t)4 << 20)

struct store {
    int dir;
    pthread_mutex_t counter; /* held while its file is written; taken before ids */
    pthread_mutex_t ids;     /* memory only */
    uint64_t next, limit;    /* guarded by ids: numbers in [next, limit) are ours to give */
    atomic_uint aside;    /* entries that store_scan found or set aside */
    atomic_uint repaired; /* records written anew from their spare copies */
    atomic_uint_least64_t disk_bytes;
    atomic_bool read_only; /* the disk was at the last look, which the log has */
};

static const char *const file_names[STORE_FILES] = {
    [STORE_C1] = "c1",         [STORE_DECODED] = "decoded",       [STORE_RECORD] = "job",
    [STORE_SPARE] = "spare",   [STORE_PARTITIONS] = "partitions", [STORE_PROOF] = "proof",
    [STORE_REPORT] = "report", [STORE_ERROR] = "error",
};

/* What is read whole: a longer file is none of ours. */
static const size_t file_max_bytes[STORE_FILES] = {
    [STORE_DECODED] = (size_t)128 << 20, [STORE_RECORD] = JOB_RECORD_MAX,
    [STORE_SPARE] = JOB_RECORD_MAX,      [STORE_PARTITIONS] = (size_t)1 << 20,
    [STORE_PROOF] = (size_t)1 << 20,     [STORE_REPORT] = (size_t)1 << 20,
    [STORE_ERROR] = (size_t)1 << 20,
};

/* Files that end in a checksum of their own (the decoded form has its content id, records and journal
 * entries have theirs inside). */
static bool is_sealed(enum store_file file)
{
    return file == STORE_PROOF || file == STORE_REPORT || file == STORE_ERROR;
}

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
    /* Not blocking: a FIFO that somebody put here must not hold up the service. */
    int got = store_os->openat(dir, name, flags | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);

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

/* -EBADMSG where `name` is something else than a file. */
static int open_file_at(int dir, const char *name, int flags, int *out)
{
    struct stat st;
    int fd = -1;
    int ret = open_at(dir, name, flags, &fd);

    if (ret < 0) /* a symbolic link, a directory, a socket or a device without a driver */
        return ret == -ELOOP || ret == -EISDIR || ret == -ENXIO || ret == -ENODEV ? -EBADMSG : ret;
    ret = errno_of(fstat(fd, &st));
    if (ret == 0 && !S_ISREG(st.st_mode))
        ret = -EBADMSG;
    if (ret == 0)
        *out = fd;
    else
        close_fd(fd);
    return ret;
}

static int read_whole(int fd, size_t max, uint8_t **bytes, size_t *len)
{
    struct stat st;

    if (fstat(fd, &st) < 0)
        return -errno;
    if ((uint64_t)st.st_size > max)
        return -EBADMSG;
    uint8_t *buf = malloc((size_t)st.st_size + 1);
    if (!buf)
        return -ENOMEM;
    int ret = pread_full(fd, buf, (size_t)st.st_size, 0);
    if (ret < 0) {
        free(buf);
        return ret == -ENODATA ? -EBADMSG : ret;
    }
    buf[st.st_size] = '\0'; /* texts are strings at once */
    *bytes = buf;
    *len = (size_t)st.st_size;
    return 0;
}

static int get_at(int dir, const char *name, size_t max, uint8_t **bytes, size_t *len)
{
    int fd = -1;
    int ret = open_file_at(dir, name, O_RDONLY, &fd);

    if (ret < 0)
        return ret;
    ret = read_whole(fd, max, bytes, len);
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
    int ret = put_at(store->dir, STORE_COUNTER, text, (size_t)len);

    return ret < 0 ? ret : errno_of(store_os->fsync(store->dir));
}

static int counter_read(struct store *store, struct errmsg *err)
{
    uint8_t *text = NULL;
    size_t len = 0;
    int ret = get_at(store->dir, STORE_COUNTER, COUNTER_MAX_BYTES, &text, &len);

    if (ret == -ENOENT) {
        store->next = store->limit = 1;
        return 0;
    }
    if (ret < 0)
        return errmsg_set(err, ret, "%s: cannot read: %s", STORE_COUNTER,
                          ret == -EBADMSG ? "not a file of this service" : strerror(-ret));
    /* NOLINTNEXTLINE(clang-analyzer-core.NonNullParamChecker): success has set it */
    if (strncmp((char *)text, "proofd store 1 ", 15) == 0)
        ret = errmsg_set(err, -EPROTO,
                         "%s: written by an earlier version of proofd, whose jobs this one cannot "
                         "read: let that version end them, then move the directory away",
                         STORE_COUNTER);
    else if (sscanf((char *)text, COUNTER_FORMAT, &store->next) != 1 || store->next == 0 ||
             store->next >= JOB_ID_END)
        ret = errmsg_set(err, -EPROTO, "%s: not a job store of this version", STORE_COUNTER);
    store->limit = store->next;
    free(text);
    return ret;
}

/* Something of that name that is not ours must not be written into. */
static bool id_is_taken(struct store *store, uint64_t id)
{
    char name[NAME_BYTES];
    struct stat st;

    id_name(name, id);
    return fstatat(store->dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0 || errno != ENOENT;
}

int store_quick_id(struct store *store, uint64_t *out)
{
    pthread_mutex_lock(&store->ids);
    int ret = store->next < store->limit ? 0 : -EAGAIN;
    if (ret == 0)
        *out = store->next++;
    pthread_mutex_unlock(&store->ids);
    return ret;
}

/* The counter's file says `limit` before any number below that is given. With counter. */
static int extend_ids(struct store *store)
{
    pthread_mutex_lock(&store->ids);
    uint64_t next = store->next, limit = store->limit;
    pthread_mutex_unlock(&store->ids);
    if (limit - next >= IDS_AT_A_TIME / 2)
        return 0;
    if (limit >= JOB_ID_END - 2 * IDS_AT_A_TIME)
        return -EOVERFLOW;
    int ret = counter_write(store, limit + IDS_AT_A_TIME);
    if (ret < 0)
        return ret;
    pthread_mutex_lock(&store->ids);
    store->limit = limit + IDS_AT_A_TIME;
    pthread_mutex_unlock(&store->ids);
    return 0;
}

int store_reserve_ids(struct store *store)
{
    pthread_mutex_lock(&store->counter);
    int ret = extend_ids(store);
    pthread_mutex_unlock(&store->counter);
    return ret;
}

/* What the disk refuses matters only when there is no number left. */
static int next_number(struct store *store, uint64_t *out)
{
    for (;;) {
        int ret = store_reserve_ids(store);
        if (store_quick_id(store, out) == 0)
            return 0;
        if (ret < 0) /* else others have taken them all */
            return ret;
    }
}

uint64_t store_disk_bytes(const struct store *store)
{
    return atomic_load(&store->disk_bytes);
}

void store_look_at_disk(struct store *store)
{
    struct statvfs st;

    atomic_store(&store->disk_bytes, fstatvfs(store->dir, &st) == 0 ? (uint64_t)st.f_blocks * st.f_frsize : 0);
}

int store_next_id(struct store *store, uint64_t *out)
{
    uint64_t id = 0;
    int ret;

    while ((ret = next_number(store, &id)) == 0 && id_is_taken(store, id))
        log_err(log_u64("job", id), log_str("msg", "the store has something of this number that is "
                                                   "not a job of this service: left alone"));
    if (ret == 0)
        *out = id;
    return ret;
}

/* ---- opening ---- */

/* Makes the directory; its name is synced in its parent. */
static int make_store_dir(const char *dir, struct errmsg *err)
{
    int fd = -1;
    int ret = path_make_parents(dir, err);

    if (ret < 0)
        return ret;
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

/* The process that holds the lock, 0 where the kernel does not tell. */
static int lock_holder(int fd)
{
    char line[256];
    unsigned major_no, minor_no;
    uint64_t inode;
    struct stat st;
    int pid, holder = 0;
    FILE *f = fopen("/proc/locks", "re");

    while (f && holder == 0 && fstat(fd, &st) == 0 && fgets(line, sizeof(line), f))
        if (sscanf(line, "%*s FLOCK %*s WRITE %d %x:%x:%" SCNu64, &pid, &major_no, &minor_no,
                   &inode) == 4 &&
            major_no == major(st.st_dev) && minor_no == minor(st.st_dev) && inode == st.st_ino)
            holder = pid;
    if (f)
        fclose(f);
    return holder > 0 ? holder : 0; /* -1 or 0: of another name space */
}

static int lock_store(const struct store *store, const char *dir, struct errmsg *err)
{
    char who[32] = "";

    if (flock(store->dir, LOCK_EX | LOCK_NB) == 0)
        return 0;
    if (errno != EWOULDBLOCK)
        return errmsg_set(err, -errno, "%s: %s", dir, strerror(errno));
    int pid = lock_holder(store->dir);
    if (pid)
        snprintf(who, sizeof(who), " (pid %d)", pid);
    return errmsg_set(err, -EBUSY,
                      "%s: another service%s uses this store: stop it, or give this one a store of "
                      "its own",
                      dir, who);
}

int store_open(const char *dir, struct store **out, struct errmsg *err)
{
    struct store *store = calloc(1, sizeof(*store));
    int ret;

    if (!store)
        return -ENOMEM;
    store->dir = -1;
    pthread_mutex_init(&store->counter, NULL);
    pthread_mutex_init(&store->ids, NULL);
    struct errmsg why = {""};
    ret = make_store_dir(dir, &why);
    if (ret == 0) {
        store->dir = store_os->openat(AT_FDCWD, dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
        ret = errno_of(store->dir);
    }
    if (ret < 0) {
        errmsg_set(err, ret, "%s: %s", dir, why.text[0] ? why.text : strerror(-ret));
        goto out;
    }
    ret = lock_store(store, dir, err);
    if (ret < 0)
        goto out;
    /* A disk that is read-only would be noticed by the first user. */
    if (faccessat(store->dir, ".", W_OK | X_OK, AT_EACCESS) < 0) {
        ret = errmsg_set(err, -errno, "%s: cannot be written: %s", dir, strerror(errno));
        goto out;
    }
    store_look_at_disk(store);
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

int store_check(const char *dir, struct errmsg *err)
{
    struct store store = {.dir = -1};
    int ret = open_at(AT_FDCWD, dir, O_RDONLY | O_DIRECTORY, &store.dir);

    if (ret == -ENOENT)
        return 0;
    if (ret < 0)
        return errmsg_set(err, ret, "%s: %s", dir, strerror(-ret));
    ret = counter_read(&store, err);
    close_fd(store.dir);
    return ret < 0 ? errmsg_prefix(err, ret, "%s", dir) : 0;
}

void store_close(struct store *store)
{
    if (!store)
        return;
    close_fd(store->dir); /* with it goes the lock */
    pthread_mutex_destroy(&store->ids);
    pthread_mutex_destroy(&store->counter);
    free(store);
}

/* ---- looking through the store at start ---- */

/* Ids as id_name writes them. */
static bool parse_id(const char *name, uint64_t *id)
{
    uint8_t bytes[ID_CHARS / 2];
    char again[NAME_BYTES];

    if (hex_decode(bytes, name, sizeof(bytes)) < 0)
        return false;
    *id = load_be64(bytes);
    id_name(again, *id);
    return memcmp(again, name, ID_CHARS) == 0 && *id != 0 && *id < JOB_ID_END;
}

static bool looks_like_id(const char *name)
{
    return strlen(name) == ID_CHARS && strspn(name, "0123456789abcdef") == ID_CHARS;
}

static int compare_ids(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return (x > y) - (x < y);
}

struct id_list {
    uint64_t *ids;
    size_t len, room;
};

static int id_list_add(struct id_list *list, uint64_t id)
{
    if (list->len == list->room) {
        size_t room = list->room ? 2 * list->room : 64;
        uint64_t *more = reallocarray(list->ids, room, sizeof(*more));
        if (!more)
            return -ENOMEM;
        list->ids = more;
        list->room = room;
    }
    list->ids[list->len++] = id;
    return 0;
}

/* Numbers that have been used, by a job or for one, are not given again, whatever the counter says. */
static void number_is_used(struct store *store, uint64_t n)
{
    if (n >= store->next)
        store->next = store->limit = n + 1;
}

static int list_entry(struct store *store, const char *name, struct id_list *list)
{
    size_t len = strlen(name);
    uint64_t id = 0;

    if (len < ID_CHARS || !parse_id(name, &id)) {
        if (looks_like_id(name))
            log_warn(log_str("file", name), log_str("msg", "no job has this number: left alone"));
        return 0;
    }
    if (len == ID_CHARS)
        return id_list_add(list, id);
    if (strncmp(name + ID_CHARS, ASIDE, strlen(ASIDE)) == 0) {
        store->aside++;
        number_is_used(store, id);
    }
    return 0;
}

static int list_entries(struct store *store, DIR *dir, struct id_list *list)
{
    int ret = 0;

    while (ret == 0) {
        errno = 0;
        struct dirent *e = readdir(dir);
        if (!e)
            return -errno; /* 0 at the end; what cannot be read is not passed over */
        ret = list_entry(store, e->d_name, list);
    }
    return ret;
}

/* All that may be jobs, in order. */
static int list_ids(struct store *store, struct id_list *list)
{
    int fd = openat(store->dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;

    if (!dir) {
        int ret = -errno;
        if (fd >= 0)
            close(fd);
        return ret;
    }
    int ret = list_entries(store, dir, list);
    closedir(dir);
    if (list->len > 0)
        qsort(list->ids, list->len, sizeof(*list->ids), compare_ids);
    return ret;
}

static void drop_temporaries(int dir)
{
    for (size_t i = 0; i < STORE_FILES; i++) {
        char name[NAME_BYTES];
        snprintf(name, sizeof(name), "%s.tmp", file_names[i]);
        store_os->unlinkat(dir, name, 0);
    }
}

/* A name for what is set aside that nothing has yet: ID.damaged, ID.damaged.1, ... */
static int name_aside(struct store *store, const char *name, char out[NAME_BYTES])
{
    struct stat st;

    for (unsigned i = 0; i < ASIDE_NAMES; i++) {
        if (i == 0)
            snprintf(out, NAME_BYTES, "%.16s" ASIDE, name);
        else
            snprintf(out, NAME_BYTES, "%.16s" ASIDE ".%u", name, i);
        if (fstatat(store->dir, out, &st, AT_SYMLINK_NOFOLLOW) < 0)
            return errno == ENOENT ? 0 : -errno;
    }
    return -EEXIST;
}

static int set_aside(struct store *store, uint64_t id, const char *why, struct errmsg *err)
{
    char name[NAME_BYTES], aside[NAME_BYTES];

    id_name(name, id);
    int ret = name_aside(store, name, aside);
    if (ret == 0)
        ret = errno_of(store_os->renameat(store->dir, name, store->dir, aside));
    if (ret == 0)
        ret = errno_of(store_os->fsync(store->dir));
    if (ret < 0)
        return errmsg_set(err, ret, "%s, and it cannot be set aside: %s", why, strerror(-ret));
    store->aside++;
    log_err(log_u64("job", id), log_str("msg", "set aside: it cannot be read as a job"), log_str("why", why),
            log_str("file", aside));
    return 0;
}

static bool is_directory(struct store *store, uint64_t id)
{
    char name[NAME_BYTES];
    struct stat st;

    id_name(name, id);
    return fstatat(store->dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(st.st_mode);
}

/* 1: a job; 0: none (any more). *dropped counts the files among these. */
static int scan_one(struct store *store, uint64_t id, struct job_record *record, uint32_t *dropped,
                    struct errmsg *err)
{
    int dir = -1;

    if (!is_directory(store, id))
        return set_aside(store, id, "not a directory", err);
    int ret = store_record_get(store, id, record);
    if (ret == -ENOENT) {
        *dropped += store_file_bytes(store, id, STORE_C1) > 0;
        store_remove(store, id);
        return 0;
    }
    if (ret == -EBADMSG)
        return set_aside(store, id, "its record is damaged, and so is the spare copy", err);
    if (ret < 0)
        return errmsg_set(err, ret, "cannot read its record: %s", strerror(-ret));
    ret = open_job_dir(store, id, &dir);
    if (ret < 0)
        return errmsg_set(err, ret, "cannot open its directory: %s", strerror(-ret));
    drop_temporaries(dir);
    close_fd(dir);
    /* NOLINTNEXTLINE(clang-analyzer-core.CallAndMessage): success has filled it */
    number_is_used(store, record->named);
    return 1;
}

int store_scan(struct store *store, void (*each)(void *ctx, const struct job_record *record),
               void *ctx, struct errmsg *err)
{
    struct job_record record;
    struct id_list list = {0};
    uint32_t dropped = 0;

    atomic_store(&store->aside, 0);
    int ret = list_ids(store, &list);
    if (ret < 0)
        errmsg_set(err, ret, "cannot be listed: %s", strerror(-ret));
    if (list.len > 0)
        number_is_used(store, list.ids[list.len - 1]);
    store_os->unlinkat(store->dir, STORE_COUNTER ".tmp", 0);
    for (size_t i = 0; i < list.len && ret >= 0; i++) {
        ret = scan_one(store, list.ids[i], &record, &dropped, err);
        if (ret < 0)
            errmsg_prefix(err, ret, "job %016" PRIx64, list.ids[i]);
        else if (ret > 0)
            each(ctx, &record);
    }
    free(list.ids);
    if (dropped > 0)
        log_warn(log_str("msg", "files that were no jobs when the service ended are dropped: temporary "
                                "names, half written"),
                 log_u64("files", dropped));
    return ret < 0 ? ret : 0;
}

struct store_health store_health(const struct store *store)
{
    return (struct store_health){atomic_load(&store->aside), atomic_load(&store->repaired)};
}

/* ---- the C1 file as it arrives ---- */

/* Told once, when the disk becomes so: whoever writes is told each time. */
static void notice_read_only(struct store *store, int ret)
{
    bool is = ret == -EROFS;

    if (ret != 0 && !is) /* which says nothing of that */
        return;
    if (atomic_load(&store->read_only) == is || atomic_exchange(&store->read_only, is) == is)
        return;
    if (is)
        log_err(log_str("msg", "the store's disk is read-only: nothing is accepted until it can be "
                               "written"));
    else
        log_info(log_str("msg", "the store's disk can be written again"));
}

/* With a directory that was made just now; a failure leaves none. */
int store_spool_create(struct store *store, uint64_t id, int *fd)
{
    char name[NAME_BYTES];
    int dir = -1;

    id_name(name, id);
    int ret = errno_of(store_os->mkdirat(store->dir, name, 0700));

    notice_read_only(store, ret);
    if (ret < 0)
        return ret;
    ret = open_at(store->dir, name, O_RDONLY | O_DIRECTORY, &dir);
    if (ret == 0)
        ret = open_at(dir, file_names[STORE_C1], O_RDWR | O_CREAT | O_EXCL, fd);
    close_fd(dir);
    if (ret < 0)
        store_os->unlinkat(store->dir, name, AT_REMOVEDIR);
    return ret;
}

int store_spool_open(struct store *store, uint64_t id, int *fd)
{
    int dir = -1;
    int ret = open_job_dir(store, id, &dir);

    if (ret < 0)
        return ret;
    ret = open_file_at(dir, file_names[STORE_C1], O_RDWR, fd);
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

/* A copy with the job's id in front and room for the checksum of both behind: a file belongs to one job. */
static uint8_t *with_id(uint64_t id, const void *bytes, size_t len)
{
    uint8_t *copy = malloc(ID_BYTES + len + SEAL_BYTES);

    if (!copy)
        return NULL;
    store_le64(copy, id);
    memcpy(copy + ID_BYTES, bytes, len);
    return copy;
}

static int put_sealed(int dir, uint64_t id, const char *name, const void *bytes, size_t len)
{
    uint8_t *copy = with_id(id, bytes, len);

    if (!copy)
        return -ENOMEM;
    SHA256(copy, ID_BYTES + len, copy + ID_BYTES + len);
    int ret = put_at(dir, name, copy + ID_BYTES, len + SEAL_BYTES);
    free(copy);
    return ret;
}

int store_put(struct store *store, uint64_t id, enum store_file file, const void *bytes, size_t len)
{
    int dir = -1;
    int ret = open_job_dir(store, id, &dir);

    if (ret < 0)
        return ret;
    ret = is_sealed(file) ? put_sealed(dir, id, file_names[file], bytes, len)
                          : put_at(dir, file_names[file], bytes, len);
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
    ret = open_file_at(dir, file_names[file], O_RDONLY, fd);
    close_fd(dir);
    return ret;
}

/* Takes the checksum off. */
static int unseal(uint64_t id, uint8_t *bytes, size_t *len)
{
    uint8_t *copy;

    if (*len < SEAL_BYTES)
        return -EBADMSG;
    *len -= SEAL_BYTES;
    copy = with_id(id, bytes, *len);
    if (!copy)
        return -ENOMEM;
    uint8_t *digest = copy + ID_BYTES + *len;
    SHA256(copy, ID_BYTES + *len, digest);
    int ret = memcmp(bytes + *len, digest, SEAL_BYTES) == 0 ? 0 : -EBADMSG;
    free(copy);
    bytes[*len] = '\0';
    return ret;
}

int store_get(struct store *store, uint64_t id, enum store_file file, uint8_t **bytes, size_t *len)
{
    uint8_t *found = NULL;
    size_t found_len = 0;
    int fd = -1;
    int ret = store_open_file(store, id, file, &fd);

    if (ret < 0)
        return ret;
    ret = read_whole(fd, file_max_bytes[file], &found, &found_len);
    close_fd(fd);
    if (ret == 0 && is_sealed(file))
        ret = unseal(id, found, &found_len);
    if (ret < 0) {
        free(found);
        return ret;
    }
    *bytes = found;
    *len = found_len;
    return 0;
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

/* The spare copy is there first, so it is never older than the record. */
int store_record_put(struct store *store, const struct job_record *record)
{
    uint8_t bytes[JOB_RECORD_MAX];
    size_t len = job_record_encode(bytes, record);
    int dir = -1;
    int ret = store_put(store, record->id, STORE_SPARE, bytes, len);

    if (ret == 0)
        ret = open_job_dir(store, record->id, &dir);
    if (ret < 0)
        return ret;
    ret = errno_of(store_os->fsync(dir)); /* what the record promises */
    /* A directory that has a record has been synced into the store before. */
    if (ret == 0 && faccessat(dir, file_names[STORE_RECORD], F_OK, AT_SYMLINK_NOFOLLOW) < 0)
        ret = errno_of(store_os->fsync(store->dir));
    if (ret == 0)
        ret = put_at(dir, file_names[STORE_RECORD], bytes, len);
    if (ret == 0)
        ret = errno_of(store_os->fsync(dir));
    close_fd(dir);
    return ret;
}

static int read_record(struct store *store, uint64_t id, enum store_file file,
                       struct job_record *out)
{
    struct job_record r;
    uint8_t *bytes = NULL;
    size_t len = 0;
    int ret = store_get(store, id, file, &bytes, &len);

    if (ret < 0)
        return ret;
    ret = job_record_decode(bytes, len, &r);
    free(bytes);
    if (ret == 0 && r.id != id)
        ret = -EBADMSG;
    if (ret == 0)
        *out = r;
    return ret;
}

/* In place of a record that cannot be read for `why`: what the spare copy says is as new, or was about
 * to be said when the power went. */
static int repair_record(struct store *store, uint64_t id, int why, struct job_record *out)
{
    int ret = read_record(store, id, STORE_SPARE, out);

    if (ret == -EBADMSG || ret == -ENOENT)
        return why;
    if (ret == 0)
        ret = store_record_put(store, out);
    if (ret < 0)
        return ret == -EISDIR ? -EBADMSG : ret; /* a directory in its place */
    atomic_fetch_add(&store->repaired, 1);
    log_err(log_u64("job", id), log_str("name", out->name),
            log_str("msg", "its record was damaged on disk: written anew from the spare copy"));
    return 0;
}

int store_record_get(struct store *store, uint64_t id, struct job_record *out)
{
    int ret = read_record(store, id, STORE_RECORD, out);

    return ret == -EBADMSG || ret == -EIO ? repair_record(store, id, ret, out) : ret;
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
