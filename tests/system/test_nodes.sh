#!/usr/bin/env bash
# Machines that have less than is asked for: a CPU set smaller than the configuration's, memory that can never do, a node without
# room. What can never be is refused, with both numbers; all else runs with what there is and says what is missing.
. "$(dirname "$0")/lib.sh"
real_engine
command -v taskset >/dev/null || lacks "taskset"

proofd_before=$proofd
confined() { # the service, in a CPU set of one CPU
    printf '#!/bin/sh\nexec taskset -c 0 "%s" "$@"\n' "$proofd_before" >"$work/proofd"
    chmod 755 "$work/proofd"
    proofd=$work/proofd
}
simulate() { printf '%s\n' "$@" >"$work/sim"; }
engine_up() { grep -q '^proofd_engine_up.* 1$' "$mnt/metrics"; }
test_job() { echo "{\"proofd-test\":{\"partitions\":$2,\"seed\":$3}}" >"$jobs/$1"; }

# ---- a CPU set smaller than what is configured
if [ "$cpu" -eq 0 ] && [ "$other_cpu" -gt 0 ]; then
    simulate "witness = 64K"
    confined
    start --nodes "cpus:0-1" --simulate "$work/sim"
    expect "with one CPU of two: the engine is there" wait_for 30 engine_up
    expect "and has one" grep -qE '^cpus 0$' "$mnt/nodes/0/topology"
    expect "the log says so" grep -q 'of CPUs 0-1 only 0 can be used' "$log"
    test_job a 2 1
    expect "and proves" ends a done
    expect "stop" stop
    refuse "without a CPU for a node" "$proofd" --mount "$mnt" --store "$store" --nodes "cpus:0 cpus:1" --simulate "$work/sim"
    like "says which" "$(cat "$work/out")" "CPUs 1: none.* this process may use 0"
    proofd=$proofd_before
else
    skip "a smaller CPU set" "one CPU"
fi

# ---- a slot that can never fit
simulate "witness = 100000G"
start --nodes "cpus:$cpu" --simulate "$work/sim"
expect "too large a slot: the engine is there all the same" wait_for 30 engine_up
test_job large 1 1
expect "its job fails" ends large failed
like "with both numbers" "$(head -n 1 "$jobs/large.error")" "[0-9.]+ GiB of memory are needed .*has [0-9.]+ GiB"
expect "stop" stop

# ---- a size that can never be proved here
start --memory 100M
expect "too little memory: the engine is there all the same" wait_for 30 engine_up
refuse "cp is refused" cp "$(c1 2KiB-sealed)" "$jobs/real"
like "with both numbers" "$(head -n 1 "$jobs/real.error")" "a sector of 2KiB needs [0-9.]+ GiB of memory to be proved, the configuration has 0.1 GiB"
expect "stop" stop
finish
