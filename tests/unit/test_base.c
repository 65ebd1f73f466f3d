#include "numa/base.h"

#include <check.h>
#include <string.h>

#include "tests/lib/suite.h"

START_TEST(escape_name__shows_what_a_terminal_would_obey_or_refuse)
{
    static const struct {
        const char *in, *out;
    } cases[] = {
        {"", ""},
        {"sector-17.json", "sector-17.json"},
        {"a b\"c'$", "a b\"c'$"},
        {"a\nb", "a\\nb"},
        {"a\\nb", "a\\\\nb"}, /* a name that has a backslash is another one */
        {"\x1b[2J\t\r\x7f", "\\x1b[2J\\x09\\x0d\\x7f"},
        {"h\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80", "h\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80"},
        {"\xc2\x9b"
         "2J",
         "\\xc2\\x9b"
         "2J"}, /* U+009B is ESC [ in one character */
        {"\xc2\xa0", "\xc2\xa0"},
        {"\x80\xff", "\\x80\\xff"},
        {"\xc0\xaf\xed\xa0\x80", "\\xc0\\xaf\\xed\\xa0\\x80"},
        {"\xe2\x82", "\\xe2\\x82"},
        {"\xe2\x82x", "\\xe2\\x82x"},
    };
    char out[64];

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        ck_assert_uint_eq(escape_name(out, sizeof(out), cases[i].in), strlen(cases[i].out));
        ck_assert_str_eq(out, cases[i].out);
    }
}
END_TEST

START_TEST(escape_name__fits_any_text_and_cuts_none_in_two)
{
    char in[256], out[ESCAPED_BYTES(sizeof(in) - 1)];

    memset(in, 0xff, sizeof(in) - 1);
    in[sizeof(in) - 1] = '\0';
    ck_assert_uint_eq(escape_name(out, sizeof(out), in), sizeof(out) - 1);
    for (size_t size = 1; size < 10; size++) {
        ck_assert_uint_eq(escape_name(out, size, in), (size - 1) / 4 * 4);
        ck_assert_uint_eq(escape_name(out, size, "\xe2\x82\xac\xe2\x82\xac\xe2\x82\xac"),
                          (size - 1) / 3 * 3);
        ck_assert_uint_eq(strlen(out), (size - 1) / 3 * 3);
    }
}
END_TEST

int main(void)
{
    Suite *s = suite_create("base");
    TCase *t = tcase_create("base");

    tcase_add_test(t, escape_name__shows_what_a_terminal_would_obey_or_refuse);
    tcase_add_test(t, escape_name__fits_any_text_and_cuts_none_in_two);
    suite_add_tcase(s, t);
    return suite_run(s);
}
