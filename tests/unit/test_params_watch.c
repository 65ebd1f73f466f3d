/*
 * Parameter files as the front sees them. A file of the right length with the right counts costs nothing: it is sparse, and
 * its head is that of a real key (tests/vectors/vk).
 */
#include "daemon/params_watch.h"

#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <openssl/evp.h>
#include <openssl/sha.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gpu/setup.h"
#include "gpu/transformed.h"
#include "gpu/trusted.h"
#include "tests/lib/files.h"
#include "tests/lib/suite.h"
#include "tests/lib/vectors.h"

#define DEVELOPMENT_SIZE "2KiB" /* whose key in tests/vectors/vk is of the development parameters */

static char dir[64], params[512], marker[512], memory[128];
static const struct sector_size *size;
static struct params_watch *watch;

static void put(int fd, const void *bytes, size_t len, uint64_t offset)
{
    ck_assert_int_eq(pwrite_full(fd, bytes, len, offset), 0);
}

/* Counts at their places and points of zeros: nothing that could be proved with. */
static void make_params(void)
{
    struct srs_counts c;
    char vk_path[512], id[SECTOR_CACHE_ID_MAX];
    size_t vk_len;

    srs_counts(size, &c);
    sector_cache_id(size, id);
    snprintf(vk_path, sizeof(vk_path), "tests/vectors/vk/%s.vk", id);
    uint8_t *vk = file_read(vk_path, &vk_len);
    const struct {
        size_t len, bytes;
    } sections[] = {{c.h, 96}, {c.l, 96}, {c.a, 96}, {c.b, 96}, {c.b, 192}};
    uint64_t at = vk_len;
    int fd = open(params, O_WRONLY | O_CREAT | O_TRUNC, 0644);

    ck_assert_int_ge(fd, 0);
    put(fd, vk, vk_len, 0);
    for (size_t i = 0; i < ARRAY_LEN(sections); i++) {
        uint8_t count[4];
        store_be32(count, (uint32_t)sections[i].len);
        put(fd, count, sizeof(count), at);
        at += 4 + (uint64_t)sections[i].len * sections[i].bytes;
    }
    ck_assert_int_eq(ftruncate(fd, (off_t)at), 0);
    close(fd);
    free(vk);
}

static void setup(void)
{
    char id[SECTOR_CACHE_ID_MAX];

    strcpy(dir, "/tmp/proofd-watch-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(dir));
    size = sector_size_by_name(DEVELOPMENT_SIZE);
    sector_cache_id(size, id);
    snprintf(params, sizeof(params), "%s/%s.params", dir, id);
    snprintf(marker, sizeof(marker), "%s/%s.insecure", dir, id);
    snprintf(memory, sizeof(memory), "%s/memory", dir);
    ck_assert_int_eq(params_watch_create(dir, memory, NULL, &watch), 0);
}

static void teardown(void)
{
    char command[128];

    params_watch_destroy(watch);
    snprintf(command, sizeof(command), "rm -r %s", dir);
    ck_assert_int_eq(system(command), 0);
}

static int look(struct srs_look *out, struct errmsg *err)
{
    return params_watch_look(watch, size, out, err);
}

static void says(int wanted, const char *text)
{
    struct srs_look seen;
    struct errmsg err = {""};

    ck_assert_int_eq(look(&seen, &err), wanted);
    ck_assert_msg(strstr(err.text, text), "'%s' does not say '%s'", err.text, text);
    ck_assert_int_eq(look(&seen, &err), wanted); /* from memory too */
    ck_assert_msg(strstr(err.text, text), "'%s' does not say '%s'", err.text, text);
}

static enum srs_trust trust(void)
{
    struct srs_look seen;
    struct errmsg err = {""};

    ck_assert_msg(look(&seen, &err) == 0, "%s", err.text);
    ck_assert_str_eq(seen.path, params);
    return seen.trust;
}

START_TEST(params_watch__follows_a_file_that_comes_changes_and_goes)
{
    uint64_t before = params_watch_stamp(watch, size), now;

    says(-ENOENT, dir);
    make_params();
    now = params_watch_stamp(watch, size);
    ck_assert_uint_ne(now, before);
    ck_assert_uint_eq(params_watch_stamp(watch, size), now);
    ck_assert_int_eq(trust(), SRS_INSECURE); /* the key says so */
    ck_assert_int_eq(truncate(params, 1000000), 0);
    says(-EBADMSG, "ends inside the count of l: has ");
    says(-EBADMSG, " bytes, the circuit wants 1114707768; fetch it again");
    ck_assert_uint_ne(params_watch_stamp(watch, size), now);
    char remedy[128];
    snprintf(remedy, sizeof(remedy), "; remove it and run proofctl setup --params %s 2KiB", dir);
    fclose(fopen(marker, "w"));
    says(-EBADMSG, remedy);
    ck_assert_int_eq(unlink(marker), 0);
    struct stat st;
    make_params();
    ck_assert_int_eq(stat(params, &st), 0);
    ck_assert_int_eq(truncate(params, st.st_size + 1), 0);
    says(-EBADMSG, "bytes, the circuit wants");
    ck_assert_int_eq(truncate(params, 100), 0);
    says(-EBADMSG, "ends inside");
    make_params();
    ck_assert_int_eq(trust(), SRS_INSECURE);
    ck_assert_int_eq(unlink(params), 0);
    says(-ENOENT, dir);
    ck_assert_uint_eq(params_watch_stamp(watch, size), before);
    ck_assert_int_eq(mkdir(params, 0700), 0);
    says(-EBADMSG, "not a regular file");
}
END_TEST

/* Without a look: what the last one found, if it is late enough. */
START_TEST(params_watch_key__of_a_look_that_is_new_enough)
{
    uint8_t key[SRS_VK_DIGEST_BYTES];
    struct srs_look seen;
    struct errmsg err = {""};
    struct timespec t;

    ck_assert_int_eq(params_watch_key(watch, size, 0, key), -EAGAIN);
    says(-ENOENT, dir);
    ck_assert_int_eq(params_watch_key(watch, size, 0, key), -ENOENT);
    make_params();
    ck_assert_int_eq(look(&seen, &err), 0);
    clock_gettime(CLOCK_MONOTONIC, &t);
    const int64_t now = (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
    ck_assert_int_eq(params_watch_key(watch, size, now, key), -EAGAIN);
    usleep(2000);
    ck_assert_int_eq(look(&seen, &err), 0); /* by what is remembered of the file */
    ck_assert_int_eq(params_watch_key(watch, size, now, key), 0);
    ck_assert_mem_eq(key, seen.vk_digest, sizeof(key));
}
END_TEST

/* The notes say which are good (test_transformed); here: they are looked for, and their coming and going is seen. */
START_TEST(params_watch__sees_transformed_points)
{
    struct srs_look seen;
    struct errmsg err = {""};
    char path[4096];

    make_params();
    ck_assert_int_eq(transformed_path(params, path), 0);
    ck_assert_int_eq(look(&seen, &err), 0);
    ck_assert(!seen.transformed);
    ck_assert_str_eq(seen.not_transformed.text, "");
    uint64_t before = params_watch_stamp(watch, size);
    int fd = open(path, O_WRONLY | O_CREAT, 0600);
    ck_assert_int_ge(fd, 0);
    close(fd);
    ck_assert_uint_ne(params_watch_stamp(watch, size), before);
    ck_assert_int_eq(look(&seen, &err), 0);
    ck_assert(!seen.transformed);
    ck_assert_ptr_nonnull(
        strstr(seen.not_transformed.text, ".transformed: the parameters are to be checked first"));
    ck_assert_int_eq(unlink(path), 0);
    ck_assert_uint_eq(params_watch_stamp(watch, size), before);
    ck_assert_int_eq(look(&seen, &err), 0);
    ck_assert_str_eq(seen.not_transformed.text, "");
}
END_TEST

/* From memory, which a look of anybody's refreshes, and a thread. */
START_TEST(params_watch_last__is_what_was_seen)
{
    struct srs_look seen;
    struct errmsg err = {""};

    ck_assert_int_eq(params_watch_last(watch, size, &seen, &err), -ENOENT);
    make_params();
    ck_assert_int_eq(params_watch_last(watch, size, &seen, &err), -ENOENT);
    ck_assert(!params_watch_is_there(watch, size));
    ck_assert_int_eq(trust(), SRS_INSECURE);
    ck_assert_int_eq(params_watch_last(watch, size, &seen, &err), 0);
    ck_assert_str_eq(seen.path, params);
    ck_assert(params_watch_is_there(watch, size));
    ck_assert_int_eq(truncate(params, 100), 0);
    ck_assert_int_eq(params_watch_start(watch), 0);
    ck_assert_int_eq(params_watch_last(watch, size, &seen, &err), -EBADMSG);
    ck_assert_ptr_nonnull(strstr(err.text, "ends inside"));
    ck_assert_int_eq(unlink(params), 0);
    for (int i = 0; i < 300 && params_watch_last(watch, size, &seen, &err) != -ENOENT; i++)
        usleep(100000);
    ck_assert(!params_watch_is_there(watch, size));
}
END_TEST

/* Where devices make what no file has: a key is theirs, a file comes before it. */
START_TEST(params_watch__what_devices_make)
{
    struct params_watch *making = NULL;
    struct srs_look seen;
    struct srs_counts c;
    struct vk vk;
    char made[160], key[600], marker_of_key[600], id[SECTOR_CACHE_ID_MAX];
    struct errmsg err = {""};

    snprintf(made, sizeof(made), "%s/made", dir);
    ck_assert_int_eq(params_watch_create(dir, memory, made, &making), 0);
    ck_assert(params_watch_is_there(making, size));
    ck_assert_int_eq(params_watch_look(making, size, &seen, &err), 0);
    ck_assert(seen.made_by_devices && !seen.has_been_made);
    ck_assert_int_eq(seen.trust, SRS_INSECURE);
    vector_vk(size, &vk);
    ck_assert_int_eq(setup_keep_key(size, made, &vk, &err), 0);
    ck_assert_int_eq(params_watch_look(making, size, &seen, &err), 0);
    ck_assert(seen.made_by_devices && seen.has_been_made);
    srs_counts(size, &c);
    uint8_t *bytes = malloc(vk_bytes(c.ic)), digest[SHA256_DIGEST_LENGTH];
    vk_write(bytes, &vk);
    SHA256(bytes, vk_bytes(c.ic), digest);
    ck_assert_mem_eq(seen.vk_digest, digest, sizeof(digest));
    free(bytes);
    vk_fini(&vk);
    sector_cache_id(size, id);
    snprintf(key, sizeof(key), "%s/%s.vk", made, id);
    snprintf(marker_of_key, sizeof(marker_of_key), "%s/%s.insecure", made, id);
    ck_assert_int_eq(access(marker_of_key, F_OK), 0);
    ck_assert_int_eq(chmod(key, 0666), 0); /* anybody's */
    ck_assert_int_eq(params_watch_look(making, size, &seen, &err), 0);
    ck_assert(!seen.has_been_made);
    make_params();
    ck_assert_int_eq(params_watch_look(making, size, &seen, &err), 0);
    ck_assert(!seen.made_by_devices);
    ck_assert_str_eq(seen.path, params);
    ck_assert_int_eq(truncate(params, 100), 0); /* damaged: no reason to make others */
    ck_assert_int_eq(params_watch_look(making, size, &seen, &err), -EBADMSG);
    params_watch_destroy(making);
}
END_TEST

static void overwrite(uint64_t offset, const void *bytes, size_t len)
{
    int fd = open(params, O_WRONLY);

    ck_assert_int_ge(fd, 0);
    put(fd, bytes, len, offset);
    close(fd);
}

START_TEST(params_watch__says_what_is_wrong_with_the_head)
{
    uint8_t bytes[96] = {0};

    make_params();
    bytes[95] = 1; /* (0, 1) is no point */
    overwrite(0, bytes, sizeof(bytes));
    says(-EBADMSG, "alpha_g1");
    make_params();
    overwrite(864, "\0\0\0\1", 4);
    says(-EBADMSG, "ic has 1 points");
    make_params();
    struct srs_counts c;
    srs_counts(size, &c);
    overwrite(vk_bytes(c.ic), "\0\0\0\7", 4);
    says(-EBADMSG, "h has 7 points");
}
END_TEST

/* Makes alpha another one, so that the key is nobody's development key. */
static void make_it_strange(void)
{
    uint8_t beta[96];
    int fd = open(params, O_RDWR);

    ck_assert_int_eq(pread_full(fd, beta, sizeof(beta), 96), 0);
    put(fd, beta, sizeof(beta), 0);
    close(fd);
}

/* As srs_open does after it has looked at everything. */
static void remember(const char *digest)
{
    struct trusted_file file;
    struct srs_counts c;
    uint8_t whole[64];

    srs_counts(size, &c);
    uint8_t *head = malloc(vk_bytes(c.ic));
    int fd = open(params, O_RDONLY);
    ck_assert_int_eq(pread_full(fd, head, vk_bytes(c.ic), 0), 0);
    ck_assert_int_eq(fstat(fd, &file.st), 0);
    close(fd);
    ck_assert_int_eq(EVP_Digest(head, vk_bytes(c.ic), whole, NULL, EVP_blake2b512(), NULL), 1);
    free(head);
    memcpy(file.head_digest, whole, sizeof(file.head_digest));
    ck_assert_int_eq(hex_decode(file.digest, digest, sizeof(file.digest)), 0);
    ck_assert_int_eq(trusted_remember(memory, &file, params, NULL), 0);
}

START_TEST(params_watch__nothing_is_believed_that_nobody_checked)
{
    make_params();
    make_it_strange();
    ck_assert_int_eq(trust(), SRS_UNCHECKED);
    remember("00112233445566778899aabbccddeeff");
    ck_assert_int_eq(trust(), SRS_CHECKED); /* seen though the file is the same */
    ck_assert_int_eq(fclose(fopen(marker, "w")), 0);
    ck_assert_int_eq(trust(), SRS_INSECURE);
    ck_assert_int_eq(unlink(marker), 0);
    ck_assert_int_eq(trust(), SRS_CHECKED);
    make_params();
    make_it_strange();
    remember(sector_params_digest(size));
    ck_assert_int_eq(trust(), SRS_DIGEST);
    ck_assert_int_eq(truncate(params, 0), 0);
    says(-EBADMSG, "ends inside");
}
END_TEST

int main(void)
{
    Suite *s = suite_create("params_watch");
    TCase *tc = tcase_create("params_watch");

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, params_watch__follows_a_file_that_comes_changes_and_goes);
    tcase_add_test(tc, params_watch_key__of_a_look_that_is_new_enough);
    tcase_add_test(tc, params_watch__sees_transformed_points);
    tcase_add_test(tc, params_watch_last__is_what_was_seen);
    tcase_add_test(tc, params_watch__what_devices_make);
    tcase_add_test(tc, params_watch__says_what_is_wrong_with_the_head);
    tcase_add_test(tc, params_watch__nothing_is_believed_that_nobody_checked);
    suite_add_tcase(s, tc);
    return suite_run(s);
}
