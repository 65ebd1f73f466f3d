# Watchers: inotify, poll, and the stream of events.
. "$(dirname "$0")/lib.sh"
command -v python3 >/dev/null || lacks "python3"

learn 2KiB-sealed 2KiB-v1 2KiB-sparse
a=$(c1 2KiB-sealed) b=$(c1 2KiB-v1)
delays 100 200
start

count() { grep -c -- "$1" "$2"; }

# ---- inotify
if command -v inotifywait >/dev/null; then
    # At each event of a proof a script reads the file: it must be whole at once.
    inotifywait -m -e create,close_write,moved_to,attrib --format '%e %f' "$jobs" >"$work/inotify" 2>"$work/set" &
    inotifywait -m -e create --format '%f' "$jobs" 2>"$work/set2" | while read -r f; do
        case $f in *.proof) wc -c <"$jobs/$f" ;; esac
    done >"$work/sizes" &
    watching "$work/set" && watching "$work/set2"
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

    timeout 60 inotifywait -e close_write --include '/e\.error$' --format '%f' "$jobs" >"$work/error" 2>"$work/set3" &
    waiter=$!
    watching "$work/set3"
    echo '{}' >"$work/f"
    refuse "rubbish" cp "$work/f" "$jobs/e"
    expect "an error raises an event" wait $waiter
    same "of its name" "$(cat "$work/error")" e.error
    rm "$jobs/e.error"
else
    skip "inotify" "inotifywait is not installed"
fi

# ---- poll on a status
delays 60000 60000
cp "$b" "$jobs/p"
wait_for 5 in_state p synthesizing
"$probe" poll "$jobs/p.status" 60000 >"$work/poll" &
poller=$!
wait_for 5 grep -q watching "$work/poll"
delays 0 60000
wait $poller
same "poll tells of the next state" "$(tr '\n' ' ' <"$work/poll")" "watching ready in pri proving 0/1 node=0 "
delays 0 0
ends p done
same "poll waits when nothing changes" "$("$probe" poll "$jobs/p.status" 300 | tr '\n' ' ')" "watching timeout "
"$probe" poll "$jobs/p.status" 60000 >"$work/poll-end" &
poller=$!
wait_for 5 grep -q watching "$work/poll-end"
rm "$jobs/p"
wait $poller
expect "poll tells of the end of a job" grep -q ready "$work/poll-end"

# ---- events
same "nothing to read: EAGAIN" "$("$probe" nonblock "$mnt/events")" EAGAIN
cat "$mnt/events" >"$work/events" &
reader=$!
cat "$mnt/events" >"$work/events2" &
reader2=$!
"$probe" poll-events "$mnt/events" 60000 >"$work/poll-events" &
poller=$!
wait_for 5 grep -q watching "$work/poll-events"
opened $reader "$mnt/events" && opened $reader2 "$mnt/events"
cp "$b" "$jobs/ev"
ends ev done
rm "$jobs/ev"
expect "the removal is told" wait_for 5 grep -q ' removed ev$' "$work/events"
wait $poller
expect "poll wakes" grep -q '^ready in' "$work/poll-events"
for s in done removed; do same "one line for $s" "$(count " $s ev\$" "$work/events")" 1; done
expect "at most one for queued" test "$(count " queued ev\$" "$work/events")" -le 1 # it may be behind that already
like "form of a line" "$(head -n 1 "$work/events")" '^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:]{8}\.[0-9]{3}Z,[0-9]+\.[0-9]{6} [0-9]+ [a-z]+ ev$'
expect "monotonic time does not go back" eval "cut -d' ' -f1 '$work/events' | cut -d, -f2 | sort -nc"
expect "every reader gets every line" wait_for 5 cmp "$work/events" "$work/events2"
kill -INT $reader2 2>/dev/null
kill -TERM $reader2
expect "a reader can be ended" wait_for 5 bash -c "! kill -0 $reader2 2>/dev/null"

mkdir "$work/odd"
odd=$(printf 'a\nb\\c d')
cp "$b" "$jobs/$odd"
ends "$odd" done
expect "a name cannot forge a line" wait_for 5 grep -qE ' [a-z]+ a\\nb\\\\c d$' "$work/events"
rm "$jobs/$odd"

# A reader that sleeps loses lines and is told so.
exec 9<"$mnt/events"
python3 - "$jobs" <<'PY'
import os, sys
for i in range(600):
    with open(sys.argv[1] + "/.n", "w") as f:
        f.write("x\n")
    os.rename(sys.argv[1] + "/.n", sys.argv[1] + "/.m")
    os.unlink(sys.argv[1] + "/.m")
PY
removals() { [ "$(count " removed $1\$" "$work/events")" -eq "$2" ]; }
expect "600 removals were told to who reads" wait_for 5 removals .m 600
timeout 30 dd bs=64k count=100 iflag=nonblock <&9 >"$work/late" 2>/dev/null
exec 9<&-
lines=$(wc -l <"$work/late")
expect "the sleeper has them too ($lines lines)" test "$lines" -ge 600
exec 9<"$mnt/events"
python3 - "$jobs" <<'PY'
import os, sys
for i in range(1100):
    with open(sys.argv[1] + "/.n", "w") as f:
        f.write("x\n")
    os.unlink(sys.argv[1] + "/.n")
PY
expect "1100 removals were told to who reads" wait_for 5 removals .n 1100
timeout 30 dd bs=64k count=100 iflag=nonblock <&9 >"$work/late" 2>/dev/null
exec 9<&-
like "lost events are said first" "$(head -n 1 "$work/late")" '^lost [0-9]+ events$'
same "none is lost in silence" \
    "$(($(head -n 1 "$work/late" | tr -dc 0-9) + $(wc -l <"$work/late") - 1))" 1100

# The end of the service is the end of the file.
expect "a clean end" stop
expect "readers come to an end" wait_for 5 bash -c "! kill -0 $reader 2>/dev/null"
finish
