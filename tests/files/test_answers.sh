# Who waits can be interrupted, and costs nothing; nothing else ever waits, whatever the engines do.
. "$(dirname "$0")/lib.sh"

learn 2KiB-sealed 2KiB-v1 2KiB-sparse 2KiB-synthetic
a=$(c1 2KiB-sealed) b=$(c1 2KiB-v1) c=$(c1 2KiB-sparse) d=$(c1 2KiB-synthetic)
descriptors() { ls "/proc/$front/fd" | wc -l; }
resident() { awk '/^VmRSS/ { print $2 }' "/proc/$front/status"; }
none_pending() { [ -z "$(ls $connections)" ] || [ "$(pending)" -eq 0 ]; }

start --max-unfinished 2
[ -n "$(ls $connections)" ] || skip "requests that are left" "no $connections, and not root" # ours is there
watch_events
kill $! # that reader alone would wait
wait $! 2>/dev/null

# ---- interrupted a thousand times, without a leak
delays 0 600000
cp "$a" "$jobs/runs"
cp "$b" "$jobs/waits"
expect "running" wait_for 20 in_state runs proving
often() { # how file n
    timeout 600 python3 tests/files/interrupt.py "$@" >"$work/interrupted" 2>&1
    read -r times ms <"$work/interrupted"
    same "$1: interrupted" "$times" "$3"
    expect "$1: soon (late by $ms ms)" test "${ms:-100000}" -lt 2000
}
often read "$mnt/events" 100 # what is allocated once
often open "$jobs/new" 100
often poll "$jobs/runs.status" 100
[ -z "$(ls $connections)" ] || { cat "$mnt/events" >/dev/null & expect "a reader of events is seen" wait_for 5 eval '[ "$(pending)" -eq 1 ]'; kill $!; }
settle_memory() { wait_for 10 none_pending; sleep 0.2; }
settle_memory
fds=$(descriptors) kb=$(resident)
often read "$mnt/events" 1000
often open "$jobs/new" 1000
often poll "$jobs/runs.status" 1000
expect "no request is left" wait_for 10 none_pending
same "names" "$(names)" "runs runs.priority runs.status waits waits.priority waits.status "
bash -c 'for i in $(seq 30); do cat "$1" >/dev/null & kill -KILL $!; done; wait' x "$mnt/events" 2>/dev/null
settle_memory
same "descriptors" "$(descriptors)" "$fds"
expect "memory ($kb kB before, $(resident) after)" test $(($(resident) - kb)) -lt 2048

# ---- what is read again is new
exec 6<"$jobs/runs.priority"
read -r first <&6
echo high >"$jobs/runs.priority"
same "a file that is open" "$first, $(python3 -c 'import os; print(os.pread(6, 100, 0).decode().strip())')" "normal, high"
exec 6<&-

# ---- first come, first served
like "status says that the queue is full" "$(grep '^places' "$mnt/status")" '2 of 2 taken: the queue is full'
same "df -i: places, taken, free" "$(df --output=itotal,iused,iavail "$mnt" | tail -n 1 | tr -s ' ')" " 2 2 0"
for i in 1 2 3 4 5 6; do
    { cp "$c" "$jobs/q$i" && echo "q$i" >>"$work/order"; } 2>/dev/null &
    writers[i]=$!
    parked "$i"
done
refuse "a non-blocking writer" dd if="$c" of="$jobs/now" oflag=nonblock status=none
like "is told to come again" "$(cat "$work/out")" "temporarily unavailable"
for i in 1 2 3 4 5 6; do # one place after the other
    [ "$i" -eq 1 ] && rm "$jobs/waits" || rm "$jobs/q$((i - 1))"
    expect "q$i has its turn" wait "${writers[i]}"
done
same "in the order of coming" "$(tr '\n' ' ' <"$work/order")" "q1 q2 q3 q4 q5 q6 "
rm "$jobs/q6"
cp "$b" "$jobs/waits"

# ---- an engine that is stopped: everything answers
stopped=$(engine_pid)
kill -STOP "$stopped"
answer() { # what command...: a machine with other things to do takes its time, but who waits for the engine waits for ever
    local what=$1 start=$(date +%s%3N) ms
    shift
    timeout 20 "$@" >"$work/said" 2>&1
    same "$what of a mount whose engine is stopped: status" $? 0
    ms=$(($(date +%s%3N) - start))
    expect "$what: soon ($ms ms)" test $ms -lt 10000
}
for i in 1 2 3; do
    answer ls ls -l "$jobs"
    answer stat stat "$jobs/runs"
    answer df df "$mnt"
    answer "cat of a status" cat "$jobs/runs.status"
    answer "cat of status" cat "$mnt/status"
    answer "cat of metrics" cat "$mnt/metrics"
    answer find find "$mnt" -type f
    answer "a temporary file" cp "$c" "$jobs/.t"
    answer "rm of it" rm "$jobs/.t"
    answer "rm of a job" rm "$jobs/waits"
    answer cp cp "$b" "$jobs/waits"
done
kill -CONT "$stopped"
delays 0 0
rm "$jobs/runs" "$jobs/waits"
wait_for 10 idle
expect "a clean end" stop

# ---- where the kernel ends a mount whose requests wait too long, nobody waits so long
limit=/proc/sys/fs/fuse/default_request_timeout
if [ -w $limit ]; then
    before=$(cat $limit)
    trap 'echo "$before" >$limit; clean_up' EXIT
    echo 8 >$limit
    start --max-unfinished 1
    echo "$before" >$limit
    delays 0 600000
    cp "$a" "$jobs/full"
    timeout 30 cat "$mnt/events" >"$work/beats" & reader=$!
    for i in 1 2 3 4; do # longer than the kernel looks away
        cp "$b" "$jobs/late" 2>"$work/said"
        same "a writer that waits is sent away" $? 1
        like "and told to come again" "$(cat "$work/said")" "temporarily unavailable"
    done
    sleep 5
    expect "the mount lives" ls "$jobs"
    expect "a reader of events has heartbeats" grep -q heartbeat "$work/beats"
    expect "and goes on" kill -0 $reader
    kill $reader
    expect "a clean end" stop
else
    skip "the kernel's request timeout" "$limit cannot be set here: a virtual machine can"
fi
finish
