#!/usr/bin/env bash
# Transformed parameters: what proofctl transform refuses and leaves behind, and that proofs over them are the same to the byte.
[ -z "${PROOFD_QUICK:-}" ] || { echo "PROOFD_QUICK is set: true proofs take too long with this build"; exit 77; }
. "$(dirname "$0")/lib.sh"
ctl=$build/proofctl
export XDG_CACHE_HOME=$work/cache
mkdir "$work/params"
ln -s "$params"/*032d3138*.{params,vk,insecure} "$work/params/"
file=$(ls "$work/params"/*.params)
transformed=${file%.params}.transformed
says() { grep -qE -- "$2" "$1"; } # FILE PATTERN
lacks_line() { ! says "$@"; }
transform() { "$ctl" transform --params "$work/params" "$@"; }
cannot() { # what, pattern, arguments: ends with 2 and says so
    local what=$1 pattern=$2
    shift 2
    "$ctl" transform "$@" >"$work/out" 2>"$work/err"
    same "$what: exit status" $? 2
    like "$what" "$(cat "$work/err")" "$pattern"
}

# ---- what is missing shows at once
cannot "no such size" "'3KiB' is no sector size" 3KiB
cannot "no parameters" "proofctl setup --params $work 8MiB" --params "$work" 8MiB
cannot "no store" "$work/nowhere: No such file" --params "$work/params" --store "$work/nowhere" 2KiB
cannot "another directory" "is no store: no proofd" --params "$work/params" --store "$work/params" 2KiB
cannot "no directory" "is no directory" --params "$work/params" --store "$file" 2KiB
(unset HOME XDG_CACHE_HOME; transform --cpu 2KiB) >"$work/out" 2>"$work/err"
same "nobody to remember it: exit status" $? 2
like "nobody to remember it" "$(cat "$work/err")" "neither HOME nor XDG_CACHE_HOME is a path"
cannot "a wrong number" "'x' is not a number from 0" --params "$work/params" --gpu x 2KiB
if ! ls /dev/nvidia0 >/dev/null 2>&1; then
    cannot "no GPU" "no GPU: .*; --cpu does it here, in some [0-9]+ minutes" --params "$work/params" 2KiB
    cannot "in JSON" "^$" --params "$work/params" --json 2KiB
    like "it says so too" "$(cat "$work/out")" '^\{"error":"no GPU: .*"\}$'
fi
same "and nothing is made" "$(ls "$work/params" | grep -c transformed)" 0

# ---- no room, and interrupted
(ulimit -f 1000; trap '' XFSZ; transform --cpu 2KiB) >"$work/out" 2>"$work/err"
like "no room" "$(cat "$work/err")" "no room for 660481760 bytes"
same "leaves nothing" "$(ls "$work/params" | grep -c transformed)" 0
"$ctl" transform --params "$work/params" --cpu 2KiB 2>"$work/err" &
pid=$!
expect "its file has been begun" wait_for 600 test -e "$transformed.tmp"
like "one at a time" "$(transform --cpu 2KiB 2>&1)" "another process is writing it"
expect "its file is still there" test -e "$transformed.tmp"
kill -TERM $pid
wait $pid
same "it ends by the signal" $? 143
refuse "and leaves nothing" test -e "$transformed.tmp"

# ---- proofs
c1=$(c1 2KiB-sealed)
prove() { "$build/tests/system/prove_fixed" "$work/params" "$c1" r s; }
plain=$(prove)
expect "transformed points are made" "$build/tests/system/make_transformed" 2KiB "$work/params"
same "as many as there should be" "$(stat -c %s "$transformed")" 660481760
cp "$transformed" "$work/kept"
like "inspect knows it" "$("$ctl" inspect "$transformed")" 'transformed Groth16 parameters.*sector_size +2KiB.*checks +ok'
same "the same proof, to the byte" "$(prove)" "$plain"

# Where the file is damaged: from the parameters then.
printf 'X' | dd of="$transformed" bs=1 seek=400000000 conv=notrunc status=none
same "a damaged file changes nothing" "$(prove)" "$plain"
cp "$work/kept" "$transformed"

# ---- a service of the same user
real_engine
params=$work/params
start --nodes "cpus:$ours"
like "status says so" "$(cat "$mnt/status")" 'parameters  2KiB: .*\.params \(insecure development parameters, transformed\)'
expect "params/ does" grep -qx "transformed yes" "$mnt/params/2KiB"
expect "load" eval 'echo load >"$mnt/params/2KiB"'
expect "it is loaded" wait_for 600 says "$mnt/params/2KiB" '^node 0 host yes .* trust insecure transformed$'
expect "the log says so" wait_for 60 says "$log" 'parameters loaded.*transformed=yes'
cp "$c1" "$jobs/one"
expect "a job is proved" ends one done 600
same "and the proof is good" "$("$ctl" verify --params "$work/params" "$c1" "$jobs/one.proof")" valid
expect "given up" eval 'echo evict >"$mnt/params/2KiB"'
expect "they are" wait_for 120 says "$mnt/params/2KiB" '^node 0 host no'
truncate -s 1000 "$transformed"
like "inspect tells what is wrong with it" "$("$ctl" inspect "$transformed")" 'checks +1000 bytes, wanted 660481760'
expect "what is wrong with a file" wait_for 60 says "$mnt/params/2KiB" '^transformed unusable: .*has 1000 bytes of 660481760'
expect "load again" eval 'echo load >"$mnt/params/2KiB"'
expect "without it" wait_for 600 says "$mnt/params/2KiB" '^node 0 host yes .* trust insecure$'
expect "the log says why" wait_for 60 says "$log" 'without their transformed points.*has 1000 bytes.*proofctl transform 2KiB makes it anew'
rm "$transformed"
expect "gone" wait_for 60 lacks_line "$mnt/params/2KiB" '^transformed'
expect "a clean end" stop
finish
