#!/usr/bin/env bash
# The service in trouble: wrong options, missing programs and parameters, a second service, engines and front killed at
# each stage, stopped in the middle of a proof. One real 2 KiB job goes through all of it and ends with a valid proof.
set -u
cd "$(dirname "$0")/../.." || exit 2
build=${BUILD:-build}
case $build in /*) ;; *) build=$PWD/$build ;; esac
[ -w /dev/fuse ] && command -v fusermount3 >/dev/null || {
    echo "SKIP  proofd: this machine lacks a usable /dev/fuse or fusermount3"
    exit 77
}
vectors=$PWD/tests/vectors/c1
params=$build/params
proofd=$build/proofd
passed=0 failed=0 skipped=0
tmp=$(mktemp -d)
mnt=$tmp/mnt
front=
cleanup() {
    [ -z "$front" ] || { kill "$front"; wait "$front"; } 2>/dev/null
    # Not mountpoint(1), which fails on a dead one.
    ! grep -qs " $mnt fuse" /proc/mounts || fusermount3 -uz "$mnt"
    rm -rf "$tmp"
}
trap cleanup EXIT

ok() { # NAME COMMAND...
    local name=$1
    shift
    if "$@" >"$tmp/out" 2>&1; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "FAILED: $name"
        sed 's/^/    out: /' "$tmp/out"
        tail -n 5 "$tmp/log" 2>/dev/null | sed 's/^/    log: /'
    fi
}
says() { grep -qF -- "$2" "$1"; } # FILE TEXT
# wait_for SECONDS COMMAND...
wait_for() {
    local end=$((SECONDS + 3 * $1)) # it ends what hangs, on however busy a machine
    shift
    until "$@" 2>/dev/null; do
        [ "$SECONDS" -lt "$end" ] || return 1
        sleep 0.05
    done
}
start() {
    "$proofd" --mount "$mnt" --store "$tmp/store" --params "$tmp/params" --stop-wait 0 "$@" 2>>"$tmp/log" &
    front=$!
    wait_for 20 [ -d "$mnt/jobs" ]
}
stop() { # -> exit code
    kill "$front"
    wait "$front"
    local code=$?
    front=
    return $code
}
engine() { sed -nE 's/^engine.* pid ([0-9]+),.*/\1/p' "$mnt/status"; }
engine_is_new() { local pid; pid=$(engine) && [ -n "$pid" ] && [ "$pid" != "$1" ]; }
has_engine() { [ -n "$(engine)" ]; }
state_is() { [ "$(cut -d' ' -f1 "$mnt/jobs/$1.status")" = "$2" ]; }
gone() { ! kill -0 "$1"; }
# refused CODE TEXT OPTION...: the service does not start, and says why.
refused() {
    local wanted=$1 text=$2 code
    shift 2
    timeout 20 "$proofd" "$@" >"$tmp/refusal" 2>&1
    code=$?
    ok "proofd $* ends with $wanted" [ "$code" -eq "$wanted" ]
    ok "proofd $* says '$text'" says "$tmp/refusal" "$text"
}
kill_engine() {
    local pid
    pid=$(engine)
    kill -9 "$pid"
    ok "a new engine after kill -9 while $1" wait_for 40 engine_is_new "$pid"
}

mkdir "$tmp/params" "$mnt"

# ---- what it refuses ----
refused 2 "unknown option '--frobnicate'" --frobnicate
printf 'mount = /x\nfrobnicate = 1\n' >"$tmp/conf"
refused 2 "conf:2: unknown key 'frobnicate'" --config "$tmp/conf"
refused 2 "lies inside the mount" --mount "$mnt" --store "$mnt/store"
refused 2 "lies inside the mount" --check-config --mount "$mnt" --store "$mnt/store"
refused 2 "node 999: this machine has no such node; it has 0" --mount "$mnt" --store "$tmp/store" --nodes 999
refused 0 "in /nonexistent (no such directory): every job will be refused" --check-config --mount "$mnt" --store "$tmp/store" --params /nonexistent
refused 0 "no parameters that can be used in $tmp/params: every" --check-config --mount "$mnt" --store "$tmp/store" --params "$tmp/params"
refused 2 "/nonexistent/engine" --mount "$mnt" --store "$tmp/store" --engine /nonexistent/engine
refused 2 "option '--mount' needs a value" --mount --check-config
mkdir "$tmp/full"
: >"$tmp/full/there"
refused 2 "is not empty ('there' is in it)" --check-config --mount "$tmp/full" --store "$tmp/store"
refused 2 "is not empty ('there' is in it)" --mount "$tmp/full" --store "$tmp/store"
: >"$tmp/file"
refused 2 "$tmp/file" --mount "$mnt" --store "$tmp/file/store"
# What cannot start does not pass the check either, and neither leaves anything behind.
cannot() { # STATUS OF THE START, TEXT, OPTION...
    local status=$1 text=$2
    shift 2
    refused 2 "$text" --check-config "$@"
    refused "$status" "" "$@"
}
long=$(printf 'x%.0s' $(seq 256))
cannot 2 "a name of more than 255 bytes" --mount "$mnt" --store "$tmp/absent/$long"
cannot 2 "a name of more than 255 bytes" --mount "$tmp/absent2/$long" --store "$tmp/store"
ln -s "$tmp/nothing/at/all" "$tmp/dangling"
cannot 2 "a symbolic link to what is not there" --mount "$mnt" --store "$tmp/dangling"
cannot 2 "a symbolic link to what is not there" --mount "$tmp/dangling" --store "$tmp/store"
cannot 2 "/proc is of the kernel's own files" --mount "$mnt" --store /proc/proofd
cannot 2 "/sys is of the kernel's own files" --mount /sys/proofd --store "$tmp/store"
cannot 2 "engine program $tmp/file: Permission denied" --mount "$mnt" --store "$tmp/store" --engine "$tmp/file"
cannot 2 "not a directory" --mount "$tmp/file" --store "$tmp/store"
mkdir "$tmp/shop"
echo "a shopping list" >"$tmp/shop/store"
cannot 2 "not a job store of this version" --mount "$mnt" --store "$tmp/shop"
cannot 2 "this machine has no CPU" --mount "$mnt" --store "$tmp/store" --nodes cpus:0-4000
rm -rf "$tmp/absent" "$tmp/absent2" "$tmp/store"
ok "nothing is mounted after refusals" eval "! mountpoint -q '$mnt'"

# ---- readiness, a second service, no parameters ----
"$build/tests/system/notify_listen" "$tmp/notify" READY=1 >"$tmp/notified" &
listener=$!
wait_for 5 says "$tmp/notified" listening
NOTIFY_SOCKET=$tmp/notify start
ok "READY=1 reaches the service manager" wait "$listener"
ok "the mount answers when it is ready" [ -d "$mnt/jobs" ]
ok "the log says that there are no parameters" wait_for 5 says "$tmp/log" "no parameters found"
ok "and where it looked" says "$tmp/log" "looked_in=$tmp/params"
refused 1 "$tmp/store" --mount "$tmp/other" --store "$tmp/store"
refused 1 "$mnt" --mount "$mnt" --store "$tmp/store2"
ok "the first service does not mind" [ -d "$mnt/jobs" ]
refused 0 "no parameters that can be used in $tmp/params: every" --check-config --mount "$mnt" --store "$tmp/store" --params "$tmp/params"
ok "cp without parameters fails" eval "! cp '$vectors/2KiB-sealed/c1.json' '$mnt/jobs/a'"
ok "and NAME.error names the directory" says "$mnt/jobs/a.error" "$tmp/params"
ok "the engine comes up" wait_for 20 has_engine
ok "log_level is read" says "$mnt/log_level" info
ok "log_level is written" eval "echo debug >'$mnt/log_level' && grep -qx debug '$mnt/log_level'"
ok "a level that is none is refused" eval "! echo loud >'$mnt/log_level'"
echo info >"$mnt/log_level"
ok "metrics say that the engine is up" says "$mnt/metrics" 'proofd_engine_up{node="0"} 1'
ok "proofd.8 names the metrics there are" diff <(sed -nE 's/^# TYPE ([a-z_]+) .*/\1/p' "$mnt/metrics" | sort) \
    <(grep -oE '^\.It Ic proofd_.*' doc/man/proofd.8 | grep -oE 'proofd_[a-z_]+' | sort)
ok "the engine is no program to start by hand" eval "! '$build/proofd-engine' --node 0 3>&-"
echo "idle: front $(awk '/VmRSS/ {print $2}' "/proc/$front/status") kB, engine $(awk '/VmRSS/ {print $2}' "/proc/$(engine)/status") kB resident"

# ---- a signal that stops nothing
kill -HUP "$front"
ok "SIGHUP has options read again" wait_for 5 says "$tmp/log" "SIGHUP: options read again"
ok "and stops nothing" kill -0 "$front"

# ---- an idle engine that is killed, a front that is killed, a clean stop ----
kill_engine idle
pid=$(engine)
kill -9 "$front"
wait "$front" 2>/dev/null
ok "no engine survives kill -9 of the front" wait_for 5 gone "$pid"
start
ok "the dead mount is replaced" says "$mnt/status" "proofd"
wait_for 20 has_engine
pid=$(engine)
ok "a file of a temporary name" cp "$vectors/2KiB-sealed/c1.json" "$mnt/jobs/t.part"
ok "SIGTERM: exit status 0" stop
ok "SIGTERM: the mount is gone" eval "! mountpoint -q '$mnt'"
ok "SIGTERM: the engine is gone" wait_for 5 gone "$pid"
umask 022
"$proofd" --mount "$tmp/new/a/mnt" --store "$tmp/new/b/store" --params "$tmp/params" 2>>"$tmp/log" &
front=$!
ok "what is missing above mount and store is made" wait_for 20 [ -d "$tmp/new/a/mnt/jobs" ]
ok "and the store is its user's alone" [ "$(stat -c %a "$tmp/new/b" "$tmp/new/b/store" | tr '\n' ' ')" = "755 700 " ]
ok "SIGTERM there, too" stop
start
ok "it is gone after a restart" [ ! -e "$mnt/jobs/t.part" ]
ok "as the log says" grep -q 'files that were no jobs .* files=1$' "$tmp/log"
fusermount3 -u "$mnt"
ok "umount from outside ends the service" wait_for 10 gone "$front"
wait "$front" 2>/dev/null
front=

# ---- an engine program that goes away while the service runs, and comes back ----
cp "$build/proofd-engine" "$tmp/engine"
start --engine "$tmp/engine"
ok "an engine of another place" wait_for 20 has_engine
pid=$(engine)
mv "$tmp/engine" "$tmp/engine.away"
kill -9 "$pid"
ok "without its program: the log says so" wait_for 20 grep -qE "<3>.*$tmp/engine: cannot be started: No such file" "$tmp/log"
ok "the mount answers" says "$mnt/status" "proofd"
mv "$tmp/engine.away" "$tmp/engine"
ok "an engine again" wait_for 60 engine_is_new "$pid"
if command -v prlimit >/dev/null; then
    pid=$(engine)
    prlimit --pid "$front" --nofile=3:1024
    kill -9 "$pid"
    ok "no descriptor for its socket: the log names the limit" wait_for 20 \
        grep -q '<3>.*msg="engine is killed" why=".* the limit of open files is 3 ' "$tmp/log"
    prlimit --pid "$front" --nofile=1024:1024
    ok "an engine when there are some" wait_for 60 engine_is_new "$pid"
fi
ok "SIGTERM after that" stop

if [ -n "${PROOFD_QUICK:-}" ]; then
    echo "SKIP  proofd: a job through kills and stops (left out by PROOFD_QUICK)"
    echo "$passed passed, $failed failed, 1 skipped"
    [ "$failed" -eq 0 ]
    exit
fi

# ---- one job through everything ----
ok "setup" "$build/proofctl" setup --params "$params" 2KiB
refused 0 "warning: memory: an engine may use 0.0 GiB, a sector of 2KiB needs more than" --check-config --memory 1M \
    --mount "$mnt" --store "$tmp/store" --params "$params"
ln "$params"/* "$tmp/params/" 2>/dev/null || cp "$params"/* "$tmp/params/"
start
begun=$SECONDS
ok "cp" cp "$vectors/2KiB-sealed/c1.json" "$mnt/jobs/job"
ok "the log says insecure development parameters" says "$tmp/log" "insecure development parameters"
# Synthesis takes milliseconds: test_kill.sh hits that state, on an engine that takes its time.
ok "proving" wait_for 300 state_is job proving
kill_engine proving
ok "proving again" wait_for 300 state_is job proving
pid=$(engine)
before=$SECONDS
ok "SIGTERM in the middle of a proof: exit status 0" stop
ok "within seconds" [ $((SECONDS - before)) -le 30 ]
ok "and without the engine" wait_for 5 gone "$pid"
start
ok "the job is resumed" wait_for 60 state_is job proving
kill -9 "$front"
wait "$front" 2>/dev/null
# Parameters that have gone away since the job was accepted are waited for.
mv "$tmp/params" "$tmp/away"
start
ok "it waits for parameters" wait_for 60 says "$mnt/status" "2KiB: jobs wait for parameters"
ok "and the job says so" says "$mnt/jobs/job.status" "waiting for parameters"
mv "$tmp/away" "$tmp/params"
ok "done in the end" wait_for 900 state_is job done
ok "with a proof" wait_for 10 [ -s "$mnt/jobs/job.proof" ]
ok "that is valid" "$build/proofctl" verify --params "$params" "$vectors/2KiB-sealed/c1.json" "$mnt/jobs/job.proof"
ok "the report says insecure development parameters" says "$mnt/jobs/job.report" "insecure development parameters"
echo "one job through two engine kills, a stop, a front kill and missing parameters: $((SECONDS - begun)) s"
echo "after a proof: front $(awk '/VmRSS/ {print $2}' "/proc/$front/status") kB, engine $(awk '/VmRSS/ {print $2}' "/proc/$(engine)/status") kB resident, at most $(awk '/VmHWM/ {print $2}' "/proc/$(engine)/status") kB"

# ---- cancelled while it is proved: the engine lives on ----
ok "cp of another" cp "$vectors/2KiB-sparse/bare.json.zst" "$mnt/jobs/other"
ok "proving the other" wait_for 300 state_is other proving
pid=$(engine)
ok "rm" rm "$mnt/jobs/other"
ok "no status after rm" [ ! -e "$mnt/jobs/other.status" ]
ok "the engine lives" kill -0 "$pid"

# ---- a partition that kills its engines ----
ok "cp of a third" cp "$vectors/2KiB-v1/bare.json.zst" "$mnt/jobs/third"
for _ in 1 2 3; do
    wait_for 100 state_is third proving
    kill_engine "it has the third"
done
ok "fails after three engines" wait_for 60 state_is third failed
ok "and says why" says "$mnt/jobs/third.error" "given up after 3 tries"
ok "SIGTERM" stop
ok "no fault was logged but those made here" eval "! grep -E '<3>' '$tmp/log' | grep -vE 'engine ended|engine is killed|waiting for parameters|given up after|cannot start'"
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ]
