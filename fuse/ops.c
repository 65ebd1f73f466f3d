/*
 * One table of operations. Every operation is short: it looks at
 * the tree, changes the job table in memory, or hands the request to writers.c, events.c or the publisher.
 * None waits for the disk: what does, reading what is on it and changing what it must remember, is served by threads of
 * its own (struct slow), so that however many such requests hang, whoever only looks is answered.
 *
 * Attributes and names are valid for no time (timeouts 0), for jobs change without the kernel. But
 * what a listing says of ended ones is for a moment, and so is the way to them: long enough for
 * `ls -l` to come to each. Whoever changes such a job takes that back (fs_forget_listed).
 */
#include "fuse/fs_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define KEPT_MS 20           /* `ls -l` asks for what it was given at once */
#define LISTED_SLACK_MS 5000 /* the listing itself, on a busy machine, included */
#define HANDLES_USER_MAX 4096 /* files that one user may have open to read */
#define EVENTS_USER_MAX 64    /* of which `events`: each line goes to each of them */

static struct fs *fs_of(fuse_req_t req)
{
    return fuse_req_userdata(req);
}

static void reply(fuse_req_t req, int ret)
{
    fuse_reply_err(req, -ret);
}

/* Of a number: what it meant has gone since the kernel looked its name up. At ESTALE the kernel looks once more, so
 * that open(O_CREAT), stat and the like find what the name means now, or make it. */
static void reply_ino(fuse_req_t req, int ret)
{
    reply(req, ret == -ENOENT ? -ESTALE : ret);
}

static bool by_publisher(fuse_req_t req)
{
    return publisher_is(fs_of(req)->publisher, fuse_req_ctx(req)->pid);
}

static bool is_member(fuse_req_t req, gid_t gid)
{
    gid_t groups[256];

    if (gid == (gid_t)-1)
        return false;
    if (fuse_req_ctx(req)->gid == gid)
        return true;
    int len = fuse_req_getgroups(req, ARRAY_LEN(groups), groups);
    for (int i = 0; i < len && i < (int)ARRAY_LEN(groups); i++)
        if (groups[i] == gid)
            return true;
    return false;
}

/* May make a job critical, before those of others. */
static bool by_trusted(fuse_req_t req)
{
    uid_t user = fuse_req_ctx(req)->uid;

    return user == 0 || user == geteuid() || is_member(req, fs_of(req)->critical_gid);
}

/* Whether the caller may give away or remove a name. Without a shared group the directory is sticky, but the kernel judges by the owner of
 * what had the name when it looked, which may be another job by now. */
static int may_take_name(fuse_req_t req, const char *name)
{
    struct fs *fs = fs_of(req);
    uid_t user = fuse_req_ctx(req)->uid;
    struct stat st;

    if (user == 0 || user == geteuid() || tree_lookup(fs->tree, TREE_INO_JOBS, name, &st) < 0 ||
        st.st_uid == user)
        return 0;
    return st.st_gid == fs->shared_gid && is_member(req, fs->shared_gid) ? 0 : -EPERM;
}

static bool for_writing(const struct fuse_file_info *fi)
{
    return (fi->flags & O_ACCMODE) != O_RDONLY;
}

static int64_t now_ms(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

/* ---- what may wait for the disk ---- */

/* A request, with copies of what it came with. It has a lane of its own: such requests wait for none of each other. */
struct slow {
    struct intake_lane lane;
    struct intake_task task;
    void (*serve)(const struct slow *s); /* answers */
    struct fs *fs;
    fuse_req_t req; /* NULL: nobody asked */
    uint64_t ino;   /* or the parent's, where there is a name */
    char name[NAME_MAX + 1], new_name[NAME_MAX + 1];
    unsigned flags;
    struct stat attr;
    int to_set;
    struct handle *handle; /* open as long as somebody waits for it */
    size_t size;
    off_t offset;
    char bytes[]; /* of a write */
};

static enum intake_result run_slow(struct intake_task *task)
{
    struct slow *s = (struct slow *)((char *)task - offsetof(struct slow, task));

    s->serve(s);
    free(s);
    return INTAKE_GONE;
}

/* NULL without memory, and then `req` has been answered. */
static struct slow *slow_new(struct fs *fs, fuse_req_t req, size_t bytes,
                             void (*serve)(const struct slow *s))
{
    struct slow *s = calloc(1, sizeof(*s) + bytes);

    if (!s) {
        if (req)
            reply(req, -ENOMEM);
        return NULL;
    }
    s->fs = fs;
    s->req = req;
    s->serve = serve;
    s->task.run = run_slow;
    s->lane.user = req ? fuse_req_ctx(req)->uid : (uid_t)-1;
    return s;
}

static void slow_push(struct slow *s)
{
    if (s)
        intake_push(s->fs->slow, &s->lane, &s->task);
}

static void copy_slow_name(char to[NAME_MAX + 1], const char *name)
{
    snprintf(to, NAME_MAX + 1, "%s", name);
}

static void serve_catch_up(const struct slow *s)
{
    pthread_mutex_lock(&s->fs->lock);
    s->fs->catching_up = false; /* what is removed from now on is for the next one */
    pthread_mutex_unlock(&s->fs->lock);
    jobs_catch_up(s->fs->jobs);
}

/* What was removed and renamed without a look at the disk is so there now; without memory for that at the next tick. */
static void catch_up_soon(struct fs *fs)
{
    pthread_mutex_lock(&fs->lock);
    struct slow *s = fs->catching_up ? NULL : slow_new(fs, NULL, 0, serve_catch_up);
    fs->catching_up = fs->catching_up || s;
    pthread_mutex_unlock(&fs->lock);
    slow_push(s);
}

static void serve_tick(const struct slow *s)
{
    jobs_tick(s->fs->jobs);
    pthread_mutex_lock(&s->fs->lock);
    s->fs->ticking = false;
    pthread_mutex_unlock(&s->fs->lock);
}

void fs_tick_soon(struct fs *fs)
{
    pthread_mutex_lock(&fs->lock);
    struct slow *s = fs->ticking ? NULL : slow_new(fs, NULL, 0, serve_tick);
    fs->ticking = fs->ticking || s;
    pthread_mutex_unlock(&fs->lock);
    slow_push(s);
}

/* ---- names and attributes ---- */

static void op_init(void *userdata, struct fuse_conn_info *conn)
{
    (void)userdata;
    conn->max_write = WRITERS_BLOCK_MAX;
    conn->want &= ~(unsigned)FUSE_CAP_WRITEBACK_CACHE; /* a FLUSH must find all bytes here */
}

/* Seconds that the kernel may keep a name and its attributes. The way to the jobs never changes, but is asked for again
 * so soon that nobody takes a mount for alive whose service has died. */
static double keep_for(uint64_t ino)
{
    return ino == TREE_INO_ROOT || ino == TREE_INO_JOBS ? KEPT_MS / 1e3 : 0;
}

static int reply_entry(fuse_req_t req, const struct stat *st)
{
    double keep = keep_for(st->st_ino);
    struct fuse_entry_param e = {
        .ino = st->st_ino, .attr = *st, .attr_timeout = keep, .entry_timeout = keep};

    return fuse_reply_entry(req, &e);
}

static void op_lookup(fuse_req_t req, fuse_ino_t parent, const char *name)
{
    struct stat st;
    int ret = tree_lookup(fs_of(req)->tree, parent, name, &st);

    if (ret < 0)
        reply(req, ret);
    else
        reply_entry(req, &st);
}

/* An upload over an ended job is a new job behind the open file of the old one. */
static uint64_t ino_of(fuse_ino_t ino, const struct fuse_file_info *fi)
{
    const struct handle *h = fi ? handle_of(fi) : NULL;

    if (h && h->kind == HANDLE_WRITER)
        return tree_job_ino(writer_job((const struct writer *)h), TREE_C1);
    return ino;
}

static void reply_attr(fuse_req_t req, uint64_t ino)
{
    struct stat st;
    int ret = tree_getattr(fs_of(req)->tree, ino, &st);

    if (ret < 0)
        reply_ino(req, ret);
    else
        fuse_reply_attr(req, &st, keep_for(ino));
}

static void op_getattr(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
    reply_attr(req, ino_of(ino, fi));
}

/* Times are the service's: setting them is accepted and has no effect (cp -p, rsync, touch). */
static int set_owner_and_mode(struct fs *fs, uint64_t ino, const struct stat *attr, int to_set)
{
    uid_t uid = to_set & FUSE_SET_ATTR_UID ? attr->st_uid : (uid_t)-1;
    gid_t gid = to_set & FUSE_SET_ATTR_GID ? attr->st_gid : (gid_t)-1;
    enum tree_kind kind;
    uint64_t job;
    int ret = 0;

    if (!(to_set & (FUSE_SET_ATTR_MODE | FUSE_SET_ATTR_UID | FUSE_SET_ATTR_GID)))
        return 0;
    if (!tree_ino_is_job(ino, &job, &kind) || kind != TREE_C1)
        return -EPERM;
    if (to_set & (FUSE_SET_ATTR_UID | FUSE_SET_ATTR_GID))
        ret = jobs_set_owner(fs->jobs, job, uid, gid);
    if (ret == 0 && to_set & FUSE_SET_ATTR_MODE)
        ret = jobs_set_mode(fs->jobs, job, attr->st_mode & 0777);
    return ret;
}

static void reply_job_attr(fuse_req_t req, uint64_t job)
{
    reply_attr(req, tree_job_ino(job, TREE_C1));
}

static void set_attr(fuse_req_t req, uint64_t ino, const struct stat *attr, int to_set,
                     struct handle *h)
{
    struct fs *fs = fs_of(req);
    enum tree_kind kind;
    uint64_t job;

    int ret = set_owner_and_mode(fs, ino, attr, to_set);
    if (ret == 0 && to_set & FUSE_SET_ATTR_SIZE && tree_ino_is_job(ino, &job, &kind)) {
        if (h && h->kind == HANDLE_WRITER) {
            writer_truncate((struct writer *)h, req, (uint64_t)attr->st_size, reply_job_attr);
            return;
        }
        if (kind == TREE_C1) {
            writers_truncate(fs->writers, req, job, (uint64_t)attr->st_size, reply_job_attr);
            return;
        }
        if (kind != TREE_PRIORITY)
            ret = -EACCES;
    }
    if (ret < 0)
        reply_ino(req, ret);
    else
        reply_attr(req, ino);
}

static void serve_setattr(const struct slow *s)
{
    set_attr(s->req, s->ino, &s->attr, s->to_set, s->handle);
}

static void op_setattr(fuse_req_t req, fuse_ino_t ino, struct stat *attr, int to_set,
                       struct fuse_file_info *fi)
{
    struct handle *h = fi ? handle_of(fi) : NULL;

    ino = ino_of(ino, fi);
    if (!(to_set & (FUSE_SET_ATTR_MODE | FUSE_SET_ATTR_UID | FUSE_SET_ATTR_GID))) {
        set_attr(req, ino, attr, to_set, h);
        return;
    }
    struct slow *s = slow_new(fs_of(req), req, 0, serve_setattr);
    if (s) {
        s->ino = ino;
        s->attr = *attr;
        s->to_set = to_set;
        s->handle = h;
    }
    slow_push(s);
}

struct dir_reply {
    fuse_req_t req;
    char *buf;
    size_t used, max;
};

static bool add_bytes(struct dir_reply *d, size_t n)
{
    if (n > d->max - d->used)
        return false;
    d->used += n;
    return true;
}

static bool add_dirent(void *ctx, const struct tree_dirent *entry)
{
    struct dir_reply *d = ctx;
    struct stat st = {.st_ino = entry->ino, .st_mode = entry->type};

    return add_bytes(d, fuse_add_direntry(d->req, d->buf + d->used, d->max - d->used, entry->name,
                                          &st, (off_t)entry->offset));
}

/* With attributes, or with node number 0: the kernel then asks when it wants to know. */
static bool add_dirent_plus(void *ctx, const struct tree_dirent *entry)
{
    struct dir_reply *d = ctx;
    struct fuse_entry_param e = {.attr = {.st_ino = entry->ino, .st_mode = entry->type}};

    if (tree_stat_ended(entry, &e.attr)) {
        e.ino = entry->ino;
        e.attr_timeout = e.entry_timeout = KEPT_MS / 1e3;
    }
    return add_bytes(d, fuse_add_direntry_plus(d->req, d->buf + d->used, d->max - d->used,
                                               entry->name, &e, (off_t)entry->offset));
}

static void reply_dir(fuse_req_t req, fuse_ino_t ino, size_t size, off_t offset,
                      bool (*add)(void *ctx, const struct tree_dirent *entry))
{
    struct dir_reply d = {.req = req, .buf = malloc(size), .max = size};

    int ret = d.buf ? tree_list(fs_of(req)->tree, ino, (uint64_t)offset, add, &d) : -ENOMEM;
    if (ret < 0)
        reply(req, ret);
    else
        fuse_reply_buf(req, d.buf, d.used);
    free(d.buf);
}

static void op_readdir(fuse_req_t req, fuse_ino_t ino, size_t size, off_t offset,
                       struct fuse_file_info *fi)
{
    (void)fi;
    reply_dir(req, ino, size, offset, add_dirent);
}

/* What the kernel is told here holds from when it is told; that may be a while after we looked. */
static void op_readdirplus(fuse_req_t req, fuse_ino_t ino, size_t size, off_t offset,
                           struct fuse_file_info *fi)
{
    struct fs *fs = fs_of(req);

    (void)fi;
    atomic_store(&fs->listed_until_ms, now_ms() + LISTED_SLACK_MS);
    reply_dir(req, ino, size, offset, add_dirent_plus);
}

/* Sizes and modes of an ended job are asked for anew, and so its names too, once it has gone (reply_ino). */
void fs_forget_listed(struct fs *fs, uint64_t job)
{
    if (now_ms() > atomic_load(&fs->listed_until_ms))
        return;
    for (int kind = 0; kind < TREE_JOB_KINDS; kind++) {
        uint64_t ino = tree_job_ino(job, (enum tree_kind)kind);
        fuse_lowlevel_notify_inval_inode(fs->session, ino, -1, 0); /* -1: waits for nobody */
    }
}

void fs_look_at_space(struct fs *fs)
{
    struct statvfs st;
    int error = statvfs(fs->store_dir, &st) < 0 ? errno : 0;

    pthread_mutex_lock(&fs->lock);
    fs->space = error ? fs->space : st;
    fs->space_error = error;
    fs->space_asked = false;
    pthread_mutex_unlock(&fs->lock);
}

static void serve_space(const struct slow *s)
{
    fs_look_at_space(s->fs);
}

/* Asked for now and then, for a disk in trouble may take its time even for that. */
void fs_look_at_space_soon(struct fs *fs)
{
    pthread_mutex_lock(&fs->lock);
    struct slow *s = fs->space_asked ? NULL : slow_new(fs, NULL, 0, serve_space);
    fs->space_asked = fs->space_asked || s;
    pthread_mutex_unlock(&fs->lock);
    slow_push(s);
}

static void op_statfs(fuse_req_t req, fuse_ino_t ino)
{
    struct fs *fs = fs_of(req);
    struct jobs_totals totals;

    (void)ino;
    pthread_mutex_lock(&fs->lock);
    struct statvfs st = fs->space;
    int error = fs->space_error;
    pthread_mutex_unlock(&fs->lock);
    if (error) {
        fuse_reply_err(req, error);
        return;
    }
    jobs_totals(fs->jobs, &totals);
    if (totals.places) { /* `df -i` tells of the queue */
        st.f_files = totals.places;
        st.f_ffree = totals.places - min_size(totals.places, totals.places_taken);
        st.f_favail = st.f_ffree;
    }
    if (totals.max_store_bytes) {
        uint64_t left = totals.max_store_bytes > totals.store_bytes
                            ? totals.max_store_bytes - totals.store_bytes
                            : 0;
        left /= st.f_frsize;
        st.f_bavail = left < st.f_bavail ? left : st.f_bavail;
        st.f_bfree = st.f_bavail;
        st.f_blocks = st.f_bfree + totals.store_bytes / st.f_frsize;
    }
    st.f_namemax = TREE_NAME_MAX;
    fuse_reply_statfs(req, &st);
}

/* ---- making, removing, renaming ---- */

/* The publisher's own request. The job may have been renamed or removed since it was announced; the
 * publisher then looks again. */
static void publish_node(fuse_req_t req, const char *name, uint64_t job, enum tree_kind kind)
{
    struct tree *tree = fs_of(req)->tree;
    struct stat st;
    int ret = tree_publish(tree, job, kind);

    if (ret == 0)
        ret = tree_lookup(tree, TREE_INO_JOBS, name, &st);
    if (ret == 0 && st.st_ino != tree_job_ino(job, kind))
        ret = -ECANCELED;
    if (ret != 0)
        reply(req, ret);
    else
        reply_entry(req, &st);
}

static int make_file(struct fs *fs, fuse_req_t req, const char *name, mode_t mode,
                     struct job_info *info, struct stat *st)
{
    const struct fuse_ctx *ctx = fuse_req_ctx(req);
    struct upload_owner owner = {.uid = ctx->uid, .gid = ctx->gid, .mode = mode & 0777};

    if (is_member(req, fs->shared_gid)) {
        owner.gid = fs->shared_gid;
        owner.mode |= 0440;
    }
    if (!S_ISREG(mode))
        return -EPERM;
    if (strlen(name) > TREE_NAME_MAX)
        return -ENAMETOOLONG;
    int ret = jobs_create_file(fs->jobs, name, &owner, info);
    if (ret < 0)
        return ret;
    jobs_open_due(fs->jobs, info->id);
    return tree_getattr(fs->tree, tree_job_ino(info->id, TREE_C1), st);
}

static void op_mknod(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode, dev_t rdev)
{
    struct fs *fs = fs_of(req);
    struct job_info info;
    enum tree_kind kind;
    struct stat st;
    uint64_t job;

    (void)rdev;
    if (parent != TREE_INO_JOBS)
        reply(req, -EPERM);
    else if (publisher_expects(fs->publisher, fuse_req_ctx(req)->pid, name, &job, &kind))
        publish_node(req, name, job, kind);
    else {
        int ret = by_publisher(req) ? -ECANCELED : make_file(fs, req, name, mode, &info, &st);
        if (ret < 0)
            reply(req, ret);
        else if (reply_entry(req, &st) < 0) /* the caller was killed meanwhile */
            jobs_drop_unopened(fs->jobs, info.id);
    }
}

typedef int remove_fn(struct jobs *jobs, uint64_t job);

static int unlink_kind(struct fs *fs, uint64_t job, enum tree_kind kind, remove_fn *remove)
{
    struct job_info info;

    if (kind == TREE_C1)
        return remove(fs->jobs, job);
    if (!tree_kind_is_result(kind))
        return -EPERM;
    if (jobs_get(fs->jobs, job, &info) == 0 && info.state == JOB_REJECTED)
        return remove(fs->jobs, job); /* the error is all that there is */
    return tree_hide(fs->tree, job, kind);
}

static int unlink_name(fuse_req_t req, uint64_t parent, const char *name, remove_fn *remove)
{
    struct fs *fs = fs_of(req);
    enum tree_kind kind;
    struct stat st;
    uint64_t job;
    int ret = parent == TREE_INO_JOBS ? may_take_name(req, name) : 0;

    if (ret == 0)
        ret = tree_lookup(fs->tree, parent, name, &st);
    if (ret == 0)
        ret = tree_ino_is_job(st.st_ino, &job, &kind) ? unlink_kind(fs, job, kind, remove) : -EPERM;
    if (ret == 0)
        fs_forget_listed(fs, job); /* before the answer, whoever tells of it when */
    return ret;
}

static void serve_unlink(const struct slow *s)
{
    reply(s->req, unlink_name(s->req, s->ino, s->name, jobs_remove));
}

/* The kernel holds the directory until it is answered: so at once, and the disk forgets it behind. */
static void op_unlink(fuse_req_t req, fuse_ino_t parent, const char *name)
{
    struct fs *fs = fs_of(req);
    int ret = unlink_name(req, parent, name, jobs_remove_at_once);

    if (ret != -EINPROGRESS) {
        reply(req, ret);
        catch_up_soon(fs);
        return;
    }
    struct slow *s = slow_new(fs, req, 0, serve_unlink);
    if (s) {
        s->ino = parent;
        copy_slow_name(s->name, name);
    }
    slow_push(s);
}

/* After the rename of an ended job: its results would still have the old name for whom a listing gave it, and hide those of a job that gets the
 * name next. The kernel holds the directory, so no listing comes in meanwhile. */
static void outwait_listings(const struct fs *fs)
{
    const struct timespec kept = {.tv_nsec = (KEPT_MS + 1) * 1000000L};

    if (now_ms() <= atomic_load(&fs->listed_until_ms))
        nanosleep(&kept, NULL);
}

static bool has_ended(struct fs *fs, uint64_t job)
{
    struct job_info info;

    return jobs_get(fs->jobs, job, &info) == 0 && job_state_has_ended(info.state);
}

typedef int rename_fn(struct jobs *jobs, uint64_t job, const char *name);

static int rename_job(fuse_req_t req, const char *name, const char *new_name, unsigned flags,
                      rename_fn *move)
{
    struct fs *fs = fs_of(req);
    struct stat st, target;
    enum tree_kind kind;
    uint64_t job;
    int ret = tree_lookup(fs->tree, TREE_INO_JOBS, name, &st);

    if (ret < 0)
        return ret;
    if (!tree_ino_is_job(st.st_ino, &job, &kind) || kind != TREE_C1)
        return -EPERM;
    if (flags & ~(unsigned)RENAME_NOREPLACE)
        return -EINVAL;
    if (strlen(new_name) > TREE_NAME_MAX)
        return -ENAMETOOLONG;
    if (flags & RENAME_NOREPLACE && tree_lookup(fs->tree, TREE_INO_JOBS, new_name, &target) == 0)
        return -EEXIST;
    ret = move(fs->jobs, job, new_name);
    if (ret == -EINPROGRESS)
        return ret;
    if (ret < 0) /* the directory is locked, so nothing is judged here; the next try will be lucky */
        writers_judge(fs->writers, job, fuse_req_ctx(req)->uid);
    else if (has_ended(fs, job))
        outwait_listings(fs);
    return ret;
}

static int may_rename(fuse_req_t req, const char *name, const char *new_name)
{
    int ret = may_take_name(req, name);

    return ret == 0 ? may_take_name(req, new_name) : ret;
}

static void serve_rename(const struct slow *s)
{
    jobs_make_way(s->fs->jobs, s->name, s->new_name);
    int ret = may_rename(s->req, s->name, s->new_name); /* the disk may have refused to give a name away */
    if (ret == 0)
        ret = rename_job(s->req, s->name, s->new_name, s->flags, jobs_rename);
    reply(s->req, ret);
}

static void op_rename(fuse_req_t req, fuse_ino_t parent, const char *name, fuse_ino_t new_parent,
                      const char *new_name, unsigned flags)
{
    struct fs *fs = fs_of(req);
    int ret = parent == TREE_INO_JOBS && new_parent == TREE_INO_JOBS ? may_rename(req, name, new_name) : -EPERM;

    if (ret == 0)
        ret = rename_job(req, name, new_name, flags, jobs_rename_at_once);
    if (ret != -EINPROGRESS) {
        reply(req, ret);
        catch_up_soon(fs);
        return;
    }
    struct slow *s = slow_new(fs, req, 0, serve_rename);
    if (s) {
        copy_slow_name(s->name, name);
        copy_slow_name(s->new_name, new_name);
        s->flags = flags;
    }
    slow_push(s);
}

static void serve_fsyncdir(const struct slow *s)
{
    reply(s->req, jobs_sync(s->fs->jobs));
}

/* What was removed or renamed before is so on disk when this is answered. The kernel holds the directory until then. */
static void op_fsyncdir(fuse_req_t req, fuse_ino_t ino, int datasync, struct fuse_file_info *fi)
{
    (void)datasync, (void)fi;
    if (ino == TREE_INO_JOBS)
        slow_push(slow_new(fs_of(req), req, 0, serve_fsyncdir));
    else
        reply(req, 0);
}

static void op_mkdir(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode)
{
    (void)parent, (void)name, (void)mode;
    reply(req, -EPERM);
}

static void op_rmdir(fuse_req_t req, fuse_ino_t parent, const char *name)
{
    (void)parent, (void)name;
    reply(req, -EPERM);
}

static void op_symlink(fuse_req_t req, const char *link, fuse_ino_t parent, const char *name)
{
    (void)link, (void)parent, (void)name;
    reply(req, -EPERM);
}

static void op_link(fuse_req_t req, fuse_ino_t ino, fuse_ino_t new_parent, const char *new_name)
{
    (void)ino, (void)new_parent, (void)new_name;
    reply(req, -EPERM);
}

/* ---- open files ---- */

/* Neither a writer nor a text. */
struct file {
    struct handle handle;
    uint64_t job;                 /* HANDLE_FILE */
    struct reader *reader;        /* HANDLE_EVENTS */
};

/* NULL without memory. */
static struct handle *open_other(struct fs *fs, enum handle_kind kind, uint64_t job)
{
    struct file *f = calloc(1, sizeof(*f));

    if (!f)
        return NULL;
    f->handle.kind = kind;
    f->job = job;
    if (kind == HANDLE_EVENTS && !(f->reader = readers_open(events_readers(fs->events)))) {
        free(f);
        return NULL;
    }
    handle_link(&fs->handles, &fs->lock, &f->handle);
    return &f->handle;
}

static int count_handle(struct fs *fs, uid_t user, bool events)
{
    int ret = users_take(fs->users, user, USER_HANDLES, 1, HANDLES_USER_MAX);

    if (ret == 0 && events) {
        ret = users_take(fs->users, user, USER_EVENTS, 1, EVENTS_USER_MAX);
        if (ret < 0)
            users_give(fs->users, user, USER_HANDLES, 1);
    }
    return ret == -EDQUOT ? -EMFILE : ret;
}

static void uncount_handle(struct fs *fs, uid_t user, bool events)
{
    if (events)
        users_give(fs->users, user, USER_EVENTS, 1);
    users_give(fs->users, user, USER_HANDLES, 1);
}

static void close_handle(struct fs *fs, struct handle *h)
{
    uncount_handle(fs, h->user, h->kind == HANDLE_EVENTS);
    if (h->kind == HANDLE_TEXT) {
        text_close((struct text *)h);
        return;
    }
    handle_unlink(&fs->handles, &fs->lock, h);
    if (h->kind == HANDLE_EVENTS)
        readers_close(events_readers(fs->events), ((struct file *)h)->reader);
    free(h);
}

/* No request is being served any more. */
void fs_close_handles(struct fs *fs)
{
    texts_close_all(fs->texts);
    while (fs->handles)
        close_handle(fs, fs->handles);
}

/* Who may write to a file that is no C1: the publisher to a result; its owner to a priority and a
 * setting (the mode has been checked by the kernel; root gets past the mode, not past this). */
static int check_write(fuse_req_t req, uint64_t ino)
{
    enum tree_kind kind;
    struct stat st;
    uint64_t job;

    if (tree_ino_is_job(ino, &job, &kind) && tree_kind_is_result(kind))
        return by_publisher(req) ? 0 : -EACCES;
    int ret = tree_getattr(fs_of(req)->tree, ino, &st);
    if (ret < 0)
        return ret;
    return st.st_mode & 0222 ? 0 : -EACCES;
}

static int make_handle(fuse_req_t req, uint64_t ino, const struct fuse_file_info *fi,
                       struct handle **out)
{
    enum handle_kind handle = HANDLE_TEXT;
    enum tree_kind kind;
    uint64_t job = 0;
    bool is_job = tree_ino_is_job(ino, &job, &kind);
    struct job_info info;

    if (is_job && jobs_get(fs_of(req)->jobs, job, &info) < 0)
        return -ENOENT;
    int ret = for_writing(fi) ? check_write(req, ino) : 0;
    if (ret < 0)
        return ret;
    if (ino == TREE_INO_EVENTS)
        handle = HANDLE_EVENTS;
    else if (is_job && kind == TREE_C1)
        handle = HANDLE_FILE;
    else if (is_job && tree_kind_is_result(kind) && for_writing(fi))
        handle = HANDLE_RESULT;
    struct fs *fs = fs_of(req);
    uid_t user = fuse_req_ctx(req)->uid;
    ret = count_handle(fs, user, handle == HANDLE_EVENTS);
    if (ret < 0)
        return ret;
    if (handle == HANDLE_TEXT)
        *out = (struct handle *)texts_open(fs->texts, ino);
    else
        *out = open_other(fs, handle, job);
    if (!*out)
        uncount_handle(fs, user, handle == HANDLE_EVENTS);
    else
        (*out)->user = user;
    return *out ? 0 : -ENOMEM;
}

/* What does not change any more under this number, a job's file and its proof, goes through the page cache: so
 * it can be mapped, which the kernel allows of nothing else here. */
static bool is_constant(struct fs *fs, uint64_t ino)
{
    struct job_info info;
    enum tree_kind kind;
    uint64_t job;

    if (!tree_ino_is_job(ino, &job, &kind) || jobs_get(fs->jobs, job, &info) < 0)
        return false;
    if (kind == TREE_C1)
        return info.state >= JOB_QUEUED;
    return kind == TREE_PROOF || kind == TREE_PROOF_BIN;
}

static void op_open(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
    struct fs *fs = fs_of(req);
    struct handle *h = NULL;
    enum tree_kind kind;
    uint64_t job;

    if (tree_ino_is_job(ino, &job, &kind) && kind == TREE_C1 && for_writing(fi)) {
        writers_open(fs->writers, req, job, fi);
        return;
    }
    int ret = make_handle(req, ino, fi, &h);
    if (ret < 0) {
        reply_ino(req, ret);
        return;
    }
    fi->fh = (uintptr_t)h;
    fi->direct_io = for_writing(fi) || !is_constant(fs, ino);
    fi->nonseekable = h->kind == HANDLE_EVENTS;
    fi->noflush =
        1; /* nothing to say at a close, and no error for it when the service ends before */
    if (fuse_reply_open(req, fi) < 0)
        close_handle(fs, h);
}

static void read_c1(struct fs *fs, uint64_t job, fuse_req_t req, size_t size, uint64_t offset)
{
    char *buf = malloc(size);
    ssize_t n = buf ? jobs_read_file(fs->jobs, job, buf, size, offset) : -ENOMEM;

    if (n < 0)
        reply(req, (int)n);
    else
        fuse_reply_buf(req, buf, (size_t)n);
    free(buf);
}

static void serve_read(const struct slow *s)
{
    struct handle *h = s->handle;

    if (h->kind == HANDLE_TEXT)
        text_read((struct text *)h, s->req, s->size, (uint64_t)s->offset);
    else
        read_c1(s->fs, h->kind == HANDLE_FILE ? ((struct file *)h)->job : writer_job((struct writer *)h), s->req,
                s->size, (uint64_t)s->offset);
}

static void read_slowly(fuse_req_t req, struct handle *h, size_t size, off_t offset)
{
    struct slow *s = slow_new(fs_of(req), req, 0, serve_read);

    if (s) {
        s->handle = h;
        s->size = size;
        s->offset = offset;
    }
    slow_push(s);
}

static bool is_result(uint64_t ino)
{
    enum tree_kind kind;
    uint64_t job;

    return tree_ino_is_job(ino, &job, &kind) && tree_kind_is_result(kind);
}

static void op_read(fuse_req_t req, fuse_ino_t ino, size_t size, off_t offset,
                    struct fuse_file_info *fi)
{
    struct fs *fs = fs_of(req);
    struct handle *h = handle_of(fi);

    switch (h->kind) {
    case HANDLE_FILE:
    case HANDLE_WRITER:
        read_slowly(req, h, size, offset);
        break;
    case HANDLE_TEXT:
        if (is_result(ino))
            read_slowly(req, h, size, offset);
        else
            text_read((struct text *)h, req, size, (uint64_t)offset);
        break;
    case HANDLE_EVENTS:
        readers_read(events_readers(fs->events), ((struct file *)h)->reader, req, size,
                     fi->flags & O_NONBLOCK);
        break;
    case HANDLE_RESULT:
        reply(req, -EBADF);
        break;
    }
}

static void serve_text(const struct slow *s)
{
    text_write((struct text *)s->handle, s->req, s->bytes, s->size, by_trusted(s->req));
}

static void op_write(fuse_req_t req, fuse_ino_t ino, const char *buf, size_t size, off_t offset,
                     struct fuse_file_info *fi)
{
    struct handle *h = handle_of(fi);

    (void)ino;
    if (h->kind == HANDLE_WRITER) {
        writer_write((struct writer *)h, req, buf, size, (uint64_t)offset);
    } else if (h->kind == HANDLE_TEXT) {
        struct slow *s = slow_new(fs_of(req), req, size, serve_text);
        if (s) {
            s->handle = h;
            s->size = size;
            memcpy(s->bytes, buf, size);
        }
        slow_push(s);
    } else
        reply(req, -EACCES);
}

static void op_flush(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
    struct handle *h = handle_of(fi);

    (void)ino;
    if (h->kind == HANDLE_WRITER)
        writer_flush((struct writer *)h, req);
    else
        reply(req, 0);
}

static void op_release(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
    struct handle *h = handle_of(fi);

    (void)ino;
    if (h->kind == HANDLE_WRITER) {
        writer_release((struct writer *)h, req);
        return;
    }
    close_handle(fs_of(req), h);
    reply(req, 0);
}

static bool changes_are_told(uint64_t ino)
{
    enum tree_kind kind;
    uint64_t job;

    return tree_ino_is_job(ino, &job, &kind) && kind == TREE_STATUS;
}

static void op_poll(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi,
                    struct fuse_pollhandle *ph)
{
    struct fs *fs = fs_of(req);
    struct handle *h = handle_of(fi);
    unsigned events = POLLIN | POLLRDNORM | POLLOUT | POLLWRNORM;

    if (h->kind == HANDLE_EVENTS)
        events = readers_poll(events_readers(fs->events), ((struct file *)h)->reader, ph);
    else if (h->kind == HANDLE_TEXT && changes_are_told(ino))
        events = text_poll((struct text *)h, ph);
    else if (ph)
        fuse_pollhandle_destroy(ph);
    fuse_reply_poll(req, events);
}

/* No .create: see fs.h. No xattr operations: with one, the kernel asks for security.capability
 * before each write. No .fsync: the kernel then answers 0, and what counts is synced at FLUSH. */
const struct fuse_lowlevel_ops fs_operations = {
    .init = op_init,
    .lookup = op_lookup,
    .getattr = op_getattr,
    .setattr = op_setattr,
    .mknod = op_mknod,
    .mkdir = op_mkdir,
    .unlink = op_unlink,
    .rmdir = op_rmdir,
    .symlink = op_symlink,
    .rename = op_rename,
    .link = op_link,
    .open = op_open,
    .read = op_read,
    .write = op_write,
    .flush = op_flush,
    .release = op_release,
    .readdir = op_readdir,
    .readdirplus = op_readdirplus,
    .statfs = op_statfs,
    .poll = op_poll,
    .fsyncdir = op_fsyncdir,
};
