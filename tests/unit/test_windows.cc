/*
 * How queries are cut into windows, against going through the variables one by one.
 */
#include "gpu/cuda/windows.cuh"

#include <check.h>

extern "C" {
#include "tests/lib/suite.h"
}

static struct circuit *small_circuit; /* 2 KiB */

/* Of many: an assertion of Check's writes to its parent each time, also where it holds. */
static void expect_at(bool holds, const char *what, size_t i)
{
    if (!holds)
        ck_abort_msg("%s %zu", what, i);
}

/* Points of a query that come before variable `aux`, counted. */
static std::vector<uint32_t> counted_points(const struct circuit *c, enum srs_section section)
{
    const uint64_t *density = section == SRS_L   ? nullptr
                              : section == SRS_A ? c->a_density
                                                 : c->b_density;
    const uint32_t inputs = section == SRS_L   ? 0
                            : section == SRS_A ? c->n_inputs
                                               : CIRCUIT_B_INPUTS;
    std::vector<uint32_t> before(1, inputs);

    for (uint32_t i = 0; i < c->n_aux; i++)
        before.push_back(before.back() + (!density || (density[i / 64] >> i % 64 & 1)));
    return before;
}

/* Nothing left out, nothing twice, no window too large, none that could have been larger. */
static void expect_whole(const struct circuit *c, enum srs_section section,
                         const std::vector<query_window> &windows, uint32_t most)
{
    const std::vector<uint32_t> before = counted_points(c, section);
    uint32_t word = 0, point = 0;

    for (size_t i = 0; i < windows.size(); i++) {
        const query_window &w = windows[i];
        expect_at(w.section == section && w.words > 0, "what is window", i);
        expect_at(w.first_word == word && w.first == point, "where begins window", i);
        expect_at(w.len <= most, "too large is window", i);
        word += w.words;
        point += w.len;
        expect_at(point == before[std::min(c->n_aux, 64 * word)], "where ends window", i);
        expect_at(word >= c->aux_words ||
                      before[std::min(c->n_aux, 64 * (word + 1))] - w.first > most,
                  "a word more has room in window", i);
    }
    ck_assert_uint_eq(word, c->aux_words);
    ck_assert_uint_eq(point, before.back());
}

static const enum srs_section sections[] = {SRS_L, SRS_A, SRS_B_G1, SRS_B_G2};

static std::vector<query_window> cut(enum srs_section section, uint32_t most)
{
    std::vector<query_window> out;

    cut_query({small_circuit, section}, most, out);
    return out;
}

START_TEST(windows__cover_a_query_once)
{
    const uint32_t least = window_points_least(small_circuit);

    for (enum srs_section section : sections)
        for (uint32_t most : {least, least + 1, 1000u, 4097u, 10000u, 1u << 30})
            expect_whole(small_circuit, section, cut(section, std::max(most, least)),
                         std::max(most, least));
}
END_TEST

START_TEST(windows__one_holds_what_fits)
{
    for (enum srs_section section : sections) {
        const uint32_t all = query_points{small_circuit, section}.before(small_circuit->aux_words);
        ck_assert_uint_eq(cut(section, all).size(), 1);
        ck_assert_uint_eq(cut(section, all - 1).size(), 2);
        expect_whole(small_circuit, section, cut(section, all - 1), all - 1);
    }
}
END_TEST

/* The order in which they are summed, and points of G2 twice as large. */
START_TEST(windows__of_all_queries_in_bytes)
{
    const size_t bytes = 64 << 10;
    const std::vector<query_window> all = cut_queries(small_circuit, bytes);
    size_t at = 0;

    for (enum srs_section section : sections) {
        std::vector<query_window> own;
        for (; at < all.size() && all[at].section == section; at++) {
            own.push_back(all[at]);
            expect_at(all[at].len * point_bytes(section) <= bytes, "too large is window", at);
        }
        ck_assert_uint_gt(own.size(), 2);
        expect_whole(small_circuit, section, own, (uint32_t)(bytes / point_bytes(section)));
    }
    ck_assert_uint_eq(at, all.size());
}
END_TEST

/* Variables without a point: whole words of them make a window no fuller. */
START_TEST(windows__of_a_query_with_gaps)
{
    uint64_t density[8] = {0, 0, ~UINT64_C(0), 0, 0, 0, 1, 0};
    uint32_t rank[16] = {};
    struct circuit c = *small_circuit;
    std::vector<query_window> out;

    static_assert(CIRCUIT_RANK_WORDS >= 8, "one rank before all words");
    c.aux_words = 8;
    c.n_aux = 8 * 64;
    c.b_density = density;
    c.b_rank = rank;
    rank[1] = 65;
    cut_query({&c, SRS_B_G1}, 65, out);
    ck_assert_uint_eq(out.size(), 2);
    expect_whole(&c, SRS_B_G1, out, 65);
    ck_assert_uint_eq(out[0].words, 6);
    ck_assert_uint_eq(out[1].len, 1);
}
END_TEST

int main()
{
    Suite *s = suite_create("windows");
    TCase *tc = tcase_create("windows");
    struct errmsg err;

    if (circuit_create(sector_size_by_name("2KiB"), &small_circuit, &err) < 0)
        return 1;
    tcase_set_timeout(tc, 60);
    tcase_add_test(tc, windows__cover_a_query_once);
    tcase_add_test(tc, windows__one_holds_what_fits);
    tcase_add_test(tc, windows__of_all_queries_in_bytes);
    tcase_add_test(tc, windows__of_a_query_with_gaps);
    suite_add_tcase(s, tc);
    const int ret = suite_run(s);
    circuit_destroy(small_circuit);
    return ret;
}
