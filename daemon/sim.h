/*
 * A simulated device: a backend that computes nothing, but takes time and memory, fails and lies as one text file says, so that pacing,
 * fairness and faults are tested without hardware. For jobs of the test kind (test_document.h), and for C1 files whose true proofs it
 * was given beforehand. doc/formats.md has the file.
 *
 * While it works it watches its inputs: a page of a slot that changes under it is an error of the service.
 *
 * A struct sim may be used by any thread.
 */
#ifndef DAEMON_SIM_H
#define DAEMON_SIM_H

#include "gpu/backend.h"

enum sim_stage { SIM_SYNTHESIS, SIM_START, SIM_FINISH, SIM_STAGES };

struct sim;

/* Reads the file at `path`. Returns 0 with *out set (end it with sim_destroy, after its backends), or a negative errno: err has line
 * and reason. */
int sim_create(const char *path, struct sim **out, struct errmsg *err);
void sim_destroy(struct sim *sim);

/* How many devices a node has. */
unsigned sim_devices(const struct sim *sim);
/* Bytes of a slot's two parts for jobs of the test kind. */
size_t sim_witness_bytes(const struct sim *sim);
size_t sim_evaluation_bytes(const struct sim *sim);

/* Takes the stage's time. 0, or -EIO where the file wants an error; dies or never returns where it wants that. */
int sim_spend(struct sim *sim, enum sim_stage stage, struct errmsg *err);

/* A device. `sim` is borrowed. -ENOMEM without the device's memory. */
int backend_sim_create(struct sim *sim, struct backend **out, struct errmsg *err);

/* How the file of a true proof is called in the directory `proofs`: by the public inputs of its partition (without ONE). */
#define SIM_NAME_BYTES 72
void sim_proof_name(const fr_t *inputs, size_t len, char out[SIM_NAME_BYTES]);

#endif
