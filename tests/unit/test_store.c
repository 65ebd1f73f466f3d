#include "daemon/store.h"

#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/log.h"
#include "daemon/store_os.h"
#include "tests/lib/job_store.h"
#include "tests/lib/suite.h"

/* ---- records ---- */

static struct job_record sample(void)
{
    struct job_record r = {.id = 7,
                           .named = 9,
                           .name = "c1 with \"quotes\"\n.json",
                           .uid = 1000,
                           .gid = 1001,
                           .mode = 0640,
                           .state = JOB_DONE,
                           .priority = JOB_HIGH,
                           .insecure = true,
                           .proof_id = 8,
                           .partitions = 10,
                           .partitions_done = 10,
                           .node = 1,
                           .file_bytes = 51000000,
                           .decoded_bytes = 11014816,
                           .same_as = 3,
                           .created_ns = 1,
                           .accepted_ns = 2,
                           .started_ns = 3,
                           .ended_ns = 4,
                           .has_sector_number = true,
                           .sector_number = 1234567890123,
                           .has_prover_id = true};

    memset(r.content_id, 1, sizeof(r.content_id));
    memset(r.prover_id, 2, sizeof(r.prover_id));
    return r;
}

START_TEST(job_record__comes_back_as_it_went)
{
    struct job_record r = sample(), back;
    uint8_t bytes[JOB_RECORD_MAX], again[JOB_RECORD_MAX];

    memset(r.name, 'n', JOB_NAME_MAX);
    size_t len = job_record_encode(bytes, &r);
    ck_assert_uint_le(len, JOB_RECORD_MAX);
    ck_assert_int_eq(job_record_decode(bytes, len, &back), 0);
    ck_assert_uint_eq(job_record_encode(again, &back), len);
    ck_assert_mem_eq(again, bytes, len);
    ck_assert_str_eq(back.name, r.name);
    ck_assert_int_eq(back.node, 1);
    ck_assert_uint_eq(back.sector_number, r.sector_number);
}
END_TEST

START_TEST(job_record__any_flipped_bit_and_any_length_is_refused)
{
    struct job_record r = sample(), back;
    uint8_t bytes[JOB_RECORD_MAX];
    size_t len = job_record_encode(bytes, &r);

    for (size_t i = 0; i < 8 * len; i++) {
        bytes[i / 8] ^= (uint8_t)(1 << i % 8);
        ck_assert_int_eq(job_record_decode(bytes, len, &back), -EBADMSG);
        bytes[i / 8] ^= (uint8_t)(1 << i % 8);
    }
    for (size_t short_len = 0; short_len < len; short_len++)
        ck_assert_int_eq(job_record_decode(bytes, short_len, &back), -EBADMSG);
}
END_TEST

/* With a checksum that holds, but a state, name or count that no job has. */
START_TEST(job_record__what_makes_no_sense_is_refused)
{
    struct job_record r, back;
    uint8_t bytes[JOB_RECORD_MAX];
    size_t len;

#define REFUSED(change)                                                   \
    do {                                                                  \
        r = sample();                                                     \
        change;                                                           \
        len = job_record_encode(bytes, &r);                               \
        ck_assert_int_eq(job_record_decode(bytes, len, &back), -EBADMSG); \
    } while (0)
    REFUSED(r.state = JOB_PROVING);
    REFUSED(r.priority = (enum job_priority)JOB_PRIORITIES);
    REFUSED(r.proof_id = SEAL_PROOFS);
    REFUSED(r.partitions = 9);
    REFUSED(r.partitions_done = 11);
    REFUSED(r.name[0] = '\0');
    REFUSED(r.name[2] = '/');
    REFUSED(r.mode = 0100644);
    REFUSED(r.partitions_done = 9);
    REFUSED(r.id = 0);
    REFUSED(r.id = JOB_ID_END);
    REFUSED(r.named = JOB_ID_END);
#undef REFUSED
}
END_TEST

START_TEST(partition_entry__belongs_to_one_content_and_no_bit_may_change)
{
    struct partition_entry e = {.partition = 3, .report = js_report()}, back;
    uint8_t bytes[PARTITION_ENTRY_BYTES], id[DIGEST_BYTES] = {1}, other[DIGEST_BYTES] = {2};

    js_fill_proof(e.proof, 5, 3);
    partition_entry_encode(bytes, id, &e);
    ck_assert_int_eq(partition_entry_decode(bytes, id, &back), 0);
    ck_assert_uint_eq(back.partition, 3);
    ck_assert_mem_eq(back.proof, e.proof, sizeof(e.proof));
    ck_assert_str_eq(back.report.device, "cpu");
    ck_assert_double_eq(back.report.total_ms, e.report.total_ms);
    ck_assert_int_eq(partition_entry_decode(bytes, other, &back), -EBADMSG);
    for (size_t i = 0; i < 8 * sizeof(bytes); i++) {
        bytes[i / 8] ^= (uint8_t)(1 << i % 8);
        ck_assert_int_eq(partition_entry_decode(bytes, id, &back), -EBADMSG);
        bytes[i / 8] ^= (uint8_t)(1 << i % 8);
    }
    memset(bytes, 0, sizeof(bytes));
    ck_assert_int_eq(partition_entry_decode(bytes, id, &back), -EBADMSG);
}
END_TEST

/* ---- the store ---- */

static char dir[64], path[256];

static void make_dir(void)
{
    snprintf(dir, sizeof(dir), "%s/proofd-test-XXXXXX",
             access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
    ck_assert_ptr_nonnull(mkdtemp(dir));
    log_set_level(0); /* disasters are told at length */
}

static void remove_dir(void)
{
    remove_tree(dir);
}

static struct store *must_open(void)
{
    struct store *store = NULL;
    struct errmsg err = {{0}};

    ck_assert_msg(store_open(dir, &store, &err) == 0, "%s", err.text);
    return store;
}

static void write_text(const char *name, const char *text)
{
    char file[512];

    snprintf(file, sizeof(file), "%s/%s", dir, name);
    FILE *f = fopen(file, "w");
    ck_assert_ptr_nonnull(f);
    fputs(text, f);
    fclose(f);
}

static bool is_there(const char *name)
{
    snprintf(path, sizeof(path), "%s/%s", dir, name);
    return access(path, F_OK) == 0;
}

START_TEST(store_open__makes_its_directory_and_keeps_others_out)
{
    struct store *store, *second = NULL;
    struct errmsg err = {{0}};

    remove_tree(dir);
    store = must_open();
    ck_assert_int_eq(store_open(dir, &second, &err), -EBUSY);
    ck_assert_ptr_nonnull(strstr(err.text, dir));
    char who[64];
    snprintf(who, sizeof(who), "another service (pid %d) uses this store: stop it", (int)getpid());
    ck_assert_msg(strstr(err.text, who), "%s", err.text);
    store_close(store);
    store_close(must_open());
    store_close(NULL);
}
END_TEST

START_TEST(store_open__says_what_it_cannot_open)
{
    struct store *store = NULL;
    struct errmsg err = {{0}};

    ck_assert_int_eq(store_open("/dev/null", &store, &err), -ENOTDIR);
    ck_assert_ptr_nonnull(strstr(err.text, "/dev/null"));
    ck_assert_int_eq(store_open("/proc/at/all", &store, &err), -ENOENT);
    ck_assert_ptr_nonnull(strstr(err.text, "/proc/at/all: cannot make /proc/at"));
    static const char *const counters[] = {"proofd store 3 next 5\n", "", "proofd store 2 next 0\n",
                                           "proofd store 2 next -5\n",
                                           "proofd store 2 next 18446744073709551615\n"};
    for (size_t i = 0; i < ARRAY_LEN(counters); i++) {
        write_text("store", counters[i]);
        ck_assert_int_eq(store_open(dir, &store, &err), -EPROTO);
    }
    write_text("store", "proofd store 1 next 5\n");
    ck_assert_int_eq(store_open(dir, &store, &err), -EPROTO);
    ck_assert_msg(strstr(err.text, "earlier version"), "%s", err.text);
    snprintf(path, sizeof(path), "%s/store", dir);
    unlink(path);
    ck_assert_int_eq(mkfifo(path, 0600), 0);
    ck_assert_int_eq(store_open(dir, &store, &err), -EBADMSG);
}
END_TEST

START_TEST(store_next_id__never_gives_a_number_twice)
{
    struct store *store = must_open();
    uint64_t id, last = 0;

    for (int start = 0; start < 3; start++) {
        for (int i = 0; i < 1500; i++) {
            ck_assert_int_eq(store_next_id(store, &id), 0);
            ck_assert_uint_gt(id, last);
            last = id;
        }
        store_close(store);
        store = must_open();
    }
    store_close(store);
}
END_TEST

/* Hundreds are reserved, and given without the disk; what a restart finds are later ones. */
START_TEST(store_quick_id__gives_what_is_reserved)
{
    struct store *store = must_open();
    uint64_t id, last = 0;
    unsigned n = 0;

    ck_assert_int_eq(store_quick_id(store, &id), -EAGAIN);
    ck_assert_int_eq(store_reserve_ids(store), 0);
    for (; store_quick_id(store, &id) == 0; n++) {
        ck_assert_uint_gt(id, last);
        last = id;
    }
    ck_assert_uint_ge(n, 500);
    ck_assert_int_eq(store_next_id(store, &id), 0);
    ck_assert_uint_gt(id, last);
    ck_assert_int_eq(store_quick_id(store, &last), 0);
    store_close(store);
    store = must_open();
    ck_assert_int_eq(store_next_id(store, &id), 0);
    ck_assert_uint_gt(id, last);
    store_close(store);
}
END_TEST

/* A number that somebody else has put into the store is passed over, and what it has there stays. */
START_TEST(store_next_id__passes_over_what_is_there)
{
    struct store *store = must_open();
    uint64_t id, next;
    int fd = -1;

    ck_assert_int_eq(store_next_id(store, &id), 0);
    snprintf(path, sizeof(path), "%s/%016" PRIx64, dir, id + 1);
    ck_assert_int_eq(mkdir(path, 0700), 0);
    snprintf(path, sizeof(path), "%016" PRIx64 "/c1", id + 1);
    write_text(path, "not ours");
    ck_assert_int_eq(store_spool_create(store, id + 1, &fd), -EEXIST);
    ck_assert_int_eq(store_next_id(store, &next), 0);
    ck_assert_uint_eq(next, id + 2);
    ck_assert_int_eq(store_spool_create(store, next, &fd), 0);
    store_spool_close(fd);
    ck_assert_int_eq(store_spool_open(store, next, &fd), 0);
    store_spool_close(fd);
    char text[16] = "";
    ck_assert_int_eq(store_read(store, id + 1, STORE_C1, text, 8, 0), 8);
    ck_assert_str_eq(text, "not ours");
    store_close(store);
}
END_TEST

static size_t seen;

static void count(void *ctx, const struct job_record *record)
{
    *(struct job_record *)ctx = *record;
    seen++;
}

static void put_job(struct store *store, uint64_t id)
{
    struct job_record r = sample();
    int fd = -1;

    r.id = id;
    ck_assert_int_eq(store_spool_create(store, id, &fd), 0);
    ck_assert_int_eq(store_spool_write(fd, "abc", 3, 0), 0);
    ck_assert_int_eq(store_spool_sync(fd), 0);
    store_spool_close(fd);
    ck_assert_int_eq(store_put(store, id, STORE_DECODED, "decoded", 7), 0);
    ck_assert_int_eq(store_record_put(store, &r), 0);
}

START_TEST(store_scan__keeps_whole_jobs_and_removes_the_rest)
{
    struct store *store = must_open();
    struct job_record r;
    int fd = -1;

    put_job(store, 5);
    ck_assert_int_eq(store_spool_create(store, 6, &fd), 0); /* never accepted */
    store_spool_close(fd);
    put_job(store, 8);
    ck_assert_int_eq(store_record_remove(store, 8), 0); /* removal cut short */
    put_job(store, 9);
    write_text("0000000000000009/job", "damaged");
    write_text("0000000000000009/spare", "damaged");
    write_text("0000000000000005/proof.tmp", "half");
    write_text("README", "not ours");
    store_close(store);
    store = must_open();
    seen = 0;
    ck_assert_int_eq(store_scan(store, count, &r, NULL), 0);
    ck_assert_uint_eq(seen, 1);
    ck_assert_uint_eq(r.id, 5);
    ck_assert(!is_there("0000000000000006") && !is_there("0000000000000008"));
    ck_assert(is_there("0000000000000009.damaged") && !is_there("0000000000000009"));
    ck_assert(!is_there("0000000000000005/proof.tmp") && is_there("README"));
    uint64_t id;
    ck_assert_int_eq(store_next_id(store, &id), 0); /* the counter file was never written here */
    ck_assert_uint_gt(id, 9);
    store_close(store);
}
END_TEST

static void scan(struct store *store, size_t wanted)
{
    struct job_record r;
    struct errmsg err = {""};

    seen = 0;
    ck_assert_msg(store_scan(store, count, &r, &err) == 0, "%s", err.text);
    ck_assert_uint_eq(seen, wanted);
}

/* One after another: a flipped bit, an empty file, a long one, a FIFO, a symbolic link. */
static void damage_record(int how)
{
    const char *const link_target = "/etc/passwd";
    char text[3000];

    snprintf(path, sizeof(path), "%s/0000000000000005/job", dir);
    if (how >= 3)
        ck_assert_int_eq(unlink(path), 0);
    memset(text, 'x', sizeof(text) - 1);
    text[sizeof(text) - 1] = '\0';
    if (how == 0) {
        FILE *f = fopen(path, "r+");
        ck_assert_int_eq(fseek(f, 200, SEEK_SET), 0);
        fputc(0x55, f);
        fclose(f);
    } else if (how == 1) {
        ck_assert_int_eq(truncate(path, 0), 0);
    } else if (how == 2) {
        write_text("0000000000000005/job", text);
    } else if (how == 3) {
        ck_assert_int_eq(mkfifo(path, 0600), 0);
    } else {
        ck_assert_int_eq(symlink(link_target, path), 0);
    }
}

START_TEST(store_scan__a_damaged_record_comes_back_from_its_spare_copy)
{
    struct store *store = must_open();
    struct job_record r;

    put_job(store, 5);
    damage_record(_i);
    store_close(store);
    store = must_open();
    scan(store, 1);
    ck_assert_uint_eq(store_health(store).repaired, 1);
    ck_assert_uint_eq(store_health(store).set_aside, 0);
    ck_assert_int_eq(store_record_get(store, 5, &r), 0);
    ck_assert_str_eq(r.name, sample().name);
    damage_record(_i % 3); /* while the service runs */
    ck_assert_int_eq(store_record_get(store, 5, &r), 0);
    store_close(store);
    store = must_open();
    scan(store, 1);
    ck_assert_uint_eq(store_health(store).repaired, 0);
    store_close(store);
}
END_TEST

START_TEST(store_scan__what_is_no_job_is_set_aside_and_counted)
{
    struct store *store = must_open();
    uint64_t id;

    put_job(store, 3);
    write_text("0000000000000011", "a file with a job's name");
    snprintf(path, sizeof(path), "%s/0000000000000012", dir);
    ck_assert_int_eq(symlink("/tmp", path), 0);
    snprintf(path, sizeof(path), "%s/0000000000000013", dir);
    ck_assert_int_eq(mkfifo(path, 0600), 0);
    put_job(store, 0x14);
    snprintf(path, sizeof(path), "%s/0000000000000014/job", dir);
    ck_assert_int_eq(unlink(path), 0);
    ck_assert_int_eq(mkdir(path, 0700), 0);
    snprintf(path, sizeof(path), "%s/0000000000000014.damaged", dir);
    ck_assert_int_eq(mkdir(path, 0700), 0); /* of an earlier disaster */
    snprintf(path, sizeof(path), "%s/ffffffffffffffff", dir);
    ck_assert_int_eq(mkdir(path, 0700), 0);
    snprintf(path, sizeof(path), "%s/0200000000000000", dir);
    ck_assert_int_eq(mkdir(path, 0700), 0);
    for (int start = 0; start < 2; start++) {
        store_close(store);
        store = must_open();
        scan(store, 1);
        ck_assert_uint_eq(store_health(store).set_aside, 5);
    }
    ck_assert(is_there("0000000000000011.damaged") && is_there("0000000000000013.damaged"));
    ck_assert(is_there("0000000000000014.damaged.1") && is_there("ffffffffffffffff"));
    ck_assert(is_there("0000000000000012.damaged") && !is_there("0000000000000012"));
    ck_assert_int_eq(store_next_id(store, &id), 0);
    ck_assert_uint_eq(id, 0x15);
    store_close(store);
}
END_TEST

/* ---- a disk that cannot be read ---- */

static const char *unreadable; /* files of this name */

static int failing_openat(int d, const char *name, int flags, mode_t mode)
{
    if (unreadable && strcmp(name, unreadable) == 0 && !(flags & O_CREAT)) {
        errno = EIO;
        return -1;
    }
    return store_os_real.openat(d, name, flags, mode);
}

START_TEST(store_scan__a_disk_in_trouble_loses_no_job)
{
    struct store_os os = store_os_real;
    struct store *store = must_open();
    struct job_record r;
    struct errmsg err = {""};

    put_job(store, 5);
    store_close(store);
    os.openat = failing_openat;
    store_os = &os;
    unreadable = "job";
    store = must_open();
    scan(store, 1); /* from the spare copy, which is put into place anew */
    ck_assert_uint_eq(store_health(store).repaired, 1);
    store_close(store);

    damage_record(1);
    unreadable = "spare";
    store = must_open();
    ck_assert_int_eq(store_scan(store, count, &r, &err), -EIO);
    ck_assert_msg(strstr(err.text, "0000000000000005") && strstr(err.text, "Input/output error"),
                  "%s", err.text);
    store_close(store);
    ck_assert(is_there("0000000000000005"));
    store_os = &store_os_real;
    store = must_open();
    scan(store, 1);
    store_close(store);
}
END_TEST

START_TEST(store_get__what_is_damaged_is_not_given_out)
{
    static const enum store_file files[] = {STORE_PROOF, STORE_REPORT, STORE_ERROR};
    static const char *const names[] = {"proof", "report", "error"};
    struct store *store = must_open();
    uint8_t *bytes = NULL;
    size_t len = 0;

    put_job(store, 5);
    put_job(store, 6);
    for (size_t i = 0; i < ARRAY_LEN(files); i++) {
        ck_assert_int_eq(store_put(store, 5, files[i], "a text", 6), 0);
        ck_assert_int_eq(store_get(store, 5, files[i], &bytes, &len), 0);
        ck_assert_uint_eq(len, 6);
        ck_assert_str_eq((char *)bytes, "a text");
        free(bytes);
        char of_another[128];
        snprintf(path, sizeof(path), "%s/0000000000000005/%s", dir, names[i]);
        snprintf(of_another, sizeof(of_another), "%.40s/0000000000000006/%.8s", dir, names[i]);
        ck_assert_int_eq(link(path, of_another), 0);
        ck_assert_int_eq(store_get(store, 6, files[i], &bytes, &len), -EBADMSG);
        FILE *f = fopen(path, "r+");
        fputc('A', f);
        fclose(f);
        ck_assert_int_eq(store_get(store, 5, files[i], &bytes, &len), -EBADMSG);
        ck_assert_int_eq(truncate(path, 3), 0);
        ck_assert_int_eq(store_get(store, 5, files[i], &bytes, &len), -EBADMSG);
        ck_assert_int_eq(truncate(path, (off_t)1 << 40), 0);
        ck_assert_int_eq(store_get(store, 5, files[i], &bytes, &len), -EBADMSG);
        ck_assert_int_eq(unlink(path), 0);
        ck_assert_int_eq(mkfifo(path, 0600), 0);
        ck_assert_int_eq(store_get(store, 5, files[i], &bytes, &len), -EBADMSG);
    }
    store_close(store);
}
END_TEST

START_TEST(store_journal__appends_behind_what_is_good)
{
    struct store *store = must_open();
    uint8_t *bytes;
    size_t len;

    put_job(store, 1);
    ck_assert_int_eq(store_journal_append(store, 1, "first", 5, 0), 0);
    ck_assert_int_eq(store_journal_append(store, 1, "second and torn", 15, 5), 0);
    ck_assert_int_eq(store_journal_append(store, 1, "2nd", 3, 5), 0);
    ck_assert_int_eq(store_get(store, 1, STORE_PARTITIONS, &bytes, &len), 0);
    ck_assert_uint_eq(len, 8);
    ck_assert_str_eq((char *)bytes, "first2nd");
    free(bytes);
    ck_assert_int_eq(store_get(store, 1, STORE_PROOF, &bytes, &len), -ENOENT);
    ck_assert_int_eq(store_get(store, 2, STORE_PROOF, &bytes, &len), -ENOENT);
    ck_assert_int_eq(store_file_bytes(store, 1, STORE_C1), 3);
    char part[2];
    ck_assert_int_eq(store_read(store, 1, STORE_C1, part, 2, 1), 2);
    ck_assert_mem_eq(part, "bc", 2);
    ck_assert_int_eq(store_read(store, 1, STORE_C1, part, 2, 9), 0);
    ck_assert_int_eq(store_remove(store, 1), 0);
    ck_assert_int_eq(store_remove(store, 1), 0);
    ck_assert_int_eq(store_record_remove(store, 1), 0);
    store_close(store);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("store");
    TCase *tc = tcase_create("store");

    tcase_add_checked_fixture(tc, make_dir, remove_dir);
    tcase_add_test(tc, job_record__comes_back_as_it_went);
    tcase_add_test(tc, job_record__any_flipped_bit_and_any_length_is_refused);
    tcase_add_test(tc, job_record__what_makes_no_sense_is_refused);
    tcase_add_test(tc, partition_entry__belongs_to_one_content_and_no_bit_may_change);
    tcase_add_test(tc, store_open__makes_its_directory_and_keeps_others_out);
    tcase_add_test(tc, store_open__says_what_it_cannot_open);
    tcase_add_test(tc, store_next_id__never_gives_a_number_twice);
    tcase_add_test(tc, store_scan__keeps_whole_jobs_and_removes_the_rest);
    tcase_add_test(tc, store_quick_id__gives_what_is_reserved);
    tcase_add_test(tc, store_next_id__passes_over_what_is_there);
    tcase_add_loop_test(tc, store_scan__a_damaged_record_comes_back_from_its_spare_copy, 0, 5);
    tcase_add_test(tc, store_scan__what_is_no_job_is_set_aside_and_counted);
    tcase_add_test(tc, store_scan__a_disk_in_trouble_loses_no_job);
    tcase_add_test(tc, store_get__what_is_damaged_is_not_given_out);
    tcase_add_test(tc, store_journal__appends_behind_what_is_good);
    suite_add_tcase(s, tc);
    return suite_run(s);
}
