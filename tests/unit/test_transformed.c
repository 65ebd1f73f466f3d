/*
 * Files of transformed points: taken where everything is as it was when they were written, else left where they are, and the load
 * says why.
 */
#include "gpu/transformed.h"

#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "gpu/point.h"
#include "gpu/srs_file.h"
#include "tests/lib/params_image.h"
#include "tests/lib/random_group.h"
#include "tests/lib/suite.h"

#define LOG2_DOMAIN 4
#define ROWS 14
#define L 4100 /* two chunks */
static const struct srs_counts counts = {
    .ic = 3, .h = (1 << LOG2_DOMAIN) - 1, .l = L, .a = 13, .b = 5};

/* ---- a circuit whose row j has variables j and j + 1 in C, times 1 and 4 ---- */

struct tiny {
    struct circuit c;
    fr_t coeffs[CIRCUIT_SMALL_COEFFS];
    struct circuit_template part;
    struct circuit_instance instance;
    struct circuit_base bases[CIRCUIT_FOREIGN];
    uint32_t first[ROWS + 1];
    struct circuit_term terms[2 * ROWS];
};

static struct tiny tiny;

static void tiny_init(struct tiny *t)
{
    memset(t, 0, sizeof(*t));
    for (int i = 0; i < CIRCUIT_SMALL_COEFFS; i++) {
        t->coeffs[i] = fr_from_u64((uint64_t)abs(i - CIRCUIT_SMALL));
        if (i < CIRCUIT_SMALL)
            fr_neg(&t->coeffs[i], &t->coeffs[i]);
    }
    for (uint32_t r = 0; r < ROWS; r++) {
        const uint32_t own = CIRCUIT_OWN << 24, n = (uint32_t)counts.l;
        t->terms[2 * r] = (struct circuit_term){own | r % n, CIRCUIT_SMALL + 1};
        t->terms[2 * r + 1] =
            (struct circuit_term){r % 7 == 0 ? CIRCUIT_ONE : own | (r + 1) % n, CIRCUIT_SMALL + 4};
        t->first[r + 1] = 2 * r + 2;
    }
    t->part = (struct circuit_template){.n_rows = ROWS};
    t->c = (struct circuit){.n_inputs = counts.ic,
                            .n_aux = (uint32_t)counts.l,
                            .n_values = counts.ic,
                            .log2_domain = LOG2_DOMAIN,
                            .n_rows = ROWS,
                            .n_coeffs = CIRCUIT_SMALL_COEFFS,
                            .n_templates = 1,
                            .n_instances = 1,
                            .n_bases = CIRCUIT_FOREIGN,
                            .template_rows = ROWS,
                            .coeffs = t->coeffs,
                            .templates = &t->part,
                            .instances = &t->instance,
                            .bases = t->bases};
    t->c.sides[CIRCUIT_C] = (struct circuit_side){t->first, t->terms};
}

/* ---- parameters on disk, with a memory of their own ---- */

struct bench {
    struct params_image image;
    struct workers *workers;
    char dir[64], params[128], path[128], memory[128];
    struct srs *want; /* transformed in memory */
};

static void write_params(const struct bench *b)
{
    int fd = open(b->params, O_WRONLY | O_CREAT | O_TRUNC, 0644);

    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(pwrite_full(fd, b->image.bytes, b->image.len, 0), 0);
    close(fd);
}

/* What somebody does to the file when its first points have been read. */
static void (*meanwhile)(const char *path);

static void on_progress(void *ctx, const char *stage, uint64_t done, uint64_t total)
{
    const struct bench *b = ctx;
    void (*what)(const char *path) = meanwhile;

    (void)stage, (void)done, (void)total;
    meanwhile = NULL;
    if (what)
        what(b->path);
}

static int load(const struct bench *b, bool plain, struct srs **out, struct errmsg *err)
{
    const struct srs_source source = {.path = b->params, .counts = counts};
    const struct srs_options opt = {.memory = b->memory,
                                    .workers = b->workers,
                                    .progress = on_progress,
                                    .progress_ctx = (void *)b,
                                    .plain = plain};

    return srs_load(&source, NULL, &opt, out, err);
}

static struct srs *load_plain(const struct bench *b)
{
    struct srs *srs = NULL;
    struct errmsg err = {""};

    ck_assert_msg(load(b, true, &srs, &err) == 0, "%s", err.text);
    ck_assert(!srs->transformed && !srs->input_l && !srs->not_transformed.text[0]);
    return srs;
}

static int make(const struct bench *b, struct srs *srs, struct errmsg *err)
{
    struct transformed_options opt = {.memory = b->memory};

    ck_assert_int_eq(backend_cpu_create(b->workers, &opt.backend, NULL), 0);
    int ret = transformed_make(srs, &tiny.c, &opt, err);
    backend_destroy(opt.backend);
    return ret;
}

/* Made once, for all tests to take copies of. */
static struct bench model;

static void choose_paths(struct bench *b)
{
    strcpy(b->dir, "/tmp/proofd-transformed-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(b->dir));
    snprintf(b->params, sizeof(b->params), "%s/toy.params", b->dir);
    snprintf(b->path, sizeof(b->path), "%s/toy.transformed", b->dir);
    snprintf(b->memory, sizeof(b->memory), "%s/state/trusted", b->dir);
}

static void model_init(void)
{
    struct errmsg err = {""};

    choose_paths(&model);
    params_image_init(&model.image, &counts);
    write_params(&model);
    tiny_init(&tiny);
    model.want = load_plain(&model);
    ck_assert_msg(make(&model, model.want, &err) == 0, "%s", err.text);
}

static void remove_dir(const struct bench *b)
{
    char command[128];

    snprintf(command, sizeof(command), "rm -r %s", b->dir);
    ck_assert_int_eq(system(command), 0);
}

static void model_fini(void)
{
    srs_close(model.want);
    params_image_fini(&model.image);
    remove_dir(&model);
}

static void bench_init(struct bench *b)
{
    char command[256];

    *b = model;
    choose_paths(b);
    snprintf(command, sizeof(command), "cp -r %s/. %s", model.dir, b->dir);
    ck_assert_int_eq(system(command), 0);
    ck_assert_int_eq(workers_create(3, &b->workers, NULL), 0);
}

static void bench_fini(struct bench *b)
{
    workers_destroy(b->workers);
    remove_dir(b);
}

static void expect_a_and_b(const struct bench *b, const struct srs *srs)
{
    uint8_t bytes[G2_BYTES];

    for (size_t i = 0; i < srs->a_len; i++) {
        g1_encode(bytes, &srs->a[i]);
        ck_assert_mem_eq(bytes, params_image_point(&b->image, IMAGE_A, i), G1_BYTES);
    }
    for (size_t i = 0; i < srs->b_len; i++) {
        g1_encode(bytes, &srs->b_g1[i]);
        ck_assert_mem_eq(bytes, params_image_point(&b->image, IMAGE_B_G1, i), G1_BYTES);
        g2_encode(bytes, &srs->b_g2[i]);
        ck_assert_mem_eq(bytes, params_image_point(&b->image, IMAGE_B_G2, i), G2_BYTES);
    }
}

static void expect_transformed(const struct bench *b)
{
    struct srs *srs = NULL;
    struct errmsg err = {""};

    ck_assert_msg(load(b, false, &srs, &err) == 0, "%s", err.text);
    ck_assert_str_eq(srs->not_transformed.text, "");
    ck_assert(srs->transformed && srs->remembered);
    ck_assert_int_eq(srs->trust, SRS_CHECKED);
    ck_assert_uint_eq(srs->h_len, counts.h + 1);
    ck_assert_uint_eq(srs->l_len, counts.l);
    ck_assert_mem_eq(srs->h, b->want->h, srs->h_len * sizeof(*srs->h));
    ck_assert_mem_eq(srs->l, b->want->l, srs->l_len * sizeof(*srs->l));
    ck_assert_mem_eq(srs->input_l, b->want->input_l, counts.ic * sizeof(*srs->input_l));
    expect_a_and_b(b, srs);
    srs_close(srs);
}

/* Everything from the parameters, and why. */
static void expect_plain(const struct bench *b, const char *says)
{
    struct srs *srs = NULL;
    struct errmsg err = {""};
    uint8_t bytes[G1_BYTES];

    ck_assert_msg(load(b, false, &srs, &err) == 0, "%s", err.text);
    ck_assert(!srs->transformed && !srs->input_l);
    ck_assert_uint_eq(srs->h_len, counts.h);
    ck_assert_msg(strstr(srs->not_transformed.text, says), "'%s' does not say '%s'",
                  srs->not_transformed.text, says);
    if (*says)
        ck_assert_ptr_eq(strstr(srs->not_transformed.text, b->path), srs->not_transformed.text);
    else
        ck_assert_str_eq(srs->not_transformed.text, "");
    for (size_t i = 0; i < srs->h_len; i++) {
        g1_encode(bytes, &srs->h[i]);
        ck_assert_mem_eq(bytes, params_image_point(&b->image, IMAGE_H, i), G1_BYTES);
    }
    expect_a_and_b(b, srs);
    srs_close(srs);
}

static void flip(const char *path, uint64_t at)
{
    uint8_t byte;
    int fd = open(path, O_RDWR);

    ck_assert_int_eq(pread_full(fd, &byte, 1, at), 0);
    byte ^= 1;
    ck_assert_int_eq(pwrite_full(fd, &byte, 1, at), 0);
    close(fd);
}

START_TEST(transformed__are_taken_once_written)
{
    struct bench b;
    struct stat st;

    bench_init(&b);
    ck_assert_int_eq(stat(b.path, &st), 0);
    ck_assert_uint_eq((uint64_t)st.st_size, srs_transformed_bytes(&counts));
    expect_transformed(&b);
    expect_transformed(&b);
    srs_close(load_plain(&b));
    unlink(b.path);
    expect_plain(&b, "");
    bench_fini(&b);
}
END_TEST

/* The head, each section, the end. */
START_TEST(transformed__damaged_are_not_taken)
{
    static const struct {
        uint64_t at;
        const char *says;
    } damages[] = {
        {0, "is no file of transformed parameters"},
        {40, "belongs to other parameters"},
        {127, "belongs to other parameters"},
        {SRS_TRANSFORMED_HEAD_BYTES, "bytes of input_l) is not the one that was found good"},
        {SRS_TRANSFORMED_HEAD_BYTES + 96 * (3 + 15), "(1536 bytes of h) is not the one"},
        {SRS_TRANSFORMED_HEAD_BYTES + 96 * (3 + 16 + L) - 1, "(384 bytes of l) is not the one"},
    };
    struct bench b;

    bench_init(&b);
    flip(b.path, damages[_i].at);
    expect_plain(&b, damages[_i].says);
    expect_plain(&b, "proofctl transform SIZE makes it anew");
    flip(b.path, damages[_i].at);
    expect_transformed(&b);
    bench_fini(&b);
}
END_TEST

START_TEST(transformed__of_another_length_are_not_taken)
{
    const off_t bytes = (off_t)srs_transformed_bytes(&counts);
    struct bench b;

    bench_init(&b);
    ck_assert_int_eq(truncate(b.path, bytes + 1), 0);
    expect_plain(&b, "has 395553 bytes of 395552");
    ck_assert_int_eq(truncate(b.path, bytes - 1), 0);
    expect_plain(&b, "bytes of 395552");
    ck_assert_int_eq(truncate(b.path, 100), 0);
    expect_plain(&b, "is no file of transformed parameters");
    ck_assert_int_eq(truncate(b.path, 0), 0);
    expect_plain(&b, "is no file of transformed parameters");
    unlink(b.path);
    ck_assert_int_eq(mkdir(b.path, 0755), 0);
    expect_plain(&b, "is not a regular file");
    bench_fini(&b);
}
END_TEST

static void cut(const char *path)
{
    ck_assert_int_eq(truncate(path, 1000), 0);
}

static void append(const char *path)
{
    int fd = open(path, O_WRONLY | O_APPEND);

    ck_assert_int_eq(write(fd, "x", 1), 1);
    close(fd);
}

static void touch_one(const char *path)
{
    flip(path, SRS_TRANSFORMED_HEAD_BYTES);
}

START_TEST(transformed__that_change_while_they_are_read_are_not_taken)
{
    static void (*const what[])(const char *path) = {cut, append, touch_one};
    struct bench b;

    bench_init(&b);
    meanwhile = what[_i];
    expect_plain(&b, "changed while it was read; it is not used");
    ck_assert_ptr_null(meanwhile);
    bench_fini(&b);
}
END_TEST

static void drop(const char *path)
{
    ck_assert_int_eq(unlink(path), 0);
}

static void put_another(const char *path)
{
    char other[160];

    snprintf(other, sizeof(other), "%s.other", path);
    int fd = open(other, O_WRONLY | O_CREAT, 0644);
    ck_assert_int_eq(write(fd, "other", 5), 5);
    close(fd);
    ck_assert_int_eq(rename(other, path), 0);
}

/* What was opened is read to its end. */
START_TEST(transformed__whose_name_goes_while_they_are_read_are_taken)
{
    struct bench b;

    bench_init(&b);
    meanwhile = drop;
    expect_transformed(&b);
    expect_plain(&b, "");
    bench_fini(&b);
    bench_init(&b);
    meanwhile = put_another;
    expect_transformed(&b);
    expect_plain(&b, "is no file of transformed parameters");
    bench_fini(&b);
}
END_TEST

/* Any bytes are the points of a note that somebody else may have written. */
START_TEST(transformed__with_a_note_that_others_may_write_are_not_taken)
{
    struct bench b;
    char command[256];

    bench_init(&b);
    snprintf(command, sizeof(command), "chmod g+w %s/state/*", b.dir);
    ck_assert_int_eq(system(command), 0);
    struct srs *srs = NULL;
    struct errmsg err = {""};
    ck_assert_int_eq(load(&b, false, &srs, &err), 0);
    ck_assert(!srs->transformed && !srs->remembered);
    ck_assert_ptr_nonnull(strstr(srs->not_transformed.text, "had to be checked anew"));
    srs_close(srs);
    /* The parameters have a note again, the transformed points have not. */
    expect_plain(&b, "is not remembered as written here; it is not used");
    bench_fini(&b);
}
END_TEST

/* As a file is that was copied from elsewhere, or whose memory is lost. */
START_TEST(transformed__not_remembered_are_not_taken)
{
    struct bench b;
    char note[4096];

    bench_init(&b);
    struct transformed_owner owner = {.counts = counts};
    memcpy(owner.vk_digest, b.want->vk_digest, sizeof(owner.vk_digest));
    memcpy(owner.digest, b.want->file_digest, sizeof(owner.digest));
    struct chunk_note known = transformed_note(&owner);
    ck_assert_int_eq(chunk_note_path(b.memory, known.vk_digest, note), 0);
    ck_assert_int_eq(unlink(note), 0);
    expect_plain(&b, "is not remembered as written here; it is not used");
    bench_fini(&b);
}
END_TEST

/* Other parameters of the same size, with the same key even. */
START_TEST(transformed__of_other_parameters_are_not_taken)
{
    struct bench b;
    uint8_t *first, *second, point[G1_BYTES];

    bench_init(&b);
    first = params_image_point(&b.image, IMAGE_H, 7);
    second = params_image_point(&b.image, IMAGE_H, 8);
    memcpy(point, first, sizeof(point));
    memcpy(first, second, sizeof(point));
    memcpy(second, point, sizeof(point));
    write_params(&b);
    /* Nobody reads h as long as the parameters are believed to be those that were transformed, */
    expect_transformed(&b);
    srs_close(load_plain(&b)); /* and here it is seen that they are not. */
    expect_plain(&b, "belongs to other parameters");
    bench_fini(&b);
}
END_TEST

/* What is read of the parameters is compared as ever. */
START_TEST(transformed__do_not_hide_damaged_parameters)
{
    struct bench b;
    struct srs *srs = NULL;
    struct errmsg err = {""};

    bench_init(&b);
    uint8_t *point = params_image_point(&b.image, IMAGE_A, 5);
    point[95] ^= 1;
    write_params(&b);
    ck_assert_int_eq(load(&b, false, &srs, &err), -EBADMSG);
    ck_assert_msg(strstr(err.text, "bytes of a) is not the one that was found good"), "%s",
                  err.text);
    ck_assert_msg(strstr(err.text, "a[5] is not on the curve"), "%s", err.text);
    point[95] ^= 1;
    write_params(&b);
    expect_transformed(&b);
    bench_fini(&b);
}
END_TEST

/* A load that checks everything takes nothing else; the next one does. */
START_TEST(transformed__wait_for_trusted_parameters)
{
    struct bench b;
    char note[4096];

    bench_init(&b);
    ck_assert_int_eq(chunk_note_path(b.memory, b.want->vk_digest, note), 0);
    ck_assert_int_eq(unlink(note), 0);
    expect_plain(&b, "not used this time");
    expect_transformed(&b);
    bench_fini(&b);
}
END_TEST

START_TEST(transformed__coordinates_are_below_the_modulus)
{
    static const size_t sections[] = {0, 3, 3 + (1 << LOG2_DOMAIN)};
    static const char *const names[] = {"input_l[1]", "h[1]", "l[1]"};
    const struct srs_reading how = {.workers = NULL};
    struct bench b;
    struct srs srs;
    struct errmsg err = {""};

    bench_init(&b);
    const uint64_t at = SRS_TRANSFORMED_HEAD_BYTES + 96 * (sections[_i] + 1) + 47;
    int fd = open(b.path, O_RDWR);
    ck_assert_int_eq(srs_read_transformed(fd, "toy", &counts, &how, &srs, NULL), 0);
    srs_fini(&srs);
    ck_assert_int_eq(pwrite_full(fd, "\xff", 1, at), 0);
    ck_assert_int_eq(srs_read_transformed(fd, "toy", &counts, &how, &srs, &err), -EBADMSG);
    ck_assert_msg(strstr(err.text, names[_i]), "%s", err.text);
    ck_assert_msg(strstr(err.text, "not below the modulus"), "%s", err.text);
    close(fd);
    bench_fini(&b);
}
END_TEST

/* ---- when they cannot be made ---- */

static int fall_off(struct backend *be, g1_affine_t *points, uint32_t log2_len, const fr_t *shift,
                    const fr_t *factor, backend_progress progress, void *progress_ctx,
                    struct errmsg *err)
{
    (void)be, (void)points, (void)log2_len, (void)shift, (void)factor;
    (void)progress, (void)progress_ctx;
    return errmsg_set(err, -EIO, "the device fell off");
}

START_TEST(transformed_make__that_fails_leaves_nothing_new)
{
    struct bench b;
    struct errmsg err = {""};
    char temporary[160];

    bench_init(&b);
    snprintf(temporary, sizeof(temporary), "%s.tmp", b.path);
    struct srs *srs = load_plain(&b);
    struct backend_ops ops = {.name = "bad"};
    struct backend bad = {.ops = &ops, .workers = b.workers};
    struct transformed_options opt = {.memory = b.memory, .backend = &bad};
    ops.transform_points = fall_off;
    ck_assert_int_eq(transformed_make(srs, &tiny.c, &opt, &err), -EIO);
    ck_assert_str_eq(err.text, "the device fell off");
    ck_assert_int_eq(access(temporary, F_OK), -1);
    expect_transformed(&b); /* the one that there was */
    opt.memory = "";
    ck_assert_int_eq(transformed_make(srs, &tiny.c, &opt, &err), -EINVAL);
    ck_assert_ptr_nonnull(strstr(err.text, "no place to remember"));
    srs_close(srs);
    bench_fini(&b);
}
END_TEST

/* Nobody would take the file, so it is not worth the minutes, or its place on the disk. */
START_TEST(transformed_make__that_cannot_be_remembered)
{
    struct bench b;
    struct errmsg err = {""};
    char params_note[4096], note[4096];

    bench_init(&b);
    struct srs *srs = load_plain(&b);
    struct transformed_owner owner = {.counts = counts};
    memcpy(owner.vk_digest, srs->vk_digest, sizeof(owner.vk_digest));
    memcpy(owner.digest, srs->file_digest, sizeof(owner.digest));
    ck_assert_int_eq(chunk_note_path(b.memory, srs->vk_digest, params_note), 0);
    ck_assert_int_eq(chunk_note_path(b.memory, transformed_note(&owner).vk_digest, note), 0);
    struct backend_ops ops = {.name = "bad"};
    struct backend bad = {.ops = &ops, .workers = b.workers};
    const struct transformed_options opt = {.memory = b.memory, .backend = &bad};
    ops.transform_points = fall_off;
    ck_assert_int_eq(rename(params_note, note), 0);
    ck_assert_int_eq(transformed_make(srs, &tiny.c, &opt, &err), -EIO);
    ck_assert_ptr_nonnull(strstr(err.text, "toy.params: could not be remembered beside"));
    ck_assert_int_eq(access(b.path, F_OK), 0); /* nothing had begun */

    ck_assert_int_eq(rename(note, params_note), 0);
    ck_assert_int_eq(mkdir(note, 0700), 0);
    ck_assert_int_lt(make(&b, srs, &err), 0);
    ck_assert_ptr_nonnull(strstr(err.text, note));
    ck_assert_int_eq(access(b.path, F_OK), -1);
    ck_assert_int_eq(rmdir(note), 0);
    srs_close(srs);
    bench_fini(&b);
}
END_TEST

START_TEST(transformed_make__one_at_a_time)
{
    struct bench b;
    struct errmsg err = {""};
    char temporary[160];

    bench_init(&b);
    snprintf(temporary, sizeof(temporary), "%s.tmp", b.path);
    struct srs *srs = load_plain(&b);
    int fd = open(temporary, O_RDWR | O_CREAT, 0644);
    ck_assert_int_eq(flock(fd, LOCK_EX), 0);
    ck_assert_int_eq(make(&b, srs, &err), -EBUSY);
    ck_assert(!srs->transformed);
    close(fd);
    ck_assert_msg(make(&b, srs, &err) == 0, "%s", err.text);
    srs_close(srs);
    expect_transformed(&b);
    bench_fini(&b);
}
END_TEST

START_TEST(transformed_check_room__says_what_is_wanted_and_what_is_free)
{
    const struct srs_counts huge = {.ic = 3, .h = UINT64_C(1) << 50, .l = 1};
    struct errmsg err = {""};

    ck_assert_int_eq(transformed_check_room("/tmp/x.params", &counts, &err), 0);
    ck_assert_int_eq(transformed_check_room("/tmp/x.params", &huge, &err), -ENOSPC);
    ck_assert_ptr_nonnull(strstr(err.text, "they take 108086391056892"));
    ck_assert_ptr_nonnull(strstr(err.text, "are free"));
    ck_assert_int_eq(transformed_check_room("/nowhere/x.params", &counts, &err), -ENOENT);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("transformed");
    TCase *tc = tcase_create("transformed");

    tcase_add_unchecked_fixture(tc, model_init, model_fini);
    tcase_add_test(tc, transformed__are_taken_once_written);
    tcase_add_loop_test(tc, transformed__damaged_are_not_taken, 0, 6);
    tcase_add_test(tc, transformed__of_another_length_are_not_taken);
    tcase_add_loop_test(tc, transformed__that_change_while_they_are_read_are_not_taken, 0, 3);
    tcase_add_test(tc, transformed__whose_name_goes_while_they_are_read_are_taken);
    tcase_add_test(tc, transformed__with_a_note_that_others_may_write_are_not_taken);
    tcase_add_test(tc, transformed__not_remembered_are_not_taken);
    tcase_add_test(tc, transformed__of_other_parameters_are_not_taken);
    tcase_add_test(tc, transformed__do_not_hide_damaged_parameters);
    tcase_add_test(tc, transformed__wait_for_trusted_parameters);
    tcase_add_loop_test(tc, transformed__coordinates_are_below_the_modulus, 0, 3);
    tcase_add_test(tc, transformed_make__that_fails_leaves_nothing_new);
    tcase_add_test(tc, transformed_make__that_cannot_be_remembered);
    tcase_add_test(tc, transformed_make__one_at_a_time);
    tcase_add_test(tc, transformed_check_room__says_what_is_wanted_and_what_is_free);
    suite_add_tcase(s, tc);
    return suite_run(s);
}
