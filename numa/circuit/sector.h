/*
 * The kinds of sector there are: one table of what porep-circuit 2.1 and 2.2 say of each size and
 * each registered seal proof.
 *
 * Everything here is constant and may be used from any thread.
 */
#ifndef CIRCUIT_SECTOR_H
#define CIRCUIT_SECTOR_H

#include <stdbool.h>
#include <stdint.h>

#define DRG_PARENTS 6
#define EXP_PARENTS 8
#define PARENTS (DRG_PARENTS + EXP_PARENTS)
#define LABEL_PARENTS 37
#define MAX_LAYERS 11
#define CHALLENGE_INPUTS 18 /* public inputs of one challenge, porep-circuit 5.3 */

/* A sector size and with it a circuit: (nodes, layers, shape, challenges per partition). */
struct sector_size {
    const char *name;          /* "2KiB" */
    uint64_t bytes;            /* nodes * 32 */
    uint64_t nodes;            /* a power of two: leaves of each tree */
    uint32_t log2_nodes;       /* also the depth of tree D */
    uint32_t layers;           /* 2 or 11 */
    uint32_t base_levels;      /* levels of arity 8 in a base tree of tree C and R */
    uint32_t sub_arity;        /* 0 (absent), 2, 4 or 8: one level over the base trees */
    uint32_t top_arity;        /* 0 (absent), 2, 4 or 8: one level over the sub trees */
    uint32_t partitions;       /* interactive and synthetic */
    uint32_t challenges;       /* in each partition */
    uint32_t ni_partitions;    /* non-interactive */
    uint32_t base_arity;       /* 8 in every registered size */
};

/* Null-terminated by name == NULL: the ten sizes of porep-circuit 2.1, smallest first. */
extern const struct sector_size sector_sizes[];

/* NULL when there is no such size. */
const struct sector_size *sector_size_by_bytes(uint64_t bytes);
const struct sector_size *sector_size_by_name(const char *name);

/* Levels of a tree C or R path: base, then sub, then top. */
uint32_t sector_path_levels(const struct sector_size *size);
/* Arity of level `level` (0 = at the leaves) of a tree C or R path. */
uint32_t sector_path_arity(const struct sector_size *size, uint32_t level);

enum challenge_kind { CHALLENGE_INTERACTIVE, CHALLENGE_SYNTHETIC, CHALLENGE_NON_INTERACTIVE };
enum api_version { API_1_0, API_1_1, API_1_2 };

/* A registered seal proof (FIL RegisteredSealProof). */
struct seal_proof {
    uint32_t id;      /* 0..19 */
    const char *name; /* serde name, "StackedDrg2KiBV1_1" */
    const struct sector_size *size;
    enum api_version api;
    enum challenge_kind kind;
};

#define SEAL_PROOFS 20
/* NULL when there is no such proof. */
const struct seal_proof *seal_proof_by_id(uint32_t id);
const struct seal_proof *seal_proof_by_name(const char *name);

/* Key of `vanilla_proofs` for a size ("StackedDrg2KiBV1"); NULL for a size without registered proof. */
const char *sector_variant_name(const struct sector_size *size);

/* LE64(id) || LE64(0) || 16 zero bytes. */
void seal_proof_porep_id(const struct seal_proof *proof, uint8_t porep_id[32]);

/* Partitions of a proof of this kind. */
uint32_t seal_proof_partitions(const struct seal_proof *proof);

/* "v28-stacked-proof-of-replication-...-<hash>" (porep-circuit 2.3), without a suffix. `out` has
 * room for SECTOR_CACHE_ID_MAX characters. Any of the ten sizes. */
#define SECTOR_CACHE_ID_MAX 192
void sector_cache_id(const struct sector_size *size, char out[SECTOR_CACHE_ID_MAX]);

/* Published BLAKE2b digest (first 16 bytes, hex) of the official .params or .vk; NULL for a size
 * without published parameters. */
const char *sector_params_digest(const struct sector_size *size);
const char *sector_vk_digest(const struct sector_size *size);

#endif
