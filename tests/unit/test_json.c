/*
 * The tokenizer by itself: what it hands to its handler, written down as text. Documents that are no JSON are
 * in test_c1_bad.c.
 */
#include "numa/circuit/json.h"

#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "numa/circuit/base64.h"
#include "tests/lib/suite.h"

/* What was heard, and a place for byte arrays if they are wanted. */
struct tape {
    char text[4096];
    bool want_bytes;
    uint8_t bytes[32];
    bool in_string;
};

static void note(struct tape *t, const char *what)
{
    ck_assert_uint_lt(strlen(t->text) + strlen(what), sizeof(t->text));
    strcat(t->text, what);
}

static int on_begin(void *ctx, bool array, struct errmsg *err)
{
    (void)err;
    note(ctx, array ? "[ " : "{ ");
    return 0;
}

static int on_end(void *ctx, bool array, struct errmsg *err)
{
    (void)err;
    note(ctx, array ? "] " : "} ");
    return 0;
}

static int on_key(void *ctx, const struct json_key *key, struct errmsg *err)
{
    (void)err;
    note(ctx, key->text);
    note(ctx, key->cut ? "...: " : ": ");
    return 0;
}

static int on_number(void *ctx, const struct json_number *n, struct errmsg *err)
{
    char text[64];

    (void)err;
    if (n->integer && !n->overflow)
        snprintf(text, sizeof(text), "%llu ", (unsigned long long)n->value);
    else
        snprintf(text, sizeof(text), "%s(%s) ", n->overflow ? "large" : "other", n->text);
    note(ctx, text);
    return 0;
}

static int on_literal(void *ctx, enum json_literal literal, struct errmsg *err)
{
    (void)err;
    note(ctx, literal == JSON_NULL ? "null " : literal == JSON_TRUE ? "true " : "false ");
    return 0;
}

static int on_string(void *ctx, const uint8_t *piece, size_t len, struct errmsg *err)
{
    struct tape *t = ctx;
    char text[1024];

    (void)err;
    snprintf(text, sizeof(text), "%s%.*s", t->in_string ? "" : "'", (int)len, (const char *)piece);
    t->in_string = true;
    note(ctx, text);
    return 0;
}

static int on_string_end(void *ctx, struct errmsg *err)
{
    struct tape *t = ctx;

    (void)err;
    note(ctx, t->in_string ? "' " : "'' ");
    t->in_string = false;
    return 0;
}

static uint8_t *on_bytes32(void *ctx)
{
    struct tape *t = ctx;

    return t->want_bytes ? t->bytes : NULL;
}

static int on_bytes32_end(void *ctx, struct errmsg *err)
{
    struct tape *t = ctx;
    char hex[65];

    (void)err;
    hex_encode(hex, t->bytes, 32);
    note(ctx, hex);
    note(ctx, " ");
    return 0;
}

static const struct json_handler handler = {on_begin,      on_end,     on_key,
                                            on_number,     on_literal, on_string,
                                            on_string_end, on_bytes32, on_bytes32_end};

/* Reads `text` in chunks and gives what was heard. */
static const char *hear(const char *text, size_t chunk, bool want_bytes)
{
    static struct tape tape;
    struct json *j = NULL;
    struct errmsg err = {""};

    memset(&tape, 0, sizeof(tape));
    tape.want_bytes = want_bytes;
    ck_assert_int_eq(json_create(&handler, &tape, &j), 0);
    for (size_t at = 0; at < strlen(text); at += chunk)
        ck_assert_msg(
            json_feed(j, (const uint8_t *)text + at, min_size(chunk, strlen(text) - at), &err) == 0,
            "%s", err.text);
    ck_assert_msg(json_finish(j, &err) == 0, "%s", err.text);
    json_destroy(j);
    return tape.text;
}

START_TEST(json__hands_on_what_is_there)
{
    static const struct {
        const char *text, *heard;
    } cases[] = {
        {"{}", "{ } "},
        {" [ ] ", "[ ] "},
        {"{\"a\":[1,{\"b\":\"c\"},[]],\"d\":null}", "{ a: [ 1 { b: 'c' } [ ] ] d: null } "},
        {"[true,false,null]", "[ true false null ] "},
        {"[0,-0,1.5,2e3,-7,1E-2,18446744073709551615,18446744073709551616]",
         "[ 0 other(-0) other(1.5) other(2e3) other(-7) other(1E-2) 18446744073709551615 "
         "large(18446744073709551616) ] "},
        {"[\"\",\"\\\"\\\\\\/\\n\\u0041\\u00e9\\u20ac\\ud83d\\ude00\"]",
         "[ '' '\"\\/\nA\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80' ] "},
        {"[\"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\"]",
         "[ '\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80' ] "},
        {"{\"0123456789012345678901234567890123456789012345678901234567890123456789\":1}",
         "{ 0123456789012345678901234567890123456789012345678901234567890123...: 1 } "},
        {"{\"k\\u0065y\":1}", "{ key: 1 } "},
        {"\"alone\"", "'alone' "},
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        for (size_t chunk = 1; chunk < 80; chunk++)
            ck_assert_str_eq(hear(cases[i].text, chunk, false), cases[i].heard);
}
END_TEST

#define LIST(sep)                                                                                 \
    "0" sep "1" sep "10" sep "99" sep "100" sep "199" sep "200" sep "249" sep "250" sep "255" sep \
    "9" sep "19" sep "12" sep "13" sep "14" sep "15" sep "16" sep "17" sep "18" sep "19" sep      \
    "20" sep "21" sep "22" sep "23" sep "24" sep "25" sep "26" sep "27" sep "28" sep "29" sep     \
    "30" sep "31"
#define LIST_HEX "00010a6364c7c8f9faff09130c0d0e0f101112131415161718191a1b1c1d1e1f"
/* Room behind, so that the quick way is taken. */
#define ROOM "                                                                                "

START_TEST(json__byte_arrays_in_one_go_or_not)
{
    static const char *const texts[] = {"[[" LIST(",") "]" ROOM ROOM "]",
                                        "[[" LIST(", ") "]" ROOM ROOM "]",
                                        "[ [ " LIST("\n,\t") " ] ]"};

    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        ck_assert_str_eq(hear(texts[i], 4096, true), "[ " LIST_HEX " ] ");
        /* Cut in two, it is an array as any other. */
        const char *heard = hear(texts[i], 50, true);
        ck_assert_ptr_nonnull(strstr(heard, "[ [ 0 1 10 99 100 199 200 249 250 255 9 19"));
    }
}
END_TEST

START_TEST(json__what_is_no_byte_array_is_read_as_ever)
{
    static const char *const tails[] = {"256]",   "256,1]", "-1]", "01]", "1.5]",
                                        "\"a\"]", "1000]",  "]",   "[]]", "1"};

    for (size_t i = 0; i < ARRAY_LEN(tails); i++) {
        char text[1024];
        struct tape tape = {.want_bytes = true};
        struct json *j = NULL;
        snprintf(text, sizeof(text), "[[7,8,%s" ROOM ROOM ROOM ROOM, tails[i]);
        ck_assert_int_eq(json_create(&handler, &tape, &j), 0);
        json_feed(j, (const uint8_t *)text, strlen(text), NULL);
        ck_assert_msg(strncmp(tape.text, "[ [ 7 8 ", 8) == 0, "%s: %s", text, tape.text);
        json_destroy(j);
    }
}
END_TEST

START_TEST(json_offset__is_that_of_the_token)
{
    static const struct {
        const char *text;
        uint64_t offset;
    } cases[] = {{"[1,x]", 3}, {"[1,\"ab\x01\"]", 6}, {"[nulx]", 1}, {"[1234x]", 5},
                 {"[1", 2},    {"[12.x", 1}};

    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        for (size_t chunk = 1; chunk < 8; chunk++) {
            struct tape tape = {0};
            struct json *j = NULL;
            int ret = json_create(&handler, &tape, &j);
            for (size_t at = 0; at < strlen(cases[i].text) && ret == 0; at += chunk)
                ret = json_feed(j, (const uint8_t *)cases[i].text + at,
                                min_size(chunk, strlen(cases[i].text) - at), NULL);
            if (ret == 0)
                ret = json_finish(j, NULL);
            ck_assert_int_eq(ret, -EBADMSG);
            ck_assert_uint_eq(json_offset(j), cases[i].offset);
            json_destroy(j);
        }
}
END_TEST

START_TEST(base64__vectors_of_the_rfc)
{
    static const char *const cases[][2] = {{"", ""},
                                           {"Zg==", "f"},
                                           {"Zm8=", "fo"},
                                           {"Zm9v", "foo"},
                                           {"Zm9vYg==", "foob"},
                                           {"Zm9vYmE=", "fooba"},
                                           {"Zm9vYmFy", "foobar"},
                                           {" Zm\n9vYg = =\r\n", "foob"}};

    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        for (size_t chunk = 1; chunk < 10; chunk++) {
            struct base64 b = {0};
            uint8_t out[32];
            size_t made = 0;
            for (size_t at = 0; at < strlen(cases[i][0]); at += chunk) {
                size_t n;
                ck_assert_int_eq(base64_feed(&b, (const uint8_t *)cases[i][0] + at,
                                             min_size(chunk, strlen(cases[i][0]) - at), out + made,
                                             &n, NULL),
                                 0);
                made += n;
            }
            ck_assert_int_eq(base64_finish(&b, NULL), 0);
            ck_assert_uint_eq(made, strlen(cases[i][1]));
            ck_assert_mem_eq(out, cases[i][1], made);
        }
}
END_TEST

START_TEST(base64__what_is_none)
{
    static const char *const cases[] = {
        "Z", "Zg", "Zg=", "Zm9", "=", "Z===", "Zg===", "Zh==", "Zm9=", "Zg==Zg==", "Zm-v"};

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct base64 b = {0};
        uint8_t out[32];
        size_t n;
        int ret = base64_feed(&b, (const uint8_t *)cases[i], strlen(cases[i]), out, &n, NULL);
        ck_assert_msg(ret < 0 || base64_finish(&b, NULL) < 0, "%s", cases[i]);
    }
}
END_TEST

int main(void)
{
    Suite *s = suite_create("json");
    TCase *tc = tcase_create("json");

    tcase_add_test(tc, json__hands_on_what_is_there);
    tcase_add_test(tc, json__byte_arrays_in_one_go_or_not);
    tcase_add_test(tc, json__what_is_no_byte_array_is_read_as_ever);
    tcase_add_test(tc, json_offset__is_that_of_the_token);
    tcase_add_test(tc, base64__vectors_of_the_rfc);
    tcase_add_test(tc, base64__what_is_none);
    suite_add_tcase(s, tc);
    return suite_run(s);
}
