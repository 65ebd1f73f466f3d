# The store on a disk of which every write, read, sync and change of a name takes seconds, and then engines that are stopped: whoever only looks
# is answered at once, ls of the jobs too, and so is who removes and renames jobs: the disk hears of it behind. Only not while a file is made a job
# by a rename: the kernel holds the directory in the meantime, and that ends when it is on disk.
needs_params=no
. "$(dirname "$0")/lib.sh"
real_engine
[ -z "${PROOFD_QUICK:-}" ] || lacks "a build without sanitizers, for a library that is loaded first"
command -v cc >/dev/null && command -v python3 >/dev/null || lacks "cc or python3"
cc -shared -fPIC -x c -o "$work/slow.so" - -ldl <<'C'
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Two seconds, but for who waits when the disk is quick again. */
static void hang(void)
{
    for (int i = 0; i < 40 && access(getenv("SLOW"), F_OK) == 0; i++)
        usleep(50000);
}

static void use(int fd)
{
    char link[64], path[PATH_MAX + 1];
    const char *store = getenv("SLOW_STORE");

    snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
    ssize_t n = readlink(link, path, PATH_MAX);
    path[n > 0 ? n : 0] = '\0';
    if (strncmp(path, store, strlen(store)) == 0)
        hang();
}

int fsync(int fd) { use(fd); return (int)syscall(SYS_fsync, fd); }
int fdatasync(int fd) { use(fd); return (int)syscall(SYS_fdatasync, fd); }
ssize_t pwrite(int fd, const void *buf, size_t len, off_t at) { use(fd); return syscall(SYS_pwrite64, fd, buf, len, at); }
ssize_t pwrite64(int fd, const void *buf, size_t len, off_t at) { use(fd); return syscall(SYS_pwrite64, fd, buf, len, at); }
ssize_t pread(int fd, void *buf, size_t len, off_t at) { use(fd); return syscall(SYS_pread64, fd, buf, len, at); }
ssize_t pread64(int fd, void *buf, size_t len, off_t at) { use(fd); return syscall(SYS_pread64, fd, buf, len, at); }
int ftruncate(int fd, off_t len) { use(fd); return (int)syscall(SYS_ftruncate, fd, len); }
int ftruncate64(int fd, off_t len) { use(fd); return (int)syscall(SYS_ftruncate, fd, len); }
int mkdirat(int dir, const char *name, mode_t mode) { use(dir); return (int)syscall(SYS_mkdirat, dir, name, mode); }
/* Looks at files by their paths: the parameters'. */
static void use_path(const char *path)
{
    const char *dir = getenv("SLOW_PARAMS");

    if (path && strncmp(path, dir, strlen(dir)) == 0)
        hang();
}

int access(const char *path, int mode)
{
    if (strncmp(path, getenv("SLOW"), strlen(getenv("SLOW"))) != 0)
        use_path(path);
    return (int)syscall(SYS_access, path, mode);
}

int stat(const char *path, struct stat *out)
{
    use_path(path);
    return (int)syscall(SYS_newfstatat, AT_FDCWD, path, out, 0);
}

int stat64(const char *path, struct stat64 *out)
{
    use_path(path);
    return (int)syscall(SYS_newfstatat, AT_FDCWD, path, out, 0);
}

/* Removals and renames, and nothing else. */
static int fails(void)
{
    char path[PATH_MAX];

    snprintf(path, sizeof(path), "%s.fails", getenv("SLOW"));
    return access(path, F_OK) == 0 ? (errno = EIO) : 0;
}

int unlinkat(int dir, const char *name, int flags)
{
    use(dir);
    return fails() ? -1 : (int)syscall(SYS_unlinkat, dir, name, flags);
}

int renameat(int from, const char *name, int to, const char *new_name)
{
    use(from);
    if (fails())
        return -1;
    return (int)syscall(SYS_renameat, from, name, to, new_name);
}

static int slow_openat(int dir, const char *name, int flags, mode_t mode)
{
    use(dir);
    return (int)syscall(SYS_openat, dir, name, flags, mode);
}

#define OPENAT(function)                                     \
    int function(int dir, const char *name, int flags, ...)  \
    {                                                        \
        va_list more;                                        \
        va_start(more, flags);                               \
        mode_t mode = va_arg(more, mode_t);                  \
        va_end(more);                                        \
        return slow_openat(dir, name, flags, mode);          \
    }
OPENAT(openat)
OPENAT(openat64)

#define STATVFS(function)                                                          \
    int function(const char *path, struct statvfs *out)                            \
    {                                                                              \
        int (*real)(const char *, struct statvfs *) = dlsym(RTLD_NEXT, #function); \
        if (strncmp(path, getenv("SLOW_STORE"), strlen(getenv("SLOW_STORE"))) == 0) \
            hang();                                                                \
        return real(path, out);                                                    \
    }
STATVFS(statvfs)
#undef statvfs64
int statvfs64(const char *path, struct statvfs64 *out)
{
    int (*real)(const char *, struct statvfs64 *) = dlsym(RTLD_NEXT, "statvfs64");
    if (strncmp(path, getenv("SLOW_STORE"), strlen(getenv("SLOW_STORE"))) == 0)
        hang();
    return real(path, out);
}
C
export SLOW=$work/is-slow SLOW_STORE=$store SLOW_PARAMS=$params
echo rubbish >"$params/$(basename "$root"/tests/vectors/vk/*032d3138*.vk .vk).params" # something to look at
printf '#!/bin/sh\nLD_PRELOAD=%s exec "%s" "$@"\n' "$work/slow.so" "$proofd" >"$work/proofd"
chmod +x "$work/proofd"
proofd=$work/proofd
printf 'start_ms = 50\nfinish_ms = 50\n' >"$work/sim"
doc() { echo "{\"proofd-test\":{\"partitions\":2,\"seed\":$1}}"; }

# The median, so that a machine with other things to do is no fault of ours; and where no program has to start first, never as long as the
# disk takes for one thing.
look() { # what
    python3 - "$mnt" "$jobs/kept" >"$work/looked" <<'PY'
import os, subprocess, sys, time
mnt, job = sys.argv[1:]
jobs = mnt + "/jobs"
ways = [["ls", "-l", jobs], ["find", jobs], ["stat", job, job + ".report"], ["df", mnt], ["df", "-i", mnt], ["cat", job + ".status"],
        ["cat", mnt + "/status"], ["cat", mnt + "/metrics"], ["ls", "-l", mnt]]
took = {}
for i in range(20):
    for way in ways:
        start = time.monotonic()
        # A file may be gone before ls -l has come to it.
        subprocess.run(way, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=way[0] not in ("ls", "find"))
        took.setdefault(" ".join(way).replace(mnt, "").replace(" ", "_"), []).append((time.monotonic() - start) * 1000)
# The same without a program to start.
def read(path):
    with open(path) as f:
        return f.read()
calls = {"(listdir)": lambda: os.listdir(jobs), "(stat)": lambda: os.stat(job + ".proof"), "(statvfs)": lambda: os.statvfs(mnt),
         "(status)": lambda: read(job + ".status"), "(service)": lambda: read(mnt + "/status"), "(params)": lambda: os.listdir(mnt + "/params")}
for i in range(20):
    for name, call in calls.items():
        start = time.monotonic()
        call()
        took.setdefault(name, []).append((time.monotonic() - start) * 1000)
for name, ms in sorted(took.items()):
    print(name, int(sorted(ms)[len(ms) // 2]), int(max(ms)), 50 if name[0] == "(" else 150)
PY
    while read -r name median most limit; do
        echo "$1: $name $median ms, at most $most"
        expect "$1: $name within $limit ms ($median, at most $most)" test "$median" -le "$limit" -a "$((limit == 50 ? most : 0))" -le 1500
    done <"$work/looked"
    same "$1: all was looked at" "$(wc -l <"$work/looked")" 15
}

# Each in a time in which the disk does nothing.
quickly() { # WHAT COMMAND...
    local start=$EPOCHREALTIME what=$1
    shift
    expect "$what" "$@"
    local ms=$(((${EPOCHREALTIME/./} - ${start/./}) / 1000))
    expect "$what in $ms ms" test "$ms" -le 500
}
sync_jobs() { python3 -c 'import os, sys; os.fsync(os.open(sys.argv[1], os.O_RDONLY))' "$jobs"; }
sleep_and_see() { sleep 0.3 && kill -0 "$1"; }
beats_are() { [ "$(grep -c WATCHDOG=1 "$work/notified")" -ge "$1" ]; }
absent() { [ ! -e "$1" ]; }

# A service manager that hears something every second, or it would kill the service.
"$build/tests/system/notify_listen" "$work/notify" STOPPING=1 >"$work/notified" &
listener=$!
expect "the listener is there" wait_for 10 test -S "$work/notify"
export NOTIFY_SOCKET=$work/notify WATCHDOG_USEC=1000000
start --nodes all --simulate "$work/sim"
same "the parameters are seen" "$(grep -c 'cannot be used' "$mnt/status")" 1
doc 1 >"$jobs/kept"
expect "kept is done" ends kept done
for i in 3 4 5 6 7; do doc "$i" >"$jobs/ended$i"; done
for i in 3 4 5 6 7; do expect "ended$i is done" ends "ended$i" done; done
doc 2 >"$jobs/.moved"
touch "$SLOW"
quickly "rm of a job" rm "$jobs/ended3"
quickly "mv of a job" mv "$jobs/ended4" "$jobs/moved4"
quickly "mv of a job over another" mv "$jobs/ended5" "$jobs/ended6"
look "rm and mv hang on the disk"
beats=$(grep -c WATCHDOG=1 "$work/notified")
expect "the watchdog hears of the service while its disk hangs" wait_for 8 beats_are $((beats + 3))
same "what was removed and renamed is so" "$(cd "$jobs" && ls | grep -E '^(ended|moved)[0-9]$' | tr '\n' ' ')" "ended6 ended7 moved4 "
quickly "mv while others hang" mv "$jobs/ended7" "$jobs/moved7"
# More than there are threads of any kind: files that are written, read and synced, and names that come and go.
for i in $(seq 36); do
    doc "1$i" | dd of="$jobs/w$i" conv=fsync status=none &
    writers[i]=$!
done
for i in $(seq 12); do
    cat "$jobs/kept" "$jobs/kept.proof" "$jobs/kept.proof.bin" "$jobs/kept.report" >"$work/read$i" &
    readers[i]=$!
    chmod 600 "$jobs/kept" &
    others[i]=$!
done
(while [ -e "$SLOW" ]; do mv "$jobs/.moved" "$jobs/.moved2" && mv "$jobs/.moved2" "$jobs/.moved" && touch "$jobs/.gone" && rm "$jobs/.gone"; done) &
mover=$!
expect "the last writer waits for the disk" wait_for 10 test -e "$jobs/w36"
look "a slow disk"
look "and a while later"
rm "$SLOW"
wait $mover
touch "$SLOW"
quickly "rm, to be synced" rm "$jobs/moved7"
sync_jobs &
syncer=$!
expect "a sync of the directory waits for it" sleep_and_see "$syncer"
rm "$SLOW"
expect "the directory is synced" wait "$syncer"
expect "what was moved to and fro is there" mv "$jobs/.moved" "$jobs/moved"
for i in $(seq 36); do expect "writer $i" wait "${writers[i]}"; done
for i in $(seq 12); do
    expect "reader $i" wait "${readers[i]}"
    expect "reader $i has all of it" cmp "$work/read1" "$work/read$i"
    expect "chmod $i" wait "${others[i]}"
done
for i in $(seq 36); do expect "w$i is done" ends "w$i" done; done
kill -STOP "$(sed -nE 's/.*ready.* pid ([0-9]+).*/\1/p' "$mnt/status")"
doc 99 >"$jobs/later"
look "an engine that is stopped"
expect "a clean end" stop

# What the disk refuses behind is there again, and the log and `events` say so.
restart --nodes all --simulate "$work/sim"
doc 8 >"$jobs/comes-back"
expect "comes-back is done" ends comes-back done
cat "$mnt/events" >"$work/events" &
reader=$!
expect "events are read" wait_for 5 opened "$reader" "$mnt/events"
touch "$SLOW.fails"
quickly "rm on a disk that fails" rm "$jobs/comes-back"
expect "and it is there again" wait_for 10 test -e "$jobs/comes-back.proof"
expect "the log says so" wait_for 5 grep -q 'its removal is not on disk.*Input/output error.*the job is there again' "$log"
expect "and events" wait_for 5 grep -q 'the disk refused its removal: Input/output error: the job is there again' "$work/events"
quickly "mv on a disk that fails" mv "$jobs/comes-back" "$jobs/elsewhere"
expect "it has its old name again" wait_for 10 absent "$jobs/elsewhere"
refuse "a sync of the directory says so" sync_jobs
rm "$SLOW.fails"
expect "rm of it" rm "$jobs/comes-back"
expect "sync" sync_jobs
kill "$reader"
expect "a clean end again" stop
finish
