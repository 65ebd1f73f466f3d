#include "numa/circuit/sector.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/lib/suite.h"

/* porep-circuit 2.3 */
static const struct {
    const char *size, *shape, *hash;
    bool published;
} idents[] = {
    {"2KiB", "8-0-0", "032d3138d22506ec0082ed72b2dcba18df18477904e35bafee82b3793b06832f", true},
    {"4KiB", "8-2-0", "71fadf776fff80d5977d027cdf5b4af941c75de6aafee6530ff15997f7173b9b", false},
    {"16KiB", "8-8-0", "5d6414be6742cfc2d41b04c9f12eacd8f78775cf01c1f5cdcf5b370808fe5b74", false},
    {"32KiB", "8-8-2", "2a21b24b412f71b8441648d2cd849229afd278d96964baf1a0f2712f4afbadfd", false},
    {"8MiB", "8-0-0", "ecd683648512ab1765faa2a5f14bab48f676e633467f0aa8aad4b55dcb0652bb", true},
    {"16MiB", "8-2-0", "86c715b389cbfdcb1c84b73e4bf276474652288a6aefcaa9f9600c21b0cff44e", false},
    {"512MiB", "8-0-0", "6babf46ce344ae495d558e7770a585b2382d54f225af8ed0397b8be7c3fcd472", true},
    {"1GiB", "8-2-0", "002b03e3cbccd5d23c5f673a39ec4127ae31a1820be2faa32f72fdc75cf262c2", false},
    {"32GiB", "8-8-0", "82a357d2f2ca81dc61bb45f4a762807aedee1b0a53fd6c4e77b46a01bfef7820", true},
    {"64GiB", "8-8-2", "96f1b4a04c5c51e4759bbf224bbc2ef5a42c7100f16ec0637123f16a845ddfb2", true},
};

START_TEST(sector_cache_id__equals_the_published_names)
{
    const struct sector_size *size = sector_size_by_name(idents[_i].size);
    char want[SECTOR_CACHE_ID_MAX], got[SECTOR_CACHE_ID_MAX];

    ck_assert_ptr_nonnull(size);
    ck_assert_ptr_eq(size, &sector_sizes[_i]);
    snprintf(want, sizeof(want),
             "v28-stacked-proof-of-replication-merkletree-poseidon_hasher-%s-sha256_hasher-%s",
             idents[_i].shape, idents[_i].hash);
    sector_cache_id(size, got);
    ck_assert_str_eq(got, want);
    ck_assert_int_eq(sector_params_digest(size) != NULL, idents[_i].published);
    ck_assert_int_eq(sector_vk_digest(size) != NULL, idents[_i].published);
    ck_assert_int_eq(sector_variant_name(size) != NULL, idents[_i].published);
}
END_TEST

START_TEST(sector_sizes__arities_multiply_to_the_nodes)
{
    const struct sector_size *s = &sector_sizes[_i];
    uint64_t product = 1;

    for (uint32_t level = 0; level < sector_path_levels(s); level++)
        product *= sector_path_arity(s, level);
    ck_assert_uint_eq(product, s->nodes);
    ck_assert_uint_eq(UINT64_C(1) << s->log2_nodes, s->nodes);
    ck_assert_uint_eq(s->nodes * 32, s->bytes);
    ck_assert_ptr_eq(sector_size_by_bytes(s->bytes), s);
    /* ceil(minimum / partitions), at most 18, in both kinds (porep-circuit 2.1) */
    uint32_t minimum = s->layers == 11 ? 176 : 2, ni_minimum = s->layers == 11 ? 2253 : 26;
    ck_assert_uint_eq((minimum + s->partitions - 1) / s->partitions, s->challenges);
    ck_assert_uint_eq((ni_minimum + s->ni_partitions - 1) / s->ni_partitions, s->challenges);
}
END_TEST

START_TEST(sector_sizes__ends_and_rejects_what_is_not_there)
{
    ck_assert_ptr_null(sector_sizes[10].name);
    ck_assert_ptr_null(sector_size_by_name("3KiB"));
    ck_assert_ptr_null(sector_size_by_bytes(3072));
    ck_assert_ptr_null(sector_size_by_bytes(0));
    ck_assert_ptr_null(seal_proof_by_id(SEAL_PROOFS));
    ck_assert_ptr_null(seal_proof_by_name("StackedDrg4KiBV1"));
}
END_TEST

START_TEST(seal_proofs__ids_and_names_agree)
{
    static const char *const sizes[] = {"2KiB", "8MiB", "512MiB", "32GiB", "64GiB"};
    static const struct {
        const char *suffix;
        enum api_version api;
        enum challenge_kind kind;
    } rows[] = {
        {"V1", API_1_0, CHALLENGE_INTERACTIVE},
        {"V1_1", API_1_1, CHALLENGE_INTERACTIVE},
        {"V1_1_Feat_SyntheticPoRep", API_1_2, CHALLENGE_SYNTHETIC},
        {"V1_2_Feat_NonInteractivePoRep", API_1_2, CHALLENGE_NON_INTERACTIVE},
    };
    const struct seal_proof *proof = seal_proof_by_id((uint32_t)_i);
    char name[64];
    uint8_t porep_id[32], want[32] = {(uint8_t)_i};

    ck_assert_uint_eq(proof->id, (uint32_t)_i);
    ck_assert_ptr_eq(proof->size, sector_size_by_name(sizes[_i % 5]));
    snprintf(name, sizeof(name), "StackedDrg%s%s", sizes[_i % 5], rows[_i / 5].suffix);
    ck_assert_str_eq(proof->name, name);
    ck_assert_ptr_eq(seal_proof_by_name(name), proof);
    ck_assert_int_eq(proof->api, rows[_i / 5].api);
    ck_assert_int_eq(proof->kind, rows[_i / 5].kind);
    bool ni = _i >= 15, big = _i % 5 >= 3;
    ck_assert_uint_eq(seal_proof_partitions(proof), ni ? (big ? 126 : 13) : (big ? 10 : 1));
    seal_proof_porep_id(proof, porep_id);
    ck_assert_mem_eq(porep_id, want, sizeof(want));
    snprintf(name, sizeof(name), "StackedDrg%sV1", sizes[_i % 5]);
    ck_assert_str_eq(sector_variant_name(proof->size), name);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("sector");
    TCase *tc = tcase_create("sector");

    tcase_add_loop_test(tc, sector_cache_id__equals_the_published_names, 0, 10);
    tcase_add_loop_test(tc, sector_sizes__arities_multiply_to_the_nodes, 0, 10);
    tcase_add_test(tc, sector_sizes__ends_and_rejects_what_is_not_there);
    tcase_add_loop_test(tc, seal_proofs__ids_and_names_agree, 0, SEAL_PROOFS);
    suite_add_tcase(s, tc);
    return suite_run(s);
}
