#!/usr/bin/env bash
# The service on simulated devices, two logical nodes of them: order, pacing, memory in flight, faults of every kind, and true proofs
# that were known beforehand. After each part nothing is in flight.
. "$(dirname "$0")/lib.sh"
real_engine
chmod 755 "$work" # for other users
nodes="cpus:$cpu cpus:$other_cpu"

simulate() { printf '%s\n' "$@" >"$work/sim"; }
engines_up() { ! grep -q '^proofd_engine_up.* 0$' "$mnt/metrics"; }
begin() {
    start --nodes "$nodes" --simulate "$work/sim" "$@"
    wait_for 30 engines_up
}
test_job() { echo "{\"proofd-test\":{\"partitions\":$2,\"seed\":$3}}" >"$jobs/$1"; }
value() { awk -v k="$2" '$1 == k { print $2 }' "$mnt/$1"; }
column() { awk -v s="$2" -v c="$3" '$1 == s { print $c }' "$mnt/nodes/$1/flight"; }
both() { echo $(($("$1" 0 "${@:2}") + $("$1" 1 "${@:2}"))); }

nothing_in_flight() {
    local n s
    for n in 0 1; do
        for s in waiting synthesizing ready proving finishing; do
            [ "$(column $n $s 2) $(column $n $s 3)" = "0 0" ] || return 1
        done
        [ "$(value nodes/$n/permits in_use) $(value nodes/$n/permits evaluation_parts_in_use)" = "0 0" ] || return 1
        [ "$(value nodes/$n/permits bytes_in_use)" = 0 ] || return 1
    done
}
is_idle() { expect "$1: nothing is in flight" wait_for 10 nothing_in_flight; }

# ---- what it is, and that nobody else takes it
refuse "a test document without a simulated device" "$proofd" --mount "$mnt" --store "$store" --simulate /nonexistent
start
refuse "no test document for a real engine" bash -c "echo '{\"proofd-test\":{\"partitions\":1,\"seed\":1}}' >'$jobs/t'"
expect "stop" stop
echo "start_mx = 1" >"$work/sim"
refuse "an unknown key" "$proofd" --mount "$mnt" --store "$store" --simulate "$work/sim"

# ---- one job, all the way
simulate "synthesis_ms = 2" "start_ms = 10" "finish_ms = 5" "device = 1M"
begin
test_job a 10 7
expect "a is done" ends a done
same "its proof says what it is" "$(head -c 96 "$jobs/a.proof" | xxd -r -p 2>/dev/null | tr -d '\0' | cut -c1-38)" \
    "$(command -v xxd >/dev/null && echo 'proofd-test seed=7 partition=0/10' | cut -c1-38)"
same "it has ten partitions" "$(stat -c %s "$jobs/a.proof.bin")" 1920
same "in order" "$(for i in $(seq 0 9); do tail -c +$((i * 192 + 1)) "$jobs/a.proof.bin" | head -c 40 | tr -d '\0'; echo; done)" \
    "$(for i in $(seq 0 9); do echo "proofd-test seed=7 partition=$i/10"; done)"
refuse "no verifier takes it" is_valid "$(c1 2KiB-sealed)" "$jobs/a.proof.bin"
is_idle "one job"
both_took() { [ "$(column 0 proving 4)" -gt 0 ] && [ "$(column 1 proving 4)" -gt 0 ]; }
expect "both nodes took part" both_took
like "gpus are shown" "$(cat "$mnt/gpus/0/status")" "kind simulated"
sums_agree() { # of the ten partitions, to the rounding
    sed -nE 's/.*"transform_ms": ([0-9.]+), "msm_ms": ([0-9.]+).*/\1 \2/p; s/.*"sum_prove_ms": ([0-9.]+),/-\1 0/p' "$jobs/a.report" |
        awk '{ n += $1 + $2 } END { exit !(NR == 11 && n < 0.1 && n > -0.1) }'
}
expect "its report sums what the partitions took" sums_agree
of_stage() { awk -v m="proofd_stage_seconds_$1" 'index($1, m "{") == 1 && /stage="proving"/ && /'"${2:-.}"'/ { n += $2 } END { print n }' "$mnt/metrics"; }
same "the histogram of a stage has them all" "$(of_stage count) $(of_stage bucket 'le="[+]Inf"')" "10 10"
same "none of them faster than the device" "$(of_stage bucket 'le="0.003"')" 0
same "bytes returned are all that were taken" "$(($(value nodes/0/permits bytes_returned_total) + $(value nodes/1/permits bytes_returned_total)))" \
    $((10 * (65536 + 262144)))

# ---- memory in flight does not depend on the queue
for i in $(seq 1 6); do test_job "many$i" 50 "$i"; done
for i in $(seq 1 6); do expect "many$i is done" ends "many$i" done 60; done
for n in 0 1; do
    same "node $n never had more than its permits" "$(($(value nodes/$n/permits peak) <= $(value nodes/$n/permits permits)))" 1
    same "nor more bytes" "$(($(value nodes/$n/permits bytes_peak) <= 4 * 65536 + 3 * 262144))" 1
done
is_idle "many jobs"
remove_all

# ---- an urgent job does not wait for the queue
expect "stop" stop
simulate "synthesis_ms = 2" "start_ms = 300" "finish_ms = 5" "device = 1M"
begin
for i in 1 2 3 4 5 6 7 8; do test_job "slow$i" 100 "$i"; done
expect "slow1 is proving" wait_for 10 in_state slow1 proving
echo critical >"$jobs/slow1.priority" # and back: priorities reach what is in an engine
echo low >"$jobs/slow1.priority"
test_job urgent 2 2
echo critical >"$jobs/urgent.priority"
expect "urgent is done" ends urgent done
refuse "before those that came earlier" in_state slow8 done
remove_all
is_idle "cancelled jobs"
expect "stop" stop

# ---- users of a priority take turns: a small job of another one does not wait for a long queue
simulate "start_ms = 10"
begin
if [ "$(id -u)" -eq 0 ] && command -v setpriv >/dev/null; then
    other() { setpriv --reuid 1001 --regid 1001 --clear-groups "$@"; }
    for i in 1 2 3 4 5 6 7 8; do test_job "much$i" 100 "$i"; done
    expect "another user's job" other bash -c "echo '{\"proofd-test\":{\"partitions\":4,\"seed\":9}}' >'$jobs/little'"
    expect "little is done" ends little done 30
    refuse "before much that came earlier" in_state much8 done
    refuse "critical is not for everybody" other bash -c "echo critical >'$jobs/little.priority'"
    expect "high is" other bash -c "echo high >'$jobs/little.priority'"
    expect "stop" stop
    begin --critical-group 1001
    expect "critical is for its group" other bash -c "echo critical >'$jobs/little.priority'"
    same "which is what it is" "$(cat "$jobs/little.priority")" critical
    remove_all
else
    skip "users among each other" "not root, or no setpriv"
fi
refuse "a group that is none" "$proofd" --mount "$mnt.no" --store "$work/no" --critical-group nonesuch --check-config
is_idle "users"
expect "stop" stop

# ---- two nodes, one long queue: both work until its end
begin
test_job even 60 3
expect "even is done" ends even done 60
for n in 0 1; do same "node $n had its share" "$(($(column $n proving 4) >= 15))" 1; done
remove_all
expect "stop" stop

# ---- devices that lie: a job fails after its third wrong proof, a device is done without after its third; then jobs wait
simulate "finish_wrong = 1"
begin
all_set_aside() { grep -q 'NO PROVER IS LEFT' "$mnt/status"; }
wrong_proofs() { awk '/^proofd_engine_wrong_proofs_total/ { print $2 }' "$mnt/metrics"; }
# One by one: each has the other device after a wrong proof, so that six are enough. Together more may be on their way when a device is set aside.
for i in 1 2; do
    test_job "w$i" 1 "$i"
    expect "w$i fails" ends "w$i" failed
    like "and says why" "$(cat "$jobs/w$i.error")" "3 proofs in a row do not verify"
done
expect "no prover is left" wait_for 30 all_set_aside
same "the metrics say so" "$(value metrics proofd_no_prover)" 1
same "three wrong proofs each" "$(wrong_proofs | tr '\n' ' ')" "3 3 "
expect "the device says so" wait_for 10 grep -q "state set aside" "$mnt/gpus/0/status"
test_job later 1 9
expect "others are taken, and wait" wait_for 10 in_state later queued
is_idle "no prover"
expect "stop" stop
begin
for i in 3 4 5 6; do test_job "w$i" 1 "$i"; done
expect "no prover is left once more" wait_for 30 all_set_aside
same "three wrong proofs each at least" "$(wrong_proofs | awk '$1 >= 3' | wc -l)" 2
is_idle "no prover once more"
failed_or_waits() { [ -e "$jobs/$1.error" ] || in_state "$1" queued; }
for i in w3 w4 w5 w6 later; do expect "$i has failed, or waits" wait_for 10 failed_or_waits "$i"; done
have_failed=$(ls "$jobs" | grep -c '^\(w[3-6]\|later\)\.error$')
same "none failed before its third" "$((3 * have_failed <= $(wrong_proofs | awk '{ n += $1 } END { print n }')))" 1
expect "stop" stop
simulate
begin
for i in w3 w4 w5 w6 later; do
    [ -e "$jobs/$i.error" ] || expect "$i is done after a restart" ends "$i" done
done
same "as many fail as before" "$(ls "$jobs" | grep -c '^\(w[3-6]\|later\)\.error$')" "$have_failed"
remove_all
expect "stop" stop

# ---- faults of every kind: each job comes to one end, the service lives
simulate "synthesis_jitter_ms = 2" "start_jitter_ms = 4" "finish_jitter_ms = 4" "stall_ms = 400" "device = 1M" \
    "synthesis_error = 0.02" "synthesis_die = 0.005" "start_error = 0.02" "start_die = 0.01" "start_hang = 0.01" \
    "finish_error = 0.02" "finish_die = 0.01" "finish_wrong = 0.01"
begin
for i in $(seq 1 8); do test_job "f$i" 10 "$i"; done
has_final_state() { [ -e "$jobs/$1.proof" ] || [ -e "$jobs/$1.error" ]; }
done_ones=0
for i in $(seq 1 8); do
    expect "f$i comes to an end" wait_for 120 has_final_state "f$i"
    [ ! -e "$jobs/f$i.proof" ] || [ ! -e "$jobs/f$i.error" ] || fail "f$i has two ends"
    [ ! -e "$jobs/f$i.proof" ] || done_ones=$((done_ones + 1))
done
same "most of them with a proof" "$((done_ones >= 4))" 1
same "wrong proofs are none" "$(for i in $(seq 1 8); do
    [ ! -e "$jobs/f$i.proof.bin" ] || for k in $(seq 0 9); do
        tail -c +$((k * 192 + 1)) "$jobs/f$i.proof.bin" | head -c 40 | tr -d '\0' | grep -vx "proofd-test seed=$i partition=$k/10"
    done
done)" ""
is_idle "faults"
kill_front

# ---- after a crash of the front only what is missing is proved again
simulate "start_ms = 100"
begin
expect "what was left is done" wait_for 60 bash -c "! ls '$jobs' | grep -q . || true"
remove_all
test_job crash 100 5
expect "crash is begun" wait_for 30 grep -qE '^proving [1-9][0-9]+/' "$jobs/crash.status"
kill_front
simulate "start_ms = 5"
begin
expect "crash is done" ends crash done 60
same "without doing all of it again" "$(($(column 0 proving 4) + $(column 1 proving 4) <= 90))" 1
is_idle "a crash"
expect "stop" stop

# ---- a sector of 2 KiB, with its true proof known beforehand: the witness is made and the proof is verified
mkdir "$work/true"
"$build/tests/system/sim_learn" "$(c1 2KiB-sealed)" "$vectors/2KiB-sealed/proof-r3-s5.txt" "$work/true"
simulate "proofs = $work/true"
begin --nodes "cpus:$cpu" --permits 2
expect "cp" cp "$(c1 2KiB-sealed)" "$jobs/true"
expect "true is done" ends true done 120
expect "true is valid" is_valid "$(c1 2KiB-sealed)" "$jobs/true.proof"
expect "cp of one it does not know" cp "$(c1 2KiB-sparse)" "$jobs/unknown"
expect "unknown fails" ends unknown failed 180
like "and says why" "$(cat "$jobs/unknown.error")" "not given this proof"
remove_all
expect "stop" stop

# ---- a device that never comes back while it takes parameters takes its engine with it
simulate "proofs = $work/true" "memory = 4G" "load_ms = 600000" "stall_ms = 50"
begin --nodes "cpus:$cpu" --permits 2
expect "cp" cp "$(c1 2KiB-sealed)" "$jobs/hung"
expect "it is noticed" wait_for 60 grep -q 'the device does not answer.*made ready' "$work/log"
simulate "proofs = $work/true" "memory = 4G"
expect "hung is done by the next engine" ends hung done 120
expect "stop" stop
finish
