/*
 * Names are looked up in the job table each time; nothing of it is copied here. All that the tree
 * keeps is which results have been published: `start_id` parts the jobs that were there when the
 * service began from later ones, and an entry in `shown` tells what is visible of a job that ended
 * since. Attributes and contents are made when they are asked for.
 */
#include "fuse/tree.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "gpu/proof.h"

#define KIND_BITS 4
#define INO_OWN ((uint64_t)1 << 62) /* + index in nodes */
#define OWN_DEPTH_MAX 3             /* two directories and the file */
#define SHOWN_BUCKETS 1024
#define LIST_BATCH 16
#define ALL_KINDS ((1u << TREE_JOB_KINDS) - 1)

_Static_assert(TREE_JOB_KINDS <= 1 << KIND_BITS, "a kind fits into an inode number");

static const char *const suffixes[TREE_JOB_KINDS] = {
    [TREE_C1] = "",          [TREE_STATUS] = ".status", [TREE_PRIORITY] = ".priority",
    [TREE_ERROR] = ".error", [TREE_REPORT] = ".report", [TREE_PROOF_BIN] = ".proof.bin",
    [TREE_PROOF] = ".proof",
};

/* A file or directory of the service's own. */
struct node {
    uint64_t parent; /* inode number */
    char *name;
    const struct tree_file *file; /* NULL: a directory */
};

/* What can be seen of one job. A job without an entry shows everything if it had ended when the
 * service began, nothing otherwise. */
struct shown {
    struct shown *next;
    uint64_t job;
    unsigned published, hidden; /* bits 1 << kind */
};

struct tree {
    struct jobs *jobs;
    bool shared;
    uid_t uid;
    gid_t gid, operators;
    struct timespec started;
    struct tree_file *files;
    struct node *nodes;
    size_t nodes_len, nodes_max;
    uint64_t start_id;
    pthread_mutex_t lock; /* held over a look into the job table */
    struct shown *shown[SHOWN_BUCKETS]; /* guarded by lock */
};

/* ---- numbers and names ---- */

uint64_t tree_job_ino(uint64_t job, enum tree_kind kind)
{
    return job << KIND_BITS | (uint64_t)kind;
}

bool tree_ino_is_job(uint64_t ino, uint64_t *job, enum tree_kind *kind)
{
    uint64_t k = ino & ((1 << KIND_BITS) - 1);

    if (ino >= INO_OWN || ino >> KIND_BITS == 0 || k >= TREE_JOB_KINDS)
        return false;
    *job = ino >> KIND_BITS;
    *kind = (enum tree_kind)k;
    return true;
}

const char *tree_suffix(enum tree_kind kind)
{
    return suffixes[kind];
}

bool tree_kind_is_result(enum tree_kind kind)
{
    return kind >= TREE_ERROR;
}

/* Parts "a.proof.bin" into "a" and its kind; a name without a suffix of ours is a C1 file. */
static enum tree_kind parse_name(const char *name, char base[JOB_NAME_MAX + 1])
{
    size_t len = strlen(name);

    for (int k = TREE_STATUS; k < TREE_JOB_KINDS; k++) {
        size_t tail = strlen(suffixes[k]);
        if (len > tail && strcmp(name + len - tail, suffixes[k]) == 0) {
            memcpy(base, name, len - tail);
            base[len - tail] = '\0';
            return (enum tree_kind)k;
        }
    }
    memcpy(base, name, len + 1);
    return TREE_C1;
}

/* ---- which results can be seen ---- */

static struct shown **shown_find(struct tree *t, uint64_t job)
{
    struct shown **s = &t->shown[job % SHOWN_BUCKETS];

    while (*s && (*s)->job != job)
        s = &(*s)->next;
    return s;
}

/* An error is only as old as the service unless it is of a job that failed. */
static unsigned shown_by_default(const struct tree *t, const struct job_info *info)
{
    if (info->id > t->start_id)
        return 0;
    return info->state == JOB_FAILED ? ALL_KINDS : ALL_KINDS & ~(1u << TREE_ERROR);
}

/* The entry of a job, made if there is none; NULL without memory. Under the lock. */
static struct shown *shown_get(struct tree *t, const struct job_info *info)
{
    struct shown **place = shown_find(t, info->id);

    if (!*place) {
        struct shown *s = calloc(1, sizeof(*s));
        if (!s)
            return NULL;
        s->job = info->id;
        s->published = shown_by_default(t, info);
        *place = s;
    }
    return *place;
}

static void shown_drop(struct tree *t, uint64_t job)
{
    struct shown **place = shown_find(t, job);
    struct shown *s = *place;

    if (s) {
        *place = s->next;
        free(s);
    }
}

static void shown_masks(struct tree *t, const struct job_info *info, unsigned *published,
                        unsigned *hidden)
{
    pthread_mutex_lock(&t->lock);
    const struct shown *s = *shown_find(t, info->id);
    *published = s ? s->published : shown_by_default(t, info);
    *hidden = s ? s->hidden : 0;
    pthread_mutex_unlock(&t->lock);
}

/* The results that exist, seen or not. */
static unsigned results_of(const struct job_info *info)
{
    unsigned kinds = info->has_error ? 1u << TREE_ERROR : 0;

    if (info->state == JOB_DONE)
        kinds |= 1u << TREE_PROOF_BIN | 1u << TREE_PROOF;
    if (job_state_has_ended(info->state))
        kinds |= 1u << TREE_REPORT;
    return kinds;
}

/* Every kind that lookup and ls show. The error of a temporary file, which is about a rename that
 * was refused, needs no publication. */
static unsigned visible_kinds(struct tree *t, const struct job_info *info)
{
    unsigned published, hidden, results;

    if (info->state == JOB_CANCELLED)
        return 0;
    results = results_of(info);
    shown_masks(t, info, &published, &hidden);
    if (info->temporary)
        return (results & ~hidden) | 1u << TREE_C1;
    results &= published & ~hidden;
    if (info->state == JOB_REJECTED)
        return results;
    return results | 1u << TREE_C1 | 1u << TREE_STATUS | 1u << TREE_PRIORITY;
}

/* An upload over an ended job has no name of its own, so nothing of it can be seen yet. */
static bool has_its_name(struct tree *t, const struct job_info *info)
{
    struct job_info named;

    return jobs_find(t->jobs, info->name, &named) == 0 && named.id == info->id;
}

/* Under the lock: what is due and what becomes of that is one step, or a change that is told late would make a result appear twice. */
static unsigned due(struct tree *t, uint64_t id, struct job_info *info)
{
    if (jobs_get(t->jobs, id, info) < 0 || info->temporary || !has_its_name(t, info))
        return 0;
    const struct shown *s = *shown_find(t, id);
    return results_of(info) & ~(s ? s->published | s->hidden : shown_by_default(t, info));
}

unsigned tree_due(struct tree *t, uint64_t id, struct job_info *info)
{
    pthread_mutex_lock(&t->lock);
    unsigned kinds = due(t, id, info);
    pthread_mutex_unlock(&t->lock);
    return kinds;
}

int tree_publish(struct tree *t, uint64_t id, enum tree_kind kind)
{
    struct job_info info;
    int ret = 0;

    pthread_mutex_lock(&t->lock);
    struct shown *s = due(t, id, &info) & 1u << kind ? shown_get(t, &info) : NULL;
    if (s)
        s->published |= 1u << kind;
    else
        ret = -ENOENT; /* or no memory, which is as bad */
    pthread_mutex_unlock(&t->lock);
    if (ret == 0 && jobs_get(t->jobs, id, &info) < 0) { /* went meanwhile: leave no entry behind */
        tree_job_changed(t, &info, true);
        return -ENOENT;
    }
    return ret;
}

int tree_hide(struct tree *t, uint64_t id, enum tree_kind kind)
{
    struct job_info info;
    int ret = jobs_get(t->jobs, id, &info);

    if (ret < 0)
        return ret;
    pthread_mutex_lock(&t->lock);
    struct shown *s = shown_get(t, &info);
    if (s)
        s->hidden |= 1u << kind;
    else
        ret = -ENOMEM;
    pthread_mutex_unlock(&t->lock);
    return ret;
}

/* The published results that there are no more: another one of that kind is published anew. */
static unsigned lost(const struct job_info *info)
{
    unsigned kinds = job_state_is_final(info->state) ? 0 : ALL_KINDS;

    return info->has_error ? kinds : kinds | 1u << TREE_ERROR;
}

/* What is told is what was: the job may have ended meanwhile, and its results may have been published. */
void tree_job_changed(struct tree *t, const struct job_info *info, bool gone)
{
    struct job_info now;

    pthread_mutex_lock(&t->lock);
    struct shown *s = *shown_find(t, info->id);
    if (gone) {
        shown_drop(t, info->id);
    } else if (s && jobs_get(t->jobs, info->id, &now) == 0) {
        s->published &= ~lost(&now);
        s->hidden &= ~lost(&now);
    }
    pthread_mutex_unlock(&t->lock);
}

/* ---- texts that are made of what the table knows ---- */

static int render_text(char **text, size_t *len, const char *from)
{
    char *copy = strdup(from);

    if (!copy)
        return -ENOMEM;
    *text = copy;
    *len = strlen(copy);
    return 0;
}

/* What a job waits for, as the status file says it; "" when it waits for nothing. */
static void waits_for(const struct job_info *info, char *out, size_t max)
{
    out[0] = '\0';
    if (info->temporary)
        snprintf(out, max, " waits=rename");
    else if (info->state == JOB_RECEIVING)
        snprintf(out, max, " waits=writer");
    else if (info->waits_for_params && info->params_percent >= 0)
        snprintf(out, max, " waiting for parameters %d%%", info->params_percent);
    else if (info->waits_for_params)
        snprintf(out, max, " waiting for parameters");
    else if (info->waits_for_memory)
        snprintf(out, max, " waiting for memory");
    else if (info->state == JOB_QUEUED && info->same_as)
        snprintf(out, max, " waits=job:%" PRIu64, info->same_as);
    else if (info->state == JOB_QUEUED && info->node < 0)
        snprintf(out, max, " waits=engine");
}

static int render_status(const struct job_info *info, char **text, size_t *len)
{
    char line[256], waits[64], progress[32] = "", node[32] = "";

    waits_for(info, waits, sizeof(waits));
    if (info->partitions)
        snprintf(progress, sizeof(progress), " %u/%u", info->partitions_done, info->partitions);
    if (info->node >= 0)
        snprintf(node, sizeof(node), " node=%d", info->node);
    snprintf(line, sizeof(line), "%s%s%s%s%s\n", job_state_name(info->state), progress, node, waits,
             info->insecure ? " insecure development parameters" : "");
    return render_text(text, len, line);
}

static int render_priority(const struct job_info *info, char **text, size_t *len)
{
    char line[32];

    snprintf(line, sizeof(line), "%s\n", job_priority_name(info->priority));
    return render_text(text, len, line);
}

/* ---- attributes ---- */

static struct timespec timespec_of_ns(int64_t ns)
{
    return (struct timespec){.tv_sec = ns / 1000000000, .tv_nsec = ns % 1000000000};
}

static void set_times(struct stat *st, int64_t ns)
{
    st->st_mtim = st->st_ctim = st->st_atim = timespec_of_ns(ns);
}

static void stat_dir(const struct tree *t, uint64_t ino, mode_t mode, struct stat *st)
{
    *st = (struct stat){.st_ino = ino,
                        .st_mode = S_IFDIR | mode,
                        .st_nlink = 2,
                        .st_uid = t->uid,
                        .st_gid = t->gid,
                        .st_blksize = 4096,
                        .st_mtim = t->started,
                        .st_ctim = t->started,
                        .st_atim = t->started};
}

static void stat_own_file(const struct tree *t, uint64_t ino, mode_t mode, struct stat *st)
{
    stat_dir(t, ino, 0, st);
    st->st_mode = S_IFREG | mode;
    st->st_nlink = 1;
    if (!(mode & 0020))
        return;
    if (t->operators == (gid_t)-1)
        st->st_mode &= ~(mode_t)0020;
    else
        st->st_gid = t->operators;
}

static int64_t latest_ns(const struct job_info *info)
{
    int64_t ns = info->created_ns;

    if (info->accepted_ns > ns)
        ns = info->accepted_ns;
    if (info->started_ns > ns)
        ns = info->started_ns;
    return info->ended_ns > ns ? info->ended_ns : ns;
}

static mode_t kind_mode(const struct job_info *info, enum tree_kind kind)
{
    if (kind == TREE_C1)
        return info->mode & 07777;
    return (info->mode & 0444) | (kind == TREE_PRIORITY ? 0200 : 0);
}

/* Without a look at the disk: `ls -l` waits for nothing. -ENOENT where the file has nothing to be read. */
static int kind_bytes(const struct job_info *info, enum tree_kind kind, uint64_t *bytes)
{
    char *text = NULL;
    size_t len = 0;
    int ret = 0;

    if (kind == TREE_REPORT || kind == TREE_ERROR)
        ret = results_of(info) & 1u << kind ? 0 : -ENOENT;
    if (kind == TREE_C1)
        len = info->file_bytes;
    else if (kind == TREE_PROOF_BIN)
        len = PROOF_BYTES * (size_t)info->partitions;
    else if (kind == TREE_PROOF)
        len = PROOF_BYTES * (size_t)info->partitions * 2 + 1;
    else if (kind == TREE_REPORT)
        len = info->report_bytes;
    else if (kind == TREE_ERROR)
        len = info->error_bytes;
    else
        ret = kind == TREE_STATUS ? render_status(info, &text, &len) : render_priority(info, &text, &len);
    free(text);
    *bytes = len;
    return ret;
}

static int stat_job(const struct job_info *info, enum tree_kind kind, struct stat *st)
{
    uint64_t bytes;
    int ret = kind_bytes(info, kind, &bytes);

    if (ret < 0)
        return ret;
    *st = (struct stat){.st_ino = tree_job_ino(info->id, kind),
                        .st_mode = S_IFREG | kind_mode(info, kind),
                        .st_nlink = 1,
                        .st_uid = info->uid,
                        .st_gid = info->gid,
                        .st_size = (off_t)bytes,
                        .st_blksize = 4096,
                        .st_blocks = (blkcnt_t)((bytes + 511) / 512)};
    set_times(st, kind == TREE_C1 && info->accepted_ns ? info->accepted_ns
                  : kind == TREE_C1                    ? info->created_ns
                                                       : latest_ns(info));
    return 0;
}

static const struct node *own_node(const struct tree *t, uint64_t ino)
{
    return ino >= INO_OWN && ino - INO_OWN < t->nodes_len ? &t->nodes[ino - INO_OWN] : NULL;
}

int tree_getattr(struct tree *t, uint64_t ino, struct stat *out)
{
    const struct node *node = own_node(t, ino);
    struct job_info info;
    enum tree_kind kind;
    uint64_t job;

    if (ino == TREE_INO_JOBS)
        stat_dir(t, ino, t->shared ? 0777 : 01777, out);
    else if (ino == TREE_INO_EVENTS)
        stat_own_file(t, ino, 0444, out);
    else if (ino == TREE_INO_ROOT || (node && !node->file))
        stat_dir(t, ino, 0555, out);
    else if (node)
        stat_own_file(t, ino, node->file->mode, out);
    else if (!tree_ino_is_job(ino, &job, &kind) || jobs_get(t->jobs, job, &info) < 0)
        return -ENOENT;
    else
        return stat_job(&info, kind, out);
    return 0;
}

/* ---- names ---- */

static int find_own(const struct tree *t, uint64_t parent, const char *name, uint64_t *ino)
{
    for (size_t i = 0; i < t->nodes_len; i++)
        if (t->nodes[i].parent == parent && strcmp(t->nodes[i].name, name) == 0) {
            *ino = INO_OWN + i;
            return 0;
        }
    return -ENOENT;
}

static int lookup_job(struct tree *t, const char *name, struct stat *out)
{
    char base[JOB_NAME_MAX + 1];
    struct job_info info;

    if (strlen(name) > JOB_NAME_MAX)
        return -ENAMETOOLONG;
    enum tree_kind kind = parse_name(name, base);
    int ret = jobs_find(t->jobs, base, &info);
    if (ret < 0)
        return ret;
    return visible_kinds(t, &info) & 1u << kind ? stat_job(&info, kind, out) : -ENOENT;
}

static bool is_present(const struct node *n)
{
    return !n || !n->file || !n->file->present || n->file->present(n->file->ctx);
}

int tree_lookup(struct tree *t, uint64_t parent, const char *name, struct stat *out)
{
    uint64_t ino = 0;
    int ret = 0;

    if (parent == TREE_INO_JOBS)
        return lookup_job(t, name, out);
    if (parent == TREE_INO_ROOT && strcmp(name, "jobs") == 0)
        ino = TREE_INO_JOBS;
    else if (parent == TREE_INO_ROOT && strcmp(name, "events") == 0)
        ino = TREE_INO_EVENTS;
    else
        ret = find_own(t, parent, name, &ino);
    if (ret == 0 && !is_present(own_node(t, ino)))
        ret = -ENOENT;
    return ret < 0 ? ret : tree_getattr(t, ino, out);
}

/* ---- listing ---- */

struct listing {
    bool (*emit)(void *ctx, const struct tree_dirent *entry);
    void *ctx;
    uint64_t offset; /* entries up to this one have been given */
};

/* False: the reader is full. */
static bool list_entry(struct listing *l, const struct tree_dirent *entry)
{
    return entry->offset <= l->offset || l->emit(l->ctx, entry);
}

static bool list_one(struct listing *l, const char *name, uint64_t ino, mode_t type,
                     uint64_t offset)
{
    return list_entry(l, &(struct tree_dirent){name, ino, type, offset, NULL});
}

static bool list_job(struct tree *t, struct listing *l, const struct job_info *info)
{
    unsigned kinds = visible_kinds(t, info);
    char name[JOB_NAME_MAX + 16];

    for (int k = 0; k < TREE_JOB_KINDS; k++) {
        uint64_t ino = tree_job_ino(info->id, (enum tree_kind)k);
        int len = snprintf(name, sizeof(name), "%s%s", info->name, suffixes[k]);
        const struct tree_dirent entry = {name, ino, S_IFREG, ino, info};
        if (kinds & 1u << k && len <= JOB_NAME_MAX && !list_entry(l, &entry))
            return false;
    }
    return true;
}

/* The offset of an entry is its inode number, which grows with the job's age: so a reader that goes
 * on neither misses nor repeats a job that stays. */
static int list_jobs(struct tree *t, struct listing *l)
{
    struct job_info *batch = calloc(LIST_BATCH, sizeof(*batch));
    uint64_t after = l->offset >> KIND_BITS;
    bool room = true;
    size_t n;

    if (!batch)
        return -ENOMEM;
    after -= after > 0; /* the one it stopped in may have more */
    while (room && (n = jobs_list(t->jobs, after, batch, LIST_BATCH)) > 0) {
        for (size_t i = 0; i < n && room; i++)
            room = list_job(t, l, &batch[i]);
        after = batch[n - 1].id;
    }
    free(batch);
    return 0;
}

static void list_own(const struct tree *t, struct listing *l, uint64_t parent)
{
    for (size_t i = 0; i < t->nodes_len; i++)
        if (t->nodes[i].parent == parent && is_present(&t->nodes[i]) &&
            !list_one(l, t->nodes[i].name, INO_OWN + i, t->nodes[i].file ? S_IFREG : S_IFDIR,
                      8 + i))
            return;
}

int tree_list(struct tree *t, uint64_t ino, uint64_t offset,
              bool (*emit)(void *ctx, const struct tree_dirent *entry), void *ctx)
{
    struct listing l = {emit, ctx, offset};
    const struct node *node = own_node(t, ino);

    if (ino != TREE_INO_ROOT && ino != TREE_INO_JOBS && (!node || node->file))
        return -ENOTDIR;
    uint64_t parent = node ? node->parent : TREE_INO_ROOT;
    if (!list_one(&l, ".", ino, S_IFDIR, 1) || !list_one(&l, "..", parent, S_IFDIR, 2))
        return 0;
    if (ino == TREE_INO_JOBS)
        return list_jobs(t, &l);
    if (ino == TREE_INO_ROOT && (!list_one(&l, "jobs", TREE_INO_JOBS, S_IFDIR, 3) ||
                                 !list_one(&l, "events", TREE_INO_EVENTS, S_IFREG, 4)))
        return 0;
    list_own(t, &l, ino);
    return 0;
}

/* The error of a job that is done is of the last upload over it, and another one may come. */
bool tree_stat_ended(const struct tree_dirent *entry, struct stat *out)
{
    enum tree_kind kind;
    uint64_t job;

    if (!entry->job || !job_state_has_ended(entry->job->state))
        return false;
    return tree_ino_is_job(entry->ino, &job, &kind) && kind != TREE_ERROR &&
           stat_job(entry->job, kind, out) == 0;
}

/* ---- contents ---- */

static int render_proof_hex(struct tree *t, uint64_t job, char **text, size_t *len)
{
    uint8_t *bytes = NULL;
    size_t bytes_len;
    int ret = jobs_proof(t->jobs, job, &bytes, &bytes_len);

    if (ret < 0)
        return ret;
    char *hex = malloc(2 * bytes_len + 2);
    if (hex) {
        hex_encode(hex, bytes, bytes_len);
        memcpy(hex + 2 * bytes_len, "\n", 2);
        *text = hex;
        *len = 2 * bytes_len + 1;
    }
    free(bytes);
    return hex ? 0 : -ENOMEM;
}

static int text_len(int ret, char *const *text, size_t *len)
{
    if (ret == 0)
        *len = strlen(*text);
    return ret;
}

static int render_job(struct tree *t, uint64_t job, enum tree_kind kind, char **text, size_t *len)
{
    struct job_info info;

    if (jobs_get(t->jobs, job, &info) < 0)
        return -ENOENT;
    switch (kind) {
    case TREE_STATUS:
        return render_status(&info, text, len);
    case TREE_PRIORITY:
        return render_priority(&info, text, len);
    case TREE_ERROR:
        return text_len(jobs_error(t->jobs, job, text), text, len);
    case TREE_REPORT:
        return text_len(jobs_report(t->jobs, job, text), text, len);
    case TREE_PROOF_BIN:
        return jobs_proof(t->jobs, job, (uint8_t **)text, len);
    case TREE_PROOF:
        return render_proof_hex(t, job, text, len);
    default:
        return -ENOENT;
    }
}

int tree_render(struct tree *t, uint64_t ino, char **text, size_t *len)
{
    const struct node *node = own_node(t, ino);
    enum tree_kind kind;
    uint64_t job;

    if (node)
        return node->file ? node->file->render(node->file->ctx, text, len) : -EISDIR;
    return tree_ino_is_job(ino, &job, &kind) ? render_job(t, job, kind, text, len) : -ENOENT;
}

int tree_write(struct tree *t, uint64_t ino, const char *text, bool trusted, struct errmsg *err)
{
    const struct node *node = own_node(t, ino);
    enum job_priority priority;
    enum tree_kind kind;
    uint64_t job;

    if (node)
        return node->file && node->file->write ? node->file->write(node->file->ctx, text, err)
                                               : -EACCES;
    if (!tree_ino_is_job(ino, &job, &kind) || kind != TREE_PRIORITY)
        return -EACCES;
    if (job_priority_parse(text, &priority) < 0)
        return errmsg_set(err, -EINVAL, "priority is low, normal, high or critical, not '%.40s'",
                          text);
    if (priority == JOB_CRITICAL && !trusted)
        return errmsg_set(err, -EPERM, "critical is for root, the service's user and its critical_group");
    return jobs_set_priority(t->jobs, job, priority);
}

/* ---- making it ---- */

static int add_node(struct tree *t, uint64_t parent, const char *name, size_t name_len,
                    const struct tree_file *file, uint64_t *ino)
{
    struct node *n = &t->nodes[t->nodes_len];

    n->name = strndup(name, name_len);
    if (!n->name)
        return -ENOMEM;
    n->parent = parent;
    n->file = file;
    *ino = INO_OWN + t->nodes_len++;
    return 0;
}

static bool own_name_is_free(const struct tree *t, uint64_t parent, const char *name)
{
    uint64_t ino;
    bool taken =
        parent == TREE_INO_ROOT && (strcmp(name, "jobs") == 0 || strcmp(name, "events") == 0);

    return !taken && find_own(t, parent, name, &ino) < 0;
}

/* The directory `name` (not NUL-terminated) in `parent`, made if it is not there. */
static int get_dir(struct tree *t, uint64_t *parent, const char *name, size_t name_len)
{
    for (size_t i = 0; i < t->nodes_len; i++) {
        const struct node *n = &t->nodes[i];
        if (n->parent == *parent && !n->file && strlen(n->name) == name_len &&
            memcmp(n->name, name, name_len) == 0) {
            *parent = INO_OWN + i;
            return 0;
        }
    }
    return add_node(t, *parent, name, name_len, NULL, parent);
}

static int add_file(struct tree *t, const struct tree_file *file, struct errmsg *err)
{
    const char *name = file->path;
    uint64_t dir = TREE_INO_ROOT, ino;
    int depth = 1, ret = 0;

    for (const char *slash; ret == 0 && (slash = strchr(name, '/')); name = slash + 1) {
        if (slash == name || ++depth > OWN_DEPTH_MAX)
            return errmsg_set(err, -EINVAL, "%s: not a path of the mount", file->path);
        ret = get_dir(t, &dir, name, (size_t)(slash - name));
    }
    if (ret == 0 && (*name == '\0' || !own_name_is_free(t, dir, name)))
        return errmsg_set(err, -EINVAL, "%s: empty, or there twice", file->path);
    if (ret == 0)
        ret = add_node(t, dir, name, strlen(name), file, &ino);
    return ret < 0 ? errmsg_set(err, ret, "%s: no memory", file->path) : 0;
}

/* Notes which jobs had ended: their results are there, those of all others come by tree_publish. */
static int note_jobs(struct tree *t)
{
    struct job_info *info = calloc(1, sizeof(*info));
    int ret = info ? 0 : -ENOMEM;

    while (ret == 0 && jobs_list(t->jobs, t->start_id, info, 1) == 1) {
        t->start_id = info->id;
        if (job_state_is_final(info->state))
            continue;
        struct shown *s = shown_get(t, info);
        if (s)
            s->published = 0;
        else
            ret = -ENOMEM;
    }
    free(info);
    return ret;
}

int tree_create(const struct tree_options *opt, struct tree **out, struct errmsg *err)
{
    struct tree *t = calloc(1, sizeof(*t));
    int ret = -ENOMEM;

    if (!t)
        return errmsg_set(err, ret, "tree: no memory");
    pthread_mutex_init(&t->lock, NULL);
    clock_gettime(CLOCK_REALTIME, &t->started);
    t->jobs = opt->jobs;
    t->shared = opt->shared;
    t->uid = opt->uid;
    t->gid = opt->gid;
    t->operators = opt->operators;
    t->nodes_max = opt->files_len * OWN_DEPTH_MAX;
    t->files = calloc(opt->files_len + 1, sizeof(*t->files));
    t->nodes = calloc(t->nodes_max + 1, sizeof(*t->nodes));
    if (!t->files || !t->nodes) {
        errmsg_set(err, ret, "tree: no memory");
        goto out;
    }
    ret = note_jobs(t);
    for (size_t i = 0; i < opt->files_len && ret == 0; i++) {
        t->files[i] = opt->files[i];
        ret = add_file(t, &t->files[i], err);
    }
    if (ret < 0)
        goto out;
    *out = t;
    t = NULL;
out:
    tree_destroy(t);
    return ret;
}

void tree_destroy(struct tree *t)
{
    if (!t)
        return;
    for (size_t i = 0; i < SHOWN_BUCKETS; i++)
        while (t->shown[i])
            shown_drop(t, t->shown[i]->job);
    for (size_t i = 0; i < t->nodes_len; i++)
        free(t->nodes[i].name);
    free(t->nodes);
    free(t->files);
    pthread_mutex_destroy(&t->lock);
    free(t);
}
