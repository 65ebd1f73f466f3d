#!/usr/bin/env bash
# Everything at once, for SOAK_SECONDS (an hour unless told otherwise): soak.py says what. SEED: the same choices once more.
# Ends with 'N passed, N failed, N skipped'.
needs_params=no
. "$(dirname "$0")/lib.sh"
real_engine
command -v python3 >/dev/null || lacks "python3"
command -v inotifywait >/dev/null || lacks "inotifywait"
seconds=${SOAK_SECONDS:-3600}
seed=${SEED:-$(od -An -N2 -tu2 /dev/urandom | tr -d ' ')}
nodes="cpus:$cpu cpus:$other_cpu"
chmod 755 "$work" # for other users
device=none
[ ! -w /dev/cuse ] || device=proof-soak-$$
printf '%s\n' "synthesis_ms = 3" "synthesis_jitter_ms = 9" "start_ms = 3" "start_jitter_ms = 9" "finish_ms = 2" \
    "finish_jitter_ms = 8" "device = 1M" >"$work/sim"
printf '%s\n' "max_unfinished = 30" "keep_finished = 0" >"$work/conf"
end_front() { [ ! -e "$work/front" ] || kill -KILL "$(cat "$work/front")" 2>/dev/null; }
trap 'end_front; clean_up' EXIT

echo "seed $seed, $seconds s"
log=$work/log
[ "$device" = none ] && node=none || node=/dev/$device
python3 tests/system/soak.py "$work" "$seconds" "$seed" "$node" "$proofd" --config "$work/conf" --mount "$mnt" --store "$store" \
    --params "$params" --engine "$engine" --device "$device" --nodes "$nodes" --simulate "$work/sim" --tries 1000 --silence 2 --stop-wait 5
status=$?
[ $status -eq 0 ] || failed=1 # for the end of the log
exit $status
