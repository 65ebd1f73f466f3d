/*
 * The number of variables that occur on the A or B side is a property of the circuit that has no closed form; a
 * table saves a synthesis at each start. A test synthesizes every size and counts again.
 */
#include "gpu/srs_counts.h"

#include "gpu/vk.h"
#include "numa/circuit/porep.h"

/* porep-circuit 7.2: aux variables that occur in some row's A, and in some row's B. */
static const struct {
    const char *size;
    uint32_t a_aux, b_aux;
} densities[] = {
    {"2KiB", 2674908, 685521},      {"4KiB", 2773158, 716039},       {"16KiB", 2959930, 766963},
    {"32KiB", 3058180, 797481},     {"8MiB", 3814996, 1011289},      {"16MiB", 3913246, 1041807},
    {"512MiB", 4385040, 1174173},   {"1GiB", 4483290, 1204691},      {"32GiB", 129753292, 33112281},
    {"64GiB", 130637542, 33386943},
};

/* ONE is the only input on a B side, in every size. */
#define B_INPUTS 1

void srs_counts(const struct sector_size *size, struct srs_counts *out)
{
    struct porep_counts circuit;

    porep_counts(size, &circuit);
    *out = (struct srs_counts){
        .ic = circuit.inputs,
        .h = ((size_t)1 << circuit.log2_domain) - 1,
        .l = circuit.aux,
    };
    for (size_t i = 0; i < ARRAY_LEN(densities); i++)
        if (strcmp(densities[i].size, size->name) == 0) {
            out->a = (size_t)circuit.inputs + densities[i].a_aux;
            out->b = (size_t)B_INPUTS + densities[i].b_aux;
        }
}

uint64_t srs_file_bytes(const struct srs_counts *counts)
{
    uint64_t g1 = (uint64_t)counts->h + counts->l + counts->a + counts->b;

    return vk_bytes(counts->ic) + (uint64_t)5 * 4 + G1_BYTES * g1 + G2_BYTES * (uint64_t)counts->b;
}

uint64_t srs_transformed_bytes(const struct srs_counts *counts)
{
    return SRS_TRANSFORMED_HEAD_BYTES +
           G1_BYTES * ((uint64_t)counts->ic + counts->h + 1 + counts->l);
}
