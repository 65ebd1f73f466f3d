#!/usr/bin/env bash
# Runs tests and sums them up. A test program speaks the plain line 'N passed, N failed, N skipped' itself, or is a Check
# program (its closing line is read), or counts as one test by its exit status; 77 skips, and its last line says what the
# machine lacks. Usage: run.sh unit|gpu|system|files|grpc ...
# ONLY="word word": what has one of the words in its name. TESTS_AT_ONCE=1: one after another.
set -u
cd "$(dirname "$0")/.." || exit 2
export BUILD=${BUILD:-build}
[ -z "${PROOFD_QUICK:-}" ] || export CK_TIMEOUT_MULTIPLIER=4 # slow builds: only what hangs is ended
passed=0 failed=0 skipped=0
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
trap 'for g in $(jobs -p); do kill -- "-$g" 2>/dev/null; done; exit 130' INT TERM

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

wanted() { # name
    local word
    [ -n "${ONLY:-}" ] || return 0
    for word in $ONLY; do case $1 in *"$word"*) return 0 ;; esac; done
    return 1
}

# Three at a time, since many of them wait, but what proves for real or works on many threads has the machine for itself, last.
# The long ones begin first, so that nothing waits for one in the end.
long="unit/test_circuit unit/test_compact unit/test_c1_bad"
alone="unit/test_arena unit/test_porep_large unit/test_witness unit/test_witness_large unit/test_workers unit/test_log unit/test_sched
    system/test_ctl system/test_forms system/test_fresh_sector system/test_proof_vectors system/test_proofd"
at_once=${TESTS_AT_ONCE:-3}

is_alone() { # name
    case $1 in gpu/*) return 0 ;; esac
    is_in "$1" "$alone"
}

is_in() { # word words
    case " $(echo $2) " in *" $1 "*) return 0 ;; esac
    return 1
}

# Queued as "name|command"; nothing here has a blank in its name.
queue=()
run() { # name command...
    local name=$1
    shift
    ! wanted "$name" || queue+=("$name|$*")
}

# A test in the background: its output, and when it has ended its status and milliseconds: real, of CPU, of CPU in the kernel.
begin() { # number
    local command=${queue[$1]#*|} TIMEFORMAT='%3R %3U %3S'
    set -m # a process group of its own, to be ended as one
    {
        { time $command >"$dir/$1.log" 2>&1 </dev/null; } 2>"$dir/$1.times"
        echo "$? $(tail -n 1 "$dir/$1.times" | tr -d .,)" >"$dir/$1.new"
        mv "$dir/$1.new" "$dir/$1.status"
    } &
    set +m
}

# What it was, in the order of the queue.
report() { # number
    local name=${queue[$1]%%|*} status clock user kernel what=FAILED
    read -r status clock user kernel <"$dir/$1.status"
    log=$dir/$1.log
    count "$status"
    case $status in 0) what=ok ;; 77) what=skipped ;; esac
    printf '%-44s %s (%d s, %d s of CPU)\n' "$name" "$what" $((10#$clock / 1000)) $(((10#$user + 10#$kernel) / 1000))
    grep -a '^SKIP' "$log" || true
    [ "$what" != FAILED ] || tail -n 60 "$log" | sed 's/^/    | /'
}

# What has ended, in order, up to the first that has not.
report_ended() {
    while [ -e "$dir/$reported.status" ]; do
        report "$reported"
        reported=$((reported + 1))
    done
}

wait_until_running() { # at most so many
    while [ "$running" -gt "$1" ]; do
        wait -n
        running=$((running - 1))
        report_ended
    done
}

run_all() {
    local entry name first=() middle=() last=() running=0 reported=0 i
    for entry in "${queue[@]}"; do
        name=${entry%%|*}
        if is_in "$name" "$long"; then first+=("$entry"); elif is_alone "$name"; then last+=("$entry"); else middle+=("$entry"); fi
    done
    queue=("${first[@]}" "${middle[@]}" "${last[@]}")
    for i in "${!queue[@]}"; do
        if is_alone "${queue[i]%%|*}"; then wait_until_running 0; else wait_until_running $((at_once - 1)); fi
        begin "$i"
        running=$((running + 1))
    done
    wait_until_running 0
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
    system | files)
        for t in tests/"$kind"/test_*.sh; do
            [ -f "$t" ] && run "$kind/$(basename "$t" .sh)" bash "$t"
        done
        ;;
    grpc) # with Debian's Python, whose grpc it is
        for t in tests/grpc/test_*.py; do
            [ -f "$t" ] && run "grpc/$(basename "$t" .py)" /usr/bin/python3 -B "$t"
        done
        ;;
    esac
done
run_all
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ]
