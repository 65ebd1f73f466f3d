# Every way in which a user's tools write a file makes a job, once; what is there behaves like files.
. "$(dirname "$0")/lib.sh"

learn 2KiB-sealed 2KiB-v1 2KiB-sparse 2KiB-synthetic
a=$(c1 2KiB-sealed) b=$(c1 2KiB-v1)
start

# ---- what is there before anything happens
same "root" "$(ls "$mnt" | grep -vx gpus | tr '\n' ' ')" "events jobs log_level metrics nodes params status "
same "no jobs" "$(ls -A "$jobs")" ""
same "mode of jobs" "$(stat -c '%A %F' "$jobs")" "drwxrwxrwt directory"
same "type of the mount" "$(stat -f -c %T "$mnt")" "fuseblk" 2>/dev/null || true
free() { df --output=avail -B1 "$1" | tail -n 1; }
same_disk() { local d=$(($(free "$mnt") - $(free "$store"))); [ ${d#-} -lt 268435456 ]; }
expect "df tells of the store's disk" wait_for 20 same_disk # others write there, too
same "longest name" "$(stat -f -c %l "$mnt")" 245

# ---- one job, looked at from all sides
expect "cp" cp "$a" "$jobs/one"
like "status at once" "$(cat "$jobs/one.status")" '^(receiving|queued|synthesizing|proving|done) '
expect "done" ends one done
same "status" "$(cat "$jobs/one.status")" "done 1/1 node=0 insecure development parameters"
same "its files" "$(ls "$jobs" | LC_ALL=C sort | tr '\n' ' ')" \
    "one one.priority one.proof one.proof.bin one.report one.status "
expect "the file is as it was written" cmp "$a" "$jobs/one"
expect "the proof is valid" is_valid "$a" "$jobs/one.proof"
expect "the raw proof is valid" is_valid "$a" "$jobs/one.proof.bin"
like "lower-case hex" "$(cat "$jobs/one.proof")" '^[0-9a-f]{384}$'
same "and a newline" "$(wc -lc <"$jobs/one.proof" | tr -s ' ')" "$(printf '%7d %7d' 1 385 | tr -s ' ')"
same "sizes" "$(stat -c %s "$jobs/one.proof" "$jobs/one.proof.bin" "$jobs/one" | tr '\n' ' ')" \
    "385 192 $(stat -c %s "$a") "
like "report" "$(cat "$jobs/one.report")" '"sector"|"comm_r"|"partitions"'
same "priority" "$(cat "$jobs/one.priority")" normal
expect "tail of a file" test "$(tail -c 7 "$jobs/one")" = "$(tail -c 7 "$a")"

# ---- results are the service's
refuse "writing to a proof" bash -c "echo x >$jobs/one.proof"
refuse "appending to a status" bash -c "echo x >>$jobs/one.status"
refuse "a reserved name" cp "$a" "$jobs/two.proof"
refuse "a reserved name" cp "$a" "$jobs/two.priority"
refuse "touch of a reserved name" touch "$jobs/two.error"
refuse "renaming a result" mv "$jobs/one.proof" "$jobs/two"
refuse "renaming to a result" mv "$jobs/one" "$jobs/two.proof"
refuse "rm of a status" rm "$jobs/one.status"
refuse "mkdir" mkdir "$jobs/dir"
refuse "a link" ln -s "$a" "$jobs/link"
refuse "a hard link" ln "$jobs/one" "$jobs/link"
refuse "a fifo" mkfifo "$jobs/fifo"
refuse "a file in the root" cp "$a" "$mnt/file"
refuse "too long a name" cp "$a" "$jobs/$(printf 'n%.0s' {1..246})"
refuse "rmdir of jobs" rmdir "$jobs"
same "nothing has come of it" "$(ls "$jobs" | wc -l)" 6

# ---- results may be taken away
expect "mv of a proof to another filesystem" mv "$jobs/one.proof" "$work/taken"
expect "it is what it was" is_valid "$a" "$work/taken"
refuse "it is gone" test -e "$jobs/one.proof"
expect "the rest is there" test -e "$jobs/one.proof.bin"
expect "rm forgets the job" rm "$jobs/one"
same "with all its files" "$(ls -A "$jobs")" ""

# ---- each tool, each in its own way; equal contents share one computation
name=$(printf 'n%.0s' {1..245})
expect "cp, the longest name" cp "$a" "$jobs/$name"
expect "cp -p" cp -p "$a" "$jobs/cp-p"
expect "cp -a" cp -a "$a" "$jobs/cp-a"
expect "install" install -m 600 "$a" "$jobs/install"
same "install's mode" "$(stat -c %a "$jobs/install")" 600
expect "cat >" bash -c "cat '$a' >'$jobs/cat'"
expect "cat >>" bash -c "cat '$a' >>'$jobs/append'"
expect "cat in two pieces" bash -c "{ head -c 1000 '$a'; tail -c +1001 '$a'; } | cat >'$jobs/pieces'"
expect "tee" bash -c "tee '$jobs/tee' <'$a' >/dev/null"
for bs in 512 4k 1M 10M; do expect "dd bs=$bs" dd if="$a" of="$jobs/dd-$bs" bs=$bs status=none; done
expect "dd conv=fsync" dd if="$a" of="$jobs/dd-fsync" conv=fsync status=none
expect "dd oflag=append" dd if="$a" of="$jobs/dd-append" oflag=append conv=notrunc bs=4k status=none
expect "from the end to the beginning" "$probe" chunks "$a" "$jobs/backwards" 5000
expect "a bad end that is put right" "$probe" late "$a" "$jobs/late"
cp "$a" "$work/outside"
expect "mv from another filesystem" mv "$work/outside" "$jobs/mv"
expect "a temporary name and mv" bash -c "cp '$a' '$jobs/.renamed.tmp' && mv '$jobs/.renamed.tmp' '$jobs/renamed'"
if command -v rsync >/dev/null; then
    expect "rsync" rsync "$a" "$jobs/rsync"
    expect "rsync -a --inplace" rsync -a --inplace "$a" "$jobs/rsync-inplace"
    ends rsync-inplace done # rsync writes it again, for its time is another; a job that runs would be busy
    expect "rsync of the same again" rsync -a --inplace "$a" "$jobs/rsync-inplace"
    rsynced="rsync rsync-inplace"
else
    skip "rsync" "rsync is not installed"
    rsynced=
fi
for j in "$name" cp-p cp-a install cat append pieces tee dd-512 dd-4k dd-1M dd-10M dd-fsync dd-append backwards late mv \
    renamed $rsynced; do
    expect "$j is done" ends "$j" done
    expect "$j is valid" is_valid "$a" "$jobs/$j.proof"
done
refuse "mv has moved" test -e "$work/outside"

same "a result is read from its middle" "$(tail -c +97 "$jobs/$name.proof.bin" | od -An -tx1 | tr -d ' \n')" \
    "$(tail -c +193 "$jobs/$name.proof" | tr -d '\n')"

# ---- temporary names are no jobs
for t in .hidden draft.json~ x.swp x.swpx x.tmp x.part sedAbC123; do
    expect "writing $t" bash -c "echo rubbish >'$jobs/$t'"
    refuse "$t has no status" test -e "$jobs/$t.status"
    same "$t is kept" "$(cat "$jobs/$t")" rubbish
    expect "rm $t" rm "$jobs/$t"
done
cp "$b" "$jobs/edit"
expect "edit is done" ends edit done
expect "sed -i makes a new job of a file" bash -c "cd '$jobs' && sed -i '' edit"
expect "which is done" ends edit done
expect "and the same" cmp "$b" "$jobs/edit"

# ---- renaming keeps the job
id=$(stat -c %i "$jobs/edit")
expect "mv of a job" mv "$jobs/edit" "$jobs/edited"
same "it is the same job" "$(stat -c %i "$jobs/edited")" "$id"
expect "its results follow" is_valid "$b" "$jobs/edited.proof"
refuse "the old name is gone" test -e "$jobs/edit.status"
remove_all

# ---- names in use
delays 0 60000
cp "$a" "$jobs/busy"
wait_for 10 in_state busy proving
refuse "cp over a job that runs" cp "$b" "$jobs/busy"
like "says busy" "$(cat "$work/out")" 'Device or resource busy'
cp "$b" "$jobs/.other"
refuse "mv over a job that runs" mv "$jobs/.other" "$jobs/busy"
delays 0 0
expect "the job goes on" ends busy done
expect "with its content" is_valid "$a" "$jobs/busy.proof"
expect "cp over a job that has ended" cp "$b" "$jobs/busy"
expect "is a new job" ends busy done
expect "of the new content" is_valid "$b" "$jobs/busy.proof"
refuse "and not the old" is_valid "$a" "$jobs/busy.proof"
expect "mv over a job that has ended" bash -c "cp '$a' '$jobs/.z' && mv '$jobs/.z' '$jobs/busy'"
expect "is a new job" ends busy done
expect "of the new content" is_valid "$a" "$jobs/busy.proof"
rm -f "$jobs/.other"
remove_all

# ---- cancelling
delays 0 60000
cp "$a" "$jobs/cancel"
wait_for 10 in_state cancel proving
expect "rm cancels" rm "$jobs/cancel"
same "and leaves nothing" "$(ls -A "$jobs")" ""
delays 0 0
expect "its name is free" cp "$b" "$jobs/cancel"
expect "for another job" ends cancel done
remove_all

# ---- odd things that leave nothing
expect "touch" touch "$jobs/touched"
wait_for 5 idle
same "touch leaves nothing" "$(ls -A "$jobs")" ""
cat "$mnt/events" >"$work/told-of-empty" & reader=$!
sleep 0.2
expect "an empty file" cp /dev/null "$jobs/empty"
wait_for 5 idle
expect "is told of" wait_for 5 grep -q ' - closed empty, which makes no job: empty$' "$work/told-of-empty"
kill $reader
same "and in the log" "$(grep -c 'name=empty msg="closed empty, which makes no job"' "$log")" 1
same "an empty file leaves nothing" "$(ls -A "$jobs")" ""
expect "priority of a new job" bash -c "cp '$a' '$jobs/p' && echo high >'$jobs/p.priority'"
same "is read back" "$(cat "$jobs/p.priority")" high
refuse "a wrong priority" bash -c "echo highest >'$jobs/p.priority'"
expect "log_level can be set" bash -c "echo debug >'$mnt/log_level'"
same "and is read back" "$(cat "$mnt/log_level")" debug
refuse "a wrong level" bash -c "echo loud >'$mnt/log_level'"
refuse "status is read only" bash -c "echo x >'$mnt/status'"
expect "chmod" chmod 600 "$jobs/p"
same "of a job" "$(stat -c %a "$jobs/p" "$jobs/p.status" | tr '\n' ' ')" "600 400 "
expect "times are taken without effect" touch -d 2001-01-01 "$jobs/p"
ends p done

expect "a clean end" stop
refuse "the mount is gone" mountpoint -q "$mnt"
finish
