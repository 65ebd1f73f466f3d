/*
 * The sums of a Groth16 proof (gpu/groth16.h), on one GPU, over parameters that stay there.
 *
 * Of compact witnesses two are on their way at a time: while one is proved, the next is uploaded. Threads may call start and
 * finish as they like, and wait for one another in each. All else: one thread at a time, and nothing on its way.
 *
 * Memory is taken when parameters are loaded; proofs over parameters that are there take none.
 */
#ifndef GPU_CUDA_PROVER_CUH
#define GPU_CUDA_PROVER_CUH

#include "gpu/cuda/helper.cuh"
#include "gpu/cuda/parameters.cuh"
#include "gpu/cuda/times.h"

#include <mutex>

struct prover;

static constexpr unsigned FLIGHTS = 2;

/* A proof on its way. */
struct flight {
    prover *on = nullptr;
    bool used = false; /* guarded by prover::lock */
    device_witness w;
    cuda_event arrived;
};

/* What the arena is cut into. */
struct flight_space {
    device_witness witness[FLIGHTS];
    fr *vector[3];  /* A, B and C of the rows; h takes the place of A */
    uint32_t *ones; /* points that are added as they are, and room for one more */
    uint32_t *ones_len;
    scratch aside, main;
};

struct prover {
    gpu g;     /* the sum over h; all of an expanded assignment */
    gpu early; /* expansion and transforms, in what the others leave of the chip */
    gpu aside; /* the sums over the witness */
    helper aside_thread;
    prover_times times = {};
    uploader up;
    struct workers *workers = nullptr;
    resident_parameters resident;
    device_buffer<char> arena; /* vectors, lists and the scratch of sums */
    bool arena_is_compact = false;
    flight_space space;
    flight flights[FLIGHTS];
    /* Of the finish that goes on: its rows begin, are there, are transformed. */
    cuda_event begun, evaluated, ready;
    pinned_buffer<fr> last_coefficient; /* of h */
    std::mutex starting, finishing;     /* held over a start, over a finish; both before lock */
    std::mutex lock;

    int open(int device_index, struct workers *w, struct errmsg *err);

    /* Makes the parameters resident if they are not, and takes memory for proofs of compact witnesses of `circuit`, or, where it is
     * NULL, of expanded assignments. progress (may be NULL) hears of bytes. */
    int load(const struct srs *srs, const struct circuit *circuit, backend_progress progress,
             void *progress_ctx, struct errmsg *err);
    /* Development parameters of a circuit, made here; `ic` as in develop_points. */
    int develop(const struct circuit *circuit, const struct secrets *t, fr_t *ic,
                backend_progress progress, void *progress_ctx, struct errmsg *err);

    /* All sums of an expanded assignment, after groth16's checks of counts; loads what is not there. */
    int sums(const struct srs *srs, const struct assignment *w, struct groth16_sums *out,
             struct errmsg *err);

    /* Queues the upload and returns; `w` stays as it is until the end of the flight. -EBUSY when as many are on their way as
     * can be. */
    int start(const struct srs *srs, const struct compact *w, flight **out, struct errmsg *err);
    /* Either ends the flight. -EBADMSG when a transform was wrong. */
    int finish(flight *f, struct groth16_sums *out, struct errmsg *err);
    void abort(flight *f);
    bool in_flight();
    /* Waits for everything queued, after an error. */
    void drain();
};

/* Cuts the arena for compact witnesses; `space` may only measure. at_once: as in msm_scratch_bytes, of the sum over h. */
flight_space flight_layout(const resident_parameters &r, uint32_t at_once, scratch space);
size_t flight_bytes(const resident_parameters &r, uint32_t at_once);

#endif
