# Many at a time: concurrent writers, a full queue, and who waits for what.
. "$(dirname "$0")/lib.sh"

learn 2KiB-sealed 2KiB-v1 2KiB-sparse 2KiB-synthetic
names=(2KiB-sealed 2KiB-v1 2KiB-sparse 2KiB-synthetic)
files=()
for n in "${names[@]}"; do files+=("$(c1 "$n")"); done
start --max-unfinished 6

# ---- twenty at once, through a queue of six: all are taken, in the end
delays 20 30
for i in $(seq 0 19); do cp "${files[i % 4]}" "$jobs/j$i" & pids[i]=$!; done
for i in $(seq 0 19); do expect "cp $i" wait "${pids[i]}"; done
for i in $(seq 0 19); do
    expect "j$i is done" ends "j$i" done
    expect "j$i is valid" is_valid "${files[i % 4]}" "$jobs/j$i.proof"
done

# ---- ls while names come and go: what stays is met once
(for i in $(seq 1 40); do cp "${files[0]}" "$jobs/.c$i"; rm "$jobs/.c$i"; done) &
churn=$!
bad=0
while kill -0 $churn 2>/dev/null; do
    [ "$(ls "$jobs" | grep -c '^j[0-9]*\.proof$')" -eq 20 ] || bad=1
done
same "each listing is whole" $bad 0
remove_all

# ---- two writers of one file share it
cp "${files[1]}" "$jobs/both" & one=$!
cp "${files[1]}" "$jobs/both" & two=$!
wait $one; one=$?
wait $two; two=$?
expect "one of two writers succeeds" test $one -eq 0 -o $two -eq 0
if [ -e "$jobs/both.status" ]; then expect "and its job ends" ends both done; fi
rm -f "$jobs/both" "$jobs/both.error"
wait_for 5 idle

# ---- a full queue
delays 0 60000
for i in 0 1 2 3; do cp "${files[i]}" "$jobs/full$i"; done
cp "${files[0]}" "$jobs/full4"
cp "${files[1]}" "$jobs/full5"
same "a non-blocking writer gets EAGAIN" \
    "$(dd if="${files[2]}" of="$jobs/nonblock" oflag=nonblock status=none 2>&1 | grep -o 'Resource temporarily unavailable')" \
    "Resource temporarily unavailable"
refuse "and leaves nothing" test -e "$jobs/nonblock"
cp "${files[2]}" "$jobs/first" & first=$!
parked 1
cp "${files[3]}" "$jobs/second" & second=$!
parked 2
cp "${files[3]}" "$jobs/third" & third=$!
parked 3
expect "cp waits" kill -0 $first $second $third
expect "ls does not" timeout 30 ls "$jobs"
expect "stat does not" timeout 30 stat "$jobs/first"
expect "df does not" timeout 30 df "$mnt"
expect "temporary names do not" timeout 30 cp "${files[2]}" "$jobs/.temporary"
rm "$jobs/.temporary"

kill -TERM $third
wait $third
same "a signal ends the wait" $? 143
expect "an interrupted cp leaves nothing" wait_for 5 bash -c "! test -e '$jobs/third'"
bash -c "exec cp '${files[3]}' '$jobs/fourth'" & fourth=$!
parked 3
kill -KILL $fourth
wait $fourth 2>/dev/null
expect "nor does a killed one" wait_for 5 bash -c "! test -e '$jobs/fourth'"
rm "$jobs/full5"
expect "a place becomes free: the first gets it" wait $first
expect "the second waits on" kill -0 $second
expect "rm of a file that waits ends its cp" rm "$jobs/second"
wait $second
same "with an error" $? 1
for i in 0 1 2 3 4; do rm -f "$jobs/full$i"; done
rm -f "$jobs/first"
expect "all gone" wait_for 10 idle

# ---- where the kernel limits how long a request may be pending, nobody is let wait so long
limit=/proc/sys/fs/fuse/default_request_timeout
if [ -n "${PROOFD_ALL:-}" ] && [ -w $limit ]; then
    expect "stop" stop
    before=$(cat $limit)
    echo 6 >$limit
    start --max-unfinished 1
    echo "$before" >$limit
    cp "${files[0]}" "$jobs/full"
    cp "${files[1]}" "$jobs/waits" 2>"$work/waits"
    same "a writer that waits is sent away" $? 1
    like "with a reason" "$(cat "$work/waits")" "temporarily unavailable"
    expect "a reader of events gets a heartbeat" timeout 10 grep -m 1 heartbeat "$mnt/events"
    rm "$jobs/full"
    expect "stop" stop
    start --max-unfinished 6
fi

# ---- the end of the service ends every wait
for i in 0 1 2 3 4 5; do cp "${files[i % 4]}" "$jobs/full$i"; done
cp "${files[0]}" "$jobs/waits" 2>"$work/waits" & waits=$!
parked 1
expect "a clean end with a writer that waits" stop
wait $waits
same "the writer fails" $? 1
like "with a reason" "$(cat "$work/waits")" "Operation canceled"
delays 0 0
start --max-unfinished 6
for i in 0 1 2 3 4 5; do expect "full$i is done after a restart" ends "full$i" done; done
refuse "the one that waited is no job" test -e "$jobs/waits"
expect "a clean end" stop
finish
