/*
 * The rows of a circuit (numa/circuit/circuit.h) over a compact witness, one at a time, for host and device alike.
 *
 * Nearly all terms are a bit times a small integer, so those are summed as integers and enter the field once a row.
 */
#ifndef GPU_CUDA_ROWS_CUH
#define GPU_CUDA_ROWS_CUH

#include "gpu/cuda/c_headers.cuh"
#include "gpu/cuda/fr.cuh"

extern "C" {
#include "numa/circuit/circuit.h"
}

/* What a row needs of an instance and its template. */
struct row_instance {
    uint32_t row, template_row, first_base;
};

struct row_side {
    const uint32_t *first;
    const struct circuit_term *terms;
};

/* Rows of a tile have their first instance looked up beforehand. */
static constexpr uint32_t ROW_TILE = 256;

/* A circuit's arrays, as circuit.h says, wherever they are. */
struct row_tables {
    const fr *coeffs;
    row_side sides[CIRCUIT_SIDES];
    const row_instance *instances;
    const struct circuit_base *bases;
    const uint32_t *tile_instance; /* the instance of row i * ROW_TILE */
    const uint32_t *value_aux;
    uint32_t n_instances, n_rows, n_inputs;
};

struct row_witness {
    const fr *values;
    const uint32_t *bits; /* in words of 32: the same bits on a little-endian machine */
};

/* Two loads instead of eight. */
HOST_DEVICE fr load_fr(const fr *p)
{
#ifdef __CUDA_ARCH__
    const uint4 low = ((const uint4 *)p)[0], high = ((const uint4 *)p)[1];
    return {{low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w}};
#else
    return *p;
#endif
}

/* Where a row is: its row of the templates, and the bases of its instance. */
struct row_place {
    uint32_t row;
    const struct circuit_base *bases;
};

HOST_DEVICE row_place place_of_row(const row_tables &t, uint32_t row)
{
    uint32_t i = t.tile_instance[row / ROW_TILE];

    while (i + 1 < t.n_instances && t.instances[i + 1].row <= row)
        i++;
    const row_instance instance = t.instances[i];
    return {instance.template_row + (row - instance.row), t.bases + instance.first_base};
}

/* -CIRCUIT_SMALL .. CIRCUIT_SMALL are there ready-made. */
HOST_DEVICE fr small_integer(const row_tables &t, int32_t n)
{
    if (n >= -CIRCUIT_SMALL && n <= CIRCUIT_SMALL)
        return load_fr(t.coeffs + n + CIRCUIT_SMALL);
    return n < 0 ? sub(fr_zero(), fr_from_u32((uint32_t)-n)) : fr_from_u32((uint32_t)n);
}

static constexpr uint32_t COEFF_ONE = CIRCUIT_SMALL + 1, COEFF_MINUS_ONE = CIRCUIT_SMALL - 1;

/* acc + coeff * value; loose */
HOST_DEVICE fr add_product(const row_tables &t, const fr &acc, uint32_t coeff, const fr &value)
{
    if (coeff == COEFF_ONE)
        return add(acc, value);
    if (coeff == COEFF_MINUS_ONE)
        return sub(acc, value);
    return add(acc, mul(value, load_fr(t.coeffs + coeff)));
}

/* One side of a row, canonical. (By fours, so that loads do not wait for one another: 24 ms for 2^27 rows against 18, H200.) */
HOST_DEVICE fr row_value(const row_tables &t, const row_side &side, const row_place &at,
                         const row_witness &w)
{
    const uint32_t end = side.first[at.row + 1];
    fr acc = fr_zero();
    int32_t small = 0;
    bool field = false; /* acc was touched */

    for (uint32_t i = side.first[at.row]; i < end; i++) {
        const struct circuit_term term = side.terms[i];

        if (term.var != CIRCUIT_ONE) {
            const struct circuit_base base = at.bases[CIRCUIT_SEGMENT(term.var)];
            if (term.var & CIRCUIT_VALUE) {
                acc = add_product(t, acc, term.coeff,
                                  load_fr(w.values + base.value + CIRCUIT_OFFSET(term.var)));
                field = true;
                continue;
            }
            const uint32_t aux = base.aux + CIRCUIT_OFFSET(term.var);
            if (!(w.bits[aux / 32] >> (aux % 32) & 1))
                continue;
        }
        if (term.coeff < CIRCUIT_SMALL_COEFFS) {
            small += (int32_t)term.coeff - CIRCUIT_SMALL;
        } else {
            acc = add(acc, load_fr(t.coeffs + term.coeff));
            field = true;
        }
    }
    const fr integer = small_integer(t, small);
    return canonical(field ? add(acc, integer) : integer);
}

/* The variable's number among all, inputs first. */
HOST_DEVICE uint32_t variable_of(const row_tables &t, const struct circuit_base *bases,
                                 uint32_t var)
{
    const struct circuit_base base = bases[CIRCUIT_SEGMENT(var)];

    if (!(var & CIRCUIT_VALUE))
        return t.n_inputs + base.aux + CIRCUIT_OFFSET(var);
    const uint32_t value = base.value + CIRCUIT_OFFSET(var);
    return value < t.n_inputs ? value : t.n_inputs + t.value_aux[value - t.n_inputs];
}

#endif
