/*
 * What the reader accepts: every form of a C1, in any order and cut anywhere, is the same content.
 * test_c1_bad.c has what it refuses.
 */
#include "numa/circuit/c1_reader.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/lib/c1_forms.h"
#include "tests/lib/files.h"
#include "tests/lib/suite.h"
#include "tests/lib/vectors.h"

#define SEED 20240611

static uint64_t random_state = SEED;

static uint64_t next_random(void)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return random_state;
}

/* Reads `text` in chunks of at most `chunk` bytes (0: of random length); ends the test if it is refused. */
static struct c1 *read_text(const struct text *text, size_t chunk, enum c1_checks checks,
                            struct c1_extra *extra)
{
    struct c1_reader *r = NULL;
    struct c1 *c1 = NULL;
    struct errmsg err = {""};

    ck_assert_int_eq(c1_reader_create(checks, NULL, &r), 0);
    for (size_t at = 0; at < text->len;) {
        size_t len = chunk ? chunk : next_random() % 7 == 0 ? next_random() % 5000 : next_random() % 100;
        len = min_size(len, text->len - at);
        ck_assert_msg(c1_reader_feed(r, text->bytes + at, len, &err) == 0, "%s", err.text);
        at += len;
    }
    ck_assert_msg(c1_reader_finish(r, &c1, extra, &err) == 0, "%s", err.text);
    ck_assert_uint_eq(c1_reader_bytes_in(r), text->len);
    c1_reader_destroy(r);
    return c1;
}

static void same_content(const struct c1 *a, const struct c1 *b)
{
    uint8_t id_a[32], id_b[32];

    c1_content_id(a, id_a);
    c1_content_id(b, id_b);
    ck_assert_mem_eq(id_a, id_b, 32);
}

/* Reads `text` strictly and checks that it is the content of `wanted`. */
static void reads_as(const struct text *text, const struct c1 *wanted)
{
    struct c1_extra extra;
    struct c1 *c1 = read_text(text, 0, C1_CHECK_STRICT, &extra);

    same_content(c1, wanted);
    ck_assert_ptr_eq(c1_seal_proof(c1), c1_seal_proof(wanted));
    c1_destroy(c1);
}

static struct text bare_json(const char *name)
{
    struct text t = {0};

    t.bytes = file_read(c1_path(name, "bare.json.zst"), &t.len);
    return t;
}

static struct c1 *vector(const char *name)
{
    struct text bare = bare_json(name);
    struct c1_extra extra;
    struct c1 *c1 = read_text(&bare, bare.len, C1_CHECK_STRICT, &extra);

    free(bare.bytes);
    return c1;
}

START_TEST(c1_reader__every_vector_passes_the_strict_checks)
{
    struct text bare = bare_json(c1_names[_i]);
    struct vector_meta meta;
    struct c1_extra extra;

    vector_meta(c1_names[_i], &meta);
    struct c1 *c1 = read_text(&bare, 65536, C1_CHECK_STRICT, &extra);
    ck_assert_ptr_eq(c1_seal_proof(c1), meta.proof);
    ck_assert_mem_eq(c1_comm_r(c1), meta.comm_r, 32);
    ck_assert_mem_eq(c1_comm_d(c1), meta.comm_d, 32);
    ck_assert_mem_eq(c1_replica_id(c1), meta.replica_id, 32);
    ck_assert_mem_eq(c1_seed(c1), meta.seed, 32);
    ck_assert_mem_eq(c1_ticket(c1), meta.ticket, 32);
    ck_assert(!extra.has_prover_id && !extra.has_sector_number && !extra.has_sector_size);
    c1_destroy(c1);
    free(bare.bytes);
}
END_TEST

static const char *const with_bincode[] = {"2KiB-sealed", "8MiB-sealed"};

START_TEST(c1_reader__decoded_form_equals_the_bincode_of_the_reference)
{
    size_t wanted_len, len;
    uint8_t *wanted = file_read(c1_path(with_bincode[_i], "c1.bincode"), &wanted_len);
    struct c1 *c1 = vector(with_bincode[_i]);
    const uint8_t *bytes = c1_bincode(c1, &len);

    ck_assert_uint_eq(len, wanted_len);
    ck_assert_mem_eq(bytes, wanted, len);
    c1_destroy(c1);
    free(wanted);
}
END_TEST

/* The writer of the tests is right: what serde wrote comes out again. */
START_TEST(write_json__gives_back_the_bare_json)
{
    struct text bare = bare_json(c1_names[_i]), again = {0};
    struct c1 *c1 = vector(c1_names[_i]);

    write_json(c1, &(struct json_style){0}, &again);
    ck_assert_uint_eq(again.len, bare.len);
    ck_assert_mem_eq(again.bytes, bare.bytes, bare.len);
    free(again.bytes);
    free(bare.bytes);
    c1_destroy(c1);
}
END_TEST

START_TEST(c1_reader__any_order_of_keys_and_any_white_space)
{
    struct c1 *c1 = vector("2KiB-sealed");

    for (uint64_t seed = 1; seed <= 20; seed++) {
        struct json_style style = {
            .shuffle = seed * SEED, .spaces = seed & 1, .unknown_keys = seed & 2, .no_h = seed & 4};
        struct text json = {0};
        write_json(c1, &style, &json);
        reads_as(&json, c1);
        free(json.bytes);
    }
    c1_destroy(c1);
}
END_TEST

/* Feeds JSON with each value on a line of its own, indented by eight spaces a level: about twice as much white
 * space as any tool makes. */
static void feed_prettily(struct c1_reader *r, const struct text *t)
{
    struct text line = {0};
    struct errmsg err = {""};
    int depth = 0;

    for (size_t i = 0; i < t->len; i++) {
        char c = (char)t->bytes[i];
        bool begins = c == '[' || c == '{', ends = c == ']' || c == '}';
        depth += begins - ends;
        if (ends)
            text_addf(&line, "\n%*s", 8 * depth, "");
        text_add(&line, &c, 1);
        if (begins || c == ',')
            text_addf(&line, "\n%*s", 8 * depth, "");
        if (line.len > 50000 || i + 1 == t->len) {
            ck_assert_msg(c1_reader_feed(r, line.bytes, line.len, &err) == 0, "%s", err.text);
            line.len = 0;
        }
    }
    free(line.bytes);
}

static void reads_prettily(const struct text *t)
{
    struct c1_reader *r = NULL;
    struct c1 *c1 = NULL;
    struct c1_extra extra;

    ck_assert_int_eq(c1_reader_create(C1_CHECK_FORM, NULL, &r), 0);
    feed_prettily(r, t);
    ck_assert_int_eq(c1_reader_finish(r, &c1, &extra, NULL), 0);
    c1_reader_destroy(r);
    c1_destroy(c1);
}

START_TEST(c1_reader__printed_more_prettily_than_anybody_does)
{
    struct text bare = bare_json(c1_names[_i]);

    reads_prettily(&bare);
    free(bare.bytes);
}
END_TEST

START_TEST(c1_reader__chunks_of_any_length)
{
    struct text bare = bare_json("2KiB-sealed");
    struct c1 *wanted = vector("2KiB-sealed");
    struct c1_extra extra;

    for (size_t chunk = 1; chunk < 300; chunk += chunk < 16 ? 1 : 17) {
        struct c1 *c1 = read_text(&bare, chunk, C1_CHECK_FORM, &extra);
        same_content(c1, wanted);
        c1_destroy(c1);
    }
    free(bare.bytes);
    c1_destroy(wanted);
}
END_TEST

/* Every form, plain and compressed. */
struct forms {
    struct text form[10];
    size_t len;
};

static void forms_make(const char *name, const struct c1 *c1, struct forms *f)
{
    struct vector_meta meta;
    size_t len;
    const uint8_t *bincode = c1_bincode(c1, &len);
    uint8_t trailer[8];

    vector_meta(name, &meta);
    memset(f, 0, sizeof(*f));
    struct text *bare = &f->form[f->len++];
    write_json(c1, &(struct json_style){0}, bare);
    write_wrapper(bare, meta.sector_number, c1_size(c1)->bytes, NULL, &f->form[f->len++]);
    write_wrapper(bare, meta.sector_number, c1_size(c1)->bytes, "f01001", &f->form[f->len++]);
    struct text *task = &f->form[f->len++];
    write_task(bare, meta.prover_id, meta.sector_number, task);
    write_base64(task->bytes, task->len, &f->form[f->len++]);
    text_add(&f->form[f->len++], bincode, len);         /* API form */
    text_add(&f->form[f->len++], bincode + 8, len - 8); /* inner form */
    struct text *tagged = &f->form[f->len++];
    text_add(tagged, "\0\0\0\0", 4);
    text_add(tagged, bincode, len);
    text_add(tagged, meta.prover_id, 32);
    store_le64(trailer, meta.sector_number);
    text_add(tagged, trailer, 8);
}

START_TEST(c1_reader__all_forms_are_one_content)
{
    const char *name = c1_names[_i];
    struct c1 *c1 = vector(name);
    struct forms f;

    /* The wrapper with a miner is right for the sectors of miner 1001 alone. */
    struct vector_meta meta;
    vector_meta(name, &meta);
    forms_make(name, c1, &f);
    for (size_t i = 0; i < f.len; i++) {
        struct text packed = {0};
        if (i == 2 && meta.sector_number != 1)
            continue;
        reads_as(&f.form[i], c1);
        write_gzip(f.form[i].bytes, f.form[i].len, &packed);
        reads_as(&packed, c1);
        packed.len = 0;
        write_zstd(f.form[i].bytes, f.form[i].len, &packed);
        reads_as(&packed, c1);
        free(packed.bytes);
    }
    for (size_t i = 0; i < f.len; i++)
        free(f.form[i].bytes);
    c1_destroy(c1);
}
END_TEST

START_TEST(c1_reader__members_and_frames_may_follow_each_other)
{
    struct text bare = bare_json("2KiB-sealed"), packed = {0};
    struct c1 *c1 = vector("2KiB-sealed");
    static const uint8_t skippable[] = {0x5a, 0x2a, 0x4d, 0x18, 3, 0, 0, 0, 'a', 'b', 'c'};

    for (size_t at = 0; at < bare.len; at += 30000)
        write_gzip(bare.bytes + at, min_size(30000, bare.len - at), &packed);
    reads_as(&packed, c1);
    packed.len = 0;
    text_add(&packed, skippable, sizeof(skippable));
    for (size_t at = 0; at < bare.len; at += 30000) {
        write_zstd(bare.bytes + at, min_size(30000, bare.len - at), &packed);
        text_add(&packed, skippable, sizeof(skippable));
    }
    reads_as(&packed, c1);
    free(packed.bytes);
    free(bare.bytes);
    c1_destroy(c1);
}
END_TEST

START_TEST(c1_reader__wrapper_as_tools_write_it)
{
    struct text wrapper = {0}, odd = {0}, escaped = {0};
    struct c1 *wanted = vector("2KiB-sealed");
    struct c1_extra extra;

    wrapper.bytes = file_read(c1_path("2KiB-sealed", "c1.json"), &wrapper.len);
    struct c1 *c1 = read_text(&wrapper, 0, C1_CHECK_STRICT, &extra);
    same_content(c1, wanted);
    ck_assert(extra.has_sector_number && extra.has_sector_size && !extra.has_prover_id);
    ck_assert_uint_eq(extra.sector_number, 1);
    ck_assert_uint_eq(extra.sector_size, 2048);
    c1_destroy(c1);

    /* Keys in another case, keys of a C1 that mean something else here, base64 with escapes in it. */
    struct text bare = bare_json("2KiB-sealed");
    write_base64(bare.bytes, bare.len, &odd);
    for (size_t i = 0; i < odd.len; i++)
        if (odd.bytes[i] == '/')
            text_addf(&escaped, "\\/");
        else if (odd.bytes[i] == 'Z')
            text_addf(&escaped, "\\u005a");
        else
            text_add(&escaped, odd.bytes + i, 1);
    odd.len = 0;
    text_addf(&odd, " {\"PHASE1OUT\": \"");
    text_add(&odd, escaped.bytes, escaped.len);
    text_addf(&odd, "\",\"sectornum\":1,\"MINER\":\"t01001\",\"ticket\":\"00ff\",\"Comment\":[]}\n");
    c1 = read_text(&odd, 0, C1_CHECK_STRICT, &extra);
    same_content(c1, wanted);
    ck_assert(extra.has_sector_number && extra.has_prover_id);
    ck_assert_uint_eq(extra.prover_id[0], 0xe9);
    c1_destroy(c1);
    free(odd.bytes);
    free(escaped.bytes);
    free(bare.bytes);
    free(wrapper.bytes);
    c1_destroy(wanted);
}
END_TEST

START_TEST(c1_reader__base64_with_line_breaks)
{
    struct text bare = bare_json("2KiB-sealed"), one_line = {0}, lines = {0};
    struct c1 *c1 = vector("2KiB-sealed");

    write_base64(bare.bytes, bare.len, &one_line);
    text_addf(&lines, "\n");
    for (size_t at = 0; at < one_line.len; at += 76) {
        text_add(&lines, one_line.bytes + at, min_size(76, one_line.len - at));
        text_addf(&lines, "\r\n");
    }
    reads_as(&lines, c1);
    free(lines.bytes);
    free(one_line.bytes);
    free(bare.bytes);
    c1_destroy(c1);
}
END_TEST

START_TEST(c1_reader__workers_change_nothing)
{
    struct workers *workers = NULL;
    struct c1 *alone = vector("8MiB-sealed"), *together = NULL;
    struct c1_extra extra;
    struct errmsg err = {""};

    ck_assert_int_eq(workers_create(3, &workers, &err), 0);
    int ret = c1_read_file(c1_path("8MiB-sealed", "bare.json.zst"), C1_CHECK_STRICT, workers, &together,
                           &extra, &err);
    ck_assert_msg(ret == 0, "%s", err.text);
    same_content(alone, together);
    workers_destroy(workers);
    c1_destroy(alone);
    c1_destroy(together);
}
END_TEST

/* A miner's file of another project, and the two large sizes. */
static const char *const elsewhere[] = {"public/gpuproxy-c1-2KiB.json", "c1/32GiB-sparse/bare.json.zst",
                                        "c1/64GiB-sparse/bare.json.zst"};

START_TEST(c1_reader__vectors_outside_the_tree)
{
    char path[VECTOR_PATH_MAX];
    struct workers *workers = NULL;
    struct c1 *c1 = NULL;
    struct c1_extra extra;
    struct errmsg err = {""};

    ck_assert(vector_find(path, elsewhere[_i]));
    ck_assert_int_eq(workers_create(0, &workers, &err), 0);
    ck_assert_msg(c1_read_file(path, C1_CHECK_STRICT, workers, &c1, &extra, &err) == 0, "%s", err.text);
    ck_assert(_i > 0 || (extra.has_prover_id && extra.has_sector_number));
    c1_destroy(c1);
    workers_destroy(workers);
}
END_TEST

START_TEST(c1_reader__a_large_vector_printed_prettily)
{
    char path[VECTOR_PATH_MAX];
    struct text bare = {0};

    ck_assert(vector_find(path, elsewhere[_i]));
    bare.bytes = file_read(path, &bare.len);
    bare.len = bare.len / 2; /* a gibibyte is the limit for this as well */
    struct c1_reader *r = NULL;
    ck_assert_int_eq(c1_reader_create(C1_CHECK_FORM, NULL, &r), 0);
    feed_prettily(r, &bare);
    c1_reader_destroy(r);
    free(bare.bytes);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("c1_reader");
    TCase *tc = tcase_create("c1_reader"), *one = tcase_create("one thread");

    printf("seed %d\n", SEED);
    tcase_set_timeout(tc, 300);
    tcase_set_timeout(one, 300);
    tcase_set_tags(one, ONE_THREAD);
    tcase_add_loop_test(one, c1_reader__every_vector_passes_the_strict_checks, 0, 6);
    tcase_add_loop_test(one, c1_reader__decoded_form_equals_the_bincode_of_the_reference, 0, 2);
    tcase_add_loop_test(one, write_json__gives_back_the_bare_json, 0, 6);
    tcase_add_test(one, c1_reader__any_order_of_keys_and_any_white_space);
    tcase_add_loop_test(one, c1_reader__printed_more_prettily_than_anybody_does, 0, 6);
    tcase_add_test(one, c1_reader__chunks_of_any_length);
    tcase_add_loop_test(one, c1_reader__all_forms_are_one_content, 0, 6);
    tcase_add_test(one, c1_reader__members_and_frames_may_follow_each_other);
    tcase_add_test(one, c1_reader__wrapper_as_tools_write_it);
    tcase_add_test(one, c1_reader__base64_with_line_breaks);
    tcase_add_test(tc, c1_reader__workers_change_nothing);
    for (int i = 0; i < (int)ARRAY_LEN(elsewhere); i++) {
        char path[VECTOR_PATH_MAX];
        if (vector_find(path, elsewhere[i])) {
            tcase_add_loop_test(tc, c1_reader__vectors_outside_the_tree, i, i + 1);
            if (i == 1)
                tcase_add_loop_test(one, c1_reader__a_large_vector_printed_prettily, i, i + 1);
        } else
            suite_skip(elsewhere[i], "needs $PROOFD_SHARED with the large vectors");
    }
    suite_add_tcase(s, tc);
    suite_add_tcase(s, one);
    return suite_run(s);
}
