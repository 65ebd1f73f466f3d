# SIGTERM: nothing new is taken, what engines have begun may end in its time, the rest goes back to the queue; nothing is lost.
. "$(dirname "$0")/lib.sh"

learn 2KiB-sealed 2KiB-v1 2KiB-sparse
a=$(c1 2KiB-sealed) b=$(c1 2KiB-v1) c=$(c1 2KiB-sparse)
cannot_open() { # FILE: says why
    dd if="$b" of="$1" status=none 2>"$work/why" && return 1
    grep -q "Operation canceled" "$work/why"
}
waits_for_end() { kill -0 "$front" 2>/dev/null; }
now() { date +%s%3N; }

# ---- in time: a proof that has been begun is made, a file that is being written may be finished
delays 0 600000
start --max-unfinished 2 --stop-wait 600
cp "$a" "$jobs/begun"
expect "begun" wait_for 20 in_state begun proving
exec 7>"$jobs/half"
head -c 1000 "$b" >&7 2>/dev/null # its close is judged, too early
cp "$c" "$jobs/waits" 2>"$work/waits" & waits=$!
sleep 0.3
expect "a writer that waits" kill -0 $waits
kill -TERM "$front"
expect "no new file" wait_for 20 cannot_open "$jobs/new"
wait $waits
like "who waited is told" "$(cat "$work/waits")" "Operation canceled"
expect "begun is still proving" in_state begun proving
expect "status says it" grep -q '^stopping  *no file can be opened' "$mnt/status"
tail -c +1001 "$b" >&7
exec 7>&-
delays 0 0
wait "$front"
same "a clean end" $? 0
refuse "nothing went back" grep -q "goes back to the queue" "$log"
delays 0 600000
start --max-unfinished 2
expect "what had been begun is done, and not made again" in_state begun done
expect "it is valid" is_valid "$a" "$jobs/begun.proof"
refuse "what was refused is no job" test -e "$jobs/new"
refuse "nor is what waited" test -e "$jobs/waits"
expect "what was being written is one" test -e "$jobs/half.status"
rm "$jobs/half"
expect "stop" stop

# ---- not in time: back to the queue
start --stop-wait 1
cp "$c" "$jobs/long"
expect "long is begun" wait_for 20 in_state long proving
from=$(now)
expect "stop" stop
ms=$(($(now) - from))
expect "after the time that there is ($ms ms)" test $ms -ge 1000
expect "and soon" test $ms -lt 120000
expect "as the log says" grep -q "goes back to the queue" "$log"

# ---- another signal
start --stop-wait 1h
expect "long is begun again" wait_for 20 in_state long proving
kill -TERM "$front"
sleep 0.3
expect "it is waited for" waits_for_end
expect "no new file" wait_for 20 cannot_open "$jobs/new"
cannot() { # WHAT ARGUMENT...: proofctl says that the service is stopping, which is no answer
    local what=$1 status
    shift
    "$proofctl" "$@" >"$work/said" 2>&1
    status=$?
    same "$what: exit status" $status 2
    like "$what says so" "$(cat "$work/said")" "the service is stopping: ask again"
    refuse "$what is no refusal" grep -q refused "$work/said"
}
cannot "submit" submit --mount "$mnt" --name late "$b"
cannot "submit --wait" submit --mount "$mnt" --wait --name late "$b"
cannot "submit --json" submit --mount "$mnt" --json --name late "$b"
same "which is an error" "$(jq -r '.error | split(":")[0]' "$work/said")" "the service is stopping"
cannot "bench" bench --mount "$mnt" --c1 "$b" --count 1
expect "a second signal ends that" stop
delays 0 0
start
expect "long is done in the end" ends long done
expect "long is valid" is_valid "$c" "$jobs/long.proof"
expect "a stop with nothing to do" stop

# ---- umount is a stop too: what has been begun may end, and the next start shows it
learn 2KiB-synthetic
d=$(c1 2KiB-synthetic)
take_away() { if [ "$(id -u)" -eq 0 ]; then umount "$mnt"; else fusermount3 -u "$mnt"; fi; }
says_taken_away() { [ "$(grep -c "the mount was taken away, stopping" "$log")" -eq "$1" ]; }
went_back() { grep -c "goes back to the queue" "$log"; }
delays 0 600000
start --stop-wait 600
cp "$d" "$jobs/unmounted"
expect "unmounted is begun" wait_for 20 in_state unmounted proving
before=$(went_back)
expect "the mount is taken away" wait_for 20 take_away # busy while somebody looks at it
expect "the log says so" wait_for 20 says_taken_away 1
kill -HUP "$front"
sleep 0.3
expect "what has been begun is waited for" waits_for_end
if [ "$(id -u)" -eq 0 ]; then expect "another has the place" mount -t tmpfs another "$mnt"; fi
delays 0 0
wait "$front"
same "a clean end" $? 0
if [ "$(id -u)" -eq 0 ]; then expect "and keeps it" umount "$mnt"; fi
same "nothing went back" "$(went_back)" "$before"
same "nothing was written below the mount" "$(ls -A "$mnt")" ""
delays 0 600000
start --stop-wait 1h
expect "unmounted is done, and not made again" in_state unmounted done
expect "it is valid" is_valid "$d" "$jobs/unmounted.proof"
rm "$jobs/unmounted"
cp "$d" "$jobs/unmounted"
expect "again it is begun" wait_for 20 in_state unmounted proving
expect "the mount is taken away" wait_for 20 take_away
expect "the log says so" wait_for 20 says_taken_away 2
expect "a signal ends that" stop
delays 0 0
start
expect "unmounted is done in the end" ends unmounted done
rm "$jobs/unmounted"
expect "stop" stop

# ---- what an engine has not begun goes back at once: of a hundred partitions a few are proved
real_engine
printf 'synthesis_ms = 5\nstart_ms = 300\nfinish_ms = 300\n' >"$work/sim"
done_ever() { awk '$1 == "proofd_partitions_done_total" { print $2 }' "$mnt/metrics"; }
start --nodes all --simulate "$work/sim" --stop-wait 60
echo '{"proofd-test":{"partitions":100,"seed":1}}' >"$jobs/many"
expect "many is begun" wait_for 30 eval '[ "$(done_ever)" -ge 2 ]'
before=$(done_ever) # or more, by the time that the signal is there
expect "stop" stop
late=$(awk '/msg=stopping/ { n = 0 } /stage=verified/ { n++ } END { print n }' "$log")
start --nodes all --simulate "$work/sim"
after=$(cut -d' ' -f2 "$jobs/many.status" | cut -d/ -f1)
expect "what was begun was kept ($before, then $after, $late of them while it stopped)" \
    test "$after" -gt "$before" -a "$late" -gt 0 -a "$late" -le 8
rm "$jobs/many"
expect "stop" stop
finish
