#include "daemon/job.h"

#include <check.h>
#include <errno.h>

#include "tests/lib/suite.h"

START_TEST(job_priority__words_and_back)
{
    enum job_priority p;

    for (unsigned i = 0; i < JOB_PRIORITIES; i++) {
        ck_assert_int_eq(job_priority_parse(job_priority_name((enum job_priority)i), &p), 0);
        ck_assert_uint_eq(p, i);
    }
    ck_assert_int_eq(job_priority_parse("urgent", &p), -EINVAL);
    ck_assert_int_eq(job_priority_parse("", &p), -EINVAL);
    ck_assert_int_eq(job_priority_parse("High", &p), -EINVAL);
}
END_TEST

START_TEST(job_state__ends_are_ends)
{
    for (unsigned from = 0; from < JOB_STATES; from++) {
        bool final = job_state_is_final((enum job_state)from);
        ck_assert_str_ne(job_state_name((enum job_state)from), "unknown");
        ck_assert(!job_state_may_follow((enum job_state)from, (enum job_state)from));
        for (unsigned to = 0; to < JOB_STATES; to++) {
            /* Only a refused file may be written anew, and a proof that the disk lost be made anew. */
            if (final && !(from == JOB_REJECTED && to == JOB_RECEIVING) &&
                !(from == JOB_DONE && (to == JOB_QUEUED || to == JOB_FAILED)))
                ck_assert(!job_state_may_follow((enum job_state)from, (enum job_state)to));
        }
    }
    ck_assert(job_state_may_follow(JOB_RECEIVING, JOB_QUEUED));
    ck_assert(job_state_may_follow(JOB_PROVING, JOB_QUEUED)); /* its engine died */
    ck_assert(!job_state_may_follow(JOB_QUEUED, JOB_RECEIVING));
    ck_assert(!job_state_may_follow(JOB_RECEIVING, JOB_DONE));
    ck_assert_str_eq(job_state_name(JOB_REJECTED), "refused");
}
END_TEST

START_TEST(job_name__temporary_names_are_told_apart)
{
    static const char *const temporary[] = {".hidden",  "a~",     "a.json.swp", "a.swpx",
                                            "a.tmp",    "a.part", "sedAb3dEf",  ".a.XXXXXX",
                                            ".a.proof", "~"};
    static const char *const final[] = {"a",          "a.json",   "sed", "sedAb3dE",
                                        "sedAb3dEfg", "sedAb-dE", "tmp", "a.tmp.json",
                                        "part",       "swp"};

    for (size_t i = 0; i < ARRAY_LEN(temporary); i++)
        ck_assert_msg(job_name_is_temporary(temporary[i]), "%s", temporary[i]);
    for (size_t i = 0; i < ARRAY_LEN(final); i++)
        ck_assert_msg(!job_name_is_temporary(final[i]), "%s", final[i]);
}
END_TEST

START_TEST(job_name__suffixes_of_the_service_are_reserved)
{
    static const char *const reserved[] = {"a.proof", "a.proof.bin", "a.status", "a.report",
                                           "a.error", "a.priority",  ".proof"};
    static const char *const free_names[] = {"a", "proof", "a.proofs", "a.proof.json", "a.bin"};

    for (size_t i = 0; i < ARRAY_LEN(reserved); i++)
        ck_assert_msg(job_name_is_reserved(reserved[i]), "%s", reserved[i]);
    for (size_t i = 0; i < ARRAY_LEN(free_names); i++)
        ck_assert_msg(!job_name_is_reserved(free_names[i]), "%s", free_names[i]);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("job");
    TCase *tc = tcase_create("job");

    tcase_add_test(tc, job_priority__words_and_back);
    tcase_add_test(tc, job_state__ends_are_ends);
    tcase_add_test(tc, job_name__temporary_names_are_told_apart);
    tcase_add_test(tc, job_name__suffixes_of_the_service_are_reserved);
    suite_add_tcase(s, tc);
    return suite_run(s);
}
