/*
 * The shape of a PoRep circuit: the constraint system of one sector size as tables.
 *
 * A circuit is a few dozen templates (a SHA-256 block, a level of a Merkle path, a column hash, ...), each a list of rows
 * over variables that are named relative to a base, and a list of instances, which say where each template stands and what
 * the bases are. The templates are recorded from the gadgets, which stay the definition (porep.h); whoever wants the rows
 * one by one takes circuit_rows and gets what porep_synthesize_blank gives.
 *
 * Variables are of two kinds, and which is which is the same for every witness: bits, which are 0 or 1 in any witness that the
 * gadgets make, and values, which are field elements. The inputs, ONE among them, count as values. compact.h has the
 * witness in that form.
 *
 * A circuit is immutable once made and may be read by any thread. Everything in it is plain arrays of fixed-width numbers,
 * without pointers inside, so that a device can take them as they are.
 */
#ifndef CIRCUIT_CIRCUIT_H
#define CIRCUIT_CIRCUIT_H

#include "numa/base.h"
#include "numa/circuit/fr.h"
#include "numa/circuit/sector.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * A variable as a template names it: its kind, the segment that it is in, and its place there.
 *
 * A bit:   variable CIRCUIT_OFFSET(var) of the aux variables from bases[first_base + segment].aux on.
 * A value: values[bases[first_base + segment].value + CIRCUIT_OFFSET(var)]; the place counts values alone, not bits.
 *
 * first_base is the instance's. Of each instance's segments the first three are always
 *     0   the inputs: aux unused, value 0; place 0 is ONE
 *     1   own: the aux variables that the instance itself allocates, and the values among them
 *     2   own inputs: aux unused, value = index of the first input that the instance allocates
 * and the rest, where the template has more than three, are variables of others.
 */
#define CIRCUIT_VALUE UINT32_C(0x80000000)
#define CIRCUIT_SEGMENT(var) ((var) >> 24 & 0x7f)
#define CIRCUIT_OFFSET(var) ((var)&0xffffff)
#define CIRCUIT_ONE CIRCUIT_VALUE /* value 0 of segment 0 */
enum { CIRCUIT_INPUTS, CIRCUIT_OWN, CIRCUIT_OWN_INPUTS, CIRCUIT_FOREIGN };

/* Coefficients are indices into `coeffs`. Those below CIRCUIT_SMALL_COEFFS are the integers from -CIRCUIT_SMALL to
 * CIRCUIT_SMALL in order: index i is i - CIRCUIT_SMALL. No term has the coefficient 0. */
#define CIRCUIT_SMALL 8
#define CIRCUIT_SMALL_COEFFS (2 * CIRCUIT_SMALL + 1)

struct circuit_term {
    uint32_t var;
    uint32_t coeff;
};

/* One side of the rows of all templates: row r has terms[first[r]] .. terms[first[r + 1] - 1]. No variable occurs twice
 * in a row's side, provided that the segments of an instance do not overlap, which they do not. */
struct circuit_side {
    uint32_t *first; /* template_rows + 1 */
    struct circuit_term *terms;
};
enum { CIRCUIT_A, CIRCUIT_B, CIRCUIT_C, CIRCUIT_SIDES };

struct circuit_template {
    uint32_t first_row, n_rows; /* in the sides' numbering */
    uint32_t n_aux, n_values;   /* that it allocates; n_values of the n_aux are no bits */
    uint32_t n_inputs;          /* that it allocates */
    uint32_t n_segments;
};

struct circuit_base {
    uint32_t aux, value;
};

/* Instances are in the order of rows, and of variables too: each begins where the one before ends. */
struct circuit_instance {
    uint32_t template_index;
    uint32_t row; /* the circuit's row that is the template's first */
    uint32_t first_base;
};

/* Where the parts of a partition's witness begin: for compact.c. aux counts from the partition's first aux variable, value is
 * an index into the witness's values. */
struct circuit_offsets {
    struct circuit_base header;
    /* Of challenge 0; those of challenge i are i times `stride` further on. */
    struct circuit_base data;               /* the data leaf, then its path in tree D */
    struct circuit_base parents[PARENTS];   /* column, its hash, the hash's path in tree C */
    struct circuit_base node_bits;          /* of the challenge's number */
    struct circuit_base labels[MAX_LAYERS]; /* the parents' bits, then the label */
    struct circuit_base encoding;           /* and its path in tree R */
    struct circuit_base column; /* of the challenged node: its hash, and the path in tree C */
    struct circuit_base stride;
};

struct circuit_plan;

struct circuit {
    const struct sector_size *size; /* borrowed */
    uint32_t n_inputs;              /* with ONE */
    uint32_t n_aux;
    uint32_t n_values; /* inputs, and the aux variables that are no bits */
    uint32_t log2_domain;
    uint64_t n_rows; /* closing rows included */

    uint32_t n_coeffs, n_templates, n_instances, n_bases, template_rows;
    fr_t *coeffs;
    struct circuit_template *templates;
    struct circuit_side sides[CIRCUIT_SIDES];
    struct circuit_instance *instances;
    struct circuit_base *bases;

    /* Aux variable that value n_inputs + i is, ascending: n_values - n_inputs of them. */
    uint32_t *value_aux;

    /* Densities (porep-circuit 1.4): bit i of word i / 64 says that aux variable i occurs in some row's A or B. The points of
     * query a are those of all inputs, then of the aux variables in A; the points of b_g1 and b_g2 those of ONE, then of the
     * aux variables in B. */
    uint32_t aux_words; /* of 64 bits, that n_aux bits take, and one of zeros at the end */
    uint64_t *a_density, *b_density;
    /* Bits set before word CIRCUIT_RANK_WORDS * i of the densities; one more than there are such blocks, the last is the total. */
    uint32_t *a_rank, *b_rank;

    /* By value, inputs too: the index of its point in query a, and in b_g1 and b_g2; CIRCUIT_NO_POINT where it has none. */
    uint32_t *a_points, *b_points;

    struct circuit_offsets offsets;
    struct circuit_plan *plan; /* circuit_plan.h */
};
#define CIRCUIT_RANK_WORDS 8
#define CIRCUIT_B_INPUTS 1 /* inputs that occur in B: ONE */
#define CIRCUIT_NO_POINT UINT32_MAX

static inline uint32_t circuit_aux_words(uint32_t n_aux)
{
    return (uint32_t)(((uint64_t)n_aux + 63) / 64) + 1;
}

/* The variable that a term of an instance names, inputs first: aux variable i is n_inputs + i. `bases` begin with the instance's first. */
static inline uint32_t circuit_variable(const struct circuit *c, const struct circuit_base *bases,
                                        uint32_t var)
{
    const struct circuit_base *base = &bases[CIRCUIT_SEGMENT(var)];

    if (!(var & CIRCUIT_VALUE))
        return c->n_inputs + base->aux + CIRCUIT_OFFSET(var);
    const uint32_t value = base->value + CIRCUIT_OFFSET(var);
    return value < c->n_inputs ? value : c->n_inputs + c->value_aux[value - c->n_inputs];
}

struct cs_sink;

/* The circuit of one of the ten sizes, shared by all who ask; the first to ask waits while it is made. It stays for the
 * life of the process. Returns 0 with *out set, or -ENOMEM. */
int circuit_of_size(const struct sector_size *size, const struct circuit **out, struct errmsg *err);

/* Makes the circuit of a size: half a second and less than 96 MB for the largest. Returns 0 with *out set (end it with
 * circuit_destroy), or -ENOMEM. */
int circuit_create(const struct sector_size *size, struct circuit **out, struct errmsg *err);
void circuit_destroy(struct circuit *c);

/* Bytes that a circuit takes. */
size_t circuit_bytes(const struct circuit *c);

/* Gives every row to sink->row, in order, closing rows last: sorted and merged, as the gadgets do. The rest of the sink is
 * not called. Returns 0 or -ENOMEM. */
int circuit_rows(const struct circuit *c, const struct cs_sink *sink, struct errmsg *err);

/* Aux variables in a density, from its ranks. */
static inline uint32_t circuit_density_total(const struct circuit *c, const uint32_t *rank)
{
    return rank[(c->aux_words + CIRCUIT_RANK_WORDS - 1) / CIRCUIT_RANK_WORDS];
}

/* a_density bits before aux variable `aux`: with n_inputs added, the index of its point in query a. */
static inline uint32_t circuit_density_rank(const uint64_t *density, const uint32_t *rank,
                                            uint32_t aux)
{
    const uint32_t word = aux / 64, block = word / CIRCUIT_RANK_WORDS;
    uint32_t n = rank[block];

    for (uint32_t i = block * CIRCUIT_RANK_WORDS; i < word; i++)
        n += (uint32_t)__builtin_popcountll(density[i]);
    return n + (uint32_t)__builtin_popcountll(density[word] & ((UINT64_C(1) << aux % 64) - 1));
}

#ifdef __cplusplus
}
#endif

#endif
