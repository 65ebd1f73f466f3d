# Sourced by the tests of this directory: a service of its own on a mount of its own, and checks that count.
#
#   expect WHAT COMMAND...     the command succeeds
#   refuse WHAT COMMAND...     the command fails
#   same WHAT FOUND WANTED     two texts are equal
#   skip WHAT WHY              counted and said
#   finish                     the closing line; exit status
#   wait_for SECONDS COMMAND   tries again until it succeeds; a limit ends what hangs, nothing has to meet it
#   opened PID FILE            waits until the process has it open
#   watching FILE              waits until inotifywait, whose messages it has, watches
#   parked N                   waits until N requests are pending in the mount
#   start [OPTION...]          starts proofd and waits until the mount answers; restart: after a kill or a stop
#   stop                       ends it in good order
#   c1 NAME                    path of a C1 file (bare JSON) made of tests/vectors/c1/NAME
#   learn NAME                 lets the fake engine prove it; delays SYNTHESIS_MS PROVING_MS sets how slowly, and lets go of what waits longer
#   ends NAME STATE [SECONDS]  job NAME comes to that state
#
# $jobs is the directory of jobs, $work a scratch directory, $mnt the mount, $store the store; $cpu and $other_cpu are
# CPUs that may be used, the same one where there is no other. Everything goes when the test ends, whatever way it ends.
# The engine is tests/system/fake_engine.c unless real_engine is called first.

set -u
[ ! -x /usr/bin/python3 ] || PATH=/usr/bin:$PATH # Debian's, as in tests/grpc: a version manager's shim takes many times as long
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
cd "$root" || exit 2
build=$(cd "${BUILD:-build}" && pwd) || exit 2
proofd=$build/proofd proofctl=$build/proofctl probe=$build/tests/system/probe fake=$build/tests/system/fake_engine
ours=$(awk '/^Cpus_allowed_list/ { print $2 }' /proc/self/status) # as 0-1 or 3 or 0,2-3
cpu=${ours%%[-,]*} other_cpu=${ours##*[-,]}
vectors=$root/tests/vectors/c1
passed=0 failed=0 skipped=0
engine=$fake
front= log=
work=$(mktemp -d "${TMPDIR:-/tmp}/proofd-test.XXXXXX")
mnt=$work/mnt store=$work/store jobs=$mnt/jobs
connections=/sys/fs/fuse/connections
[ -n "$(ls $connections 2>/dev/null)" ] || mount -t fusectl none $connections 2>/dev/null
export FAKE_ENGINE_DIR=$work/known
mkdir "$FAKE_ENGINE_DIR"
echo "0 0" >"$FAKE_ENGINE_DIR/delays"

detach() {
    umount -l "$mnt" 2>/dev/null || fusermount3 -uz "$mnt" 2>/dev/null
}

clean_up() {
    local pid
    for pid in $(jobs -p); do kill -KILL "$pid" 2>/dev/null; done
    [ -z "$front" ] || kill -KILL "$front" 2>/dev/null
    detach
    wait 2>/dev/null
    while grep -q " $mnt fuse" /proc/mounts; do detach || break; done
    if [ "$failed" -gt 0 ] && [ -n "$log" ]; then
        echo "--- the end of the log"
        tail -n 20 "$log"
    fi
    rm -rf --one-file-system "$work"
}
trap clean_up EXIT
trap 'exit 130' INT TERM

lacks() { # the reason, as the last line
    echo "$1"
    exit 77
}

[ -c /dev/fuse ] || lacks "no /dev/fuse"
[ -w /dev/fuse ] || lacks "/dev/fuse is not open to this user"
[ "$(id -u)" -eq 0 ] || command -v fusermount3 >/dev/null || lacks "no fusermount3 for an ordinary user"
# CAP_SYS_ADMIN is bit 21.
[ "$(id -u)" -ne 0 ] || [ $((0x$(awk '/^CapEff/ { print $2 }' /proc/self/status) >> 21 & 1)) -eq 1 ] ||
    lacks "the right to mount (CAP_SYS_ADMIN)"
# Who proves nothing sets needs_params=no before this is sourced.
[ "${needs_params:-yes}" = no ] && params=$work/params && mkdir "$params" ||
    params=$(tests/lib/dev-params.sh 2>"$work/setup") || { cat "$work/setup"; echo "cannot make the 2 KiB parameters"; exit 1; }

# ---- checks ----

pass() { passed=$((passed + 1)); }

fail() {
    failed=$((failed + 1))
    echo "FAILED $1"
}

expect() {
    local what=$1
    shift
    if "$@" >"$work/out" 2>&1; then pass; else
        fail "$what: $*: status $?"
        head -n 5 "$work/out"
    fi
}

refuse() {
    local what=$1
    shift
    if "$@" >"$work/out" 2>&1; then fail "$what: $*: succeeded"; else pass; fi
}

same() {
    if [ "$2" = "$3" ]; then pass; else fail "$1: found '$2', wanted '$3'"; fi
}

like() { # what found extended-regex
    if [[ $2 =~ $3 ]]; then pass; else fail "$1: found '$2', wanted /$3/"; fi
}

skip() {
    skipped=$((skipped + 1))
    echo "SKIP  $1: $2"
}

finish() {
    echo "$passed passed, $failed failed, $skipped skipped"
    [ "$failed" -eq 0 ]
    exit
}

# A slow build (PROOFD_QUICK) is given four times as long, and a test may ask for more patience.
wait_for() {
    local until=$((${EPOCHREALTIME//[.,]/} + $1 * ${PROOFD_QUICK:+4 *} ${patience:-3} * 1000000))
    shift
    until "$@" 2>/dev/null; do
        [ "${EPOCHREALTIME//[.,]/}" -lt "$until" ] || return 1
        sleep 0.02
    done
}

has_open() { ls -l "/proc/$1/fd" | grep -qF -- " -> $2"; }

opened() { wait_for 30 has_open "$@"; }

watching() { wait_for 30 grep -q established "$1"; }

pending() { # requests that the kernel waits for
    local dev
    dev=$(mountpoint -d "$mnt") && cat "$connections/${dev#*:}/waiting"
}

pending_are() { [ "$(pending)" -ge "$1" ]; }

# Without the kernel's word they are given a moment.
parked() {
    if [ -n "$(ls "$connections")" ]; then wait_for 20 pending_are "$1"; else sleep 0.5; fi
}

# ---- the service ----

real_engine() { engine=$build/proofd-engine; }

answers() { [ -d "$jobs" ] && [ -e "$mnt/status" ]; }

answers_or_ended() { answers || ! kill -0 "$front" 2>/dev/null; }

restart() {
    log=$work/log
    "$proofd" --mount "$mnt" --store "$store" --params "$params" --engine "$engine" --device none --stop-wait 0 "$@" >>"$log" 2>&1 &
    front=$!
    wait_for 60 answers_or_ended
    answers
}

start() {
    restart "$@" || { cat "$log"; echo "the service does not start"; exit 1; }
}

stop() {
    local status
    kill -TERM "$front" && wait "$front"
    status=$?
    front=
    [ $status -eq 0 ]
}

kill_front() {
    kill -KILL "$front"
    wait "$front" 2>/dev/null
    front=
}

engine_pid() { pgrep -f "^$engine .*--params $params" -P "$(pgrep -P "$front" | head -n 1)"; }

# ---- jobs ----

c1() {
    local file=$work/c1-$1.json
    [ -e "$file" ] || zstd -q -d "$vectors/$1/bare.json.zst" -o "$file" || exit 2
    echo "$file"
}

learn() {
    local name
    for name; do
        "$fake" learn "$(c1 "$name")" "$vectors/$name/proof-r3-s5.txt" "$FAKE_ENGINE_DIR" || exit 2
    done
}

delays() { echo "$1 $2" >"$FAKE_ENGINE_DIR/delays.new" && mv "$FAKE_ENGINE_DIR/delays.new" "$FAKE_ENGINE_DIR/delays"; }

state() { local s _; read -r s _ <"$jobs/$1.status" 2>/dev/null && echo "$s"; }

in_state() { [ "$(state "$1")" = "$2" ]; }

# A job is done for a user when its proof is there, a little after its state.
has_ended() {
    case $2 in
    done) [ -e "$jobs/$1.proof" ] ;;
    failed) [ -e "$jobs/$1.error" ] ;;
    esac
}

ends() { wait_for "${3:-30}" has_ended "$1" "$2" && in_state "$1" "$2"; }

is_valid() { # C1 proof
    "$proofctl" verify --params "$params" "$1" "$2"
}

idle() { ! ls "$jobs" | grep -q .; }

remove_all() { # every job, and what refused files left
    local f
    for f in "$jobs"/*; do
        case $f in *.status | *.priority | *.report | *.proof | *.proof.bin) ;; *) rm -f "$f" ;; esac
    done
    wait_for 10 idle
}
