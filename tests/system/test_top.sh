#!/usr/bin/env bash
# proofctl top, on a simulated device: what it shows is what is there.
needs_params=no
. "$(dirname "$0")/lib.sh"
real_engine
printf 'start_ms = 10\nfinish_ms = 10\n' >"$work/sim"
top() { "$proofctl" top --mount "$mnt" "$@"; }
doc() { echo "{\"proofd-test\":{\"partitions\":$2,\"seed\":$3}}" >"$jobs/$1"; }

refuse "without a service" top
start --nodes all --permits 2 --simulate "$work/sim"
wait_for 30 grep -q '^proofd_engine_up.* 1$' "$mnt/metrics"
for i in 1 2 3; do doc "done$i" 2 "$i"; done
for i in 1 2 3; do expect "a job" ends "done$i" done; done
expect "stop" stop
printf 'start_ms = 60000\nfinish_ms = 10\n' >"$work/sim"
restart --nodes all --permits 2 --simulate "$work/sim"
wait_for 30 grep -q '^proofd_engine_up.* 1$' "$mnt/metrics"
doc running 9 10
expect "a job that runs" wait_for 20 in_state running proving
doc "$(printf 'od\033d')" 1 11
doc waiting 1 12
wait_for 10 in_state waiting queued
# Engines tell of themselves now and then: a moment in which nothing changes.
metric() { awk -v m="$1" 'index($0, m) == 1 { print $2 }' "$mnt/metrics"; }
steady() {
    local before
    [ "$(metric proofd_node_permits_in_use)" -gt 0 ] || return 1
    before=$(grep -E '^proofd_(node|engine)_p' "$mnt/metrics")
    top >"$work/top"
    status=$?
    [ "$before" = "$(grep -E '^proofd_(node|engine)_p' "$mnt/metrics")" ]
}
expect "a quiet moment" wait_for 20 steady
same "exit status" $status 0
like "service" "$(sed -n 1p "$work/top")" '^proofd, up 0 h 0[0-9] m, [0-9.]+ [KM]iB, [0-9.]+ partitions a minute$'
same "jobs" "$(sed -n 2p "$work/top")" "jobs: 1 proving, 0 synthesizing, 2 queued, 0 receiving, 3 done, 0 failed, 0 refused"
like "engine" "$(grep '^   0 ' "$work/top")" "^   0  up +$(metric proofd_node_permits_in_use) of 2 "
same "partitions in it" "$(awk '$1 == 0 && $2 == "up" { print $6 + $7 + $8 + $9 + $10 }' "$work/top")" \
    "$(awk '/^proofd_node_partitions/ { n += $2 } END { print n }' "$mnt/metrics")"
same "what runs comes first, what has ended not at all" "$(sed '1,/^JOB/d' "$work/top" | awk '{ print $1 }' | tr '\n' ' ')" \
    'running od\x1bd waiting '
same "a status is that of its file" "$(grep '^running' "$work/top" | tr -s ' ')" "running $(cat "$jobs/running.status")"
if command -v script >/dev/null; then
    timeout 100 script -qc "stty rows 9; exec timeout 100 '$proofctl' top --mount '$mnt'" /dev/null </dev/null >"$work/screen" 2>&1 &
    drawn_twice() { [ "$(grep -c $'\033\[H' "$work/screen")" -ge 2 ]; }
    expect "a terminal is drawn anew" wait_for 20 drawn_twice
    kill $!
    wait $!
    expect "and no longer than it is" grep -q 'and 2 more' "$work/screen"
fi
expect "once" top --once
expect "stop" stop
finish
