/*
 * A circuit on the device: the tables that its rows are evaluated from, and what of the queries does not depend on the
 * witness.
 *
 * Of a compact witness the bits are at once the list of the points that are added as they are. The other variables are the same
 * in every witness, so which points they ask for is listed beforehand.
 */
#ifndef GPU_CUDA_CIRCUIT_CUH
#define GPU_CUDA_CIRCUIT_CUH

#include "gpu/cuda/circuit_extract.cuh"
#include "gpu/cuda/device.cuh"
#include "gpu/cuda/upload.cuh"

struct device_tail {
    device_buffer<uint32_t> points, values;
};

struct device_density {
    device_buffer<uint32_t> bits, rank; /* rank[w]: bits set in words of 32 before w */
};

struct resident_circuit {
    device_buffer<fr> coeffs;
    device_buffer<uint32_t> first[CIRCUIT_SIDES];
    device_buffer<struct circuit_term> terms[CIRCUIT_SIDES];
    device_buffer<row_instance> instances;
    device_buffer<struct circuit_base> bases;
    device_buffer<uint32_t> tile_instance, value_aux;
    device_density a, b;
    device_tail l_tail, a_tail, b_tail;
    row_tables tables = {};
    uint32_t n_inputs = 0, n_aux = 0, n_values = 0, aux_words = 0, log2_domain = 0;
    size_t a_len = 0, b_len = 0;                 /* points of the queries */
    uint32_t l_rest = 0, a_rest = 0, b_rest = 0; /* of the tails */
    size_t bytes = 0;                            /* of device memory that all this takes */
    bool loaded = false;

    /* Whether this is it: the counts tell the sizes apart. */
    bool is(const struct circuit *c) const
    {
        return loaded && n_aux == c->n_aux && n_values == c->n_values &&
               tables.n_rows == c->n_rows && n_inputs == c->n_inputs;
    }

    /* The numbers alone, which say what memory all takes. -EINVAL for one of more than 2^32 rows. */
    int describe(const struct circuit *c, const circuit_extract &x, struct errmsg *err);
    /* After describe: brings it up by way of `up`, which is idle afterwards. */
    int load(gpu &g, uploader &up, const struct circuit *c, const circuit_extract &x,
             struct errmsg *err);
};

/* The compact witness in device memory. */
struct device_witness {
    fr *values;
    uint32_t *bits;
};

/* Queues on the main stream of `g`: A, B and their product of all rows, each where it is not NULL, and zeros from there to the end of
 * the domain. */
int evaluate_rows(const gpu &g, const resident_circuit &c, const device_witness &w, fr *a, fr *b,
                  fr *product, struct errmsg *err);

#endif
