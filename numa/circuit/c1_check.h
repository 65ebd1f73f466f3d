/*
 * The strict checks of a C1 (c2-formats 1.5, checks 4 to 9): whatever one of them finds would make the
 * final proof invalid, so it is better said before an hour of work than after.
 *
 * Each looks at decoded fields alone; c1_check_paths needs no more than the challenges it is asked about
 * and can run while the rest still arrives. Any thread may call them.
 *
 * Each returns 0, or -EBADMSG with err naming the field, what was found and what was wanted.
 */
#ifndef CIRCUIT_C1_CHECK_H
#define CIRCUIT_C1_CHECK_H

#include "numa/circuit/c1.h"
#include "numa/workers.h"

/* Hashes already computed for this C1. Paths of one tree meet on their way to the root, so a good part
 * of their hashes need not be computed again; one is reused only after all its inputs were compared. */
struct c1_paths;

/* Returns 0 with *out set (end it with c1_paths_destroy) or -ENOMEM. For one C1 of `size` alone. */
int c1_paths_create(const struct sector_size *size, struct c1_paths **out);
void c1_paths_destroy(struct c1_paths *paths);

/* Poseidon hashes computed and reused, for measurements. */
void c1_paths_count(const struct c1_paths *paths, uint64_t *computed, uint64_t *reused);

/* Check 7 and what check 9 says of the challenges numbered `first` to `first` + `len` - 1 over all
 * partitions: every path leads to its root, leaves of tree C are column hashes, the leaf of tree R is
 * label plus data, the encoding proof is the last label proof. On `workers` (may be NULL); the error is
 * that of the first challenge at fault. */
int c1_check_paths(struct c1_paths *paths, const struct c1 *c1, uint32_t first, uint32_t len,
                   struct workers *workers, struct errmsg *err);

/* Check 8: every label follows from the parents. */
int c1_check_labels(const struct c1 *c1, struct errmsg *err);

/* Check 4: comm_d, comm_c and comm_r_last are the same everywhere and give comm_r. */
int c1_check_roots(const struct c1 *c1, struct errmsg *err);

/* Check 5: replica_id is that of the prover and the sector. */
int c1_check_replica_id(const struct c1 *c1, const uint8_t prover_id[32], uint64_t sector_number,
                        struct errmsg *err);

/* Check 6, if the C1 were of type `proof` (which has its size): every node is the challenge that follows
 * from replica_id and seed, or a parent of it. */
int c1_check_graph(const struct c1 *c1, const struct seal_proof *proof, struct errmsg *err);

/* All of them but check 5, on `workers` (may be NULL). */
int c1_check_all(const struct c1 *c1, struct workers *workers, struct errmsg *err);

#endif
