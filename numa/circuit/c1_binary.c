#include "numa/circuit/c1_binary.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#define HEADER_BYTES 8 /* what the API form has before the inner form: proof id, size variant */
#define SIZE_VARIANTS 5 /* proof ids go through the sizes in turn */
#define TAG_BYTES 4    /* what the third form has before the API form: zero */
#define FIRST_PATH_LEN 84 /* in the inner form: the length of the first path, which is the depth of tree D */

/* --------------------------------------------------------------------------------- which form is it */

static bool is_api_form(const uint8_t *p)
{
    uint32_t id = load_le32(p), variant = load_le32(p + 4);

    return seal_proof_by_id(id) && variant == id % SIZE_VARIANTS;
}

/* Partitions and challenges that occur together in some size. */
static bool is_inner_form(const uint8_t *p)
{
    uint64_t partitions = load_le64(p), challenges = load_le64(p + 8);

    for (const struct sector_size *size = sector_sizes; size->name; size++)
        if (challenges == size->challenges &&
            (partitions == size->partitions || partitions == size->ni_partitions))
            return true;
    return false;
}

static int start_inner(struct c1_binary *b, struct errmsg *err)
{
    uint64_t partitions = load_le64(b->prefix), depth = load_le64(b->prefix + FIRST_PATH_LEN);

    for (const struct sector_size *size = sector_sizes; size->name; size++) {
        if (size->log2_nodes != depth || !sector_variant_name(size))
            continue;
        if (partitions == size->ni_partitions)
            return errmsg_set(err, -EINVAL,
                              "%" PRIu64 " partitions: non-interactive proofs are not supported by this "
                              "version",
                              partitions);
        b->build->proof_unsaid = true;
        b->at = HEADER_BYTES;
        return c1_build_set_size(b->build, size, err);
    }
    return errmsg_set(err, -EBADMSG,
                      "comm_d_proofs: found a path of %" PRIu64 ", which is of no sector size (byte %d)",
                      depth, FIRST_PATH_LEN);
}

static int start_api(struct c1_binary *b, uint32_t id, struct errmsg *err)
{
    int ret = c1_build_set_proof(b->build, id, err);

    return ret < 0 ? errmsg_prefix(err, ret, "registered_proof")
                   : c1_build_set_size(b->build, b->build->proof->size, err);
}

static int decoded_bytes(struct c1_binary *b, const uint8_t *bytes, size_t len, struct errmsg *err);

/* The prefix is complete: finds out what it begins, and passes it on. */
static int start(struct c1_binary *b, struct errmsg *err)
{
    size_t skip = 0;
    int ret;

    if (is_inner_form(b->prefix)) {
        ret = start_inner(b, err);
    } else if (load_le32(b->prefix) == 0 && is_api_form(b->prefix + TAG_BYTES)) {
        b->has_trailer = true;
        skip = TAG_BYTES;
        ret = start_api(b, load_le32(b->prefix + TAG_BYTES), err);
    } else if (is_api_form(b->prefix)) {
        ret = start_api(b, load_le32(b->prefix), err);
    } else {
        ret = errmsg_set(err, -EBADMSG, "neither text nor a C1 in bincode: begins with %08" PRIx32 " %08" PRIx32,
                         load_be32(b->prefix), load_be32(b->prefix + 4));
    }
    return ret < 0 ? ret : decoded_bytes(b, b->prefix + skip, sizeof(b->prefix) - skip, err);
}

/* --------------------------------------------------------------------------------- what is in it */

static int count_check(const struct c1 *c1, size_t offset, uint64_t wanted, const char *what,
                       struct errmsg *err)
{
    uint64_t found = load_le64(c1->bytes + offset);

    if (found == wanted)
        return 0;
    return errmsg_set(err, -EBADMSG,
                      "vanilla_proofs: found %" PRIu64 " %s, wanted %" PRIu64 " (byte %zu of the decoded form)",
                      found, what, wanted, offset);
}

/* The form of vanilla proof `number`, and the counts that stand before it. */
static int proof_check(const struct c1 *c1, uint32_t number, struct errmsg *err)
{
    const struct c1_layout *l = &c1->layout;
    uint32_t challenges = l->size->challenges, partition = number / challenges;
    size_t offset = c1_layout_proof(l, partition, number % challenges);
    int ret = 0;

    if (number == 0)
        ret = count_check(c1, l->proofs_offset - 8, l->size->partitions, "partitions", err);
    if (ret == 0 && number % challenges == 0)
        ret = count_check(c1, offset - 8, challenges, "challenges in a partition", err);
    return ret < 0 ? ret : shape_check(l, &l->proof, c1->bytes, offset, err);
}

/* Looks at the vanilla proofs that are complete by now. */
static int proofs_check(struct c1_binary *b, struct errmsg *err)
{
    struct c1_build *build = b->build;
    const struct c1_layout *l = &build->c1->layout;
    uint32_t challenges = l->size->challenges;
    int ret = 0;

    while (ret == 0 && build->proofs_there < l->size->partitions * challenges) {
        uint32_t number = build->proofs_there;
        if (b->at < c1_layout_proof(l, number / challenges, number % challenges) + l->proof.bytes)
            break;
        ret = proof_check(build->c1, number, err);
        if (ret == 0)
            ret = c1_build_proof_there(build, err);
    }
    return ret;
}

static int trailer_bytes(struct c1_binary *b, const uint8_t *bytes, size_t len, struct errmsg *err)
{
    size_t room = b->has_trailer ? sizeof(b->trailer) - b->trailer_len : 0;

    if (len > room)
        return errmsg_set(err, -EBADMSG, "more follows where the C1 should end, after %zu bytes of it",
                          b->at);
    memcpy(b->trailer + b->trailer_len, bytes, len);
    b->trailer_len += len;
    return 0;
}

static int decoded_bytes(struct c1_binary *b, const uint8_t *bytes, size_t len, struct errmsg *err)
{
    struct c1 *c1 = b->build->c1;

    while (len > 0 && b->at < c1->len) {
        /* One vanilla proof at a time, so that a wrong one is refused before more is read. */
        size_t take = min_size(min_size(len, c1->len - b->at), c1->layout.proof.bytes);
        memcpy(c1->bytes + b->at, bytes, take);
        b->at += take;
        bytes += take;
        len -= take;
        int ret = proofs_check(b, err);
        if (ret < 0)
            return ret;
    }
    return trailer_bytes(b, bytes, len, err);
}

int c1_binary_feed(struct c1_binary *b, const uint8_t *bytes, size_t len, struct errmsg *err)
{
    size_t take = min_size(len, sizeof(b->prefix) - b->prefix_len);

    if (take > 0) {
        memcpy(b->prefix + b->prefix_len, bytes, take);
        b->prefix_len += take;
        if (b->prefix_len < sizeof(b->prefix))
            return 0;
        int ret = start(b, err);
        if (ret < 0)
            return ret;
    }
    return decoded_bytes(b, bytes + take, len - take, err);
}

int c1_binary_finish(struct c1_binary *b, struct errmsg *err)
{
    const struct c1 *c1 = b->build->c1;
    struct c1_extra *x = &b->build->extra;

    if (!c1)
        return errmsg_set(err, -EBADMSG, "ends after %zu bytes, too few for a C1", b->prefix_len);
    if (b->at < c1->len)
        return errmsg_set(err, -EBADMSG, "ends after %zu bytes of the decoded form, wanted %zu", b->at,
                          c1->len);
    for (size_t field = C1_COMM_R; field <= C1_TICKET; field++)
        memcpy(c1_build_global(b->build, field), c1->bytes + c1->layout.root.fields[field].offset, 32);
    if (!b->has_trailer)
        return 0;
    if (b->trailer_len < sizeof(b->trailer))
        return errmsg_set(err, -EBADMSG, "ends within the prover id and sector number after the C1");
    memcpy(x->prover_id, b->trailer, sizeof(x->prover_id));
    x->sector_number = load_le64(b->trailer + sizeof(x->prover_id));
    x->has_prover_id = x->has_sector_number = true;
    return 0;
}
