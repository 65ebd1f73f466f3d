/*
 * The same two passes as in batch_add_impl.h, with a running product in each of four lanes; the lanes' products share the
 * inversion. Points are read and written in blst's form, so that nobody else needs to know.
 */
#include "gpu/cpu/batch_add_avx2.h"

#if defined(__x86_64__)

#include "gpu/cpu/fp2x4.h"

enum side { SIDE_A, SIDE_B };

static void *aligned_bytes(struct batch_scratch *scratch)
{
    return scratch->bytes + (-(uintptr_t)scratch->bytes & 63);
}

#define GROUP g1
#define FIELD fp
#define LANES fp4
#include "gpu/cpu/batch_add_avx2_impl.h"

#define GROUP g2
#define FIELD fp2
#define LANES fp2x4
#include "gpu/cpu/batch_add_avx2_impl.h"

_Static_assert(sizeof(struct g1_quad) * (BATCH_ADD_LEN_G1 / 4) + 64 <= BATCH_SCRATCH_BYTES &&
                   sizeof(struct g2_quad) * (BATCH_ADD_LEN_G2 / 4) + 64 <= BATCH_SCRATCH_BYTES,
               "the scratch of a batch is too small");

#else

void g1_add_chords_avx2(const struct add_pair *const *pairs, size_t len,
                        const struct add_pairs_next *next, struct batch_scratch *scratch)
{
    (void)pairs;
    (void)len;
    (void)next;
    (void)scratch;
}

void g2_add_chords_avx2(const struct add_pair *const *pairs, size_t len,
                        const struct add_pairs_next *next, struct batch_scratch *scratch)
{
    (void)pairs;
    (void)len;
    (void)next;
    (void)scratch;
}

#endif
