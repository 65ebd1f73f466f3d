#include "numa/circuit/c1_build.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Vanilla proofs for each thread before a round of hashing: a proof of 32 GiB takes some milliseconds, so
 * no call of the reader is held up for long, and the threads seldom wait for each other. */
#define PROOFS_PER_THREAD 4

void c1_build_init(struct c1_build *b, enum c1_checks checks, struct workers *workers)
{
    *b = (struct c1_build){.checks = checks, .workers = workers};
}

void c1_build_fini(struct c1_build *b)
{
    c1_destroy(b->c1);
    c1_paths_destroy(b->paths);
}

static int size_mismatch(const struct c1_build *b, struct errmsg *err)
{
    return errmsg_set(err, -EBADMSG, "registered_proof is %s, but the vanilla proofs are of %s",
                      b->proof->name, sector_variant_name(c1_size(b->c1)));
}

int c1_build_set_size(struct c1_build *b, const struct sector_size *size, struct errmsg *err)
{
    int ret = c1_image_create(size, &b->c1, err);

    if (ret < 0)
        return ret;
    if (b->checks == C1_CHECK_STRICT && c1_paths_create(size, &b->paths) < 0)
        return errmsg_set(err, -ENOMEM, "no memory to check the paths");
    return b->proof && b->proof->size != size ? size_mismatch(b, err) : 0;
}

int c1_build_set_proof(struct c1_build *b, uint32_t id, struct errmsg *err)
{
    int ret = c1_proof_supported(id, &b->proof, err);

    if (ret < 0)
        return ret;
    return b->c1 && b->proof->size != c1_size(b->c1) ? size_mismatch(b, err) : 0;
}

uint8_t *c1_build_global(struct c1_build *b, size_t field)
{
    return b->globals[field - C1_COMM_R];
}

/* Follows the paths of the vanilla proofs that wait for it. */
static int paths_check(struct c1_build *b, struct errmsg *err)
{
    uint32_t waiting = b->proofs_there - b->proofs_checked;
    int ret = c1_check_paths(b->paths, b->c1, b->proofs_checked, waiting, b->workers, err);

    b->proofs_checked = b->proofs_there;
    if (ret < 0)
        b->described = true;
    return ret;
}

int c1_build_proof_there(struct c1_build *b, struct errmsg *err)
{
    b->proofs_there++;
    if (b->checks != C1_CHECK_STRICT)
        return 0;
    if (b->proofs_there - b->proofs_checked < PROOFS_PER_THREAD * workers_count(b->workers))
        return 0;
    return paths_check(b, err);
}

/* An inner form names no proof type: the vanilla proofs fit one graph and one way to derive challenges. */
static int find_proof(struct c1_build *b, struct errmsg *err)
{
    uint32_t first = 0; /* the id of V1 of this size */
    struct errmsg why[3];

    while (seal_proof_by_id(first)->size != c1_size(b->c1))
        first++;
    const uint32_t ids[3] = {first + 5, first, first + 10}; /* V1_1, V1, synthetic: most common first */
    for (size_t i = 0; i < ARRAY_LEN(ids); i++)
        if (c1_check_graph(b->c1, seal_proof_by_id(ids[i]), &why[i]) == 0)
            return c1_proof_supported(ids[i], &b->proof, err);
    return errmsg_set(err, -EBADMSG,
                      "no proof type is given, and none fits: as %s: %.160s; as %s: %.160s; as %s: %.160s",
                      seal_proof_by_id(ids[0])->name, why[0].text, seal_proof_by_id(ids[1])->name,
                      why[1].text, seal_proof_by_id(ids[2])->name, why[2].text);
}

static int extra_check(const struct c1_build *b, struct errmsg *err)
{
    const struct c1_extra *x = &b->extra;

    if (x->has_sector_size && x->sector_size != c1_size(b->c1)->bytes)
        return errmsg_set(err, -EBADMSG, "SectorSize: found %" PRIu64 ", wanted %" PRIu64 " for %s",
                          x->sector_size, c1_size(b->c1)->bytes, b->proof->name);
    if (b->checks == C1_CHECK_STRICT && x->has_sector_number && x->has_prover_id)
        return c1_check_replica_id(b->c1, x->prover_id, x->sector_number, err);
    return 0;
}

static int strict_checks(struct c1_build *b, struct errmsg *err)
{
    int ret = c1_check_roots(b->c1, err);

    if (ret == 0)
        ret = c1_check_graph(b->c1, b->proof, err);
    if (ret == 0)
        ret = c1_check_labels(b->c1, err);
    return ret < 0 ? ret : paths_check(b, err);
}

static int finish_checks(struct c1_build *b, struct errmsg *err)
{
    int ret = c1_image_check_globals(b->c1, err);

    if (ret == 0 && b->proof_unsaid)
        ret = find_proof(b, err);
    if (ret < 0)
        return ret;
    c1_image_set_proof(b->c1, b->proof);
    ret = extra_check(b, err);
    if (ret == 0 && b->checks == C1_CHECK_STRICT)
        ret = strict_checks(b, err);
    return ret;
}

int c1_build_finish(struct c1_build *b, struct c1 **out, struct errmsg *err)
{
    for (size_t field = C1_COMM_R; field <= C1_TICKET; field++)
        memcpy(b->c1->bytes + b->c1->layout.root.fields[field].offset, c1_build_global(b, field), 32);
    int ret = finish_checks(b, err);
    if (ret < 0)
        return ret;
    *out = b->c1;
    b->c1 = NULL;
    return 0;
}
