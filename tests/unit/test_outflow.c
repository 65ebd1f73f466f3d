/*
 * What an outflow writes and digests is what was put in, and what stops it is heard of by who puts.
 */
#include "gpu/outflow.h"

#include <check.h>
#include <errno.h>
#include <openssl/evp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "tests/lib/files.h"
#include "tests/lib/suite.h"

#define PIECE 5000
#define PUTS 200

static char dir[64], path[128], temporary[160];

static void setup(void)
{
    snprintf(dir, sizeof(dir), "/tmp/proofd-outflow-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(dir));
    snprintf(path, sizeof(path), "%s/file", dir);
    snprintf(temporary, sizeof(temporary), "%s.tmp", path);
}

static void teardown(void)
{
    unlink(path);
    ck_assert_int_eq(rmdir(dir), 0); /* so nothing else was left */
}

static struct outflow *open_it(void)
{
    struct outflow *o = NULL;
    struct errmsg err = {""};

    ck_assert_msg(outflow_open(path, 0, PIECE, &o, &err) == 0, "%s", err.text);
    return o;
}

/* Puts a piece of `len` bytes that say which it is. Returns what outflow_room does. */
static int put(struct outflow *o, size_t len, int fill, struct errmsg *err)
{
    uint8_t *room;
    int ret = outflow_room(o, &room, err);

    if (ret < 0)
        return ret;
    memset(room, fill, len);
    outflow_put(o, len);
    return 0;
}

static size_t piece_len(int i)
{
    return (size_t)i * 977 % (PIECE + 1);
}

START_TEST(outflow__writes_and_digests_all_pieces_in_order)
{
    uint8_t digest[OUTFLOW_DIGEST_BYTES], want[OUTFLOW_DIGEST_BYTES], *bytes = malloc(PUTS * PIECE);
    struct outflow *o = open_it();
    struct errmsg err = {""};
    size_t len = 0;

    for (int i = 0; i < PUTS; i++) {
        memset(bytes + len, i, piece_len(i));
        len += piece_len(i);
        ck_assert_int_eq(put(o, piece_len(i), i, &err), 0);
    }
    ck_assert_int_ne(access(path, F_OK), 0);
    ck_assert_int_eq(outflow_commit(o, digest, &err), 0);
    outflow_close(o);

    ck_assert_int_eq(EVP_Digest(bytes, len, want, NULL, EVP_blake2b512(), NULL), 1);
    ck_assert_mem_eq(digest, want, sizeof(want));
    size_t there_len;
    uint8_t *there = file_read(path, &there_len);
    ck_assert_uint_eq(there_len, len);
    ck_assert_mem_eq(there, bytes, len);
    free(there);
    free(bytes);
}
END_TEST

START_TEST(outflow__closed_too_early_leaves_nothing)
{
    struct outflow *o = open_it();

    ck_assert_int_eq(put(o, PIECE, 1, NULL), 0);
    ck_assert_int_eq(access(temporary, F_OK), 0);
    outflow_close(o);
    ck_assert_int_ne(access(path, F_OK), 0);
    outflow_close(NULL);
}
END_TEST

/* The one who puts does not wait for what will never be written, and hears why. */
START_TEST(outflow__a_failed_write_is_heard_of)
{
    const bool many = _i;
    uint8_t digest[OUTFLOW_DIGEST_BYTES];
    struct rlimit limit = {10 * PIECE, 10 * PIECE};
    struct errmsg err = {""};
    struct outflow *o = open_it();
    int ret = 0;

    signal(SIGXFSZ, SIG_IGN);
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
    for (int i = 0; i < (many ? 1000 : 11) && ret == 0; i++)
        ret = put(o, PIECE, i, &err);
    if (many)
        ck_assert_int_eq(ret, -EFBIG);
    if (ret == 0)
        ret = outflow_commit(o, digest, &err);
    ck_assert_int_eq(ret, -EFBIG);
    ck_assert_ptr_nonnull(strstr(err.text, "/file: cannot write: File too large"));
    outflow_close(o);
    ck_assert_int_ne(access(path, F_OK), 0);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("outflow");
    TCase *tc = tcase_create("outflow");

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, outflow__writes_and_digests_all_pieces_in_order);
    tcase_add_test(tc, outflow__closed_too_early_leaves_nothing);
    tcase_add_loop_test(tc, outflow__a_failed_write_is_heard_of, 0, 2);
    suite_add_tcase(s, tc);
    return suite_run(s);
}
