#!/usr/bin/env bash
# Runs tests and sums them up. A test program speaks the plain line 'N passed, N failed, N skipped' itself, or is a Check
# program (its closing line is read), or counts as one test by its exit status; 77 skips, and its last line says what the
# machine lacks. Usage: run.sh unit|system ...
set -u
cd "$(dirname "$0")/.." || exit 2
export BUILD=${BUILD:-build}
passed=0 failed=0 skipped=0
log=$(mktemp)
trap 'rm -f "$log"' EXIT

count() { # status
    local status=$1 line checks bad
    line=$(grep -E '^[0-9]+ passed, [0-9]+ failed(, [0-9]+ skipped)?$' "$log" | tail -n 1)
    if [ -n "$line" ]; then
        passed=$((passed + $(echo "$line" | sed -E 's/^([0-9]+) passed.*/\1/')))
        failed=$((failed + $(echo "$line" | sed -E 's/.* ([0-9]+) failed.*/\1/')))
        skipped=$((skipped + $(echo "$line" | sed -nE 's/.* ([0-9]+) skipped$/\1/p' | grep . || echo 0)))
        [ "$status" -eq 0 ] || echo "$line" | grep -qv ' 0 failed' || failed=$((failed + 1))
        return
    fi
    line=$(grep -aE '^[0-9]+%: Checks: ' "$log" | tail -n 1)
    if [ -n "$line" ] && [ "$status" -ne 77 ]; then
        checks=$(echo "$line" | sed -E 's/.*Checks: ([0-9]+).*/\1/')
        bad=$(echo "$line" | sed -E 's/.*Failures: ([0-9]+), Errors: ([0-9]+).*/\1+\2/')
        bad=$((bad))
        [ "$status" -eq 0 ] || [ "$bad" -gt 0 ] || bad=1
        passed=$((passed + checks - bad)) failed=$((failed + bad))
        return
    fi
    case $status in
    0) passed=$((passed + 1)) ;;
    77) skipped=$((skipped + 1)); echo "SKIP  $(tail -n 1 "$log")" ;;
    *) failed=$((failed + 1)) ;;
    esac
}

# ONLY="word word" runs what has one of the words in its name.
wanted() { # name
    local word
    [ -n "${ONLY:-}" ] || return 0
    for word in $ONLY; do case $1 in *"$word"*) return 0 ;; esac; done
    return 1
}

run() { # name command...
    local name=$1 status start
    shift
    wanted "$name" || return 0
    start=$(date +%s)
    "$@" >"$log" 2>&1 </dev/null
    status=$?
    count "$status"
    printf '%-44s %s (%ss)\n' "$name" "$([ "$status" -eq 0 ] && echo ok || { [ "$status" -eq 77 ] && echo skipped || echo FAILED; })" "$(($(date +%s) - start))"
    grep -a '^SKIP' "$log" || true
    [ "$status" -eq 0 ] || [ "$status" -eq 77 ] || tail -n 60 "$log" | sed 's/^/    | /'
}

for kind in "$@"; do
    case $kind in
    unit)
        run layers tests/layers.sh
        for t in "$BUILD"/tests/unit/test_*; do
            [ -x "$t" ] && [ -f "$t" ] && case $t in *.o | *.d) ;; *) run "unit/$(basename "$t")" "$t" ;; esac
        done
        ;;
    gpu)
        for t in "$BUILD"/tests/gpu/test_*; do
            [ -x "$t" ] && [ -f "$t" ] && case $t in *.o | *.d) ;; *) run "gpu/$(basename "$t")" "$t" ;; esac
        done
        ;;
    system)
        for t in tests/system/test_*.sh; do
            [ -f "$t" ] && run "system/$(basename "$t" .sh)" bash "$t"
        done
        ;;
    esac
done
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ]
