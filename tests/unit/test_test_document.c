#include "daemon/test_document.h"

#include <check.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tests/lib/suite.h"

static struct errmsg err;

START_TEST(test_document_parse__what_it_writes)
{
    const struct test_document doc = {.partitions = 10, .seed = UINT64_MAX};
    struct test_document again;
    char text[TEST_DOCUMENT_BYTES_MAX];
    size_t len = test_document_format(&doc, text);

    ck_assert(test_document_begins(text, len));
    ck_assert_int_eq(test_document_parse(text, len, &again, &err), 0);
    ck_assert_uint_eq(again.partitions, 10);
    ck_assert_uint_eq(again.seed, UINT64_MAX);
    ck_assert_int_eq(test_document_parse(" { \"proofd-test\" : {\"seed\":7, \"partitions\":1} } ",
                                         47, &again, &err),
                     0);
    ck_assert_uint_eq(again.seed, 7);
}
END_TEST

static const char *const wrong[] = {
    "",
    "{}",
    "{\"proofd-test\":{}}",
    "{\"proofd-test\":{\"partitions\":1}}",
    "{\"proofd-test\":{\"seed\":1}}",
    "{\"proofd-test\":{\"partitions\":0,\"seed\":1}}",
    "{\"proofd-test\":{\"partitions\":1001,\"seed\":1}}",
    "{\"proofd-test\":{\"partitions\":1,\"seed\":18446744073709551616}}",
    "{\"proofd-test\":{\"partitions\":1,\"seed\":-1}}",
    "{\"proofd-test\":{\"partitions\":1,\"seed\":\"\"}}",
    "{\"proofd-test\":{\"partitions\":1,\"seed\":\"1\"}}",
    "{\"proofd-test\":{\"partitions\":1,\"seed\":null}}",
    "{\"proofd-test\":{\"partitions\":1,\"seed\":[1]}}",
    "{\"proofd-test\":{\"partitions\":1,\"seed\":1,\"seed\":2}}",
    "{\"proofd-test\":{\"partitions\":1,\"seed\":1,\"more\":2}}",
    "{\"proofd-test\":{\"partitions\":1,\"seed\":1}",
    "{\"proofd-test\":{\"partitions\":1,\"seed\":1},\"x\":1}",
    "{\"proofd-test\":5}",
    "[{\"proofd-test\":{\"partitions\":1,\"seed\":1}}]",
    "{\"vanilla_proofs\":{\"partitions\":1,\"seed\":1}}",
};

START_TEST(test_document_parse__refuses_anything_else)
{
    struct test_document doc;

    ck_assert_int_eq(test_document_parse(wrong[_i], strlen(wrong[_i]), &doc, &err), -EBADMSG);
}
END_TEST

START_TEST(test_document_begins__with_its_key)
{
    static const char *const others[] = {"",
                                         "{",
                                         "{\"proofd-tes",
                                         "{\"proofd-tesT\"",
                                         "proofd-test",
                                         "{\"seed\"",
                                         "{\" proofd-test\""};

    ck_assert(test_document_begins("\n {\t\"proofd-test\" garbage", 22));
    for (size_t i = 0; i < ARRAY_LEN(others); i++)
        ck_assert_msg(!test_document_begins(others[i], strlen(others[i])), "%s", others[i]);
}
END_TEST

START_TEST(test_document_proof__is_no_proof)
{
    const struct test_document doc = {.partitions = 3, .seed = 9};
    uint8_t one[PROOF_BYTES], two[PROOF_BYTES];
    struct proof proof;

    test_document_proof(&doc, 1, one);
    test_document_proof(&doc, 2, two);
    ck_assert_mem_ne(one, two, PROOF_BYTES);
    ck_assert_str_eq((char *)one, "proofd-test seed=9 partition=1/3");
    ck_assert_int_lt(proof_decode(&proof, one, &err), 0);
}
END_TEST

START_TEST(test_document_read__notices_one_page_of_another)
{
    const struct test_document doc = {.partitions = 3, .seed = 9},
                               other = {.partitions = 3, .seed = 8};
    struct test_document found;
    struct assignment w, page;
    uint32_t partition = 0;
    char *memory = aligned_alloc(4096, 8 * 4096);

    test_document_place(memory, 3 * 4096, memory + 3 * 4096, 5 * 4096, &w);
    test_document_fill(&doc, 2, &w);
    ck_assert_int_eq(test_document_read_witness(&w, &found, &partition, &err), 0);
    ck_assert_int_eq(test_document_read_evaluation(&w, &found, &partition, &err), 0);
    ck_assert_uint_eq(found.seed, 9);
    ck_assert_uint_eq(partition, 2);
    test_document_place(memory + 7 * 4096, 4096, NULL, 0, &page);
    test_document_fill(&other, 2, &page);
    ck_assert_int_eq(test_document_read_witness(&w, &found, &partition, &err), 0);
    ck_assert_int_eq(test_document_read_evaluation(&w, &found, &partition, &err), -EIO);
    ck_assert_str_eq(err.text, "evaluation: page 4 is not of seed 9 partition 2");
    free(memory);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("test_document");
    TCase *tc = tcase_create("test_document");

    tcase_add_test(tc, test_document_parse__what_it_writes);
    tcase_add_loop_test(tc, test_document_parse__refuses_anything_else, 0, ARRAY_LEN(wrong));
    tcase_add_test(tc, test_document_begins__with_its_key);
    tcase_add_test(tc, test_document_proof__is_no_proof);
    tcase_add_test(tc, test_document_read__notices_one_page_of_another);
    suite_add_tcase(s, tc);
    return suite_run(s);
}
