#include "daemon/link.h"

#include <errno.h>
#include <math.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "daemon/log.h"

/* Room for more descriptors than anybody may send: what comes with a packet must be closed, not
 * leaked. */
#define FDS_MAX 8
#define ERRNO_MAX 4095

/* Length of a message on the wire, 0 for an unknown type. */
static size_t message_bytes(uint32_t type)
{
    static const size_t body[] = {
        [LINK_HELLO] = sizeof(struct link_hello),   [LINK_WORK] = sizeof(struct link_work),
        [LINK_CANCEL] = sizeof(struct link_cancel), [LINK_PRIORITY] = sizeof(struct link_priority),
        [LINK_RECALL] = sizeof(struct link_recall), [LINK_SET_ASIDE] = sizeof(struct link_set_aside),
        [LINK_STAGE] = sizeof(struct link_stage),   [LINK_WRONG] = sizeof(struct link_wrong),
        [LINK_DONE] = sizeof(struct link_done),     [LINK_FAILED] = sizeof(struct link_failed),
        [LINK_STATUS] = sizeof(struct link_status), [LINK_LOG_LEVELS] = sizeof(struct link_log_levels),
        [LINK_PARAMS] = sizeof(struct link_params), [LINK_PARAMS_DONE] = sizeof(struct link_params_done),
        [LINK_STOP] = 0,
    };

    if (type < LINK_HELLO || type >= ARRAY_LEN(body))
        return 0;
    return offsetof(struct link_message, hello) + body[type];
}

bool link_work_is_before(const struct link_work *a, const struct link_work *b)
{
    if (a->priority != b->priority)
        return a->priority > b->priority;
    if (a->turn != b->turn)
        return a->turn < b->turn;
    if (a->job != b->job)
        return a->job < b->job;
    return a->partition < b->partition;
}

static void put_fd(struct msghdr *msg, int fd)
{
    struct cmsghdr *c = CMSG_FIRSTHDR(msg);

    c->cmsg_level = SOL_SOCKET;
    c->cmsg_type = SCM_RIGHTS;
    c->cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(c), &fd, sizeof(int));
}

int link_send(int sock, const struct link_message *m, int fd)
{
    union {
        struct cmsghdr align;
        char bytes[CMSG_SPACE(sizeof(int))];
    } control = {0};
    struct iovec iov = {.iov_base = (void *)m, .iov_len = message_bytes(m->type)};
    struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};
    ssize_t n;

    if (iov.iov_len == 0)
        return -EINVAL;
    if (fd >= 0) {
        msg.msg_control = control.bytes;
        msg.msg_controllen = sizeof(control.bytes);
        put_fd(&msg, fd);
    }
    do
        n = sendmsg(sock, &msg, MSG_NOSIGNAL);
    while (n < 0 && errno == EINTR);
    if (n < 0)
        return errno == ECONNRESET ? -EPIPE : -errno;
    return (size_t)n == iov.iov_len ? 0 : -EIO;
}

/* Takes the descriptors out of a packet: the first into *fd, any other is closed. Returns how many
 * there were. */
static size_t take_fds(struct msghdr *msg, int *fd)
{
    size_t count = 0;

    for (struct cmsghdr *c = CMSG_FIRSTHDR(msg); c; c = CMSG_NXTHDR(msg, c)) {
        if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
            continue;
        size_t n = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        for (size_t i = 0; i < n; i++, count++) {
            int received;
            memcpy(&received, CMSG_DATA(c) + i * sizeof(int), sizeof(int));
            if (count == 0)
                *fd = received;
            else
                close(received);
        }
    }
    return count;
}

/* ---- what a message may say ---- */

#define BYTES_MAX ((uint64_t)1 << 60)
#define MS_MAX 1e11 /* three years */

static bool is_control(const char *s)
{
    const uint8_t *c = (const uint8_t *)s;

    return c[0] < 0x20 || c[0] == 0x7f || (c[0] == 0xc2 && c[1] < 0xa0);
}

/* Strings are read by people and by printf: they end, and have no lines, controls or half characters. */
static void clean_text(char *text, size_t size)
{
    text[size - 1] = '\0';
    for (size_t n; *text; text += n) {
        n = utf8_length(text);
        if (n == 0 || is_control(text)) {
            n = n ? n : 1;
            memset(text, '?', n);
        }
    }
}

static bool is_duration(double ms)
{
    return isfinite(ms) && ms >= 0 && ms <= MS_MAX;
}

static bool check_report(struct partition_report *r)
{
    clean_text(r->device, sizeof(r->device));
    return r->params > SRS_UNCHECKED && r->params < SRS_TRUSTS && is_duration(r->synthesis_ms) &&
           is_duration(r->transform_ms) && is_duration(r->msm_ms) && is_duration(r->verify_ms) &&
           is_duration(r->total_ms) && is_duration(r->params_ms) && r->peak_bytes <= BYTES_MAX;
}

static bool check_course(const struct flight_course *c)
{
    for (int i = 0; i < FLIGHT_STAGES; i++)
        if (c->us[i] < 0 || c->us[i] > c->us[i + 1])
            return false;
    return c->prover >= -1;
}

static bool check_hello(struct link_hello *h)
{
    clean_text(h->device, sizeof(h->device));
    clean_text(h->limit_from, sizeof(h->limit_from));
    return h->node >= 0 && h->threads > 0 && h->capacity > 0;
}

static bool check_failed(struct link_failed *f)
{
    clean_text(f->text, sizeof(f->text));
    return f->code < 0 && f->code >= -ERRNO_MAX;
}

/* A bool that is neither has no value in C. */
static bool is_bool(const bool *b)
{
    uint8_t byte;

    memcpy(&byte, b, 1);
    return byte <= 1;
}

static bool check_memory(const struct node_memory *m)
{
    return m->pages <= ARENA_4KIB && m->node >= -1 && m->misplaced_node >= -1 &&
           is_bool(&m->mapped) && is_bool(&m->bound) && is_bool(&m->locked) &&
           m->shape.witnesses <= SLOTS_MAX && m->shape.evaluations <= SLOTS_MAX;
}

static bool check_params(const struct node_params *p)
{
    return is_bool(&p->held) && is_bool(&p->loading) && is_bool(&p->transformed) &&
           p->trust < SRS_TRUSTS && p->percent <= 100 && p->host_bytes <= BYTES_MAX &&
           p->device_bytes <= BYTES_MAX && p->used_ms >= -1;
}

static bool check_asked(const struct link_params *p)
{
    return p->size < LINK_SIZES && p->evict <= 1;
}

static bool check_params_done(struct link_params_done *d)
{
    clean_text(d->text, sizeof(d->text));
    return check_asked(&d->asked) && d->code <= 0 && d->code >= -ERRNO_MAX;
}

static bool check_status(struct link_status *st)
{
    for (int i = 0; i < NODE_SIZES; i++)
        if (!check_params(&st->node.params[i]))
            return false;
    if (st->node.provers_len > NODE_PROVERS_MAX || !check_memory(&st->node.memory))
        return false;
    for (uint32_t i = 0; i < st->node.provers_len; i++) {
        clean_text(st->node.provers[i].name, sizeof(st->node.provers[i].name));
        if (!is_bool(&st->node.provers[i].stalled) || !is_bool(&st->node.provers[i].set_aside))
            return false;
    }
    clean_text(st->params, sizeof(st->params));
    return st->resident_bytes <= BYTES_MAX;
}

static bool check_contents(struct link_message *m)
{
    switch (m->type) {
    case LINK_HELLO:
        return check_hello(&m->hello);
    case LINK_WORK:
        return m->work.priority < JOB_PRIORITIES && m->work.avoid >= LINK_NO_PROVER;
    case LINK_PRIORITY:
        return m->priority.priority < JOB_PRIORITIES;
    case LINK_STAGE:
        return m->stage.stage <= PARTITION_READ && m->stage.percent <= 100;
    case LINK_DONE:
        return check_report(&m->done.report) && check_course(&m->done.course);
    case LINK_FAILED:
        return check_failed(&m->failed);
    case LINK_WRONG:
        clean_text(m->wrong.text, sizeof(m->wrong.text));
        return m->wrong.gpu >= -1;
    case LINK_STATUS:
        return check_status(&m->status);
    case LINK_LOG_LEVELS:
        return log_levels_are_valid(m->log_levels.levels);
    case LINK_PARAMS:
        return check_asked(&m->params);
    case LINK_PARAMS_DONE:
        return check_params_done(&m->params_done);
    default:
        return true;
    }
}

static bool is_well_formed(const struct link_message *m, size_t bytes, size_t fds, int flags)
{
    if (flags & (MSG_TRUNC | MSG_CTRUNC) || bytes < sizeof(m->type))
        return false;
    return bytes == message_bytes(m->type) && fds == (m->type == LINK_WORK ? 1 : 0);
}

int link_receive(int sock, struct link_message *m, int *fd)
{
    union {
        struct cmsghdr align;
        char bytes[CMSG_SPACE(FDS_MAX * sizeof(int))];
    } control;
    struct iovec iov = {.iov_base = m, .iov_len = sizeof(*m)};
    struct msghdr msg = {.msg_iov = &iov,
                         .msg_iovlen = 1,
                         .msg_control = control.bytes,
                         .msg_controllen = sizeof(control.bytes)};
    ssize_t n;

    *fd = -1;
    memset(m, 0, sizeof(*m));
    do
        n = recvmsg(sock, &msg, MSG_CMSG_CLOEXEC);
    while (n < 0 && (errno == EINTR || errno == ECONNRESET)); /* told once: what was sent is there */
    if (n < 0)
        return -errno;
    size_t fds = take_fds(&msg, fd);
    if (n == 0 && fds == 0)
        return -ENOTCONN;
    if (!is_well_formed(m, (size_t)n, fds, msg.msg_flags) || !check_contents(m)) {
        if (*fd >= 0)
            close(*fd);
        *fd = -1;
        return -EBADMSG;
    }
    return 0;
}
