# Parameters that are damaged, in every way that a file can be, under a service that proves with them: what is wrong is said
# where a user looks, nothing dies, and jobs go on when the file is good again. It takes a copy of 1.1 GB.
. "$(dirname "$0")/lib.sh"

lacks_room=$(df -Pk "$work" | awk 'NR == 2 && $4 < 3000000 { print "yes" }')
[ -z "$lacks_room" ] || lacks "3 GB of room for a copy of the parameters"
export XDG_CACHE_HOME=$work/cache # nothing is known yet: points are checked
real_engine
good=$(ls "$params"/*032d3138*.params)
file=$work/params/$(basename "$good")
mkdir "$work/params"
cp "${good%.params}".* "$work/params/"
params=$work/params
bytes=$(stat -c %s "$file")
c1=$(c1 2KiB-sealed)
says() { grep -qE -- "$2" "$1"; } # FILE PATTERN

# Sections of the 2 KiB circuit: where each one's count is.
be32() { printf '%d' "0x$(dd if="$good" bs=1 skip="$1" count=4 status=none | od -An -tx1 | tr -d ' ')"; }
ic_at=864
h_at=$((ic_at + 4 + 96 * $(be32 $ic_at)))
l_at=$((h_at + 4 + 96 * $(be32 $h_at)))
a_at=$((l_at + 4 + 96 * $(be32 $l_at)))
b1_at=$((a_at + 4 + 96 * $(be32 $a_at)))
copy() { # FROM TO BYTES: of the good file, into the one in use
    dd if="$good" of="$file" bs=4096 iflag=skip_bytes,count_bytes oflag=seek_bytes skip="$1" seek="$2" count="$3" conv=notrunc status=none
}
write() { printf "$2" | dd of="$file" bs=1 seek="$1" conv=notrunc status=none; } # OFFSET BYTES
mend() { # OFFSET BYTES: as it was
    copy "$1" "$1" "$2"
    truncate -s "$bytes" "$file"
}
refused() { # WHAT PATTERN: cp fails, and NAME.error, status and metrics say why
    refuse "$1: cp fails" cp "$c1" "$jobs/refused"
    like "$1: the error says why" "$(head -n 1 "$jobs/refused.error")" "there are no parameters to prove a sector of 2KiB with: .*$2"
    like "$1: so does status" "$(grep '^parameters  2KiB' "$mnt/status")" "cannot be used: .*$2"
    expect "$1: and metrics" says "$mnt/metrics" 'parameters\{size="2KiB",trust="unusable"\}'
    rm -f "$jobs/refused.error"
}
waits() { # WHAT PATTERN: the accepted job waits, and status, log and an event say why
    expect "$1: status says why" wait_for 240 says "$mnt/status" "2KiB: jobs wait for parameters, .*($2)"
    expect "$1: the job waits" says "$jobs/job.status" '^queued 0/1 (node=0 )?waiting for parameters'
    expect "$1: so does the log" says "$log" "waiting for parameters.*($2)"
    expect "$1: an event tells" wait_for 5 says "$work/events" "waits for parameters of 2KiB: .*($2)"
}
begin() { # with nothing of what was told before
    log=$work/log
    : >"$log"
    start --log-level debug
    cat "$mnt/events" >"$work/events" &
    opened $! "$mnt/events"
}

# ---- what shows without reading points: refused at the door
truncate -s -1 "$file"
begin
refused "short" "ends inside the count|bytes, the circuit wants $bytes"
truncate -s "$bytes" "$file"
mend $((bytes - 1)) 1
printf x >>"$file"
refused "long" "has $((bytes + 1)) bytes, the circuit wants $bytes"
truncate -s 0 "$file"
refused "empty" "ends inside"
cat "$good" >"$file"
write $h_at '\0\0\0\7'
refused "of another circuit" "h has 7 points, the circuit wants"
mend $h_at 4
for i in 0 1 2 3; do write $((h_at + i)) "\\x$(dd if="$good" bs=1 skip=$((l_at + i)) count=1 status=none | od -An -tx1 | tr -d ' ')"; done
refused "with h and l in each other's place" "h has [0-9]+ points, the circuit wants"
mend $h_at 4
cp "$root"/tests/vectors/vk/*ecd68364*.vk "$work/8MiB.vk"
cp "$work/8MiB.vk" "$file"
refused "the key of another size" "ends inside|ic has|bytes"
cat "$good" >"$file"
write 95 '\1'
refused "a key that is no point" "alpha_g1"
mend 0 96
rm "$file"
refuse "none: cp fails" cp "$c1" "$jobs/refused"
rm -f "$jobs/refused.error"
cp "$good" "$file"

if [ -n "${PROOFD_QUICK:-}" ]; then
    skip "damaged points" "left out by PROOFD_QUICK"
    expect "a clean end" stop
    finish
fi

# ---- what shows when points are looked at: the job waits
expect "stop" stop
write $((a_at + 4 + 96 * 5 + 95)) '\1'
begin
expect "cp" cp "$c1" "$jobs/job"
waits "a point off the curve" 'a\[5\] .*curve'
expect "stop" stop
mend $((a_at + 4)) 1000
write $((h_at + 4 + 96 * 5)) '\377' # in the first section, which takes no time to be read
begin
waits "a coordinate that is none" 'h\[5\] '
expect "stop" stop
mend $((h_at + 4)) 1000

# ---- cut off under the hands of the one who reads it, and mended, in one life of the service
begin
expect "the good file is loaded" wait_for 60 says "$jobs/job.status" '^queued 0/1 node=0 waiting for parameters [0-9]+%$'
engine_was=$(engine_pid)
truncate -s $((b1_at + 1000)) "$file"
waits "truncated while it is loaded" 'changed while it was read|ends inside|bytes, the circuit wants'
copy $((b1_at + 1000)) $((b1_at + 1000)) $bytes
percents() { # of one load; a new one begins at 0
    local last=-1 highest=none p
    while says "$jobs/job.status" '^queued'; do
        p=$(sed -nE 's/.*parameters ([0-9]+)%$/\1/p' "$jobs/job.status")
        [ -z "$p" ] || [ "$p" -ge "$last" ] || { echo "from $last to $p"; return 1; }
        last=${p:--1}
        highest=${p:-$highest}
        sleep 0.05
    done
    echo "to $highest"
}
like "the percentage only grows" "$(percents)" '^to [0-9]+$'
expect "the job goes on" wait_for 60 says "$jobs/job.status" '^(synthesizing|proving|done)'
expect "and is done" ends job done 600
expect "with a valid proof" is_valid "$c1" "$jobs/job.proof"
same "the engine lived through all of it" "$(engine_pid)" "$engine_was"

expect "stop" stop
# ---- points in each other's place: right ones, but of nothing. Nothing shows before the proof does not verify. Three proofs, so
# with PROOFD_ALL=1 alone.
[ -n "${PROOFD_ALL:-}" ] || finish
copy $((a_at + 4)) $((l_at + 4)) 9600000
copy $((l_at + 4)) $((a_at + 4)) 9600000
begin
cp "$(c1 2KiB-v1)" "$jobs/swapped"
expect "swapped points fail the job" ends swapped failed 600
like "which says so" "$(head -n 1 "$jobs/swapped.error")" 'do not verify: this machine or these parameters cannot be trusted'
refuse "there is no proof" test -e "$jobs/swapped.proof"
expect "no engine died of any of this" eval "! grep -E 'engine ended|killed by signal' '$log'"
expect "a clean end" stop
finish
