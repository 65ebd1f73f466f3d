#!/usr/bin/env bash
# A warm engine asks nothing of the kernel but to wait, to speak and to look at the clock, and touches no page for the first time: ten
# simulated proofs under strace, and ten more with an eye on the page faults.
. "$(dirname "$0")/lib.sh"
[ -z "${PROOFD_QUICK:-}" ] || lacks "an engine without sanitizers, which map memory and take faults of their own"
real_engine
printf '%s\n' "synthesis_ms = 1" "start_ms = 2" "finish_ms = 2" "device = 1M" >"$work/sim"
start --nodes "cpus:$cpu" --simulate "$work/sim" --log-level warn
engines_up() { ! grep -q '^proofd_engine_up.* 0$' "$mnt/metrics"; }
expect "the engine is up" wait_for 30 engines_up
pid=$(sed -nE 's/.*node 0: ready.* pid ([0-9]+).*/\1/p' "$mnt/status")

run_job() { # name
    echo "{\"proofd-test\":{\"partitions\":10,\"seed\":${1#j}}}" >"$jobs/$1"
    expect "$1 is done" ends "$1" done 60
}
faults() { awk '{ sub(/.*\) /, ""); print $8 + $10 }' "/proc/$pid/stat"; } # minor and major, of all threads

for i in 1 2 3; do run_job "j$i"; done
# The machine may take a page of its own accord: then the next ten show it.
fewest=1000000
for i in 4 5 6; do
    before=$(faults)
    run_job "j$i"
    took=$(($(faults) - before))
    [ "$took" -ge "$fewest" ] || fewest=$took
done
same "page faults of ten proofs" "$fewest" 0

# To wait, for the simulated device, for each other, for the front; to speak to it; to read the document, once a job.
allowed="futex clock_nanosleep poll restart_syscall sendmsg recvmsg fstat pread64 close"
if command -v strace >/dev/null && strace -qq -e trace=none true 2>/dev/null; then
    strace -f -qq -o "$work/trace" -p "$pid" &
    tracer=$!
    traced() { [ "$(awk '/^TracerPid/ { n += $2 > 0 } END { print n }' /proc/"$pid"/task/*/status)" -eq "$(ls /proc/"$pid"/task | wc -l)" ]; }
    expect "every thread is traced" wait_for 30 traced
    run_job j7
    kill "$tracer" && wait "$tracer" 2>/dev/null
    sed -nE 's/^[0-9]+ +(<\.\.\. )?([a-z0-9_]+)(\(| resumed).*/\2/p' "$work/trace" | sort | uniq -c >"$work/calls"
    expect "the trace has the proofs" grep -q sendmsg "$work/calls"
    same "other system calls" "$(awk '{ print $2 }' "$work/calls" | grep -vxF -f <(tr ' ' '\n' <<<"$allowed"))" ""
    same "the engine is still the same" "$(sed -nE 's/.*node 0: ready.* pid ([0-9]+).*/\1/p' "$mnt/status")" "$pid"
else
    skip "system calls" "strace is not installed, or may not trace"
fi
expect "stop" stop
finish
