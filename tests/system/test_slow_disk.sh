# The store on a disk whose every sync takes long, and then engines that are stopped: whoever only looks is answered at once. Not so ls of the
# jobs while the disk is slow: the kernel holds the directory while a name is made, renamed or removed in it.
needs_params=no
. "$(dirname "$0")/lib.sh"
real_engine
[ -z "${PROOFD_QUICK:-}" ] || lacks "a build without sanitizers, for a library that is loaded first"
command -v cc >/dev/null && command -v python3 >/dev/null || lacks "cc or python3"
cc -shared -fPIC -x c -o "$work/slow.so" - <<'C'
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

static void wait_for_disk(void)
{
    if (access(getenv("SLOW"), F_OK) == 0)
        usleep(300000);
}

int fsync(int fd)
{
    wait_for_disk();
    return (int)syscall(SYS_fsync, fd);
}

int fdatasync(int fd)
{
    wait_for_disk();
    return (int)syscall(SYS_fdatasync, fd);
}
C
export SLOW=$work/is-slow
printf '#!/bin/sh\nLD_PRELOAD=%s exec "%s" "$@"\n' "$work/slow.so" "$proofd" >"$work/proofd"
chmod +x "$work/proofd"
proofd=$work/proofd
printf 'start_ms = 50\nfinish_ms = 50\n' >"$work/sim"
doc() { echo "{\"proofd-test\":{\"partitions\":2,\"seed\":$1}}"; }

# The median, half a sync, so that a machine with other things to do is no fault of ours; and nothing waits for sync after sync.
look() { # what
    python3 - "$mnt" "$jobs/kept" >"$work/looked" <<'PY'
import os, sys, time
mnt, job = sys.argv[1:]
def read(path):
    with open(path, "rb") as f:
        f.read()
took = {}
for i in range(15):
    for name, what in (("ls", lambda: os.listdir(mnt)), ("stat", lambda: os.stat(job)), ("df", lambda: os.statvfs(mnt)),
                       ("status", lambda: read(job + ".status")), ("service", lambda: read(mnt + "/status"))):
        start = time.monotonic()
        what()
        took.setdefault(name, []).append((time.monotonic() - start) * 1000)
for name, ms in sorted(took.items()):
    print(name, int(sorted(ms)[len(ms) // 2]), int(max(ms)))
PY
    while read -r name median most; do
        expect "$1: $name within 150 ms ($median, at most $most)" test "$median" -le 150 -a "$most" -le 3000
    done <"$work/looked"
    same "$1: all was looked at" "$(wc -l <"$work/looked")" 5
}

start --nodes all --simulate "$work/sim"
doc 1 >"$jobs/kept"
expect "kept is done" ends kept done
touch "$SLOW"
for i in $(seq 5); do
    doc "1$i" | dd of="$jobs/w$i" status=none &
    writers[i]=$!
    { doc "2$i" | dd of="$jobs/.t$i" status=none; mv "$jobs/.t$i" "$jobs/m$i"; rm "$jobs/m$i"; } 2>/dev/null &
    others[i]=$!
done
expect "a writer waits for the disk" wait_for 10 test -e "$jobs/w1"
look "a slow disk"
look "and a while later"
rm "$SLOW"
for i in $(seq 5); do
    expect "writer $i" wait "${writers[i]}"
    wait "${others[i]}"
done
for i in $(seq 5); do expect "w$i is done" ends "w$i" done; done
kill -STOP "$(sed -nE 's/.*ready.* pid ([0-9]+).*/\1/p' "$mnt/status")"
doc 99 >"$jobs/later"
look "an engine that is stopped"
expect "a clean end" stop
finish
