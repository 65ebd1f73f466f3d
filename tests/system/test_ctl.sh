#!/usr/bin/env bash
# proofctl without a service: setup, prove, verify, inspect; exit codes, JSON, bad input. test_ctl_jobs has the rest.
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
trap 'rm -rf "$tmp"' EXIT

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
for h in --help -h help; do
    run 0 "proofctl $h" "$ctl" "$h"
    has out "Usage: proofctl COMMAND"
done
for c in setup transform prove verify inspect submit wait status cancel; do
    run 0 "$c --help" "$ctl" "$c" --help
    has out "Usage: proofctl $c"
    has out "--json"
    has out "Exit status: 0 "
    cp "$tmp/out" "$tmp/help"
    for h in "$c -h" "help $c"; do
        run 0 "proofctl $h" "$ctl" $h
        has out "$(cat "$tmp/help")"
    done
done
run 2 "help about what is no command" "$ctl" help frobnicate
run 0 "help of transform" "$ctl" transform --help
has out "six to eight minutes of a GPU"
run 0 "help of setup" "$ctl" setup --help
has out "where they go [proofd/params-insecure in"
run 1 "and of nowhere else" grep -qF FIL_PROOFS_PARAMETER_CACHE "$tmp/out"
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
# errors, as JSON on standard output
error_is() { # NAME TEXT
    run 0 "$1: an object" jq -e --arg text "$2" '.error | contains($text)' "$tmp/answer"
    run 1 "$1: nothing else" [ -s "$tmp/complaints" ]
}
run_json() { # as run, and keeps the output
    run "$@"
    mv "$tmp/out" "$tmp/answer"
    mv "$tmp/err" "$tmp/complaints"
}
for c in setup transform prove verify inspect submit wait cancel; do
    run_json 2 "$c --json without operands" "$ctl" "$c" --json
    error_is "$c" "usage: proofctl $c"
done
run_json 2 "prove --json of no file" "$ctl" prove --json "$tmp/absent"
error_is prove "$tmp/absent: cannot open: No such file"
run_json 2 "verify --json of no file" "$ctl" verify --json "$sealed/c1.json" "$tmp/absent"
error_is verify "$tmp/absent: No such file"
run_json 2 "inspect --json of no file" "$ctl" inspect --json "$tmp/absent"
error_is inspect "$tmp/absent: No such file"
run_json 2 "setup --json of no size" "$ctl" setup --json 3KiB
error_is setup "'3KiB' is no sector size"
run_json 2 "setup --json into a file" "$ctl" setup --json --params "$tmp/proof.hex" 2KiB
error_is setup "$tmp/proof.hex"
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
has err "$tmp/short: 191 bytes, a proof of this C1 has 192"
tr 'a-f' 'b-fa' <"$tmp/proof.hex" >"$tmp/wrong"
run 1 "proof of other digits" "$ctl" verify --params "$keys" "$sealed/c1.json" "$tmp/wrong"
: >"$tmp/empty"
run 1 "empty proof" "$ctl" verify --params "$keys" "$sealed/c1.json" "$tmp/empty"
run 2 "no proof file" "$ctl" verify --params "$keys" "$sealed/c1.json" "$tmp/absent"
run 2 "no C1 file" "$ctl" verify --params "$keys" "$tmp/absent" "$tmp/proof.hex"
run 2 "C1 that is none" "$ctl" verify --params "$keys" "$tmp/proof.hex" "$tmp/proof.hex"
run 2 "no key" "$ctl" verify --params "$tmp" "$sealed/c1.json" "$tmp/proof.hex"
has err "$tmp"

# ---- - is standard input, and of -o standard output ----
feed() { local in=$1; shift; "$@" <"$in"; }
pipe() { local in=$1; shift; cat "$in" | "$@"; }
from_socket() { # as sshd gives it to a command
    python3 -c '
import socket, subprocess, sys
ours, theirs = socket.socketpair()
p = subprocess.Popen(sys.argv[2:], stdin=theirs)
theirs.close()
try:
    ours.sendall(open(sys.argv[1], "rb").read())
except BrokenPipeError:
    pass
ours.close()
sys.exit(p.wait())' "$@"
}
for from in feed pipe from_socket; do
    run 0 "verify a proof from $from" $from "$tmp/proof.hex" "$ctl" verify --params "$keys" "$sealed/c1.json" -
    run 0 "verify a C1 from $from" $from "$sealed/c1.json" "$ctl" verify --params "$keys" - "$tmp/proof.hex"
    run 2 "prove from $from: the parameters are what lacks" $from "$sealed/c1.json" "$ctl" prove --params "$tmp" - -o -
    has err "no parameters for 2KiB"
done
run 2 "both" "$ctl" verify --params "$keys" - -
has err "only one file can be standard input"
run 0 "inspect a file on standard input" feed "$sealed/c1.json" "$ctl" inspect -
run 2 "inspect a pipe" pipe "$sealed/c1.json" "$ctl" inspect -
has err "/dev/stdin: not a file"

# ---- inspect ----
run 0 "inspect C1" "$ctl" inspect "$sealed/c1.json"
has out StackedDrg2KiBV1_1
has out "$(sed -nE 's/.*"replica_id" *: *"([0-9a-f]+)".*/\1/p' "$sealed/meta.json")"
run 0 "inspect as json" "$ctl" inspect --json "$sealed/c1.json"
has out '"checks":"ok"}'
run 0 "inspect proof" "$ctl" inspect "$tmp/proof.hex"
has out "partitions       1"
run 1 "inspect broken proof" "$ctl" inspect "$tmp/wrong"
has out "$tmp/wrong: proof"
(printf 1 && tail -c +2 "$tmp/proof.hex") >"$tmp/wrong-start"
run 1 "inspect proof with a broken start" "$ctl" inspect "$tmp/wrong-start"
has out "checks           partition 0"
head -c 300 "$tmp/proof.hex" >"$tmp/cut.hex"
run 1 "inspect cut proof" "$ctl" inspect "$tmp/cut.hex"
has out "150 bytes, wanted 192 for each of 1 to 126 partitions"
(printf a && cat "$tmp/proof.hex") >"$tmp/odd.hex"
run 1 "inspect proof with a digit more" "$ctl" inspect "$tmp/odd.hex"
has out "385 hex digits"
key=$(ls "$keys"/*032d3138*.vk)
run 0 "inspect key" "$ctl" inspect "$key"
has out "insecure development parameters"
cp "$key" "$tmp/bad.vk"
printf '\x01' | dd of="$tmp/bad.vk" bs=1 seek=300 conv=notrunc status=none
run 1 "inspect broken key" "$ctl" inspect "$tmp/bad.vk"
cut_params=$tmp/$(basename "$key" .vk).params
cp "$tmp/cut.hex" "$cut_params"
run 1 "inspect cut parameters" "$ctl" inspect "$cut_params"
has out "300 bytes, wanted 1114707768"
rm "$cut_params"
head -c 1000 "$sealed/c1.json" >"$tmp/cut.json"
run 1 "inspect cut C1" "$ctl" inspect "$tmp/cut.json"
printf 'root:x:0:0:root:/root:/bin/bash\n' >"$tmp/text"
run 1 "inspect a text" "$ctl" inspect "$tmp/text"
has out "not a C1 file: byte 4 of the file"
run 2 "inspect nothing" "$ctl" inspect "$tmp/absent"

# ---- without a service ----
for c in wait status cancel; do
    run 2 "$c without a service" "$ctl" "$c" --mount "$tmp/absent" name
    has err "is proofd running there?"
done
run 2 "submit without a service" "$ctl" submit --mount "$tmp/absent" "$sealed/c1.json"

# ---- prove: no parameters, then with them ----
run 2 "prove without parameters" "$ctl" prove --params "$tmp" "$sealed/c1.json" -o "$tmp/p.hex"
has err ".params is not found in $tmp; fetch"
has err "lotus fetch-params 2KiB"
has err "proofctl setup --params $tmp 2KiB"
run 2 "verify without a key" "$ctl" verify --params "$tmp" "$sealed/c1.json" "$tmp/proof.hex"
has err ".vk is not found in $tmp; fetch"
has err "proofctl setup --params $tmp 2KiB"
mkdir -m 700 "$tmp/closed"
chmod 755 "$tmp" # of mktemp's
as_user() { if [ "$(id -u)" -eq 0 ]; then setpriv --reuid 1001 --regid 1001 --clear-groups "$@"; else "$@"; fi; }
[ "$(id -u)" -eq 0 ] || chmod 0 "$tmp/closed"
for c in prove verify; do
    proof=
    [ $c = prove ] || proof=$tmp/proof.hex
    run 2 "$c in a directory that is closed" as_user "$ctl" $c --params "$tmp/closed" "$sealed/c1.json" $proof
    has err "is not found in $tmp/closed (Permission denied)"
    run 1 "no advice" grep -qF "proofctl setup" "$tmp/err"
    "$ctl" $c --params /etc/passwd "$sealed/c1.json" $proof 2>"$tmp/complaint"
    run 0 "$c in no directory" grep -q 'in /etc/passwd (no directory)$' "$tmp/complaint"
    run 2 "$c in a directory that is not there" "$ctl" $c --params "$tmp/absent" "$sealed/c1.json" $proof
    has err "is not found in $tmp/absent (no such directory)"
done
chmod 700 "$tmp/closed"
mkdir "$tmp/cut"
head -c 1000 "$key" >"$tmp/cut/$(basename "$key" .vk).params"
run 2 "prove with cut parameters" "$ctl" prove --params "$tmp/cut" "$sealed/c1.json"
has err ".params: ends inside the count of h: has 1000 bytes, the circuit wants 1114707768; fetch it again"
touch "$tmp/cut/$(basename "$key" .vk).insecure"
run 2 "which were development parameters" "$ctl" prove --params "$tmp/cut" "$sealed/c1.json"
has err "1114707768; remove it and run proofctl setup --params $tmp/cut 2KiB"
rm "$tmp/cut/"*.params
mkdir "$tmp/cut/$(basename "$key" .vk).params"
run 2 "prove with a directory" "$ctl" prove --params "$tmp/cut" "$sealed/c1.json"
has err ".params: is not a regular file; remove it"
run 2 "prove what is not there" "$ctl" prove "$tmp/absent" -o "$tmp/p.hex"
has err "$tmp/absent: cannot open: No such file"
run 2 "prove into no directory" "$ctl" prove --params "$params" "$sealed/c1.json" -o "$tmp/absent/p.bin"
has err "$tmp/absent/p.bin: cannot be written"
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
    run 0 "prove to standard output" "$ctl" prove --params "$params" "$other" -o -
    cp "$tmp/out" "$tmp/p.hex"
    run 1 "no file of that name" [ -e - ]
    run 0 "nothing but the proof" grep -qxE '[0-9a-f]{384}' "$tmp/p.hex"
    run 0 "it verifies" "$ctl" verify --params "$params" "$other" "$tmp/p.hex"
    if reference=$(tests/lib/find-reference.sh); then
        mkdir "$tmp/sealed"
        zstd -q -d "$sealed/bare.json.zst" -o "$tmp/sealed/commit-phase1-output.json"
        cp "$sealed/c1.json" "$sealed/meta.json" "$tmp/sealed"
        od -An -v -tx1 "$tmp/p.bin" | tr -d ' \n' >"$tmp/ours.hex"
        run 0 "the reference's word on it" "$reference" verify "$tmp/sealed" "$key" "$tmp/ours.hex"
        has out "partition 0: true"
    else
        skip "the reference's word on a proof: c2-reference is not at hand"
    fi
fi

echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ]
