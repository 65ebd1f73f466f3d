#!/usr/bin/env bash
# proofctl bench: what it says is what the service did, on simulated devices; and variants of a C1 are C1s that are right, with the true
# proofs of one.
. "$(dirname "$0")/lib.sh"
real_engine
simulate() { printf '%s\n' "$@" >"$work/sim"; }
bench() { timeout 200 "$proofctl" bench --mount "$mnt" "$@"; }
code() { # wanted status, then a command: what it says is in $work/said
    local wanted=$1 status
    shift
    "$@" >"$work/said" 2>&1
    status=$?
    same "status of $*" $status "$wanted"
}
engines_up() { ! grep -q '^proofd_engine_up.* 0$' "$mnt/metrics"; }
begin() {
    start --nodes "cpus:$cpu cpus:$cpu" --permits 3 --simulate "$work/sim"
    wait_for 30 engines_up
}
echo '{"proofd-test":{"partitions":5,"seed":1}}' >"$work/doc"
echo '{"proofd-test":{"partitions":1,"seed":1}}' >"$work/small"

# ---- wrong usage, and nobody there
code 2 bench --c1 "$work/doc"
code 2 bench
code 2 bench --c1 "$work/doc" --same --distinct
code 2 bench --c1 "$work/doc" --count 0
code 2 bench --c1 "$work/doc" --svg "$work/none/x.svg"

# ---- six jobs of five partitions, then two kinds of documents
simulate "synthesis_ms = 5" "start_ms = 60" "finish_ms = 10" "witness = 1M" "evaluation = 2M"
begin
code 2 bench --c1 "$work/missing"
mkfifo "$work/fifo"
code 2 bench --c1 "$work/fifo"
code 2 bench --c1 "$work/fifo" --same
code 0 bench --c1 "$work/doc" --count 6 --concurrency 3 --svg "$work/w.svg"
like "a line for each proof" "$(grep -c '^bench-' "$work/said")" '^6$'
same "they are proofs of their own" "$(grep -c shared$ "$work/said")" 0
like "the total" "$(grep '^proofs ' "$work/said")" '6 of 6 done, 0 of them shared, 0 failed'
same "a waterfall of all partitions" "$(grep -cE '^ +[1-6]\.[0-4] +[01] \|.*[Pf].*\|$' "$work/said")" 30
same "the same as a picture" "$(grep -c '<g><title>proof [1-6] partition [0-4], node [01]' "$work/w.svg") $(tail -n 1 "$work/w.svg")" "30 </svg>"
same "nothing is left" "$(ls "$jobs")" ""
code 0 bench --c1 "$work/doc" --c1 "$work/small" --count 4 --concurrency 1 --json
expect "JSON says the same" python3 - "$work/said" <<'PY'
import json, sys
lines = [json.loads(line) for line in open(sys.argv[1])]
proofs, total = lines[:-1], lines[-1]
assert len(proofs) == 4 and [p["partitions"] for p in proofs] == [5, 1, 5, 1], proofs
assert len({p["job"] for p in proofs}) == 4
for p in proofs:
    assert p["state"] == "done" and p["same_as"] == 0
    assert p["wall_ms"] >= p["queue_ms"] >= 0 and p["submit_ms"] > 0
    assert p["prove_ms"] >= 60 * p["partitions"], p
    assert p["synthesis_ms"] >= 5 * p["partitions"], p
assert total["done"] == 4 and total["failed"] == 0 and total["partitions"] == 12, total
walls = sorted(p["wall_ms"] for p in proofs)
assert total["wall_ms"]["min"] == walls[0] and total["wall_ms"]["max"] == walls[3]
assert total["wall_ms"]["median"] == walls[1], (total["wall_ms"], walls)
assert abs(total["partitions_per_minute"] * total["seconds"] / 720 - 1) < 0.01
# Of each partition: waits, synthesis, ready, start, finish, end. One job after another.
water = total["waterfall"]
assert len(water) == 12
for w in water:
    assert w[4:] == sorted(w[4:]) and w[4] >= 0 and w[9] <= total["seconds"] * 1e3, w
    assert w[6] - w[5] >= 5 and w[8] - w[7] >= 60 and w[9] - w[8] >= 10, w
for i in range(1, 4):
    assert min(w[4] for w in water if w[0] == i + 1) >= max(w[9] for w in water if w[0] == i)
# Provers: sums of what the waterfall has.
assert sum(p["partitions"] for p in total["provers"]) == 12
for p in total["provers"]:
    mine = [w for w in water if w[2] == p["node"]]
    assert p["partitions"] == len(mine) and 0 < p["starting"] <= p["busy"] < 1
    assert p["starting"] * total["seconds"] * 1e3 >= 59.9 * len(mine), p
    assert p["longest_gap_ms"] <= p["gaps_ms"] + 1e-6
for n in total["nodes"]:
    assert n["permits"] == 3 and n["in_use_peak"] <= 3 and n["slot_bytes_peak"] <= 3 * 3 << 20
    assert n["resident_bytes_peak"] >= n["arena_bytes"] > 0 or n["huge_bytes"] > 0
    times = [s[0] for s in n["samples"]]
    assert times == sorted(times)
assert any(s[5] > 0 for n in total["nodes"] for s in n["samples"]), "no sample has a permit in use"
PY
for n in 0 1; do
    same "columns of node $n" "$(awk '{ print NF }' "$mnt/nodes/$n/samples" | sort -u) $(awk '{ print NF }' "$mnt/nodes/$n/partitions" | sort -u)" "16 10"
    same "node $n rests" "$(tail -n 1 "$mnt/nodes/$n/samples" | cut -d' ' -f9,12-)" "0 0 0 0 0 0"
done

# ---- the same document again and again is one computation
code 0 bench --c1 "$work/doc" --count 5 --concurrency 1 --same
same "one is proved, the others share it" "$(grep -c shared$ "$work/said")" 4

# ---- what is refused, and what fails
echo nonsense >"$work/bad"
code 1 bench --c1 "$work/bad" --count 2
code 1 bench --c1 "$work/bad" --count 2 --same
like "and why" "$(cat "$work/said")" 'proof 1: not accepted: .+'
refuse "no tables of nothing" grep -qE '^(proofs|total|submit|wall|node) ' "$work/said"
echo '{"proofd-test":{"partitions":0,"seed":1}}' >"$work/none"
for same in "" --same; do
    # shellcheck disable=SC2086 # or no option
    code 1 bench --c1 "$work/none" --count 2 $same
    like "what is wrong with a test document $same" "$(cat "$work/said")" 'less than 1 partition'
done
same "nothing is left of it" "$(ls "$jobs")" ""

# ---- who reads no further leaves no jobs
timeout 200 "$proofctl" bench --mount "$mnt" --c1 "$work/small" --count 500 --concurrency 1 2>"$work/said" | head -n 2 >/dev/null
same "nobody reads" "${PIPESTATUS[0]} $(cat "$work/said")" "2 proofctl: cannot write the answer"
same "nothing is left of that" "$(ls "$jobs")" ""

# ---- who interrupts it leaves no jobs, and those of others stay
expect "stop" stop
simulate "start_ms = 60000"
begin
all_there() { [ "$(ls "$jobs"/*.status | wc -l)" -eq 3 ]; }
for signal in TERM HUP; do
    env --default-signal=HUP "$proofctl" bench --mount "$mnt" --c1 "$work/doc" --count 3 >/dev/null 2>&1 &
    pid=$!
    expect "three jobs" wait_for 20 all_there
    kill -$signal $pid
    wait $pid
    same "interrupted by $signal" $? 2
    expect "no jobs after $signal" wait_for 10 idle
done
# The name of its second job is taken before the first one has ended.
bench --c1 "$work/doc" --count 2 --concurrency 1 >"$work/said" 2>&1 &
pid=$!
accepted() { grep -qE 'queued|synthesizing|proving' "$jobs"/bench-*-1.status; }
expect "its first job" wait_for 20 accepted
first=$(echo "$jobs"/bench-*-1)
cp "$work/small" "${first%1}2"
rm "$first"
wait $pid
same "a name that is taken" "$? $(grep -c 'proof 2: not accepted: File exists' "$work/said")" "2 1"
expect "whose it is keeps it" [ -e "${first%1}2.status" ]
rm "${first%1}2"
expect "stop" stop
simulate "finish_wrong = 1"
begin
code 1 bench --c1 "$work/small" --count 1
like "it failed" "$(grep '^bench-' "$work/said")" 'FAILED$'
expect "stop" stop

# ---- variants of a C1: other documents, the same public inputs, proofs that verify
mkdir "$work/true"
"$build/tests/system/sim_learn" "$(c1 2KiB-sealed)" "$vectors/2KiB-sealed/proof-r3-s5.txt" "$work/true"
simulate "proofs = $work/true"
start --nodes "cpus:$cpu" --permits 2 --simulate "$work/sim"
wait_for 60 engines_up
code 0 bench --c1 "$(c1 2KiB-sealed)" --count 2
like "two computations" "$(grep '^proofs ' "$work/said")" '2 of 2 done, 0 of them shared'
expect "stop" stop
finish
