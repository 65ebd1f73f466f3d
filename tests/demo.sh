#!/usr/bin/env bash
# The README's first command: a real 2 KiB C1 goes in by cp, the proof comes out beside it. Everything lives under
# $BUILD: parameters in params/, the mount, the store and the log in demo/.
set -euo pipefail
cd "$(dirname "$0")/.."
build=${BUILD:-build}
dir=$PWD/$build/demo
mount=$dir/proof
params=$PWD/$build/params
name=demo.json
started=$SECONDS

say() { printf '\n\033[1m== %s\033[0m\n' "$*"; }
# A line of status, percents in quarters.
step_of() {
    if [[ $1 =~ ([0-9]+)% ]]; then echo "${1/"${BASH_REMATCH[0]}"/$((BASH_REMATCH[1] / 25)) of 4}"; else echo "$1"; fi
}
pids=()
cleanup() {
    for p in "${pids[@]}"; do kill "$p" 2>/dev/null || true; done
    wait 2>/dev/null || true
    mountpoint -q "$mount" 2>/dev/null && fusermount3 -uz "$mount" 2>/dev/null || true
}
trap cleanup EXIT

say "2 KiB development parameters (insecure: for trying out alone)"
"$build/proofctl" setup --params "$params" 2KiB

say "starting proofd on $mount"
if grep -qs " $mount fuse" /proc/mounts; then fusermount3 -uz "$mount" || true; fi
rm -rf "$dir"
mkdir -p "$mount"
"$build/proofd" --mount "$mount" --store "$dir/store" --params "$params" 2>"$dir/proofd.log" &
service=$!
pids+=("$service")
for _ in $(seq 300); do
    [ -d "$mount/jobs" ] && break
    kill -0 "$service" 2>/dev/null || { cat "$dir/proofd.log"; exit 1; }
    sleep 0.1
done
[ -d "$mount/jobs" ] || { cat "$dir/proofd.log"; echo "demo: the mount did not come up" >&2; exit 1; }

say "cp tests/vectors/c1/2KiB-sealed/c1.json $mount/jobs/$name"
# Watch first, then submit: so the event cannot be missed.
exec 3< <(exec inotifywait -q -m -e close_write --format %f "$mount/jobs" 2>/dev/null)
pids+=("$!")
sleep 0.3
cp tests/vectors/c1/2KiB-sealed/c1.json "$mount/jobs/$name"
seen=
while :; do
    line=$(cat "$mount/jobs/$name.status" 2>/dev/null || true)
    step=$(step_of "$line")
    if [ -n "$line" ] && [ "$step" != "$seen" ]; then echo "  $line"; seen=$step; fi
    case $line in failed*) cat "$mount/jobs/$name.error"; exit 1 ;; esac
    if read -r -t 0.2 event <&3; then
        [ "$event" != "$name.proof" ] || break
    fi
    kill -0 "$service" 2>/dev/null || { tail -n 20 "$dir/proofd.log"; exit 1; }
done
line=$(cat "$mount/jobs/$name.status")
[ "$(step_of "$line")" = "$seen" ] || echo "  $line"

say "cat $mount/jobs/$name.proof"
cat "$mount/jobs/$name.proof"

say "proofctl verify"
"$build/proofctl" verify --params "$params" tests/vectors/c1/2KiB-sealed/c1.json "$mount/jobs/$name.proof"

say "stopping proofd"
kill -TERM "$service"
wait "$service"
! mountpoint -q "$mount" || { echo "demo: the mount is still there" >&2; exit 1; }
echo "done in $((SECONDS - started)) s"
