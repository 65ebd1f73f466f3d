#include "gpu/srs.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "gpu/chunks.h"
#include "gpu/point.h"
#include "gpu/srs_file.h"
#include "gpu/trusted.h"
#include "numa/circuit/porep.h"
#include "tests/lib/odd_points.h"
#include "tests/lib/params_image.h"
#include "tests/lib/suite.h"
#include "tests/lib/vectors.h"

#define SECTOR_SIZES 10 /* in the table sector_sizes */

static const struct srs_counts small = {.ic = 3, .h = 15, .l = 11, .a = 13, .b = 5};

/* --------------------------------------------------------------------------------------- trust */

/* A toy file on disk and a memory of its own, in a directory of its own. */
struct bench {
    struct params_image image;
    char dir[64], path[128], memory[128], digest[33];
};

static void bench_write(const struct bench *b)
{
    int fd = open(b->path, O_WRONLY | O_CREAT | O_TRUNC, 0644);

    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(pwrite_full(fd, b->image.bytes, b->image.len, 0), 0);
    close(fd);
}

static void bench_digest(struct bench *b)
{
    uint8_t whole[64];

    EVP_Digest(b->image.bytes, b->image.len, whole, NULL, EVP_blake2b512(), NULL);
    hex_encode(b->digest, whole, 16);
}

static void bench_init_of(struct bench *b, const struct srs_counts *counts)
{
    snprintf(b->dir, sizeof(b->dir), "/tmp/proofd-srs-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(b->dir));
    snprintf(b->path, sizeof(b->path), "%s/toy.params", b->dir);
    snprintf(b->memory, sizeof(b->memory), "%s/state/proofd/params-trusted", b->dir);
    params_image_init(&b->image, counts);
    bench_digest(b);
    bench_write(b);
}

static void bench_init(struct bench *b)
{
    bench_init_of(b, &small);
}

static void bench_fini(struct bench *b)
{
    char command[128];

    params_image_fini(&b->image);
    snprintf(command, sizeof(command), "rm -r %s", b->dir);
    ck_assert_int_eq(system(command), 0);
}

/* Makes the last point of l one outside the subgroup. */
static void spoil_image(struct bench *b)
{
    g1_affine_t odd = odd_g1_of_order(3);

    g1_encode(params_image_point(&b->image, IMAGE_L, small.l - 1), &odd);
}

static void spoil(struct bench *b)
{
    spoil_image(b);
    bench_write(b);
}

/* What a load did, by what it told of its progress. */
static struct {
    unsigned read, digest, check;
} steps;

static void count_step(void *ctx, const char *stage, uint64_t done, uint64_t total)
{
    (void)ctx, (void)done, (void)total;
    steps.read += strcmp(stage, "read") == 0;
    steps.digest += strcmp(stage, "digest") == 0;
    steps.check += strcmp(stage, "check") == 0;
}

static int load(const struct bench *b, const char *digest, struct srs **out, struct errmsg *err)
{
    struct srs_source source = {.path = b->path, .counts = b->image.counts, .digest = digest};
    struct srs_options opt = {.memory = b->memory, .progress = count_step};

    memset(&steps, 0, sizeof(steps));
    return srs_load(&source, NULL, &opt, out, err);
}

static void expect_points(const struct bench *b, const struct srs *srs)
{
    uint8_t bytes[G1_BYTES];

    for (size_t i = 0; i < srs->l_len; i++) {
        g1_encode(bytes, &srs->l[i]);
        ck_assert_mem_eq(bytes, params_image_point(&b->image, IMAGE_L, i), G1_BYTES);
    }
}

/* A remembered file is read, and neither digested nor are its points looked at. */
static void expect(const struct bench *b, const char *digest, enum srs_trust trust, bool remembered)
{
    struct srs *srs = NULL;
    struct errmsg err = {""};

    ck_assert_msg(load(b, digest, &srs, &err) == 0, "%s", err.text);
    ck_assert_int_eq(srs->trust, trust);
    ck_assert_int_eq(srs->remembered, remembered);
    ck_assert_str_eq(srs->path, b->path);
    ck_assert_int_eq(steps.read > 0, remembered);
    ck_assert_int_eq(steps.digest > 0, !remembered);
    if (remembered)
        ck_assert_uint_eq(steps.check, 0);
    expect_points(b, srs);
    srs_close(srs);
}

/* Where the note of the file is that is in the image. */
static void find_note(const struct bench *b, char path[4096])
{
    uint8_t digest[SRS_VK_DIGEST_BYTES];

    EVP_Digest(b->image.bytes, vk_bytes(b->image.counts.ic), digest, NULL, EVP_sha256(), NULL);
    ck_assert_int_eq(chunk_note_path(b->memory, digest, path), 0);
}

static void expect_refusal(const struct bench *b, const char *digest, const char *says)
{
    struct srs *srs = NULL;
    struct errmsg err = {""};

    ck_assert_int_eq(load(b, digest, &srs, &err), -EBADMSG);
    ck_assert_msg(strstr(err.text, says), "'%s' does not say '%s'", err.text, says);
    ck_assert_ptr_null(srs);
}

START_TEST(srs_load__checks_once_and_remembers)
{
    struct bench b;

    bench_init(&b);
    expect(&b, NULL, SRS_CHECKED, false);
    expect(&b, NULL, SRS_CHECKED, true);
    expect(&b, NULL, SRS_CHECKED, true);
    bench_fini(&b);
}
END_TEST

/* With the published digest the points are not looked at: the bad one shows that. */
START_TEST(srs_load__published_digest_is_trusted_and_remembered)
{
    struct bench b;

    bench_init(&b);
    spoil(&b);
    expect_refusal(&b, NULL, "l[10] is outside the subgroup");
    bench_digest(&b);
    expect(&b, b.digest, SRS_DIGEST, false);
    expect(&b, b.digest, SRS_DIGEST, true);
    bench_fini(&b);
}
END_TEST

START_TEST(srs_load__another_digest_means_that_points_are_checked)
{
    struct bench b;

    bench_init(&b);
    expect(&b, "00112233445566778899aabbccddeeff", SRS_CHECKED, false);
    bench_fini(&b);
    bench_init(&b);
    spoil(&b);
    expect_refusal(&b, b.digest, "l[10] is outside the subgroup");
    bench_fini(&b);
}
END_TEST

START_TEST(srs_load__bad_files_are_not_remembered)
{
    struct bench b;
    char note[4096];

    bench_init(&b);
    spoil(&b);
    expect_refusal(&b, NULL, "l[10] is outside the subgroup");
    expect_refusal(&b, NULL, "l[10] is outside the subgroup");
    ck_assert_int_ne(access(b.memory, F_OK), 0);
    find_note(&b, note);
    ck_assert_int_ne(access(note, F_OK), 0);
    bench_fini(&b);
}
END_TEST

/* With the size and the times that it had, as far as one can set them. */
static void write_quietly(const struct bench *b)
{
    struct stat st;

    ck_assert_int_eq(stat(b->path, &st), 0);
    bench_write(b);
    struct timespec times[2] = {st.st_atim, st.st_mtim};
    ck_assert_int_eq(utimensat(AT_FDCWD, b->path, times, 0), 0);
}

/* Written again in place, with the size, the head and even the time that it had. */
START_TEST(srs_load__a_changed_file_is_checked_again)
{
    struct bench b;

    bench_init(&b);
    expect(&b, NULL, SRS_CHECKED, false);
    spoil_image(&b);
    write_quietly(&b);
    expect_refusal(&b, NULL, "l[10] is outside the subgroup");
    bench_fini(&b);
}
END_TEST

/* Several chunks in each section but one, and none that is full at the end. */
static const struct srs_counts chunked = {.ic = 3, .h = 9000, .l = 4097, .a = 8193, .b = 4100};

/* One byte in the last chunk of each section: it is named, and when it is what it was, so is the file. */
START_TEST(srs_load__a_chunk_that_differs_is_named)
{
    struct bench b;
    char says[128];

    bench_init_of(&b, &chunked);
    expect(&b, NULL, SRS_CHECKED, false);
    const size_t points = b.image.section[_i].points,
                 first = (points - 1) / SRS_CHUNK_POINTS * SRS_CHUNK_POINTS;
    uint8_t *last = params_image_point(&b.image, _i, points) - 1;
    *last ^= 1;
    write_quietly(&b);
    snprintf(says, sizeof(says), "toy.params: the chunk at byte %zu (%zu bytes of %s) is not",
             (size_t)(params_image_point(&b.image, _i, first) - b.image.bytes),
             (points - first) * b.image.section[_i].point_bytes, b.image.section[_i].name);
    expect_refusal(&b, NULL, says);
    snprintf(says, sizeof(says), "found good: %s[%zu] is not on the curve",
             b.image.section[_i].name, points - 1);
    expect_refusal(&b, NULL, says);
    *last ^= 1;
    write_quietly(&b);
    expect(&b, NULL, SRS_CHECKED, true);
    bench_fini(&b);
}
END_TEST

START_TEST(srs_load__a_file_cut_off_is_refused_with_its_note_too)
{
    struct bench b;

    bench_init(&b);
    expect(&b, NULL, SRS_CHECKED, false);
    ck_assert_int_eq(truncate(b.path, (off_t)b.image.len - 1), 0);
    expect_refusal(&b, NULL, "bytes, the circuit wants");
    bench_write(&b);
    expect(&b, NULL, SRS_CHECKED, true);
    bench_fini(&b);
}
END_TEST

static void swap_first_points(struct bench *b, int section)
{
    uint8_t first[G1_BYTES], *point = params_image_point(&b->image, section, 0);

    memcpy(first, point, G1_BYTES);
    memcpy(point, point + G1_BYTES, G1_BYTES);
    memcpy(point + G1_BYTES, first, G1_BYTES);
}

/* Another file in its place with the size, the time and the key that it had. What is right all the same is checked like any new one
 * and has the note from then on; what is not is refused, and the note stays. */
START_TEST(srs_load__another_file_of_the_same_key_size_and_time)
{
    struct bench b;

    bench_init(&b);
    expect(&b, NULL, SRS_CHECKED, false);
    swap_first_points(&b, IMAGE_A);
    write_quietly(&b);
    expect(&b, NULL, SRS_CHECKED, false);
    ck_assert_uint_gt(steps.check, 0);
    expect(&b, NULL, SRS_CHECKED, true);
    spoil_image(&b);
    write_quietly(&b);
    expect_refusal(&b, NULL, "is not the one that was found good: l[10] is outside the subgroup");
    bench_digest(&b);
    expect(&b, b.digest, SRS_DIGEST, false); /* believed for what is published */
    expect(&b, b.digest, SRS_DIGEST, true);
    bench_fini(&b);
}
END_TEST

/* Another key is another file, however it may look from outside. */
START_TEST(srs_load__another_file_of_another_key)
{
    struct bench b;

    bench_init(&b);
    expect(&b, NULL, SRS_CHECKED, false);
    memcpy(b.image.bytes + 868, b.image.bytes + 868 + G1_BYTES, G1_BYTES); /* of ic */
    write_quietly(&b);
    expect(&b, NULL, SRS_CHECKED, false);
    ck_assert_uint_gt(steps.check, 0);
    expect(&b, NULL, SRS_CHECKED, true);
    bench_fini(&b);
}
END_TEST

/* A copy of its bytes elsewhere, or a link more, is known by its chunks: the bad point shows that nobody looked at points. */
START_TEST(srs_load__the_same_bytes_elsewhere_are_known)
{
    struct bench b;
    char old[128];

    bench_init(&b);
    spoil(&b);
    bench_digest(&b);
    expect(&b, b.digest, SRS_DIGEST, false);
    memcpy(old, b.path, sizeof(old));
    snprintf(b.path, sizeof(b.path), "%s/link.params", b.dir);
    ck_assert_int_eq(link(old, b.path), 0);
    expect(&b, b.digest, SRS_DIGEST, true);
    snprintf(b.path, sizeof(b.path), "%s/copy.params", b.dir);
    bench_write(&b);
    expect(&b, b.digest, SRS_DIGEST, true);
    bench_fini(&b);
}
END_TEST

/* Its points were not looked at; where its digest is not the published one any more they are. */
START_TEST(srs_load__a_note_for_a_published_digest_is_for_that_digest)
{
    struct bench b;
    char digest[33];

    bench_init(&b);
    spoil(&b);
    bench_digest(&b);
    expect(&b, b.digest, SRS_DIGEST, false);
    memcpy(digest, b.digest, sizeof(digest));
    digest[0] = digest[0] == '0' ? '1' : '0';
    ck_assert_int_eq(unlink(b.memory), 0);
    expect_refusal(&b, digest, "l[10] is outside the subgroup");
    expect(&b, b.digest, SRS_DIGEST, true);
    bench_fini(&b);
}
END_TEST

static void flip_byte(const char *path, off_t at)
{
    uint8_t byte;
    int fd = open(path, O_RDWR);

    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(pread(fd, &byte, 1, at), 1);
    byte ^= 0x10;
    ck_assert_int_eq(pwrite(fd, &byte, 1, at), 1);
    close(fd);
}

/* Whatever was done to the note, all is checked, here by the digest, and there is a good one again. */
static void expect_no_note(const struct bench *b)
{
    expect(b, b->digest, SRS_DIGEST, false);
    expect(b, b->digest, SRS_DIGEST, true);
}

START_TEST(srs_load__a_damaged_note_is_as_none)
{
    struct bench b;
    struct stat st;
    char note[4096];

    bench_init(&b);
    expect(&b, b.digest, SRS_DIGEST, false);
    find_note(&b, note);
    ck_assert_int_eq(stat(note, &st), 0);
    ck_assert_int_eq(st.st_size, 80 + 6 * CHUNK_DIGEST_BYTES);
    for (off_t at = 0; at < st.st_size; at += at < 80 ? 4 : 16) {
        flip_byte(note, at);
        expect_no_note(&b);
    }
    ck_assert_int_eq(truncate(note, st.st_size - 1), 0);
    expect_no_note(&b);
    ck_assert_int_eq(truncate(note, st.st_size + 1), 0);
    expect_no_note(&b);
    ck_assert_int_eq(truncate(note, 0), 0);
    expect_no_note(&b);
    ck_assert_int_eq(unlink(note), 0);
    expect_no_note(&b);
    bench_fini(&b);
}
END_TEST

/* In its own place and whole, but not of this file. */
START_TEST(srs_load__the_note_of_another_file_is_as_none)
{
    struct bench b, other;
    char note[4096], others[4096];

    bench_init(&b);
    bench_init(&other);
    memcpy(other.image.bytes + 868, other.image.bytes + 868 + G1_BYTES, G1_BYTES);
    bench_digest(&other);
    bench_write(&other);
    expect(&b, b.digest, SRS_DIGEST, false);
    expect(&other, other.digest, SRS_DIGEST, false);
    find_note(&b, note);
    find_note(&other, others);
    ck_assert_int_eq(rename(others, note), 0);
    expect_no_note(&b);
    bench_fini(&b);
    bench_fini(&other);
}
END_TEST

START_TEST(srs_load__a_note_that_others_could_have_written_is_not_believed)
{
    struct bench b;
    char note[4096], elsewhere[4200];

    bench_init(&b);
    expect(&b, b.digest, SRS_DIGEST, false);
    find_note(&b, note);
    ck_assert_int_eq(chmod(note, 0666), 0);
    expect_no_note(&b);
    ck_assert_int_eq(chmod(note, 0620), 0);
    expect_no_note(&b);
    snprintf(elsewhere, sizeof(elsewhere), "%s-elsewhere", note);
    ck_assert_int_eq(rename(note, elsewhere), 0);
    ck_assert_int_eq(symlink(elsewhere, note), 0);
    expect_no_note(&b);
    if (geteuid() == 0) {
        ck_assert_int_eq(chown(note, 1, (gid_t)-1), 0);
        expect_no_note(&b);
    } else {
        suite_skip("a note of another owner", "needs root");
    }
    bench_fini(&b);
}
END_TEST

/* While it is read, and with the time put back. */
static void spoil_quietly(void *ctx, const char *stage, uint64_t done, uint64_t total)
{
    struct bench *b = ctx;

    (void)stage, (void)total;
    if (done == 0)
        return;
    spoil_image(b);
    write_quietly(b);
}

/* What was read was what it was when it was found good, which is all that counts; what came after is not. */
START_TEST(srs_load__a_remembered_file_that_changes_is_what_was_read)
{
    struct bench b;
    struct srs *srs = NULL;
    struct errmsg err = {""};
    uint8_t bytes[G1_BYTES], honest[G1_BYTES];

    bench_init(&b);
    expect(&b, NULL, SRS_CHECKED, false);
    memcpy(honest, params_image_point(&b.image, IMAGE_L, small.l - 1), G1_BYTES);
    struct srs_source source = {.path = b.path, .counts = small};
    struct srs_options opt = {.memory = b.memory, .progress = spoil_quietly, .progress_ctx = &b};
    ck_assert_msg(srs_load(&source, NULL, &opt, &srs, &err) == 0, "%s", err.text);
    g1_encode(bytes, &srs->l[small.l - 1]);
    ck_assert_mem_eq(bytes, honest, G1_BYTES);
    srs_close(srs);
    expect_refusal(&b, NULL, "l[10] is outside the subgroup");
    bench_fini(&b);
}
END_TEST

/* Reading and, where that is to be expected, checking: one scale from 0 to the end. */
static void note_progress(void *ctx, const char *stage, uint64_t done, uint64_t total)
{
    double *last = ctx, now = (double)done / (double)total;

    (void)stage;
    ck_assert_double_ge(now, *last);
    ck_assert_double_le(now, 1);
    *last = now;
}

START_TEST(srs_load__progress_only_grows)
{
    struct bench b;

    bench_init(&b);
    for (int remembered = 0; remembered < 2; remembered++) {
        struct srs_source source = {.path = b.path, .counts = small};
        double last = 0;
        struct srs_options opt = {
            .memory = b.memory, .progress = note_progress, .progress_ctx = &last};
        struct srs *srs = NULL;
        ck_assert_int_eq(srs_load(&source, NULL, &opt, &srs, NULL), 0);
        ck_assert_int_eq(srs->remembered, remembered);
        ck_assert_double_gt(last, 0.95);
        srs_close(srs);
    }
    bench_fini(&b);
}
END_TEST

/* Without a note, as who made the file leaves it: the line spares the points, not the digest. The bad point shows that. */
START_TEST(srs_load__memory_that_others_may_write_is_not_believed)
{
    struct bench b;
    char note[4096];

    bench_init(&b);
    spoil(&b);
    bench_digest(&b);
    expect(&b, b.digest, SRS_DIGEST, false);
    find_note(&b, note);
    ck_assert_int_eq(unlink(note), 0);
    ck_assert_int_eq(chmod(b.memory, 0666), 0);
    expect_refusal(&b, NULL, "l[10] is outside the subgroup");
    ck_assert_int_eq(chmod(b.memory, 0600), 0);
    expect(&b, NULL, SRS_CHECKED, false);
    ck_assert_uint_eq(steps.check, 0);
    expect(&b, NULL, SRS_CHECKED, true);
    bench_fini(&b);
}
END_TEST

START_TEST(srs_load__without_memory_every_start_checks)
{
    struct bench b;

    bench_init(&b);
    snprintf(b.memory, sizeof(b.memory), "%s", "");
    expect(&b, NULL, SRS_CHECKED, false);
    expect(&b, NULL, SRS_CHECKED, false);
    snprintf(b.memory, sizeof(b.memory), "/proc/nowhere/memory");
    expect(&b, NULL, SRS_CHECKED, false);
    bench_fini(&b);
}
END_TEST

START_TEST(srs_load__the_users_own_memory_is_in_the_cache_directory)
{
    struct bench b;
    struct srs *srs = NULL;
    char expected[160];

    bench_init(&b);
    setenv("XDG_CACHE_HOME", b.dir, 1);
    struct srs_source source = {.path = b.path, .counts = small};
    struct srs_options opt = {.memory = NULL};
    ck_assert_int_eq(srs_load(&source, NULL, &opt, &srs, NULL), 0);
    snprintf(expected, sizeof(expected), "%s/proofd/params-trusted", b.dir);
    ck_assert_int_eq(access(expected, R_OK), 0);
    srs_close(srs);
    bench_fini(&b);
}
END_TEST

START_TEST(srs_load__the_marker_makes_it_insecure)
{
    struct bench b;
    struct srs *srs = NULL;
    char marker[160];

    bench_init(&b);
    ck_assert_int_eq(load(&b, NULL, &srs, NULL), 0);
    ck_assert_int_eq(srs->trust, SRS_CHECKED);
    srs_close(srs);
    snprintf(marker, sizeof(marker), "%s/toy.insecure", b.dir);
    fclose(fopen(marker, "w"));
    ck_assert_int_eq(load(&b, NULL, &srs, NULL), 0);
    ck_assert_int_eq(srs->trust, SRS_INSECURE);
    srs_close(srs);
    bench_fini(&b);
}
END_TEST

START_TEST(srs_load__missing_file_names_the_path)
{
    struct bench b;
    struct srs *srs = NULL;
    struct errmsg err;

    bench_init(&b);
    ck_assert_int_eq(unlink(b.path), 0);
    ck_assert_int_eq(load(&b, NULL, &srs, &err), -ENOENT);
    ck_assert_ptr_nonnull(strstr(err.text, b.path));
    srs_close(NULL);
    bench_fini(&b);
}
END_TEST

START_TEST(trusted_remember__keeps_other_files_and_forgets_the_oldest)
{
    struct bench b;
    struct trusted_file file = {.st = {.st_size = 5}};

    bench_init(&b);
    for (unsigned i = 0; i < 70; i++) {
        file.st.st_ino = i;
        ck_assert_int_eq(trusted_remember(b.memory, &file, "a path\nwith a line", NULL), 0);
        ck_assert_int_eq(trusted_remember(b.memory, &file, "the same again", NULL), 0);
        ck_assert(trusted_lookup(b.memory, &file));
    }
    file.st.st_ino = 10;
    file.digest[0] = 1;
    ck_assert(trusted_lookup(b.memory, &file));
    ck_assert_uint_eq(file.digest[0], 0);
    file.st.st_ino = 1; /* one is a prefix of ten and of eleven, and is forgotten */
    ck_assert(!trusted_lookup(b.memory, &file));
    file.st.st_ino = 69;
    file.st.st_ctim.tv_nsec = 1;
    ck_assert(!trusted_lookup(b.memory, &file));
    ck_assert(trusted_lookup_bytes(b.memory, &file));
    file.digest[15] = 1;
    ck_assert(!trusted_lookup_bytes(b.memory, &file));
    file.digest[15] = 0;
    file.head_digest[15] = 1;
    ck_assert(!trusted_lookup(b.memory, &file));
    ck_assert(!trusted_lookup_bytes(b.memory, &file));
    bench_fini(&b);
}
END_TEST

/* --------------------------------------------------------------------------------------- where */

/* Three directories of which none has anything at first. */
static void search_setup(char dirs[3][64])
{
    for (int i = 0; i < 3; i++) {
        snprintf(dirs[i], 64, "/tmp/proofd-find-XXXXXX");
        ck_assert_ptr_nonnull(mkdtemp(dirs[i]));
    }
    setenv("FIL_PROOFS_PARAMETER_CACHE", dirs[0], 1);
    setenv("XDG_DATA_HOME", dirs[1], 1);
}

static void touch(const char *dir, const char *below, const struct sector_size *size,
                  const char *suffix)
{
    char path[4096], id[SECTOR_CACHE_ID_MAX];

    snprintf(path, sizeof(path), "mkdir -p %s%s", dir, below);
    ck_assert_int_eq(system(path), 0);
    sector_cache_id(size, id);
    snprintf(path, sizeof(path), "%s%s/%s%s", dir, below, id, suffix);
    fclose(fopen(path, "w"));
}

static void remove_dirs(char dirs[3][64])
{
    char command[256];

    snprintf(command, sizeof(command), "rm -r %s %s %s", dirs[0], dirs[1], dirs[2]);
    ck_assert_int_eq(system(command), 0);
}

START_TEST(srs_find__names_every_directory_it_searched)
{
    const struct sector_size *size = sector_size_by_name("2KiB");
    char dirs[3][64], path[4096];
    struct srs_options opt = {.memory = ""};
    struct srs *srs = NULL;
    struct errmsg err;

    search_setup(dirs);
    ck_assert_int_eq(srs_open(size, &opt, &srs, &err), -ENOENT);
    ck_assert_ptr_nonnull(strstr(err.text, dirs[0]));
    ck_assert_ptr_nonnull(strstr(err.text, dirs[1]));
    ck_assert_ptr_nonnull(strstr(err.text, "/proofd/params-insecure"));
    ck_assert_ptr_nonnull(strstr(err.text, "032d3138d22506ec"));

    ck_assert_int_eq(srs_find(size, dirs[2], ".vk", path, &err), -ENOENT);
    ck_assert_ptr_nonnull(strstr(err.text, dirs[2]));
    ck_assert_ptr_null(strstr(err.text, dirs[0]));

    unsetenv("FIL_PROOFS_PARAMETER_CACHE");
    if (srs_find(size, NULL, ".never", path, &err) == -ENOENT)
        ck_assert_ptr_nonnull(strstr(err.text, "/var/tmp/filecoin-proof-parameters"));
    remove_dirs(dirs);
}
END_TEST

/* As who is not root, where we are: root may look everywhere. */
static void find_as_a_user(const struct sector_size *size, const char *dir)
{
    struct errmsg err;
    char path[4096];

    if (getuid() == 0 && setuid(65534) < 0)
        _exit(2);
    int ret = srs_find(size, dir, ".params", path, &err);
    _exit(ret == -ENOENT && strstr(err.text, dir) && strstr(err.text, "(Permission denied)") ? 0
                                                                                             : 1);
}

START_TEST(srs_find__says_what_hides_a_file)
{
    const struct sector_size *size = sector_size_by_name("2KiB");
    char dirs[3][64], path[4096], below[96], id[SECTOR_CACHE_ID_MAX];
    struct errmsg err;
    int status;

    search_setup(dirs);
    ck_assert_int_eq(srs_find(size, dirs[0], ".params", path, &err), -ENOENT);
    ck_assert_ptr_null(strchr(err.text, '('));

    snprintf(below, sizeof(below), "%s/below", dirs[0]);
    ck_assert_int_eq(srs_find(size, below, ".params", path, &err), -ENOENT);
    ck_assert_ptr_nonnull(strstr(err.text, "/below (no such directory)"));
    fclose(fopen(below, "w"));
    ck_assert_int_eq(srs_find(size, below, ".params", path, &err), -ENOENT);
    ck_assert_ptr_nonnull(strstr(err.text, "/below (no directory)"));

    sector_cache_id(size, id);
    snprintf(path, sizeof(path), "%s/%s.params", dirs[1], id);
    ck_assert_int_eq(symlink("nowhere", path), 0);
    ck_assert_int_eq(srs_find(size, dirs[1], ".params", path, &err), -ENOENT);
    ck_assert_ptr_nonnull(strstr(err.text, "(a link that leads nowhere)"));

    touch(dirs[2], "", size, ".params");
    ck_assert_int_eq(chmod(dirs[2], 0), 0);
    pid_t child = fork();
    if (child == 0)
        find_as_a_user(size, dirs[2]);
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_int_eq(status, 0);
    ck_assert_int_eq(chmod(dirs[2], 0700), 0);
    remove_dirs(dirs);
}
END_TEST

START_TEST(srs_say_what_to_do__names_a_directory_that_is_looked_into)
{
    const struct sector_size *size = sector_size_by_name("2KiB");
    char dirs[3][64], below[96], wanted[160];
    struct errmsg err;

    search_setup(dirs);
    snprintf(below, sizeof(below), "%s/below", dirs[0]);
    errmsg_write(&err, "none");
    srs_say_what_to_do(size, below, &err); /* setup makes it */
    snprintf(wanted, sizeof(wanted), ": proofctl setup --params %s 2KiB", below);
    ck_assert_ptr_nonnull(strstr(err.text, "none; "));
    ck_assert_ptr_nonnull(strstr(err.text, "lotus fetch-params 2KiB"));
    ck_assert_ptr_nonnull(strstr(err.text, wanted));

    fclose(fopen(below, "w"));
    ck_assert_int_eq(chmod(below, 0700), 0);
    errmsg_write(&err, "none");
    srs_say_what_to_do(size, below, &err);
    ck_assert_str_eq(err.text, "none");

    srs_say_what_to_do(size, NULL, &err);
    if (geteuid() == 0)
        snprintf(wanted, sizeof(wanted), ": proofctl setup --params %s 2KiB", dirs[0]);
    else
        snprintf(wanted, sizeof(wanted), ": proofctl setup --params %s/proofd/params-insecure 2KiB",
                 dirs[1]);
    ck_assert_ptr_nonnull(strstr(err.text, wanted));
    unsetenv("XDG_DATA_HOME"); /* as under systemd */
    unsetenv("HOME");
    errmsg_write(&err, "none");
    srs_say_what_to_do(size, NULL, &err);
    snprintf(wanted, sizeof(wanted), ": proofctl setup --params %s 2KiB", dirs[0]);
    ck_assert_ptr_nonnull(strstr(err.text, wanted));
    remove_dirs(dirs);
}
END_TEST

START_TEST(srs_find__takes_the_first_directory_that_has_it)
{
    const struct sector_size *size = sector_size_by_name("8MiB");
    char dirs[3][64], path[4096];

    search_setup(dirs);
    touch(dirs[1], "/proofd/params-insecure", size, ".vk");
    ck_assert_int_eq(srs_find(size, NULL, ".vk", path, NULL), 0);
    ck_assert_ptr_nonnull(strstr(path, dirs[1]));
    touch(dirs[0], "", size, ".vk");
    ck_assert_int_eq(srs_find(size, NULL, ".vk", path, NULL), 0);
    ck_assert_ptr_nonnull(strstr(path, dirs[0]));
    ck_assert_int_eq(srs_find(size, dirs[2], ".vk", path, NULL), -ENOENT);
    ck_assert_int_eq(srs_find(sector_size_by_name("2KiB"), NULL, ".vk", path, NULL), -ENOENT);
    remove_dirs(dirs);
}
END_TEST

START_TEST(srs_open__another_sizes_file_is_refused)
{
    const struct sector_size *size = sector_size_by_name("512MiB");
    char dirs[3][64], path[4096], id[SECTOR_CACHE_ID_MAX];
    struct srs_options opt = {.dir = dirs[0], .memory = ""};
    struct params_image image;
    struct srs *srs = NULL;
    struct errmsg err;

    search_setup(dirs);
    params_image_init(&image, &small);
    sector_cache_id(size, id);
    snprintf(path, sizeof(path), "%s/%s.params", dirs[0], id);
    FILE *f = fopen(path, "w");
    ck_assert_uint_eq(fwrite(image.bytes, 1, image.len, f), image.len);
    fclose(f);
    ck_assert_int_eq(srs_open(size, &opt, &srs, &err), -EBADMSG);
    ck_assert_ptr_nonnull(strstr(err.text, path));
    ck_assert_ptr_nonnull(strstr(err.text, "ic has 3 points, the circuit wants 40"));
    params_image_fini(&image);
    remove_dirs(dirs);
}
END_TEST

START_TEST(srs_open_vk__development_keys_are_insecure)
{
    static const char *const sizes[] = {"2KiB", "8MiB", "512MiB", "32GiB", "64GiB"};
    struct errmsg err = {""};

    for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
        struct vk vk;
        bool insecure = false;
        int ret =
            srs_open_vk(sector_size_by_name(sizes[i]), "tests/vectors/vk", &vk, &insecure, &err);
        ck_assert_msg(ret == 0, "%s", err.text);
        ck_assert(insecure);
        vk_fini(&vk);
    }
}
END_TEST

/* The key of a size, with its id. */
static char *read_key(const struct sector_size *size, char id[SECTOR_CACHE_ID_MAX], size_t *len)
{
    char from[VECTOR_PATH_MAX], relative[256];

    sector_cache_id(size, id);
    snprintf(relative, sizeof(relative), "vk/%s.vk", id);
    ck_assert(vector_find(from, relative));
    return vector_read(from, len);
}

/* As after a fetch for another size, which brings the keys of all. */
START_TEST(srs_open_vk__is_that_of_the_parameters_that_would_prove)
{
    const struct sector_size *size = sector_size_by_name("2KiB");
    char dirs[3][64], path[4096], id[SECTOR_CACHE_ID_MAX];
    struct vk vk;
    struct errmsg err = {""};
    bool insecure;
    size_t len;
    char *bytes = read_key(size, id, &len);

    search_setup(dirs);
    touch(dirs[0], "", size, ".vk"); /* would be refused */
    ck_assert_int_eq(srs_open_vk(size, NULL, &vk, &insecure, &err), -EBADMSG);
    touch(dirs[1], "/proofd/params-insecure", size, ".params");
    snprintf(path, sizeof(path), "%s/proofd/params-insecure/%s.vk", dirs[1], id);
    FILE *f = fopen(path, "w");
    fwrite(bytes, 1, len, f);
    fclose(f);
    ck_assert_msg(srs_open_vk(size, NULL, &vk, &insecure, &err) == 0, "%s", err.text);
    ck_assert(insecure);
    vk_fini(&vk);
    touch(dirs[0], "", size, ".params");
    ck_assert_int_eq(srs_open_vk(size, NULL, &vk, &insecure, &err), -EBADMSG);
    ck_assert_ptr_nonnull(strstr(err.text, dirs[0]));
    free(bytes);
    remove_dirs(dirs);
}
END_TEST

START_TEST(srs_open_vk__from_the_head_of_params_and_bad_files)
{
    const struct sector_size *size = sector_size_by_name("2KiB");
    char dirs[3][64], path[4096], id[SECTOR_CACHE_ID_MAX];
    struct vk vk;
    struct errmsg err = {""};
    bool insecure;
    size_t len;
    char *bytes = read_key(size, id, &len);

    search_setup(dirs);
    ck_assert_int_eq(srs_open_vk(size, dirs[0], &vk, &insecure, &err), -ENOENT);

    /* Somebody's .params, cut after its head: enough for a key. */
    snprintf(path, sizeof(path), "%s/%s.params", dirs[0], id);
    FILE *f = fopen(path, "w");
    fwrite(bytes, 1, len, f);
    fputs("more", f);
    fclose(f);
    ck_assert_msg(srs_open_vk(size, dirs[0], &vk, &insecure, &err) == 0, "%s", err.text);
    ck_assert_uint_eq(vk.ic_len, 40);
    vk_fini(&vk);

    snprintf(path, sizeof(path), "%s/%s.vk", dirs[0], id);
    for (int more = -1; more <= 1; more += 2) {
        f = fopen(path, "w");
        fwrite(bytes, 1, len + (size_t)more, f); /* vector_read puts a byte after the end */
        fclose(f);
        ck_assert_int_eq(srs_open_vk(size, dirs[0], &vk, &insecure, &err), -EBADMSG);
        ck_assert_ptr_nonnull(strstr(err.text, "bytes, the circuit wants 4708"));
    }
    free(bytes);
    remove_dirs(dirs);
}
END_TEST

/* -------------------------------------------------------------------------------------- counts */

/* Which variables occur on the A and B sides, one bit each. */
struct occurrence {
    uint8_t *a_aux, *b_aux, *b_input;
};

static void mark(const struct cs_lc *lc, uint8_t *inputs, uint8_t *aux)
{
    for (size_t i = 0; i < lc->len; i++) {
        cs_var var = lc->terms[i].var;
        uint8_t *set = var & CS_AUX ? aux : inputs;
        if (set)
            set[(var & ~CS_AUX) / 8] |= (uint8_t)(1 << (var % 8));
    }
}

static void mark_row(void *ctx, uint64_t row, const struct cs_lc *a, const struct cs_lc *b,
                     const struct cs_lc *c)
{
    struct occurrence *o = ctx;

    (void)row;
    (void)c;
    mark(a, NULL, o->a_aux);
    mark(b, o->b_input, o->b_aux);
}

static size_t count_bits(const uint8_t *set, size_t bits)
{
    size_t count = 0;

    for (size_t i = 0; i < (bits + 7) / 8; i++)
        count += (size_t)__builtin_popcount(set[i]);
    return count;
}

/* Points of a and b as the circuit itself has them. */
static struct srs_counts counted(const struct sector_size *size)
{
    struct porep_counts circuit;
    struct errmsg err = {""};

    porep_counts(size, &circuit);
    struct occurrence o = {.a_aux = calloc(1, circuit.aux / 8 + 1),
                           .b_aux = calloc(1, circuit.aux / 8 + 1),
                           .b_input = calloc(1, circuit.inputs / 8 + 1)};
    struct cs_sink sink = {.row = mark_row, .ctx = &o};
    ck_assert_msg(porep_synthesize_blank(size, &sink, &err) == 0, "%s", err.text);
    struct srs_counts out = {
        .ic = circuit.inputs,
        .l = circuit.aux,
        .a = circuit.inputs + count_bits(o.a_aux, circuit.aux),
        .b = count_bits(o.b_input, circuit.inputs) + count_bits(o.b_aux, circuit.aux),
    };
    free(o.a_aux);
    free(o.b_aux);
    free(o.b_input);
    return out;
}

/* The table of densities against the circuit. Every challenge after the first adds the same (porep-circuit 5.4),
 * so two tell of all eighteen. */
START_TEST(srs_counts__equal_those_of_the_circuit)
{
    const struct sector_size *size = &sector_sizes[_i];
    struct sector_size one = *size, two = *size;
    struct srs_counts counts;

    one.challenges = 1;
    two.challenges = 2;
    struct srs_counts first = counted(&one), both = counted(&two);
    size_t more = size->challenges - 1;
    srs_counts(size, &counts);
    ck_assert_uint_eq(counts.ic, first.ic + more * (both.ic - first.ic));
    ck_assert_uint_eq(counts.l, first.l + more * (both.l - first.l));
    ck_assert_uint_eq(counts.a, first.a + more * (both.a - first.a));
    ck_assert_uint_eq(counts.b, first.b + more * (both.b - first.b));
}
END_TEST

/* The reference's 2 KiB file, and the size that c2-formats 4.3 computes for 32 GiB. */
START_TEST(srs_file_bytes__known_files)
{
    struct srs_counts counts;
    char path[VECTOR_PATH_MAX], text[128];

    ck_assert(vector_find(path, "params/2KiB.json"));
    char *json = vector_read(path, NULL);
    srs_counts(sector_size_by_name("2KiB"), &counts);
    ck_assert_uint_eq(counts.ic, strtoull(vector_json_value(json, "ic", text), NULL, 10));
    ck_assert_uint_eq(counts.h, strtoull(vector_json_value(json, "h", text), NULL, 10));
    ck_assert_uint_eq(counts.l, strtoull(vector_json_value(json, "l", text), NULL, 10));
    ck_assert_uint_eq(counts.a, strtoull(vector_json_value(json, "a", text), NULL, 10));
    ck_assert_uint_eq(counts.b, strtoull(vector_json_value(json, "b_g1", text), NULL, 10));
    ck_assert_uint_eq(srs_file_bytes(&counts),
                      strtoull(vector_json_value(json, "params_bytes", text), NULL, 10));
    free(json);
    srs_counts(sector_size_by_name("32GiB"), &counts);
    ck_assert_uint_eq(srs_file_bytes(&counts), UINT64_C(47373928632));
}
END_TEST

int main(void)
{
    Suite *s = suite_create("srs");
    TCase *tc = tcase_create("srs");

    tcase_set_timeout(tc, 600);
    tcase_add_test(tc, srs_load__checks_once_and_remembers);
    tcase_add_test(tc, srs_load__published_digest_is_trusted_and_remembered);
    tcase_add_test(tc, srs_load__another_digest_means_that_points_are_checked);
    tcase_add_test(tc, srs_load__bad_files_are_not_remembered);
    tcase_add_test(tc, srs_load__a_changed_file_is_checked_again);
    tcase_add_loop_test(tc, srs_load__a_chunk_that_differs_is_named, 0, IMAGE_SECTIONS);
    tcase_add_test(tc, srs_load__a_file_cut_off_is_refused_with_its_note_too);
    tcase_add_test(tc, srs_load__another_file_of_the_same_key_size_and_time);
    tcase_add_test(tc, srs_load__another_file_of_another_key);
    tcase_add_test(tc, srs_load__the_same_bytes_elsewhere_are_known);
    tcase_add_test(tc, srs_load__a_note_for_a_published_digest_is_for_that_digest);
    tcase_add_test(tc, srs_load__a_damaged_note_is_as_none);
    tcase_add_test(tc, srs_load__the_note_of_another_file_is_as_none);
    tcase_add_test(tc, srs_load__a_note_that_others_could_have_written_is_not_believed);
    tcase_add_test(tc, srs_load__a_remembered_file_that_changes_is_what_was_read);
    tcase_add_test(tc, srs_load__progress_only_grows);
    tcase_add_test(tc, srs_load__memory_that_others_may_write_is_not_believed);
    tcase_add_test(tc, srs_load__without_memory_every_start_checks);
    tcase_add_test(tc, srs_load__the_users_own_memory_is_in_the_cache_directory);
    tcase_add_test(tc, srs_load__the_marker_makes_it_insecure);
    tcase_add_test(tc, srs_load__missing_file_names_the_path);
    tcase_add_test(tc, trusted_remember__keeps_other_files_and_forgets_the_oldest);
    tcase_add_test(tc, srs_find__names_every_directory_it_searched);
    tcase_add_test(tc, srs_find__says_what_hides_a_file);
    tcase_add_test(tc, srs_say_what_to_do__names_a_directory_that_is_looked_into);
    tcase_add_test(tc, srs_find__takes_the_first_directory_that_has_it);
    tcase_add_test(tc, srs_open__another_sizes_file_is_refused);
    tcase_add_test(tc, srs_open_vk__development_keys_are_insecure);
    tcase_add_test(tc, srs_open_vk__is_that_of_the_parameters_that_would_prove);
    tcase_add_test(tc, srs_open_vk__from_the_head_of_params_and_bad_files);
    tcase_add_loop_test(tc, srs_counts__equal_those_of_the_circuit, 0,
                        getenv("PROOFD_QUICK") ? 1 : SECTOR_SIZES);
    if (getenv("PROOFD_QUICK"))
        suite_skip("counts of all sizes but one", "time (PROOFD_QUICK is set)");
    tcase_add_test(tc, srs_file_bytes__known_files);
    suite_add_tcase(s, tc);
    return suite_run(s);
}
