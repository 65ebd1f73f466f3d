# The service of an ordinary user, by fusermount3; and what other users can do on a mount of root's.
. "$(dirname "$0")/lib.sh"

[ "$(id -u)" -eq 0 ] || lacks "root, to become two other users"
command -v fusermount3 >/dev/null || lacks "fusermount3"
command -v setpriv >/dev/null || lacks "setpriv"

learn 2KiB-sealed 2KiB-v1
a=$(c1 2KiB-sealed) b=$(c1 2KiB-v1)
chmod 755 "$work"
as() { # uid command...
    local uid=$1
    shift
    setpriv --reuid "$uid" --regid "$uid" --clear-groups "$@"
}

# ---- users on root's mount
start
delays 0 60000
expect "a user may submit" as 1001 cp "$a" "$jobs/theirs"
same "and owns it" "$(stat -c '%u %g' "$jobs/theirs" "$jobs/theirs.status" | tr '\n' ' ')" "1001 1001 1001 1001 "
as 1001 chmod 600 "$jobs/theirs"
refuse "another user cannot read it" as 1002 cat "$jobs/theirs"
refuse "nor its status" as 1002 cat "$jobs/theirs.status"
refuse "nor submit to its name" as 1002 "$proofctl" submit --mount "$mnt" --name theirs "$a"
like "and is told of another" "$(cat "$work/out")" "theirs: refused: Permission denied \(--name gives another\)"
refuse "nor cancel it" as 1002 rm -f "$jobs/theirs"
refuse "nor rename it" as 1002 mv "$jobs/theirs" "$jobs/mine"
refuse "nor hurry it" as 1002 bash -c "echo high >'$jobs/theirs.priority'"
refuse "nor give it away" as 1001 chown 1002 "$jobs/theirs"
refuse "nor set the log level" as 1001 bash -c "echo debug >'$mnt/log_level'"
expect "its owner may hurry it" as 1001 bash -c "echo high >'$jobs/theirs.priority'"
expect "and read it" as 1001 cmp "$a" "$jobs/theirs"
expect "and cancel it" as 1001 rm "$jobs/theirs"
delays 0 0
expect "a user's job" as 1001 bash -c "umask 077; cat '$a' >'$jobs/secret'"
expect "is done" ends secret done
refuse "its proof is its owner's" as 1002 cat "$jobs/secret.proof"
expect "who can take it" as 1001 cat "$jobs/secret.proof"
refuse "who cannot write it" as 1001 bash -c "echo x >'$jobs/secret.proof'"
if command -v inotifywait >/dev/null; then
    as 1002 timeout 60 inotifywait -e close_write --include '/open\.proof$' --format %f "$jobs" >"$work/seen" 2>"$work/set" &
    watcher=$!
    watching "$work/set"
    as 1001 cp "$b" "$jobs/open"
    wait $watcher
    same "a watcher of another user sees a proof" "$(cat "$work/seen")" open.proof
else
    skip "a watcher of another user" "inotifywait is not installed"
fi
expect "a clean end" stop

# ---- a shared group: 1500, with 1001 and 1002 in it, and not 1003
in_group() { # uid command...
    local uid=$1
    shift
    setpriv --reuid "$uid" --regid "$uid" --groups 1500 "$@"
}
start --shared-group 1500
delays 0 60000
expect "a member's job" in_group 1001 bash -c "umask 077; cat '$a' >'$jobs/shared'"
same "is the group's" "$(stat -c '%u %g %A' "$jobs/shared")" "1001 1500 -rw-r-----"
expect "a member may read it" in_group 1002 cmp "$a" "$jobs/shared"
expect "and its status" in_group 1002 cat "$jobs/shared.status"
refuse "others may not" as 1003 cat "$jobs/shared"
refuse "nor cancel it" as 1003 rm -f "$jobs/shared"
refuse "nor rename it" as 1003 mv "$jobs/shared" "$jobs/theirs"
as 1003 bash -c "umask 077; cat '$b' >'$jobs/private'"
same "a job of who is not in the group" "$(stat -c '%u %g %A' "$jobs/private")" "1003 1003 -rw-------"
refuse "is not the group's to read" in_group 1002 cat "$jobs/private"
refuse "nor to cancel" in_group 1002 rm -f "$jobs/private"
refuse "nor to replace" in_group 1002 mv "$jobs/shared" "$jobs/private"
expect "a member may rename a member's" in_group 1002 mv "$jobs/shared" "$jobs/renamed"
expect "and cancel it" in_group 1002 rm "$jobs/renamed"
expect "an owner his own" as 1003 rm "$jobs/private"
expect "a clean end" stop
delays 0 0

# ---- a service of a user's own
nobody=$(id -u nobody) || { skip "a user's own service" "there is no user nobody"; finish; }
if ! as "$nobody" test -x "$proofd" || ! as "$nobody" test -r "$params"; then
    skip "a user's own service" "the build or the parameters are not open to other users"
    finish
fi
mode=$(stat -c %a /dev/fuse)
if ! as "$nobody" test -w /dev/fuse; then
    if [ -z "${CI:-}${PROOFD_ALL:-}" ]; then
        skip "a user's own service" "/dev/fuse is mode $mode (PROOFD_ALL=1 opens it for the test)"
        finish
    fi
    chmod 666 /dev/fuse
    trap 'chmod "$mode" /dev/fuse; clean_up' EXIT
fi
own=$work/own
mkdir "$own"
chown "$nobody:$nobody" "$own"
mnt=$own/mnt jobs=$mnt/jobs store=$own/store
chmod -R a+rX "$FAKE_ENGINE_DIR" "$work"
log=$own/log
times_ready() { grep -c msg=ready "$log" 2>/dev/null; }
start_own() {
    before=$(times_ready)
    setpriv --reuid "$nobody" --regid "$nobody" --clear-groups \
        "$proofd" --mount "$mnt" --store "$store" --params "$params" --engine "$engine" >>"$log" 2>&1 &
    front=$!
    wait_for 60 own_answers
}
own_answers() { [ "$(times_ready)" -gt "${before:-0}" ] || ! kill -0 "$front" 2>/dev/null; } # it also answers a little earlier
out=$(PATH=/nonexistent "$(command -v setpriv)" --reuid "$nobody" --regid "$nobody" --clear-groups "$proofd" --mount "$mnt" --store "$store" 2>&1)
like "without fusermount3" "$out" "fusermount3 is not installed, without which only root can mount"
nameless=54321
if ! getent passwd $nameless >/dev/null; then
    mkdir "$work/nameless"
    chown $nameless "$work/nameless"
    out=$(as $nameless "$proofd" --mount "$work/nameless/mnt" --store "$work/nameless/store" --params "$params" --engine "$engine" 2>&1)
    like "a user without a name" "$out" "cannot mount: user $nameless has no name"
    refuse "and nothing else is said" grep -v '^[^ ]* <[3467]>' <<<"$out"
fi
start_own
expect "starts" as "$nobody" ls "$jobs"
expect "says what is lost" grep -q user_allow_other "$log"
refuse "root has no access without allow_other" ls "$jobs"
expect "cp" as "$nobody" cp "$a" "$jobs/one"
expect "is done" wait_for 30 as "$nobody" test -e "$jobs/one.proof"
as "$nobody" cat "$jobs/one.proof" >"$work/proof"
expect "and valid" is_valid "$a" "$work/proof"
echo '{}' >"$work/bad"
refuse "rubbish" as "$nobody" cp "$work/bad" "$jobs/bad"
expect "is explained" as "$nobody" test -s "$jobs/bad.error"
kill_front 2>/dev/null
refuse "the mount is dead" as "$nobody" ls "$jobs"
start_own
expect "fusermount3 clears the way" as "$nobody" test -e "$jobs/one.proof"
expect "its user may take the mount away" as "$nobody" fusermount3 -u "$mnt"
wait $front
same "which ends the service" $? 0
front=
refuse "the log has lines of ours alone" grep -v '<[3467]>' "$log"
start_own
expect "it starts again" as "$nobody" test -e "$jobs/one.proof"
expect "a clean end" stop
refuse "fusermount3 was not forked by a process with threads" grep "fork in a process with threads" "$log"
refuse "the mount is gone" grep -q " $mnt fuse" /proc/mounts
finish
