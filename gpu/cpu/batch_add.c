/*
 * Two passes over a batch around one inversion. The body is written once, in batch_add_impl.h, over names of the
 * coordinate field, and compiled for both groups: the same steps, and no call through a pointer inside them.
 */
#include "gpu/cpu/batch_add.h"

#include "gpu/cpu/batch_add_avx2.h"
#include "gpu/cpu/features.h"

enum step {
    STEP_CHORD,   /* two points with different x */
    STEP_TANGENT, /* twice the same point */
    STEP_DONE,    /* the sum is written: it needed no division */
};

static inline bool fp_is_zero(const fp_t *a)
{
    return (a->l[0] | a->l[1] | a->l[2] | a->l[3] | a->l[4] | a->l[5]) == 0;
}

static inline bool fp2_is_zero(const fp2_t *a)
{
    return fp_is_zero(&a->fp[0]) && fp_is_zero(&a->fp[1]);
}

static fp_t fp_one(void)
{
    static const uint64_t one[6] = {1};
    fp_t out;

    blst_fp_from_uint64(&out, one);
    return out;
}

static fp2_t fp2_one(void)
{
    fp2_t out = {.fp = {fp_one()}};

    return out;
}

/* What follows piece [at, at + n) of pairs: more of them, or what the caller said comes next. */
static struct add_pairs_next following(const struct add_pair *pairs, size_t len, size_t end,
                                       const struct add_pair *next, size_t next_len, size_t max)
{
    if (end < len)
        return (struct add_pairs_next){pairs + end, min_size(max, len - end)};
    return (struct add_pairs_next){next, min_size(max, next_len)};
}

#define GROUP g1
#define FIELD fp
#define BATCH BATCH_ADD_LEN_G1
#include "gpu/cpu/batch_add_impl.h"

#define GROUP g2
#define FIELD fp2
#define BATCH BATCH_ADD_LEN_G2
#include "gpu/cpu/batch_add_impl.h"
