#include "daemon/test_work.h"

#include <check.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tests/lib/suite.h"

static struct errmsg err;

START_TEST(test_work_proof__is_no_proof)
{
    const struct test_document doc = {.partitions = 3, .seed = 9};
    uint8_t one[PROOF_BYTES], two[PROOF_BYTES];
    struct proof proof;

    test_work_proof(&doc, 1, one);
    test_work_proof(&doc, 2, two);
    ck_assert_mem_ne(one, two, PROOF_BYTES);
    ck_assert_str_eq((char *)one, "proofd-test seed=9 partition=1/3");
    ck_assert_int_lt(proof_decode(&proof, one, &err), 0);
}
END_TEST

START_TEST(test_work_read__notices_one_page_of_another)
{
    const struct test_document doc = {.partitions = 3, .seed = 9},
                               other = {.partitions = 3, .seed = 8};
    struct test_document found;
    struct assignment w, page;
    uint32_t partition = 0;
    char *memory = aligned_alloc(4096, 8 * 4096);

    test_work_place(memory, 3 * 4096, memory + 3 * 4096, 5 * 4096, &w);
    test_work_fill(&doc, 2, &w);
    ck_assert_int_eq(test_work_read_witness(&w, &found, &partition, &err), 0);
    ck_assert_int_eq(test_work_read_evaluation(&w, &found, &partition, &err), 0);
    ck_assert_uint_eq(found.seed, 9);
    ck_assert_uint_eq(partition, 2);
    test_work_place(memory + 7 * 4096, 4096, NULL, 0, &page);
    test_work_fill(&other, 2, &page);
    ck_assert_int_eq(test_work_read_witness(&w, &found, &partition, &err), 0);
    ck_assert_int_eq(test_work_read_evaluation(&w, &found, &partition, &err), -EIO);
    ck_assert_str_eq(err.text, "evaluation: page 4 is not of seed 9 partition 2");
    free(memory);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("test_work");
    TCase *tc = tcase_create("test_work");

    tcase_add_test(tc, test_work_proof__is_no_proof);
    tcase_add_test(tc, test_work_read__notices_one_page_of_another);
    suite_add_tcase(s, tc);
    return suite_run(s);
}
