#!/usr/bin/env bash
# make experiments: rules of the pipeline, permits, and what the log costs, on simulated devices with the times of a 32 GiB partition by
# 64 and sizes by 1024, and on the CPU prover with 2 KiB. Fills the marked part of doc/measurements.md and doc/permits.svg; about a
# quarter of an hour on two cores that have nothing else to do.
# EXPERIMENT_RUNS (5): of each way; EXPERIMENT_PAIRS (30): interleaved, of simulated jobs; EXPERIMENT_PROOFS (30): of proofs of 2 KiB,
# 0: without the CPU prover.
. "$(dirname "$0")/../system/lib.sh"
real_engine
runs=${EXPERIMENT_RUNS:-5} pairs=${EXPERIMENT_PAIRS:-30} proofs=${EXPERIMENT_PROOFS:-30}
evaluate() { python3 tests/bench/experiments.py "$@"; }
bench() { "$proofctl" bench --mount "$mnt" --json "$@" | tail -n 1; }
wall() { sed -nE 's/.*"wall_ms":\{"min":([0-9.]+).*/\1/p' "$1"; } # of the one proof
engines_up() { ! grep -q '^proofd_engine_up.* 0$' "$mnt/metrics"; }
begin() { # option...
    start --nodes all --log-level err "$@"
    wait_for 60 engines_up
}
simulate() { printf '%s\n' "$@" >"$work/sim"; }
document() { echo "{\"proofd-test\":{\"partitions\":$1,\"seed\":1}}" >"$work/doc"; }

# As one synthesis with all cores, and the step that holds the device; what is drawn adds half of it on average.
like_32gib() {
    simulate "synthesis_ms = 32" "synthesis_jitter_ms = 31" "start_ms = 50" "start_jitter_ms = 17" "finish_ms = 26.6" \
        "tickets = 2" "witness = 3973K" "evaluation = 11930K" "seed = 1"
}

sweep() {
    local permits
    like_32gib
    document 10
    for permits in 1 2 3 4 6 8 12 16; do
        begin --simulate "$work/sim" --permits "$permits"
        bench --c1 "$work/doc" --count 1 >"$work/warm"
        for _ in $(seq "$runs"); do echo "$permits $(bench --c1 "$work/doc" --count 5)"; done
        stop
    done >"$work/sweep"
    : >"$work/sweep-cpu"
    [ "$proofs" -eq 0 ] || for permits in 1 2 3; do
        begin --permits "$permits"
        bench --c1 "$(c1 2KiB-sealed)" --count 1 >"$work/warm"
        echo "$permits $(bench --c1 "$(c1 2KiB-sealed)" --count 4)"
        stop
    done >"$work/sweep-cpu"
    evaluate permits "$work/sweep" "$work/sweep-cpu" doc/permits.svg
}

# Nanoseconds that all threads of the service have had a CPU.
cpu_ns() { awk '{ n += $1 } END { printf "%.0f\n", n }' /proc/"$front"/task/*/schedstat /proc/"$engine_pid"/task/*/schedstat; }

# A line for each: number of the pair, level, milliseconds from acceptance to end, CPU time, lines in the log. Levels take turns in
# being the first.
interleave() { # how many, file, document, level...
    local count=$1 file=$2 doc=$3 i k before lines level
    shift 3
    engine_pid=$(sed -nE 's/.*node 0: ready.* pid ([0-9]+).*/\1/p' "$mnt/status")
    bench --c1 "$doc" --count 1 >"$work/warm"
    for i in $(seq "$count"); do
        for k in $(seq $#); do
            level=${*:$(((i + k) % $# + 1)):1}
            echo "$level" >"$mnt/log_level"
            sleep 0.1 # what came before has come to rest
            lines=$(wc -l <"$log")
            before=$(cpu_ns)
            bench --c1 "$doc" --count 1 >"$work/one"
            sleep 0.1
            before=$(($(cpu_ns) - before))
            echo "$i $level $(wall "$work/one") $before $(($(wc -l <"$log") - lines))"
        done
    done >"$file"
}

log_cost() {
    : >"$work/log-proof"
    like_32gib
    document 10
    begin --simulate "$work/sim" --permits 4
    interleave "$pairs" "$work/log-paced" "$work/doc" err info debug
    stop
    simulate "tickets = 2" "witness = 4K" "evaluation = 4K"
    document 100
    begin --simulate "$work/sim" --permits 8
    interleave "$pairs" "$work/log-quick" "$work/doc" err info debug
    stop
    if [ "$proofs" -gt 0 ]; then
        begin
        interleave "$proofs" "$work/log-proof" "$(c1 2KiB-sealed)" err debug
        stop
    fi
    evaluate log "$work/log-paced" "$work/log-quick" "$work/log-proof"
}

# In this shell, which ends the service if anything goes wrong.
{
    echo "$(date -u +%F), $(sed -nE 's/^model name\s*: //p' /proc/cpuinfo | head -n 1), $(nproc) CPUs, load $(cut -d' ' -f1 /proc/loadavg) at the begin."
    printf '\n### Rules of the pipeline (%s runs of each, by turns: median, least and most)\n\n' "$runs"
    "$build/tests/bench/experiment_policies" "$runs" 100
    printf '\n### Permits\n\n'
    sweep
    printf '\n### The log and the counters\n\n'
    log_cost
    printf '\nThe %s. Load at the end %s.\n' "$("$build/tests/bench/experiment_counters")" "$(cut -d' ' -f1 /proc/loadavg)"
} >"$build/experiments.md"
cat "$build/experiments.md"
evaluate fill "$build/experiments.md" doc/measurements.md
