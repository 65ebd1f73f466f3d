# The mount itself: what may be in its way, what a killed service leaves, what a restart shows.
. "$(dirname "$0")/lib.sh"

learn 2KiB-sealed
a=$(c1 2KiB-sealed)

refuse_start() { # what pattern; the service must end by itself
    local out
    out=$(timeout 60 "$proofd" --mount "$mnt" --store "${3:-$store}" --params "$params" --engine "$engine" 2>&1)
    if [ $? -eq 0 ] || [ $? -eq 124 ]; then fail "$1: started"; return; fi
    like "$1" "$out" "$2"
}

mkdir "$mnt"
touch "$mnt/file"
refuse_start "a mount point that is not empty" "not empty"
rm "$mnt/file"
rmdir "$mnt"
touch "$mnt"
refuse_start "a mount point that is a file" "[Nn]ot a directory"
rm "$mnt"

start
expect "it made the mount point" mountpoint -q "$mnt"
like "what the kernel calls it" "$(grep " $mnt " /proc/mounts)" '^proofd .* fuse.proofd .*nosuid,nodev,noexec.*default_permissions'
refuse_start "a second service on a live mount" "live mount .* is there: stop its service" "$work/store2"
expect "the first goes on" ls "$jobs"
expect "cp" cp "$a" "$jobs/kept"
ends kept done
proof=$(cat "$jobs/kept.proof")

# ---- killed: the next one clears the way
kill_front
refuse "the mount is dead" ls "$jobs"
expect "--check-config does not mind" "$proofd" --check-config --mount "$mnt" --store "$store" --params "$params" --engine "$engine"
start
expect "a new service takes its place" test -e "$jobs/kept"
same "results are simply there" "$(cat "$jobs/kept.proof")" "$proof"
same "all of them" "$(ls "$jobs" | tr '\n' ' ')" "kept kept.priority kept.proof kept.proof.bin kept.report kept.status "
same "one mount" "$(grep -c " $mnt fuse" /proc/mounts)" 1
exec 9<"$jobs/kept" # an open file must not keep it
kill_front
start
expect "again, with a file open" test -e "$jobs/kept"
exec 9<&-

# ---- stopped with files open
exec 9>"$jobs/half"
head -c 1000 "$a" >&9
exec 8<"$mnt/events" 7<"$jobs/kept.status"
expect "a clean end with open files" stop
exec 9>&- 8<&- 7<&-
start
refuse "half a file is no job" test -e "$jobs/half"

# ---- detached from outside: the service ends
if [ "$(id -u)" -eq 0 ]; then umount -l "$mnt"; else fusermount3 -uz "$mnt"; fi
expect "the service ends when its mount is taken away" wait_for 10 bash -c "! kill -0 $front 2>/dev/null"
wait "$front"
front=

# ---- a foreign mount is left alone
if [ "$(id -u)" -eq 0 ] && mount -t tmpfs none "$mnt" 2>/dev/null; then
    touch "$mnt/theirs"
    refuse_start "a filesystem of somebody else" "not empty"
    expect "is still there" test -e "$mnt/theirs"
    umount "$mnt"
else
    skip "a foreign mount" "cannot mount a tmpfs"
fi

# Of FUSE as well, and one that answers nobody is not asked.
if [ "$(id -u)" -eq 0 ] && command -v python3 >/dev/null; then
    python3 -c '
import ctypes, os, sys
fd = os.open("/dev/fuse", os.O_RDWR)
libc = ctypes.CDLL(None, use_errno=True)
data = b"fd=%d,rootmode=40000,user_id=0,group_id=0" % fd
if libc.mount(b"theirs", sys.argv[1].encode(), b"fuse.theirs", 0, data) != 0:
    sys.exit(os.strerror(ctypes.get_errno()))
print("mounted", flush=True)
sys.stdin.read()' "$mnt" < <(sleep 600) >"$work/theirs" &
    theirs=$!
    wait_for 10 grep -q mounted "$work/theirs"
    refuse_start "a FUSE mount of somebody else" "a mount of another program \(fuse.theirs\) is there"
    umount -l "$mnt"
    kill $theirs
else
    skip "a foreign FUSE mount" "not root, or no python3"
fi

# ---- what a mount needs, and is not there
if [ "$(id -u)" -eq 0 ] && unshare -m true 2>/dev/null; then
    real=$proofd
    printf '#!/bin/sh\nexec unshare -m sh -c "mount -t tmpfs none /dev && exec \"\$@\"" sh "%s" "$@"\n' "$real" >"$work/no-device"
    printf '#!/bin/sh\nexec setpriv --bounding-set=-sys_admin "%s" "$@"\n' "$real" >"$work/no-right"
    chmod +x "$work/no-device" "$work/no-right"
    proofd=$work/no-device
    refuse_start "no /dev/fuse" "cannot mount: /dev/fuse is not there: modprobe fuse"
    proofd=$work/no-right
    refuse_start "no right to mount" "cannot mount: the right to mount \(CAP_SYS_ADMIN\) is missing"
    proofd=$real
else
    skip "prerequisites of a mount" "not root, or no mount namespaces"
fi
for inside in "--store $mnt/x" "--params $mnt/x" "--engine $mnt/x" "--simulate $mnt/x"; do
    # shellcheck disable=SC2086 # an option and its value
    like "${inside% *} inside the mount" "$("$proofd" --mount "$mnt" --store "$store" $inside --check-config 2>&1 >/dev/null)" "lies inside the mount"
done
like "the environment's parameters inside the mount" \
    "$(FIL_PROOFS_PARAMETER_CACHE=$mnt/x "$proofd" --mount "$mnt" --store "$store" --check-config 2>&1 >/dev/null)" "lies inside the mount"
like "a mount inside the store" "$("$proofd" --mount "$store/mnt" --store "$store" --check-config 2>&1 >/dev/null)" "lies inside the store"

# ---- a store in use
start
mnt2=$work/mnt2
out=$(timeout 60 "$proofd" --mount "$mnt2" --store "$store" --params "$params" --engine "$engine" 2>&1)
same "a second service on one store" "$([ $? -ne 0 ] && echo refused)" refused
like "and it says whose it is" "$out" "$store: another service \(pid $front\) uses this store: stop it"
expect "the first goes on" test -e "$jobs/kept"
expect "a clean end" stop
finish
