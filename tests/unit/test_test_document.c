#include "numa/circuit/test_document.h"

#include <check.h>
#include <errno.h>
#include <string.h>

#include "numa/circuit/c1_reader.h"
#include "tests/lib/files.h"
#include "tests/lib/suite.h"

static struct errmsg err;

START_TEST(test_document_parse__what_it_writes)
{
    const struct test_document doc = {.partitions = 10, .seed = UINT64_MAX};
    struct test_document again;
    char text[TEST_DOCUMENT_BYTES_MAX];
    size_t len = test_document_format(&doc, text);

    ck_assert_int_eq(test_document_match(text, len), TEST_DOCUMENT_YES);
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
    "{\"proofd-test\":{\"partitions\":101,\"seed\":1}}",
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

START_TEST(test_document_match__by_the_first_key)
{
    static const char *const others[] = {"{\"seed\"",   "{\" proofd-test\"", "{\"proofd-tesT\"",
                                         "proofd-test", "\x1f\x8b",          "[{\"proofd-test\""};
    static const char whole[] = "\n {\t\"proofd-test\"";

    for (size_t i = 0; i < ARRAY_LEN(others); i++)
        ck_assert_msg(test_document_match(others[i], strlen(others[i])) == TEST_DOCUMENT_NO, "%s",
                      others[i]);
    for (size_t len = 0; len < strlen(whole); len++)
        ck_assert_int_eq(test_document_match(whole, len), TEST_DOCUMENT_TOO_SHORT);
    ck_assert_int_eq(test_document_match(whole, strlen(whole)), TEST_DOCUMENT_YES);
    ck_assert_int_eq(test_document_match("{\0\"", 3), TEST_DOCUMENT_NO);
}
END_TEST

/* A reader takes them in pieces of any size where they are allowed, and nowhere else; other files are read as ever. */
START_TEST(c1_reader__takes_them_where_they_are_allowed)
{
    const struct test_document doc = {.partitions = 7, .seed = 3};
    char text[TEST_DOCUMENT_BYTES_MAX];
    size_t text_len = test_document_format(&doc, text), len;
    struct c1_reader *r = NULL;
    struct c1_extra extra;
    struct c1 *c1 = NULL;

    ck_assert_int_eq(c1_reader_create(C1_CHECK_STRICT, NULL, &r), 0);
    ck_assert_int_eq(c1_reader_feed(r, text, text_len, &err), -EBADMSG);
    c1_reader_destroy(r);
    test_documents_allow();
    for (size_t step = 1; step <= text_len; step += 5) {
        ck_assert_int_eq(c1_reader_create(C1_CHECK_STRICT, NULL, &r), 0);
        for (size_t at = 0; at < text_len; at += step)
            ck_assert_int_eq(c1_reader_feed(r, text + at, min_size(step, text_len - at), &err), 0);
        ck_assert_int_eq(c1_reader_finish(r, &c1, &extra, &err), 0);
        ck_assert_ptr_nonnull(c1_test_document(c1));
        ck_assert_uint_eq(c1_partitions(c1), 7);
        ck_assert_mem_eq(c1_bincode(c1, &len), text, text_len);
        ck_assert_uint_eq(len, text_len);
        c1_destroy(c1);
        c1_reader_destroy(r);
    }
    ck_assert_int_eq(c1_reader_create(C1_CHECK_STRICT, NULL, &r), 0);
    ck_assert_int_eq(c1_reader_feed(r, "{\"proofd-test\":", 15, &err), 0);
    memset(text, ' ', sizeof(text));
    ck_assert_int_eq(c1_reader_feed(r, text, sizeof(text), &err), -EBADMSG);
    c1_reader_destroy(r);
    ck_assert_int_eq(
        c1_read_file(c1_path("2KiB-sealed", "c1.json"), C1_CHECK_FORM, NULL, &c1, &extra, &err), 0);
    ck_assert_ptr_null(c1_test_document(c1));
    c1_destroy(c1);
    ck_assert_int_eq(c1_reader_create(C1_CHECK_STRICT, NULL, &r), 0);
    ck_assert_int_eq(c1_reader_feed(r, " {\n", 3, &err), 0);
    ck_assert_int_eq(c1_reader_finish(r, &c1, &extra, &err), -EBADMSG);
    c1_reader_destroy(r);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("test_document");
    TCase *tc = tcase_create("test_document");

    tcase_add_test(tc, test_document_parse__what_it_writes);
    tcase_add_loop_test(tc, test_document_parse__refuses_anything_else, 0, ARRAY_LEN(wrong));
    tcase_add_test(tc, test_document_match__by_the_first_key);
    tcase_add_test(tc, c1_reader__takes_them_where_they_are_allowed);
    suite_add_tcase(s, tc);
    return suite_run(s);
}
