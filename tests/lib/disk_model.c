#include "tests/lib/disk_model.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/store_os.h"
#include "tests/lib/job_store.h"

#define MAX_FD 1024
#define MAX_NAME 32
#define ALL_SUBSETS_OF 6 /* changes of names: up to so many, all subsets; beyond, a sample */
#define SAMPLES 32

/* ---- the recording ---- */

enum call_kind { CALL_MAKE, CALL_WRITE, CALL_TRUNCATE, CALL_SYNC, CALL_RENAME, CALL_REMOVE };

static const char *const kind_names[] = {"make", "write", "truncate", "sync", "rename", "remove"};

struct call {
    enum call_kind kind;
    int inode;   /* the file or directory; for names: the one they mean */
    int dir;     /* whose names change */
    bool is_dir; /* of CALL_MAKE */
    char from[MAX_NAME], to[MAX_NAME];
    uint8_t *bytes;
    size_t len;
    uint64_t offset; /* or new length */
};

struct name {
    char name[MAX_NAME];
    int inode;
};

/* Names as the running system sees them, to find out what descriptors are. */
struct live_dir {
    struct name names[256];
    size_t len;
};

static struct {
    char dir[256];
    struct call *calls;
    size_t len, room;
    int fd_inode[MAX_FD];  /* -1: not ours */
    struct live_dir *live; /* by inode; empty for files */
    int inodes;
    size_t fail_at, fail_count;
    int fail_code;
    bool failed;
} rec;

#define ROOT 0

static int new_inode(void)
{
    rec.live = realloc(rec.live, (size_t)(rec.inodes + 1) * sizeof(*rec.live));
    assert(rec.live);
    memset(&rec.live[rec.inodes], 0, sizeof(*rec.live));
    return rec.inodes++;
}

static struct name *live_find(int dir, const char *name)
{
    struct live_dir *d = &rec.live[dir];

    for (size_t i = 0; i < d->len; i++) {
        if (strcmp(d->names[i].name, name) == 0)
            return &d->names[i];
    }
    return NULL;
}

static void live_remove(int dir, const char *name)
{
    struct live_dir *d = &rec.live[dir];
    struct name *n = live_find(dir, name);

    if (n)
        *n = d->names[--d->len];
}

static void live_set(int dir, const char *name, int inode)
{
    struct live_dir *d = &rec.live[dir];

    live_remove(dir, name);
    assert(d->len < ARRAY_LEN(d->names));
    snprintf(d->names[d->len].name, MAX_NAME, "%s", name);
    d->names[d->len++].inode = inode;
}

static int inode_of(int fd)
{
    assert(fd < MAX_FD);
    return fd >= 0 ? rec.fd_inode[fd] : -1;
}

static struct call *add_call(enum call_kind kind)
{
    if (rec.len == rec.room) {
        rec.room = rec.room ? 2 * rec.room : 1024;
        rec.calls = realloc(rec.calls, rec.room * sizeof(*rec.calls));
        assert(rec.calls);
    }
    struct call *c = &rec.calls[rec.len++];
    memset(c, 0, sizeof(*c));
    c->kind = kind;
    return c;
}

/* Counts a call that changes something, and says whether it is to fail. */
static bool to_fail(void)
{
    if (rec.fail_count == 0)
        return false;
    if (rec.fail_at > 0) {
        rec.fail_at--;
        return false;
    }
    rec.fail_count--;
    rec.failed = true;
    errno = rec.fail_code;
    return true;
}

static void record_make(int dir, const char *name, bool is_dir, int inode)
{
    struct call *c = add_call(CALL_MAKE);

    c->dir = dir;
    c->inode = inode;
    c->is_dir = is_dir;
    snprintf(c->to, MAX_NAME, "%s", name);
    live_set(dir, name, inode);
}

static int rec_mkdirat(int dir, const char *name, mode_t mode)
{
    if (dir == AT_FDCWD)
        return store_os_real.mkdirat(dir, name, mode);
    if (!live_find(inode_of(dir), name) && to_fail())
        return -1;
    int ret = store_os_real.mkdirat(dir, name, mode);
    if (ret == 0)
        record_make(inode_of(dir), name, true, new_inode());
    return ret;
}

static int opened(int fd, int inode)
{
    assert(fd < MAX_FD);
    rec.fd_inode[fd] = inode;
    return fd;
}

static int rec_openat(int dir, const char *name, int flags, mode_t mode)
{
    if (dir == AT_FDCWD) {
        int fd = store_os_real.openat(dir, name, flags, mode);
        return fd < 0 ? fd : opened(fd, strcmp(name, rec.dir) == 0 ? ROOT : -1);
    }
    struct name *there = live_find(inode_of(dir), name);
    bool changes = (!there && (flags & O_CREAT)) || (there && (flags & O_TRUNC));
    if (changes && to_fail())
        return -1;
    int fd = store_os_real.openat(dir, name, flags, mode);
    if (fd < 0)
        return fd;
    int inode = there ? there->inode : new_inode();
    if (!there)
        record_make(inode_of(dir), name, false, inode);
    else if (flags & O_TRUNC)
        add_call(CALL_TRUNCATE)->inode = inode;
    return opened(fd, inode);
}

static ssize_t rec_pwrite(int fd, const void *buf, size_t len, off_t offset)
{
    if (to_fail())
        return -1;
    ssize_t n = store_os_real.pwrite(fd, buf, len, offset);
    if (n <= 0)
        return n;
    struct call *c = add_call(CALL_WRITE);
    c->inode = inode_of(fd);
    c->offset = (uint64_t)offset;
    c->len = (size_t)n;
    c->bytes = malloc((size_t)n);
    assert(c->bytes);
    memcpy(c->bytes, buf, (size_t)n);
    return n;
}

static int rec_ftruncate(int fd, off_t bytes)
{
    if (to_fail())
        return -1;
    int ret = store_os_real.ftruncate(fd, bytes);
    if (ret == 0) {
        struct call *c = add_call(CALL_TRUNCATE);
        c->inode = inode_of(fd);
        c->offset = (uint64_t)bytes;
    }
    return ret;
}

static int rec_fsync(int fd)
{
    if (inode_of(fd) < 0)
        return 0; /* the parent of the store */
    if (to_fail())
        return -1;
    add_call(CALL_SYNC)->inode = inode_of(fd);
    return 0;
}

static int rec_renameat(int from_dir, const char *from, int to_dir, const char *to)
{
    assert(inode_of(from_dir) == inode_of(to_dir)); /* all that the store does */
    if (to_fail())
        return -1;
    struct name *there = live_find(inode_of(from_dir), from);
    int ret = store_os_real.renameat(from_dir, from, to_dir, to);
    if (ret < 0)
        return ret;
    struct call *c = add_call(CALL_RENAME);
    c->dir = inode_of(from_dir);
    c->inode = there->inode;
    snprintf(c->from, MAX_NAME, "%s", from);
    snprintf(c->to, MAX_NAME, "%s", to);
    live_remove(c->dir, from);
    live_set(c->dir, to, c->inode);
    return ret;
}

static int rec_unlinkat(int dir, const char *name, int flags)
{
    if (live_find(inode_of(dir), name) && to_fail())
        return -1;
    int ret = store_os_real.unlinkat(dir, name, flags);
    if (ret == 0) {
        struct call *c = add_call(CALL_REMOVE);
        c->dir = inode_of(dir);
        snprintf(c->from, MAX_NAME, "%s", name);
        live_remove(c->dir, name);
    }
    return ret;
}

static int rec_close(int fd)
{
    rec.fd_inode[fd] = -1;
    return store_os_real.close(fd);
}

static const struct store_os recording = {
    .mkdirat = rec_mkdirat,
    .openat = rec_openat,
    .pwrite = rec_pwrite,
    .ftruncate = rec_ftruncate,
    .fsync = rec_fsync,
    .renameat = rec_renameat,
    .unlinkat = rec_unlinkat,
    .close = rec_close,
};

static void world_free(void);

void recorder_start(const char *dir)
{
    recorder_free();
    snprintf(rec.dir, sizeof(rec.dir), "%s", dir);
    for (int i = 0; i < MAX_FD; i++)
        rec.fd_inode[i] = -1;
    new_inode(); /* ROOT */
    store_os = &recording;
}

void recorder_stop(void)
{
    store_os = &store_os_real;
}

void recorder_free(void)
{
    world_free();
    for (size_t i = 0; i < rec.len; i++)
        free(rec.calls[i].bytes);
    free(rec.calls);
    free(rec.live);
    memset(&rec, 0, sizeof(rec));
}

size_t recorder_calls(void)
{
    return rec.len;
}

const char *recorder_describe(size_t n)
{
    static char text[160];
    const struct call *c = &rec.calls[n];

    snprintf(text, sizeof(text), "%s inode %d dir %d %s %s", kind_names[c->kind], c->inode, c->dir,
             c->from, c->to);
    return text;
}

void recorder_fail(size_t nth, size_t count, int code)
{
    rec.fail_at = nth;
    rec.fail_count = count;
    rec.fail_code = code;
    rec.failed = false;
}

bool recorder_failed(void)
{
    return rec.failed;
}

/* ---- the disk as the calls go by ---- */

struct bytes {
    uint8_t *p;
    size_t len;
};

struct inode {
    bool is_dir, dirty;
    struct bytes synced, current; /* of a file */
    struct name *names;           /* of a directory, as synced */
    size_t names_len;
    const struct call **pending; /* changes of names since */
    size_t pending_len;
    unsigned first; /* number of the first of them, see number_pending */
    bool numbered;
};

static struct {
    struct inode *inodes;
    size_t at; /* calls done */
    uint64_t *seen;
    size_t seen_len;
} world;

static void world_free(void)
{
    for (int i = 0; i < rec.inodes && world.inodes; i++) {
        free(world.inodes[i].synced.p);
        free(world.inodes[i].current.p);
        free(world.inodes[i].names);
        free(world.inodes[i].pending);
    }
    free(world.inodes);
    free(world.seen);
    memset(&world, 0, sizeof(world));
}

static void set_length(struct bytes *b, size_t len)
{
    b->p = realloc(b->p, len + 1);
    assert(b->p);
    if (len > b->len)
        memset(b->p + b->len, 0, len - b->len);
    b->len = len;
}

static void names_remove(struct name *names, size_t *len, const char *name)
{
    for (size_t i = 0; i < *len; i++) {
        if (strcmp(names[i].name, name) == 0) {
            names[i] = names[--*len];
            return;
        }
    }
}

/* `names` has room for one more. */
static void names_apply(struct name *names, size_t *len, const struct call *c)
{
    if (c->from[0])
        names_remove(names, len, c->from);
    if (c->kind == CALL_REMOVE)
        return;
    names_remove(names, len, c->to);
    memcpy(names[*len].name, c->to, MAX_NAME);
    names[(*len)++].inode = c->inode;
}

static void sync_names(struct inode *d)
{
    for (size_t i = 0; i < d->pending_len; i++) {
        d->names = realloc(d->names, (d->names_len + 1) * sizeof(*d->names));
        assert(d->names);
        names_apply(d->names, &d->names_len, d->pending[i]);
    }
    d->pending_len = 0;
}

static void world_step(const struct call *c)
{
    struct inode *n = &world.inodes[c->inode], *d = &world.inodes[c->dir];

    switch (c->kind) {
    case CALL_WRITE:
        if (c->offset + c->len > n->current.len)
            set_length(&n->current, c->offset + c->len);
        memcpy(n->current.p + c->offset, c->bytes, c->len);
        n->dirty = true;
        break;
    case CALL_TRUNCATE:
        set_length(&n->current, c->offset);
        n->dirty = true;
        break;
    case CALL_SYNC:
        if (n->is_dir) {
            sync_names(n);
            break;
        }
        set_length(&n->synced, n->current.len);
        if (n->current.len > 0)
            memcpy(n->synced.p, n->current.p, n->current.len);
        n->dirty = false;
        break;
    default:
        if (c->kind == CALL_MAKE)
            n->is_dir = c->is_dir;
        d->pending = realloc(d->pending, (d->pending_len + 1) * sizeof(*d->pending));
        assert(d->pending);
        d->pending[d->pending_len++] = c;
    }
}

static void world_go_to(size_t n)
{
    if (!world.inodes) {
        world.inodes = calloc((size_t)rec.inodes, sizeof(*world.inodes));
        assert(world.inodes);
        world.inodes[ROOT].is_dir = true;
    }
    assert(n >= world.at && n <= rec.len);
    while (world.at < n)
        world_step(&rec.calls[world.at++]);
    world.seen_len = 0;
}

/* ---- one of the disks that may be left ---- */

enum unsynced { BYTES_LOST, BYTES_THERE, BYTES_TORN, BYTES_ZERO, BYTES_KINDS };

/* Which changes of names survive, by their numbers, and what happens to bytes. */
struct choice {
    uint64_t names;
    enum unsynced bytes;
};

struct left {
    const struct choice *choice;
    bool any_dirty;
    const char *dir; /* where to make it, or NULL */
    uint64_t hash;
};

static void mix(struct left *left, const void *bytes, size_t len)
{
    const uint8_t *p = bytes;

    for (size_t i = 0; i < len; i++)
        left->hash = (left->hash ^ p[i]) * 1099511628211u;
    left->hash = (left->hash ^ len) * 1099511628211u;
}

/* The bytes of a file as the choice has it; *out is malloc'ed. */
static void left_bytes(const struct inode *n, enum unsynced kind, struct bytes *out)
{
    const struct bytes *from = !n->dirty || kind == BYTES_THERE ? &n->current : &n->synced;
    size_t same = 0;

    if (!n->dirty || kind <= BYTES_THERE) {
        set_length(out, from->len);
        memcpy(out->p, from->p ? from->p : (uint8_t *)"", from->len);
        return;
    }
    while (same < n->synced.len && same < n->current.len && n->synced.p[same] == n->current.p[same])
        same++;
    size_t good = kind == BYTES_ZERO ? same : same + (n->current.len - same) / 2;
    set_length(out, kind == BYTES_ZERO ? n->current.len : good);
    if (good > 0)
        memcpy(out->p, n->current.p, good);
}

static void make_file(const struct left *left, const char *path, const struct bytes *bytes)
{
    if (!left->dir)
        return;
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    assert(fd >= 0);
    ssize_t n = write(fd, bytes->p, bytes->len);
    assert(n == (ssize_t)bytes->len);
    close(fd);
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(((const struct name *)a)->name, ((const struct name *)b)->name);
}

/* Names of a directory as the choice has them; malloc'ed. */
static struct name *left_names(const struct inode *d, const struct left *left, size_t *len)
{
    struct name *names = calloc(d->names_len + d->pending_len + 1, sizeof(*names));

    assert(names);
    if (d->names_len > 0)
        memcpy(names, d->names, d->names_len * sizeof(*names));
    *len = d->names_len;
    for (size_t i = 0; i < d->pending_len; i++) {
        if (left->choice->names >> ((d->first + i) & 63) & 1)
            names_apply(names, len, d->pending[i]);
    }
    qsort(names, *len, sizeof(*names), compare_names);
    return names;
}

static void left_dir(struct left *left, int inode, const char *path)
{
    size_t len;
    struct name *names = left_names(&world.inodes[inode], left, &len);

    for (size_t i = 0; i < len; i++) {
        const struct inode *n = &world.inodes[names[i].inode];
        char below[512];
        snprintf(below, sizeof(below), "%s/%s", path, names[i].name);
        mix(left, names[i].name, strlen(names[i].name));
        if (n->is_dir) {
            if (left->dir && mkdir(below, 0700) < 0)
                assert(!"mkdir");
            left_dir(left, names[i].inode, below);
            continue;
        }
        struct bytes bytes = {0};
        left_bytes(n, left->choice->bytes, &bytes);
        left->any_dirty |= n->dirty;
        mix(left, bytes.p, bytes.len);
        make_file(left, below, &bytes);
        free(bytes.p);
    }
    mix(left, "/", 1);
    free(names);
}

static bool is_new(uint64_t hash)
{
    for (size_t i = 0; i < world.seen_len; i++) {
        if (world.seen[i] == hash)
            return false;
    }
    world.seen = realloc(world.seen, (world.seen_len + 1) * sizeof(*world.seen));
    assert(world.seen);
    world.seen[world.seen_len++] = hash;
    return true;
}

struct cut {
    const char *dir;
    void (*check)(void *ctx);
    void *ctx;
    size_t count;
};

static void empty_dir(const char *dir)
{
    remove_tree(dir);
    if (mkdir(dir, 0700) < 0)
        assert(!"mkdir");
}

static bool cut_one(struct cut *cut, uint64_t names, enum unsynced bytes)
{
    struct choice choice = {names, bytes};
    struct left left = {.choice = &choice, .hash = 14695981039346656037u};

    left_dir(&left, ROOT, cut->dir);
    bool dirty = left.any_dirty;
    if (!is_new(left.hash))
        return dirty;
    empty_dir(cut->dir);
    left = (struct left){.choice = &choice, .dir = cut->dir};
    left_dir(&left, ROOT, cut->dir);
    cut->check(cut->ctx);
    cut->count++;
    return dirty;
}

/* All that may become of the bytes, with these names. */
static void cut_names(struct cut *cut, uint64_t names)
{
    if (!cut_one(cut, names, BYTES_THERE))
        return; /* all files with a name are synced */
    for (int bytes = 0; bytes < BYTES_KINDS; bytes++)
        cut_one(cut, names, (enum unsynced)bytes);
}

static uint64_t next_random(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

/* Numbers the changes of names that are not synced, in all directories that may be there. Returns the next number. */
static unsigned number_pending(int inode, unsigned next)
{
    struct inode *d = &world.inodes[inode];

    if (!d->is_dir || d->numbered)
        return next;
    d->numbered = true;
    d->first = next;
    next += (unsigned)d->pending_len;
    for (size_t i = 0; i < d->names_len; i++)
        next = number_pending(d->names[i].inode, next);
    for (size_t i = 0; i < d->pending_len; i++) {
        if (d->pending[i]->kind != CALL_REMOVE)
            next = number_pending(d->pending[i]->inode, next);
    }
    return next;
}

size_t replay_cut(size_t n, const char *dir, void (*check)(void *ctx), void *ctx)
{
    struct cut cut = {.dir = dir, .check = check, .ctx = ctx};
    uint64_t state = 88172645463325252u + n;

    world_go_to(n);
    for (int i = 0; i < rec.inodes; i++)
        world.inodes[i].numbered = false;
    unsigned k = number_pending(ROOT, 0);
    if (k <= ALL_SUBSETS_OF) {
        for (uint64_t names = 0; names < (uint64_t)1 << k; names++)
            cut_names(&cut, names);
        return cut.count;
    }
    cut_names(&cut, 0);
    cut_names(&cut, UINT64_MAX);
    for (unsigned i = 0; i < k && i < 64; i++) {
        cut_names(&cut, (uint64_t)1 << i);
        cut_names(&cut, ~((uint64_t)1 << i));
        cut_names(&cut, ((uint64_t)1 << i) - 1);
    }
    for (unsigned i = 0; i < SAMPLES; i++)
        cut_names(&cut, next_random(&state));
    return cut.count;
}
