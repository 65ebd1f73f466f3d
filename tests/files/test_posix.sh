# What POSIX and Linux say of files, call by call; and random operations beside a plain file, on names that are no jobs.
. "$(dirname "$0")/lib.sh"

chmod 755 "$work"
start
watch_events
timeout 600 python3 tests/files/posix.py "$jobs" >"$work/posix" 2>&1 || fail "posix.py: status $?"
read -r right _ wrong _ < <(tail -n 1 "$work/posix" | grep -E '^[0-9]+ right, [0-9]+ wrong$' || echo "0 right, 1 wrong")
[ "$wrong" -eq 0 ] || head -n 30 "$work/posix"
passed=$((passed + right)) failed=$((failed + wrong))
[ "$(id -u)" -eq 0 ] || skip "the rights of two users" "not root"
for seed in 1 2 3 4; do
    same "random operations" "$(timeout 600 python3 tests/files/fsx.py "$jobs" $seed 600 2>&1 | tee -a "$work/random" | tail -n 1)" \
        "seed $seed: 600 operations, alike"
done
grep -v alike "$work/random"
expect "settle" settle
same "none of it became a job" "$(queued) $(names)" "0 "
expect "a clean end" stop
finish
