#!/usr/bin/env bash
# Runs every fuzz target for some seconds, as many at once as there are CPUs: run.sh BUILD SECONDS. A target's dictionary is
# tests/fuzz/NAME.dict, its seeds are in tests/fuzz/seeds/NAME; what it found earlier stays in BUILD/corpus/NAME. A finding ends
# up in BUILD/findings and in the exit status.
set -u
cd "$(dirname "$0")/../.." || exit 2
build=$1 seconds=$2 passed=0 failed=0
names=()
for source in tests/fuzz/fuzz_*.c; do names+=("$(basename "$source" .c)"); done
mkdir -p "$build/findings"

fuzz() { # name
    local name=$1 corpus=$build/corpus/$1
    local args=(-max_total_time="$seconds" -timeout=30 -rss_limit_mb=1024 -max_len=65536 -print_final_stats=1
        -artifact_prefix="$build/findings/$name-")
    mkdir -p "$corpus"
    [ -f "tests/fuzz/$name.dict" ] && args+=(-dict="tests/fuzz/$name.dict")
    args+=("$corpus")
    [ -d "tests/fuzz/seeds/$name" ] && args+=("tests/fuzz/seeds/$name")
    "$build/tests/fuzz/$name" "${args[@]}" >"$build/findings/$name.log" 2>&1
    echo $? >"$build/findings/$name.status"
}

rm -f "$build"/findings/*.status
for name in "${names[@]}"; do
    while [ "$(jobs -rp | wc -l)" -ge "$(nproc)" ]; do wait -n; done
    fuzz "$name" &
done
wait
for name in "${names[@]}"; do
    log=$build/findings/$name.log
    if [ "$(cat "$build/findings/$name.status")" = 0 ]; then
        passed=$((passed + 1))
        echo "$name: $(grep -a 'stat::number_of_executed_units' "$log" | grep -oE '[0-9]+$') inputs, no finding"
    else
        failed=$((failed + 1))
        echo "$name: FAILED"
        tail -n 40 "$log"
    fi
done
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
