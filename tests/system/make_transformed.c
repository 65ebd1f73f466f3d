/*
 * Makes the file of transformed points of development parameters: make_transformed SIZE DIR. What takes a CPU hours is
 * done by logarithms, which everybody knows of these parameters: h has the scalars tau^k (tau^m - 1) / delta, so a transform of them is a
 * geometric sum, in closed form. The fold and the file are those of proofctl transform.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpu/cpu/fixed_base.h"
#include "gpu/domain.h"
#include "gpu/secrets.h"
#include "gpu/transformed.h"
#include "numa/circuit/circuit.h"

static struct errmsg err;

static void need(int ret)
{
    if (ret == 0)
        return;
    fprintf(stderr, "make_transformed: %s (%s)\n", err.text, strerror(-ret));
    exit(1);
}

#define CHUNK 4096

struct logs {
    uint32_t log2_len;
    fr_t tau, scale; /* factor (tau^m - 1) / delta */
    const fr_t *shift;
    fr_t *out;
};

/* scale * sum over k < m - 1 of (tau x)^k = scale ((tau x)^(m-1) - 1) / (tau x - 1), x = shift w^-j; the last point of h is infinity. */
static void logs_chunk(void *ctx, size_t item, unsigned thread)
{
    const struct logs *l = ctx;
    const size_t m = (size_t)1 << l->log2_len, first = item * CHUNK;
    fr_t root = domain_root(l->log2_len), one = fr_from_u64(1), x, power, below;

    (void)thread;
    fr_inverse(&root, &root);
    x = fr_power(&root, first);
    fr_mul(&x, &x, l->shift);
    fr_mul(&x, &x, &l->tau);
    for (size_t j = first; j < min_size(m, first + CHUNK); j++) {
        power = fr_power(&x, m - 1);
        fr_sub(&power, &power, &one);
        fr_sub(&below, &x, &one);
        fr_inverse(&below, &below);
        fr_mul(&power, &power, &below);
        fr_mul(&l->out[j], &power, &l->scale);
        fr_mul(&x, &x, &root);
    }
}

static int transform_by_logs(struct backend *be, g1_affine_t *points, uint32_t log2_len,
                             const fr_t *shift, const fr_t *factor, backend_progress progress,
                             void *progress_ctx, struct errmsg *why)
{
    const struct secrets secrets = secrets_from_labels();
    const size_t m = (size_t)1 << log2_len;
    struct fixed_base *table = NULL;
    struct logs l = {.log2_len = log2_len, .tau = secrets.tau, .shift = shift};
    fr_t one = fr_from_u64(1), delta = secrets.delta;

    (void)progress, (void)progress_ctx;
    l.scale = fr_power(&secrets.tau, m);
    fr_sub(&l.scale, &l.scale, &one);
    fr_inverse(&delta, &delta);
    fr_mul(&l.scale, &l.scale, &delta);
    fr_mul(&l.scale, &l.scale, factor);
    l.out = malloc(m * sizeof(*l.out));
    if (!l.out)
        abort();
    workers_run(be->workers, (m + CHUNK - 1) / CHUNK, logs_chunk, &l);
    int ret = fixed_base_g1_create(blst_p1_affine_generator(), FIXED_BASE_G1_BITS, be->workers,
                                   &table, why);
    if (ret == 0)
        ret = fixed_base_g1_mul(table, be->workers, l.out, m, points, why);
    fixed_base_destroy(table);
    free(l.out);
    return ret;
}

int main(int argc, char **argv)
{
    const struct sector_size *size = argc == 3 ? sector_size_by_name(argv[1]) : NULL;
    const struct backend_ops ops = {.name = "logarithms", .transform_points = transform_by_logs};
    const struct circuit *circuit = NULL;
    struct workers *workers = NULL;
    struct srs *srs = NULL;

    if (!size) {
        fprintf(stderr, "usage: make_transformed SIZE DIR\n");
        return 2;
    }
    need(workers_create(0, &workers, &err));
    struct backend be = {.ops = &ops, .workers = workers};
    need(srs_open(size, &(struct srs_options){.dir = argv[2], .workers = workers, .plain = true},
                  &srs, &err));
    need(circuit_of_size(size, &circuit, &err));
    need(transformed_make(srs, circuit, &(struct transformed_options){.backend = &be}, &err));
    srs_close(srs);
    workers_destroy(workers);
    return 0;
}
