/*
 * The sums of a Groth16 proof (gpu/groth16.h), on one GPU, over parameters that stay there, or are streamed where they do not fit.
 * Several sets stay side by side, one for each circuit; proofs that are on their way together are over the same.
 *
 * Of compact witnesses two are on their way at a time: while one is proved, the next is uploaded. Threads may call start and
 * finish as they like, and wait for one another in each. All else: one thread at a time, and nothing on its way.
 *
 * Memory is taken when parameters are loaded, for the largest of the sets that are there; proofs over any of them take none. Who
 * gives which of them up for others is the caller's business (struct backend_ops).
 */
#ifndef GPU_CUDA_PROVER_CUH
#define GPU_CUDA_PROVER_CUH

#include "gpu/cuda/helper.cuh"
#include "gpu/cuda/parameters.cuh"
#include "gpu/cuda/select.cuh"
#include "gpu/cuda/stream.cuh"
#include "gpu/cuda/times.h"

#include <list>
#include <mutex>

struct prover;

static constexpr unsigned FLIGHTS = 2;

/* A proof on its way. */
struct flight {
    prover *on = nullptr;
    bool used = false; /* guarded by prover::lock */
    const fr_t *inputs = nullptr;
    device_witness w;
    cuda_event arrived;
};

/* What the arena is cut into. */
struct flight_space {
    device_witness witness[FLIGHTS];
    /* A, B and C of the rows; h takes the place of A. No third where points are streamed or transformed. */
    fr *vector[3];
    uint32_t *ones; /* points that are added as they are, and room for one more */
    uint32_t *ones_len;
    scratch aside, main;
    /* Of streamed points: the places of the lanes, and points that the values of a query ask for. */
    char *window[bus_lane::PLACES], *slab[bus_lane::PLACES], *tail;
};

struct prover {
    gpu g;     /* the sum over h; all of an expanded assignment */
    gpu early; /* expansion and transforms, in what the others leave of the chip */
    gpu aside; /* the sums over the witness */
    helper aside_thread;
    prover_times times = {};
    uploader up;
    struct workers *workers = nullptr;
    std::list<resident_parameters> sets;
    resident_parameters *resident = nullptr; /* of these, what the arena is cut for */
    transforms tables[NTT_LOG2_MAX + 1];     /* by the log2 of their domain */
    bus_lane window_lane, h_lane; /* of streamed points; the sum beside, the sum over h */
    uint64_t memory_limit = 0;    /* as in struct backend, and so is: */
    uint64_t lacks = 0;
    device_buffer<char> arena; /* vectors, lists and the scratch of sums */
    bool arena_is_compact = false;
    uint32_t at_once = 0; /* windows of digits that it is for, as in flight_layout */
    flight_space space;
    flight flights[FLIGHTS];
    /* Of the finish that goes on: its rows begin, are there, are transformed. */
    cuda_event begun, evaluated, ready;
    pinned_buffer<fr> last_coefficient; /* of h */
    std::mutex starting, finishing;     /* held over a start, over a finish; both before lock */
    std::mutex lock;

    int open(int device_index, struct workers *w, struct errmsg *err);

    /* Makes the parameters resident if they are not, and takes memory for proofs of compact witnesses of `circuit`, or, where it is
     * NULL, of expanded assignments. progress (may be NULL) hears of bytes. Errors: as in struct backend_ops. */
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
    /* NULL: they are not there. */
    resident_parameters *find(const struct srs *srs);
    /* Gives them up, unless proofs over them are on their way. */
    void evict(const struct srs *srs);
};

/* What more may be taken on the device. */
int available_bytes(const prover &p, size_t *out, struct errmsg *err);
/* Queues the transforms of two vectors of values over a domain, and the product of what both are over its coset, in natural order, in
 * place of the first. */
int queue_coset_product(gpu &g, const transforms &t, uint32_t log2_domain, fr *a, fr *b,
                        struct errmsg *err);
/* Cuts the arena for compact witnesses; `space` may only measure. at_once: as in msm_scratch_bytes, of the sum over h. */
flight_space flight_layout(const resident_parameters &r, uint32_t at_once, scratch space);
size_t flight_bytes(const resident_parameters &r, uint32_t at_once);
/* The points that a part of a query asks for by its bits, to p.space.ones, by way of p.aside. */
int select_ones(prover &p, const selection_part &part, uint32_t *len, struct errmsg *err);

/* ---- where points are streamed (stream.cu) ---- */

/* Cuts the arena for the shape and the windows of r.streamed; `space` may only measure. */
flight_space streamed_layout(const resident_parameters &r, scratch space);
/* Sets those for so much memory, and says how much of it the arena is. -ENOMEM. */
int choose_stream_shape(resident_parameters &r, const struct circuit *circuit, size_t available,
                        size_t *bytes, struct errmsg *err);
/* In place of the resident prover's transforms, sum over h and sums over the witness. */
int queue_h_streamed(prover &p, const flight &f, struct errmsg *err);
int sum_h_streamed(prover &p, g1_t *out, struct errmsg *err);
int sum_queries_streamed(prover &p, const flight &f, struct groth16_sums *out, struct errmsg *err);

#endif
