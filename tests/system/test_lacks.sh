#!/usr/bin/env bash
# What engines lack at present: memory, which jobs wait for however long others have it; and the parameters that are in the files now, where an
# engine has read others before.
. "$(dirname "$0")/lib.sh"
says() { grep -qE -- "$2" "$1"; } # FILE PATTERN
metric() { awk -v k="$1" '$1 == k { print $2 }' "$mnt/metrics"; }
deaths() { awk '/^proofd_engine_deaths_total/ { n += $2 } END { print n }' "$mnt/metrics"; }
died() { [ "$(deaths)" -ge "$1" ]; }
learn 2KiB-sealed 2KiB-sparse
c1=$(c1 2KiB-sealed)

# ---- memory
touch "$FAKE_ENGINE_DIR/busy"
start
cat "$mnt/events" >"$work/events" &
opened $! "$mnt/events"
expect "cp" cp "$c1" "$jobs/job"
expect "the job waits" wait_for 30 says "$jobs/job.status" '^queued 0/1 waiting for memory$'
expect "status says why" says "$mnt/status" '^memory      2KiB: jobs wait for memory, next try in [0-9]+ s: others have the memory$'
expect "and that it does" says "$mnt/status" ' job: queued 0/1, priority .*, waiting for memory$'
expect "the log says so" says "$log" 'waiting for memory.*others have the memory'
expect "an event tells" wait_for 5 says "$work/events" 'engine node=0 waits for memory for 2KiB: others have the memory$'
same "a size is held" "$(metric proofd_sizes_held)" 1
returned() { [ "$(metric proofd_partitions_returned_total)" -ge 2 ]; } # five seconds later
expect "it is tried again" wait_for 30 returned
same "and nothing has failed" "$(metric proofd_jobs_failed_total)" 0
rm "$FAKE_ENGINE_DIR/busy"
expect "done when there is some" ends job "done" 60
expect "with its proof" is_valid "$c1" "$jobs/job.proof"
same "no size is held" "$(metric proofd_sizes_held)" 0
expect "stop" stop

# ---- parameters that have been replaced: the engine goes, and its next one reads what is there now
printf '%064d\n' 7 >"$FAKE_ENGINE_DIR/key"
delays 1500 1500
start
c1=$(c1 2KiB-sparse)
expect "cp" cp "$c1" "$jobs/replaced"
expect "an engine with old parameters ends" wait_for 60 died 2
same "and the job has no proof" "$(ls "$jobs" | grep -c 'replaced.proof')" 0
expect "the log says why" says "$log" 'engine is killed.*it proves with parameters whose files have been replaced'
sha256sum "$params"/*032d3138*.vk | cut -d ' ' -f 1 >"$FAKE_ENGINE_DIR/key"
expect "done with the new ones" ends replaced "done" 120
expect "the proof is of these" says "$jobs/replaced.report" "\"verifying_key_sha256\": \"$(cat "$FAKE_ENGINE_DIR/key")\""

# ---- files that are gone replace nothing
printf '%064d\n' 7 >"$FAKE_ENGINE_DIR/key"
expect "stop" stop
cp -r "$params" "$work/copy"
params=$work/copy
start
expect "cp" cp "$(c1 2KiB-sealed)" "$jobs/gone"
rm "$work/copy"/*.params
expect "done all the same" ends gone "done" 60
same "and no engine ended" "$(deaths)" 0
expect "a clean end" stop
finish
