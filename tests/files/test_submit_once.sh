# A job is submitted once: by the last close of a whole document, or by the rename of a temporary name, whatever happens to descriptors
# and writers on the way.
. "$(dirname "$0")/lib.sh"

learn 2KiB-sealed 2KiB-v1
a=$(c1 2KiB-sealed) b=$(c1 2KiB-v1)
whole=$(stat -c %s "$a")
fds() { timeout 300 python3 tests/files/descriptors.py "$@" 2>&1 | tr '\n' ' '; }

# once WHAT NAME: since `before` one job was queued, it is done, and it is of the bytes of a.
once() {
    expect "$1: settles" settle
    same "$1: jobs" $(($(queued) - before)) 1
    expect "$1: is done" ends "$2" done
    same "$1: bytes in the store" "$(spooled "$2")" "$whole"
    expect "$1: its proof is valid" is_valid "$a" "$jobs/$2.proof"
    rm "$jobs/$2"
    before=$(queued)
}

never() { # what left
    expect "$1: settles" settle
    same "$1: jobs" $(($(queued) - before)) 0
    same "$1: names" "$(names)" "${2:-}"
    rm -f "$jobs"/*.error
    wait_for 10 idle
}

start
watch_events
before=0

# ---- descriptors
same "half by a dup, half by its twin" "$(fds dup "$a" "$jobs/d1")" "EBADMSG ok "
once "dup" d1
same "a dup closed while there is nothing" "$(fds dup_early "$a" "$jobs/d2")" "ok "
once "dup closed early" d2
same "a child that ends in the middle" "$(fds child_first "$a" "$jobs/d3")" "ok "
once "inherited" d3
mkfifo "$work/go"
python3 tests/files/descriptors.py child_writes "$a" "$jobs/d4" <"$work/go" >"$work/child" &
exec 5>"$work/go"
expect "a child has written all" wait_for 20 grep -q written "$work/child"
like "its parent has the file open" "$(cat "$jobs/d4.status")" "^receiving .*waits=writer"
same "so nothing is queued" $(($(queued) - before)) 0
exec 5>&-
wait $!
once "inherited and kept" d4
same "written again after the first close" "$(fds write_after "$a" "$jobs/d5")" "ok ok "
once "write after flush" d5
same "spoilt after the first close" "$(fds spoil_after "$a" "$jobs/d6")" "ok EBADMSG "
never "spoilt" "d6.error "
same "opened while it goes" "$(fds touched "$a" "$jobs/d")" "ok "
never "opened while it goes"
same "one half, closed, and the other, of a temporary name" "$(fds reopen "$a" "$jobs/.d7")" "ok ok "
mv "$jobs/.d7" "$jobs/d7"
once "in two opens" d7
same "of a final name" "$(fds reopen "$a" "$jobs/d8" | cut -d ' ' -f 1)" "EBADMSG"
never "a half of a final name" "d8.error "
same "rm before the close" "$(fds unlinked "$a" "$jobs/d9" | grep -c .)" 1
never "rm before the close"
expect "to a final name before the close" fds renamed "$a" "$jobs/.d10" "$jobs/d10"
[ -e "$jobs/d10" ] || mv "$jobs/.d10" "$jobs/d10"
once "renamed while it was open" d10

# ---- a writer that is killed, after any number of bytes
for n in 0 1 2 100 4095 4096 4097 65536 $((whole / 2)) $((whole - 2)) $((whole - 1)) "$whole"; do
    fds killed "$a" "$jobs/k" "$n" >/dev/null
    settle || fail "killed after $n bytes: does not settle"
    same "killed after $n bytes: names" "$(names)" ""
    rm -f "$jobs"/k*
done
fds killed_often "$a" "$jobs/k" >/dev/null
expect "a hundred more: settles" settle
same "a hundred more: names" "$(names)" ""
same "killed: jobs" $(($(queued) - before)) 0
for n in 1000 "$whole"; do fds killed "$a" "$jobs/.k" "$n" >/dev/null; done
same "killed under a temporary name: names" "$(names)" ".k "
rm "$jobs/.k"
never "killed under a temporary name"
head -c 5000 "$a" | (cat; sleep 0.1) >"$jobs/upstream" 2>"$work/said"
never "a pipe that ends too early" "upstream.error "

# ---- two writers of one name
same "two of the same bytes" "$(fds two "$a" "$jobs/t1" "$a")" "ok ok "
once "two writers" t1
fds two "$a" "$jobs/t2" "$b" >"$work/said"
expect "two of different bytes: settle" settle
expect "two of different bytes: at most one job" test $(($(queued) - before)) -le 1
[ ! -e "$jobs/t2" ] || expect "two of different bytes: the job ends" ends t2 done
rm -f "$jobs/t2" "$jobs/t2.error"
wait_for 10 idle
before=$(queued)
for i in 1 2 3 4 5 6 7 8; do cp "$a" "$jobs/t3" 2>/dev/null & pids[i]=$!; done
good=0
for i in 1 2 3 4 5 6 7 8; do wait "${pids[i]}" && good=$((good + 1)); done
# They share a file where they meet, so each may spoil it for another and be told so; what becomes a job is whole in any case.
expect "eight cp: settle" settle
jobs_made=$(($(queued) - before))
expect "eight cp: a job for each at most ($jobs_made, $good told of success)" test $jobs_made -le 8
[ $good -eq 0 ] || expect "eight cp: one that is told of success has made a job" test $jobs_made -ge 1
if [ -e "$jobs/t3" ]; then
    expect "eight cp: the last one is done" ends t3 done
    expect "eight cp: and whole" cmp "$a" "$jobs/t3"
fi
rm -f "$jobs/t3" "$jobs/t3.error"
wait_for 10 idle
before=$(queued)

# ---- over a finished job
cp "$b" "$jobs/o"
ends o done
id=$(stat -c %i "$jobs/o") old=$(cat "$jobs/o.proof")
before=$(queued)
head -c 5000 "$a" >"$work/half"
refuse "half a file over it" cp "$work/half" "$jobs/o"
expect "settle" settle
same "no job" $(($(queued) - before)) 0
same "it is what it was" "$(stat -c %i "$jobs/o") $(cat "$jobs/o.proof")" "$id $old"
expect "and why is beside it" test -s "$jobs/o.error"
exec 7>"$jobs/o"
head -c 5000 "$a" >&7
same "while another is written, the old proof is there" "$(cat "$jobs/o.proof")" "$old"
tail -c +5001 "$a" >&7
exec 7>&-
expect "another is accepted" settle
same "one job" $(($(queued) - before)) 1
expect "and done" ends o done
refuse "it is another job" test "$(stat -c %i "$jobs/o")" = "$id"
expect "with its own proof" is_valid "$a" "$jobs/o.proof"
refuse "the old error is gone" test -e "$jobs/o.error"
rm "$jobs/o"

# ---- over one that runs
delays 0 60000
cp "$a" "$jobs/r"
wait_for 10 in_state r proving
cp "$b" "$jobs/.r"
before=$(queued)
id=$(stat -c %i "$jobs/r")
busy() { # what command...
    local what=$1
    shift
    refuse "$what over a job that runs" "$@"
    like "$what is told so" "$(cat "$work/out")" "busy|Busy|\(16\)|E166|EBUSY"
}
busy cp cp "$b" "$jobs/r"
busy "cp -p" cp -p "$b" "$jobs/r"
busy mv mv -f "$jobs/.r" "$jobs/r"
busy dd dd if="$b" of="$jobs/r" status=none
busy truncate truncate -s 0 "$jobs/r"
busy ">" bash -c ": >'$jobs/r'"
busy ">>" bash -c "echo x >>'$jobs/r'"
busy rsync rsync --ignore-times "$b" "$jobs/r"
busy "rsync --inplace" rsync --ignore-times --inplace "$b" "$jobs/r"
busy "sed -i" sed -i '$a\\' "$jobs/r"
busy python python3 -c "open('$jobs/r', 'w')"
expect "settle" bash -c "rm -f '$jobs/.r'"
expect "settle" settle
same "no job" $(($(queued) - before)) 0
same "it goes on" "$(stat -c %i "$jobs/r") $(state r)" "$id proving"
# install and tar remove what is in their way, as of any file: that cancels the job, and theirs is another.
expect "install over a job that runs" install -m 644 "$b" "$jobs/r"
expect "settle" settle
same "one job" $(($(queued) - before)) 1
expect "another one" wait_for 10 test "$(stat -c %i "$jobs/r")" != "$id"
rm "$jobs/r"
expect "a clean end" stop
finish
