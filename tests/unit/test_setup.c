/*
 * What setup does around the parameters: names, markers, other people's files. That their bytes are right is shown by
 * tests/system/test_setup.sh.
 */
#include "gpu/setup.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "gpu/srs_counts.h"
#include "tests/lib/suite.h"
#include "tests/lib/vectors.h"

static char dir[64];
static const char *const suffixes[] = {".params", ".vk", ".meta"};

static void make_dir(void)
{
    snprintf(dir, sizeof(dir), "/tmp/proofd-setup-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(dir));
}

static void remove_dir(void)
{
    char command[128];

    snprintf(command, sizeof(command), "rm -r %s", dir);
    ck_assert_int_eq(system(command), 0);
}

static void touch(const struct sector_size *size, const char *suffix)
{
    char path[512], id[SECTOR_CACHE_ID_MAX];

    sector_cache_id(size, id);
    snprintf(path, sizeof(path), "%s/%s%s", dir, id, suffix);
    fclose(fopen(path, "w"));
}

static int run(const char *where, bool *made, struct errmsg *err)
{
    struct setup_options opt = {.dir = where};

    return setup_run(sector_size_by_name("2KiB"), &opt, made, err);
}

START_TEST(setup_run__never_touches_a_file_without_our_marker)
{
    const struct sector_size *size = sector_size_by_name("2KiB");
    struct errmsg err;
    bool made;

    touch(size, suffixes[_i]);
    ck_assert_int_eq(run(dir, &made, &err), -EEXIST);
    ck_assert_ptr_nonnull(strstr(err.text, suffixes[_i]));
    ck_assert_ptr_nonnull(strstr(err.text, dir));
    ck_assert_ptr_nonnull(strstr(err.text, ".insecure"));
}
END_TEST

static void path_of(const char *suffix, char out[512])
{
    char id[SECTOR_CACHE_ID_MAX];

    sector_cache_id(sector_size_by_name("2KiB"), id);
    snprintf(out, 512, "%s/%s%s", dir, id, suffix);
}

static void put(const char *suffix, const void *bytes, size_t len)
{
    char path[512];

    path_of(suffix, path);
    FILE *f = fopen(path, "w");
    ck_assert_ptr_nonnull(f);
    ck_assert_uint_eq(fwrite(bytes, 1, len, f), len);
    fclose(f);
}

/* All four files, the points being zeros that take no room. */
static void make_complete(void)
{
    const struct sector_size *size = sector_size_by_name("2KiB");
    char path[512], from[VECTOR_PATH_MAX], relative[256], id[SECTOR_CACHE_ID_MAX];
    struct srs_counts c;
    size_t len;

    sector_cache_id(size, id);
    snprintf(relative, sizeof(relative), "vk/%s.vk", id);
    ck_assert(vector_find(from, relative));
    char *key = vector_read(from, &len);
    put(".vk", key, len);
    put(".params", key, len);
    put(".meta", "{\"sector_size\":2048}", 20);
    put(".insecure", "", 0);
    free(key);
    srs_counts(size, &c);
    const size_t bytes[] = {96 * c.h, 96 * c.l, 96 * c.a, 96 * c.b, 192 * c.b};
    const size_t counts[] = {c.h, c.l, c.a, c.b, c.b};
    path_of(".params", path);
    int fd = open(path, O_WRONLY);
    uint64_t at = len;
    for (size_t i = 0; i < ARRAY_LEN(counts); at += 4 + bytes[i++]) {
        uint8_t count[4];
        store_be32(count, (uint32_t)counts[i]);
        ck_assert_int_eq(pwrite_full(fd, count, sizeof(count), at), 0);
    }
    ck_assert_int_eq(ftruncate(fd, (off_t)at), 0);
    close(fd);
}

START_TEST(setup_run__keeps_what_is_complete)
{
    bool made = true;

    make_complete();
    ck_assert_int_eq(run(dir, &made, NULL), 0);
    ck_assert(!made);
}
END_TEST

static void note_damage(void *ctx, const struct errmsg *how)
{
    *(struct errmsg *)ctx = *how;
}

/* The rest would take a while. */
static void end_in_making(void *ctx, const char *stage, uint64_t done, uint64_t total)
{
    const struct errmsg *how = ctx;

    (void)stage, (void)done, (void)total;
    _exit(how->text[0] ? 0 : 1);
}

static void expect_made_anew(void)
{
    struct errmsg how = {""};
    bool made;
    int status;

    pid_t child = fork();
    if (child == 0) {
        struct setup_options opt = {
            .dir = dir, .damaged = note_damage, .progress = end_in_making, .progress_ctx = &how};
        setup_run(sector_size_by_name("2KiB"), &opt, &made, NULL);
        _exit(2);
    }
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_int_eq(status, 0);
}

START_TEST(setup_run__makes_anew_what_is_damaged)
{
    static const long cut[] = {0, 1000, 5000, 500000000, 1114707767};
    char path[512];

    make_complete();
    path_of(".params", path);
    for (size_t i = ARRAY_LEN(cut); i-- > 0;) {
        ck_assert_int_eq(truncate(path, cut[i]), 0);
        expect_made_anew();
    }
    make_complete();
    put(".vk", "", 0);
    expect_made_anew();
}
END_TEST

START_TEST(setup_run__leaves_to_people_what_may_be_somebodys)
{
    char path[512], command[1100];
    struct errmsg err = {""};
    bool made;

    make_complete();
    path_of(".params", path);
    ck_assert_int_eq(unlink(path), 0);
    ck_assert_int_eq(symlink("/mnt/not-mounted", path), 0); /* by whom has them elsewhere */
    ck_assert_int_eq(run(dir, &made, &err), -EBADMSG);
    ck_assert_msg(strstr(err.text, "leads nowhere") != NULL, "%s", err.text);
    ck_assert_int_eq(unlink(path), 0);
    make_complete();
    int fd = open(path, O_WRONLY);
    ck_assert_int_eq(pwrite_full(fd, "\1", 1, 95), 0); /* no point any more */
    ck_assert_int_eq(run(dir, &made, &err), -EBADMSG);
    ck_assert_msg(strstr(err.text, "is damaged; remove it") != NULL, "%s", err.text);

    uint8_t other[96]; /* beta_g1 in the place of alpha_g1: a key, and not ours */
    make_complete();
    int from = open(path, O_RDONLY);
    ck_assert_int_eq(pread_full(from, other, sizeof(other), 96), 0);
    ck_assert_int_eq(pwrite_full(fd, other, sizeof(other), 0), 0);
    close(from);
    close(fd);
    ck_assert_int_eq(run(dir, &made, &err), -EEXIST);
    ck_assert_msg(strstr(err.text, "are not the development parameters") != NULL, "%s", err.text);

    make_complete();
    path_of(".vk", path);
    fd = open(path, O_WRONLY);
    ck_assert_int_eq(pwrite_full(fd, other, sizeof(other), 0), 0);
    close(fd);
    ck_assert_int_eq(run(dir, &made, &err), -EEXIST);
    ck_assert_msg(strstr(err.text, ".vk: is not a key of the development") != NULL, "%s", err.text);

    snprintf(command, sizeof(command), "rm %s; mkdir %s", path, path);
    ck_assert_int_eq(system(command), 0);
    ck_assert_int_eq(run(dir, &made, &err), -EBADMSG);
    ck_assert_msg(strstr(err.text, "is not a regular file; remove it") != NULL, "%s", err.text);
}
END_TEST

START_TEST(setup_run__makes_directories_or_says_which_it_cannot)
{
    char below[160];
    struct errmsg err;
    bool made;

    snprintf(below, sizeof(below), "%s/file", dir);
    fclose(fopen(below, "w"));
    snprintf(below, sizeof(below), "%s/file/params", dir);
    ck_assert_int_eq(run(below, &made, &err), -ENOTDIR);
    ck_assert_ptr_nonnull(strstr(err.text, below));
    snprintf(below, sizeof(below), "%s/file", dir);
    ck_assert_int_eq(run(below, &made, &err), -ENOTDIR);
    ck_assert_ptr_nonnull(strstr(err.text, below));

    /* A directory that is there, at any depth, is used: what lies in it is looked at. */
    char id[SECTOR_CACHE_ID_MAX], command[1024];
    snprintf(below, sizeof(below), "%s/a/b/c", dir);
    sector_cache_id(sector_size_by_name("2KiB"), id);
    snprintf(command, sizeof(command), "mkdir -p %s && touch %s/%s.vk", below, below, id);
    ck_assert_int_eq(system(command), 0);
    ck_assert_int_eq(run(below, &made, &err), -EEXIST);
}
END_TEST

static int too_small(struct backend *be, const struct circuit *c, const struct secrets *t, fr_t *ic,
                     backend_progress progress, void *progress_ctx, struct errmsg *err)
{
    (void)be, (void)c, (void)t, (void)ic, (void)progress, (void)progress_ctx;
    return errmsg_set(err, -ENOMEM, "95000 MB of device memory wanted");
}

static void note_why(void *ctx, const struct errmsg *why)
{
    *(bool *)ctx = strcmp(why->text, "95000 MB of device memory wanted") == 0;
}

/* The rest is what test_setup.sh lets go on to its end. */
static void end_well(void *ctx, const char *stage, uint64_t done, uint64_t total)
{
    (void)stage, (void)done, (void)total;
    _exit(*(bool *)ctx ? 0 : 1);
}

START_TEST(setup_run__goes_on_without_a_device_of_too_little_memory)
{
    const struct backend_ops ops = {.name = "small", .develop = too_small};
    struct backend device = {.ops = &ops};
    struct workers *workers = NULL;
    bool said = false, made;
    int status;
    const pid_t pid = fork();

    if (pid == 0) {
        if (workers_create(1, &workers, NULL) < 0)
            _exit(2);
        const struct setup_options opt = {.dir = dir,
                                          .workers = workers,
                                          .device = &device,
                                          .without_device = note_why,
                                          .progress = end_well,
                                          .progress_ctx = &said};
        setup_run(sector_size_by_name("2KiB"), &opt, &made, NULL);
        _exit(3);
    }
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert_int_eq(status, 0);
}
END_TEST

START_TEST(setup_made__knows_its_keys)
{
    static const char *const sizes[] = {"2KiB", "8MiB", "512MiB", "32GiB", "64GiB"};
    struct vk vk;

    for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
        vector_vk(sector_size_by_name(sizes[i]), &vk);
        ck_assert(setup_made(&vk));
        vk.alpha_g1 = vk.beta_g1;
        ck_assert(!setup_made(&vk));
        vk_fini(&vk);
    }
}
END_TEST

int main(void)
{
    Suite *s = suite_create("setup");
    TCase *tc = tcase_create("setup");

    tcase_add_checked_fixture(tc, make_dir, remove_dir);
    tcase_add_loop_test(tc, setup_run__never_touches_a_file_without_our_marker, 0,
                        ARRAY_LEN(suffixes));
    tcase_add_test(tc, setup_run__keeps_what_is_complete);
    tcase_add_test(tc, setup_run__makes_anew_what_is_damaged);
    tcase_add_test(tc, setup_run__leaves_to_people_what_may_be_somebodys);
    tcase_add_test(tc, setup_run__makes_directories_or_says_which_it_cannot);
    tcase_add_test(tc, setup_run__goes_on_without_a_device_of_too_little_memory);
    tcase_add_test(tc, setup_made__knows_its_keys);
    suite_add_tcase(s, tc);
    return suite_run(s);
}
