/*
 * What is made of a circuit on the host before it goes to a device: the instances with their templates' rows, and the lists of
 * points that the variables which are no bits ask for.
 */
#ifndef GPU_CUDA_CIRCUIT_EXTRACT_CUH
#define GPU_CUDA_CIRCUIT_EXTRACT_CUH

#include "gpu/cuda/rows.cuh"

#include <vector>

/* Term i of a query's tail is value values[i] of the witness times point points[i]. */
struct circuit_tail {
    std::vector<uint32_t> points, values;

    void add(uint32_t point, uint32_t value)
    {
        points.push_back(point);
        values.push_back(value);
    }
};

struct circuit_extract {
    std::vector<row_instance> instances;
    std::vector<uint32_t> tile_instance;
    circuit_tail l, a, b;
};

/* Points of the queries. */
static inline size_t circuit_a_len(const struct circuit *c)
{
    return (size_t)c->n_inputs + circuit_density_total(c, c->a_rank);
}

static inline size_t circuit_b_len(const struct circuit *c)
{
    return (size_t)CIRCUIT_B_INPUTS + circuit_density_total(c, c->b_rank);
}

static inline void extract_instances(const struct circuit *c, circuit_extract &x)
{
    uint32_t i = 0;

    for (i = 0; i < c->n_instances; i++) {
        const struct circuit_instance &in = c->instances[i];
        x.instances.push_back({in.row, c->templates[in.template_index].first_row, in.first_base});
    }
    i = 0;
    for (uint64_t row = 0; row < c->n_rows; row += ROW_TILE) {
        while (i + 1 < c->n_instances && c->instances[i + 1].row <= row)
            i++;
        x.tile_instance.push_back(i);
    }
}

static inline void add_dense(const uint64_t *density, const uint32_t *rank, uint32_t first_point,
                             uint32_t aux, uint32_t value, circuit_tail &tail)
{
    if (density[aux / 64] >> (aux % 64) & 1)
        tail.add(first_point + circuit_density_rank(density, rank, aux), value);
}

static inline void extract_tails(const struct circuit *c, circuit_extract &x)
{
    for (uint32_t i = 0; i < c->n_inputs; i++)
        x.a.add(i, i);
    for (uint32_t i = 0; i < CIRCUIT_B_INPUTS; i++)
        x.b.add(i, i);
    for (uint32_t value = c->n_inputs; value < c->n_values; value++) {
        const uint32_t aux = c->value_aux[value - c->n_inputs];
        x.l.add(aux, value);
        add_dense(c->a_density, c->a_rank, c->n_inputs, aux, value, x.a);
        add_dense(c->b_density, c->b_rank, CIRCUIT_B_INPUTS, aux, value, x.b);
    }
}

static inline circuit_extract extract_circuit(const struct circuit *c)
{
    circuit_extract x;

    extract_instances(c, x);
    extract_tails(c, x);
    return x;
}

/* The tables where the host has them; `c` and `x` must outlive them. */
static inline row_tables host_row_tables(const struct circuit *c, const circuit_extract &x)
{
    row_tables t = {};

    t.coeffs = (const fr *)c->coeffs;
    for (int side = 0; side < CIRCUIT_SIDES; side++)
        t.sides[side] = {c->sides[side].first, c->sides[side].terms};
    t.instances = x.instances.data();
    t.bases = c->bases;
    t.tile_instance = x.tile_instance.data();
    t.value_aux = c->value_aux;
    t.n_instances = c->n_instances;
    t.n_rows = (uint32_t)c->n_rows;
    t.n_inputs = c->n_inputs;
    return t;
}

#endif
