# Watchers: inotify, poll, and the stream of events.
. "$(dirname "$0")/lib.sh"

learn 2KiB-sealed 2KiB-v1 2KiB-sparse
a=$(c1 2KiB-sealed) b=$(c1 2KiB-v1)
delays 100 200
start

count() { grep -c -- "$1" "$2"; }

# ---- inotify
if command -v inotifywait >/dev/null; then
    # At each event of a proof a script reads the file: it must be whole at once.
    inotifywait -q -m -e create,close_write,moved_to,attrib --format '%e %f' "$jobs" >"$work/inotify" 2>&1 &
    wait_for 5 test -n "$(ls /proc/$!/fdinfo)"
    inotifywait -q -m -e create --format '%f' "$jobs" 2>/dev/null | while read -r f; do
        case $f in *.proof) wc -c <"$jobs/$f" ;; esac
    done >"$work/sizes" &
    sleep 0.5
    cp "$a" "$jobs/w"
    ends w done
    cp /dev/null "$jobs/.x" && rm "$jobs/.x" # a mark at the end
    wait_for 5 grep -q '\.x$' "$work/inotify"
    for f in w.report w.proof.bin w.proof; do
        same "one CREATE of $f" "$(count "^CREATE $f\$" "$work/inotify")" 1
        same "one CLOSE_WRITE of $f" "$(count "^CLOSE_WRITE,CLOSE $f\$" "$work/inotify")" 1
    done
    expect "ATTRIB of the status" grep -q '^ATTRIB w.status' "$work/inotify"
    same ".proof is the last" "$(grep '^CREATE w\.' "$work/inotify" | tail -n 1)" "CREATE w.proof"
    wait_for 5 test -s "$work/sizes"
    same "a proof is whole when it appears" "$(cat "$work/sizes")" 385
    rm "$jobs/w"

    timeout 20 inotifywait -q -e close_write --include '/e\.error$' --format '%f' "$jobs" >"$work/error" &
    waiter=$!
    sleep 0.5
    echo '{}' >"$work/f"
    refuse "rubbish" cp "$work/f" "$jobs/e"
    expect "an error raises an event" wait $waiter
    same "of its name" "$(cat "$work/error")" e.error
    rm "$jobs/e.error"
else
    skip "inotify" "inotifywait is not installed"
fi

# ---- poll on a status
poll_status() { # name
    wait_for 10 test -e "$jobs/$1.status"
    "$probe" poll "$jobs/$1.status" 10000
}
delays 700 300
cp "$b" "$jobs/p"
wait_for 5 in_state p synthesizing
same "poll tells of the next state" "$(poll_status p | tr '\n' ' ')" "watching ready in pri proving 0/1 node=0 "
ends p done
same "poll waits when nothing changes" "$("$probe" poll "$jobs/p.status" 300 | tr '\n' ' ')" "watching timeout "
timeout 10 "$probe" poll "$jobs/p.status" 8000 >"$work/poll" &
poller=$!
wait_for 5 grep -q watching "$work/poll"
rm "$jobs/p"
wait $poller
expect "poll tells of the end of a job" grep -q ready "$work/poll"

# ---- events
delays 0 0
same "nothing to read: EAGAIN" "$("$probe" nonblock "$mnt/events")" EAGAIN
cat "$mnt/events" >"$work/events" &
reader=$!
cat "$mnt/events" >"$work/events2" &
reader2=$!
timeout 10 "$probe" poll-events "$mnt/events" 8000 >"$work/poll" &
poller=$!
wait_for 5 grep -q watching "$work/poll"
sleep 0.3
cp "$b" "$jobs/ev"
ends ev done
rm "$jobs/ev"
expect "the removal is told" wait_for 5 grep -q ' removed ev$' "$work/events"
wait $poller
expect "poll wakes" grep -q '^ready in' "$work/poll"
for s in queued done removed; do same "one line for $s" "$(count " $s ev\$" "$work/events")" 1; done
like "form of a line" "$(head -n 1 "$work/events")" '^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:]{8}\.[0-9]{3}Z,[0-9]+\.[0-9]{6} [0-9]+ [a-z]+ ev$'
expect "monotonic time does not go back" eval "cut -d' ' -f1 '$work/events' | cut -d, -f2 | sort -nc"
expect "every reader gets every line" cmp "$work/events" "$work/events2"
kill -INT $reader2 2>/dev/null
kill -TERM $reader2
expect "a reader can be ended" wait_for 5 bash -c "! kill -0 $reader2 2>/dev/null"

mkdir "$work/odd"
odd=$(printf 'a\nb\\c d')
cp "$b" "$jobs/$odd"
ends "$odd" done
expect "a name cannot forge a line" wait_for 5 grep -q ' queued a\\nb\\\\c d$' "$work/events"
rm "$jobs/$odd"

# A reader that sleeps loses lines and is told so.
exec 9<"$mnt/events"
for i in $(seq 1 600); do echo x >"$jobs/.n" && mv "$jobs/.n" "$jobs/.m" && rm "$jobs/.m"; done
timeout 1 dd bs=64k count=100 iflag=nonblock <&9 >"$work/late" 2>/dev/null
exec 9<&-
lines=$(wc -l <"$work/late")
expect "600 removals were told to who reads" wait_for 5 test "$(count ' removed .m$' "$work/events")" -eq 600
expect "the sleeper has them too ($lines lines)" test "$lines" -ge 600
exec 9<"$mnt/events"
for i in $(seq 1 1100); do echo x >"$jobs/.n" && rm "$jobs/.n"; done
timeout 1 dd bs=64k count=100 iflag=nonblock <&9 >"$work/late" 2>/dev/null
exec 9<&-
like "lost events are said first" "$(head -n 1 "$work/late")" '^lost [0-9]+ events$'
same "none is lost in silence" \
    "$(($(head -n 1 "$work/late" | tr -dc 0-9) + $(wc -l <"$work/late") - 1))" 1100

# The end of the service is the end of the file.
expect "a clean end" stop
expect "readers come to an end" wait_for 5 bash -c "! kill -0 $reader 2>/dev/null"
finish
