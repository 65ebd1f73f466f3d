/*
 * How fast a C1 of 32 GiB is read: decoded alone, and with every strict check, on one thread and on all.
 */
#include <stdio.h>
#include <stdlib.h>

#include "numa/circuit/c1_reader.h"
#include "tests/lib/bench.h"
#include "tests/lib/c1_forms.h"
#include "tests/lib/files.h"
#include "tests/lib/vectors.h"

#define CHUNK ((size_t)128 << 10) /* what the kernel hands to a file system at once, more or less */

struct reading {
    struct text text;
    enum c1_checks checks;
    bool all_threads;
};

static int read_all(void *ctx)
{
    const struct reading *w = ctx;
    struct workers *workers = NULL;
    struct c1_reader *r = NULL;
    struct c1 *c1 = NULL;
    struct c1_extra extra;
    struct errmsg err = {""};
    int ret = w->all_threads ? workers_create(0, &workers, &err) : 0;

    if (ret == 0)
        ret = c1_reader_create(w->checks, workers, &r);
    for (size_t at = 0; at < w->text.len && ret == 0; at += CHUNK)
        ret = c1_reader_feed(r, w->text.bytes + at, min_size(CHUNK, w->text.len - at), &err);
    if (ret == 0)
        ret = c1_reader_finish(r, &c1, &extra, &err);
    if (ret < 0)
        fprintf(stderr, "%s\n", err.text);
    c1_destroy(c1);
    c1_reader_destroy(r);
    workers_destroy(workers);
    return ret;
}

/* `limit_ms` is wanted of the decoding alone; 0: nothing is. */
static void measure(const char *form, struct text text, double limit_ms)
{
    char name[128];
    struct reading w = {text, C1_CHECK_FORM, false};

    snprintf(name, sizeof(name), "c1 32 GiB, %s, %.1f MB, decoded", form, (double)text.len / 1e6);
    bench_run(name, read_all, &w, limit_ms);
    w.checks = C1_CHECK_STRICT;
    snprintf(name, sizeof(name), "c1 32 GiB, %s, all checks, one thread", form);
    bench_run(name, read_all, &w, 1000);
    w.all_threads = true;
    snprintf(name, sizeof(name), "c1 32 GiB, %s, all checks, all threads", form);
    bench_run(name, read_all, &w, 1000);
}

int main(void)
{
    char path[VECTOR_PATH_MAX];
    struct text bare = {0}, wrapper = {0}, packed = {0};

    if (!vector_find(path, "c1/32GiB-sparse/bare.json.zst")) {
        printf("bench_c1 needs $PROOFD_SHARED with the 32 GiB vector\n");
        return 77;
    }
    bench_calibrate();
    bare.bytes = file_read(path, &bare.len);
    measure("bare JSON", bare, 150);
    write_wrapper(&bare, 12, UINT64_C(32) << 30, "f01012", &wrapper);
    measure("wrapper", wrapper, 0);
    write_zstd(bare.bytes, bare.len, &packed);
    measure("zstd", packed, 0);
    free(bare.bytes);
    free(wrapper.bytes);
    free(packed.bytes);
    return 0;
}
