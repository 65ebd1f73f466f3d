/*
 * Sectors that nobody has seen before, sealed by c2-reference in this run: each kind is read, passes every
 * check, and decodes to what the reference says it does.
 */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "numa/circuit/c1_reader.h"
#include "tests/lib/c1_forms.h"
#include "tests/lib/files.h"
#include "tests/lib/suite.h"

static char reference[1024], folder[] = "/tmp/proofd-c1-fresh-XXXXXX";
static unsigned sector;

static const char *const kinds[] = {"StackedDrg2KiBV1", "StackedDrg2KiBV1_1",
                                    "StackedDrg2KiBV1_1_Feat_SyntheticPoRep"};

static void seal(const char *kind)
{
    char command[4096];

    snprintf(command, sizeof(command),
             "'%s' seal %s %s/%s %u >%s/log 2>&1 && '%s' bincode %s/%s >%s/log 2>&1", reference,
             kind, folder, kind, sector, folder, reference, folder, kind, folder);
    ck_assert_int_eq(system(command), 0);
}

static struct c1 *read_strictly(const char *path, struct c1_extra *extra)
{
    struct errmsg err = {""};
    struct c1 *c1 = NULL;

    ck_assert_msg(c1_read_file(path, C1_CHECK_STRICT, NULL, &c1, extra, &err) == 0, "%s", err.text);
    return c1;
}

static const char *sealed_path(const char *kind, const char *file)
{
    static char path[512];

    snprintf(path, sizeof(path), "%s/%s/%s", folder, kind, file);
    return path;
}

START_TEST(c1_reader__fresh_sector_decodes_as_the_reference_says)
{
    const char *kind = kinds[_i];
    struct c1_extra extra;
    size_t wanted_len, len;

    seal(kind);
    uint8_t *wanted = file_read(sealed_path(kind, "c1.bincode"), &wanted_len);
    static const char *const files[] = {"commit-phase1-output.json", "c1.json", "c1.bincode"};
    for (size_t i = 0; i < ARRAY_LEN(files); i++) {
        struct c1 *c1 = read_strictly(sealed_path(kind, files[i]), &extra);
        const uint8_t *bytes = c1_bincode(c1, &len);
        ck_assert_str_eq(c1_seal_proof(c1)->name, kind);
        ck_assert_uint_eq(len, wanted_len);
        ck_assert_mem_eq(bytes, wanted, len);
        ck_assert(i != 1 || (extra.has_sector_number && extra.sector_number == sector));
        c1_destroy(c1);
    }
    free(wanted);
}
END_TEST

START_TEST(c1_reader__fresh_sector_without_proof_type)
{
    const char *kind = kinds[_i];
    struct c1_reader *r = NULL;
    struct c1 *c1 = NULL;
    struct c1_extra extra;
    struct errmsg err = {""};
    size_t len;

    seal(kind);
    uint8_t *api = file_read(sealed_path(kind, "c1.bincode"), &len);
    ck_assert_int_eq(c1_reader_create(C1_CHECK_FORM, NULL, &r), 0);
    ck_assert_msg(c1_reader_feed(r, api + 8, len - 8, &err) == 0, "%s", err.text);
    ck_assert_msg(c1_reader_finish(r, &c1, &extra, &err) == 0, "%s", err.text);
    ck_assert_str_eq(c1_seal_proof(c1)->name, kind);
    c1_reader_destroy(r);
    c1_destroy(c1);
    free(api);
}
END_TEST

static bool find_reference(void)
{
    FILE *f = popen("tests/lib/find-reference.sh 2>/dev/null", "r");

    if (!f)
        return false;
    bool there = fgets(reference, sizeof(reference), f) != NULL;
    reference[strcspn(reference, "\n")] = '\0';
    return pclose(f) == 0 && there;
}

int main(void)
{
    char command[128];

    if (!find_reference()) {
        printf("c2-reference is not at hand\n");
        return 77;
    }

    Suite *s = suite_create("c1_fresh");
    TCase *tc = tcase_create("c1_fresh");
    if (!mkdtemp(folder))
        return 1;
    sector = (unsigned)time(NULL) % 1000000;
    printf("seed: sector %u\n", sector);
    tcase_set_timeout(tc, 300);
    tcase_add_loop_test(tc, c1_reader__fresh_sector_decodes_as_the_reference_says, 0, 3);
    tcase_add_loop_test(tc, c1_reader__fresh_sector_without_proof_type, 0, 3);
    suite_add_tcase(s, tc);
    int status = suite_run(s);
    snprintf(command, sizeof(command), "rm -rf %s", folder);
    return system(command) == 0 ? status : 1;
}
