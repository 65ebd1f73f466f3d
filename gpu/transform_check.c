/*
 * e and w are made anew from the seed wherever they are wanted, so that nothing is kept but one sum.
 */
#include "gpu/transform_check.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/random.h>

#include "gpu/backend.h"
#include "gpu/cpu/fr_vectors.h"
#include "gpu/domain.h"
#include "numa/memory.h"

#define CHUNK ((size_t)1 << 14)

struct sums {
    uint64_t seed;
    const struct circuit *c;
    struct backend *be;
    size_t m;
    fr_t *x, *y; /* room for as many as the domain or the variables */
    /* What a loop fills, and from which number on. */
    fr_t *out;
    size_t len;
    uint64_t from;
};

/* Number `index` of the choice: e, and after its 2^log2_domain the variables, inputs first. 64 bits (splitmix64, public domain). */
static fr_t chosen(uint64_t seed, uint64_t index)
{
    uint64_t z = seed + (index + 1) * UINT64_C(0x9e3779b97f4a7c15);

    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return fr_from_u64(z ^ z >> 31);
}

static void choose_chunk(void *ctx, size_t chunk, unsigned thread)
{
    const struct sums *s = ctx;
    const size_t end = min_size(s->len, (chunk + 1) * CHUNK);

    (void)thread;
    for (size_t i = chunk * CHUNK; i < end; i++)
        s->out[i] = chosen(s->seed, s->from + i);
}

static void choose(struct sums *s, fr_t *out, size_t len, uint64_t from)
{
    s->out = out;
    s->len = len;
    s->from = from;
    workers_run(s->be->workers, (len + CHUNK - 1) / CHUNK, choose_chunk, s);
}

/* An instance's rows of C times w. */
static void evaluate_instance(void *ctx, size_t item, unsigned thread)
{
    const struct sums *s = ctx;
    const struct circuit_instance *in = &s->c->instances[item];
    const struct circuit_template *part = &s->c->templates[in->template_index];
    const struct circuit_side *side = &s->c->sides[CIRCUIT_C];
    const struct circuit_base *bases = &s->c->bases[in->first_base];

    (void)thread;
    for (uint32_t r = 0; r < part->n_rows; r++) {
        fr_t sum = {0}, term;
        for (uint32_t i = side->first[part->first_row + r];
             i < side->first[part->first_row + r + 1]; i++) {
            term = chosen(s->seed, s->m + circuit_variable(s->c, bases, side->terms[i].var));
            fr_mul(&term, &term, &s->c->coeffs[side->terms[i].coeff]);
            fr_add(&sum, &sum, &term);
        }
        s->y[in->row + r] = sum;
    }
}

/* The scalars of h in place of s->x: (D - C) / (g^m - 1). */
static int choose_h(struct sums *s, struct errmsg *err)
{
    fr_t factor = domain_coset_shift(), one = fr_from_u64(1);

    memset(s->y, 0, s->m * sizeof(*s->y));
    workers_run(s->be->workers, s->c->n_instances, evaluate_instance, s);
    choose(s, s->x, s->m, 0);
    int ret = s->be->ops->ntt(s->be, s->x, s->c->log2_domain, NTT_COSET_INVERSE, err);
    if (ret == 0)
        ret = s->be->ops->ntt(s->be, s->y, s->c->log2_domain, NTT_INVERSE, err);
    factor = fr_power(&factor, s->m);
    fr_sub(&factor, &factor, &one);
    fr_inverse(&factor, &factor);
    fr_vectors_subtract_scale(s->x, s->x, s->y, s->m, &factor);
    return ret;
}

/* *sum += the sum of scalars times points */
static int add_sum(struct sums *s, g1_t *sum, const g1_affine_t *points, const fr_t *scalars,
                   size_t len, struct errmsg *err)
{
    g1_t part;
    int ret = s->be->ops->msm_g1(s->be, &part, points, scalars, len, err);

    if (ret == 0)
        blst_p1_add_or_double(sum, sum, &part);
    return ret;
}

/* *sum += what w asks of the points of variables that begin with number `first`. */
static int add_variables(struct sums *s, g1_t *sum, const g1_affine_t *points, size_t first,
                         size_t len, struct errmsg *err)
{
    choose(s, s->x, len, s->m + first);
    return add_sum(s, sum, points, s->x, len, err);
}

static void sums_fini(struct sums *s)
{
    free(s->x);
    free(s->y);
    backend_destroy(s->be);
}

static int sums_init(struct sums *s, uint64_t seed, const struct circuit *c,
                     struct workers *workers, struct errmsg *err)
{
    const size_t m = (size_t)1 << c->log2_domain, room = m > c->n_aux ? m : c->n_aux;

    *s = (struct sums){.seed = seed, .c = c, .m = m};
    int ret = backend_cpu_create(workers, &s->be, err);
    if (ret < 0)
        return ret;
    s->x = memory_alloc(room, sizeof(*s->x));
    s->y = memory_alloc(room, sizeof(*s->y));
    ret = s->x && s->y ? backend_reserve(s->be, s->be->ops->msm_scratch_bytes(s->be, room), err)
                       : errmsg_set(err, -ENOMEM, "no memory to check %zu points", room);
    if (ret < 0)
        sums_fini(s);
    return ret;
}

int transform_check_begin(struct transform_check *k, const struct srs *srs,
                          const struct circuit *circuit, struct workers *workers,
                          struct errmsg *err)
{
    struct sums s;

    memset(k, 0, sizeof(*k));
    if (getrandom(&k->seed, sizeof(k->seed), 0) != sizeof(k->seed))
        return errmsg_set(err, -EIO, "the kernel gives no random numbers");
    int ret = sums_init(&s, k->seed, circuit, workers, err);
    if (ret < 0)
        return ret;
    ret = choose_h(&s, err);
    if (ret == 0)
        ret = add_sum(&s, &k->sum, srs->h, s.x, srs->h_len, err);
    if (ret == 0)
        ret = add_variables(&s, &k->sum, srs->l, circuit->n_inputs, srs->l_len, err);
    sums_fini(&s);
    return ret;
}

int transform_check_end(const struct transform_check *k, const struct srs *srs,
                        const struct circuit *circuit, struct workers *workers, struct errmsg *err)
{
    g1_t sum;
    struct sums s;
    int ret = sums_init(&s, k->seed, circuit, workers, err);

    if (ret < 0)
        return ret;
    memset(&sum, 0, sizeof(sum));
    choose(&s, s.x, s.m, 0);
    ret = add_sum(&s, &sum, srs->h, s.x, s.m, err);
    if (ret == 0)
        ret = add_variables(&s, &sum, srs->l, circuit->n_inputs, srs->l_len, err);
    if (ret == 0)
        ret = add_variables(&s, &sum, srs->input_l, 0, circuit->n_inputs, err);
    if (ret == 0 && !blst_p1_is_equal(&sum, &k->sum))
        ret = errmsg_set(err, -EBADMSG,
                         "%s: transformed points came out wrong: memory, of a device or of this "
                         "machine, is faulty",
                         srs->path);
    sums_fini(&s);
    return ret;
}
