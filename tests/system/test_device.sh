#!/usr/bin/env bash
# The device: where the kernel has CUSE and this user may open it, with the clients of doc/examples; elsewhere, that its
# absence costs nothing else. Its jobs are of the test kind and a simulated device takes them.
needs_params=no
. "$(dirname "$0")/lib.sh"
real_engine
name=proof-test-$$
device=/dev/$name
client=$build/doc/examples/device-client
shell_client=doc/examples/device-client.sh
export PROOF_DEVICE=$device PROOF_MOUNT=$mnt

doc() { # partitions seed
    local f=$work/doc-$1-$2
    echo "{\"proofd-test\":{\"partitions\":$1,\"seed\":$2}}" >"$f"
    echo "$f"
}
engine_up() { grep -q '^proofd_engine_up.* 1$' "$mnt/metrics"; }
begin() {
    "${1:-start}" --nodes all --simulate "$work/sim" --device "$name"
    wait_for 30 engine_up
}
resident() { awk '/^VmRSS/ { print $2 }' "/proc/$front/status"; }
hex_bytes() { tr -d '\n' | wc -c; }
printf 'start_ms = 20\nfinish_ms = 20\n' >"$work/sim"

refuse "a path for a name" "$proofd" --mount "$mnt" --store "$store" --device ../x --check-config
begin
cp "$(doc 1 100)" "$jobs/beside"
expect "the mount is there in any case" ends beside done
if [ ! -c /dev/cuse ] || ! : 2>/dev/null <>/dev/cuse; then
    same "one line says that there is no device" "$(grep -c "msg=\"no device.*device=$name" "$log")" 1
    expect "and it stops in good order" stop
    skip "the device" "no /dev/cuse"
    finish
fi

# ---- jobs
expect "it is there when the service is" test -c "$device"
"$client" watch >"$work/watch" &
watcher=$!
(exec cat "$device" >"$work/raw1") &
raw1=$!
(exec cat "$device" >"$work/raw2") &
raw2=$!
descriptors() { ls -l "/proc/$1/fd" | grep -q "$device"; }
for p in $watcher $raw1 $raw2; do expect "a reader" wait_for 10 descriptors "$p"; done
sleep 0.3 # an open(2) that the kernel shows is answered

expect "a job by the C client" bash -c "'$client' submit '$(doc 3 1)' three >'$work/proof'"
same "its proof" "$(hex_bytes <"$work/proof")" $((192 * 3 * 2))
expect "is that of the mount" ends three done
expect "to the byte" cmp "$work/proof" "$jobs/three.proof"
same "its status" "$("$client" status three)" "three: done 3/3"
expect "to wait for what has ended" "$client" wait three
expect "a job by the shell client" bash -c "'$shell_client' '$(doc 2 2)' >'$work/proof'"
same "the shell's proof" "$(hex_bytes <"$work/proof")" $((192 * 2 * 2))
expect "a large proof comes in pieces" bash -c "'$client' submit '$(doc 40 3)' forty >'$work/proof'"
same "all of it" "$(hex_bytes <"$work/proof")" $((192 * 40 * 2))
refuse "a name in use" "$client" submit "$(doc 1 4)" three

# ---- what is wrong
echo '{}' >"$work/rubbish"
"$client" submit "$work/rubbish" rubbish 2>"$work/why"
same "rubbish: exit status" $? 1
expect "and why" grep -q 'rubbish: ' "$work/why"
expect "as in the mount" test -e "$jobs/rubbish.error"
"$shell_client" "$work/rubbish" 2>"$work/why"
same "rubbish in shell" $? 1
head -c 20 "$(doc 1 5)" >"$work/half"
cat "$work/half" >"$device"
before=$(ls "$jobs" | grep -c '\.status$')
wait_for 10 test -e "$jobs/device-3.error"
expect "half a document is refused" test -e "$jobs/device-3.error"
refuse "and is no job" test -e "$jobs/device-3"
: >"$device"
same "an empty one leaves nothing" "$(ls "$jobs" | grep -c '\.status$')" "$before"

# ---- readers
same "nothing to read: EAGAIN" "$("$probe" nonblock "$device")" EAGAIN
rm "$jobs/three"
expect "the watcher sees the end" wait_for 10 grep -q 'removed three$' "$work/watch"
like "and the way there" "$(grep ' three$' "$work/watch" | cut -d' ' -f3 | uniq | tr '\n' ' ')" 'queued .*done .*removed '
sleep 0.3
expect "every reader has every record" cmp "$work/raw1" "$work/raw2"
same "whole records" $(($(stat -c %s "$work/raw1") % 304)) 0
timeout 10 "$probe" poll-events "$device" 8000 >"$work/poll" &
poller=$!
wait_for 5 grep -q watching "$work/poll"
sleep 0.3
expect "something happens" "$client" submit "$(doc 1 6)" six
wait $poller
expect "poll wakes" grep -q '^ready in' "$work/poll"
kill -INT $raw2 2>/dev/null
kill -TERM $raw2
expect "a blocked reader can be ended" wait_for 5 bash -c "! kill -0 $raw2 2>/dev/null"
# Threads that come up under load bring memory of their own, each once; a leak grows in every round.
polls_are_flat() {
    local before after
    for _ in 1 2 3 4 5; do
        before=$(resident)
        "$probe" polls "$device" ${POLLS:-20000} || return 1
        after=$(resident)
        [ "$after" -gt $((before + 512)) ] || return 0
        echo "$before, then $after KiB"
    done
    return 1
}
expect "polls leave memory flat" polls_are_flat

# ---- waiting, cancelling
printf 'start_ms = 20\nfinish_ms = 60000\n' >"$work/sim"
kill -TERM $watcher $raw1
expect "stop" stop
expect "the device goes with the service" wait_for 5 test ! -e "$device"
begin
"$client" submit "$(doc 1 7)" long >/dev/null 2>&1 &
submitter=$!
wait_for 10 in_state long proving
"$client" wait long >"$work/wait" &
waiter=$!
sleep 0.3
if [ "$(id -u)" -eq 0 ] && command -v setpriv >/dev/null; then
    chmod 666 "$device"
    refuse "others cannot cancel" setpriv --reuid 65534 --regid 65534 --clear-groups "$client" cancel long
    expect "nor does it end" in_state long proving
fi
expect "cancel" "$client" cancel long
wait $waiter
same "who waits is told" "$(cut -d' ' -f2 "$work/wait")" cancelled
wait $submitter
same "and so is who submitted" $? 1
"$client" submit "$(doc 1 8)" interrupted >/dev/null 2>&1 &
submitter=$!
wait_for 10 in_state interrupted proving
kill -TERM $submitter
expect "a wait can be interrupted" wait_for 5 bash -c "! kill -0 $submitter 2>/dev/null"
expect "which does not end the job" in_state interrupted proving

# ---- a second service, a kill, a restart
mkdir "$work/other"
"$proofd" --mount "$work/other/mnt" --store "$work/other/store" --engine "$fake" --device "$name" >"$work/other/log" 2>&1 &
other=$!
expect "another service runs without it" wait_for 30 test -e "$work/other/mnt/status"
expect "and says why" wait_for 5 grep -q 'no device' "$work/other/log"
expect "this one keeps it" "$client" status interrupted
kill -TERM $other
wait $other
"$client" watch >"$work/watch" 2>&1 &
watcher=$!
wait_for 5 descriptors $watcher
sleep 0.3
kill_front
detach
expect "who reads from a service that was killed is told" wait_for 10 bash -c "! kill -0 $watcher 2>/dev/null"
expect "the device is gone" wait_for 10 test ! -e "$device"
printf 'start_ms = 20\nfinish_ms = 20\n' >"$work/sim"
begin restart
expect "and comes back" test -c "$device"
expect "with the jobs" bash -c "timeout 60 '$client' wait interrupted"
(exec cat "$device" >/dev/null) &
reader=$!
wait_for 5 descriptors $reader
sleep 0.3
expect "a clean end" stop
wait $reader
same "is the end of the file for a reader" $? 0
finish
