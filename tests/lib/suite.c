#include "tests/lib/suite.h"

#include <stdio.h>

static int skipped;

void suite_skip(const char *test, const char *lacks)
{
    printf("SKIP  %s: %s\n", test, lacks);
    skipped++;
}

int suite_run(Suite *s)
{
    SRunner *r = srunner_create(s);

    srunner_run_all(r, CK_ENV);
    int failed = srunner_ntests_failed(r);
    int run = srunner_ntests_run(r);
    srunner_free(r);
    printf("%d passed, %d failed, %d skipped\n", run - failed, failed, skipped);
    return failed ? 1 : 0;
}
