/*
 * One rung of the ladder after the other is tried with the whole size. Pages from the pool are bound strictly, and asked for under a
 * policy of the calling thread as well: then a pool of the node that is too small shows as an error at once, where it would be a
 * SIGBUS later. Ordinary pages are bound by preference: where the node is full the kernel takes others, which is counted and
 * reported, instead of killing somebody.
 */
#include "numa/arena.h"

#include <assert.h>
#include <errno.h>
#include <linux/mempolicy.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "numa/limits.h"

#define KIB ((size_t)1 << 10)
#define MIB ((size_t)1 << 20)
#define GIB ((size_t)1 << 30)
#define CARVE_ALIGN (4 * KIB)
#define PIECE (64 * MIB) /* faulted in by a thread at a time, if pages are not larger */
#define NODES_MAX 1024
#define MASK_WORDS (NODES_MAX / (8 * sizeof(unsigned long)))
#define BATCH 4096 /* pages asked about at a time */
#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23 /* Linux 5.14 */
#endif

struct rung {
    const char *name;
    size_t page_bytes;
    int map_flags, advice;
    bool pool; /* from the reserved pool */
};

static const struct rung rungs[] = {
    [ARENA_1GIB] = {"1 GiB", GIB, MAP_HUGETLB | 30 << MAP_HUGE_SHIFT, 0, true},
    [ARENA_2MIB] = {"2 MiB", 2 * MIB, MAP_HUGETLB | 21 << MAP_HUGE_SHIFT, 0, true},
    [ARENA_THP] = {"2 MiB (transparent)", 2 * MIB, 0, MADV_HUGEPAGE, false},
    [ARENA_4KIB] = {"4 KiB", 4 * KIB, 0, MADV_NOHUGEPAGE, false},
};

struct arena {
    char *base;
    size_t used;
    struct arena_info info;
};

/* A memory policy as the kernel takes it. */
struct policy {
    int mode;
    unsigned long mask[MASK_WORDS];
};

static struct policy policy_of(int mode, int node)
{
    struct policy p = {.mode = mode};

    p.mask[(size_t)node / (8 * sizeof(p.mask[0]))] = 1ul
                                                     << ((size_t)node % (8 * sizeof(p.mask[0])));
    return p;
}

static bool policy_get(struct policy *p)
{
    return syscall(SYS_get_mempolicy, &p->mode, p->mask, (unsigned long)NODES_MAX, NULL, 0ul) == 0;
}

/* The kernel reads one bit less than it is told of. */
static bool policy_set(const struct policy *p)
{
    return syscall(SYS_set_mempolicy, p->mode, p->mode == MPOL_DEFAULT ? NULL : p->mask,
                   (unsigned long)NODES_MAX) == 0;
}

const char *arena_pages_name(enum arena_pages pages)
{
    return rungs[pages].name;
}

void *arena_memory(const struct arena *a)
{
    return a->base;
}

const struct arena_info *arena_get_info(const struct arena *a)
{
    return &a->info;
}

static void note(struct arena *a, const char *what, const char *why)
{
    size_t used = strlen(a->info.lost);

    snprintf(a->info.lost + used, sizeof(a->info.lost) - used, "%s%s: %s", used ? "; " : "", what,
             why);
}

static void note_pages_lost(struct arena *a, const struct rung *rung, const char *why)
{
    a->info.lost_pages_alone = !a->info.lost[0] || a->info.lost_pages_alone;
    note(a, rung->name, why);
}

static void note_lost(struct arena *a, const char *what, const char *why)
{
    a->info.lost_pages_alone = false;
    note(a, what, why);
}

/* ---- mapping ---- */

static size_t round_up(size_t n, size_t to)
{
    return (n + to - 1) / to * to;
}

/* Room for `bytes` at a multiple of `align`: too much is mapped, and the ends are cut off. */
static char *map_aligned(size_t bytes, size_t align, int flags)
{
    size_t total = align > CARVE_ALIGN ? bytes + align : bytes;
    char *p = mmap(NULL, total, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);

    if (p == MAP_FAILED || total == bytes)
        return p == MAP_FAILED ? NULL : p;
    char *start = p + (round_up((uintptr_t)p, align) - (uintptr_t)p);
    if (start > p)
        munmap(p, (size_t)(start - p));
    munmap(start + bytes, total - bytes - (size_t)(start - p));
    return start;
}

/* Memory from the pool is reserved at mmap by the calling thread's policy, so that has to say the node too. */
static char *map_pool(size_t bytes, const struct rung *rung, int node)
{
    struct policy before, here = {.mode = MPOL_DEFAULT};
    int flags = MAP_PRIVATE | MAP_ANONYMOUS | rung->map_flags;
    bool switched = false;

    if (node != ARENA_ANY_NODE && policy_get(&before)) {
        here = policy_of(MPOL_BIND, node);
        switched = policy_set(&here);
    }
    char *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, flags, -1, 0);
    int code = errno;
    if (switched)
        policy_set(&before);
    errno = code;
    return p == MAP_FAILED ? NULL : p;
}

/* 0, or the errno of a kernel that does not bind. */
static int bind_memory(void *p, size_t bytes, const struct rung *rung, int node)
{
    struct policy here = policy_of(rung->pool ? MPOL_BIND : MPOL_PREFERRED, node);

    return syscall(SYS_mbind, p, bytes, here.mode, here.mask, (unsigned long)NODES_MAX, 0u) < 0
               ? errno
               : 0;
}

/* ---- faulting in ---- */

struct filling {
    char *base;
    size_t bytes, piece;
    bool may_touch; /* where the kernel cannot populate */
    int code;       /* 0 or the first error, atomic */
};

static int populate(char *p, size_t bytes)
{
    int ret;

    do
        ret = madvise(p, bytes, MADV_POPULATE_WRITE);
    while (ret < 0 && (errno == EAGAIN || errno == EINTR));
    return ret < 0 ? errno : 0;
}

static void fill_piece(void *ctx, size_t item, unsigned thread)
{
    struct filling *f = ctx;
    char *p = f->base + item * f->piece;
    size_t bytes = min_size(f->piece, f->bytes - item * f->piece);

    (void)thread;
    if (__atomic_load_n(&f->code, __ATOMIC_RELAXED))
        return;
    int code = populate(p, bytes);
    if (code == EINVAL && f->may_touch) {
        code = 0;
        for (size_t i = 0; i < bytes; i += CARVE_ALIGN)
            ((volatile char *)p)[i] = 0;
    }
    if (code)
        __atomic_store_n(&f->code, code, __ATOMIC_RELAXED);
}

static int fill(struct arena *a, const struct rung *rung, struct workers *workers)
{
    struct filling f = {.base = a->base,
                        .bytes = a->info.bytes,
                        .piece = rung->page_bytes > PIECE ? rung->page_bytes : PIECE,
                        .may_touch = !rung->pool};

    workers_run(workers, (f.bytes + f.piece - 1) / f.piece, fill_piece, &f);
    return f.code;
}

/* ---- one rung ---- */

/* Free pages of the node's pool, or of the machine's; -1: there is no such pool. */
static long pool_free(const struct rung *rung, int node)
{
    char path[128], base[64] = "/sys/kernel/mm";
    long pages = -1;

    if (node != ARENA_ANY_NODE)
        snprintf(base, sizeof(base), "/sys/devices/system/node/node%d", node);
    snprintf(path, sizeof(path), "%s/hugepages/hugepages-%zukB/free_hugepages", base,
             rung->page_bytes / KIB);
    FILE *f = fopen(path, "re");
    if (f && fscanf(f, "%ld", &pages) != 1)
        pages = -1;
    if (f)
        fclose(f);
    return pages;
}

static void unmap(struct arena *a)
{
    if (a->base)
        munmap(a->base, a->info.bytes);
    a->base = NULL;
}

/* Why there is no memory of this kind. */
static void note_rung(struct arena *a, const struct rung *rung, const struct arena_options *opt,
                      int code)
{
    char why[96];
    long free_pages = rung->pool ? pool_free(rung, opt->node) : -1;

    snprintf(why, sizeof(why), "%s", strerror(code));
    if (rung->pool && free_pages < 0)
        snprintf(why, sizeof(why), "not on this machine");
    else if (rung->pool && (code == ENOMEM || code == EFAULT))
        snprintf(why, sizeof(why), "%zu pages needed, %ld free in the pool (vm.nr_hugepages)",
                 (opt->bytes + rung->page_bytes - 1) / rung->page_bytes, free_pages);
    note_pages_lost(a, rung, why);
}

static int map_rung(struct arena *a, const struct rung *rung, const struct arena_options *opt)
{
    int code = 0;

    if (rung->pool && opt->bytes < rung->page_bytes)
        return ENOMEM; /* most of a page would lie idle */
    a->info.bytes = round_up(opt->bytes, rung->page_bytes);
    a->base = rung->pool ? map_pool(a->info.bytes, rung, opt->node)
                         : map_aligned(a->info.bytes, rung->page_bytes, rung->map_flags);
    if (!a->base)
        return errno;
    int bind_code =
        opt->node == ARENA_ANY_NODE ? 0 : bind_memory(a->base, a->info.bytes, rung, opt->node);
    madvise(a->base, a->info.bytes,
            MADV_DONTFORK); /* a child's copy would need pages of the pool */
    madvise(a->base, a->info.bytes, MADV_DONTDUMP); /* witnesses */
    if (rung->advice)
        madvise(a->base, a->info.bytes, rung->advice);
    code = fill(a, rung, opt->workers);
    if (code) {
        unmap(a);
        return code;
    }
    a->info.bound = opt->node != ARENA_ANY_NODE && !bind_code;
    if (bind_code)
        note_lost(a, "binding to the node", strerror(bind_code));
    return 0;
}

/* What a machine has not is refused before the kernel would have to kill somebody for it. The pool is not in these numbers. */
static int check_available(const struct arena_options *opt, struct errmsg *err)
{
    struct limits limits;

    limits_read(opt->root ? opt->root : "", &limits);
    if (opt->bytes <= limits.available_bytes)
        return 0;
    return errmsg_set(err, -ENOMEM,
                      "%.1f GiB of memory are needed, of %.1f GiB (%s) %.1f GiB are available",
                      (double)opt->bytes / (double)GIB, (double)limits.total_bytes / (double)GIB,
                      limits.from, (double)limits.available_bytes / (double)GIB);
}

static int map_ladder(struct arena *a, const struct arena_options *opt, struct errmsg *err)
{
    for (size_t i = opt->largest; i < ARRAY_LEN(rungs); i++) {
        int ret = rungs[i].pool ? 0 : check_available(opt, err);
        if (ret < 0)
            return ret;
        int code = map_rung(a, &rungs[i], opt);
        if (code == 0) {
            a->info.pages = (enum arena_pages)i;
            return 0;
        }
        if (opt->bytes >= rungs[i].page_bytes)
            note_rung(a, &rungs[i], opt, code);
    }
    return errmsg_set(err, -ENOMEM, "no memory for %zu bytes: %s", opt->bytes, a->info.lost);
}

/* ---- what has come of it ---- */

/* AnonHugePages of the mapping that begins at `base`, from smaps. */
static size_t transparent_bytes(const void *base)
{
    unsigned long first, last, kib = 0;
    char line[512];
    bool inside = false;

    FILE *f = fopen("/proc/self/smaps", "re");
    if (!f)
        return 0;
    while (fgets(line, sizeof(line), f)) {
        if (sscanf(line, "%lx-%lx ", &first, &last) == 2) {
            if (inside)
                break;
            inside = first <= (uintptr_t)base && (uintptr_t)base < last;
        } else if (inside && sscanf(line, "AnonHugePages: %lu kB", &kib) == 1) {
            break;
        }
    }
    fclose(f);
    return kib * KIB;
}

static void note_huge(struct arena *a)
{
    if (rungs[a->info.pages].pool)
        a->info.huge_bytes = a->info.bytes;
    if (a->info.pages != ARENA_THP)
        return;
    a->info.huge_bytes = min_size(transparent_bytes(a->base), a->info.bytes);
    if (a->info.huge_bytes > 0)
        return;
    a->info.pages = ARENA_4KIB;
    note_pages_lost(a, &rungs[ARENA_THP], "the kernel gave none");
}

static void lock(struct arena *a)
{
    /* Pages of the pool are never swapped out. */
    a->info.locked = rungs[a->info.pages].pool || mlock(a->base, a->info.bytes) == 0;
    if (!a->info.locked)
        note_lost(a, "locking (see ulimit -l)", strerror(errno));
}

static int find_misplaced(const struct arena *a, size_t step, int node, size_t *bytes, int *other)
{
    void *pages[BATCH];
    int where[BATCH];

    for (size_t at = 0; at < a->info.bytes;) {
        size_t n = 0;
        for (; n < BATCH && at < a->info.bytes; n++, at += step)
            pages[n] = a->base + at;
        if (syscall(SYS_move_pages, 0, n, pages, NULL, where, 0) < 0)
            return -errno;
        for (size_t i = 0; i < n; i++)
            if (where[i] >= 0 && where[i] != node) {
                *bytes += step;
                *other = where[i];
            }
    }
    return 0;
}

int arena_find_misplaced(const struct arena *a, int node, size_t *bytes, int *other)
{
    bool all_huge = a->info.huge_bytes == a->info.bytes;
    size_t found = 0;
    int found_node = -1;
    int ret = find_misplaced(a, all_huge ? rungs[a->info.pages].page_bytes : CARVE_ALIGN, node,
                             &found, &found_node);

    if (ret < 0)
        return ret;
    *bytes = found;
    *other = found_node;
    return 0;
}

static void read_back(struct arena *a)
{
    a->info.misplaced_node = -1;
    if (a->info.node == ARENA_ANY_NODE)
        return;
    int ret =
        arena_find_misplaced(a, a->info.node, &a->info.misplaced_bytes, &a->info.misplaced_node);
    if (ret < 0)
        note_lost(a, "knowing where pages lie", strerror(-ret));
}

/* ---- the outside ---- */

int arena_create(const struct arena_options *opt, struct arena **out, struct errmsg *err)
{
    if (!opt->bytes || opt->bytes > SIZE_MAX / 2 || opt->node >= NODES_MAX - 1)
        return errmsg_set(err, -EINVAL, "an arena of %zu bytes on node %d", opt->bytes, opt->node);
    struct arena *a = calloc(1, sizeof(*a));
    if (!a)
        return errmsg_set(err, -ENOMEM, "no memory for an arena");
    a->info.node = opt->node;
    int ret = map_ladder(a, opt, err);
    if (ret < 0) {
        free(a);
        return ret;
    }
    note_huge(a);
    lock(a);
    read_back(a);
    *out = a;
    return 0;
}

void arena_destroy(struct arena *a)
{
    if (!a)
        return;
    unmap(a);
    free(a);
}

size_t arena_carved_bytes(size_t bytes)
{
    return round_up(bytes, CARVE_ALIGN);
}

void *arena_carve(struct arena *a, size_t bytes)
{
    if (bytes > a->info.bytes - a->used)
        return NULL;
    char *p = a->base + a->used;
    a->used += arena_carved_bytes(bytes); /* the end is a multiple of CARVE_ALIGN as well */
    return p;
}

size_t arena_mark(const struct arena *a)
{
    return a->used;
}

void arena_rewind(struct arena *a, size_t mark)
{
    assert(mark <= a->used);
    a->used = mark;
}
