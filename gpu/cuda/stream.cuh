/*
 * Proofs over parameters that device memory does not hold: the points stay in host memory, pinned, and come over the bus while a proof is
 * made, each once. The queries over the witness come in windows (windows.cuh) and h in slabs, each on a lane of its own with two places
 * on the device: what one holds is summed while the other fills. The bus is what bounds it: 47 GB at 32 GiB.
 *
 * Two vectors do where the resident prover has three: A times B over the coset is transformed first, and the rows are evaluated once
 * more for C, which transformed parameters do without. Tables of transforms are small ones (ntt.cuh).
 *
 * For compact witnesses alone. The host's points are borrowed from when they are pinned until release.
 */
#ifndef GPU_CUDA_STREAM_CUH
#define GPU_CUDA_STREAM_CUH

#include "gpu/cuda/device.cuh"
#include "gpu/cuda/windows.cuh"

extern "C" {
#include "gpu/srs.h"
}

/* How much is on the device at a time. */
struct stream_shape {
    size_t window_bytes;
    uint32_t slab;    /* points of h */
    uint32_t at_once; /* windows of digits, of the sum over a slab; as in msm_scratch_bytes */
};

struct streamed_points {
    const void *section[SRS_SECTIONS] = {}; /* NULL: nothing is streamed */
    bool pinned[SRS_SECTIONS] = {};
    stream_shape shape = {};
    std::vector<query_window> windows;

    streamed_points() = default;
    streamed_points(const streamed_points &) = delete;
    streamed_points &operator=(const streamed_points &) = delete;
    ~streamed_points()
    {
        release();
    }

    bool in_use() const
    {
        return section[SRS_L] != nullptr;
    }
    bool are(const struct srs *srs) const;
    /* Borrows and pins. progress (may be NULL) hears of bytes. */
    int pin(const struct srs *srs, backend_progress progress, void *progress_ctx,
            struct errmsg *err);
    void release();
};

/* Pieces that come over the bus, round and round: proof after proof the same. One thread at a time. */
struct bus_lane {
    static constexpr unsigned PLACES = 2;

    cuda_stream stream;
    cuda_event arrived[PLACES];
    char *place[PLACES] = {};
    uint64_t queued = 0, taken = 0; /* pieces, ever */

    int create(struct errmsg *err);
    /* Forgets what is there. */
    void restart();
    unsigned here() const
    {
        return taken % PLACES;
    }
    bool has_room() const
    {
        return queued - taken < PLACES;
    }
    /* Queues a piece to a place that nothing uses. */
    int fetch(const void *host, size_t bytes, struct errmsg *err);
    /* What `other` is given from now on comes after the oldest piece's arrival. */
    int before(const cuda_stream &other, struct errmsg *err);
};

#endif
