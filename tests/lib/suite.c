#include "tests/lib/suite.h"

#include <stdio.h>
#include <stdlib.h>

#define TIMEOUT_S "300" /* where a test sets none: ends only what hangs, on whatever busy machine */

static int skipped;

/* Check's own are four seconds. Before main, for it asks when a case is made. */
__attribute__((constructor)) static void set_timeout(void)
{
    setenv("CK_DEFAULT_TIMEOUT", TIMEOUT_S, 0);
}

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
