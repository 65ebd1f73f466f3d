/*
 * proofctl submit, wait, status, cancel: through the files of the mount and nothing else, so that
 * whatever they do, a shell script can do.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "daemon/ctl.h"
#include "daemon/job.h"

#define TEXT_MAX ((size_t)1 << 20)
#define STATUS_MAX 1023              /* bytes of a status line */
#define COPY_BYTES ((size_t)1 << 20) /* the largest write of the mount */
/* Watches tell of every change; this is for a change that came from a dead or replaced mount. */
#define LOOK_AGAIN_MS 5000

/* A refused file is no job: it has a NAME.error and no NAME.status. */
enum end_state {
    NOT_ENDED,
    ENDED_DONE,
    ENDED_FAILED,
    ENDED_CANCELLED,
    ENDED_REFUSED,
    ENDED_UNKNOWN
};

static const char *const end_names[] = {"", "done", "failed", "cancelled", "refused", "unknown"};

static int job_path(char out[PATH_MAX], const char *mount, const char *name, const char *suffix)
{
    int n = snprintf(out, PATH_MAX, "%s/jobs/%s%s", mount, name, suffix);

    return n < PATH_MAX ? 0 : -ENAMETOOLONG;
}

/* The text of a small file, without the newline at its end. malloc'ed; NULL with errno set. */
static char *read_line_of(const char *path)
{
    uint8_t *text = NULL;
    size_t len = 0;
    int ret = ctl_read_file(path, TEXT_MAX, &text, &len);

    if (ret < 0) {
        errno = -ret;
        return NULL;
    }
    while (len > 0 && text[len - 1] == '\n')
        text[--len] = '\0';
    return (char *)text;
}

static char *read_job_file(const struct ctl_args *args, const char *name, const char *suffix)
{
    char path[PATH_MAX];

    if (job_path(path, args->mount, name, suffix) < 0) {
        errno = ENAMETOOLONG;
        return NULL;
    }
    return read_line_of(path);
}

static bool is_name(const char *name)
{
    return *name && !strchr(name, '/') && strcmp(name, ".") != 0 && strcmp(name, "..") != 0;
}

static int mount_serves(const struct ctl_args *args)
{
    char path[PATH_MAX];
    struct stat st;

    snprintf(path, sizeof(path), "%s/jobs", args->mount);
    if (stat(path, &st) < 0)
        return -errno;
    return S_ISDIR(st.st_mode) ? 0 : -ENOTDIR;
}

/* False, with a complaint, when there is no service at the mount. */
static bool service_is_there(const struct ctl_args *args)
{
    int ret = mount_serves(args);

    if (ret < 0)
        ctl_fail(0, "%s/jobs: %s: is proofd running there?", args->mount, strerror(-ret));
    return ret == 0;
}

static bool starts_with_word(const char *text, const char *word)
{
    size_t n = strlen(word);

    return strncmp(text, word, n) == 0 && (!text[n] || text[n] == ' ');
}

/* The first line of NAME.error, malloc'ed, or NULL. */
static char *read_reason(const struct ctl_args *args, const char *name)
{
    char *reason = read_job_file(args, name, ".error");

    if (reason)
        reason[strcspn(reason, "\n")] = '\0';
    return reason;
}

static void print_member(const char *key, const char *value)
{
    printf("\"%s\":", key);
    ctl_json_string(stdout, value);
}

/* `text` is the line of NAME.status; `error`, or NULL, why it failed or was refused. */
static void print_job(const struct ctl_args *args, const char *name, const char *state,
                      const char *text, const char *error)
{
    if (args->json) {
        putchar('{');
        print_member("name", name), putchar(',');
        print_member("state", state), putchar(',');
        print_member("text", text);
        if (error)
            putchar(','), print_member("error", error);
        puts("}");
    } else {
        ctl_put(stdout, name);
        printf(": %s%s", text, error ? ": " : "");
        ctl_put(stdout, error ? error : "");
        putchar('\n');
    }
    fflush(stdout);
}

/* There is no answer about a job. Returns `code`. */
static int fail_job(const struct ctl_args *args, int code, const char *name, const char *why)
{
    if (!args->json)
        return ctl_fail(code, "%s: %s", name, why);
    putchar('{');
    print_member("name", name), putchar(',');
    print_member("error", why);
    puts("}");
    fflush(stdout);
    return code;
}

static int no_such_job(const struct ctl_args *args, const char *name, int error)
{
    return fail_job(args, CTL_CANNOT, name, error == ENOENT ? "no such job" : strerror(error));
}

/* ---- wait ---- */

struct waiting {
    const char *name;
    char *renamed; /* the same, of a job that was renamed meanwhile; NULL: of none */
    /* Of the job's file: stays whatever becomes of its name and of the mount. 0: not known yet. */
    ino_t ino;
    enum end_state end;
    int error; /* ENDED_UNKNOWN: why there is no answer */
    int fd; /* its status, kept open: poll() tells what has changed since it was read; -1: not open */
    bool seen;  /* its status was there once: when it goes, the job was cancelled */
    char *text; /* the last status line */
};

/* The jobs of one mount. A restart of the service is another mount, and only the names of one that serves say what became of a
 * job: they are looked up from an open directory, which a mount that is gone answers with ENOTCONN. By path they would just be
 * missing. */
struct view {
    int dir, watch;
    bool gone;
};

static enum end_state state_of(const char *text)
{
    static const enum job_state ends[] = {JOB_DONE, JOB_FAILED, JOB_CANCELLED};

    for (size_t i = 0; i < ARRAY_LEN(ends); i++)
        if (starts_with_word(text, job_state_name(ends[i])))
            return (enum end_state)(ENDED_DONE + i);
    return NOT_ENDED;
}

static bool is_gone(int error)
{
    return error == -ENOTCONN || error == -ECONNABORTED || error == -ENODEV;
}

static int file_of(char out[PATH_MAX], const char *name, const char *suffix)
{
    return snprintf(out, PATH_MAX, "%s%s", name, suffix) < PATH_MAX ? 0 : -ENAMETOOLONG;
}

static int look_up(const struct view *view, const char *name, const char *suffix)
{
    char file[PATH_MAX];
    int ret = file_of(file, name, suffix);

    return ret == 0 && faccessat(view->dir, file, F_OK, 0) < 0 ? -errno : ret;
}

/* Opens the status, or finds that it is gone: an open file outlives its name, and a name may be another job's by now. */
static int open_status(const struct view *view, struct waiting *w)
{
    char file[PATH_MAX];
    struct stat st;

    if (fstatat(view->dir, w->name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return -errno;
    if (w->ino && st.st_ino != w->ino)
        return -ENOENT;
    w->ino = st.st_ino;
    if (w->fd >= 0)
        return look_up(view, w->name, ".status");
    if (file_of(file, w->name, ".status") < 0)
        return -ENAMETOOLONG;
    w->fd = openat(view->dir, file, O_RDONLY | O_CLOEXEC);
    return w->fd >= 0 ? 0 : -errno;
}

static int read_status(const struct view *view, struct waiting *w)
{
    char text[STATUS_MAX + 1];

    int ret = open_status(view, w);
    if (ret < 0)
        return ret;
    ssize_t n = pread(w->fd, text, STATUS_MAX, 0);
    if (n < 0)
        return -errno;
    text[n] = '\0';
    text[strcspn(text, "\n")] = '\0';
    free(w->text);
    w->text = strdup(text);
    return w->text ? 0 : -ENOMEM;
}

static bool is_refused(const struct ctl_args *args, const char *name)
{
    char path[PATH_MAX];

    return job_path(path, args->mount, name, ".error") == 0 && access(path, F_OK) == 0;
}

/* The name that a job has now, malloc'ed, or NULL. */
static char *find_job(const struct view *view, ino_t ino)
{
    int fd = openat(view->dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
    struct dirent *entry;
    char *name = NULL;

    if (!dir && fd >= 0)
        close(fd);
    while (dir && !name && (entry = readdir(dir)))
        if (entry->d_ino == ino)
            name = strdup(entry->d_name);
    if (dir)
        closedir(dir);
    return name;
}

/* Was the job renamed? Then it is waited for under the name that it has now. */
static bool follow(const struct view *view, struct waiting *w)
{
    char *name = w->ino ? find_job(view, w->ino) : NULL;

    if (!name)
        return false;
    if (strcmp(name, w->name) != 0) { /* else it was renamed back */
        ctl_progress_end();
        fputs("proofctl: ", stderr);
        ctl_put(stderr, w->name);
        fputs(": renamed to ", stderr);
        ctl_put(stderr, name);
        fputs("; waiting for that\n", stderr);
    }
    free(w->renamed);
    w->name = w->renamed = name;
    return true;
}

static bool is_missing(int error)
{
    return error == -ENOENT || error == -ESTALE;
}

static void look_at(struct view *view, struct waiting *w)
{
    int ret = read_status(view, w);

    if (is_missing(ret) && follow(view, w)) {
        ret = read_status(view, w);
        if (is_missing(ret)) /* renamed again */
            return;
    }
    bool missing = is_missing(ret);
    if (missing)
        ret = look_up(view, w->name, ".error");
    if (is_gone(ret)) {
        view->gone = true;
    } else if (ret == 0 && !missing) {
        w->seen = true;
        w->end = state_of(w->text);
    } else if (ret == 0) {
        w->end = ENDED_REFUSED;
    } else if (missing && w->seen && w->ino) {
        w->end = ENDED_CANCELLED;
    } else if (ret != -EINTR) {
        w->end = ENDED_UNKNOWN;
        w->error = ret;
    }
}

/* The last line of a job that was removed is not its end. */
static void report_end(const struct ctl_args *args, const struct waiting *w)
{
    bool has_reason = w->end == ENDED_FAILED || w->end == ENDED_REFUSED;
    char *reason = has_reason ? read_reason(args, w->name) : NULL;
    const char *text = w->text && state_of(w->text) == w->end ? w->text : end_names[w->end];

    if (w->end == ENDED_UNKNOWN)
        no_such_job(args, w->name, -w->error);
    else
        print_job(args, w->name, end_names[w->end], text, reason);
    free(reason);
}

/* Looks at all that have not ended. Returns how many are left. */
static size_t look_at_all(const struct ctl_args *args, struct view *view, struct waiting *jobs,
                          size_t len)
{
    size_t left = 0;

    for (size_t i = 0; i < len; i++) {
        struct waiting *w = &jobs[i];
        if (w->end != NOT_ENDED)
            continue;
        look_at(view, w);
        if (w->end == NOT_ENDED)
            left++;
        else
            report_end(args, w);
    }
    return left;
}

/* The status files tell of changes by poll(); the directory's watch tells of results and removals. */
static void wait_for_change(int watch, const struct waiting *jobs, size_t len)
{
    struct pollfd *fds = calloc(len + 1, sizeof(*fds));
    char events[4096];

    if (!fds)
        return;
    fds[0] = (struct pollfd){watch, POLLIN, 0};
    for (size_t i = 0; i < len; i++)
        fds[i + 1] = (struct pollfd){jobs[i].end == NOT_ENDED ? jobs[i].fd : -1, POLLPRI, 0};
    poll(fds, len + 1, LOOK_AGAIN_MS);
    while (read(watch, events, sizeof(events)) > 0)
        ;
    free(fds);
}

static int exit_code(const struct waiting *jobs, size_t len)
{
    int code = CTL_OK;

    for (size_t i = 0; i < len; i++) {
        if (jobs[i].end == ENDED_UNKNOWN)
            return CTL_CANNOT;
        if (jobs[i].end != ENDED_DONE)
            code = CTL_NO;
    }
    return code;
}

static void show_waiting(const struct waiting *jobs, size_t len)
{
    for (size_t i = 0; i < len; i++)
        if (jobs[i].end == NOT_ENDED && jobs[i].text) {
            char line[512];
            snprintf(line, sizeof(line), "%s: %s", jobs[i].name, jobs[i].text);
            ctl_progress(NULL, line, 0, 0);
            return;
        }
}

static int open_view(const struct ctl_args *args, struct view *view)
{
    char dir[PATH_MAX];

    snprintf(dir, sizeof(dir), "%s/jobs", args->mount);
    *view = (struct view){.dir = -1, .watch = inotify_init1(IN_CLOEXEC | IN_NONBLOCK)};
    if (view->watch < 0)
        return -errno;
    view->dir = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (view->dir < 0)
        return -errno;
    return inotify_add_watch(view->watch, dir,
                             IN_CREATE | IN_MOVED_TO | IN_MOVED_FROM | IN_DELETE) < 0
               ? -errno
               : 0;
}

/* With the files of its jobs: they keep a dead mount. */
static void close_view(struct view *view, struct waiting *jobs, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        if (jobs[i].fd >= 0)
            close(jobs[i].fd);
        jobs[i].fd = -1;
    }
    if (view->dir >= 0)
        close(view->dir);
    if (view->watch >= 0)
        close(view->watch);
}

/* Pauses first, always: what a dead mount has left in the kernel's caches passes for a service. */
static void wait_for_service(const struct ctl_args *args)
{
    const struct timespec pause = {0, 200000000};

    nanosleep(&pause, NULL);
    if (mount_serves(args) == 0)
        return;
    ctl_progress_end();
    fprintf(stderr, "proofctl: %s: the service is gone; waiting until it is back\n", args->mount);
    while (mount_serves(args) < 0)
        nanosleep(&pause, NULL);
}

/* Waits while this mount is served. Returns how many are left, 0 or a negative errno. */
static ssize_t wait_at(const struct ctl_args *args, struct waiting *jobs, size_t len)
{
    struct view view;
    size_t left = len;
    int ret = open_view(args, &view);

    /* Watch first, then look: a change in between is not missed. */
    while (ret == 0 && (left = look_at_all(args, &view, jobs, len)) > 0 && !view.gone) {
        show_waiting(jobs, len);
        wait_for_change(view.watch, jobs, len);
        ctl_progress_end();
    }
    close_view(&view, jobs, len);
    return ret == 0 || ret == -ENOENT || is_gone(ret) ? (ssize_t)left : ret;
}

static int wait_for(const struct ctl_args *args, struct waiting *jobs, size_t len)
{
    ssize_t left;

    while ((left = wait_at(args, jobs, len)) > 0)
        wait_for_service(args);
    if (left < 0)
        return ctl_fail(CTL_CANNOT, "%s/jobs: cannot watch: %s", args->mount, strerror((int)-left));
    return exit_code(jobs, len);
}

/* `ino`: that of the only one, which has been there, so if it is not it has gone; 0: nothing is known. */
static int wait_for_names(const struct ctl_args *args, const char *const *names, size_t len,
                          ino_t ino)
{
    struct waiting *jobs = calloc(len, sizeof(*jobs));

    if (!jobs)
        return ctl_fail(CTL_CANNOT, "no memory");
    for (size_t i = 0; i < len; i++)
        jobs[i] = (struct waiting){.name = names[i], .fd = -1, .ino = ino, .seen = ino != 0};
    int code = wait_for(args, jobs, len);
    for (size_t i = 0; i < len; i++) {
        free(jobs[i].text);
        free(jobs[i].renamed);
    }
    free(jobs);
    return code;
}

static bool names_are_good(const char *const *names, size_t len)
{
    for (size_t i = 0; i < len; i++)
        if (!is_name(names[i])) {
            ctl_fail(0, "'%s' is no job's name", names[i]);
            return false;
        }
    return true;
}

int ctl_wait(const struct ctl_args *args)
{
    if (!names_are_good(args->operands, args->operands_len) || !service_is_there(args))
        return CTL_CANNOT;
    return wait_for_names(args, args->operands, args->operands_len, 0);
}

/* ---- submit ---- */

/* -ENODATA for a source of no bytes: the mount takes an empty file for one that is still to be written. */
static int copy(int in, int out)
{
    uint8_t *buf = malloc(COPY_BYTES);
    int ret = buf ? 0 : -ENOMEM;
    bool empty = true;
    ssize_t n = 0;

    while (ret == 0 && (n = read(in, buf, COPY_BYTES)) != 0) {
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0) {
            ret = -errno;
            break;
        }
        empty = false;
        for (ssize_t done = 0; done < n && ret == 0;) {
            ssize_t w = write(out, buf + done, (size_t)(n - done));
            if (w < 0 && errno != EINTR)
                ret = -errno;
            done += w > 0 ? w : 0;
        }
    }
    free(buf);
    return ret == 0 && empty ? -ENODATA : ret;
}

/* The verdict on the content is the result of close(). */
static int copy_into(int in, int out)
{
    int ret = copy(in, out);
    int closed = close(out) < 0 ? -errno : 0;
    return ret < 0 ? ret : closed;
}

/* What is said of an error of open() that has a meaning of its own here. */
static const char *open_text(int error)
{
    switch (error) {
    case -ECANCELED:
        return CTL_STOPPING;
    case -EBUSY:
        return "a job of this name has not ended (--name gives another)";
    case -EINVAL:
        return "no name for a job (--name gives another)";
    case -EACCES: /* as a rule: the name is that of another user's job */
        return "Permission denied (--name gives another)";
    case -ENOSPC:
        return "no room in the store";
    default:
        return strerror(-error);
    }
}

/* And of one of the content, where no NAME.error says more. */
static const char *content_text(int error)
{
    switch (error) {
    case -ENODATA:
        return "the file is empty";
    case -ENOSPC:
        return "no room in the store";
    case -ECANCELED:
        return "it was removed meanwhile";
    default:
        return strerror(-error);
    }
}

static int refused(const struct ctl_args *args, const char *name, const char *why)
{
    if (args->json)
        print_job(args, name, "refused", "refused", why);
    else
        ctl_fail(0, "%s: refused: %s", name, why);
    return CTL_NO;
}

/* Only what is another's, or has not ended, is a no: everything else is the name or the service. */
static int not_opened(const struct ctl_args *args, const char *name, int error)
{
    const char *why = open_text(error);

    if (error == -EBUSY || error == -EACCES || error == -EPERM)
        return refused(args, name, why);
    return fail_job(args, CTL_CANNOT, name, why);
}

/* Only what is wrong with the content is a no: without parameters, or without a service, it may well be right. */
static int not_accepted(const struct ctl_args *args, const char *name, int error)
{
    bool wrong = ctl_exit_of(error) == CTL_NO;
    bool has_reason =
        wrong || error == -EOPNOTSUPP || error == -ENOSPC || error == -EDQUOT || error == -EROFS;
    char *reason = has_reason ? read_reason(args, name) : NULL;
    const char *why = reason ? reason : content_text(error);
    int code = wrong || error == -ENODATA ? refused(args, name, why)
                                          : fail_job(args, CTL_CANNOT, name, why);

    free(reason);
    return code;
}

/* Closing a file tells the service a little later than close() returns: until then the job is still being received. */
static char *status_once_received(const struct ctl_args *args, const char *name)
{
    const struct timespec pause = {0, 20000000};
    char *text = read_job_file(args, name, ".status");

    for (int tries = 0; text && strncmp(text, "receiving", 9) == 0 && tries < 100; tries++) {
        nanosleep(&pause, NULL);
        free(text);
        text = read_job_file(args, name, ".status");
    }
    return text;
}

static int submit_from(const struct ctl_args *args, int in, const char *name)
{
    char path[PATH_MAX];
    struct stat st;

    if (job_path(path, args->mount, name, "") < 0)
        return not_opened(args, name, -ENAMETOOLONG);
    int out = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (out < 0)
        return not_opened(args, name, -errno);
    int known = fstat(out, &st);
    int ret = copy_into(in, out);
    if (ret < 0)
        return not_accepted(args, name, ret);
    if (stat(path, &st) == 0) /* over an ended job it is another file since the close */
        known = 0;
    if (args->wait)
        return wait_for_names(args, &name, 1, known == 0 ? st.st_ino : 0);
    char *text = status_once_received(args, name);
    print_job(args, name, "accepted", text ? text : "accepted", NULL);
    free(text);
    return CTL_OK;
}

int ctl_submit(const struct ctl_args *args)
{
    const char *file = args->operands[0];
    const char *slash = strrchr(file, '/');
    const char *name = args->name ? args->name : slash ? slash + 1 : file;
    bool from_stdin = strcmp(file, "-") == 0;
    struct stat st;

    if (from_stdin && !args->name)
        return ctl_fail(CTL_CANNOT, "submit: --name is needed to read standard input");
    if (!names_are_good(&name, 1))
        return CTL_CANNOT;
    if (job_name_is_temporary(name)) /* the mount would take it and wait for its rename */
        return fail_job(args, CTL_CANNOT, name, "a temporary name; --name gives another");
    if (!service_is_there(args))
        return CTL_CANNOT;
    int in = from_stdin ? STDIN_FILENO : open(file, O_RDONLY | O_CLOEXEC);
    if (in < 0)
        return ctl_fail(CTL_CANNOT, "%s: %s", file, strerror(errno));
    int code = fstat(in, &st) == 0 && S_ISDIR(st.st_mode)
                   ? ctl_fail(CTL_CANNOT, "%s: %s", file, strerror(EISDIR))
                   : submit_from(args, in, name);
    if (!from_stdin)
        close(in);
    return code;
}

/* ---- status ---- */

static int show_job(const struct ctl_args *args, const char *name)
{
    char state[32] = "refused";
    char *text = read_job_file(args, name, ".status");
    int error = text ? 0 : errno;
    char *reason = !text || state_of(text) == ENDED_FAILED ? read_reason(args, name) : NULL;

    if (text)
        sscanf(text, "%31s", state);
    int code = CTL_OK;
    if (text || reason)
        print_job(args, name, state, text ? text : state, reason);
    else
        code = no_such_job(args, name, error);
    free(text);
    free(reason);
    return code;
}

static int show_service_text(const struct ctl_args *args)
{
    char path[PATH_MAX];

    snprintf(path, sizeof(path), "%s/status", args->mount);
    char *text = read_line_of(path);
    if (!text)
        return ctl_fail(CTL_CANNOT, "%s: %s", path, strerror(errno));
    puts(text);
    free(text);
    return CTL_OK;
}

/* Takes a suffix off a file's name. */
static bool is_of_job(const char *file, const char *suffix, char name[NAME_MAX + 1])
{
    size_t n = strlen(file), len = strlen(suffix);

    if (n <= len || n > NAME_MAX || strcmp(file + n - len, suffix) != 0)
        return false;
    memcpy(name, file, n - len);
    name[n - len] = '\0';
    return true;
}

static bool has_status(const struct ctl_args *args, const char *name)
{
    char path[PATH_MAX];

    return job_path(path, args->mount, name, ".status") == 0 && access(path, F_OK) == 0;
}

/* Jobs, and files that were refused. What has gone since it was listed is left out. */
static int show_all_jobs(const struct ctl_args *args)
{
    char path[PATH_MAX], name[NAME_MAX + 1];
    struct dirent *entry;

    snprintf(path, sizeof(path), "%s/jobs", args->mount);
    DIR *dir = opendir(path);
    if (!dir)
        return ctl_fail(CTL_CANNOT, "%s: %s", path, strerror(errno));
    while ((entry = readdir(dir)))
        if ((is_of_job(entry->d_name, ".status", name) && has_status(args, name)) ||
            (is_of_job(entry->d_name, ".error", name) && !has_status(args, name) &&
             is_refused(args, name)))
            show_job(args, name);
    closedir(dir);
    return CTL_OK;
}

int ctl_status(const struct ctl_args *args)
{
    int code = CTL_OK;

    if (!names_are_good(args->operands, args->operands_len) || !service_is_there(args))
        return CTL_CANNOT;
    if (args->operands_len == 0)
        return args->json ? show_all_jobs(args) : show_service_text(args);
    for (size_t i = 0; i < args->operands_len; i++)
        if (show_job(args, args->operands[i]) != CTL_OK)
            code = CTL_CANNOT;
    return code;
}

/* ---- cancel ---- */

static int cancel_job(const struct ctl_args *args, const char *name)
{
    char path[PATH_MAX];

    if (job_path(path, args->mount, name, "") < 0)
        return no_such_job(args, name, ENAMETOOLONG);
    if (unlink(path) == 0) {
        print_job(args, name, "cancelled", "cancelled", NULL);
        return CTL_OK;
    }
    if (errno == EPERM || errno == EACCES)
        return fail_job(args, CTL_NO, name, "not yours to cancel");
    return no_such_job(args, name, errno);
}

/* Removing a job that has ended would forget its proof: that is what rm is for. */
static int cancel_one(const struct ctl_args *args, const char *name)
{
    char *text = read_job_file(args, name, ".status");
    int error = text ? 0 : errno;
    enum end_state end = text ? state_of(text) : is_refused(args, name) ? ENDED_REFUSED : NOT_ENDED;
    char why[64];

    free(text);
    snprintf(why, sizeof(why), "has ended already: %s", end_names[end]);
    if (end != NOT_ENDED)
        return fail_job(args, CTL_NO, name, why);
    return error ? no_such_job(args, name, error) : cancel_job(args, name);
}

int ctl_cancel(const struct ctl_args *args)
{
    int worst = CTL_OK;

    if (!names_are_good(args->operands, args->operands_len) || !service_is_there(args))
        return CTL_CANNOT;
    for (size_t i = 0; i < args->operands_len; i++) {
        int code = cancel_one(args, args->operands[i]);
        if (code > worst)
            worst = code;
    }
    return worst;
}
