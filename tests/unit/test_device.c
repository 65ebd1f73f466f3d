/*
 * The device against a kernel of our own: the protocol of /dev/cuse, spoken over a socket pair that keeps messages apart.
 * What a real kernel makes of it is tests/system/test_device.sh's business.
 */
#include "fuse/device.h"

#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "fuse/abi.h"
#include "fuse/records.h"
#include "tests/lib/job_store.h"
#include "tests/lib/suite.h"

#define ME 1000
#define OTHER 1001
#define ROOT 0
#define PIECE ((size_t)32 << 10)

static struct job_store *js;
static struct users *users;
static struct device *dev;
static int kernel = -1; /* our end */
static uint64_t last_unique;
static unsigned wakeups; /* poll notifications seen */
static uint64_t woken;   /* the handle of the last one */
static uid_t caller = ME;

/* ---- the kernel ---- */

struct answer {
    struct fuse_out_header head;
    uint8_t body[128 << 10];
};

static uint64_t ask(uint32_t opcode, const void *arg, size_t arg_len, const void *more,
                    size_t more_len)
{
    struct fuse_in_header head = {.len = (uint32_t)(sizeof(head) + arg_len + more_len),
                                  .opcode = opcode,
                                  .unique = last_unique += 2,
                                  .uid = caller,
                                  .gid = caller};
    struct iovec iov[] = {{&head, sizeof(head)}, {(void *)arg, arg_len}, {(void *)more, more_len}};

    ck_assert_int_eq(writev(kernel, iov, 3), head.len);
    return head.unique;
}

static bool message_comes(int timeout_ms)
{
    struct pollfd p = {kernel, POLLIN, 0};

    return poll(&p, 1, timeout_ms) == 1;
}

/* Notifications are noted on the way. False: nothing but these came in time. */
static bool next_answer(struct answer *out, int timeout_ms)
{
    while (message_comes(timeout_ms)) {
        ssize_t n = read(kernel, out, sizeof(*out));
        ck_assert_int_ge(n, sizeof(out->head));
        ck_assert_int_eq(n, out->head.len);
        if (out->head.unique != 0)
            return true;
        ck_assert_int_eq(out->head.error, FUSE_NOTIFY_POLL);
        woken = ((struct fuse_notify_poll_wakeup_out *)out->body)->kh;
        wakeups++;
    }
    return false;
}

/* The body's length, or a negative errno. */
static int answer_to(uint64_t unique, struct answer *out)
{
    ck_assert_msg(next_answer(out, 60000), "no answer");
    ck_assert_uint_eq(out->head.unique, unique);
    return out->head.error ? out->head.error : (int)(out->head.len - sizeof(out->head));
}

static struct answer reply;

static int call(uint32_t opcode, const void *arg, size_t arg_len, const void *more, size_t more_len)
{
    return answer_to(ask(opcode, arg, arg_len, more, more_len), &reply);
}

static uint64_t k_open(void)
{
    struct fuse_open_in in = {.flags = O_RDWR};

    ck_assert_int_eq(call(FUSE_OPEN, &in, sizeof(in), NULL, 0), sizeof(struct fuse_open_out));
    return ((struct fuse_open_out *)reply.body)->fh;
}

static void k_close(uint64_t fh)
{
    struct fuse_release_in in = {.fh = fh};

    ck_assert_int_eq(call(FUSE_RELEASE, &in, sizeof(in), NULL, 0), 0);
}

static uint64_t ask_read(uint64_t fh, size_t size, uint32_t flags)
{
    struct fuse_read_in in = {.fh = fh, .size = (uint32_t)size, .flags = flags};

    return ask(FUSE_READ, &in, sizeof(in), NULL, 0);
}

static int k_read(uint64_t fh, size_t size, uint32_t flags)
{
    return answer_to(ask_read(fh, size, flags), &reply);
}

static const struct proof_event *event(size_t i)
{
    return (const struct proof_event *)reply.body + i;
}

static uint64_t ask_write(uint64_t fh, const void *bytes, size_t len, uint32_t flags)
{
    struct fuse_write_in in = {.fh = fh, .size = (uint32_t)len, .flags = flags};

    return ask(FUSE_WRITE, &in, sizeof(in), bytes, len);
}

static int k_write(uint64_t fh, const void *bytes, size_t len, uint32_t flags)
{
    int ret = answer_to(ask_write(fh, bytes, len, flags), &reply);

    return ret < 0 ? ret : (int)((struct fuse_write_out *)reply.body)->size;
}

static uint64_t ask_ioctl(uint64_t fh, unsigned cmd, const void *arg)
{
    unsigned bytes = _IOC_SIZE(cmd);
    struct fuse_ioctl_in in = {.fh = fh,
                               .cmd = cmd,
                               .in_size = _IOC_DIR(cmd) & _IOC_WRITE ? bytes : 0,
                               .out_size = _IOC_DIR(cmd) & _IOC_READ ? bytes : 0};

    return ask(FUSE_IOCTL, &in, sizeof(in), arg, in.in_size);
}

/* What an ioctl answers, checked for the size that the kernel copies. */
static int ioctl_result(unsigned cmd, int ret, void *out)
{
    int bytes = _IOC_DIR(cmd) & _IOC_READ ? _IOC_SIZE(cmd) : 0;

    if (ret < 0)
        return ret;
    ck_assert_int_ge(ret, (int)sizeof(struct fuse_ioctl_out)); /* or the kernel refuses it */
    ck_assert_int_eq(((struct fuse_ioctl_out *)reply.body)->result, 0);
    ck_assert_int_eq(ret - (int)sizeof(struct fuse_ioctl_out), bytes);
    memcpy(out, reply.body + sizeof(struct fuse_ioctl_out), (size_t)bytes);
    return 0;
}

static int k_ioctl(uint64_t fh, unsigned cmd, void *arg)
{
    return ioctl_result(cmd, answer_to(ask_ioctl(fh, cmd, arg), &reply), arg);
}

static unsigned k_poll(uint64_t fh, uint64_t handle)
{
    struct fuse_poll_in in = {.fh = fh, .kh = handle, .flags = FUSE_POLL_SCHEDULE_NOTIFY};

    ck_assert_int_eq(call(FUSE_POLL, &in, sizeof(in), NULL, 0), sizeof(struct fuse_poll_out));
    return ((struct fuse_poll_out *)reply.body)->revents;
}

static void k_interrupt(uint64_t unique)
{
    struct fuse_interrupt_in in = {.unique = unique};

    ask(FUSE_INTERRUPT, &in, sizeof(in), NULL, 0);
}

/* ---- life ---- */

static void on_changed(void *ctx, const struct job_info *info, enum job_state was, bool gone)
{
    (void)ctx;
    device_job_changed(dev, info, was, gone);
}

static int make_device(int fd, struct errmsg *err)
{
    const struct device_options opt = {.name = "proof-test",
                                       .fd = fd,
                                       .jobs = js->jobs,
                                       .users = users,
                                       .max_unfinished = js->opt.max_unfinished};

    return device_create(&opt, &dev, err);
}

static void begin(uint32_t max_unfinished)
{
    const struct cuse_init_in in = {
        .major = FUSE_KERNEL_VERSION, .minor = 38, .flags = CUSE_UNRESTRICTED_IOCTL};
    int fds[2];

    js = job_store_create();
    js->opt.changed = on_changed;
    js->opt.max_unfinished = max_unfinished;
    job_store_reopen(js);
    ck_assert_int_eq(users_create(&users), 0);
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds), 0);
    kernel = fds[0];
    ck_assert_int_eq(make_device(fds[1], NULL), 0);
    uint64_t init = ask(CUSE_INIT, &in, sizeof(in), NULL, 0);
    ck_assert_int_eq(device_start(dev, NULL), 0);
    ck_assert_int_gt(answer_to(init, &reply), (int)sizeof(struct cuse_init_out));
}

static void set_up(void)
{
    begin(0);
}

static void tear_down(void)
{
    device_stop(dev);
    struct device *old = dev;
    dev = NULL;
    device_destroy(old);
    close(kernel);
    users_destroy(users);
    job_store_destroy(js);
}

/* ---- what tests say ---- */

static int write_document(uint64_t fh, const char *vector, size_t max)
{
    size_t len, n;
    const uint8_t *text = document(vector, &len);

    len = min_size(len, max);
    for (size_t at = 0; at < len; at += n) {
        n = min_size(len - at, PIECE);
        int ret = k_write(fh, text + at, n, 0);
        if (ret < 0)
            return ret;
        ck_assert_int_eq(ret, n);
    }
    return 0;
}

static int give_name(uint64_t fh, const char *text)
{
    struct proof_name name = {""};

    snprintf(name.name, sizeof(name.name), "%s", text);
    return k_ioctl(fh, PROOF_IOC_NAME, &name);
}

static uint64_t submit(uint64_t fh, const char *name, const char *vector)
{
    struct proof_status s;

    ck_assert_int_eq(give_name(fh, name), 0);
    ck_assert_int_eq(write_document(fh, vector, SIZE_MAX), 0);
    ck_assert_int_eq(k_ioctl(fh, PROOF_IOC_SUBMIT, &s), 0);
    ck_assert_str_eq(s.name, name);
    ck_assert_uint_eq(s.state, PROOF_QUEUED);
    return s.job;
}

static enum job_state state_in_time(const char *name, enum job_state wanted)
{
    for (int i = 0; i < 6000 && js_state(js, name) != wanted; i++)
        usleep(10000);
    return js_state(js, name);
}

/* As soon as so many writes wait for a place. */
static void until_waiting(uint64_t writes)
{
    for (int i = 0; i < 6000 && users_has(users, ME, USER_WAITING) != writes; i++)
        usleep(10000);
    ck_assert_uint_eq(users_has(users, ME, USER_WAITING), writes);
}

static unsigned in_table(void)
{
    struct job_info list[8];

    return (unsigned)jobs_list(js->jobs, 0, list, ARRAY_LEN(list));
}

/* ---- tests ---- */

START_TEST(device__asks_for_restricted_ioctls_and_its_name)
{
    const struct cuse_init_out *out = (struct cuse_init_out *)reply.body; /* of begin() */

    ck_assert_uint_eq(out->flags, 0);
    ck_assert_uint_ge(out->max_write, 64 << 10);
    ck_assert_str_eq((const char *)(out + 1), "DEVNAME=proof-test");
}
END_TEST

START_TEST(device__says_its_version)
{
    struct proof_version v;
    uint64_t fh = k_open();

    ck_assert_int_eq(k_ioctl(fh, PROOF_IOC_VERSION, &v), 0);
    ck_assert_uint_eq(v.abi, PROOF_ABI_VERSION);
    ck_assert_uint_eq(v.event_bytes, sizeof(struct proof_event));
    ck_assert_uint_eq(v.events_kept, RECORDS_KEPT);
    ck_assert_int_eq(k_ioctl(fh, _IO('T', 1), NULL), -ENOTTY);
    ck_assert_int_eq(k_ioctl(fh, _IOR(PROOF_IOC_MAGIC, 0, uint32_t), NULL),
                     -ENOTTY); /* another size */
}
END_TEST

START_TEST(read__gives_whole_records_to_each_opener)
{
    uint64_t a = k_open(), b = k_open();

    ck_assert_int_eq(k_read(a, 4096, O_NONBLOCK), -EAGAIN);
    ck_assert_int_eq(k_read(a, sizeof(struct proof_event) - 1, 0), -EINVAL);
    device_event(dev, "one");
    device_event(dev, "two");
    ck_assert_int_eq(k_read(a, sizeof(struct proof_event) * 2 - 1, 0), sizeof(struct proof_event));
    ck_assert_str_eq(event(0)->name, "one");
    ck_assert_uint_eq(event(0)->seq, 1);
    ck_assert_int_eq(k_read(a, 4096, 0), sizeof(struct proof_event));
    ck_assert_str_eq(event(0)->name, "two");
    ck_assert_int_eq(k_read(b, 4096, 0), sizeof(struct proof_event) * 2);
    ck_assert_uint_eq(event(1)->seq, 2);
    ck_assert_uint_eq(event(1)->lost, 0);
    uint64_t late = k_open(); /* begins at the present */
    ck_assert_int_eq(k_read(late, 4096, O_NONBLOCK), -EAGAIN);
}
END_TEST

START_TEST(read__counts_what_it_was_too_slow_for)
{
    uint64_t fh = k_open(), next = 11;
    int n;

    for (int i = 0; i < RECORDS_KEPT + 10; i++)
        device_event(dev, "x");
    while ((n = k_read(fh, 64 << 10, O_NONBLOCK)) > 0)
        for (size_t i = 0; i < (size_t)n / sizeof(struct proof_event); i++, next++) {
            ck_assert_uint_eq(event(i)->seq, next);
            ck_assert_uint_eq(event(i)->lost, next == 11 ? 10 : 0);
        }
    ck_assert_int_eq(n, -EAGAIN);
    ck_assert_uint_eq(next, RECORDS_KEPT + 11);
}
END_TEST

START_TEST(read__waits_for_a_record_or_an_interrupt)
{
    uint64_t a = k_open(), b = k_open();
    uint64_t ra = ask_read(a, 4096, 0), rb = ask_read(b, 4096, 0);

    ck_assert(!message_comes(50));
    k_interrupt(ra);
    ck_assert_int_eq(answer_to(ra, &reply), -EINTR);
    device_event(dev, "now");
    ck_assert_int_eq(answer_to(rb, &reply), sizeof(struct proof_event));
    ck_assert_int_eq(k_read(a, 4096, 0), sizeof(struct proof_event)); /* nothing was lost */
}
END_TEST

START_TEST(poll__tells_the_newest_handle)
{
    uint64_t fh = k_open();

    ck_assert_uint_eq(k_poll(fh, 1) & POLLIN, 0);
    ck_assert_uint_eq(k_poll(fh, 2) & (POLLIN | POLLOUT), POLLOUT);
    device_event(dev, "x");
    ck_assert_uint_eq(k_poll(fh, 3) & POLLIN, POLLIN);
    ck_assert_uint_eq(wakeups, 1);
    ck_assert_uint_eq(woken, 2);
}
END_TEST

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
/* Sanitizers have heaps of their own; a handle that is forgotten is a leak to them. */
static long resident_kib(void)
{
    return 0;
}
#else
static long resident_kib(void)
{
    long pages = 0, resident = 0;
    FILE *f = fopen("/proc/self/statm", "re");

    ck_assert(f && fscanf(f, "%ld %ld", &pages, &resident) == 2);
    fclose(f);
    return resident * (sysconf(_SC_PAGESIZE) / 1024);
}
#endif

START_TEST(poll__takes_no_memory)
{
    uint64_t fh = k_open();

    for (uint64_t i = 0; i < 1000; i++)
        k_poll(fh, i);
    long before = resident_kib();
    for (uint64_t i = 0; i < 40000; i++)
        k_poll(fh, i);
    ck_assert_int_le(resident_kib(), before + 256); /* a handle kept for each would be 1280 KB */
}
END_TEST

START_TEST(submit__makes_a_job_that_is_on_disk)
{
    uint64_t fh = k_open();
    struct proof_status s = {0};

    caller = OTHER; /* whoever names it owns it */
    uint64_t job = submit(fh, "mine", "2KiB-sealed");
    struct job_info info = js_find(js, "mine");
    ck_assert_uint_eq(info.id, job);
    ck_assert_uint_eq(info.uid, OTHER);
    ck_assert_int_eq(info.state, JOB_QUEUED);
    ck_assert_int_eq(k_ioctl(fh, PROOF_IOC_STATUS, &s), 0); /* the last one of this descriptor */
    ck_assert_uint_eq(s.job, job);
    ck_assert_uint_eq(s.partitions, 1);
    snprintf(s.name, sizeof(s.name), "mine");
    s.job = 0;
    uint64_t fh2 = k_open();
    ck_assert_int_eq(k_ioctl(fh2, PROOF_IOC_STATUS, &s), 0); /* by name */
    ck_assert_uint_eq(s.job, job);
    ck_assert_uint_ne(submit(fh, "again", "2KiB-v1"), job); /* one descriptor, another document */
    ck_assert_int_eq(k_ioctl(fh2, PROOF_IOC_SUBMIT, &s), -ENODATA);
    caller = ME;
}
END_TEST

START_TEST(close__submits_under_a_number)
{
    uint64_t a = k_open(), b = k_open();

    js_submit(js, "device-1", "2KiB-v1"); /* taken */
    ck_assert_int_eq(write_document(a, "2KiB-sealed", SIZE_MAX), 0);
    ck_assert_int_eq(write_document(b, "2KiB-sparse", SIZE_MAX), 0);
    k_close(a);
    k_close(b);
    ck_assert_int_eq(state_in_time("device-2", JOB_QUEUED), JOB_QUEUED);
    ck_assert_int_eq(state_in_time("device-3", JOB_QUEUED), JOB_QUEUED);
}
END_TEST

START_TEST(close__of_half_a_document_makes_no_job)
{
    uint64_t fh = k_open(), nothing = k_open(), named = k_open();

    ck_assert_int_eq(write_document(fh, "2KiB-sealed", 5000), 0);
    ck_assert_int_eq(give_name(named, "only-a-name"), 0);
    ck_assert_uint_eq(in_table(), 2);
    k_close(nothing);
    k_close(named);
    k_close(fh);
    ck_assert_int_eq(state_in_time("device-1", JOB_REJECTED), JOB_REJECTED);
    ck_assert_int_eq(state_in_time("only-a-name", JOB_STATES), JOB_STATES);
    ck_assert_uint_eq(in_table(), 1);
}
END_TEST

START_TEST(submit__says_what_is_wrong)
{
    uint64_t fh = k_open();
    struct proof_status s = {0};

    ck_assert_int_eq(give_name(fh, "bad"), 0);
    ck_assert_int_eq(write_document(fh, "2KiB-sealed", 5000), 0);
    ck_assert_int_eq(k_ioctl(fh, PROOF_IOC_SUBMIT, &s), -EBADMSG);
    memset(&s, 0, sizeof(s));
    ck_assert_int_eq(k_ioctl(fh, PROOF_IOC_STATUS, &s), 0);
    ck_assert_uint_eq(s.state, PROOF_REFUSED);
    ck_assert_str_eq(s.name, "bad");
    ck_assert_uint_gt(strlen(s.text), 10);
    ck_assert_int_eq(k_write(fh, "%rubbish", 8, 0), -EBADMSG); /* can never become one */
}
END_TEST

START_TEST(name__refuses_what_the_mount_refuses)
{
    uint64_t fh = k_open();
    struct proof_name endless;

    js_submit(js, "there", "2KiB-v1");
    ck_assert_int_eq(give_name(fh, "there"), -EEXIST);
    ck_assert_int_eq(give_name(fh, "x.proof"), -EINVAL);
    ck_assert_int_eq(give_name(fh, ".hidden"), -EINVAL);
    ck_assert_int_eq(give_name(fh, "a/b"), -EINVAL);
    ck_assert_int_eq(give_name(fh, ""), -EINVAL);
    memset(&endless, 'x',
           sizeof(endless)); /* as long as a name can be, if the last byte is the NUL */
    ck_assert_int_eq(k_ioctl(fh, PROOF_IOC_NAME, &endless), -ENAMETOOLONG);
    ck_assert_int_eq(give_name(fh, "good"), 0);
    ck_assert_int_eq(give_name(fh, "twice"), -EBUSY);
}
END_TEST

START_TEST(wait__is_answered_at_the_end)
{
    uint64_t a = k_open(), b = k_open();
    uint64_t job = submit(a, "w", "2KiB-sealed");
    struct proof_status s = {.job = job};
    struct proof_data d = {.job = job};

    ck_assert_int_eq(k_ioctl(b, PROOF_IOC_PROOF, &d), -ENODATA);
    uint64_t first = ask_ioctl(b, PROOF_IOC_WAIT, &s), second = ask_ioctl(b, PROOF_IOC_WAIT, &s);
    ck_assert(!message_comes(50));
    k_interrupt(first);
    ck_assert_int_eq(answer_to(first, &reply), -EINTR);
    ck_assert_uint_eq(js_prove_all(js), 1);
    ck_assert_int_eq(ioctl_result(PROOF_IOC_WAIT, answer_to(second, &reply), &s), 0);
    ck_assert_uint_eq(s.state, PROOF_DONE);
    ck_assert_uint_eq(s.partitions_done, 1);
    ck_assert_int_eq(k_ioctl(a, PROOF_IOC_WAIT, &s), 0); /* at once */

    ck_assert_int_eq(k_ioctl(b, PROOF_IOC_PROOF, &d), 0);
    uint8_t *proof;
    size_t len;
    ck_assert_int_eq(jobs_proof(js->jobs, job, &proof, &len), 0);
    ck_assert_uint_eq(d.total, len);
    ck_assert_uint_eq(d.len, 192);
    ck_assert_mem_eq(d.data, proof, 192);
    free(proof);
    d = (struct proof_data){.job = job, .offset = 190};
    ck_assert_int_eq(k_ioctl(b, PROOF_IOC_PROOF, &d), 0);
    ck_assert_uint_eq(d.len, 2);
    d.offset = UINT64_MAX;
    ck_assert_int_eq(k_ioctl(b, PROOF_IOC_PROOF, &d), 0);
    ck_assert_uint_eq(d.len, 0);
    s.job = 12345;
    ck_assert_int_eq(k_ioctl(b, PROOF_IOC_WAIT, &s), -ENOENT);
}
END_TEST

START_TEST(cancel__is_for_the_owner)
{
    uint64_t fh = k_open();
    uint64_t job = submit(fh, "c", "2KiB-sealed");
    struct proof_job which = {job};
    struct proof_data d = {.job = job};

    caller = OTHER;
    ck_assert_int_eq(k_ioctl(fh, PROOF_IOC_CANCEL, &which), -EPERM);
    ck_assert_int_eq(k_ioctl(fh, PROOF_IOC_PROOF, &d), -EACCES);
    caller = ME;
    jobs_remove(js->jobs, job);
    ck_assert_int_eq(k_ioctl(fh, PROOF_IOC_CANCEL, &which), -ENOENT);
    which.job = submit(fh, "c2", "2KiB-sealed");
    ck_assert_int_eq(k_ioctl(fh, PROOF_IOC_CANCEL, &which), 0);
    which.job = submit(fh, "c3", "2KiB-sealed");
    caller = ROOT;
    ck_assert_int_eq(k_ioctl(fh, PROOF_IOC_CANCEL, &which), 0);
    caller = ME;
}
END_TEST

/* What rm does ends a wait; to a wait that comes after it, as on a busy machine, there is no such job. */
START_TEST(wait__ends_with_the_job)
{
    uint64_t fh = k_open();
    struct proof_status s = {0};
    int ret = -ENOENT;

    for (int i = 0; i < 100 && ret == -ENOENT; i++) {
        s = (struct proof_status){.job = submit(fh, "gone", "2KiB-sealed")};
        uint64_t waits = ask_ioctl(fh, PROOF_IOC_WAIT, &s);
        message_comes(5 * i);
        jobs_remove(js->jobs, s.job);
        ret = ioctl_result(PROOF_IOC_WAIT, answer_to(waits, &reply), &s);
    }
    ck_assert_int_eq(ret, 0);
    ck_assert_uint_eq(s.state, PROOF_CANCELLED);
}
END_TEST

START_TEST(events__follow_a_job)
{
    static const uint32_t wanted[] = {PROOF_RECEIVING, PROOF_QUEUED, PROOF_DONE, PROOF_REMOVED};
    uint64_t fh = k_open(), reader = k_open(), job = submit(fh, "e", "2KiB-sealed");
    size_t seen = 0;

    js_prove_all(js);
    jobs_remove(js->jobs, job);
    int n = k_read(reader, 64 << 10, 0);
    for (int i = 0; i < n / (int)sizeof(struct proof_event); i++) {
        ck_assert_uint_eq(event((size_t)i)->job, job);
        ck_assert_str_eq(event((size_t)i)->name, "e");
        seen += seen < ARRAY_LEN(wanted) && event((size_t)i)->state == wanted[seen];
    }
    /* A file that is created may be told with its first change. */
    if (seen == 0)
        for (int i = 0; i < n / (int)sizeof(struct proof_event); i++)
            seen += event((size_t)i)->state == wanted[seen + 1];
    ck_assert_uint_ge(seen, ARRAY_LEN(wanted) - 1);
}
END_TEST

START_TEST(write__waits_while_the_queue_is_full)
{
    size_t len;
    const uint8_t *text = document("2KiB-v1", &len);

    tear_down();
    begin(1);
    uint64_t a = k_open(), b = k_open(), c = k_open();
    uint64_t job = submit(a, "full", "2KiB-sealed");
    ck_assert_int_eq(k_write(b, text, 1000, O_NONBLOCK), -EAGAIN);
    uint64_t wb = ask_write(b, text, 1000, 0);
    ck_assert(!message_comes(50));
    k_interrupt(wb);
    ck_assert_int_eq(answer_to(wb, &reply), -EINTR);
    wb = ask_write(b, text, 1000, 0);
    until_waiting(1);
    uint64_t wc = ask_write(c, text, 1000, 0);
    until_waiting(2);
    jobs_remove(js->jobs, job);
    ck_assert_int_eq(answer_to(wb, &reply),
                     sizeof(struct fuse_write_out)); /* first come, first served */
    ck_assert_uint_eq(((struct fuse_write_out *)reply.body)->size, 1000);
    ck_assert(!message_comes(50));
    uint64_t closed = ask(FUSE_RELEASE, &(struct fuse_release_in){.fh = b},
                          sizeof(struct fuse_release_in), NULL, 0);
    bool released = false, written = false;
    while (!released || !written) {
        ck_assert(next_answer(&reply, 60000));
        released |= reply.head.unique == closed;
        written |= reply.head.unique == wc && reply.head.error == 0;
    }
}
END_TEST

START_TEST(device_set_max_unfinished__counts_from_then_on)
{
    size_t len;
    const uint8_t *text = document("2KiB-v1", &len);

    tear_down();
    begin(4);
    uint64_t a = k_open(), b = k_open(), c = k_open();
    ck_assert_int_eq(k_write(a, text, 1000, O_NONBLOCK), 1000);
    device_set_max_unfinished(dev, 2); /* one is a user's half */
    ck_assert_int_eq(k_write(b, text, 1000, O_NONBLOCK), -EAGAIN);
    uint64_t wc = ask_write(c, text, 1000, 0);
    until_waiting(1);
    device_set_max_unfinished(dev, 4);
    ck_assert_int_eq(answer_to(wc, &reply), sizeof(struct fuse_write_out));
    device_set_max_unfinished(NULL, 1);
}
END_TEST

START_TEST(stop__answers_everybody)
{
    tear_down();
    begin(1);
    uint64_t a = k_open(), b = k_open();
    struct proof_status s = {.job = submit(a, "stays", "2KiB-sealed")};
    ck_assert_int_gt(k_read(b, 64 << 10, 0), 0);
    uint64_t waits = ask_ioctl(a, PROOF_IOC_WAIT, &s), reads = ask_read(b, 4096, 0);
    uint64_t writes = ask_write(b, "{", 1, 0);
    unsigned good = 0;

    until_waiting(1); /* so the others have been read as well */
    device_stop(dev);
    for (int i = 0; i < 3; i++) {
        ck_assert(next_answer(&reply, 60000));
        good += reply.head.unique == waits && reply.head.error == -ECANCELED;
        good += reply.head.unique == writes && reply.head.error == -ECANCELED;
        good += reply.head.unique == reads && reply.head.error == 0 &&
                reply.head.len == sizeof(reply.head);
    }
    ck_assert_uint_eq(good, 3);
    ck_assert_int_eq(js_state(js, "stays"), JOB_QUEUED);
    char byte;
    ck_assert_int_eq(read(kernel, &byte, 1), 0); /* the device is gone */
}
END_TEST

START_TEST(start__fails_when_the_kernel_refuses)
{
    struct errmsg err = {""};
    int fds[2];

    device_stop(dev);
    device_destroy(dev);
    dev = NULL;
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds), 0);
    ck_assert_int_eq(make_device(fds[0], &err), 0);
    close(fds[1]);
    ck_assert_int_eq(device_start(dev, &err), -EBUSY);
    ck_assert_ptr_nonnull(strstr(err.text, "/dev/proof-test"));
}
END_TEST

int main(void)
{
    Suite *s = suite_create("device");
    TCase *t = tcase_create("device");

    tcase_add_checked_fixture(t, set_up, tear_down);
    tcase_set_timeout(t, 300);
    tcase_add_test(t, device__asks_for_restricted_ioctls_and_its_name);
    tcase_add_test(t, device__says_its_version);
    tcase_add_test(t, read__gives_whole_records_to_each_opener);
    tcase_add_test(t, read__counts_what_it_was_too_slow_for);
    tcase_add_test(t, read__waits_for_a_record_or_an_interrupt);
    tcase_add_test(t, poll__tells_the_newest_handle);
    tcase_add_test(t, poll__takes_no_memory);
    tcase_add_test(t, submit__makes_a_job_that_is_on_disk);
    tcase_add_test(t, close__submits_under_a_number);
    tcase_add_test(t, close__of_half_a_document_makes_no_job);
    tcase_add_test(t, submit__says_what_is_wrong);
    tcase_add_test(t, name__refuses_what_the_mount_refuses);
    tcase_add_test(t, wait__is_answered_at_the_end);
    tcase_add_test(t, wait__ends_with_the_job);
    tcase_add_test(t, cancel__is_for_the_owner);
    tcase_add_test(t, events__follow_a_job);
    tcase_add_test(t, write__waits_while_the_queue_is_full);
    tcase_add_test(t, device_set_max_unfinished__counts_from_then_on);
    tcase_add_test(t, stop__answers_everybody);
    tcase_add_test(t, start__fails_when_the_kernel_refuses);
    suite_add_tcase(s, t);
    return suite_run(s);
}
