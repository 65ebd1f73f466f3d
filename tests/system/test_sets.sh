#!/usr/bin/env bash
# Which parameters a device keeps and which it gives up for others: sectors of three sizes through the service, on a simulated device whose
# memory holds the parameters of any two of them.
needs_params=no
. "$(dirname "$0")/lib.sh"
real_engine
says() { grep -qE -- "$2" "$1"; } # FILE PATTERN
wish() { echo "$1" >"$mnt/params/$2"; }
sets() { sed -nE 's/^parameters ([^ ]+( (resident|streamed))?).*/\1/p' "$mnt/gpus/0/status" | paste -sd, | sed 's/,/, /g'; }
holds() { [ "$(sets)" = "$1" ]; }
has() { # WHAT SETS
    expect "$1: the device has $2" wait_for 30 holds "$2" ||
        cat "$mnt/gpus/0/status"
}
given_up() { grep -c 'parameters given up for others' "$log" || true; }
prove() { # NAME: of the vectors, and its proof is right
    expect "cp of $1" cp "$(c1 "$1")" "$jobs/$1"
    expect "$1 is done" ends "$1" "done" 240
    expect "$1 is valid" is_valid "$(c1 "$1")" "$jobs/$1.proof"
    rm "$jobs/$1"
}

keys=$root/tests/vectors/vk
cp "$keys"/*.vk "$params/"
for size in 2KiB 8MiB 512MiB; do
    expect "hollow parameters of $size" "$build/tests/system/hollow_params" "$size" "$keys" "$params"
done
mkdir "$work/true"
for name in 2KiB-sealed 2KiB-sparse 2KiB-v1 8MiB-sealed 512MiB-sparse; do
    "$build/tests/system/sim_learn" "$(c1 "$name")" "$vectors/$name/proof-r3-s5.txt" "$work/true" || exit 2
done
bytes_2k=$(($(stat -c %s "$params"/*032d3138*.params)))

# ---- two of three
printf '%s\n' "memory = 4G" "load_ms = 20" "proofs = $work/true" >"$work/sim"
log=$work/log
: >"$log"
start --nodes "cpus:0-1" --permits 1 --simulate "$work/sim"
expect "the engine is up" wait_for 60 says "$mnt/metrics" '^proofd_engine_up.* 1$'
has "at first" "none"
prove 2KiB-sealed
has "after one" "2KiB resident"
same "a line for a set says whose it is" "$(grep 2KiB "$mnt/gpus/0/status")" "parameters 2KiB resident insecure development parameters"
prove 8MiB-sealed
has "after another" "2KiB resident, 8MiB resident"
like "so does the file of either" "$(cat "$mnt/params/2KiB")" "node 0 gpu 0 resident bytes $bytes_2k"
prove 2KiB-sparse
has "in turns" "2KiB resident, 8MiB resident"
same "nothing was given up" "$(given_up)" 0
prove 512MiB-sparse
has "the longest unused goes" "2KiB resident, 512MiB resident"
like "and its file says so" "$(cat "$mnt/params/8MiB")" "node 0 gpu 0 none bytes 0"
expect "load" wish load 8MiB
has "the same by name" "8MiB resident, 512MiB resident"
same "two were given up" "$(given_up)" 2
expect "evict" wish evict 512MiB
has "what is given up by name is gone" "8MiB resident"
prove 2KiB-v1
has "and makes room" "2KiB resident, 8MiB resident"
same "nothing more was given up" "$(given_up)" 2
expect "stop" stop

# ---- one that the memory never holds
printf '%s\n' "memory = 1300M" "proofs = $work/true" >"$work/sim"
start --nodes "cpus:0-1" --permits 1 --simulate "$work/sim"
expect "the engine is up" wait_for 60 says "$mnt/metrics" '^proofd_engine_up.* 1$'
prove 2KiB-sealed
has "what fits" "2KiB resident"
prove 8MiB-sealed
has "what does not is streamed, alone" "8MiB streamed"
like "and its file says so" "$(cat "$mnt/params/8MiB")" "node 0 gpu 0 streamed bytes [1-9]"
prove 2KiB-sparse
has "and back" "2KiB resident"
expect "stop" stop
finish
