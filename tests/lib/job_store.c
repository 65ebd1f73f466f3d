#include "tests/lib/job_store.h"

#include <check.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/lib/disk_model.h"
#include "tests/lib/files.h"

static void write_diary(void *ctx, const struct job_info *info, enum job_state was, bool gone)
{
    struct job_store *js = ctx;

    ck_assert_uint_lt(js->diary_len, DIARY_MAX);
    js->diary[js->diary_len++] = (struct diary_line){.id = info->id,
                                                     .was = was,
                                                     .is = info->state,
                                                     .gone = gone,
                                                     .partitions_done = info->partitions_done};
}

static void open_table(struct job_store *js)
{
    struct errmsg err = {{0}};
    int ret = jobs_open(&js->opt, &js->jobs, &err);

    ck_assert_msg(ret == 0, "jobs_open: %d %s", ret, err.text);
}

static struct job_store *make_store(void)
{
    struct job_store *js = calloc(1, sizeof(*js));

    ck_assert_ptr_nonnull(js);
    snprintf(js->dir, sizeof(js->dir), "%s/proofd-test-XXXXXX",
             access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
    ck_assert_ptr_nonnull(mkdtemp(js->dir));
    js->opt = (struct jobs_options){
        .store_dir = js->dir, .max_unfinished = 100, .changed = write_diary, .ctx = js};
    return js;
}

struct job_store *job_store_create(void)
{
    struct job_store *js = make_store();

    open_table(js);
    return js;
}

struct job_store *job_store_create_recorded(void)
{
    struct job_store *js = make_store();

    recorder_start(js->dir);
    open_table(js);
    return js;
}

void job_store_reopen(struct job_store *js)
{
    jobs_close(js->jobs);
    js->jobs = NULL;
    js->diary_len = 0;
    open_table(js);
}

static void copy_file(const char *from, const char *to)
{
    size_t len;
    uint8_t *bytes = file_read(from, &len);
    FILE *f = fopen(to, "w");

    ck_assert_ptr_nonnull(f);
    ck_assert_uint_eq(fwrite(bytes, 1, len, f), len);
    fclose(f);
    free(bytes);
}

static void copy_tree(const char *from, const char *to)
{
    DIR *dir = opendir(from);

    ck_assert_ptr_nonnull(dir);
    for (struct dirent *e; (e = readdir(dir)) != NULL;) {
        char source[512], target[512];
        if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, ".."))
            continue;
        snprintf(source, sizeof(source), "%.200s/%.255s", from, e->d_name);
        snprintf(target, sizeof(target), "%.200s/%.255s", to, e->d_name);
        if (e->d_type != DT_DIR) {
            copy_file(source, target);
            continue;
        }
        ck_assert_int_eq(mkdir(target, 0700), 0);
        copy_tree(source, target);
    }
    closedir(dir);
}

struct job_store *job_store_copy(struct job_store *js)
{
    struct job_store *copy = make_store();

    copy_tree(js->dir, copy->dir);
    open_table(copy);
    return copy;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)st;
    (void)type;
    (void)ftw;
    return remove(path);
}

void remove_tree(const char *dir)
{
    nftw(dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

void job_store_destroy(struct job_store *js)
{
    jobs_close(js->jobs);
    remove_tree(js->dir);
    free(js);
}

const uint8_t *document(const char *name, size_t *len)
{
    static struct {
        char name[32];
        uint8_t *bytes;
        size_t len;
    } kept[8];

    for (size_t i = 0; i < ARRAY_LEN(kept); i++) {
        if (!kept[i].bytes) {
            snprintf(kept[i].name, sizeof(kept[i].name), "%s", name);
            kept[i].bytes = file_read(c1_path(name, "bare.json.zst"), &kept[i].len);
        }
        if (strcmp(kept[i].name, name) == 0) {
            *len = kept[i].len;
            return kept[i].bytes;
        }
    }
    ck_abort_msg("too many documents");
}

struct job_info js_find(struct job_store *js, const char *name)
{
    struct job_info info;
    int ret = jobs_find(js->jobs, name, &info);

    ck_assert_msg(ret == 0, "%s: %d", name, ret);
    return info;
}

enum job_state js_state(struct job_store *js, const char *name)
{
    struct job_info info;

    return jobs_find(js->jobs, name, &info) == 0 ? info.state : JOB_STATES;
}

struct upload *js_open(struct job_store *js, const char *name)
{
    struct upload_owner owner = {.uid = 1000, .gid = 1000, .mode = 0644};
    struct upload *u = NULL;
    struct job_info info;

    if (jobs_find(js->jobs, name, &info) < 0 || info.state == JOB_REJECTED)
        ck_assert_int_eq(jobs_create_file(js->jobs, name, &owner, &info), 0);
    ck_assert_int_eq(upload_open(js->jobs, info.id, &u), 0);
    return u;
}

void js_write(struct upload *u, const void *bytes, size_t len, uint64_t offset)
{
    ck_assert_int_eq(upload_write(u, bytes, len, offset), (ssize_t)len);
}

int js_copy(struct job_store *js, const char *name, const char *vector, size_t len)
{
    size_t whole;
    const uint8_t *bytes = document(vector, &whole);
    struct upload *u = js_open(js, name);

    ck_assert_int_eq(upload_truncate(u, 0), 0);
    js_write(u, bytes, min_size(whole, len), 0);
    int ret = upload_judge(u);
    upload_close(u, false);
    return ret;
}

uint64_t js_submit(struct job_store *js, const char *name, const char *vector)
{
    int ret = js_copy(js, name, vector, SIZE_MAX);

    ck_assert_msg(ret == 0, "%s as %s: %d", vector, name, ret);
    return js_find(js, name).id;
}

void js_fill_proof(uint8_t out[192], unsigned char seed, uint32_t partition)
{
    memset(out, seed, 192);
    out[0] = (uint8_t)partition;
}

struct partition_report js_report(void)
{
    return (struct partition_report){.node = 1,
                                     .device = "cpu",
                                     .params = SRS_DIGEST,
                                     .vk_digest = {1},
                                     .synthesis_ms = 1.5,
                                     .transform_ms = 2,
                                     .msm_ms = 3,
                                     .verify_ms = 4,
                                     .total_ms = 10.5,
                                     .params_ms = 100,
                                     .peak_bytes = 12345};
}

unsigned js_prove_all(struct job_store *js)
{
    struct partition_report report = js_report();
    struct partition_work work;
    uint8_t proof[192];
    unsigned n = 0;

    for (; jobs_take_partition(js->jobs, 1, &work) == 0; n++) {
        close(work.c1_fd);
        jobs_partition_stage(js->jobs, work.job, work.partition, PARTITION_SYNTHESIZING, 0);
        jobs_partition_stage(js->jobs, work.job, work.partition, PARTITION_PROVING, 0);
        js_fill_proof(proof, 7, work.partition);
        ck_assert_int_eq(jobs_partition_done(js->jobs, work.job, work.partition, proof, &report),
                         0);
    }
    return n;
}

void js_count_dirs(struct job_store *js, unsigned *jobs, unsigned *others)
{
    DIR *dir = opendir(js->dir);

    *jobs = *others = 0;
    ck_assert_ptr_nonnull(dir);
    for (struct dirent *e; (e = readdir(dir)) != NULL;) {
        bool is_job = strlen(e->d_name) == 16 && strspn(e->d_name, "0123456789abcdef") == 16;
        bool expected = e->d_name[0] == '.' || strcmp(e->d_name, "store") == 0;
        *jobs += is_job;
        *others += !is_job && !expected;
    }
    closedir(dir);
}

unsigned js_count_files(struct job_store *js, uint64_t id)
{
    char path[256];
    unsigned n = 0;

    snprintf(path, sizeof(path), "%s/%016" PRIx64, js->dir, id);
    DIR *dir = opendir(path);
    if (!dir)
        return 0;
    for (struct dirent *e; (e = readdir(dir)) != NULL;)
        n += e->d_name[0] != '.';
    closedir(dir);
    return n;
}
