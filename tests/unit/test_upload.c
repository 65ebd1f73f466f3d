#include <check.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "daemon/jobs.h"
#include "daemon/store_os.h"
#include "tests/lib/job_store.h"
#include "tests/lib/suite.h"

static struct job_store *js;
static const uint8_t *bytes;
static size_t len;

static void open_store(void)
{
    js = job_store_create();
    bytes = document("2KiB-sealed", &len);
}

static void close_store(void)
{
    job_store_destroy(js);
}

static unsigned jobs_on_disk(void)
{
    unsigned jobs, others;

    js_count_dirs(js, &jobs, &others);
    ck_assert_uint_eq(others, 0);
    return jobs;
}

static bool error_has(const char *name, const char *word)
{
    char *text = NULL;
    bool found = false;

    if (jobs_error(js->jobs, js_find(js, name).id, &text) == 0)
        found = strstr(text, word) && text[strlen(text) - 1] == '\n';
    free(text);
    return found;
}

/* What a service that is killed now finds when it starts again. */
static enum job_state state_after_kill(const char *name)
{
    struct job_store *other = job_store_copy(js);
    enum job_state state = js_state(other, name);

    job_store_destroy(other);
    return state;
}

/* The linker sends the service's calls of calloc here: the one when `allocations` gets to zero fails. */
void *__real_calloc(size_t n, size_t size);
void *__wrap_calloc(size_t n, size_t size);

static _Thread_local int allocations = -1;

void *__wrap_calloc(size_t n, size_t size)
{
    return allocations >= 0 && allocations-- == 0 ? NULL : __real_calloc(n, size);
}

/* ---- accepting ---- */

START_TEST(upload_judge__accepts_a_whole_document_at_once_and_again)
{
    struct upload *u = js_open(js, "a");

    js_write(u, bytes, len, 0);
    ck_assert_int_eq(upload_judge(u), 0);
    ck_assert_int_gt(js_find(js, "a").accepted_ns, 0);
    ck_assert_int_eq(js_state(js, "a"), JOB_RECEIVING); /* RELEASE starts it */
    ck_assert_int_eq(upload_judge(u), 0);
    ck_assert_int_eq(state_after_kill("a"), JOB_QUEUED);
    upload_close(u, false);
}
END_TEST

/* Sizes of writes as tools make them, in order, and the last chunk alone judged. */
START_TEST(upload_write__chunks_of_any_size_in_order)
{
    size_t chunk = (size_t[]){1000, 4096, 65536, 131072}[_i];
    struct upload *u = js_open(js, "a");

    ck_assert_int_eq(upload_judge(u), 0); /* a shell's FLUSH before any data */
    for (size_t at = 0; at < len; at += chunk)
        js_write(u, bytes + at, min_size(chunk, len - at), at);
    ck_assert_int_eq(upload_judge(u), 0);
    upload_close(u, false);
    ck_assert_int_eq(js_state(js, "a"), JOB_QUEUED);
}
END_TEST

START_TEST(upload_write__any_order_is_read_when_it_is_judged)
{
    struct upload *u = js_open(js, "a");
    size_t half = len / 2;

    js_write(u, bytes + half, len - half, half);
    js_write(u, bytes, half, 0);
    ck_assert_int_eq(upload_judge(u), 0);
    upload_close(u, false);
    ck_assert_int_eq(js_state(js, "a"), JOB_QUEUED);
}
END_TEST

START_TEST(upload__two_writers_share_one_file)
{
    struct upload *first = js_open(js, "a"), *second = js_open(js, "a");
    size_t half = len / 2;

    ck_assert_uint_eq(upload_job_id(first), upload_job_id(second));
    js_write(first, bytes, half, 0);
    ck_assert_int_eq(upload_judge(first), -EBADMSG); /* the first one's FLUSH: not whole yet */
    upload_close(first, false);
    js_write(second, bytes + half, len - half, half);
    ck_assert_int_eq(upload_judge(second), 0);
    upload_close(second, false);
    ck_assert_int_eq(js_state(js, "a"), JOB_QUEUED);
}
END_TEST

START_TEST(upload_close__judges_what_no_flush_did)
{
    struct upload *u = js_open(js, "a");

    js_write(u, bytes, len, 0);
    upload_close(u, false);
    ck_assert_int_eq(js_state(js, "a"), JOB_QUEUED);
}
END_TEST

START_TEST(upload_write__takes_an_acceptance_back)
{
    struct upload *u = js_open(js, "a");

    js_write(u, bytes, len, 0);
    ck_assert_int_eq(upload_judge(u), 0);
    js_write(u, "x", 1, 0);
    ck_assert_int_eq(js_find(js, "a").accepted_ns, 0);
    ck_assert_int_eq(state_after_kill("a"), JOB_STATES);
    upload_close(u, false);
    ck_assert_uint_eq(jobs_on_disk(), 0);
}
END_TEST

START_TEST(upload_truncate__takes_back_except_to_the_same_size)
{
    struct upload *u = js_open(js, "a");

    js_write(u, bytes, len, 0);
    ck_assert_int_eq(upload_judge(u), 0);
    ck_assert_int_eq(upload_truncate(u, len), 0); /* rsync --inplace */
    ck_assert_int_gt(js_find(js, "a").accepted_ns, 0);
    ck_assert_int_eq(upload_truncate(u, len - 1), 0);
    ck_assert_int_eq(js_find(js, "a").accepted_ns, 0);
    ck_assert_int_eq(upload_judge(u), -EBADMSG);
    ck_assert_int_eq(upload_truncate(u, 0), 0);
    ck_assert_int_eq(js_state(js, "a"), JOB_RECEIVING);
    js_write(u, bytes, len, 0);
    ck_assert_int_eq(upload_judge(u), 0);
    upload_close(u, false);
    ck_assert_int_eq(js_state(js, "a"), JOB_QUEUED);
}
END_TEST

START_TEST(upload_open__an_unfinished_job_is_busy)
{
    struct upload *u = js_open(js, "a"), *second;

    js_write(u, bytes, len, 0);
    ck_assert_int_eq(upload_judge(u), 0);
    uint64_t id = upload_job_id(u);
    ck_assert_int_eq(upload_open(js->jobs, id, &second), -EBUSY); /* accepted, not yet released */
    upload_close(u, false);
    ck_assert_int_eq(upload_open(js->jobs, id, &second), -EBUSY);
    ck_assert_int_eq(upload_open(js->jobs, id + 1000, &second), -ENOENT);
}
END_TEST

/* ---- refusing ---- */

START_TEST(upload__an_empty_file_leaves_nothing)
{
    struct upload *u = js_open(js, "a");

    ck_assert_int_eq(upload_judge(u), 0);
    upload_close(u, false);
    ck_assert_int_eq(js_state(js, "a"), JOB_STATES);
    ck_assert_uint_eq(jobs_on_disk(), 0);
}
END_TEST

START_TEST(upload__a_killed_writer_leaves_nothing)
{
    struct upload *u = js_open(js, "a");

    js_write(u, bytes, len, 0); /* even a whole document: nobody was told of it */
    upload_close(u, true);
    ck_assert_int_eq(js_state(js, "a"), JOB_STATES);
    u = js_open(js, "b");
    js_write(u, bytes, len / 2, 0);
    ck_assert_int_eq(upload_judge(u), -EBADMSG);
    upload_close(u, true);
    ck_assert_int_eq(js_state(js, "b"), JOB_STATES);
    u = js_open(js, "c"); /* killed after its FLUSH: it was told that it had succeeded */
    js_write(u, bytes, len, 0);
    ck_assert_int_eq(upload_judge(u), 0);
    upload_close(u, true);
    ck_assert_int_eq(js_state(js, "c"), JOB_QUEUED);
    ck_assert_uint_eq(jobs_on_disk(), 1);
}
END_TEST

START_TEST(upload_judge__a_part_is_refused_and_says_why)
{
    ck_assert_int_eq(js_copy(js, "a", "2KiB-sealed", len - 1), -EBADMSG);
    struct job_info info = js_find(js, "a");
    ck_assert_int_eq(info.state, JOB_REJECTED);
    ck_assert(info.has_error && error_has("a", "byte"));
    ck_assert_uint_eq(jobs_on_disk(), 0);
    ck_assert_uint_eq(js_prove_all(js), 0);
    char *report;
    ck_assert_int_eq(jobs_report(js->jobs, info.id, &report), -ENOENT);
    js_submit(js, "a", "2KiB-sealed"); /* the next write to the name */
    ck_assert(!js_find(js, "a").has_error);
}
END_TEST

START_TEST(upload_write__refuses_as_soon_as_the_bytes_cannot_become_a_c1)
{
    struct upload *u = js_open(js, "a");

    ck_assert_int_eq(upload_write(u, "hello world, this is no C1", 26, 0), -EBADMSG);
    ck_assert_int_eq(js_state(js, "a"), JOB_REJECTED);
    ck_assert_int_eq(upload_write(u, bytes, len, 26), -EBADMSG);
    ck_assert_int_eq(upload_judge(u), -EBADMSG);
    upload_close(u, false);
    ck_assert(js_find(js, "a").has_error);
    ck_assert_uint_eq(jobs_on_disk(), 0);
}
END_TEST

/* As a program does after a write that the kernel has cut, and whose second piece was refused. */
START_TEST(upload_write__a_refused_piece_that_is_written_again_is_refused_once)
{
    struct upload *u = js_open(js, "a");
    struct jobs_totals totals;
    uint8_t piece[1000];
    size_t at = len - sizeof(piece);

    memcpy(piece, bytes + at, sizeof(piece));
    piece[sizeof(piece) - 1] = 'x';
    js_write(u, bytes, at, 0);
    for (int i = 0; i < 3; i++) {
        ck_assert_int_eq((int)upload_write(u, piece, sizeof(piece), at), -EBADMSG);
        ck_assert_int_eq((int)upload_write(u, piece + 500, sizeof(piece) - 500, at + 500),
                         -EBADMSG);
        ck_assert_int_eq(js_state(js, "a"), JOB_REJECTED);
    }
    ck_assert_int_eq(upload_judge(u), -EBADMSG);
    jobs_totals(js->jobs, &totals);
    ck_assert_uint_eq(totals.refused_ever, 1);
    js_write(u, bytes + at, sizeof(piece), at); /* another one is looked at */
    ck_assert_int_eq(upload_judge(u), 0);
    upload_close(u, false);
    ck_assert_int_eq(js_state(js, "a"), JOB_QUEUED);
}
END_TEST

START_TEST(upload__a_refused_file_may_be_put_right)
{
    struct upload *u = js_open(js, "a");

    ck_assert_int_eq(upload_write(u, "this is none", 12, 0), -EBADMSG);
    js_write(u, bytes, len, 0);
    ck_assert_int_eq(js_state(js, "a"), JOB_RECEIVING);
    ck_assert_int_eq(upload_judge(u), 0);
    upload_close(u, false);
    ck_assert_int_eq(js_state(js, "a"), JOB_QUEUED);
}
END_TEST

START_TEST(jobs_create_file__does_not_wait_for_the_release_of_a_refused_file)
{
    struct upload *refused = js_open(js, "a"), *u;

    js_write(refused, bytes, len / 2, 0);
    ck_assert_int_eq(upload_judge(refused), -EBADMSG);
    js_submit(js, "a", "2KiB-sealed");
    u = js_open(js, "b");
    ck_assert_int_eq(upload_write(refused, bytes, 1, 0), -ECANCELED);
    upload_close(refused, false);
    upload_close(u, false);
    ck_assert_int_eq(js_state(js, "a"), JOB_QUEUED);
    ck_assert_uint_eq(jobs_on_disk(), 1);
}
END_TEST

START_TEST(upload__refused_names_age_and_are_bounded)
{
    char name[32];
    struct jobs_totals totals;

    for (int i = 0; i < 1010; i++) {
        snprintf(name, sizeof(name), "bad-%d", i);
        struct upload *u = js_open(js, name);
        upload_write(u, "#", 1, 0);
        upload_close(u, false);
    }
    jobs_tick(js->jobs);
    jobs_totals(js->jobs, &totals);
    ck_assert_uint_eq(totals.by_state[JOB_REJECTED], 1000);
    ck_assert_int_eq(js_state(js, "bad-0"), JOB_STATES);
    ck_assert_int_eq(js_state(js, "bad-1009"), JOB_REJECTED);
    ck_assert_uint_eq(totals.store_bytes, 0);
}
END_TEST

START_TEST(upload_write__has_a_longest_length)
{
    struct upload *u = js_open(js, "a");

    ck_assert_int_eq(upload_write(u, "x", 1, C1_TEXT_MAX), -EFBIG);
    ck_assert_int_eq(upload_truncate(u, C1_TEXT_MAX + 1), -EFBIG);
    ck_assert_int_eq(upload_write(u, "x", 1, UINT64_MAX - 1), -EFBIG);
    upload_close(u, false);
    ck_assert_int_eq(js_state(js, "a"), JOB_REJECTED);
    ck_assert(error_has("a", "1073741824"));
}
END_TEST

/* What the write that is refused found accepted is taken back as by any other. */
START_TEST(upload_write__too_long_takes_an_acceptance_back)
{
    struct upload *u = js_open(js, "a");

    js_write(u, bytes, len, 0);
    ck_assert_int_eq(upload_judge(u), 0);
    ck_assert_int_eq(upload_truncate(u, C1_TEXT_MAX + 1), -EFBIG); /* changes nothing */
    ck_assert_int_gt(js_find(js, "a").accepted_ns, 0);
    ck_assert_int_eq(upload_write(u, "x", 1, C1_TEXT_MAX), -EFBIG);
    ck_assert_int_eq(js_state(js, "a"), JOB_REJECTED);
    ck_assert_int_eq(js_find(js, "a").accepted_ns, 0);
    ck_assert_int_eq(state_after_kill("a"), JOB_STATES);
    ck_assert_int_eq(upload_judge(u), -EFBIG);
    js_write(u, bytes, 1, 0); /* put right */
    ck_assert_int_eq(upload_judge(u), 0);
    ck_assert_int_eq(upload_write(u, bytes, len, C1_TEXT_MAX - 1), -EFBIG);
    upload_close(u, false);
    ck_assert_int_eq(js_state(js, "a"), JOB_REJECTED);
    ck_assert(error_has("a", "1073741824"));
    ck_assert_uint_eq(jobs_on_disk(), 0);
    ck_assert_uint_eq(js_prove_all(js), 0);
}
END_TEST

/* Over an ended job the new one has its place from the acceptance on. */
START_TEST(upload_write__too_long_over_an_ended_job)
{
    js_submit(js, "a", "2KiB-sealed");
    js_prove_all(js);
    struct upload *u = js_open(js, "a");
    js_write(u, bytes, len, 0);
    ck_assert_int_eq(upload_judge(u), 0);
    ck_assert_int_eq(upload_write(u, "x", 1, C1_TEXT_MAX), -EFBIG);
    upload_close(u, false);
    ck_assert_int_eq(js_state(js, "a"), JOB_REJECTED);
    ck_assert_uint_eq(jobs_on_disk(), 0);
}
END_TEST

START_TEST(upload_write__too_long_changes_no_file_of_a_temporary_name)
{
    struct upload *u = js_open(js, ".a");

    js_write(u, bytes, len, 0);
    ck_assert_int_eq(upload_judge(u), 0);
    ck_assert_int_eq(upload_write(u, "x", 1, C1_TEXT_MAX), -EFBIG);
    ck_assert_int_eq(jobs_rename(js->jobs, upload_job_id(u), "a"), 0);
    ck_assert_int_eq(upload_write(u, "x", 1, C1_TEXT_MAX), -EFBIG); /* and now it is a job */
    upload_close(u, false);
    ck_assert_int_eq(js_state(js, "a"), JOB_REJECTED);
}
END_TEST

static int refuse(void *ctx, const struct c1 *c1, struct errmsg *err)
{
    (void)ctx;
    (void)c1;
    return errmsg_set(err, -EOPNOTSUPP, "no parameters for this size");
}

START_TEST(upload_judge__asks_whether_it_can_ever_be_proved)
{
    js->opt.admit = refuse;
    job_store_reopen(js);
    ck_assert_int_eq(js_copy(js, "a", "2KiB-sealed", SIZE_MAX), -EOPNOTSUPP);
    ck_assert(error_has("a", "no parameters for this size"));
    ck_assert_uint_eq(jobs_on_disk(), 0);
}
END_TEST

/* ---- the queue ---- */

START_TEST(upload_open__a_full_queue_takes_no_more)
{
    struct upload *u, *second;
    struct job_info info;
    struct upload_owner owner = {0};

    js->opt.max_unfinished = 2;
    job_store_reopen(js);
    js_submit(js, "a", "2KiB-sealed");
    u = js_open(js, "b"); /* has the last place while it is received */
    ck_assert_int_eq(jobs_create_file(js->jobs, "c", &owner, &info), 0);
    ck_assert_int_eq(upload_open(js->jobs, info.id, &second), -EAGAIN);
    js->diary_len = 0;
    upload_close(u, false); /* nothing was written: the place is free, and somebody is told */
    ck_assert_uint_gt(js->diary_len, 0);
    ck_assert_int_eq(upload_open(js->jobs, info.id, &second), 0);
    upload_close(second, false);
    js_submit(js, "d", "2KiB-v1");
    ck_assert_int_eq(jobs_create_file(js->jobs, ".e", &owner, &info), 0);
    ck_assert_int_eq(upload_open(js->jobs, info.id, &u),
                     0); /* temporary names have places of their own */
    upload_close(u, false);
    ck_assert_int_eq(jobs_create_file(js->jobs, "e", &owner, &info), 0);
    ck_assert_int_eq(upload_open(js->jobs, info.id, &u), -EAGAIN);
    js_prove_all(js);
    ck_assert_int_eq(upload_open(js->jobs, info.id, &u), 0);
    upload_close(u, false);
}
END_TEST

START_TEST(upload__more_at_a_time_than_there_are_readers)
{
    struct upload *u[12];
    char name[16];

    for (size_t i = 0; i < ARRAY_LEN(u); i++) {
        snprintf(name, sizeof(name), "a%zu", i);
        u[i] = js_open(js, name);
        js_write(u[i], bytes, len / 2, 0);
    }
    for (size_t i = 0; i < ARRAY_LEN(u); i++) {
        js_write(u[i], bytes + len / 2, len - len / 2, len / 2);
        ck_assert_int_eq(upload_judge(u[i]), 0);
        upload_close(u[i], false);
    }
    ck_assert_uint_eq(js_prove_all(js), 1);
    ck_assert_int_eq(js_state(js, "a11"), JOB_DONE);
}
END_TEST

/* ---- over an ended job ---- */

START_TEST(upload__old_results_stay_until_the_new_file_is_accepted)
{
    uint64_t old = js_submit(js, "a", "2KiB-sealed"), now;
    uint8_t *proof;
    size_t proof_len;
    struct job_info info;

    js_prove_all(js);
    struct upload *u = js_open(js, "a");
    ck_assert_uint_ne(upload_job_id(u), old);
    ck_assert_int_eq(upload_truncate(u, 0), 0);
    bytes = document("2KiB-v1", &len);
    js_write(u, bytes, len, 0);
    ck_assert_uint_eq(js_find(js, "a").id, old);
    ck_assert_uint_eq(jobs_list(js->jobs, 0, &info, 1), 1);
    ck_assert_int_eq(jobs_proof(js->jobs, old, &proof, &proof_len), 0);
    free(proof);
    ck_assert_int_eq(upload_judge(u), 0);
    now = js_find(js, "a").id;
    ck_assert_uint_eq(now, upload_job_id(u));
    ck_assert_int_eq(jobs_get(js->jobs, old, &info), -ENOENT);
    ck_assert_int_eq(jobs_proof(js->jobs, now, &proof, &proof_len), -ENOENT);
    upload_close(u, false);
    ck_assert_uint_eq(jobs_on_disk(), 1);
    job_store_reopen(js);
    ck_assert_uint_eq(js_find(js, "a").id, now);
    ck_assert_int_eq(js_state(js, "a"), JOB_QUEUED);
}
END_TEST

START_TEST(upload__a_refused_file_leaves_the_ended_job_and_a_word)
{
    uint64_t old = js_submit(js, "a", "2KiB-sealed");
    struct upload *u;
    char *text;

    js_prove_all(js);
    ck_assert_int_eq(js_copy(js, "a", "2KiB-v1", 1000), -EBADMSG);
    ck_assert_uint_eq(js_find(js, "a").id, old);
    ck_assert_int_eq(js_state(js, "a"), JOB_DONE);
    ck_assert(js_find(js, "a").has_error && error_has("a", "byte"));
    u = js_open(js, "a"); /* a writer who dies changes nothing */
    js_write(u, bytes, len, 0);
    upload_close(u, true);
    ck_assert_uint_eq(js_find(js, "a").id, old);
    ck_assert_int_eq(jobs_error(js->jobs, old, &text), -ENOENT);
    ck_assert_uint_eq(jobs_on_disk(), 1);
}
END_TEST

START_TEST(upload__rm_of_the_ended_job_ends_the_upload_over_it)
{
    js_submit(js, "a", "2KiB-sealed");
    js_prove_all(js);
    struct upload *u = js_open(js, "a");
    js_write(u, bytes, len / 2, 0);
    ck_assert_int_eq(jobs_remove(js->jobs, js_find(js, "a").id), 0);
    ck_assert_int_eq(upload_write(u, bytes, 1, len / 2), -ECANCELED);
    ck_assert_int_eq(upload_judge(u), -ECANCELED);
    upload_close(u, false);
    ck_assert_int_eq(js_state(js, "a"), JOB_STATES);
    ck_assert_uint_eq(jobs_on_disk(), 0);
}
END_TEST

START_TEST(upload__an_editor_writes_over_its_backup)
{
    uint64_t old = js_submit(js, "a", "2KiB-sealed");

    js_prove_all(js);
    ck_assert_int_eq(jobs_rename(js->jobs, old, "a~"), 0); /* an ended job under a temporary name */
    struct upload *u = js_open(js, "a~");
    upload_close(u, false);
    ck_assert_uint_eq(js_find(js, "a~").id, old); /* nothing was written */
    u = js_open(js, "a~");
    js_write(u, "text", 4, 0);
    upload_close(u, false);
    ck_assert_uint_ne(js_find(js, "a~").id, old);
    ck_assert_int_eq(js_state(js, "a~"), JOB_RECEIVING);
    ck_assert_uint_eq(jobs_on_disk(), 1);
}
END_TEST

START_TEST(upload_close__without_memory_is_made_up_for)
{
    bool failed = true;

    for (int k = 0; failed; k++) {
        struct upload *u = js_open(js, "a");
        js_write(u, bytes, len, 0);
        ck_assert_int_eq(upload_judge(u), 0);
        allocations = k;
        upload_close(u, false);
        failed = allocations < 0;
        allocations = -1;
        ck_assert(!failed || js_state(js, "a") == JOB_RECEIVING || js_state(js, "a") == JOB_QUEUED);
        ck_assert(k > 0 || js_state(js, "a") == JOB_RECEIVING); /* the first is the one that hurts */
        jobs_tick(js->jobs);
        ck_assert_int_eq(js_state(js, "a"), JOB_QUEUED);
        ck_assert_int_eq(jobs_remove(js->jobs, js_find(js, "a").id), 0);
    }
}
END_TEST

START_TEST(upload__what_changes_the_ended_job_meanwhile_changes_its_successor)
{
    uint64_t old = js_submit(js, "a", "2KiB-sealed");

    js_prove_all(js);
    struct upload *u = js_open(js, "a");
    ck_assert_int_eq(jobs_set_mode(js->jobs, old, 0600), 0); /* by its name, which means the old one still */
    ck_assert_int_eq(jobs_set_owner(js->jobs, old, 7, (gid_t)-1), 0);
    js_write(u, document("2KiB-v1", &len), 1, 0);
    js_write(u, document("2KiB-v1", &len), len, 0);
    ck_assert_int_eq(upload_judge(u), 0);
    upload_close(u, false);
    struct job_info info = js_find(js, "a");
    ck_assert_uint_ne(info.id, old);
    ck_assert_uint_eq(info.mode, 0600);
    ck_assert_uint_eq(info.uid, 7);
    job_store_reopen(js);
    ck_assert_uint_eq(js_find(js, "a").mode, 0600);
}
END_TEST

/* ---- temporary names ---- */

START_TEST(upload__a_temporary_name_takes_anything_and_becomes_no_job)
{
    char back[5] = {0};
    struct upload *u = js_open(js, ".a.swp");

    js_write(u, "b0VIM", 5, 0); /* no C1 */
    ck_assert_int_eq(upload_judge(u), 0);
    upload_close(u, false);
    struct job_info info = js_find(js, ".a.swp");
    ck_assert_int_eq(info.state, JOB_RECEIVING);
    ck_assert(info.temporary);
    ck_assert_int_eq(jobs_read_file(js->jobs, info.id, back, 5, 0), 5);
    ck_assert_mem_eq(back, "b0VIM", 5);
    ck_assert_int_eq(js_copy(js, ".b", "2KiB-sealed", SIZE_MAX), 0);
    ck_assert_uint_eq(js_prove_all(js), 0);
    u = js_open(js, ".b"); /* appends */
    js_write(u, " ", 1, len);
    upload_close(u, false);
    ck_assert_uint_eq(js_find(js, ".b").file_bytes, len + 1);
    job_store_reopen(js);
    ck_assert_int_eq(js_state(js, ".a.swp"), JOB_STATES);
    ck_assert_uint_eq(jobs_on_disk(), 0);
}
END_TEST

START_TEST(jobs_rename__from_a_temporary_name_submits)
{
    struct job_info info;

    ck_assert_int_eq(js_copy(js, ".a", "2KiB-sealed", SIZE_MAX), 0);
    info = js_find(js, ".a");
    ck_assert_int_eq(jobs_rename(js->jobs, info.id, "a"), 0);
    ck_assert_uint_eq(js_find(js, "a").id, info.id);
    ck_assert_int_eq(js_state(js, "a"), JOB_QUEUED);
    ck_assert_int_eq(js_state(js, ".a"), JOB_STATES);
    job_store_reopen(js);
    ck_assert_int_eq(js_state(js, "a"), JOB_QUEUED);
}
END_TEST

START_TEST(jobs_rename__while_it_is_open_waits_for_the_writer)
{
    struct upload *u = js_open(js, ".a");

    js_write(u, bytes, len, 0);
    ck_assert_int_eq(upload_judge(u), 0);
    ck_assert_int_eq(jobs_rename(js->jobs, upload_job_id(u), "a"), 0);
    ck_assert_int_eq(js_state(js, "a"), JOB_RECEIVING);
    ck_assert_int_gt(js_find(js, "a").accepted_ns, 0);
    upload_close(u, false);
    ck_assert_int_eq(js_state(js, "a"), JOB_QUEUED);
}
END_TEST

static uint64_t to_open; /* a job, when its record is put */
static struct upload *opened;

static int renameat_meanwhile_opened(int from_dir, const char *from, int to_dir, const char *to)
{
    uint64_t id = strcmp(to, "job") == 0 ? to_open : 0;

    if (id) {
        to_open = 0;
        ck_assert_int_eq(upload_open(js->jobs, id, &opened), 0);
    }
    return store_os_real.renameat(from_dir, from, to_dir, to);
}

/* By name it was opened before, the request comes after it. */
START_TEST(jobs_rename__waits_for_a_writer_who_opens_it_meanwhile)
{
    struct store_os os = store_os_real;

    ck_assert_int_eq(js_copy(js, ".a", "2KiB-sealed", SIZE_MAX), 0);
    to_open = js_find(js, ".a").id;
    os.renameat = renameat_meanwhile_opened;
    store_os = &os;
    ck_assert_int_eq(jobs_rename(js->jobs, to_open, "a"), 0);
    ck_assert_int_eq(js_state(js, "a"), JOB_RECEIVING);
    js_write(opened, bytes, 10, 0); /* takes the acceptance back */
    ck_assert_int_eq(js_find(js, "a").accepted_ns, 0);
    ck_assert_uint_eq(js_prove_all(js), 0);
    upload_close(opened, false);
    ck_assert_int_eq(js_state(js, "a"), JOB_QUEUED);
    js_prove_all(js);
    ck_assert_int_eq(js_state(js, "a"), JOB_DONE);
    ck_assert_int_eq(state_after_kill("a"), JOB_DONE);
    store_os = &store_os_real;
}
END_TEST

START_TEST(jobs_rename__a_bad_file_keeps_its_temporary_name)
{
    ck_assert_int_eq(js_copy(js, ".a", "2KiB-sealed", 1000), 0);
    struct job_info info = js_find(js, ".a");
    ck_assert_int_eq(jobs_rename(js->jobs, info.id, "a"), -EBADMSG);
    ck_assert_int_eq(js_state(js, "a"), JOB_REJECTED); /* its error */
    ck_assert_int_eq(js_state(js, ".a"), JOB_RECEIVING);
    ck_assert(error_has(".a", "byte"));
    ck_assert_int_eq(jobs_rename(js->jobs, info.id, ".b"), 0); /* it is still a file */
    struct upload *u = js_open(js, ".b");
    js_write(u, bytes, len, 0);
    ck_assert_int_eq(upload_judge(u), 0);
    upload_close(u, false);
    ck_assert_int_eq(jobs_rename(js->jobs, info.id, "a"), 0);
    ck_assert_int_eq(js_state(js, "a"), JOB_QUEUED);
}
END_TEST

/* Replaces the file that was written by another, behind the back of the table. */
static void swap_on_disk(uint64_t id, const void *text, size_t text_len)
{
    char path[256];

    snprintf(path, sizeof(path), "%s/%016llx/c1", js->dir, (unsigned long long)id);
    FILE *f = fopen(path, "r+");
    ck_assert_msg(f != NULL, "%s", path);
    ck_assert_int_eq(ftruncate(fileno(f), 0), 0);
    ck_assert_uint_eq(fwrite(text, 1, text_len, f), text_len);
    fclose(f);
}

/* As a copy of that name leaves it, until something is accepted there; whatever becomes of the file. */
START_TEST(jobs_rename__a_refused_one_leaves_the_error_of_the_new_name)
{
    struct jobs_totals totals;
    struct job_info info;

    ck_assert_int_eq(js_copy(js, ".t", "2KiB-sealed", 1000), 0);
    uint64_t id = js_find(js, ".t").id;
    ck_assert_int_eq(jobs_rename_at_once(js->jobs, id, "a"), -EBADMSG);
    ck_assert_int_eq(js_state(js, "a"), JOB_REJECTED);
    ck_assert_uint_eq(js_find(js, "a").uid, 1000);
    ck_assert(error_has("a", "ends"));
    ck_assert(error_has(".t", "ends"));
    uint64_t first = js_find(js, "a").id;
    ck_assert_int_eq(jobs_rename(js->jobs, id, "a"), -EBADMSG); /* a new one, which watchers are told of */
    ck_assert_uint_gt(js_find(js, "a").id, first);
    ck_assert_int_eq(jobs_get(js->jobs, first, &info), -ENOENT);
    ck_assert_int_eq(jobs_remove_at_once(js->jobs, id), 0);
    ck_assert(error_has("a", "ends"));
    jobs_totals(js->jobs, &totals);
    ck_assert_uint_eq(totals.unsubmitted, 0);
    ck_assert_uint_eq(totals.by_state[JOB_REJECTED], 1);
    js_submit(js, "a", "2KiB-sealed");
    ck_assert_int_eq(jobs_get(js->jobs, first, &info), -ENOENT);
    js_prove_all(js);
    ck_assert(!js_find(js, "a").has_error);
    ck_assert_int_eq(js_copy(js, ".t", "2KiB-sealed", 1000), 0); /* over one that has ended */
    ck_assert_int_eq(jobs_rename_at_once(js->jobs, js_find(js, ".t").id, "a"), -EBADMSG);
    ck_assert_int_eq(js_state(js, "a"), JOB_DONE);
    ck_assert(error_has("a", "ends"));
    ck_assert_int_eq(jobs_remove_at_once(js->jobs, js_find(js, "a").id), 0);
    ck_assert_int_eq(jobs_sync(js->jobs), 0);
}
END_TEST

/* No more than so many, whoever tries how often. */
START_TEST(jobs_rename__errors_of_refused_ones_have_a_limit)
{
    struct jobs_totals totals;
    char name[16];

    ck_assert_int_eq(js_copy(js, ".t", "2KiB-sealed", 1000), 0);
    for (int i = 0; i < 2500; i++) {
        snprintf(name, sizeof(name), "n%d", i);
        ck_assert_int_eq(jobs_rename_at_once(js->jobs, js_find(js, ".t").id, name), -EBADMSG);
    }
    jobs_totals(js->jobs, &totals);
    ck_assert_uint_le(totals.by_state[JOB_REJECTED], 2000);
    jobs_tick(js->jobs);
    jobs_totals(js->jobs, &totals);
    ck_assert_uint_le(totals.by_state[JOB_REJECTED], 1000);
}
END_TEST

START_TEST(jobs_rename__reads_no_document)
{
    ck_assert_int_eq(js_copy(js, ".good", "2KiB-sealed", SIZE_MAX), 0);
    swap_on_disk(js_find(js, ".good").id, "rubbish", 7);
    ck_assert_int_eq(jobs_rename(js->jobs, js_find(js, ".good").id, "good"), 0);
    ck_assert_int_eq(js_copy(js, ".bad", "2KiB-sealed", 1000), 0);
    swap_on_disk(js_find(js, ".bad").id, bytes, len);
    ck_assert_int_eq(jobs_rename(js->jobs, js_find(js, ".bad").id, "bad"), -EBADMSG);
}
END_TEST

START_TEST(jobs_rename__of_what_nobody_has_judged)
{
    struct upload *u = js_open(js, ".a");
    uint64_t id = upload_job_id(u);

    js_write(u, bytes, len, 0);
    ck_assert_int_eq(jobs_rename(js->jobs, id, "a"), -EBUSY);
    ck_assert_int_eq(upload_open_to_judge(js->jobs, id, &u), -EBUSY);
    upload_close(u, true); /* as a killed writer's file */
    ck_assert_int_eq(jobs_rename(js->jobs, id, "a"), -EAGAIN);
    ck_assert_int_eq(upload_open_to_judge(js->jobs, id, &u), 0);
    ck_assert_int_eq(jobs_rename(js->jobs, id, "a"), -EBUSY);
    ck_assert_int_eq(upload_judge(u), 0);
    upload_close(u, false);
    ck_assert_int_eq(jobs_rename(js->jobs, id, "a"), 0);
    ck_assert_int_eq(js_state(js, "a"), JOB_QUEUED);
    ck_assert_int_eq(upload_open_to_judge(js->jobs, id, &u), -EBUSY);
    ck_assert_int_eq(upload_open_to_judge(js->jobs, 999, &u), -ENOENT);
}
END_TEST

START_TEST(upload_judge__a_fault_is_found_as_it_arrives_and_again_when_it_is_put_right)
{
    char back[5] = {0};
    struct upload *u = js_open(js, ".a");
    uint64_t id = upload_job_id(u);

    js_write(u, "!!!!", 4, 0); /* no C1, but a file */
    js_write(u, bytes + 4, len - 4, 4);
    ck_assert_int_eq(upload_judge(u), 0);
    ck_assert_int_eq(jobs_rename(js->jobs, id, "a"), -EBADMSG);
    ck_assert(error_has(".a", "not a C1 file"));
    ck_assert_int_eq(jobs_read_file(js->jobs, id, back, 4, 0), 4);
    ck_assert_str_eq(back, "!!!!");
    js_write(u, bytes, 4, 0);
    ck_assert(!js_find(js, ".a").has_error);
    ck_assert_int_eq(upload_judge(u), 0);
    upload_close(u, false);
    ck_assert_int_eq(jobs_rename(js->jobs, id, "a"), 0);
}
END_TEST

static int no_parameters(void *ctx, const struct c1 *c1, struct errmsg *err)
{
    (void)ctx, (void)c1;
    return errmsg_set(err, -EOPNOTSUPP, "no parameters");
}

START_TEST(jobs_rename__says_what_rename_may_say)
{
    js->opt.admit = no_parameters;
    job_store_reopen(js);
    ck_assert_int_eq(js_copy(js, ".a", "2KiB-sealed", SIZE_MAX), 0);
    uint64_t id = js_find(js, ".a").id;
    ck_assert_int_eq(jobs_rename(js->jobs, id, "a"), -EOPNOTSUPP); /* as cp has it */
    ck_assert(error_has(".a", "no parameters"));
    ck_assert_int_eq(jobs_rename(js->jobs, id, "a.proof"), -EPERM);
}
END_TEST

/* Judges by pieces; returns how many, with the answer in *ret. `between` is written before the second. */
static int judge_in_pieces(struct upload *u, const char *between, int *ret)
{
    int n = 1;

    while ((*ret = upload_judge_piece(u)) == -EINPROGRESS)
        if (n++ == 1 && between)
            js_write(u, between, strlen(between), 0);
    return n;
}

START_TEST(upload_judge_piece__a_large_file_read_back)
{
    enum { PADDING = 3000000 };
    char *spaces = malloc(PADDING);
    struct upload *u = js_open(js, "a");
    int ret;

    memset(spaces, ' ', PADDING);
    js_write(u, bytes + 1, len - 1, 1); /* out of order, so it is not read as it arrives */
    js_write(u, spaces, PADDING, len);
    js_write(u, bytes, 1, 0);
    ck_assert_int_ge(judge_in_pieces(u, NULL, &ret), 3);
    ck_assert_int_eq(ret, 0);
    ck_assert_int_gt(js_find(js, "a").accepted_ns, 0);
    js_write(u, "\n", 1, len + 10);
    /* A write between two pieces: judged anew, as it is then, and in one go. */
    ck_assert_int_eq(judge_in_pieces(u, "x", &ret), 2);
    ck_assert_int_eq(ret, -EBADMSG);
    upload_close(u, false);
    free(spaces);
}
END_TEST

START_TEST(upload_judge_piece__many_at_a_time)
{
    enum { FILES = 20, PADDING = 1500000 };
    char *spaces = malloc(PADDING), name[16];
    struct upload *u[FILES];

    memset(spaces, ' ', PADDING);
    for (int i = 0; i < FILES; i++) {
        snprintf(name, sizeof(name), "a%d", i);
        u[i] = js_open(js, name);
        js_write(u[i], bytes + 1, len - 1, 1);
        js_write(u[i], spaces, PADDING, len);
        js_write(u[i], bytes, 1, 0);
    }
    for (int i = 0; i < FILES; i++)
        ck_assert_int_eq(upload_judge_piece(u[i]), i < 8 ? -EINPROGRESS : 0); /* eight are half read at most */
    for (int i = 0; i < FILES; i++) {
        ck_assert_int_eq(upload_judge(u[i]), 0);
        upload_close(u[i], false);
    }
    free(spaces);
}
END_TEST

START_TEST(jobs_rename__of_an_empty_file_is_refused)
{
    struct upload *u = js_open(js, ".a");

    upload_close(u, false);
    ck_assert_int_eq(jobs_rename(js->jobs, js_find(js, ".a").id, "a"), -EBADMSG);
    ck_assert_int_eq(js_state(js, ".a"), JOB_RECEIVING);
    ck_assert(error_has(".a", "empty"));
}
END_TEST

/* ---- files that are no jobs ---- */

static int create(const char *name, uid_t uid, uint64_t *id)
{
    const struct upload_owner owner = {uid, uid, 0644};
    struct job_info info;
    int ret = jobs_create_file(js->jobs, name, &owner, &info);

    if (ret == 0)
        *id = info.id;
    return ret;
}

static struct jobs_totals totals(void)
{
    struct jobs_totals t;

    jobs_totals(js->jobs, &t);
    return t;
}

START_TEST(unsubmitted__so_many_of_a_user_and_of_all)
{
    uint64_t id, first;

    js->opt.max_unsubmitted_user = 2;
    js->opt.max_unsubmitted = 3;
    job_store_reopen(js);
    ck_assert_int_eq(create(".a", 7, &first), 0);
    ck_assert_int_eq(create("b", 7, &id), 0);
    ck_assert_int_eq(create(".c", 7, &id), -EDQUOT);
    ck_assert_str_eq(totals().refusal, "files of uid 7 that are no jobs: at most 2 files");
    ck_assert_int_gt(totals().refused_ms, 0);
    ck_assert_int_eq(create(".c", 8, &id), 0);
    ck_assert_int_eq(create(".d", 9, &id), -ENOSPC);
    ck_assert_ptr_nonnull(strstr(totals().refusal, "of all users: at most 3 files"));
    ck_assert_int_eq(jobs_set_owner(js->jobs, id, 7, 7), 0); /* root may do that */
    ck_assert_int_eq(jobs_remove(js->jobs, first), 0);
    ck_assert_int_eq(create(".e", 7, &first), -EDQUOT);
    ck_assert_int_eq(jobs_remove(js->jobs, id), 0);
    ck_assert_int_eq(create(".e", 7, &first), 0);
    ck_assert_uint_eq(totals().unsubmitted, 2);
}
END_TEST

START_TEST(unsubmitted__a_job_counts_no_more_until_it_is_written_again)
{
    js->opt.max_unsubmitted = 1;
    job_store_reopen(js);
    struct upload *u = js_open(js, "a");
    js_write(u, bytes, len, 0);
    ck_assert_uint_eq(totals().unsubmitted, 1);
    ck_assert_uint_eq(totals().unsubmitted_bytes, len);
    ck_assert_int_eq(upload_judge(u), 0);
    ck_assert_uint_eq(totals().unsubmitted, 0);
    ck_assert_uint_eq(totals().unsubmitted_bytes, 0);
    struct upload *b = js_open(js, "b");
    js_write(u, " ", 1, len); /* takes the acceptance back: one too many, but it is there */
    ck_assert_uint_eq(totals().unsubmitted, 2);
    upload_close(b, false);
    ck_assert_uint_eq(totals().unsubmitted, 1);
    ck_assert_int_eq(upload_judge(u), 0);
    upload_close(u, false);
    js_prove_all(js);
    ck_assert_uint_eq(totals().unsubmitted_bytes, 0);
    u = js_open(js, "a"); /* over an ended job */
    ck_assert_uint_eq(totals().unsubmitted, 1);
    uint64_t id;
    ck_assert_int_eq(create("c", 0, &id), -ENOSPC);
    js_write(u, "[", 1, 0);
    upload_close(u, false);
    ck_assert_uint_eq(totals().unsubmitted, 0);
    ck_assert_int_eq(js_copy(js, "bad", "2KiB-sealed", 100), -EBADMSG); /* refused ones are counted elsewhere */
    ck_assert_uint_eq(totals().unsubmitted, 0);
    ck_assert_uint_eq(totals().unsubmitted_bytes, 0);
}
END_TEST

START_TEST(unsubmitted__so_many_bytes_of_a_user_and_of_all)
{
    js->opt.max_unsubmitted_bytes_user = 1000;
    js->opt.max_unsubmitted_bytes = 1500;
    job_store_reopen(js);
    struct upload *u = js_open(js, ".a"), *v = js_open(js, ".b");
    js_write(u, bytes, 900, 0);
    ck_assert_int_eq(upload_write(v, bytes, 101, 0), -EDQUOT);
    ck_assert_int_eq(upload_truncate(u, 1001), -EDQUOT);
    js_write(v, bytes, 100, 0);
    ck_assert_int_eq(jobs_set_owner(js->jobs, upload_job_id(v), 7, 7), 0);
    ck_assert_int_eq(upload_write(v, bytes, 601, 0), -ENOSPC);
    js_write(v, bytes, 600, 0);
    ck_assert_int_eq(upload_truncate(u, 10), 0);
    js_write(v, bytes, 1000, 0);
    ck_assert_uint_eq(totals().unsubmitted_bytes, 1010);
    upload_close(u, false);
    upload_close(v, false);
    u = js_open(js, "final");
    ck_assert_int_eq(upload_write(u, bytes, 1001, 0), -ENOSPC); /* of all; the sixth of all has less */
    ck_assert_int_eq(upload_write(u, bytes, 991, 0), -ENOSPC);
    ck_assert_int_eq(upload_judge(u), -ENOSPC);
    upload_close(u, false);
    ck_assert(error_has("final", "files that are no jobs, of all users: at most 1500 bytes"));
}
END_TEST

START_TEST(unsubmitted__ages_after_the_last_write)
{
    js->opt.unsubmitted_s = 1;
    job_store_reopen(js);
    struct upload *open = js_open(js, "open"), *young = js_open(js, ".young");
    uint64_t id;
    ck_assert_int_eq(create(".old", 0, &id), 0);
    js_submit(js, "job", "2KiB-sealed");
    js_write(open, bytes, 100, 0);
    usleep(1100000);
    js_write(young, bytes, 100, 0);
    jobs_tick(js->jobs);
    ck_assert_int_eq(js_state(js, ".old"), JOB_STATES);
    ck_assert_int_eq(js_state(js, "open"), JOB_STATES); /* a writer who has gone to sleep */
    ck_assert_int_eq(js_state(js, ".young"), JOB_RECEIVING);
    ck_assert_int_eq(js_state(js, "job"), JOB_QUEUED);
    ck_assert_int_eq(upload_write(open, bytes, 100, 100), -ECANCELED);
    upload_close(open, false);
    upload_close(young, false);
    ck_assert_uint_eq(jobs_on_disk(), 2);
    ck_assert_uint_eq(totals().unsubmitted, 1);
}
END_TEST

/* ---- a disk that is full ---- */

static bool c1_cannot_be_synced;

static int failing_fsync(int fd)
{
    char link[64], path[256] = "";

    snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
    ssize_t n = readlink(link, path, sizeof(path) - 1);
    if (c1_cannot_be_synced && n > 3 && strcmp(path + n - 3, "/c1") == 0) {
        errno = EIO;
        return -1;
    }
    return store_os_real.fsync(fd);
}

/* After a sync that failed nobody knows what is on disk, and the next one says that all is well: what was written before may
 * be gone all the same. */
START_TEST(upload_judge__what_could_not_be_synced_is_written_anew)
{
    struct store_os os = store_os_real;
    struct upload *u = js_open(js, "a");

    os.fsync = failing_fsync;
    store_os = &os;
    js_write(u, bytes, len, 0);
    c1_cannot_be_synced = true;
    ck_assert_int_eq(upload_judge(u), -EIO);
    c1_cannot_be_synced = false;
    ck_assert_int_eq(upload_judge(u), -EIO);
    js_write(u, bytes, 10, 0); /* a part will not do */
    ck_assert_int_eq(upload_judge(u), -EIO);
    ck_assert_int_eq(upload_truncate(u, 0), 0);
    js_write(u, bytes, len, 0);
    ck_assert_int_eq(upload_judge(u), 0);
    upload_close(u, false);
    ck_assert_int_eq(js_state(js, "a"), JOB_QUEUED);
    store_os = &store_os_real;
}
END_TEST

START_TEST(upload_write__more_than_the_store_may_hold)
{
    js->opt.max_store_bytes = len + 1000;
    job_store_reopen(js);
    ck_assert_int_eq(js_copy(js, "a", "2KiB-sealed", SIZE_MAX),
                     -ENOSPC); /* no room for the decoded form */
    ck_assert_int_eq(js_state(js, "a"), JOB_REJECTED);
    ck_assert(error_has("a", "space"));
    ck_assert_uint_eq(jobs_on_disk(), 0);
    struct upload *u = js_open(js, "b");
    js_write(u, bytes, len, 0);
    ck_assert_int_eq(upload_write(u, bytes, 2000, len), -ENOSPC);
    ck_assert_int_eq(upload_judge(u), -ENOSPC); /* not whole, whatever it looks like */
    upload_close(u, false);
    js->opt.max_store_bytes = 0;
    job_store_reopen(js);
    js_submit(js, "a", "2KiB-sealed");
}
END_TEST

/* A disk as full as it gets: the kernel's own refusal. */
START_TEST(upload_write__a_file_that_may_not_grow)
{
    struct rlimit limit = {.rlim_cur = len / 2, .rlim_max = RLIM_INFINITY};
    struct upload *u = js_open(js, "a");

    signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &limit);
    limit.rlim_cur = len / 2;
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
    js_write(u, bytes, 100, 0);
    ck_assert_int_eq(upload_write(u, bytes + 100, len - 100, 100), -EFBIG);
    ck_assert_int_eq(upload_judge(u), -EFBIG);
    limit.rlim_cur = limit.rlim_max;
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
    js_write(u, bytes + 100, len - 100, 100); /* the same write again */
    ck_assert_int_eq(upload_judge(u), 0);
    upload_close(u, false);
    ck_assert_int_eq(js_state(js, "a"), JOB_QUEUED);
}
END_TEST

/* ---- threads ---- */

struct hammer {
    int number;
};

static void *hammer(void *arg)
{
    struct hammer *h = arg;
    char name[32];

    for (int i = 0; i < 6; i++) {
        snprintf(name, sizeof(name), "%s%d", i % 2 ? "." : "", (h->number + i) % 3);
        struct upload_owner owner = {.mode = 0600};
        struct job_info info;
        struct upload *u;
        if (jobs_create_file(js->jobs, name, &owner, &info) < 0 &&
            jobs_find(js->jobs, name, &info) < 0)
            continue;
        if (upload_open(js->jobs, info.id, &u) < 0)
            continue;
        upload_truncate(u, 0);
        upload_write(u, bytes, len / 2, 0);
        upload_write(u, bytes + len / 2, len - len / 2, len / 2);
        upload_judge(u);
        upload_close(u, i == 4);
        jobs_rename(js->jobs, info.id, "x");
        if (i % 3 == 0)
            jobs_remove(js->jobs, info.id);
        js_prove_all(js);
    }
    return NULL;
}

START_TEST(upload__many_threads_on_few_names)
{
    pthread_t threads[4];
    struct hammer hammers[4];
    struct jobs_totals totals;

    for (int i = 0; i < 4; i++) {
        hammers[i].number = i;
        pthread_create(&threads[i], NULL, hammer, &hammers[i]);
    }
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    js_prove_all(js);
    jobs_totals(js->jobs, &totals);
    ck_assert_uint_eq(totals.by_state[JOB_QUEUED] + totals.by_state[JOB_PROVING] +
                          totals.by_state[JOB_SYNTHESIZING] + totals.by_state[JOB_CANCELLED],
                      0);
    job_store_reopen(js);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("upload");
    TCase *tc = tcase_create("upload");

    tcase_set_timeout(tc, 300);
    tcase_add_checked_fixture(tc, open_store, close_store);
    tcase_add_test(tc, upload_judge__accepts_a_whole_document_at_once_and_again);
    tcase_add_loop_test(tc, upload_write__chunks_of_any_size_in_order, 0, 4);
    tcase_add_test(tc, upload_write__any_order_is_read_when_it_is_judged);
    tcase_add_test(tc, upload__two_writers_share_one_file);
    tcase_add_test(tc, upload_close__judges_what_no_flush_did);
    tcase_add_test(tc, upload_write__takes_an_acceptance_back);
    tcase_add_test(tc, upload_truncate__takes_back_except_to_the_same_size);
    tcase_add_test(tc, upload_open__an_unfinished_job_is_busy);
    tcase_add_test(tc, upload__an_empty_file_leaves_nothing);
    tcase_add_test(tc, upload__a_killed_writer_leaves_nothing);
    tcase_add_test(tc, upload_judge__a_part_is_refused_and_says_why);
    tcase_add_test(tc, upload_write__refuses_as_soon_as_the_bytes_cannot_become_a_c1);
    tcase_add_test(tc, upload_write__a_refused_piece_that_is_written_again_is_refused_once);
    tcase_add_test(tc, upload__a_refused_file_may_be_put_right);
    tcase_add_test(tc, jobs_create_file__does_not_wait_for_the_release_of_a_refused_file);
    tcase_add_test(tc, upload__refused_names_age_and_are_bounded);
    tcase_add_test(tc, upload_write__has_a_longest_length);
    tcase_add_test(tc, upload_write__too_long_takes_an_acceptance_back);
    tcase_add_test(tc, upload_write__too_long_over_an_ended_job);
    tcase_add_test(tc, upload_write__too_long_changes_no_file_of_a_temporary_name);
    tcase_add_test(tc, upload_judge__asks_whether_it_can_ever_be_proved);
    tcase_add_test(tc, upload_open__a_full_queue_takes_no_more);
    tcase_add_test(tc, upload__more_at_a_time_than_there_are_readers);
    tcase_add_test(tc, upload__old_results_stay_until_the_new_file_is_accepted);
    tcase_add_test(tc, upload__a_refused_file_leaves_the_ended_job_and_a_word);
    tcase_add_test(tc, upload__rm_of_the_ended_job_ends_the_upload_over_it);
    tcase_add_test(tc, upload__an_editor_writes_over_its_backup);
    tcase_add_test(tc, upload_close__without_memory_is_made_up_for);
    tcase_add_test(tc, upload__what_changes_the_ended_job_meanwhile_changes_its_successor);
    tcase_add_test(tc, upload__a_temporary_name_takes_anything_and_becomes_no_job);
    tcase_add_test(tc, jobs_rename__from_a_temporary_name_submits);
    tcase_add_test(tc, jobs_rename__while_it_is_open_waits_for_the_writer);
    tcase_add_test(tc, jobs_rename__waits_for_a_writer_who_opens_it_meanwhile);
    tcase_add_test(tc, jobs_rename__a_bad_file_keeps_its_temporary_name);
    tcase_add_test(tc, jobs_rename__reads_no_document);
    tcase_add_test(tc, jobs_rename__of_what_nobody_has_judged);
    tcase_add_test(tc, upload_judge__a_fault_is_found_as_it_arrives_and_again_when_it_is_put_right);
    tcase_add_test(tc, jobs_rename__says_what_rename_may_say);
    tcase_add_test(tc, upload_judge_piece__a_large_file_read_back);
    tcase_add_test(tc, upload_judge_piece__many_at_a_time);
    tcase_add_test(tc, jobs_rename__of_an_empty_file_is_refused);
    tcase_add_test(tc, jobs_rename__a_refused_one_leaves_the_error_of_the_new_name);
    tcase_add_test(tc, jobs_rename__errors_of_refused_ones_have_a_limit);
    tcase_add_test(tc, unsubmitted__so_many_of_a_user_and_of_all);
    tcase_add_test(tc, unsubmitted__a_job_counts_no_more_until_it_is_written_again);
    tcase_add_test(tc, unsubmitted__so_many_bytes_of_a_user_and_of_all);
    tcase_add_test(tc, unsubmitted__ages_after_the_last_write);
    tcase_add_test(tc, upload_judge__what_could_not_be_synced_is_written_anew);
    tcase_add_test(tc, upload_write__more_than_the_store_may_hold);
    tcase_add_test(tc, upload_write__a_file_that_may_not_grow);
    tcase_add_test(tc, upload__many_threads_on_few_names);
    suite_add_tcase(s, tc);
    return suite_run(s);
}
