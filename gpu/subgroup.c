/*
 * Each thread has buckets of its own, added up at the end. The additions share inversions (batch_add.h), which
 * takes pairs with different sums: a point whose bucket is already in the batch waits for a later one.
 *
 * The random choice is AES in counter mode over the number of the piece, two bytes for each point and round.
 */
#include "gpu/subgroup.h"

#include <errno.h>
#include <openssl/evp.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/random.h>

#define BATCH BATCH_ADD_LEN_G1
#define CHECK_STEP 256 /* sums that a worker checks at a time */

_Static_assert(SUBGROUP_PIECE % BATCH == 0, "a piece is a whole number of batches");

struct adder {
    char *sums; /* SUBGROUP_ROUNDS * SUBGROUP_BUCKETS affine points; NULL until the thread adds its first */
    uint32_t stamp;
    uint32_t busy[SUBGROUP_BUCKETS]; /* the stamp of the batch that the bucket is in */
    uint16_t choice[SUBGROUP_ROUNDS][SUBGROUP_PIECE];
    uint32_t postponed[SUBGROUP_PIECE];
    /* One batch is filled while the one before, if any, waits and will know what comes next. */
    struct add_pair pairs[2][BATCH];
    unsigned filling;
    size_t len, waiting_len;
    struct batch_scratch scratch;
};

struct subgroup_check {
    const struct group *group;
    uint8_t key[16];
    atomic_bool broken; /* no memory or no random choice on the way */
    unsigned threads;
    struct adder *adders[]; /* threads; made when first used */
};

int subgroup_check_create(const struct group *group, unsigned threads, struct subgroup_check **out,
                          struct errmsg *err)
{
    /* NOLINTNEXTLINE(bugprone-sizeof-expression): an array of pointers */
    struct subgroup_check *c = calloc(1, sizeof(*c) + threads * sizeof(c->adders[0]));

    if (!c)
        return errmsg_set(err, -ENOMEM, "subgroup check: no memory");
    c->group = group;
    c->threads = threads;
    if (getrandom(c->key, sizeof(c->key), 0) != sizeof(c->key)) {
        free(c);
        return errmsg_set(err, -EIO, "subgroup check: the kernel gives no random bytes");
    }
    *out = c;
    return 0;
}

void subgroup_check_destroy(struct subgroup_check *c)
{
    if (!c)
        return;
    for (unsigned i = 0; i < c->threads; i++) {
        if (c->adders[i])
            free(c->adders[i]->sums);
        free(c->adders[i]);
    }
    free(c);
}

/* The thread's buckets, all infinity at first; NULL without memory. */
static struct adder *adder_of(struct subgroup_check *c, unsigned thread)
{
    if (c->adders[thread])
        return c->adders[thread];
    struct adder *a = calloc(1, sizeof(*a));
    if (!a)
        return NULL;
    a->stamp = 1; /* 0 is in `busy` from the start */
    a->sums = calloc((size_t)SUBGROUP_ROUNDS * SUBGROUP_BUCKETS, c->group->affine_bytes);
    if (!a->sums) {
        free(a);
        return NULL;
    }
    c->adders[thread] = a;
    return a;
}

/* The buckets of all points of a piece, in all rounds. */
static bool choose(const struct subgroup_check *c, uint64_t piece,
                   uint16_t choice[SUBGROUP_ROUNDS][SUBGROUP_PIECE])
{
    static const uint8_t zeros[sizeof(uint16_t) * SUBGROUP_ROUNDS * SUBGROUP_PIECE];
    EVP_CIPHER_CTX *cipher = EVP_CIPHER_CTX_new();
    uint8_t counter[16] = {0};
    int len = 0;

    store_be64(counter, piece); /* the lower half counts blocks */
    bool ok = cipher && EVP_EncryptInit_ex(cipher, EVP_aes_128_ctr(), NULL, c->key, counter) == 1 &&
              EVP_EncryptUpdate(cipher, (uint8_t *)choice, &len, zeros, sizeof(zeros)) == 1 &&
              len == (int)sizeof(zeros);
    EVP_CIPHER_CTX_free(cipher);
    return ok;
}

static char *sum_at(const struct subgroup_check *c, const struct adder *a, unsigned round,
                    uint32_t bucket)
{
    return group_at(c->group, a->sums, (size_t)round * SUBGROUP_BUCKETS + bucket);
}

/* The batch that was filled waits, and the one that waited is added. */
static void next_batch(const struct subgroup_check *c, struct adder *a)
{
    const struct add_pair *waiting = a->pairs[!a->filling], *filled = a->pairs[a->filling];

    c->group->add_pairs_ahead(waiting, a->waiting_len, filled, a->len, &a->scratch);
    a->waiting_len = a->len;
    a->filling = !a->filling;
    a->len = 0;
    a->stamp++; /* no bucket is in the new one */
}

/* Puts one point into its bucket; false when the bucket is in the batch already. */
static bool put_point(const struct subgroup_check *c, struct adder *a, unsigned round,
                      uint32_t bucket, const void *point)
{
    void *sum = sum_at(c, a, round, bucket);

    if (a->busy[bucket] == a->stamp)
        return false;
    a->busy[bucket] = a->stamp;
    a->pairs[a->filling][a->len++] = (struct add_pair){.a = sum, .b = point, .out = sum};
    if (a->len == BATCH)
        next_batch(c, a);
    return true;
}

/* One round over a piece: all points, then those that were postponed, until none is. */
static void add_round(const struct subgroup_check *c, struct adder *a, unsigned round,
                      const void *points, size_t len)
{
    for (size_t i = 0; i < len; i++)
        a->postponed[i] = (uint32_t)i;
    while (len > 0) {
        size_t left = 0;
        for (size_t i = 0; i < len; i++) {
            uint32_t at = a->postponed[i], bucket = a->choice[round][at] % SUBGROUP_BUCKETS;
            if (!put_point(c, a, round, bucket, group_at(c->group, points, at)))
                a->postponed[left++] = at;
        }
        next_batch(c, a);
        len = left;
    }
    next_batch(c, a); /* the last one waited */
}

void subgroup_check_add(struct subgroup_check *c, uint64_t piece, const void *points, size_t len,
                        unsigned thread)
{
    struct adder *a = adder_of(c, thread);

    if (!a || !choose(c, piece, a->choice)) {
        atomic_store(&c->broken, true);
        return;
    }
    for (unsigned round = 0; round < SUBGROUP_ROUNDS; round++)
        add_round(c, a, round, points, len);
}

/* Adds the sums of `from` to those of `to`. */
static void merge(const struct subgroup_check *c, struct adder *to, const struct adder *from)
{
    size_t total = (size_t)SUBGROUP_ROUNDS * SUBGROUP_BUCKETS;

    for (size_t first = 0; first < total; first += BATCH) {
        for (size_t i = 0; i < BATCH; i++) {
            void *sum = group_at(c->group, to->sums, first + i);
            const void *other = group_at(c->group, from->sums, first + i);
            to->pairs[0][i] = (struct add_pair){.a = sum, .b = other, .out = sum};
        }
        c->group->add_pairs(to->pairs[0], BATCH, &to->scratch);
    }
}

static bool in_subgroup(const struct group *group, const void *point)
{
    if (group == &group_g2)
        return g2_affine_is_infinity(point) || blst_p2_affine_in_g2(point);
    return g1_affine_is_infinity(point) || blst_p1_affine_in_g1(point);
}

struct sums_check {
    const struct subgroup_check *check;
    const struct adder *sums;
    atomic_size_t bad; /* the first one known, SIZE_MAX: none */
};

static void check_sums(void *ctx, size_t item, unsigned thread)
{
    struct sums_check *s = ctx;

    (void)thread;
    for (size_t i = item * CHECK_STEP; i < (item + 1) * CHECK_STEP; i++) {
        size_t known = atomic_load(&s->bad);
        if (known < i)
            return;
        if (in_subgroup(s->check->group, group_at(s->check->group, s->sums->sums, i)))
            continue;
        while (i < known && !atomic_compare_exchange_weak(&s->bad, &known, i)) {
        }
        return;
    }
}

int subgroup_check_finish(struct subgroup_check *c, struct workers *workers, bool *good,
                          struct subgroup_fault *fault, struct errmsg *err)
{
    struct adder *all = adder_of(c, 0);
    struct sums_check s = {.check = c, .sums = all, .bad = SIZE_MAX};
    size_t total = (size_t)SUBGROUP_ROUNDS * SUBGROUP_BUCKETS;

    if (!all || atomic_load(&c->broken))
        return errmsg_set(err, -EIO, "subgroup check: no memory or no random choice");
    for (unsigned i = 1; i < c->threads; i++)
        if (c->adders[i])
            merge(c, all, c->adders[i]);
    workers_run(workers, total / CHECK_STEP, check_sums, &s);
    size_t bad = atomic_load(&s.bad);
    *good = bad == SIZE_MAX;
    if (!*good)
        *fault = (struct subgroup_fault){.round = (unsigned)(bad / SUBGROUP_BUCKETS),
                                         .bucket = (uint32_t)(bad % SUBGROUP_BUCKETS)};
    return 0;
}

size_t subgroup_check_find(const struct subgroup_check *c, const struct subgroup_fault *fault,
                           uint64_t piece, const void *points, size_t len)
{
    uint16_t(*choice)[SUBGROUP_PIECE] = malloc(SUBGROUP_ROUNDS * sizeof(*choice));
    size_t found = len;

    if (choice && choose(c, piece, choice))
        for (size_t i = 0; i < len && found == len; i++)
            if (choice[fault->round][i] % SUBGROUP_BUCKETS == fault->bucket &&
                !in_subgroup(c->group, group_at(c->group, points, i)))
                found = i;
    free(choice);
    return found;
}
