#!/usr/bin/env bash
# The 2 KiB development parameters are the reference's, byte for byte, and stay whole whatever happens while they are made.
set -u
cd "$(dirname "$0")/../.." || exit 2
build=${BUILD:-build}
make_params=$build/tests/system/make_params ctl=$build/proofctl
passed=0 failed=0
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

check() { # what command...
    local what=$1
    shift
    if "$@"; then passed=$((passed + 1)); else failed=$((failed + 1)); echo "FAILED: $what"; fi
}
wanted() { sed -nE "s/.*\"$1\": \"?([^\",]*)\"?,?/\1/p" tests/vectors/params/2KiB.json; }
digest() { b2sum "$1" | cut -d ' ' -f 1; }
equal() { [ "$1" = "$2" ] || { echo "  '$1' is not '$2'"; return 1; }; }
absent() { ! ls "$work/"$1 >/dev/null 2>&1; }

params=$(tests/lib/dev-params.sh) || { echo "cannot make the 2 KiB parameters"; exit 1; }
name=$(wanted params)
name=$params/${name%.params}
check "length of .params" equal "$(stat -c %s "$name.params")" "$(wanted params_bytes)"
check "BLAKE2b of .params" equal "$(digest "$name.params")" "$(wanted params_blake2b512)"
check "BLAKE2b of .vk" equal "$(digest "$name.vk")" "$(wanted vk_blake2b512)"
check ".vk is the head of .params" cmp -s -n "$(wanted vk_bytes)" "$name.vk" "$name.params"
check ".meta" equal "$(cat "$name.meta")" '{"sector_size":2048}'
check "the marker warns" grep -q '^INSECURE' "$name.insecure"

# Once more: nothing is made again.
before=$(stat -c '%i %Y' "$name.params")
check "a second setup says so" grep -q 'there already' <<<"$("$make_params" 2KiB "$params")"
check "and keeps the file" equal "$(stat -c '%i %Y' "$name.params")" "$before"

# A file that was cut is said to be, and made anew.
mkdir "$work/cut"
cp "${name}".{vk,meta,insecure} "$work/cut/"
head -c 100000 "$name.params" >"$work/cut/$(basename "$name").params"
check "a cut file is made anew" grep -q '^2KiB: insecure development parameters made in' \
    <<<"$(XDG_CACHE_HOME=$work/cache "$ctl" setup --params "$work/cut" 2KiB 2>"$work/err")"
check "and told" grep -q 'has 100000 bytes, the circuit wants 1114707768: made anew' "$work/err"
check "to the same bytes" cmp -s "$name.params" "$work/cut/$(basename "$name").params"
rm -r "$work/cut"

# Killed on the way: the marker may be there, never a .params that is not whole.
"$make_params" 2KiB "$work/killed" >/dev/null 2>&1 &
setup=$!
for _ in $(seq 600); do
    ls "$work/killed/"*.params.tmp >/dev/null 2>&1 && break
    sleep 0.1
done
check "it was under way" test -n "$(ls "$work/killed/" 2>/dev/null)"
check "one at a time" grep -q 'another process is writing it' <<<"$("$make_params" 2KiB "$work/killed" 2>&1)"
kill -9 "$setup"
wait "$setup" 2>/dev/null
check "no .params after a kill" absent 'killed/*.params'
check "no .vk after a kill" absent 'killed/*.vk'
check "the marker came first" test -n "$(ls "$work/killed/"*.insecure)"

# Interrupted, as by Ctrl-C, while it writes: its file goes with it.
XDG_CACHE_HOME=$work/cache "$ctl" setup --params "$work/interrupted" 2KiB >"$work/out" 2>&1 &
setup=$!
for _ in $(seq 600); do
    ls "$work/interrupted/"*.params.tmp >/dev/null 2>&1 && break
    sleep 0.1
done
check "it is being written" test -n "$(ls "$work/interrupted/"*.params.tmp)"
kill -STOP "$setup"
"$ctl" setup --params "$work/interrupted" 2KiB >/dev/null 2>&1 &
second=$!
for _ in $(seq 600); do # until it catches SIGTERM, bit 14
    [ $((0x$(awk '/^SigCgt/ { print $2 }' "/proc/$second/status") >> 14 & 1)) -eq 1 ] && break
    sleep 0.1
done
kill -TERM "$second"
wait "$second" 2>/dev/null
check "another one ends by the signal" equal $? 143
check "and leaves what it does not write" test -n "$(ls "$work/interrupted/"*.params.tmp)"
kill -TERM "$setup"
kill -CONT "$setup"
wait "$setup" 2>/dev/null
check "it ends by the signal" equal $? 143
check "nothing is left but the marker" equal "$(ls "$work/interrupted")" "$(basename "$work/interrupted/"*.insecure)"

# A disk without room: said before anything is computed for it, and nothing is left but the marker.
check "no room" grep -q 'no room for 1114707768 bytes' \
    <<<"$(ulimit -f 1000; trap '' XFSZ; "$make_params" 2KiB "$work/full" 2>&1)"
check "no .params without room" absent 'full/*.params*'

echo "$passed passed, $failed failed, 0 skipped"
[ "$failed" -eq 0 ]
