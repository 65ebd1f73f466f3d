#!/usr/bin/env bash
# Proofs of each size up to 512 MiB, under development parameters that are made here where they are not there yet: the exact
# 192 bytes, dense and sparse, of the smallest and the largest domain; and the largest sealed sector as a file that goes the
# whole way, judged under the vectors' key. (The exact bytes of every vector: unit/test_trapdoor, without sums over points; PROOFD_ALL=1
# has them all here as well.) Those of 2 KiB stay for other tests (build/params); the larger ones, some gigabytes, are removed after use
# unless PROOFD_KEEP_PARAMS is set.
set -u
cd "$(dirname "$0")/../.." || exit 2
build=${BUILD:-build}
[ -z "${PROOFD_QUICK:-}" ] || { echo "PROOFD_QUICK is set: true proofs take too long with this build"; exit 77; }
passed=0 failed=0 skipped=0
memory=${XDG_CACHE_HOME:-$HOME/.cache}/proofd/params-trusted

room_mb() { df -Pm "$1" | awk 'NR == 2 {print $4}'; }
memory_mb() { awk '/^MemAvailable/ {print int($2 / 1024)}' /proc/meminfo; }

# size, disk and memory that it takes in MB, directory, vectors
check_size() {
    local size=$1 disk=$2 wanted=$3 dir=$4 log
    shift 4
    mkdir -p "$dir"
    if [ "$(memory_mb)" -lt "$wanted" ] || { [ "$(room_mb "$dir")" -lt "$disk" ] && ! ls "$dir"/*.params >/dev/null 2>&1; }; then
        echo "SKIP  proofs of $size: $wanted MB of memory and $disk MB on disk are wanted"
        skipped=$((skipped + 3 * $#))
        return
    fi
    if ! log=$("$build/tests/system/make_params" "$size" "$dir"); then
        echo "$log"
        failed=$((failed + 1))
        return
    fi
    echo "$log"
    # What was just made is known as good, so its first use need not check it point by point.
    if grep -q "$size: made in" <<<"$log"; then
        if grep -qs " $(stat -c %i "$dir"/*.params) " "$memory"; then passed=$((passed + 1)); else
            failed=$((failed + 1))
            echo "FAILED: setup of $size is not remembered in $memory"
        fi
    fi
    "prove_$size" "$dir" "$@"
}

prove_2KiB() { count "$build/tests/system/prove_vectors" "$@"; }
prove_512MiB() { count "$build/tests/system/prove_vectors" "$@"; }
prove_8MiB() {
    [ -z "${PROOFD_ALL:-}" ] || count "$build/tests/system/prove_vectors" "$@"
    count bash tests/system/through_mount.sh "$(cd "$1" && pwd)" "$2"
}

# Runs a test that counts for itself and adds what it counted.
count() {
    local log line
    log=$("$@" 2>&1)
    echo "$log"
    line=$(echo "$log" | tail -n 1)
    case $line in
    *passed,*)
        passed=$((passed + ${line%% *}))
        failed=$((failed + $(echo "$line" | sed -E 's/.* ([0-9]+) failed.*/\1/')))
        ;;
    *) failed=$((failed + 1)) ;;
    esac
}

large=$build/params-large
[ -n "${PROOFD_KEEP_PARAMS:-}" ] || trap 'rm -rf "$large"' EXIT
check_size 2KiB 1200 2600 "$build/params" 2KiB-sealed 2KiB-sparse ${PROOFD_ALL:+2KiB-v1 2KiB-synthetic}
check_size 8MiB 1600 3200 "$large/8MiB" 8MiB-sealed
[ -n "${PROOFD_KEEP_PARAMS:-}" ] || rm -rf "$large/8MiB"
check_size 512MiB 2400 4500 "$large/512MiB" 512MiB-sparse
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ]
