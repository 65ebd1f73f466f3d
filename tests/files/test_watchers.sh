# Results appear by create and close, whole, the proof last; every watcher is told of each: of another user, in another mount namespace, at
# another place. And the example that waits misses none.
. "$(dirname "$0")/lib.sh"

learn 2KiB-sealed 2KiB-v1
a=$(c1 2KiB-sealed) b=$(c1 2KiB-v1)
example=$root/doc/examples/wait.sh
chmod 755 "$work"
start
watch_events

# ---- two hundred jobs that end at once
watched=() watchers=()
watch() { # name directory command-before...
    local name=$1 dir=$2
    shift 2
    "$@" inotifywait -m -e create -e close_write -e moved_to --format '%e %f' "$dir" >"$work/seen-$name" 2>"$work/set-$name" &
    watchers+=($!)
    wait_for 20 grep -q established "$work/set-$name" || fail "$name: no watch"
    watched+=("$name")
}
watch plain "$jobs"
if [ "$(id -u)" -eq 0 ]; then
    mkdir "$work/elsewhere"
    trap 'umount -l "$work/elsewhere" 2>/dev/null; clean_up' EXIT
    mount --bind "$mnt" "$work/elsewhere"
    watch user "$jobs" setpriv --reuid 1001 --regid 1001 --clear-groups
    watch namespace "$jobs" unshare -m
    watch bound "$work/elsewhere/jobs"
    watch container "$work/elsewhere/jobs" unshare -m -p -f --kill-child
else
    skip "watchers of another user and another namespace" "not root"
fi
# A script that takes each proof at the first word of it.
while read -r event file; do case $event$file in CREATE*.proof) cat "$jobs/$file" ;; esac; done \
    < <(inotifywait -m -e create --format '%e %f' "$jobs" 2>"$work/set-script") >"$work/proofs" &
watchers+=($!)
watching "$work/set-script"
delays 0 60000
n=200
for i in $(seq $n); do cp "$a" "$jobs/j$i"; done
delays 0 0
seen() { [ "$(grep -c '^CLOSE_WRITE,CLOSE j.*\.proof$' "$work/seen-$1")" -ge $n ]; }
for w in "${watched[@]}"; do
    expect "$w: has been told of $n proofs" wait_for 90 seen "$w"
    for f in report proof.bin proof; do
        same "$w: one CREATE of each .$f" "$(grep -c "^CREATE j.*[0-9]\.$f\$" "$work/seen-$w")" $n
        same "$w: one CLOSE_WRITE of each .$f" "$(grep -c "^CLOSE_WRITE,CLOSE j.*[0-9]\.$f\$" "$work/seen-$w")" $n
    done
    same "$w: nothing by rename" "$(grep -c '^MOVED_TO' "$work/seen-$w")" 0
    same "$w: the proof is the last of each job" "$(grep '^CREATE j.*[0-9]\.' "$work/seen-$w" | sed -E 's/^CREATE (j[0-9]+)(\..*)/\1 \2/' |
        awk '{ last[$1] = $2 } END { for (j in last) print last[j] }' | sort | uniq -c | tr -s ' ')" " $n .proof"
done
all_read() { [ "$(wc -l <"$work/proofs")" -eq $n ]; }
expect "a script has read them" wait_for 30 all_read
same "each was whole when it appeared" "$(sort "$work/proofs" | uniq -c | wc -l) $(awk '{ print length }' "$work/proofs" | sort -u)" "1 384"
all_told() { [ "$(grep -c ' done j' "$work/events")" -eq $n ]; }
expect "events have a line for each" wait_for 10 all_told
kill -KILL "${watchers[@]}"
wait "${watchers[@]}" 2>/dev/null
[ "$(id -u)" -ne 0 ] || umount -l "$work/elsewhere"
remove_all

# ---- the example
for i in 1 2 3 4 5 6 7 8; do
    cp "$a" "$jobs/w$i" # it may be done before the script has begun, or while it begins, or after
    delays 0 $((i * 10))
    out=$(timeout 60 "$example" "$jobs/w$i" 2>&1)
    same "wait.sh $i" "$? $out" "0 $jobs/w$i.proof"
    rm "$jobs/w$i"
done
echo '{}' >"$work/bad"
cp "$work/bad" "$jobs/bad" 2>/dev/null
out=$(timeout 60 "$example" "$jobs/bad" 2>&1)
same "wait.sh of a refused file" "$?" 1
like "says why" "$out" "JSON|C1|byte"
rm "$jobs/bad.error"
timeout 60 "$example" "$jobs/nothing" 2>/dev/null
same "wait.sh of nothing" $? 2
same "wait.sh without a name" "$("$example" 2>&1) $?" "usage: wait.sh /proof/jobs/NAME 2"
delays 0 60000
cp "$a" "$jobs/gone"
timeout 60 "$example" "$jobs/gone" 2>/dev/null & waiter=$!
sleep 1
rm "$jobs/gone"
wait $waiter
same "wait.sh of a job that is cancelled" $? 2

# ---- a restart of the service is a new mount
delays 0 3000
cp "$b" "$jobs/restarted"
timeout 100 "$example" "$jobs/restarted" >"$work/waited" 2>&1 & waiter=$!
sleep 1
kill_front
sleep 0.5
delays 0 1000
restart
wait $waiter
same "wait.sh through a crash and a restart" "$? $(cat "$work/waited")" "0 $jobs/restarted.proof"
rm "$jobs/restarted"
delays 0 60000
cp "$b" "$jobs/restarted"
timeout 100 "$example" "$jobs/restarted" >"$work/waited" 2>&1 & waiter=$!
sleep 1
expect "a stop in good order" stop
delays 0 1000
restart
wait $waiter
same "wait.sh through it" "$? $(cat "$work/waited")" "0 $jobs/restarted.proof"
expect "a clean end" stop
finish
