# The disk of the store is full: who writes is told, nothing is half accepted, what is proved is kept, and all goes on
# when there is room again.
. "$(dirname "$0")/lib.sh"

[ "$(id -u)" -eq 0 ] || lacks "root, to mount a small disk"
mkdir "$store"
mount -t tmpfs -o size=4m none "$store" 2>/dev/null || lacks "the right to mount a tmpfs"
trap 'clean_up 2>/dev/null; umount -l "$store" 2>/dev/null; rm -rf --one-file-system "$work"' EXIT

learn 2KiB-sealed 2KiB-v1 2KiB-sparse
a=$(c1 2KiB-sealed) b=$(c1 2KiB-v1) c=$(c1 2KiB-sparse)
start

fill() { # leaves so many KiB free
    dd if=/dev/zero of="$store/filler" bs=4k status=none 2>/dev/null
    truncate -s -"$1"K "$store/filler"
}
make_room() { rm -f "$store/filler"; }
as_few() { [ "$(ls "$store" | wc -l)" -le "$before" ]; }

full() { # what file name: cp is told
    refuse "$1" cp "$2" "$jobs/$3"
    like "$1: says so" "$(cat "$work/out")" "No space left on device"
    refuse "$1: no job comes of it" test -e "$jobs/$3.status"
    refuse "$1: nor a file" test -e "$jobs/$3"
    rm -f "$jobs/$3.error"
    expect "$1: ls goes on" ls "$jobs"
}

expect "cp with room" cp "$a" "$jobs/before"
ends before done

# ---- from no room at all to nearly enough: the file, the decoded form beside it, the record
for left in 0 4 32 64 100 120 140 160 180; do
    fill $left
    before=$(ls "$store" | wc -l)
    if cp "$b" "$jobs/try" 2>"$work/out"; then
        make_room # for the proof, too
        expect "with $left KiB: taken whole" ends try done
        rm "$jobs/try"
        enough=$left
        break
    fi
    like "with $left KiB: says so" "$(cat "$work/out")" "No space left on device"
    refuse "with $left KiB: no job" test -e "$jobs/try.status"
    refuse "with $left KiB: no file" test -e "$jobs/try"
    rm -f "$jobs/try.error"
    expect "with $left KiB: nothing is left in the store" wait_for 5 as_few
    make_room
done
like "there was enough in the end" "${enough:-never}" "^[0-9]+$"
make_room

# ---- whoever asks is told whose disk it is, and what helps
delays 0 60000
fill 0
refuse "cp" cp "$b" "$jobs/told"
like "the error of the file names the store" "$(cat "$jobs/told.error")" "^a write to $store failed: No space left on device"
rm "$jobs/told.error"
refuse "submit" "$proofctl" submit --mount "$mnt" --name told "$b"
like "says the same" "$(cat "$work/out")" "told: a write to $store failed: No space left on device"
like "so does status" "$(cat "$mnt/status")" "ITS DISK IS FULL: it refused a write [0-9]+ s ago: No space left on device; remove ended jobs"
rm -f "$jobs/told.error"
make_room
expect "cp with room" cp "$b" "$jobs/told"
refuse "status no more" grep -q "DISK IS FULL" "$mnt/status"
rm "$jobs/told"
delays 0 0

# ---- under a temporary name
fill 0
refuse "a temporary file" cp "$b" "$jobs/.t"
like "says so" "$(cat "$work/out")" "No space left on device"
make_room
expect "with room again" cp "$b" "$jobs/.t"
expect "a job" mv "$jobs/.t" "$jobs/t"
expect "which ends" ends t done
rm "$jobs/t"

# A file that fits, but not with what must be written beside it: the rename is told, and works when there is room.
expect "a temporary file" bash -c "cat '$b' >'$jobs/.u'"
fill 0
refuse "that is written again" bash -c "cat '$c' >'$jobs/.u'"
make_room
expect "and once more" bash -c "cat '$c' >'$jobs/.u'"
fill 0
refuse "mv" mv "$jobs/.u" "$jobs/u"
like "says so" "$(cat "$work/out")" "No space left on device"
expect "the file keeps its name" test -e "$jobs/.u"
make_room
expect "mv with room" wait_for 5 mv "$jobs/.u" "$jobs/u"
expect "a job" ends u done
rm "$jobs/u"

# ---- a proof that cannot be written
delays 0 60000
cp "$c" "$jobs/proved"
wait_for 10 in_state proved proving
fill 0
delays 0 0
expect "status tells of proofs in memory" wait_for 10 grep -q "cannot be written" "$mnt/status"
refuse "no proof yet" test -e "$jobs/proved.proof"
full "cp meanwhile" "$b" "other"
make_room
expect "with room it is written" ends proved done
expect "and valid" is_valid "$c" "$jobs/proved.proof"

# ---- a start on a full disk
fill 0
kill_front
restart
expect "the service starts" test -e "$jobs/proved.proof"
expect "results are there" is_valid "$a" "$jobs/before.proof"
full "cp" "$b" "other"
make_room
expect "cp with room" cp "$b" "$jobs/after"
expect "a job" ends after done

# ---- a disk that becomes read-only, and one that is at the start
said() { grep -c "the store's disk is read-only" "$log"; }
if mount -o remount,ro "$store" 2>"$work/out"; then
    for name in first second; do
        refuse "read-only: cp" cp "$b" "$jobs/$name"
        like "says so" "$(cat "$work/out")" "Read-only file system"
    done
    wait_for 5 said >"$work/out"
    same "the log says it once" "$(said)" 1
    mount -o remount,rw "$store"
    expect "cp when it is writable" cp "$b" "$jobs/writable"
    expect "which the log says, too" wait_for 5 grep -q "<6>msg=\"the store's disk can be written again\"" "$log"
    ends writable done
    expect "a clean end" stop
    mount -o remount,ro "$store"
    timeout 60 "$proofd" --mount "$mnt" --store "$store" --params "$params" --engine "$engine" --device none >"$work/refusal" 2>&1
    same "a start on it is refused" $? 1
    like "with place and reason" "$(cat "$work/refusal")" "$store: cannot be written: Read-only file system"
    mount -o remount,rw "$store"
else
    skip "a read-only disk" "$(cat "$work/out")"
    expect "a clean end" stop
fi
finish
