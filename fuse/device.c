/*
 * The CUSE session, and the operations that look at the job table. libfuse's cuse_lowlevel_setup would fork and take the
 * signals, so only its protocol is used: a session, on a descriptor that was opened here. The device is there from the
 * answer to the kernel's first request on, until that descriptor is closed; the kernel then takes the node away and wakes
 * whoever still has it open. Ioctls are restricted ones: sizes come from their numbers, and the kernel copies.
 */
#include "fuse/device.h"

#include <cuse_lowlevel.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "daemon/version.h"
#include "fuse/abi.h"
#include "fuse/device_file.h"
#include "fuse/handle.h"
#include "fuse/parked.h"

#define THREADS 2
#define START_S 10
#define TICK_MS 1000

struct device {
    char name[DEVICE_NAME_MAX + 1];
    struct jobs *jobs;
    void (*lost)(void *ctx);
    void *ctx;
    struct records *records;
    struct device_files *files;
    struct parked_list waits; /* struct parked; key: the job */
    struct fuse_session *session;
    int stop_fd;
    unsigned threads_len;
    pthread_t threads[THREADS];

    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool ready, ended, stopping; /* guarded by lock */
};

static struct device *device_of(fuse_req_t req)
{
    return fuse_req_userdata(req);
}

static struct device_file *file_of(const struct fuse_file_info *fi)
{
    return (struct device_file *)handle_of(fi);
}

/* ---- open, read, write, poll ---- */

static void op_init(void *userdata, struct fuse_conn_info *conn)
{
    (void)userdata;
    conn->max_write = DEVICE_WRITE_MAX;
}

static void op_init_done(void *userdata)
{
    struct device *dev = userdata;
    struct pollfd fd = {.fd = fuse_session_fd(dev->session), .events = POLLIN};

    /* The answer has been written. A kernel that could not make the device, as when there is one of that name, has broken
     * the connection before that returned. */
    if (poll(&fd, 1, 0) == 1 && fd.revents & (POLLERR | POLLHUP))
        return;
    pthread_mutex_lock(&dev->lock);
    dev->ready = true;
    pthread_cond_broadcast(&dev->changed);
    pthread_mutex_unlock(&dev->lock);
}

static void op_open(fuse_req_t req, struct fuse_file_info *fi)
{
    struct device *dev = device_of(req);
    struct readers *readers = records_readers(dev->records);
    struct reader *reader = readers_open(readers);
    struct device_file *f = NULL;
    int ret = reader ? device_file_open(dev->files, fuse_req_ctx(req)->uid, reader, &f) : -ENOMEM;

    if (ret < 0) {
        if (reader)
            readers_close(readers, reader);
        fuse_reply_err(req, -ret);
        return;
    }
    fi->fh = (uintptr_t)f;
    fi->nonseekable = 1;
    if (fuse_reply_open(req, fi) < 0) { /* whoever opened it has gone */
        readers_close(readers, reader);
        device_file_release(f);
    }
}

static void op_read(fuse_req_t req, size_t size, off_t offset, struct fuse_file_info *fi)
{
    (void)offset;
    readers_read(records_readers(device_of(req)->records), device_file_reader(file_of(fi)), req, size,
                 fi->flags & O_NONBLOCK);
}

/* The kernel's offset is none: a device is written as a stream. */
static void op_write(fuse_req_t req, const char *buf, size_t size, off_t offset,
                     struct fuse_file_info *fi)
{
    (void)offset;
    device_file_write(file_of(fi), req, buf, size, fi->flags & O_NONBLOCK);
}

static void op_release(fuse_req_t req, struct fuse_file_info *fi)
{
    struct device_file *f = file_of(fi);

    readers_close(records_readers(device_of(req)->records), device_file_reader(f));
    device_file_release(f);
    fuse_reply_err(req, 0);
}

static void op_poll(fuse_req_t req, struct fuse_file_info *fi, struct fuse_pollhandle *ph)
{
    unsigned events =
        readers_poll(records_readers(device_of(req)->records), device_file_reader(file_of(fi)), ph);

    fuse_reply_poll(req, events | POLLOUT | POLLWRNORM);
}

/* ---- looking at jobs ---- */

static bool is_over(const struct job_info *info)
{
    return job_state_is_final(info->state);
}

static void fill_status(struct jobs *jobs, const struct job_info *info, struct proof_status *out)
{
    char *text = NULL;

    *out = (struct proof_status){
        .job = info->id,
        .state = records_state(info->state),
        .priority = info->priority,
        .partitions = info->partitions,
        .partitions_done = info->partitions_done,
        .node = info->node,
        .flags = info->insecure ? PROOF_INSECURE : 0,
        .uid = info->uid,
        .gid = info->gid,
        .file_bytes = info->file_bytes,
        .created_ns = info->created_ns,
        .accepted_ns = info->accepted_ns,
        .started_ns = info->started_ns,
        .ended_ns = info->ended_ns,
    };
    memcpy(out->name, info->name, sizeof(info->name));
    if (info->has_error && jobs_error(jobs, info->id, &text) == 0)
        memcpy(out->text, text, min_size(strcspn(text, "\n"), sizeof(out->text) - 1));
    free(text);
}

static void answer_status(struct jobs *jobs, fuse_req_t req, const struct job_info *info)
{
    struct proof_status status;

    fill_status(jobs, info, &status);
    fuse_reply_ioctl(req, 0, &status, sizeof(status));
}

/* Who may read a job's C1 may read its proof, as in the mount. Of a caller's groups only the first is looked at. */
static bool may_read(fuse_req_t req, const struct job_info *info)
{
    const struct fuse_ctx *who = fuse_req_ctx(req);

    if (who->uid == 0)
        return true;
    if (who->uid == info->uid)
        return info->mode & 0400;
    return info->mode & (who->gid == info->gid ? 0040 : 0004);
}

static int find(fuse_req_t req, const struct device_file *f, const struct proof_status *which,
                struct job_info *out)
{
    struct jobs *jobs = device_of(req)->jobs;
    char name[PROOF_NAME_BYTES + 1] = "";
    uint64_t job = which->job;

    if (job == 0 && which->name[0]) {
        memcpy(name, which->name, PROOF_NAME_BYTES);
        return jobs_find(jobs, name, out);
    }
    return jobs_get(jobs, job ? job : device_file_job(f), out);
}

static void do_status(fuse_req_t req, struct device_file *f, const struct proof_status *which)
{
    struct job_info info;
    int ret = find(req, f, which, &info);

    if (ret < 0)
        fuse_reply_err(req, -ret);
    else
        answer_status(device_of(req)->jobs, req, &info);
}

static void wait_interrupted(struct parked *p)
{
    fuse_reply_err(p->req, EINTR);
    free(p);
}

static bool is_for_job(void *ctx, const struct parked *p)
{
    return p->key == *(const uint64_t *)ctx;
}

static void answer_waits(struct device *dev, const struct job_info *info)
{
    uint64_t job = info->id;
    struct parked *p;

    while ((p = parked_take(&dev->waits, is_for_job, &job)) != NULL) {
        answer_status(dev->jobs, p->req, info);
        free(p);
    }
}

static void cancel_waits(struct device *dev)
{
    struct parked *p;

    while ((p = parked_take(&dev->waits, NULL, NULL)) != NULL) {
        fuse_reply_err(p->req, ECANCELED);
        free(p);
    }
}

/* It may have ended, or the device, since it was looked at. */
static void look_again(struct device *dev, struct job_info *info)
{
    pthread_mutex_lock(&dev->lock);
    bool stopping = dev->stopping;
    pthread_mutex_unlock(&dev->lock);
    if (stopping) {
        cancel_waits(dev);
        return;
    }
    if (jobs_get(dev->jobs, info->id, info) < 0)
        info->state = JOB_CANCELLED;
    if (is_over(info))
        answer_waits(dev, info);
}

static void do_wait(fuse_req_t req, struct device_file *f, const struct proof_status *which)
{
    struct device *dev = device_of(req);
    struct job_info info;
    int ret = find(req, f, which, &info);

    if (ret < 0) {
        fuse_reply_err(req, -ret);
        return;
    }
    if (is_over(&info)) {
        answer_status(dev->jobs, req, &info);
        return;
    }
    struct parked *p = calloc(1, sizeof(*p));
    if (!p) {
        fuse_reply_err(req, ENOMEM);
        return;
    }
    *p = (struct parked){.req = req, .key = info.id};
    parked_add(&dev->waits, p);
    look_again(dev, &info);
}

static void do_cancel(fuse_req_t req, struct device_file *f, const struct proof_job *which)
{
    struct jobs *jobs = device_of(req)->jobs;
    uid_t user = fuse_req_ctx(req)->uid;
    struct job_info info;
    int ret = jobs_get(jobs, which->job ? which->job : device_file_job(f), &info);

    if (ret == 0 && user != 0 && user != info.uid)
        ret = -EPERM;
    if (ret == 0)
        ret = jobs_remove(jobs, info.id);
    if (ret < 0)
        fuse_reply_err(req, -ret);
    else
        fuse_reply_ioctl(req, 0, NULL, 0);
}

static int read_proof(fuse_req_t req, uint64_t job, struct proof_data *out)
{
    struct jobs *jobs = device_of(req)->jobs;
    struct job_info info;
    uint8_t *bytes = NULL;
    size_t len = 0;
    int ret = jobs_get(jobs, job, &info);

    if (ret == 0 && !may_read(req, &info))
        ret = -EACCES;
    if (ret == 0)
        ret = jobs_proof(jobs, job, &bytes, &len);
    if (ret < 0)
        return ret == -ENOENT && info.id == job ? -ENODATA : ret;
    out->job = job;
    out->total = (uint32_t)len;
    out->len = out->offset < len ? (uint32_t)min_size(len - out->offset, sizeof(out->data)) : 0;
    if (out->len)
        memcpy(out->data, bytes + out->offset, out->len);
    free(bytes);
    return 0;
}

static void do_proof(fuse_req_t req, struct device_file *f, const struct proof_data *which)
{
    struct proof_data out = {.offset = which->offset};
    int ret = read_proof(req, which->job ? which->job : device_file_job(f), &out);

    if (ret < 0)
        fuse_reply_err(req, -ret);
    else
        fuse_reply_ioctl(req, 0, &out, sizeof(out));
}

static void do_version(fuse_req_t req)
{
    const struct proof_version version = {.abi = PROOF_ABI_VERSION,
                                          .event_bytes = sizeof(struct proof_event),
                                          .events_kept = RECORDS_KEPT,
                                          .service = PROOFD_VERSION};

    fuse_reply_ioctl(req, 0, &version, sizeof(version));
}

static void answer_submit(struct device_files *files, fuse_req_t req, uint64_t job, int error)
{
    struct jobs *jobs = device_files_jobs(files);
    struct job_info info;

    if (error) {
        fuse_reply_err(req, error);
        return;
    }
    int ret = jobs_get(jobs, job, &info);
    if (ret < 0)
        fuse_reply_err(req, -ret);
    else
        answer_status(jobs, req, &info);
}

/* The kernel has copied as many bytes as the number says; a number that is none of ours gets no further. */
static void op_ioctl(fuse_req_t req, int cmd, void *arg, struct fuse_file_info *fi, unsigned flags,
                     const void *in, size_t in_bytes, size_t out_bytes)
{
    struct device_file *f = file_of(fi);
    union {
        struct proof_status status;
        struct proof_job job;
        struct proof_data data;
        struct proof_name name;
    } u;

    (void)arg, (void)flags, (void)out_bytes;
    memset(&u, 0, sizeof(u));
    if (in_bytes)
        memcpy(&u, in, min_size(in_bytes, sizeof(u)));
    switch ((unsigned)cmd) {
    case PROOF_IOC_VERSION:
        do_version(req);
        break;
    case PROOF_IOC_NAME:
        u.name.name[PROOF_NAME_BYTES - 1] = '\0';
        device_file_name(f, req, u.name.name);
        break;
    case PROOF_IOC_SUBMIT:
        device_file_submit(f, req, answer_submit);
        break;
    case PROOF_IOC_STATUS:
        do_status(req, f, &u.status);
        break;
    case PROOF_IOC_WAIT:
        do_wait(req, f, &u.status);
        break;
    case PROOF_IOC_CANCEL:
        do_cancel(req, f, &u.job);
        break;
    case PROOF_IOC_PROOF:
        do_proof(req, f, &u.data);
        break;
    default:
        fuse_reply_err(req, ENOTTY);
    }
}

static const struct cuse_lowlevel_ops operations = {
    .init = op_init,
    .init_done = op_init_done,
    .open = op_open,
    .read = op_read,
    .write = op_write,
    .release = op_release,
    .ioctl = op_ioctl,
    .poll = op_poll,
};

/* ---- what the rest of the service tells ---- */

void device_set_max_unfinished(struct device *dev, uint32_t max)
{
    if (dev)
        device_files_set_max_unfinished(dev->files, max);
}

void device_job_changed(struct device *dev, const struct job_info *info, enum job_state was,
                        bool gone)
{
    struct job_info last = *info;

    if (!dev)
        return;
    if (job_changes_state(info, was, gone))
        records_add_job(dev->records, info, false);
    if (gone)
        records_add_job(dev->records, info, true);
    if (gone && !is_over(&last))
        last.state = JOB_CANCELLED;
    if (is_over(&last))
        answer_waits(dev, &last);
    device_files_room(dev->files);
}

void device_event(struct device *dev, const char *text)
{
    if (dev)
        records_add_text(dev->records, text);
}

/* ---- the threads that serve ---- */

static void note_end(struct device *dev)
{
    pthread_mutex_lock(&dev->lock);
    bool lost = dev->ready && !dev->ended && !dev->stopping;
    dev->ended = true;
    pthread_cond_broadcast(&dev->changed);
    pthread_mutex_unlock(&dev->lock);
    if (lost && dev->lost)
        dev->lost(dev->ctx);
}

static void *serve(void *arg)
{
    struct device *dev = arg;
    struct fuse_buf buf = {0};
    struct pollfd fds[] = {{.fd = fuse_session_fd(dev->session), .events = POLLIN},
                           {.fd = dev->stop_fd, .events = POLLIN}};

    pthread_setname_np(pthread_self(), "cuse");
    while (!fuse_session_exited(dev->session)) {
        int n = poll(fds, ARRAY_LEN(fds), TICK_MS);
        if ((n < 0 && errno != EINTR) || fds[1].revents)
            break;
        if (n == 0)
            device_files_room(dev->files);
        if (n <= 0)
            continue;
        n = fuse_session_receive_buf(dev->session, &buf);
        if (n == -EINTR || n == -EAGAIN) /* another thread was faster */
            continue;
        if (n <= 0)
            break;
        fuse_session_process_buf(dev->session, &buf);
    }
    free(buf.mem);
    note_end(dev);
    return NULL;
}

static int start_threads(struct device *dev)
{
    sigset_t all, old;
    int ret = 0;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    while (dev->threads_len < THREADS && ret == 0) {
        ret = -pthread_create(&dev->threads[dev->threads_len], NULL, serve, dev);
        dev->threads_len += ret == 0;
    }
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    return ret;
}

static int wait_until_ready(struct device *dev, struct errmsg *err)
{
    struct timespec until;
    int late = 0;

    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += START_S;
    pthread_mutex_lock(&dev->lock);
    while (!dev->ready && !dev->ended && !late)
        late = pthread_cond_timedwait(&dev->changed, &dev->lock, &until);
    bool ready = dev->ready && !dev->ended;
    pthread_mutex_unlock(&dev->lock);
    if (ready)
        return 0;
    return errmsg_set(err, -EBUSY,
                      "the kernel does not make /dev/%s: is there one of another service?",
                      dev->name);
}

/* ---- life ---- */

static int open_cuse(int given, struct errmsg *err)
{
    int fd = given >= 0 ? given : open(DEVICE_CUSE, O_RDWR | O_CLOEXEC);

    if (fd < 0)
        return errmsg_set(err, -errno, DEVICE_CUSE ": %s%s", strerror(errno),
                          errno == ENOENT   ? " (modprobe cuse)"
                          : errno == EACCES ? " (it is root's)"
                                            : "");
    return fd;
}

/* Takes fd. */
static int make_session(struct device *dev, int fd, struct errmsg *err)
{
    char dev_info[DEVICE_NAME_MAX + 16], path[32];
    const char *argv[] = {dev_info};
    const struct cuse_info info = {.dev_info_argc = 1, .dev_info_argv = argv};
    struct fuse_args args = FUSE_ARGS_INIT(0, NULL);
    int ret = 0;

    snprintf(dev_info, sizeof(dev_info), "DEVNAME=%s", dev->name);
    snprintf(path, sizeof(path), "/dev/fd/%d", fd);
    if (fuse_opt_add_arg(&args, "proofd") == 0)
        dev->session = cuse_lowlevel_new(&args, &info, &operations, dev);
    fuse_opt_free_args(&args);
    if (!dev->session || fuse_session_mount(dev->session, path) != 0) {
        close(fd);
        return errmsg_set(err, -ENOMEM, "device: cannot make a CUSE session");
    }
    if (fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK) < 0)
        ret = errmsg_set(err, -errno, DEVICE_CUSE ": %s", strerror(errno));
    return ret;
}

int device_create(const struct device_options *opt, struct device **out, struct errmsg *err)
{
    struct device *dev = NULL;
    int fd = open_cuse(opt->fd, err), ret;

    if (fd < 0)
        return fd;
    dev = calloc(1, sizeof(*dev));
    if (!dev) {
        close(fd);
        return errmsg_set(err, -ENOMEM, "device: no memory");
    }
    snprintf(dev->name, sizeof(dev->name), "%s", opt->name);
    dev->jobs = opt->jobs;
    dev->lost = opt->lost;
    dev->ctx = opt->ctx;
    pthread_mutex_init(&dev->lock, NULL);
    pthread_cond_init(&dev->changed, NULL);
    parked_init(&dev->waits, wait_interrupted);
    dev->stop_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    ret = make_session(dev, fd, err);
    if (ret == 0 && (dev->stop_fd < 0 || records_create(&dev->records) < 0))
        ret = errmsg_set(err, -ENOMEM, "device: no memory or descriptors");
    if (ret == 0)
        ret = device_files_create(opt, &dev->files, err);
    if (ret < 0) {
        device_destroy(dev);
        return ret;
    }
    *out = dev;
    return 0;
}

int device_start(struct device *dev, struct errmsg *err)
{
    int ret = device_files_start(dev->files, err);

    if (ret == 0)
        ret = start_threads(dev);
    return ret < 0 ? errmsg_set(err, ret, "device: cannot start its threads")
                   : wait_until_ready(dev, err);
}

/* What has been taken in is finished after the last request has been read and before the device goes, so everybody whose
 * request was read is answered. */
void device_stop(struct device *dev)
{
    if (!dev || !dev->session)
        return;
    pthread_mutex_lock(&dev->lock);
    dev->stopping = true;
    pthread_mutex_unlock(&dev->lock);
    device_files_stop(dev->files);
    cancel_waits(dev);
    records_stop(dev->records);
    fuse_session_exit(dev->session);
    eventfd_write(dev->stop_fd, 1);
    for (unsigned i = 0; i < dev->threads_len; i++)
        pthread_join(dev->threads[i], NULL);
    dev->threads_len = 0;
    device_files_drain(dev->files, dev->records);
    fuse_session_destroy(dev->session); /* and with its descriptor the device */
    dev->session = NULL;
}

/* After device_stop, or where device_start has not been called or failed, which is the same. */
void device_destroy(struct device *dev)
{
    if (!dev)
        return;
    if (dev->files)
        device_stop(dev);
    else if (dev->session)
        fuse_session_destroy(dev->session);
    device_files_destroy(dev->files);
    records_destroy(dev->records);
    if (dev->stop_fd >= 0)
        close(dev->stop_fd);
    parked_fini(&dev->waits);
    pthread_cond_destroy(&dev->changed);
    pthread_mutex_destroy(&dev->lock);
    free(dev);
}
