/*
 * Two tables, kept in the layout of the specification so that they can be compared by eye, and
 * arithmetic over them. Nothing is derived that the specification lists: a slip in a formula and a slip
 * in a table differ, and the tests compare the two.
 */
#include "numa/circuit/sector.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <openssl/sha.h>

#include "numa/base.h"

/* What is published of a size beside its shape (porep-circuit 2.3). */
struct published {
    const char *variant; /* key of `vanilla_proofs` */
    const char *params_digest, *vk_digest;
};

enum size_index {
    SIZE_2KIB,
    SIZE_4KIB,
    SIZE_16KIB,
    SIZE_32KIB,
    SIZE_8MIB,
    SIZE_16MIB,
    SIZE_512MIB,
    SIZE_1GIB,
    SIZE_32GIB,
    SIZE_64GIB,
    SIZES
};

#define SIZE(log2, name_, layers_, levels, sub, top, partitions_, challenges_, ni)              \
    {                                                                                           \
        .name = (name_), .bytes = UINT64_C(32) << (log2), .nodes = UINT64_C(1) << (log2),       \
        .log2_nodes = (log2), .layers = (layers_), .base_levels = (levels), .sub_arity = (sub), \
        .top_arity = (top), .partitions = (partitions_), .challenges = (challenges_),           \
        .ni_partitions = (ni), .base_arity = 8,                                                 \
    }

/* porep-circuit 2.1 */
const struct sector_size sector_sizes[] = {
    [SIZE_2KIB] = SIZE(6, "2KiB", 2, 2, 0, 0, 1, 2, 13),
    [SIZE_4KIB] = SIZE(7, "4KiB", 2, 2, 2, 0, 1, 2, 13),
    [SIZE_16KIB] = SIZE(9, "16KiB", 2, 2, 8, 0, 1, 2, 13),
    [SIZE_32KIB] = SIZE(10, "32KiB", 2, 2, 8, 2, 1, 2, 13),
    [SIZE_8MIB] = SIZE(18, "8MiB", 2, 6, 0, 0, 1, 2, 13),
    [SIZE_16MIB] = SIZE(19, "16MiB", 2, 6, 2, 0, 1, 2, 13),
    [SIZE_512MIB] = SIZE(24, "512MiB", 2, 8, 0, 0, 1, 2, 13),
    [SIZE_1GIB] = SIZE(25, "1GiB", 2, 8, 2, 0, 1, 2, 13),
    [SIZE_32GIB] = SIZE(30, "32GiB", 11, 9, 8, 0, 10, 18, 126),
    [SIZE_64GIB] = SIZE(31, "64GiB", 11, 9, 8, 2, 10, 18, 126),
    [SIZES] = {.name = NULL},
};

static const struct published published[SIZES] = {
    [SIZE_2KIB] = {"StackedDrg2KiBV1", "434fb1338ecfaf0f59256f30dde4968f",
                   "dc1ade9929ade1708238f155343044ac"},
    [SIZE_8MIB] = {"StackedDrg8MiBV1", "09e612e4eeb7a0eb95679a88404f960c",
                   "b687beb9adbd9dabe265a7e3620813e4"},
    [SIZE_512MIB] = {"StackedDrg512MiBV1", "6c77597eb91ab936c1cef4cf19eba1b3",
                     "065179da19fbe515507267677f02823e"},
    [SIZE_32GIB] = {"StackedDrg32GiBV1", "6a388072a518cf46ebd661f5cc46900a",
                    "0c7b4aac1c40fdb7eb82bc355b41addf"},
    [SIZE_64GIB] = {"StackedDrg64GiBV1", "1801f8a6e1b00bceb00cc27314bb5ce3",
                    "a89884252c04c298d0b3c81bfd884164"},
};

#define PROOF(id_, size_, suffix, api_, kind_) \
    [id_] = {                                  \
        .id = (id_),                           \
        .name = "StackedDrg" #size_ suffix,    \
        .size = &sector_sizes[SIZE_##size_],   \
        .api = (api_),                         \
        .kind = (kind_),                       \
    }
/* The names in the table of proofs are spelled as the proofs spell them. */
#define SIZE_2KiB SIZE_2KIB
#define SIZE_8MiB SIZE_8MIB
#define SIZE_512MiB SIZE_512MIB
#define SIZE_32GiB SIZE_32GIB
#define SIZE_64GiB SIZE_64GIB

/* porep-circuit 2.2 */
static const struct seal_proof seal_proofs[SEAL_PROOFS] = {
    PROOF(0, 2KiB, "V1", API_1_0, CHALLENGE_INTERACTIVE),
    PROOF(1, 8MiB, "V1", API_1_0, CHALLENGE_INTERACTIVE),
    PROOF(2, 512MiB, "V1", API_1_0, CHALLENGE_INTERACTIVE),
    PROOF(3, 32GiB, "V1", API_1_0, CHALLENGE_INTERACTIVE),
    PROOF(4, 64GiB, "V1", API_1_0, CHALLENGE_INTERACTIVE),
    PROOF(5, 2KiB, "V1_1", API_1_1, CHALLENGE_INTERACTIVE),
    PROOF(6, 8MiB, "V1_1", API_1_1, CHALLENGE_INTERACTIVE),
    PROOF(7, 512MiB, "V1_1", API_1_1, CHALLENGE_INTERACTIVE),
    PROOF(8, 32GiB, "V1_1", API_1_1, CHALLENGE_INTERACTIVE),
    PROOF(9, 64GiB, "V1_1", API_1_1, CHALLENGE_INTERACTIVE),
    PROOF(10, 2KiB, "V1_1_Feat_SyntheticPoRep", API_1_2, CHALLENGE_SYNTHETIC),
    PROOF(11, 8MiB, "V1_1_Feat_SyntheticPoRep", API_1_2, CHALLENGE_SYNTHETIC),
    PROOF(12, 512MiB, "V1_1_Feat_SyntheticPoRep", API_1_2, CHALLENGE_SYNTHETIC),
    PROOF(13, 32GiB, "V1_1_Feat_SyntheticPoRep", API_1_2, CHALLENGE_SYNTHETIC),
    PROOF(14, 64GiB, "V1_1_Feat_SyntheticPoRep", API_1_2, CHALLENGE_SYNTHETIC),
    PROOF(15, 2KiB, "V1_2_Feat_NonInteractivePoRep", API_1_2, CHALLENGE_NON_INTERACTIVE),
    PROOF(16, 8MiB, "V1_2_Feat_NonInteractivePoRep", API_1_2, CHALLENGE_NON_INTERACTIVE),
    PROOF(17, 512MiB, "V1_2_Feat_NonInteractivePoRep", API_1_2, CHALLENGE_NON_INTERACTIVE),
    PROOF(18, 32GiB, "V1_2_Feat_NonInteractivePoRep", API_1_2, CHALLENGE_NON_INTERACTIVE),
    PROOF(19, 64GiB, "V1_2_Feat_NonInteractivePoRep", API_1_2, CHALLENGE_NON_INTERACTIVE),
};

const struct sector_size *sector_size_by_bytes(uint64_t bytes)
{
    for (const struct sector_size *s = sector_sizes; s->name; s++)
        if (s->bytes == bytes)
            return s;
    return NULL;
}

const struct sector_size *sector_size_by_name(const char *name)
{
    for (const struct sector_size *s = sector_sizes; s->name; s++)
        if (strcmp(s->name, name) == 0)
            return s;
    return NULL;
}

uint32_t sector_path_levels(const struct sector_size *size)
{
    return size->base_levels + (size->sub_arity > 0) + (size->top_arity > 0);
}

uint32_t sector_path_arity(const struct sector_size *size, uint32_t level)
{
    if (level < size->base_levels)
        return size->base_arity;
    if (level == size->base_levels && size->sub_arity > 0)
        return size->sub_arity;
    return size->top_arity;
}

const struct seal_proof *seal_proof_by_id(uint32_t id)
{
    return id < SEAL_PROOFS ? &seal_proofs[id] : NULL;
}

const struct seal_proof *seal_proof_by_name(const char *name)
{
    for (uint32_t id = 0; id < SEAL_PROOFS; id++)
        if (strcmp(seal_proofs[id].name, name) == 0)
            return &seal_proofs[id];
    return NULL;
}

void seal_proof_porep_id(const struct seal_proof *proof, uint8_t porep_id[32])
{
    memset(porep_id, 0, 32);
    store_le64(porep_id, proof->id);
}

uint32_t seal_proof_partitions(const struct seal_proof *proof)
{
    return proof->kind == CHALLENGE_NON_INTERACTIVE ? proof->size->ni_partitions
                                                    : proof->size->partitions;
}

/* What is published of a size; all NULL for a size that nothing is published of, such as a test's own. */
static struct published published_of(const struct sector_size *size)
{
    for (int i = 0; i < SIZES; i++)
        if (size == &sector_sizes[i])
            return published[i];
    return (struct published){NULL, NULL, NULL};
}

const char *sector_variant_name(const struct sector_size *size)
{
    return published_of(size).variant;
}

const char *sector_params_digest(const struct sector_size *size)
{
    return published_of(size).params_digest;
}

const char *sector_vk_digest(const struct sector_size *size)
{
    return published_of(size).vk_digest;
}

void sector_cache_id(const struct sector_size *size, char out[SECTOR_CACHE_ID_MAX])
{
    char shape[40], ident[512], hex[2 * SHA256_DIGEST_LENGTH + 1];
    uint8_t digest[SHA256_DIGEST_LENGTH];

    snprintf(shape, sizeof(shape), "%" PRIu32 "-%" PRIu32 "-%" PRIu32, size->base_arity,
             size->sub_arity, size->top_arity);
    int len = snprintf(ident, sizeof(ident),
                       "layered_drgporep::PublicParams{ graph: stacked_graph::StackedGraph{"
                       "expansion_degree: 8 base_graph: drgraph::BucketGraph{size: %" PRIu64
                       "; degree: 6; hasher: poseidon_hasher} }, challenges: LayerChallenges "
                       "{ layers: %" PRIu32 ", max_count: %" PRIu32
                       " }, tree: merkletree-poseidon_hasher-%s }",
                       size->nodes, size->layers, size->challenges, shape);
    SHA256((const uint8_t *)ident, (size_t)len, digest);
    hex_encode(hex, digest, sizeof(digest));
    snprintf(out, SECTOR_CACHE_ID_MAX,
             "v28-stacked-proof-of-replication-merkletree-poseidon_hasher-%s-sha256_hasher-%s",
             shape, hex);
}
