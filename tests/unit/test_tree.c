/*
 * The tree over a table of jobs that this file makes up: the functions of daemon/jobs.h that the
 * tree calls are here, so the real table is not linked.
 */
#include "fuse/tree.h"

#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/lib/suite.h"

#define FAKES_MAX 64

struct fake {
    struct job_info info;
    bool there;
};

static struct fake fakes[FAKES_MAX];
static size_t fakes_len;

static struct fake *fake_get(uint64_t id)
{
    for (size_t i = 0; i < fakes_len; i++)
        if (fakes[i].there && fakes[i].info.id == id)
            return &fakes[i];
    return NULL;
}

static struct fake *fake_add(uint64_t id, const char *name, enum job_state state)
{
    struct fake *f = &fakes[fakes_len++];

    memset(f, 0, sizeof(*f));
    f->there = true;
    f->info.id = id;
    f->info.state = state;
    f->info.mode = 0640;
    f->info.uid = 1000;
    f->info.gid = 1001;
    f->info.node = -1;
    f->info.has_error = state == JOB_FAILED || state == JOB_REJECTED;
    f->info.report_bytes = 3; /* as below */
    f->info.error_bytes = 13;
    f->info.temporary = name[0] == '.';
    snprintf(f->info.name, sizeof(f->info.name), "%s", name);
    return f;
}

int jobs_find(struct jobs *jobs, const char *name, struct job_info *out)
{
    (void)jobs;
    for (size_t i = 0; i < fakes_len; i++)
        if (fakes[i].there && strcmp(fakes[i].info.name, name) == 0) {
            *out = fakes[i].info;
            return 0;
        }
    return -ENOENT;
}

int jobs_get(struct jobs *jobs, uint64_t id, struct job_info *out)
{
    const struct fake *f = fake_get(id);

    (void)jobs;
    if (f)
        *out = f->info;
    return f ? 0 : -ENOENT;
}

size_t jobs_list(struct jobs *jobs, uint64_t after, struct job_info *out, size_t max)
{
    size_t n = 0;

    (void)jobs;
    for (size_t i = 0; i < fakes_len && n < max; i++)
        if (fakes[i].there && fakes[i].info.id > after)
            out[n++] = fakes[i].info;
    return n;
}

int jobs_proof(struct jobs *jobs, uint64_t id, uint8_t **bytes, size_t *len)
{
    (void)jobs, (void)id;
    *len = 192;
    *bytes = malloc(*len);
    memset(*bytes, 0xab, *len);
    return 0;
}

int jobs_error(struct jobs *jobs, uint64_t id, char **text)
{
    (void)jobs;
    if (!fake_get(id)->info.has_error)
        return -ENOENT;
    *text = strdup("it is broken\n");
    return 0;
}

int jobs_report(struct jobs *jobs, uint64_t id, char **json)
{
    (void)jobs, (void)id;
    *json = strdup("{}\n");
    return 0;
}

int jobs_set_priority(struct jobs *jobs, uint64_t id, enum job_priority priority)
{
    (void)jobs;
    fake_get(id)->info.priority = priority;
    return 0;
}

/* ---- the service's own files ---- */

static char written[64];

static int render_hello(void *ctx, char **text, size_t *len)
{
    *text = strdup(ctx);
    *len = strlen(*text);
    return 0;
}

static int keep_written(void *ctx, const char *text, struct errmsg *err)
{
    (void)ctx;
    if (strcmp(text, "wrong") == 0)
        return errmsg_set(err, -EINVAL, "wrong");
    snprintf(written, sizeof(written), "%s", text);
    return 0;
}

static bool there;

static bool is_there(void *ctx)
{
    (void)ctx;
    return there;
}

static const struct tree_file own_files[] = {
    {"status", 0444, render_hello, NULL, "all is well\n", NULL},
    {"log_level", 0644, render_hello, keep_written, "info\n", NULL},
    {"wishes", 0664, render_hello, keep_written, "none\n", NULL},
    {"nodes/0/topology", 0444, render_hello, NULL, "zero\n", NULL},
    {"nodes/1/topology", 0444, render_hello, NULL, "one\n", NULL},
    {"nodes/1/permits", 0444, render_hello, NULL, "free\n", NULL},
    {"nodes/1/samples", 0444, render_hello, NULL, "once\n", is_there},
};

static struct tree *tree;

static gid_t operators = 77;

static void make_tree(void)
{
    struct tree_options opt = {
        .files = own_files, .files_len = ARRAY_LEN(own_files), .operators = operators};

    ck_assert_int_eq(tree_create(&opt, &tree, NULL), 0);
}

static void setup(void)
{
    fakes_len = 0;
    tree = NULL;
}

static void teardown(void)
{
    tree_destroy(tree);
}

static int look(const char *name)
{
    struct stat st;

    return tree_lookup(tree, TREE_INO_JOBS, name, &st);
}

static void changed(const struct fake *f, bool gone)
{
    tree_job_changed(tree, &f->info, gone);
}

struct names {
    char text[4096];
    size_t max;
    uint64_t offset;
};

static bool collect(void *ctx, const struct tree_dirent *e)
{
    struct names *n = ctx;

    if (n->max-- == 0)
        return false;
    strcat(strcat(n->text, e->name), " ");
    n->offset = e->offset;
    return true;
}

static void check_list(uint64_t dir, const char *want)
{
    struct names n = {.max = 1000};

    ck_assert_int_eq(tree_list(tree, dir, 0, collect, &n), 0);
    ck_assert_str_eq(n.text, want);
}

static void check_text(uint64_t ino, const char *want)
{
    char *text = NULL;
    size_t len;

    ck_assert_int_eq(tree_render(tree, ino, &text, &len), 0);
    ck_assert_uint_eq(len, strlen(want));
    ck_assert_int_eq(memcmp(text, want, len), 0);
    free(text);
}

/* ---- tests ---- */

START_TEST(tree_lookup__finds_own_files_and_directories)
{
    struct stat st;

    make_tree();
    ck_assert_int_eq(tree_lookup(tree, TREE_INO_ROOT, "jobs", &st), 0);
    ck_assert_uint_eq(st.st_ino, TREE_INO_JOBS);
    ck_assert_uint_eq(st.st_mode, S_IFDIR | 01777);
    ck_assert_int_eq(tree_lookup(tree, TREE_INO_ROOT, "events", &st), 0);
    ck_assert_uint_eq(st.st_ino, TREE_INO_EVENTS);
    ck_assert_int_eq(tree_lookup(tree, TREE_INO_ROOT, "log_level", &st), 0);
    ck_assert_uint_eq(st.st_mode, S_IFREG | 0644);
    ck_assert_uint_eq(st.st_gid, 0);
    ck_assert_int_eq(tree_lookup(tree, TREE_INO_ROOT, "wishes", &st), 0);
    ck_assert_uint_eq(st.st_mode, S_IFREG | 0664);
    ck_assert_uint_eq(st.st_gid, 77);
    ck_assert_int_eq(tree_lookup(tree, TREE_INO_ROOT, "nodes", &st), 0);
    ck_assert(S_ISDIR(st.st_mode));
    ck_assert_int_eq(tree_lookup(tree, st.st_ino, "1", &st), 0);
    const uint64_t dir = st.st_ino;
    check_list(dir, ". .. topology permits ");
    ck_assert_int_eq(tree_lookup(tree, dir, "samples", &st), -ENOENT);
    there = true;
    check_list(dir, ". .. topology permits samples ");
    ck_assert_int_eq(tree_lookup(tree, dir, "samples", &st), 0);
    there = false; /* who has it open reads on */
    check_text(st.st_ino, "once\n");
    ck_assert_int_eq(tree_lookup(tree, dir, "samples", &st), -ENOENT);
    ck_assert_int_eq(tree_lookup(tree, dir, "topology", &st), 0);
    check_text(st.st_ino, "one\n");
    ck_assert_int_eq(tree_lookup(tree, TREE_INO_ROOT, "topology", &st), -ENOENT);
    ck_assert_int_eq(tree_list(tree, st.st_ino, 0, collect, &(struct names){.max = 1}), -ENOTDIR);
    check_list(TREE_INO_ROOT, ". .. jobs events status log_level wishes nodes ");
}
END_TEST

START_TEST(tree_lookup__without_operators_their_files_are_the_services)
{
    struct stat st;

    operators = (gid_t)-1;
    make_tree();
    ck_assert_int_eq(tree_lookup(tree, TREE_INO_ROOT, "wishes", &st), 0);
    ck_assert_uint_eq(st.st_mode, S_IFREG | 0644);
    ck_assert_uint_eq(st.st_gid, 0);
}
END_TEST

START_TEST(tree_create__refuses_bad_paths)
{
    static const char *const bad[] = {"", "a//b", "/a", "a/b/c/d", "jobs", "events", "a/"};

    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        struct tree_file file = {.path = bad[i], .mode = 0444, .render = render_hello, .ctx = ""};
        struct tree_options opt = {.files = &file, .files_len = 1};
        ck_assert_int_eq(tree_create(&opt, &tree, NULL), -EINVAL);
    }
    struct tree_file twice[] = {own_files[0], own_files[0]};
    struct tree_options opt = {.files = twice, .files_len = 2};
    ck_assert_int_eq(tree_create(&opt, &tree, NULL), -EINVAL);
}
END_TEST

START_TEST(tree_ino__tells_jobs_from_everything_else)
{
    enum tree_kind kind;
    struct stat st;
    uint64_t job;

    make_tree();
    for (uint64_t id = 1; id < 100; id++)
        for (int k = 0; k < TREE_JOB_KINDS; k++) {
            ck_assert(tree_ino_is_job(tree_job_ino(id, (enum tree_kind)k), &job, &kind));
            ck_assert_uint_eq(job, id);
            ck_assert_int_eq(kind, k);
        }
    ck_assert(!tree_ino_is_job(TREE_INO_ROOT, &job, &kind));
    ck_assert(!tree_ino_is_job(TREE_INO_JOBS, &job, &kind));
    ck_assert(!tree_ino_is_job(TREE_INO_EVENTS, &job, &kind));
    tree_lookup(tree, TREE_INO_ROOT, "status", &st);
    ck_assert(!tree_ino_is_job(st.st_ino, &job, &kind));
    ck_assert(!tree_ino_is_job(16 * 5 + TREE_JOB_KINDS, &job, &kind));
}
END_TEST

START_TEST(tree_lookup__results_of_an_old_job_are_there)
{
    fake_add(3, "old", JOB_DONE);
    fake_add(4, "bad", JOB_FAILED);
    make_tree();
    check_list(TREE_INO_JOBS, ". .. old old.status old.priority old.report old.proof.bin old.proof "
                              "bad bad.status bad.priority bad.error bad.report ");
    ck_assert_int_eq(look("old.proof"), 0);
    ck_assert_int_eq(look("old.error"), -ENOENT);
    ck_assert_int_eq(look("bad.proof"), -ENOENT);
    ck_assert_int_eq(look(".proof"), -ENOENT);
    ck_assert_int_eq(look("old.proof.proof"), -ENOENT);
}
END_TEST

START_TEST(tree_publish__results_appear_one_by_one)
{
    struct job_info info;
    struct fake *f = fake_add(5, "a", JOB_QUEUED);

    make_tree(); /* unfinished when the service begins */
    ck_assert_uint_eq(tree_due(tree, 5, &info), 0);
    f->info.state = JOB_DONE; /* the table changes before anybody is told */
    ck_assert_int_eq(look("a.proof"), -ENOENT);
    changed(f, false);
    check_list(TREE_INO_JOBS, ". .. a a.status a.priority ");
    ck_assert_uint_eq(tree_due(tree, 5, &info),
                      1u << TREE_REPORT | 1u << TREE_PROOF_BIN | 1u << TREE_PROOF);
    ck_assert_int_eq(tree_publish(tree, 5, TREE_ERROR), -ENOENT);
    ck_assert_int_eq(tree_publish(tree, 5, TREE_PROOF_BIN), 0);
    check_list(TREE_INO_JOBS, ". .. a a.status a.priority a.proof.bin ");
    ck_assert_int_eq(tree_publish(tree, 5, TREE_PROOF_BIN), -ENOENT);
    ck_assert_int_eq(tree_publish(tree, 5, TREE_REPORT), 0);
    ck_assert_int_eq(tree_publish(tree, 5, TREE_PROOF), 0);
    ck_assert_uint_eq(tree_due(tree, 5, &info), 0);
    ck_assert_int_eq(look("a.proof"), 0);
    ck_assert_int_eq(tree_hide(tree, 5, TREE_PROOF), 0);
    ck_assert_int_eq(look("a.proof"), -ENOENT);
    ck_assert_uint_eq(tree_due(tree, 5, &info), 0);
    f->there = false;
    changed(f, true);
    ck_assert_int_eq(tree_publish(tree, 5, TREE_PROOF), -ENOENT);
}
END_TEST

/* A change is told when somebody comes to it: the job may be done by then, and its results published. */
START_TEST(tree_job_changed__what_is_told_late_takes_nothing_back)
{
    struct job_info info;

    make_tree();
    struct fake *f = fake_add(5, "a", JOB_DONE);
    struct job_info late = f->info;
    late.state = JOB_PROVING;
    ck_assert_int_eq(tree_publish(tree, 5, TREE_PROOF), 0);
    tree_job_changed(tree, &late, false);
    ck_assert_int_eq(look("a.proof"), 0);
    ck_assert_uint_eq(tree_due(tree, 5, &info), 1u << TREE_REPORT | 1u << TREE_PROOF_BIN);
    f->info.state = JOB_QUEUED; /* its proof was lost on disk: the next one is told of anew */
    changed(f, false);
    f->info.state = JOB_DONE;
    changed(f, false);
    ck_assert_int_eq(look("a.proof"), -ENOENT);
}
END_TEST

START_TEST(tree_publish__a_rejected_file_leaves_its_error_alone)
{
    struct job_info info;

    make_tree();
    struct fake *f = fake_add(9, "a", JOB_REJECTED);
    changed(f, false);
    check_list(TREE_INO_JOBS, ". .. ");
    ck_assert_uint_eq(tree_due(tree, 9, &info), 1u << TREE_ERROR);
    ck_assert_int_eq(tree_publish(tree, 9, TREE_ERROR), 0);
    check_list(TREE_INO_JOBS, ". .. a.error ");
    ck_assert_int_eq(look("a"), -ENOENT);
    check_text(tree_job_ino(9, TREE_ERROR), "it is broken\n");

    f->info.state = JOB_RECEIVING; /* its writer goes on: the error is a matter of the past */
    f->info.has_error = false;
    changed(f, false);
    check_list(TREE_INO_JOBS, ". .. a a.status a.priority ");
    f->info.state = JOB_REJECTED;
    f->info.has_error = true;
    changed(f, false);
    ck_assert_int_eq(look("a.error"), -ENOENT);
    ck_assert_uint_eq(tree_due(tree, 9, &info), 1u << TREE_ERROR);
}
END_TEST

START_TEST(tree_lookup__a_refused_overwrite_adds_an_error)
{
    struct job_info info;
    struct fake *f = fake_add(2, "old", JOB_DONE);

    make_tree();
    ck_assert_uint_eq(tree_due(tree, 2, &info), 0);
    f->info.has_error = true;
    changed(f, false);
    ck_assert_int_eq(look("old.error"), -ENOENT);
    ck_assert_uint_eq(tree_due(tree, 2, &info), 1u << TREE_ERROR);
    ck_assert_int_eq(tree_publish(tree, 2, TREE_ERROR), 0);
    ck_assert_int_eq(look("old.error"), 0);
    ck_assert_int_eq(look("old.proof"), 0);
}
END_TEST

START_TEST(tree_lookup__temporary_and_cancelled)
{
    make_tree();
    struct fake *f = fake_add(7, ".tmp", JOB_RECEIVING);
    fake_add(8, "c", JOB_CANCELLED);
    changed(f, false);
    check_list(TREE_INO_JOBS, ". .. .tmp ");
    f->info.has_error = true; /* a rename was refused: said at once */
    changed(f, false);
    check_list(TREE_INO_JOBS, ". .. .tmp .tmp.error ");
}
END_TEST

START_TEST(tree_list__stays_steady_while_jobs_come_and_go)
{
    char name[16];
    struct names n = {.max = 0};
    size_t rounds = 0;

    make_tree();
    for (uint64_t id = 1; id <= 20; id++) {
        snprintf(name, sizeof(name), "j%02d", (int)id);
        fake_add(id, name, JOB_QUEUED);
    }
    /* Three entries at a time; before each round a job that has been met goes, and a new one comes.
     */
    for (size_t before = SIZE_MAX; before != strlen(n.text); rounds++) {
        before = strlen(n.text);
        n.max = 3;
        if (rounds > 2 && rounds < 10)
            fakes[rounds - 3].there = false;
        if (rounds == 5)
            fake_add(30, "late", JOB_QUEUED);
        ck_assert_int_eq(tree_list(tree, TREE_INO_JOBS, n.offset, collect, &n), 0);
    }
    for (int id = 1; id <= 20; id++) {
        snprintf(name, sizeof(name), "j%02d ", id);
        const char *first = strstr(n.text, name);
        ck_assert_ptr_nonnull(first);
        ck_assert_ptr_null(strstr(first + 1, name));
    }
    ck_assert_ptr_nonnull(strstr(n.text, "late late.status late.priority "));
}
END_TEST

START_TEST(tree_getattr__owner_mode_and_size)
{
    struct stat st;
    struct fake *f = fake_add(2, "a", JOB_DONE);

    f->info.file_bytes = 12345;
    f->info.partitions = 1;
    f->info.ended_ns = 1500000000123456789;
    make_tree();
    ck_assert_int_eq(tree_lookup(tree, TREE_INO_JOBS, "a", &st), 0);
    ck_assert_uint_eq(st.st_mode, S_IFREG | 0640);
    ck_assert_uint_eq(st.st_uid, 1000);
    ck_assert_uint_eq(st.st_gid, 1001);
    ck_assert_int_eq(st.st_size, 12345);
    ck_assert_int_eq(tree_lookup(tree, TREE_INO_JOBS, "a.proof", &st), 0);
    ck_assert_uint_eq(st.st_mode, S_IFREG | 0440);
    ck_assert_int_eq(st.st_size, 2 * 192 + 1);
    ck_assert_int_eq(st.st_mtim.tv_sec, 1500000000);
    ck_assert_int_eq(st.st_mtim.tv_nsec, 123456789);
    ck_assert_int_eq(tree_lookup(tree, TREE_INO_JOBS, "a.priority", &st), 0);
    ck_assert_uint_eq(st.st_mode, S_IFREG | 0640);
    ck_assert_int_eq(tree_getattr(tree, tree_job_ino(77, TREE_C1), &st), -ENOENT);
}
END_TEST

START_TEST(tree_render__status_lines)
{
    struct fake *f = fake_add(1, "a", JOB_RECEIVING);

    make_tree();
    check_text(tree_job_ino(1, TREE_STATUS), "receiving waits=writer\n");
    f->info.temporary = true;
    check_text(tree_job_ino(1, TREE_STATUS), "receiving waits=rename\n");
    f->info.temporary = false;
    f->info.state = JOB_QUEUED;
    f->info.partitions = 10;
    check_text(tree_job_ino(1, TREE_STATUS), "queued 0/10 waits=engine\n");
    f->info.waits_for_params = true;
    f->info.params_percent = -1;
    check_text(tree_job_ino(1, TREE_STATUS), "queued 0/10 waiting for parameters\n");
    f->info.params_percent = 34;
    f->info.node = 1;
    check_text(tree_job_ino(1, TREE_STATUS), "queued 0/10 node=1 waiting for parameters 34%\n");
    f->info.waits_for_params = false;
    f->info.node = -1;
    f->info.waits_for_memory = true;
    check_text(tree_job_ino(1, TREE_STATUS), "queued 0/10 waiting for memory\n");
    f->info.waits_for_memory = false;
    f->info.same_as = 12;
    check_text(tree_job_ino(1, TREE_STATUS), "queued 0/10 waits=job:12\n");
    f->info.state = JOB_PROVING;
    f->info.node = 1;
    f->info.partitions_done = 4;
    check_text(tree_job_ino(1, TREE_STATUS), "proving 4/10 node=1\n");
    f->info.state = JOB_DONE;
    f->info.insecure = true;
    f->info.partitions_done = 10;
    check_text(tree_job_ino(1, TREE_STATUS), "done 10/10 node=1 insecure development parameters\n");
}
END_TEST

START_TEST(tree_write__priorities_and_settings)
{
    struct errmsg err = {""};
    struct stat st;

    fake_add(1, "a", JOB_QUEUED);
    make_tree();
    ck_assert_int_eq(tree_write(tree, tree_job_ino(1, TREE_PRIORITY), "high", false, &err), 0);
    check_text(tree_job_ino(1, TREE_PRIORITY), "high\n");
    ck_assert_int_eq(tree_write(tree, tree_job_ino(1, TREE_PRIORITY), "highest", false, &err), -EINVAL);
    ck_assert_ptr_nonnull(strstr(err.text, "highest"));
    ck_assert_int_eq(tree_write(tree, tree_job_ino(1, TREE_PRIORITY), "critical", false, &err), -EPERM);
    check_text(tree_job_ino(1, TREE_PRIORITY), "high\n");
    ck_assert_int_eq(tree_write(tree, tree_job_ino(1, TREE_PRIORITY), "critical", true, &err), 0);
    check_text(tree_job_ino(1, TREE_PRIORITY), "critical\n");
    ck_assert_int_eq(tree_write(tree, tree_job_ino(1, TREE_STATUS), "done", false, &err), -EACCES);
    tree_lookup(tree, TREE_INO_ROOT, "log_level", &st);
    ck_assert_int_eq(tree_write(tree, st.st_ino, "debug", false, &err), 0);
    ck_assert_str_eq(written, "debug");
    ck_assert_int_eq(tree_write(tree, st.st_ino, "wrong", false, &err), -EINVAL);
    tree_lookup(tree, TREE_INO_ROOT, "status", &st);
    ck_assert_int_eq(tree_write(tree, st.st_ino, "x", false, &err), -EACCES);
}
END_TEST

START_TEST(tree_render__proof_is_hex_and_a_newline)
{
    char want[2 * 192 + 2];

    fake_add(1, "a", JOB_DONE);
    make_tree();
    for (int i = 0; i < 192; i++)
        memcpy(want + 2 * i, "ab", 2);
    memcpy(want + 2 * 192, "\n", 2);
    check_text(tree_job_ino(1, TREE_PROOF), want);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("tree");
    TCase *tc = tcase_create("tree");

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, tree_lookup__finds_own_files_and_directories);
    tcase_add_test(tc, tree_lookup__without_operators_their_files_are_the_services);
    tcase_add_test(tc, tree_create__refuses_bad_paths);
    tcase_add_test(tc, tree_ino__tells_jobs_from_everything_else);
    tcase_add_test(tc, tree_lookup__results_of_an_old_job_are_there);
    tcase_add_test(tc, tree_publish__results_appear_one_by_one);
    tcase_add_test(tc, tree_job_changed__what_is_told_late_takes_nothing_back);
    tcase_add_test(tc, tree_publish__a_rejected_file_leaves_its_error_alone);
    tcase_add_test(tc, tree_lookup__a_refused_overwrite_adds_an_error);
    tcase_add_test(tc, tree_lookup__temporary_and_cancelled);
    tcase_add_test(tc, tree_list__stays_steady_while_jobs_come_and_go);
    tcase_add_test(tc, tree_getattr__owner_mode_and_size);
    tcase_add_test(tc, tree_render__status_lines);
    tcase_add_test(tc, tree_write__priorities_and_settings);
    tcase_add_test(tc, tree_render__proof_is_hex_and_a_newline);
    suite_add_tcase(s, tc);
    return suite_run(s);
}
