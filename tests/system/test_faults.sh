#!/usr/bin/env bash
# Engines killed at random moments (SIGKILL, SIGSEGV, a hang that the service has to notice) while more than ten jobs are in flight on two
# nodes of simulated devices: every job ends, every proof is made once and is right, nothing is in flight afterwards and nothing leaks.
# KILLS of them, 30 unless told otherwise; make check-faults: 1 000. SEED: the same choice once more.
. "$(dirname "$0")/lib.sh"
real_engine
command -v python3 >/dev/null || lacks "python3"
kills=${KILLS:-$([ -n "${PROOFD_QUICK:-}" ] && echo 12 || echo 30)}
least=$((kills / 50))
[ "$least" -le 20 ] || least=20
seed=${SEED:-$(od -An -N2 -tu2 /dev/urandom | tr -d ' ')}
nodes="cpus:$cpu cpus:$other_cpu"
printf '%s\n' "synthesis_ms = 3" "synthesis_jitter_ms = 9" "start_ms = 3" "start_jitter_ms = 9" "finish_ms = 2" \
    "finish_jitter_ms = 8" "device = 1M" >"$work/sim"

engines_up() { ! grep -q '^proofd_engine_up.* 0$' "$mnt/metrics"; }
metric() { awk -v k="$1" '$1 == k { print $2 }' "$mnt/metrics"; }
descriptors() { ls "/proc/$1/fd" | wc -l; }
engine_of() { sed -nE "s/.*node $1: ready.* pid ([0-9]+).*/\1/p" "$mnt/status"; }
none_in_flight() {
    local n
    for n in 0 1; do
        awk '$1 ~ /^(waiting|synthesizing|ready|proving|finishing)$/ && $2 + $3 > 0 { exit 1 }' "$mnt/nodes/$n/flight" || return 1
        awk '$1 ~ /in_use$|^bytes_in_flight$/ && $2 > 0 { exit 1 }' "$mnt/nodes/$n/permits" || return 1
    done
}

start --nodes "$nodes" --simulate "$work/sim" --tries 1000 --silence 2 --log-level warn
expect "two engines" wait_for 30 engines_up
least() { for _ in 1 2 3 4 5 6 7 8 9 10; do descriptors "$1"; sleep 0.05; done | sort -n | head -n 1; }
front_had=$(least "$front") engine_had=$(least "$(engine_of 0)")
python3 tests/system/kill_engines.py "$mnt" "$kills" "$seed" >"$work/said"
status=$?
cat "$work/said"
said() { awk -v k="$1" '$1 == k { print $2 }' "$work/said"; }
same "every job ended with its proof" $status 0
expect "so many kills" test "$(said kills)" -ge "$kills" # one more where both engines' turn comes at once
expect "ten jobs were there at every kill" test "$(said fewest)" -ge 10
for s in waiting synthesizing ready proving finishing; do
    n=$(awk -v s="$s" '$1 == "stage" && $2 == s { print $3 }' "$work/said")
    expect "at least $least partitions were $s" test "$n" -ge "$least"
done
same "done, as the service says" "$(metric proofd_jobs_done_total)" "$(said jobs_submitted)"
same "failed" "$(metric proofd_jobs_failed_total)" 0
same "every proof was made once" "$(metric proofd_partitions_done_total)" $((10 * $(said jobs_submitted)))
deaths=$(awk '/^proofd_engine_deaths_total/ { n += $2 } END { print n }' "$mnt/metrics")
expect "every kill was a death" test "$deaths" -ge "$kills"
expect "engines are back" wait_for 30 engines_up
expect "nothing is in flight" wait_for 10 none_in_flight
same_descriptors() { [ "$(descriptors "$front")" -eq "$front_had" ] && [ "$(descriptors "$(engine_of 0)")" -eq "$engine_had" ]; }
expect "no descriptor is left over" wait_for 10 same_descriptors
same "nor a process" "$(pgrep -fc "^$engine .*--params $params" -P "$(pgrep -P "$front" | head -n 1)")" 2
expect "a clean end" stop
same "nothing is left in the store" "$(find "$store" -name c1 -o -name job | wc -l)" 0
finish
