#include "daemon/params_files.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct entry {
    struct params_files *all;
    const struct sector_size *size;
    char path[32];
};

struct params_files {
    struct sched *sched;
    size_t engines;
    struct params_watch *watch;
    struct entry entries[SCHED_SIZES];
    struct params_file files[SCHED_SIZES];
    size_t len;
};

static const struct node_params *params_of(const struct engine_status *st,
                                           const struct sector_size *size)
{
    return &st->status.node.params[size - sector_sizes];
}

/* ---- what a file says ---- */

static void put_file(FILE *out, const struct entry *e)
{
    struct srs_look look;
    struct errmsg err = {""};

    int ret = params_watch_last(e->all->watch, e->size, &look, &err);
    fprintf(out, "size %s\n", e->size->name);
    if (ret == -ENOENT) {
        fputs("file none\n", out);
        return;
    }
    if (ret == 0 && look.made_by_devices) {
        fprintf(out, "file none\nmade device\ntrust %s\n", srs_trust_text(look.trust));
        return;
    }
    fprintf(out, "file %s\nfile_bytes %" PRIu64 "\n", look.path, (uint64_t)look.st.st_size);
    if (ret < 0)
        fprintf(out, "trust unusable: %s\n", err.text);
    else
        fprintf(out, "trust %s\n", srs_trust_text(look.trust));
    if (ret == 0 && look.transformed)
        fputs("transformed yes\n", out);
    else if (ret == 0 && look.not_transformed.text[0])
        fprintf(out, "transformed unusable: %s\n", look.not_transformed.text);
}

static size_t in_use(const struct engine_status *st, const struct sector_size *size)
{
    size_t n = 0;

    for (size_t i = 0; i < st->in_flight_len; i++)
        n += st->in_flight[i].size == size;
    return n;
}

/* Where engine `st` has them, a line for it and each of its GPUs. */
static void put_engine(FILE *out, const struct engine_status *st, const struct sector_size *size)
{
    const struct node_params *p = params_of(st, size);

    fprintf(out, "node %d host %s bytes %" PRIu64 " in_use %zu", st->node,
            p->host_bytes ? "yes" : "no", p->host_bytes, in_use(st, size));
    if (p->held)
        fprintf(out, " used_ms %" PRId64 " trust %s%s", p->used_ms,
                srs_trust_word((enum srs_trust)p->trust), p->transformed ? " transformed" : "");
    fputc('\n', out);
    for (uint32_t i = 0; i < st->status.node.provers_len; i++) {
        const struct node_prover *v = &st->status.node.provers[i];
        if (v->gpu < 0)
            continue;
        bool has = p->devices >> i & 1, streamed = p->streamed >> i & 1;
        fprintf(out, "node %d gpu %d %s bytes %" PRIu64 "\n", st->node, v->gpu,
                streamed ? "streamed"
                : has    ? "resident"
                         : "none",
                has ? p->device_bytes : 0);
    }
}

static void put_wish(FILE *out, int node, const struct node_params *p,
                     const struct sched_wish_status *w)
{
    const char *what = w->evict ? "evict" : "load";

    if (p->loading)
        fprintf(out, "node %d loading %" PRIu32 "%%\n", node, p->percent);
    else if (w->state == WISH_FAILED)
        fprintf(out, "node %d %s failed: %s\n", node, what, w->why);
    else if (w->state != WISH_NONE)
        fprintf(out, "node %d %s waits\n", node, what);
}

static int render(void *ctx, char **text, size_t *len)
{
    const struct entry *e = ctx;
    struct engine_status *st = malloc(sizeof(*st));
    FILE *out = st ? open_memstream(text, len) : NULL;

    if (!out) {
        free(st);
        return -ENOMEM;
    }
    put_file(out, e);
    for (size_t i = 0; i < e->all->engines; i++) {
        struct sched_wish_status wish; /* first: what fulfilled one shows */
        sched_wish_status(e->all->sched, i, e->size, &wish);
        sched_engine_status(e->all->sched, i, st);
        put_engine(out, st, e->size);
        put_wish(out, st->node, params_of(st, e->size), &wish);
    }
    free(st);
    return fclose(out) == 0 ? 0 : -ENOMEM;
}

static bool is_held(const struct entry *e)
{
    struct engine_status *st = malloc(sizeof(*st));
    bool held = false;

    for (size_t i = 0; st && i < e->all->engines && !held; i++) {
        sched_engine_status(e->all->sched, i, st);
        held = params_of(st, e->size)->held;
    }
    free(st);
    return held;
}

static bool is_present(void *ctx)
{
    const struct entry *e = ctx;

    return params_watch_is_there(e->all->watch, e->size) || is_held(e);
}

/* ---- what is written to it ---- */

static bool is_verb(const char *word, bool *evict)
{
    *evict = strcmp(word, "evict") == 0;
    return *evict || strcmp(word, "load") == 0;
}

static int parse(const char *text, bool *evict, int *node, struct errmsg *err)
{
    char verb[8];
    int end = 0;

    *node = SCHED_ALL_NODES;
    if (is_verb(text, evict))
        return 0;
    if (sscanf(text, "%7s node %4d%n", verb, node, &end) == 2 && text[end] == '\0' &&
        *node >= 0 && is_verb(verb, evict))
        return 0;
    return errmsg_set(err, -EINVAL, "load or evict, and perhaps node N, not '%.40s'", text);
}

static int write_wish(void *ctx, const char *text, struct errmsg *err)
{
    const struct entry *e = ctx;
    struct srs_look look;
    bool evict;
    int node;

    int ret = parse(text, &evict, &node, err);
    if (ret == 0 && !evict)
        ret = params_watch_look(e->all->watch, e->size, &look, err);
    return ret < 0 ? ret : sched_wish(e->all->sched, e->size, node, evict, err);
}

/* ---- making them ---- */

int params_files_create(struct sched *sched, size_t engines, struct params_watch *watch,
                        struct params_files **out)
{
    struct params_files *f = calloc(1, sizeof(*f));

    if (!f)
        return -ENOMEM;
    f->sched = sched;
    f->engines = engines;
    f->watch = watch;
    for (; sector_sizes[f->len].name; f->len++) {
        struct entry *e = &f->entries[f->len];
        *e = (struct entry){.all = f, .size = &sector_sizes[f->len]};
        snprintf(e->path, sizeof(e->path), "params/%s", e->size->name);
        f->files[f->len] = (struct params_file){e->path, is_present, render, write_wish, e};
    }
    *out = f;
    return 0;
}

void params_files_destroy(struct params_files *f)
{
    free(f);
}

const struct params_file *params_files_list(const struct params_files *f, size_t *len)
{
    *len = f->len;
    return f->files;
}
