/*
 * The message is put together whole, 39 * 256 bits, and hashed.
 */
#include "numa/circuit/label.h"

#include "numa/circuit/sha256.h"

static struct boolean *append(struct boolean *at, const struct boolean *bits, size_t len)
{
    memcpy(at, bits, len * sizeof(*bits));
    return at + len;
}

void label_head(const struct label_bits *replica_id, uint32_t layer,
                const struct boolean node[LABEL_NODE_BITS], struct boolean head[LABEL_HEAD_BITS])
{
    struct boolean *at = append(head, replica_id->bit, NUM_BYTE_BITS);

    for (int i = 31; i >= 0; i--)
        *at++ = boolean_const(layer >> i & 1);
    for (int i = LABEL_NODE_BITS - 1; i >= 0; i--)
        *at++ = node[i];
    while (at < head + LABEL_HEAD_BITS)
        *at++ = boolean_const(false);
}

struct num label_create(struct cs *cs, const struct label_bits *replica_id, uint32_t layer,
                        const struct boolean node[LABEL_NODE_BITS],
                        const struct label_bits *parents, uint32_t n_parents)
{
    struct boolean message[LABEL_BITS], digest[SHA256_DIGEST_BITS];
    struct boolean *at = message + LABEL_HEAD_BITS;

    label_head(replica_id, layer, node, message);
    for (uint32_t i = 0; i < LABEL_PARENTS; i++)
        at = append(at, parents[i % n_parents].bit, NUM_BYTE_BITS);
    sha256_bits(cs, message, ARRAY_LEN(message), digest);
    return num_from_byte_bits(cs, digest);
}
