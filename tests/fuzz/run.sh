#!/usr/bin/env bash
# Runs every fuzz target for some seconds: run.sh BUILD SECONDS. A target's dictionary is tests/fuzz/NAME.dict, its
# seeds are in tests/fuzz/seeds/NAME; what it found earlier stays in BUILD/corpus/NAME. A finding ends up in
# BUILD/findings and in the exit status.
set -u
cd "$(dirname "$0")/../.." || exit 2
build=$1 seconds=$2 failed=0 passed=0
mkdir -p "$build/findings"

for source in tests/fuzz/fuzz_*.c; do
    name=$(basename "$source" .c)
    corpus=$build/corpus/$name
    args=(-max_total_time="$seconds" -timeout=30 -rss_limit_mb=1024 -max_len=65536 -print_final_stats=1
        -artifact_prefix="$build/findings/$name-")
    mkdir -p "$corpus"
    [ -f "tests/fuzz/$name.dict" ] && args+=(-dict="tests/fuzz/$name.dict")
    seeds=()
    [ -d "tests/fuzz/seeds/$name" ] && seeds=("tests/fuzz/seeds/$name")
    if "$build/tests/fuzz/$name" "${args[@]}" "$corpus" "${seeds[@]}" >"$build/findings/$name.log" 2>&1; then
        passed=$((passed + 1))
        echo "$name: $(grep -a 'stat::number_of_executed_units' "$build/findings/$name.log" | grep -oE '[0-9]+$') inputs, no finding"
    else
        failed=$((failed + 1))
        echo "$name: FAILED"
        tail -n 40 "$build/findings/$name.log"
    fi
done
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
