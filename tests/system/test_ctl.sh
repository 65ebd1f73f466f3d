#!/usr/bin/env bash
# proofctl: setup, prove, verify, inspect, and the commands for jobs; exit codes, JSON, bad input.
set -u
cd "$(dirname "$0")/../.." || exit 2
build=${BUILD:-build}
ctl=$PWD/$build/proofctl
case $build in /*) ctl=$build/proofctl ;; esac
vectors=$PWD/tests/vectors
keys=$vectors/vk
params=$(dirname "$ctl")/params
passed=0 failed=0 skipped=0
tmp=$(mktemp -d)
service=
cleanup() {
    [ -z "$service" ] || { kill "$service"; wait "$service"; } 2>/dev/null
    # Not mountpoint(1), which fails on a dead one.
    ! grep -qs " $tmp/mnt fuse" /proc/mounts || fusermount3 -uz "$tmp/mnt"
    rm -rf "$tmp"
}
trap cleanup EXIT

# run WANTED-EXIT-CODE NAME COMMAND...: output to $tmp/out and $tmp/err.
run() {
    local wanted=$1 name=$2 code
    shift 2
    "$@" >"$tmp/out" 2>"$tmp/err" </dev/null
    code=$?
    if [ "$code" -eq "$wanted" ]; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "FAILED: $name: exit $code, wanted $wanted"
        sed 's/^/    /' "$tmp/out" "$tmp/err"
    fi
}
# has FILE TEXT: the last run's output names something.
has() {
    if grep -qF -- "$2" "$tmp/$1"; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "FAILED: '$2' is not in $1:"
        sed 's/^/    /' "$tmp/$1"
    fi
}
skip() {
    skipped=$((skipped + 1))
    echo "SKIP  ctl: $*"
}

sealed=$vectors/c1/2KiB-sealed
# Compressed ones are read as they are.
other=$vectors/c1/2KiB-sparse/bare.json.zst
awk '{print $2}' "$sealed/proof-r3-s5.txt" >"$tmp/proof.hex"
printf "$(sed 's/../\\x&/g' "$tmp/proof.hex")" >"$tmp/proof.raw"

# ---- command line ----
run 0 help "$ctl" --help
for c in setup prove verify inspect submit wait status cancel; do
    run 0 "$c --help" "$ctl" "$c" --help
    has out "Usage: proofctl $c"
    has out "--json"
done
run 2 "no command" "$ctl"
run 2 "unknown command" "$ctl" frobnicate
has err "unknown command 'frobnicate'"
run 2 "unknown option" "$ctl" verify --mount x a b
has err "unknown option '--mount'"
run 2 "too few operands" "$ctl" verify a
run 2 "option without value" "$ctl" verify a b --params
run 2 "bad number" "$ctl" inspect --threads 0 "$tmp/proof.hex"
run 2 "size that is none" "$ctl" setup --params "$tmp/p" 3KiB
has err "'3KiB' is no sector size"
run 2 "prove without -o" "$ctl" prove "$sealed/c1.json"
# r and s come from the kernel's generator and from nowhere else.
run 2 "no option fixes r" "$ctl" prove --r 3 --s 5 "$sealed/c1.json" -o "$tmp/x"
run 1 "the programs know nothing of r and s" grep -rqE 'groth16_(assemble|sums)' daemon fuse

# ---- verify ----
run 0 "verify hex" "$ctl" verify --params "$keys" "$sealed/c1.json" "$tmp/proof.hex"
has out valid
run 0 "verify raw" "$ctl" verify --params "$keys" "$sealed/bare.json.zst" "$tmp/proof.raw"
run 0 "verify json" "$ctl" verify --json --params "$keys" "$sealed/c1.json" "$tmp/proof.hex"
has out '{"valid":true,"insecure":true,"reason":null}'
run 1 "proof of another sector" "$ctl" verify --params "$keys" "$other" "$tmp/proof.hex"
has out invalid
run 1 "invalid as json" "$ctl" verify --json --params "$keys" "$other" "$tmp/proof.hex"
has out '"valid":false'
head -c 191 "$tmp/proof.raw" >"$tmp/short"
run 1 "short proof" "$ctl" verify --params "$keys" "$sealed/c1.json" "$tmp/short"
has err "191 bytes"
tr 'a-f' 'b-fa' <"$tmp/proof.hex" >"$tmp/wrong"
run 1 "proof of other digits" "$ctl" verify --params "$keys" "$sealed/c1.json" "$tmp/wrong"
: >"$tmp/empty"
run 1 "empty proof" "$ctl" verify --params "$keys" "$sealed/c1.json" "$tmp/empty"
run 2 "no proof file" "$ctl" verify --params "$keys" "$sealed/c1.json" "$tmp/absent"
run 2 "no C1 file" "$ctl" verify --params "$keys" "$tmp/absent" "$tmp/proof.hex"
run 2 "C1 that is none" "$ctl" verify --params "$keys" "$tmp/proof.hex" "$tmp/proof.hex"
run 2 "no key" "$ctl" verify --params "$tmp" "$sealed/c1.json" "$tmp/proof.hex"
has err "$tmp"

# ---- inspect ----
run 0 "inspect C1" "$ctl" inspect "$sealed/c1.json"
has out StackedDrg2KiBV1_1
has out "$(sed -nE 's/.*"replica_id" *: *"([0-9a-f]+)".*/\1/p' "$sealed/meta.json")"
run 0 "inspect as json" "$ctl" inspect --json "$sealed/c1.json"
has out '"checks":"ok"}'
run 0 "inspect proof" "$ctl" inspect "$tmp/proof.hex"
has out "partitions       1"
run 1 "inspect broken proof" "$ctl" inspect "$tmp/wrong"
key=$(ls "$keys"/*032d3138*.vk)
run 0 "inspect key" "$ctl" inspect "$key"
has out "insecure development parameters"
cp "$key" "$tmp/bad.vk"
printf '\x01' | dd of="$tmp/bad.vk" bs=1 seek=300 conv=notrunc status=none
run 1 "inspect broken key" "$ctl" inspect "$tmp/bad.vk"
head -c 1000 "$sealed/c1.json" >"$tmp/cut.json"
run 1 "inspect cut C1" "$ctl" inspect "$tmp/cut.json"
run 2 "inspect nothing" "$ctl" inspect "$tmp/absent"

# ---- without a service ----
for c in wait status cancel; do
    run 2 "$c without a service" "$ctl" "$c" --mount "$tmp/absent" name
    has err "is proofd running there?"
done
run 2 "submit without a service" "$ctl" submit --mount "$tmp/absent" "$sealed/c1.json"

# ---- prove: no parameters, then with them ----
run 1 "prove without parameters" "$ctl" prove --params "$tmp" "$sealed/c1.json" -o "$tmp/p.hex"
has err "$tmp"
run 1 "prove what is no C1" "$ctl" prove --params "$tmp" "$tmp/proof.hex" -o "$tmp/p.hex"
if [ -n "${PROOFD_QUICK:-}" ]; then
    skip "a proof and a job from end to end (left out by PROOFD_QUICK)"
else
    run 0 "setup" "$ctl" setup --params "$params" 2KiB
    run 0 "setup again" "$ctl" setup --json --params "$params" 2KiB
    has out '"made":false,"insecure":true'
    run 0 "prove to raw bytes" "$ctl" prove --json --params "$params" "$sealed/c1.json" -o "$tmp/p.bin"
    has out '"insecure":true'
    has err "insecure development parameters"
    has out "\"proof\":\"$(od -An -v -tx1 "$tmp/p.bin" | tr -d ' \n')\""
    run 0 "raw proof has 192 bytes" [ "$(stat -c %s "$tmp/p.bin")" -eq 192 ]
    run 0 "raw proof verifies" "$ctl" verify --params "$params" "$sealed/c1.json" "$tmp/p.bin"
    run 1 "not for another sector" "$ctl" verify --params "$params" "$other" "$tmp/p.bin"
    run 1 "prove into no directory" "$ctl" prove --params "$params" "$tmp/cut.json" -o "$tmp/absent/p.bin"
fi

# ---- jobs ----
if [ -n "${PROOFD_QUICK:-}" ]; then
    :
elif [ ! -w /dev/fuse ] || ! command -v fusermount3 >/dev/null; then
    skip "jobs through a mount (this machine lacks a usable /dev/fuse or fusermount3)"
else
    mkdir "$tmp/mnt"
    "$(dirname "$ctl")/proofd" --mount "$tmp/mnt" --store "$tmp/store" --params "$params" 2>"$tmp/log" &
    service=$!
    for _ in $(seq 200); do [ -d "$tmp/mnt/jobs" ] && break; sleep 0.1; done
    : >"$tmp/nothing"
    run 1 "submit an empty file" "$ctl" submit --mount "$tmp/mnt" "$tmp/nothing"
    has err "the file is empty"
    run 1 "submit what is no C1" "$ctl" submit --mount "$tmp/mnt" "$tmp/cut.json"
    has err "cut.json: refused:"
    run 0 "submit" "$ctl" submit --mount "$tmp/mnt" --name one "$sealed/c1.json"
    has out "one: "
    run 1 "submit to a name in use" "$ctl" submit --mount "$tmp/mnt" --name one "$other"
    "$ctl" submit --mount "$tmp/mnt" --name two - <"$other" >/dev/null 2>&1
    run 0 "status of jobs" "$ctl" status --mount "$tmp/mnt" --json one two
    has out '{"name":"one","state":"'
    has out '{"name":"two","state":"queued"'
    run 0 "status of all" "$ctl" status --mount "$tmp/mnt" --json
    has out '{"name":"two"'
    run 0 "status of the service" "$ctl" status --mount "$tmp/mnt"
    has out "insecure development parameters"
    run 2 "status of no job" "$ctl" status --mount "$tmp/mnt" three
    has err "three: no such job"
    run 0 "cancel" "$ctl" cancel --mount "$tmp/mnt" two
    run 2 "cancel again" "$ctl" cancel --mount "$tmp/mnt" two
    run 2 "wait for no job" "$ctl" wait --mount "$tmp/mnt" three
    run 2 "a name with a slash" "$ctl" wait --mount "$tmp/mnt" a/b
    run 0 "wait" timeout 600 "$ctl" wait --mount "$tmp/mnt" one # sleeps, and does not spin
    has out "one: done"
    run 0 "the job's proof" "$ctl" verify --params "$params" "$sealed/c1.json" "$tmp/mnt/jobs/one.proof"
    run 1 "cancel what is done" "$ctl" cancel --mount "$tmp/mnt" one
    has err "has ended already"
    # The same content is proved already: done at once, and waited for all the same.
    run 0 "submit and wait" timeout 60 "$ctl" submit --wait --mount "$tmp/mnt" --name again "$sealed/bare.json.zst"
    has out "again: done"
    kill "$service"
    run 0 "the service stops cleanly" wait "$service"
    service=
fi
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ]
