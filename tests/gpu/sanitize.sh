#!/usr/bin/env bash
# compute-sanitizer over the GPU tests at small sizes: memcheck, racecheck and initcheck, each no longer than SECONDS_EACH (600) a
# program. The last line sums up; the exit status is 1 for any finding, 77 where there is no sanitizer or it cannot work.
set -u
cd "$(dirname "$0")/../.." || exit 2
build=${BUILD:-build} limit=${SECONDS_EACH:-600} tools=${TOOLS:-"memcheck racecheck initcheck"}
# program:what Check calls a case; `bins` is the only large one, a sum whose lists come from the blocks' own sort
cases=${CASES:-"test_cuda:fields test_cuda:ntt test_cuda:sums test_cuda:bins test_cuda:points test_prover:systems test_flights:flights"}
race_cases=${CASES:-"test_cuda:fields test_cuda:race test_prover:systems"} # hours for the others
log=$(mktemp)
trap 'rm -f "$log"' EXIT

skip() {
    echo "$1: compute-sanitizer cannot run here"
    exit 77
}

sanitizer=$(command -v compute-sanitizer || ls /usr/local/cuda/bin/compute-sanitizer 2>/dev/null) || skip "not installed"
case $(uname -r) in 4.4.0*) skip "gVisor" ;; esac

export CK_FORK=no CK_TIMEOUT_MULTIPLIER=10
findings=0 runs=0 unfinished=0
for tool in $tools; do
    [ "$tool" = racecheck ] && these=$race_cases || these=$cases
    for case in $these; do
        start=$SECONDS
        # Calls that fail are the tests' business (some are meant to): only what kernels do is a finding.
        CK_RUN_CASE=${case#*:} timeout -k 5 "$limit" "$sanitizer" --tool "$tool" --report-api-errors no --error-exitcode 99 \
            "$build/tests/gpu/${case%:*}" >"$log" 2>&1
        status=$?
        found=$(sed -nE 's/^=+ (ERROR SUMMARY: ([0-9]+) error|RACECHECK SUMMARY: ([0-9]+) hazard).*/\2\3/p' "$log" | tail -n 1)
        runs=$((runs + 1))
        echo "$tool $case: $(grep -E '^[0-9]+ passed' "$log" | tail -n 1), ${found:-no} findings, status $status, $((SECONDS - start)) s"
        if [ "$status" -eq 124 ] || [ "$status" -eq 137 ]; then
            unfinished=$((unfinished + 1))
            [ "$(grep -cE '^=+ (Error|Invalid|Uninit|Race|WARN)' "$log")" -eq 0 ] || findings=$((findings + 1))
        elif [ "$status" -ne 0 ] || [ "${found:-x}" != 0 ]; then
            findings=$((findings + 1))
            grep -vE '^ *$' "$log" | head -n 40
        fi
    done
done
echo "$runs runs, $findings with findings, $unfinished cut off after $limit s"
[ "$findings" -eq 0 ] && [ "$unfinished" -eq 0 ]
