/*
 * What the reader refuses, and what it says then. Nothing here may crash, hang or eat memory; the program is
 * meant to be run under sanitizers too.
 */
#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "numa/circuit/c1_document.h"
#include "numa/circuit/c1_reader.h"
#include "tests/lib/c1_forms.h"
#include "tests/lib/files.h"
#include "tests/lib/suite.h"

#define SEED 77001

static struct errmsg err; /* what the last read_bytes said */

static int read_bytes(const void *bytes, size_t len, enum c1_checks checks)
{
    struct c1_reader *r = NULL;
    struct c1 *c1 = NULL;
    struct c1_extra extra;

    err.text[0] = '\0';
    ck_assert_int_eq(c1_reader_create(checks, NULL, &r), 0);
    int ret = c1_reader_feed(r, bytes, len, &err);
    if (ret == 0)
        ret = c1_reader_finish(r, &c1, &extra, &err);
    else
        ck_assert_int_eq(c1_reader_finish(r, &c1, &extra, NULL), ret); /* for good */
    c1_reader_destroy(r);
    c1_destroy(c1);
    return ret;
}

static struct text bare_json(void)
{
    struct text t = {0};

    t.bytes = file_read(c1_path("2KiB-sealed", "bare.json.zst"), &t.len);
    return t;
}

static struct text bincode(void)
{
    struct text t = {0};

    t.bytes = file_read(c1_path("2KiB-sealed", "c1.bincode"), &t.len);
    return t;
}

/* The text with the first `from` after `after` replaced by `to`. */
static struct text replaced(const struct text *t, const char *after, const char *from, const char *to)
{
    struct text out = {0};
    const char *start = strstr((const char *)t->bytes, after);
    const char *at = start ? strstr(start, from) : NULL;

    ck_assert_msg(at != NULL, "%s, %s", after, from);
    size_t before = (size_t)(at - (const char *)t->bytes);
    text_add(&out, t->bytes, before);
    text_addf(&out, "%s", to);
    text_add(&out, at + strlen(from), t->len - before - strlen(from));
    return out;
}

static void refused(const void *bytes, size_t len, int code, const char *says)
{
    int ret = read_bytes(bytes, len, C1_CHECK_STRICT);

    ck_assert_msg(ret == code && strstr(err.text, says), "got %d, wanted %d with \"%s\": %s", ret, code, says,
                  err.text);
}

static void refused_text(const char *text, int code, const char *says)
{
    refused(text, strlen(text), code, says);
}

/* ----------------------------------------------------------------------------------- truncations */

/* Every prefix; form checks alone, which is where a prefix fails. */
static void every_prefix_is_refused(const uint8_t *bytes, size_t len)
{
    for (size_t end = 0; end < len; end++) {
        int ret = read_bytes(bytes, end, C1_CHECK_FORM);
        ck_assert_msg(ret == -EBADMSG, "%zu of %zu bytes: %d", end, len, ret);
        ck_assert_msg(err.text[0] != '\0', "%zu", end);
    }
}

START_TEST(c1_bincode__truncated_at_every_byte)
{
    struct text t = bincode();

    every_prefix_is_refused(t.bytes, t.len);
    free(t.bytes);
}
END_TEST

/* Every prefix of the JSON, in time that grows with its length alone: being asked whether it is complete
 * leaves a document as it was. */
START_TEST(c1_json__truncated_at_every_byte)
{
    struct text t = bare_json();
    struct c1_build build;
    struct c1_document *d = NULL;
    char says[96];

    c1_build_init(&build, C1_CHECK_FORM, NULL);
    ck_assert_int_eq(c1_document_create(&build, "file", 0, &d), 0);
    for (size_t end = 0; end < t.len; end++) {
        ck_assert_int_eq(c1_document_finish(d, &err), -EBADMSG);
        snprintf(says, sizeof(says), "ends before the document does (byte %zu of the file)", end);
        ck_assert_msg(strstr(err.text, says) != NULL, "%s", err.text);
        build.described = false;
        ck_assert_msg(c1_document_feed(d, t.bytes + end, 1, &err) == 0, "%s", err.text);
    }
    ck_assert_int_eq(c1_document_finish(d, &err), 0);
    c1_document_destroy(d);
    c1_build_fini(&build);
    free(t.bytes);
}
END_TEST

/* The same through the reader is quadratic: every byte of the beginning, the end and where a challenge
 * begins, and every 397th between. */
START_TEST(c1_json__truncated_at_many_bytes)
{
    struct text t = bare_json();
    size_t second = (size_t)(strstr((char *)t.bytes, "},{\"comm_d_proofs\"") - (char *)t.bytes);

    for (size_t end = 0; end < t.len;) {
        ck_assert_msg(read_bytes(t.bytes, end, C1_CHECK_FORM) == -EBADMSG, "%zu", end);
        ck_assert_ptr_nonnull(strstr(err.text, end < 4 ? "not a C1 file" : "ends before the document does"));
        bool dense = end < 700 || (end + 300 > second && end < second + 300) || end + 700 > t.len;
        end += dense ? 1 : 397;
    }
    free(t.bytes);
}
END_TEST

START_TEST(c1_compressed__truncated_at_many_bytes)
{
    struct text t = bare_json(), gzip = {0}, zstd = {0}, wrapper = {0};

    write_gzip(t.bytes, t.len, &gzip);
    write_zstd(t.bytes, t.len, &zstd);
    write_wrapper(&t, 1, 2048, NULL, &wrapper);
    for (size_t end = 0; end < gzip.len; end += 1 + end / 37)
        ck_assert_int_eq(read_bytes(gzip.bytes, end, C1_CHECK_FORM), -EBADMSG);
    ck_assert_int_eq(read_bytes(gzip.bytes, gzip.len - 1, C1_CHECK_FORM), -EBADMSG);
    for (size_t end = 0; end < zstd.len; end += 1 + end / 37)
        ck_assert_int_eq(read_bytes(zstd.bytes, end, C1_CHECK_FORM), -EBADMSG);
    ck_assert_int_eq(read_bytes(zstd.bytes, zstd.len - 1, C1_CHECK_FORM), -EBADMSG);
    for (size_t end = 0; end < wrapper.len; end += 1 + end / 37)
        ck_assert_int_eq(read_bytes(wrapper.bytes, end, C1_CHECK_FORM), -EBADMSG);
    free(t.bytes), free(gzip.bytes), free(zstd.bytes), free(wrapper.bytes);
}
END_TEST

/* -------------------------------------------------------------------------------- one byte flipped */

#define FLIP_TESTS 16

/* Under sanitizers, one byte in eleven. */
static bool quick(void)
{
    return getenv("PROOFD_QUICK") != NULL;
}

/* Every byte of the decoded form is bound by some check, but the ticket, which only the miner's identity
 * binds, and that is not in a bare C1. */
START_TEST(c1_bincode__any_flipped_byte_is_found)
{
    struct text t = bincode();
    size_t ticket = t.len - 32, stride = FLIP_TESTS * (quick() ? 11 : 1);

    for (size_t at = (size_t)_i; at < t.len; at += stride) {
        uint8_t bit = (uint8_t)(1u << (at / FLIP_TESTS % 8));
        t.bytes[at] ^= bit;
        int ret = read_bytes(t.bytes, t.len, C1_CHECK_STRICT);
        ck_assert_msg((ret < 0) == (at < ticket), "byte %zu: %d", at, ret);
        t.bytes[at] ^= bit;
    }
    free(t.bytes);
}
END_TEST

START_TEST(c1_json__any_flipped_byte_is_found_or_changes_nothing)
{
    struct text t = bare_json();
    struct c1 *c1 = NULL;
    struct c1_extra extra;
    size_t len;

    ck_assert_int_eq(c1_read_file(c1_path("2KiB-sealed", "bare.json.zst"), C1_CHECK_FORM, NULL, &c1, &extra,
                                  NULL),
                     0);
    const uint8_t *image = c1_bincode(c1, &len);
    size_t ticket = (size_t)(strstr((char *)t.bytes, "\"ticket\"") - (char *)t.bytes);
    for (size_t at = (size_t)_i; at < ticket; at += 331) {
        uint8_t bit = (uint8_t)(1u << (at / 331 % 8));
        struct c1_reader *r = NULL;
        struct c1 *other = NULL;
        t.bytes[at] ^= bit;
        ck_assert_int_eq(c1_reader_create(C1_CHECK_STRICT, NULL, &r), 0);
        int ret = c1_reader_feed(r, t.bytes, t.len, &err);
        if (ret == 0)
            ret = c1_reader_finish(r, &other, &extra, &err);
        if (ret == 0) { /* a key that may be absent was spoilt */
            const uint8_t *other_image = c1_bincode(other, &len);
            ck_assert_mem_eq(image, other_image, len);
        }
        c1_destroy(other);
        c1_reader_destroy(r);
        t.bytes[at] ^= bit;
    }
    c1_destroy(c1);
    free(t.bytes);
}
END_TEST

/* --------------------------------------------------------------------------- what is said and where */

START_TEST(c1_json__wrong_values_name_the_place)
{
    static const char proof[] = "vanilla_proofs.StackedDrg2KiBV1[0]";
    static const struct {
        const char *after, *from, *to;
        int code;
        const char *says;
    } cases[] = {
        {"registered_proof", "StackedDrg2KiBV1_1", "StackedDrg2KiBV9", -EBADMSG, "registered_proof: found"},
        {"registered_proof", "StackedDrg2KiBV1_1", "StackedDrg2KiBV1_2_Feat_NonInteractivePoRep", -EINVAL,
         "not supported by this version"},
        {"registered_proof", "StackedDrg2KiBV1_1", "StackedDrg8MiBV1_1", -EBADMSG, "StackedDrg8MiBV1_1"},
        {"registered_proof", "StackedDrg2KiBV1_1", "StackedDrg2KiBV1", -EBADMSG, "wanted"},
        {"registered_proof", "\"StackedDrg2KiBV1_1\"", "7", -EBADMSG, "found a number, wanted the name"},
        {"vanilla_proofs", "StackedDrg2KiBV1", "StackedDrg3KiBV1", -EBADMSG, "vanilla_proofs: found key"},
        {"vanilla_proofs", "StackedDrg2KiBV1", "StackedDrg8MiBV1", -EBADMSG, "of StackedDrg8MiBV1"},
        {"\"root\"", "\"root\"", "\"rood\"", -EBADMSG, "comm_d_proofs.data.Single: key root is missing"},
        {"\"root\"", "[", "[256,", -EBADMSG, ".Single.root[0]: found 256, wanted a number from 0 to 255"},
        {"\"root\"", "[", "[-1,", -EBADMSG, ".Single.root[0]: found -1"},
        {"\"root\"", "[", "[1.0,", -EBADMSG, ".Single.root[0]: found 1.0"},
        {"\"root\"", "[", "[07,", -EBADMSG, "found '7'"},
        {"\"root\"", "[", "[\"a\",", -EBADMSG, "found a string, wanted a number from 0 to 255"},
        {"\"root\"", "[", "[7,", -EBADMSG, "Single.root[32]: found more values, wanted 32"},
        {"\"index\":", "\"index\":", "\"index\":2", -EBADMSG, ".path.path[0].index: found 2"},
        {"\"index\":", "\"index\":", "\"index\":99999999999999999999", -EBADMSG, "wanted a 64-bit number"},
        {"\"Single\"", "\"Single\"", "\"Sub\"", -EBADMSG, "comm_d_proofs.data: found key Sub, wanted Single"},
        {"\"Single\"", "\"Single\"", "\"\\u001b[2J\\n\"", -EBADMSG, "data: found key \\x1b[2J\\n, wanted Single"},
        {"registered_proof", "StackedDrg2KiBV1_1", "\\u0007", -EBADMSG, "found \"\\x07\", wanted"},
        {"\"layer_index\":1", "1", "2", -EBADMSG, "labeling_proofs[0].layer_index: found 2, wanted 1"},
        {"\"node\":", "\"node\":", "\"node\":1", -EBADMSG, "labeling_proofs[0].node: found 1"},
        {"\"_h\":null", "null", "0", -EBADMSG, "c_x.column._h: found a number, wanted null"},
        {"\"root\"", "\"root\":", "\"leaf\":[0],\"root\":", -EBADMSG, "Single.leaf: found 1 values, wanted 32"},
        {"\"comm_r\":", "\"comm_r\":", "\"seed\":null,\"comm_r\":", -EBADMSG, "seed: found null"},
    };
    struct text t = bare_json();

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct text bad = replaced(&t, cases[i].after, cases[i].from, cases[i].to);
        refused(bad.bytes, bad.len, cases[i].code, cases[i].says);
        ck_assert_msg(strstr(err.text, "registered_proof: registered_proof") == NULL, "%s",
                      err.text);
        if (strstr(cases[i].says, "[0]"))
            ck_assert_msg(strstr(err.text, proof) != NULL, "%s", err.text);
        free(bad.bytes);
    }
    free(t.bytes);
}
END_TEST

START_TEST(c1_json__says_the_byte)
{
    struct text t = bare_json(), wrapper = {0}, packed = {0}, base64 = {0};
    struct text bad = replaced(&t, "\"node\":", "\"node\":", "\"node\":x");
    char says[64];
    size_t at = (size_t)(strstr((char *)bad.bytes, "\"node\":x") - (char *)bad.bytes) + 7;

    snprintf(says, sizeof(says), "(byte %zu of the file)", at);
    refused(bad.bytes, bad.len, -EBADMSG, says);
    snprintf(says, sizeof(says), "(byte %zu of the text decoded from Phase1Out)", at);
    write_wrapper(&bad, 1, 2048, NULL, &wrapper);
    refused(wrapper.bytes, wrapper.len, -EBADMSG, says);
    snprintf(says, sizeof(says), "(byte %zu of the decompressed text)", at);
    write_gzip(bad.bytes, bad.len, &packed);
    refused(packed.bytes, packed.len, -EBADMSG, says);
    snprintf(says, sizeof(says), "(byte %zu of the text decoded from base64)", at);
    write_base64(bad.bytes, bad.len, &base64);
    refused(base64.bytes, base64.len, -EBADMSG, says);
    /* White space in front counts. */
    bad.len = 0;
    text_addf(&bad, "\n\n      {\"comm_r\":7}");
    refused(bad.bytes, bad.len, -EBADMSG, "comm_r: found a number, wanted an array of 32 bytes (byte 18 of");
    free(t.bytes), free(bad.bytes), free(wrapper.bytes), free(packed.bytes), free(base64.bytes);
}
END_TEST

START_TEST(c1_json__duplicate_keys)
{
    static const char *const keys[] = {"comm_r", "registered_proof", "root", "path", "index", "hashes",
                                       "column", "rows", "_h", "node", "layer_index", "Single", "data",
                                       "drg_parents", "encoding_proof", "vanilla_proofs"};
    struct text t = bare_json();

    /* A duplicate with a value that any reader would skip: it is the key that is refused. */
    for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
        char key[64], says[64];
        snprintf(key, sizeof(key), "\"%s\":", keys[i]);
        snprintf(says, sizeof(says), "%s is there twice", keys[i]);
        char *at = strstr((char *)t.bytes, key);
        size_t before = (size_t)(at - (char *)t.bytes);
        struct text bad = {0};
        /* After the value: find its end by counting brackets. */
        size_t end = before + strlen(key);
        int depth = 0;
        do {
            char c = (char)t.bytes[end++];
            depth += (c == '[' || c == '{') - (c == ']' || c == '}');
        } while (depth > 0 || (t.bytes[end] != ',' && t.bytes[end] != '}'));
        text_add(&bad, t.bytes, end);
        text_addf(&bad, ",%s", key);
        text_add(&bad, t.bytes + before + strlen(key), end - before - strlen(key));
        text_add(&bad, t.bytes + end, t.len - end);
        refused(bad.bytes, bad.len, -EBADMSG, says);
        free(bad.bytes);
    }
    free(t.bytes);
}
END_TEST

START_TEST(c1_json__digests_at_the_modulus)
{
    struct text t = bare_json();
    char modulus[256] = "", below[256] = "";
    static const uint8_t q[32] = {1,    0,    0,    0,    0xff, 0xff, 0xff, 0xff, 0xfe, 0x5b, 0xfe,
                                  0xff, 2,    0xa4, 0xbd, 0x53, 5,    0xd8, 0xa1, 9,    8,    0xd8,
                                  0x39, 0x33, 0x48, 0x7d, 0x9d, 0x29, 0x53, 0xa7, 0xed, 0x73};
    for (int i = 0; i < 32; i++) {
        snprintf(modulus + strlen(modulus), 8, "%u,", q[i]);
        snprintf(below + strlen(below), 8, "%u,", i == 0 ? 0u : q[i]);
    }
    modulus[strlen(modulus) - 1] = below[strlen(below) - 1] = '\0';
    char *rows = strstr((char *)t.bytes, "\"rows\":[[") + 9;
    char old[256] = "";
    snprintf(old, sizeof(old), "%.*s", (int)strcspn(rows, "]"), rows);
    struct text bad = replaced(&t, "\"rows\":[[", old, modulus);
    ck_assert_int_eq(read_bytes(bad.bytes, bad.len, C1_CHECK_FORM), -EBADMSG);
    ck_assert_ptr_nonnull(strstr(err.text, "c_x.column.rows[0]: found 01000000fffffffffe5bfeff02a4bd53"));
    ck_assert_ptr_nonnull(strstr(err.text, "below the scalar modulus"));
    free(bad.bytes);
    bad = replaced(&t, "\"rows\":[[", old, below);
    ck_assert_int_eq(read_bytes(bad.bytes, bad.len, C1_CHECK_FORM), 0);
    ck_assert_int_lt(read_bytes(bad.bytes, bad.len, C1_CHECK_STRICT), 0);
    free(bad.bytes), free(t.bytes);
}
END_TEST

START_TEST(c1_json__counts)
{
    struct text t = bare_json(), bad = {0};
    char *first = strstr((char *)t.bytes, "[[{") + 2, *second = strstr(first, ",{\"comm_d_proofs\"");
    char *end = strstr(second, "]]},\"comm_r\"");

    /* One challenge, none, three; two partitions. */
    text_add(&bad, t.bytes, (size_t)(second - (char *)t.bytes));
    text_addf(&bad, "%s", "]]}}");
    refused(bad.bytes, bad.len, -EBADMSG, "vanilla_proofs.StackedDrg2KiBV1[0]: found 1 values, wanted 2");
    bad.len = (size_t)(first - (char *)t.bytes);
    text_addf(&bad, "]]}}");
    refused(bad.bytes, bad.len, -EBADMSG, "StackedDrg2KiBV1[0]: found 0 values, wanted 2");
    bad.len--, bad.len -= 4;
    text_addf(&bad, "]}}");
    refused(bad.bytes, bad.len, -EBADMSG, "synthetic");
    bad.len = 0;
    text_add(&bad, t.bytes, (size_t)(end - (char *)t.bytes));
    text_addf(&bad, ",{}]]}}");
    refused(bad.bytes, bad.len, -EBADMSG, "StackedDrg2KiBV1[0][2]: found more values, wanted 2");
    bad.len = 0;
    text_add(&bad, t.bytes, (size_t)(end - (char *)t.bytes));
    text_addf(&bad, "],[]]}}");
    refused(bad.bytes, bad.len, -EBADMSG, "StackedDrg2KiBV1[1]: found more values, wanted 1");
    /* Before the proof type is known, more partitions are those of a non-interactive one. */
    char *vanilla = strstr((char *)bad.bytes, "\"vanilla_proofs\"");
    struct text late = {0};
    text_addf(&late, "{");
    text_add(&late, vanilla, bad.len - (size_t)(vanilla - (char *)bad.bytes));
    refused(late.bytes, late.len, -EINVAL, "non-interactive");
    free(t.bytes), free(bad.bytes), free(late.bytes);
}
END_TEST

START_TEST(c1_json__not_json)
{
    static const struct {
        const char *text;
        const char *says;
    } cases[] = {
        {"[]   ", "not a C1 file: found byte 0x5b"},
        {"{}   ", "no C1 in here"},
        {"{\"a\":}", "wanted a value"},
        {"{\"a\" 1}", "wanted ':'"},
        {"{a:1}   ", "wanted a key"},
        {"{\"a\":1,}", "wanted a key"},
        {"{\"a\":[1,]}", "wanted a value"},
        {"{\"a\":[1 2]}", "wanted ',' or ']'"},
        {"{\"a\":1]", "wanted ',' or '}'"},
        {"{\"a\":nul}", "wanted null"},
        {"{\"a\":01}", "found '1'"},
        {"{\"a\":-}", "a digit"},
        {"{\"a\":1.}", "a digit"},
        {"{\"a\":1e}", "a digit"},
        {"{\"a\":+1}", "wanted a value"},
        {"{\"a\":\"\\x\"}", "an escape"},
        {"{\"a\":\"\\u12g4\"}", "a hex digit"},
        {"{\"a\":\"\\ud800\"}", "surrogate"},
        {"{\"a\":\"\\ud800x\"}", "surrogate"},
        {"{\"a\":\"\\ud800\\n\"}", "surrogate"},
        {"{\"a\":\"\\udc00\"}", "surrogate"},
        {"{\"a\":\"\\ud800\\ud800\"}", "surrogate"},
        {"{\"a\":\"\n\"}", "control character"},
        {"{\"a\":\"\xff\"}", "not UTF-8"},
        {"{\"a\":\"\xc0\x80\"}", "not UTF-8"},
        {"{\"a\":\"\xe0\x80\x80\"}", "not UTF-8"},
        {"{\"a\":\"\xed\xa0\x80\"}", "not UTF-8"},
        {"{\"a\":\"\xf4\x90\x80\x80\"}", "not UTF-8"},
        {"{\"a\":\"\xc3\"}", "not UTF-8"},
        {"{\"\xc3(\":1}", "not UTF-8"},
        {"{\"a\":1} x", "no C1 in here"},
        {"\xef\xbb\xbf{}", "not a C1 file"},
        {"{\"Phase1Out\":7}", "Phase1Out: found a number, wanted base64"},
        {"{\"Phase1Out\":\"\"}", "ends before the document does"},
        {"{\"Phase1Out\":\"e30=\"}", "key registered_proof is missing"},
        {"{\"Phase1Out\":\"e3\"}", "within a group"},
        {"{\"Phase1Out\":\"e30*\"}", "character 3 of the string"},
        {"{\"Phase1Out\":\"e31=\"}", "does not belong"},
        {"{\"Phase1Out\":\"=\"}", "does not belong"},
        {"{\"Phase1Out\":\"e30==\"}", "does not belong"},
        {"{\"Phase1Out\":\"e30=e30=\"}", "does not belong"},
        {"{\"Phase1Out\":\"eyJQaGFzZTFPdXQiOiIifQ==\"}", "more than one C1"},
        {"{\"Phase1Out\":\"x", "byte"},
        {"{\"c1out\":{}}", "key registered_proof is missing"},
        {"{\"c1out\":{},\"c1out\":{}}", "registered_proof"},
        {"{\"comm_r\":[],\"c1out\":{}}", "comm_r: found 0 values"},
        {"{\"c1out\":7}", "c1out: found a number, wanted an object"},
        {"{\"prover_id\":[1,2]}", "prover_id: found 2 values, wanted 32"},
        {"{\"sector_id\":-1}", "sector_id: found -1"},
        {"{\"SectorNum\":1.5}", "SectorNum: found 1.5"},
        {"hello, world", "not a C1 file: byte 5 of the file: byte 0x2c does not belong here in base64"},
        {"hello and goodbye, world", "not a C1 file: byte 17 of the file: byte 0x2c"},
        {"aGVsbG8=", "not a C1 file: found byte 0x68"},
        {"aGVsbG8", "not a C1 file: base64 ends within a group"},
        {"", "not a C1 file: nothing in the file"},
        {"    \n\t ", "not a C1 file"},
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        refused_text(cases[i].text, -EBADMSG, cases[i].says);
    refused_text("eyJQaGFzZTFPdXQi*", -EBADMSG, "byte 16 of the file: byte 0x2a does not belong here");
    ck_assert_ptr_null(strstr(err.text, "not a C1 file")); /* it begins with a document */
}
END_TEST

START_TEST(c1_json__nothing_may_follow)
{
    struct text t = bare_json();

    text_addf(&t, " \n\t");
    ck_assert_int_eq(read_bytes(t.bytes, t.len, C1_CHECK_FORM), 0);
    text_addf(&t, "{");
    refused(t.bytes, t.len, -EBADMSG, "found '{', wanted nothing after the document");
    free(t.bytes);
}
END_TEST

START_TEST(c1_json__the_wrapper_contradicts)
{
    struct text t = bare_json(), bad = {0};

    write_wrapper(&t, 1, 8 << 20, NULL, &bad);
    refused(bad.bytes, bad.len, -EBADMSG, "SectorSize: found 8388608, wanted 2048");
    bad.len = 0;
    write_wrapper(&t, 2, 2048, NULL, &bad); /* no miner: the number alone says nothing */
    ck_assert_int_eq(read_bytes(bad.bytes, bad.len, C1_CHECK_STRICT), 0);
    bad.len = 0;
    write_wrapper(&t, 2, 2048, "f01001", &bad);
    refused(bad.bytes, bad.len, -EBADMSG, "replica_id: found d6782e0a");
    bad.len = 0;
    write_wrapper(&t, 1, 2048, "f01002", &bad);
    refused(bad.bytes, bad.len, -EBADMSG, "replica_id: found d6782e0a");
    bad.len = 0;
    write_wrapper(&t, 1, 2048, "f3qqq", &bad); /* an address without actor id says nothing */
    ck_assert_int_eq(read_bytes(bad.bytes, bad.len, C1_CHECK_STRICT), 0);
    for (int miner = 1001; miner <= 1002; miner++) { /* its id alone */
        bad.len = 0;
        write_wrapper(&t, 1, 2048, NULL, &bad);
        bad.len--;
        text_addf(&bad, ",\"Miner\":%d}", miner);
        if (miner == 1001)
            ck_assert_int_eq(read_bytes(bad.bytes, bad.len, C1_CHECK_STRICT), 0);
        else
            refused(bad.bytes, bad.len, -EBADMSG, "replica_id: found d6782e0a");
    }
    free(bad.bytes), free(t.bytes);
}
END_TEST

/* Overwrites one field of the decoded form and reads it as bincode. */
static void patched(size_t offset, const char *hex, const char *says)
{
    struct text t = bincode();

    ck_assert_int_eq(hex_decode(t.bytes + offset, hex, strlen(hex) / 2), 0);
    refused(t.bytes, t.len, -EBADMSG, says);
    free(t.bytes);
}

START_TEST(c1_strict__each_check_names_its_field)
{
    struct text t = bincode();
    struct c1 *c1 = NULL;
    struct challenge_proof p;

    uint8_t *copy = malloc(t.len);
    memcpy(copy, t.bytes, t.len);
    ck_assert_int_eq(c1_from_bincode(copy, t.len, &c1, &err), 0);
    c1_challenge(c1, 0, 1, &p);
#define AT(pointer) ((size_t)((pointer) - copy))
    patched(AT(p.comm_d.leaf), "00", "comm_r_last_proof.data.Single.leaf: found");
    patched(AT(p.comm_d.root), "00", "[0][1].comm_d_proofs.data.Single.root: found");
    patched(AT(p.comm_r_last.root), "00", "comm_r_last_proof.data.Single.root: found");
    patched(AT(p.c_x.rows), "00", "c_x.column.rows[0]: found");
    patched(AT(p.parents[3].rows), "00", "labeling_proofs[0].parents[3]: found");
    patched(AT(p.parents[13].rows) + 32, "00", "exp_parents[7].inclusion_proof.data.Single.leaf: found");
    patched(AT(p.c_x.inclusion.leaf), "00", "c_x.inclusion_proof.data.Single.leaf: found");
    patched(AT(p.parents[7].inclusion.first) + 8, "00", "exp_parents[1].inclusion_proof.data.Single.root");
    patched(AT(p.parents[7].rows) - 12, "00", "exp_parents[1].column.index: found");
    patched(AT(p.labels[1].parents) + 36 * 32, "00", "labeling_proofs[1].parents[36]: found");
    patched(AT(p.labels[1].parents) + 37 * 32 + 4, "00", "[0][1].labeling_proofs[1].node: found 0");
    patched(AT(p.encoding.parents), "00", "encoding_proof.parents[0]: found");
    patched(AT(c1_comm_r(c1)), "00", "comm_r: found");
    patched(AT(c1_seed(c1)), "00", "the challenge that follows from replica_id and seed");
    patched(AT(c1_replica_id(c1)), "00", "the challenge that follows from replica_id and seed");
    patched(0, "00", "drg_parents[0].column.index: found"); /* V1: another graph */
#undef AT
    c1_destroy(c1);
    free(t.bytes);
}
END_TEST

START_TEST(c1_inner_form__no_proof_type_fits)
{
    struct text t = bincode();

    t.bytes[t.len - 64] ^= 1; /* seed */
    refused(t.bytes + 8, t.len - 8, -EBADMSG, "none fits: as StackedDrg2KiBV1_1: ");
    ck_assert_ptr_nonnull(strstr(err.text, "as StackedDrg2KiBV1: "));
    ck_assert_ptr_nonnull(strstr(err.text, "as StackedDrg2KiBV1_1_Feat_SyntheticPoRep: "));
    free(t.bytes);
}
END_TEST

START_TEST(c1_bincode__wrong_form)
{
    struct text t = bincode();
    uint8_t ni[128] = {15, 0, 0, 0, 0, 0, 0, 0, 13, 0, 0, 0, 0, 0, 0, 0, 2};

    text_add(&t, "x", 1);
    refused(t.bytes, t.len, -EBADMSG, "more follows where the C1 should end");
    refused(t.bytes, t.len - 2, -EBADMSG, "ends after 28255 bytes of the decoded form, wanted 28256");
    refused(ni, sizeof(ni), -EINVAL, "not supported by this version");
    refused(ni + 8, sizeof(ni) - 8, -EBADMSG, "path of 0");
    ni[8 + 84] = 6;
    refused(ni + 8, sizeof(ni) - 8, -EINVAL, "13 partitions: non-interactive");
    memset(ni, 0, sizeof(ni));
    refused(ni, sizeof(ni), -EBADMSG, "");
    memset(ni, 0xff, sizeof(ni));
    ni[3] = 0;
    refused(ni, sizeof(ni), -EBADMSG, "neither text nor a C1 in bincode");
    t.bytes[8] = 2;
    refused(t.bytes, t.len, -EBADMSG, "found 2 partitions, wanted 1");
    free(t.bytes);
}
END_TEST

/* ------------------------------------------------------------------------------- too much of it */

/* Makes what is resident now the peak so far (proc(5), clear_refs). */
static void reset_peak(void)
{
    FILE *f = fopen("/proc/self/clear_refs", "w");

    if (f) {
        fputs("5", f);
        fclose(f);
    }
}

static long peak_kb(void)
{
    char line[256];
    long kb = 0;
    FILE *f = fopen("/proc/self/status", "r");

    while (f && fgets(line, sizeof(line), f))
        if (strncmp(line, "VmHWM:", 6) == 0)
            kb = strtol(line + 6, NULL, 10);
    if (f)
        fclose(f);
    return kb;
}

/* A sanitizer keeps what was freed and so has no flat memory. */
#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED
#endif

static void memory_is_flat(long before_kb, long allowed_kb)
{
#ifndef SANITIZED
    ck_assert_int_lt(peak_kb() - before_kb, allowed_kb);
#else
    (void)before_kb, (void)allowed_kb;
#endif
}

/* Feeds `head`, then `fill` until the reader refuses or `total` bytes are fed. Returns its answer and checks
 * that memory stays flat. */
static int flood(const char *head, int fill, uint64_t total)
{
    static uint8_t buffer[1 << 20];
    struct c1_reader *r = NULL;
    int ret;

    memset(buffer, fill, sizeof(buffer));
    reset_peak();
    long before = peak_kb();
    ck_assert_int_eq(c1_reader_create(C1_CHECK_STRICT, NULL, &r), 0);
    ret = c1_reader_feed(r, head, strlen(head), &err);
    for (uint64_t fed = 0; fed < total && ret == 0; fed += sizeof(buffer))
        ret = c1_reader_feed(r, buffer, sizeof(buffer), &err);
    c1_reader_destroy(r);
    memory_is_flat(before, 4 << 10);
    return ret;
}

START_TEST(c1_reader__floods_are_refused)
{
    const uint64_t gib10 = UINT64_C(10) << 30;

    ck_assert_int_eq(flood("{", ' ', gib10), -EBADMSG);
    ck_assert_ptr_nonnull(strstr(err.text, "of text with no more than 0 bytes of a C1 in it"));
    ck_assert_int_eq(flood("", ' ', gib10), -EBADMSG);
    ck_assert_ptr_nonnull(strstr(err.text, "hardly anything but white space"));
    ck_assert_int_eq(flood("QUJD", '\n', gib10), -EBADMSG);
    ck_assert_ptr_nonnull(strstr(err.text, "hardly anything but white space"));
    ck_assert_int_eq(flood("{\"unknown\":\"", 'a', gib10), -EBADMSG);
    ck_assert_ptr_nonnull(strstr(err.text, "under keys that no C1 has"));
    ck_assert_int_eq(flood("{\"Phase1Out\":\"", 'A', gib10), -EBADMSG);
    ck_assert_int_eq(flood("{\"Phase1Out\":\"", ' ', gib10), -EBADMSG);
    ck_assert_int_eq(flood("{\"unknown\":", '[', 10 << 20), -EBADMSG);
    ck_assert_ptr_nonnull(strstr(err.text, "nested deeper than"));
    ck_assert_int_eq(flood("", '[', 10 << 20), -EBADMSG);
    ck_assert_int_eq(flood("{\"comm_r\":", '[', 10 << 20), -EBADMSG);
    ck_assert_int_eq(flood("{\"sector_id\":", '9', 10 << 20), -EBADMSG);
    ck_assert_ptr_nonnull(strstr(err.text, "more than 128 characters"));
    ck_assert_int_eq(flood("{\"comm_r\":[", '9', 10 << 20), -EBADMSG);
    ck_assert_int_eq(flood("{\"unknown\":0.", '0', 10 << 20), -EBADMSG);
    ck_assert_int_eq(flood("{\"", 'k', UINT64_C(2) << 30), -EBADMSG);
}
END_TEST

/* Feeds `head`, then `piece` again and again until the reader refuses. Returns how many bytes that took. */
static uint64_t bytes_taken(const char *head, const char *piece)
{
    struct c1_reader *r = NULL;
    struct text many = {0};

    while (many.len < 50000)
        text_add(&many, piece, strlen(piece));
    ck_assert_int_eq(c1_reader_create(C1_CHECK_STRICT, NULL, &r), 0);
    int ret = c1_reader_feed(r, head, strlen(head), &err);
    while (ret == 0 && c1_reader_bytes_in(r) < 64 << 20)
        ret = c1_reader_feed(r, many.bytes, many.len, &err);
    ck_assert_int_eq(ret, -EBADMSG);
    uint64_t taken = c1_reader_bytes_in(r);
    c1_reader_destroy(r);
    free(many.bytes);
    return taken;
}

#define LONG "this is text that goes on and on, sixty-four bytes of it, quite."

START_TEST(c1_reader__what_no_c1_has_is_read_for_a_megabyte)
{
    static const struct {
        const char *head, *piece;
    } cases[] = {
        {"{\"x\":[0", ",0"},
        {"{\"a\":0", ",\"unknown\":{\"b\":[null]}"},
        {"{\"a\":0", ",\"\":0"},
        {"{\"vanilla_proofs\":{\"StackedDrg2KiBV1\":[[{\"a\":0", ",\"unknown\":\"text\""},
        {"{\"c1out\":{\"a\":0", ",\"unknown\":\"text\""},
        {"{\"a\":0", ",\"u\":\"" LONG LONG LONG LONG "\""}, /* hardly anything but the string itself */
        {"{\"a\":0", ",\"u\":[\"" LONG LONG LONG LONG "\"]"},
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        ck_assert_uint_lt(bytes_taken(cases[i].head, cases[i].piece), 2 << 20);
        ck_assert_msg(strstr(err.text, "under keys that no C1 has") != NULL, "%s", err.text);
    }
    /* A character of base64 every few lines. */
    ck_assert_uint_lt(bytes_taken("QUJD", "\r\n\r\n\r\n\r\nQ"), 16 << 20);
}
END_TEST

/* A bomb: `total` bytes of `fill` after `head`, packed. */
static struct text bomb(const char *head, int fill, size_t total, bool gzip)
{
    struct text plain = {0}, packed = {0};

    plain.bytes = malloc(total);
    plain.len = total;
    memset(plain.bytes, fill, total);
    memcpy(plain.bytes, head, strlen(head));
    (gzip ? write_gzip : write_zstd)(plain.bytes, plain.len, &packed);
    free(plain.bytes);
    return packed;
}

START_TEST(c1_reader__bombs_are_refused)
{
    struct text packed = bomb("", ' ', 64 << 20, _i == 0), many = {0};

    reset_peak();
    long before = peak_kb();
    /* As many members as make more than a gibibyte. */
    for (int i = 0; i < 17; i++)
        text_add(&many, packed.bytes, packed.len);
    ck_assert_int_eq(read_bytes(many.bytes, many.len, C1_CHECK_STRICT), -EBADMSG);
    ck_assert_ptr_nonnull(strstr(err.text, "hardly anything but white space"));
    memory_is_flat(before, 16 << 10);
    free(packed.bytes), free(many.bytes);
    packed = bomb("{\"comm_r\":[", '1', 64 << 20, _i == 0);
    ck_assert_int_eq(read_bytes(packed.bytes, packed.len, C1_CHECK_STRICT), -EBADMSG);
    free(packed.bytes);
}
END_TEST

START_TEST(c1_reader__damaged_compression)
{
    struct text t = bare_json(), gzip = {0}, zstd = {0};

    write_gzip(t.bytes, t.len, &gzip);
    write_zstd(t.bytes, t.len, &zstd);
    gzip.bytes[gzip.len - 6] ^= 1; /* the checksum */
    refused(gzip.bytes, gzip.len, -EBADMSG, "incorrect data check");
    gzip.bytes[gzip.len - 6] ^= 1;
    text_add(&gzip, "junk", 4);
    refused(gzip.bytes, gzip.len, -EBADMSG, "incorrect header check");
    text_add(&zstd, "junk", 4);
    refused(zstd.bytes, zstd.len, -EBADMSG, "zstd: ");
    /* A frame header that asks for a window of 128 MiB: magic, descriptor, window descriptor. */
    static const uint8_t wide[] = {0x28, 0xb5, 0x2f, 0xfd, 0x00, 0x88, 1, 0, 0};
    refused(wide, sizeof(wide), -EINVAL, "window is larger than 8 MiB");
    free(t.bytes), free(gzip.bytes), free(zstd.bytes);
}
END_TEST

START_TEST(c1_reader__compressed_twice_is_refused)
{
    struct text t = bare_json(), once = {0}, twice = {0};

    write_zstd(t.bytes, t.len, &once);
    write_gzip(once.bytes, once.len, &twice);
    ck_assert_int_eq(read_bytes(twice.bytes, twice.len, C1_CHECK_FORM), -EBADMSG);
    free(t.bytes), free(once.bytes), free(twice.bytes);
}
END_TEST

START_TEST(c1_read_file__missing_file)
{
    struct c1 *c1 = NULL;
    struct c1_extra extra;

    ck_assert_int_eq(c1_read_file("/nonexistent/c1", C1_CHECK_FORM, NULL, &c1, &extra, &err), -ENOENT);
    ck_assert_ptr_nonnull(strstr(err.text, "/nonexistent/c1"));
}
END_TEST

/* Random damage: whatever comes, it is an answer. */
START_TEST(c1_reader__random_damage)
{
    struct text t = _i % 2 ? bincode() : bare_json();
    uint64_t random = SEED + (uint64_t)_i;

    for (int round = 0; round < 200; round++) {
        struct text bad = {0};
        text_add(&bad, t.bytes, t.len);
        for (int hits = 0; hits < 1 + round % 5; hits++) {
            random ^= random << 13, random ^= random >> 7, random ^= random << 17;
            size_t at = random % bad.len;
            if (random >> 40 & 1)
                bad.bytes[at] = (uint8_t)(random >> 32);
            else
                memmove(bad.bytes + at, bad.bytes + at + 1, bad.len-- - at - 1);
        }
        int ret = read_bytes(bad.bytes, bad.len, C1_CHECK_FORM);
        ck_assert(ret == 0 || ret == -EBADMSG || ret == -EINVAL);
        free(bad.bytes);
    }
    free(t.bytes);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("c1_bad");
    TCase *tc = tcase_create("c1_bad");

    printf("seed %d%s\n", SEED, quick() ? "; PROOFD_QUICK: one flipped byte in eleven" : "");
    tcase_set_timeout(tc, 300);
    tcase_add_test(tc, c1_bincode__truncated_at_every_byte);
    tcase_add_test(tc, c1_json__truncated_at_every_byte);
    tcase_add_test(tc, c1_json__truncated_at_many_bytes);
    tcase_add_test(tc, c1_compressed__truncated_at_many_bytes);
    tcase_add_loop_test(tc, c1_bincode__any_flipped_byte_is_found, 0, FLIP_TESTS);
    tcase_add_loop_test(tc, c1_json__any_flipped_byte_is_found_or_changes_nothing, 0, 4);
    tcase_add_test(tc, c1_json__wrong_values_name_the_place);
    tcase_add_test(tc, c1_json__says_the_byte);
    tcase_add_test(tc, c1_json__duplicate_keys);
    tcase_add_test(tc, c1_json__digests_at_the_modulus);
    tcase_add_test(tc, c1_json__counts);
    tcase_add_test(tc, c1_json__not_json);
    tcase_add_test(tc, c1_json__nothing_may_follow);
    tcase_add_test(tc, c1_json__the_wrapper_contradicts);
    tcase_add_test(tc, c1_strict__each_check_names_its_field);
    tcase_add_test(tc, c1_inner_form__no_proof_type_fits);
    tcase_add_test(tc, c1_bincode__wrong_form);
    tcase_add_test(tc, c1_reader__floods_are_refused);
    tcase_add_test(tc, c1_reader__what_no_c1_has_is_read_for_a_megabyte);
    tcase_add_loop_test(tc, c1_reader__bombs_are_refused, 0, 2);
    tcase_add_test(tc, c1_reader__damaged_compression);
    tcase_add_test(tc, c1_reader__compressed_twice_is_refused);
    tcase_add_test(tc, c1_read_file__missing_file);
    tcase_add_loop_test(tc, c1_reader__random_damage, 0, 4);
    suite_add_tcase(s, tc);
    return suite_run(s);
}
