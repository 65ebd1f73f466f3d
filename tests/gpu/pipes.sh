#!/usr/bin/env bash
# How busy the additions of a sum and the passes of a transform keep the pipes that multiply: ncu over bench_cuda at 2^24. A line
# a kernel and metric, in percent of what the pipe can do while the kernel runs. 77 where ncu is missing or may not read counters.
set -u
cd "$(dirname "$0")/../.." || exit 2
build=${BUILD:-build}
bench=${BENCH:-"$build/tests/gpu/bench_cuda 24"}
profiler=$(command -v ncu || ls /usr/local/cuda/bin/ncu 2>/dev/null) || { echo "ncu is not installed"; exit 77; }
case $(uname -r) in 4.4.0*) echo "gVisor: ncu cannot run here"; exit 77 ;; esac
wanted='sm__inst_executed_pipe_(fma|fmaheavy|imad|alu|uniform)|sm__pipe_(fma|fmaheavy|imad|alu)_cycles_active|sm__inst_issued|dram__throughput'
known=$("$profiler" --query-metrics 2>/dev/null | grep -oE "^($wanted) " | sed 's/ *$//')
[ -n "$known" ] || { echo "ncu knows no such metric here"; exit 77; }
# shellcheck disable=SC2086 # words
metrics=$(printf '%s.avg.pct_of_peak_sustained_active,' $known | sed 's/dram__throughput.avg.pct_of_peak_sustained_active/dram__throughput.avg.pct_of_peak_sustained_elapsed/; s/,$//')
for kernel in 'pass_to_reversed_kernel 18' 'pass_to_natural_kernel 18' 'products_kernel 2' 'add_pairs_kernel 0'; do
    # shellcheck disable=SC2086 # words
    set -- $kernel
    # shellcheck disable=SC2086 # words
    "$profiler" --metrics "$metrics" --kernel-name "regex:$1" --launch-skip "$2" --launch-count 1 --kill yes $bench 2>&1 |
        grep -E "^ +[a-z_]+_kernel|pct_of_peak|ERR_|==ERROR==" | sed -E 's/^ +//; s/ +/ /g'
done
