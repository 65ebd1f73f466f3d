#!/usr/bin/env bash
# Levels of the log, of each module: as they are read, written and refused, and what they do in the front and in its engines.
needs_params=no
. "$(dirname "$0")/lib.sh"
real_engine
printf '%s\n' "synthesis_ms = 1" "start_ms = 1" "finish_ms = 1" "device = 1M" "finish_wrong = 1" >"$work/sim"
says() { grep -qE -- "$2" "$1"; } # FILE PATTERN
levels() { cat "$mnt/log_level"; }
set_levels() { echo "$1" >"$mnt/log_level"; }
engine_up() { grep -q '^proofd_engine_up.* 1$' "$mnt/metrics"; }

# Everything that the front logged before is in the file then; what its engines logged is after a stop.
told() {
    set_levels "front=info"
    kill -HUP "$front"
    wait_for 10 says "$log" 'msg="SIGHUP: options read again"'
}

wrong_job() { # a job whose only proof is wrong three times
    : >"$log"
    echo "{\"proofd-test\":{\"partitions\":1,\"seed\":$1}}" >"$jobs/j$1"
    expect "job $1 fails" ends "j$1" failed
}

# ---- an option; and what engines hear of it at their start
refuse "an option of no level" "$proofd" --check-config --log-level "info sched=loud"
like "says which" "$(cat "$work/out")" "log_level: 'loud' is none of off, err, warn, info, debug"
start --nodes "cpus:$cpu" --simulate "$work/sim" --log-level "warn engine=info"
expect "the engine is up" wait_for 30 engine_up
same "an option" "$(levels)" "warn engine=info"
expect "an engine has its level" wait_for 10 says "$log" '<6>node=0 msg="memory is there"'
refuse "the scheduler has another" says "$log" 'msg="engine ready"'

# ---- the file
set_levels "info"
same "one for all" "$(levels)" "info"
set_levels "sched=debug"
same "one for a module" "$(levels)" "info sched=debug"
printf '%s\n' "warn" "jobs=err" "fuse=off" >"$mnt/log_level"
same "a line for each" "$(levels)" "warn jobs=err fuse=off"
for wrong in loud "info sched=loud" "info shed=debug" "sched=debug info" "jobs=info jobs=info" "jobs=" "=info" " "; do
    refuse "'$wrong'" bash -c "echo '$wrong' >'$mnt/log_level'"
    same "'$wrong' changes nothing" "$(levels)" "warn jobs=err fuse=off"
done
like "status has them" "$(head -n 1 "$mnt/status")" "log level warn jobs=err fuse=off$"
levels >"$work/levels"
set_levels debug
cat "$work/levels" >"$mnt/log_level"
same "what is read may be written" "$(levels)" "$(cat "$work/levels")"

# ---- what they do
set_levels "off engine=err sched=debug"
wrong_job 1
expect "an engine tells what it may" wait_for 10 says "$log" '<3>job=.* msg="a proof is thrown away"'
expect "so does the scheduler" wait_for 10 says "$log" '<7>job=.* stage=prove'
expect "a mark" told
refuse "jobs are off" says "$log" 'state=(queued|failed)'
same "the mark's level is one more" "$(levels)" "off front=info sched=debug engine=err"
expect "a stop" stop

start --nodes "cpus:$cpu" --simulate "$work/sim" --log-level "info"
expect "the engine is up again" wait_for 30 engine_up
set_levels "engine=off sched=off"
wrong_job 2
expect "jobs are told of" wait_for 10 says "$log" '<6>job=.* name=j2 state=failed'
expect "a mark" told
refuse "the scheduler is off" says "$log" "does not verify|stage=|partition failed"
expect "a stop" stop
refuse "the engine is off" says "$log" "thrown away"
finish
