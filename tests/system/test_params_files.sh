#!/usr/bin/env bash
# The files of params/: which there are, what they say, and that what is written to them is done by engines, or refused.
. "$(dirname "$0")/lib.sh"
real_engine
says() { grep -qE -- "$2" "$1"; } # FILE PATTERN
wish() { echo "$1" >"$mnt/params/${2:-2KiB}"; }
engines_up() { [ "$(grep -c '^proofd_engine_up.* 1$' "$mnt/metrics")" -eq "$1" ]; }
file=$(ls "$params"/*032d3138*.params)
p=$mnt/params/2KiB

# ---- simulated devices of two nodes, for which parameters are no more than a key
printf '%s\n' "synthesis_ms = 1" "start_ms = 1" "finish_ms = 1" "device = 1M" >"$work/sim"
start --nodes "cpus:0 cpus:0" --simulate "$work/sim"
cat "$mnt/events" >"$work/events" &
expect "both engines are up" wait_for 60 engines_up 2
same "a file for each size that there is" "$(ls "$mnt/params")" "2KiB"
refuse "none for others" test -e "$mnt/params/32GiB"
same "for operators" "$(stat -c '%a %u %g' "$p")" "664 $(id -u) $(id -g)"
like "where the file is" "$(cat "$p")" "size 2KiB
file $file
file_bytes $(stat -c %s "$file")
trust insecure development parameters
node 0 host no bytes 0 in_use 0"
for wrong in lode "load " "loading" "load node" "load node x" "load node -1" "load node 0 1" "load 0" "evict all" "" "node 0"; do
    refuse "'$wrong'" wish "$wrong"
    like "'$wrong' is not understood" "$(LC_ALL=C bash -c "echo '$wrong' >'$p'" 2>&1)" "Invalid argument"
done
refuse "a node that is not there" wish "load node 7"
expect "one node" wish "load node 1"
expect "loads, and an event tells" wait_for 120 says "$work/events" 'engine node=1 loaded parameters of 2KiB'
expect "it has them" says "$p" '^node 1 host no .* trust insecure$'
refuse "the other does not" says "$p" '^node 0 .* trust'
expect "all nodes" wish load
expect "load" wait_for 120 says "$work/events" 'engine node=0 loaded parameters of 2KiB'
expect "the other has them, too" says "$p" '^node 0 host no .* trust insecure$'
expect "all give up" wish evict
expect "and an event tells" wait_for 120 says "$work/events" 'engine node=0 gave up parameters of 2KiB'
expect "what they have" wait_for 120 eval "! says '$p' ' trust insecure\$'"
expect "giving up what is not there is no error" wish "evict node 0"
expect "and no failure" wait_for 60 eval "! says '$p' 'failed|waits'"
expect "a clean end" stop

# ---- the points themselves, in the memory of an engine
start --nodes "cpus:0-1"
expect "the engine is up" wait_for 60 engines_up 1
expect "load" wish load
expect "it loads" wait_for 600 says "$p" '^node 0 host yes bytes 1[0-9]{9} in_use 0 used_ms [0-9]+ trust insecure$'
like "status says so" "$(cat "$mnt/status")" "holds parameters: 2KiB .insecure development parameters."
settled() { ! says "$p" 'failed|waits|loading'; }
expect "nothing is said of failures" wait_for 60 settled
c1=$(c1 2KiB-sealed)
cp "$c1" "$jobs/job"
expect "a partition runs" wait_for 60 says "$p" 'in_use 1'
refuse "its parameters stay" wish evict
like "and why" "$(LC_ALL=C bash -c "echo evict >'$p'" 2>&1)" "Device or resource busy"
expect "loading them again is nothing" wish load
rm "$jobs/job"
expect "it is cancelled" wait_for 60 says "$p" 'in_use 0'
expect "now they go" wish evict
expect "at the end of what was begun" wait_for 120 says "$p" '^node 0 host no bytes 0 in_use 0$'
refuse "nothing is held" says "$mnt/status" "holds parameters"
expect "a clean end" stop

# ---- files that come and go
mkdir -p "$work/empty"
params=$work/empty
start --nodes "cpus:0"
expect "the engine is up" wait_for 60 engines_up 1
same "no file, no name" "$(ls "$mnt/params")" ""
same "status says where none is" "$(grep '^parameters' "$mnt/status")" "parameters  none in $work/empty"
echo x >"$work/empty/$(basename "$file")"
names_are() { [ "$(ls "$mnt/params")" = "$1" ]; }
expect "a file, a name, within a moment" wait_for 10 names_are 2KiB
like "which says what is wrong" "$(cat "$p")" "trust unusable: .*"
refuse "it cannot be loaded" wish load
rm "$work/empty/"*
expect "no file, no name" wait_for 10 names_are ""
refuse "nothing to write to" wish load
rmdir "$work/empty"
refuse "no directory: cp fails" cp "$c1" "$jobs/job"
like "and why, and what to do" "$(cat "$jobs/job.error")" \
    "^no parameters for 2KiB: .* in $work/empty .no such directory.; .*lotus fetch-params 2KiB.*: proofctl setup --params $work/empty 2KiB"
expect "status says so" wait_for 10 says "$mnt/status" "^parameters  none in $work/empty .no such directory.\$"
mkdir "$work/empty"
expect "a clean end" stop

# ---- insecure parameters that a device may make, where the only prover cannot
if [ -e /dev/nvidiactl ]; then skip "a prover that makes no parameters" "a GPU is here, tests/gpu/service.sh is for that"; finish; fi
like "parameters by devices are for GPUs" \
    "$("$proofd" --mount "$mnt" --store "$store" --gpus none --development-parameters device 2>&1)" "only GPUs make parameters"
like "and nobody else makes any" \
    "$("$proofd" --mount "$mnt" --store "$store" --development-parameters cpu 2>&1)" "'cpu' is neither none nor device"
start --nodes "cpus:0" --development-parameters device
expect "the engine is up" wait_for 60 engines_up 1
same "a name for each size" "$(ls "$mnt/params" | wc -l)" 10
same "what they would be" "$(head -n 4 "$mnt/params/32GiB")" "size 32GiB
file none
made device
trust insecure development parameters"
like "status says so" "$(cat "$mnt/status")" "parameters  all sizes: made on devices .insecure development parameters."
like "so does the log" "$(cat "$log")" "insecure development parameters.*made on devices"
expect "load" wish load
expect "which the prover cannot" wait_for 60 says "$p" '^node 0 load failed: no parameters of 2KiB can be made: cpu makes no parameters'
cp "$c1" "$jobs/job"
expect "a job waits" wait_for 60 says "$jobs/job.status" '^queued 0/1 (node=0 )?waiting for parameters'
expect "status says why" wait_for 60 says "$mnt/status" 'cpu makes no parameters of its own'
refuse "nothing was made" ls "$store/params-insecure"
cp "${file%.params}".* "$work/empty/"
expect "a file is taken in its place" wait_for 600 says "$jobs/job.status" '^(synthesizing|proving|done)'
like "and told" "$(cat "$p")" "file $work/empty/"
rm "$jobs/job"
expect "a clean end" stop
finish
