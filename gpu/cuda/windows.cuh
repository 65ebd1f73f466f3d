/*
 * How queries are cut where device memory does not hold them: into windows, which come over the bus one after another.
 *
 * Host code alone, so that `make check` tests it. A window has whole words of variables, since the bits of a word say which of its
 * points are summed; how many points it has depends on how many of the variables have one.
 */
#ifndef GPU_CUDA_WINDOWS_CUH
#define GPU_CUDA_WINDOWS_CUH

#include "gpu/cuda/c_headers.cuh"

#include <algorithm>
#include <vector>

extern "C" {
#include "gpu/backend.h"
#include "numa/circuit/circuit.h"
}

/* Points first .. first + len of a section, which are those of variables from 64 * first_word on, and of `words` words; the first window
 * of a query has those of its inputs too. */
struct query_window {
    enum srs_section section;
    uint32_t first_word, words;
    uint32_t first, len;
};

/* The points of a query that come before those of word w, for w up to the circuit's words: then all. */
struct query_points {
    const struct circuit *circuit;
    enum srs_section section;

    uint32_t before(uint32_t word) const
    {
        const struct circuit *c = circuit;

        if (section == SRS_L)
            return std::min(c->n_aux, word * 64);
        const bool a = section == SRS_A;
        const uint32_t *rank = a ? c->a_rank : c->b_rank;
        const uint32_t inputs = a ? c->n_inputs : (uint32_t)CIRCUIT_B_INPUTS;
        if (word >= c->aux_words)
            return inputs + circuit_density_total(c, rank);
        return inputs + circuit_density_rank(a ? c->a_density : c->b_density, rank, word * 64);
    }
};

/* What a window must hold at least: the inputs' points and those of a word. */
static inline uint32_t window_points_least(const struct circuit *c)
{
    return std::max(c->n_inputs, (uint32_t)CIRCUIT_B_INPUTS) + 64;
}

/* The word after the last one that fits a window of `most` points, the first of which is `first`. */
static inline uint32_t window_end(const query_points &q, uint32_t begin, uint32_t first,
                                  uint32_t most)
{
    uint32_t fits = begin + 1, not_yet = q.circuit->aux_words + 1;

    while (not_yet - fits > 1) {
        const uint32_t middle = fits + (not_yet - fits) / 2;
        if (q.before(middle) - first <= most)
            fits = middle;
        else
            not_yet = middle;
    }
    return fits;
}

/* Appends the windows of one query, of `most` points or fewer, at least window_points_least. */
static inline void cut_query(const query_points &q, uint32_t most, std::vector<query_window> &out)
{
    uint32_t word = 0, first = 0;

    while (word < q.circuit->aux_words) {
        const uint32_t end = window_end(q, word, first, most), last = q.before(end);
        out.push_back({q.section, word, end - word, first, last - first});
        word = end;
        first = last;
    }
}

static inline size_t point_bytes(enum srs_section section)
{
    return section == SRS_B_G2 ? sizeof(g2_affine_t) : sizeof(g1_affine_t);
}

/* All queries over the witness, in the order in which they are summed, in windows of so many bytes or fewer. */
static inline std::vector<query_window> cut_queries(const struct circuit *c, size_t window_bytes)
{
    std::vector<query_window> out;

    for (enum srs_section section : {SRS_L, SRS_A, SRS_B_G1, SRS_B_G2})
        cut_query({c, section}, (uint32_t)(window_bytes / point_bytes(section)), out);
    return out;
}

#endif
