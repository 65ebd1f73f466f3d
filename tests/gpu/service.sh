#!/usr/bin/env bash
# The whole service where there is a GPU: documents of any size, each another sector, are copied into the mount one after another, every
# proof is read back and verified; then `proofctl bench` over them. Without a GPU the CPUs prove.
# Development parameters of the sizes ($SIZES, e.g. "32GiB") are made in $PARAMS unless they are there: for 32 GiB 47 GB of disk. With
# DEVELOP=1 there is no file: the GPU makes them in its memory. GPU_MEMORY=GIB is what provers may take of it: parameters that do not fit are
# streamed.
# Usage: [DEVELOP=1] [GPU_MEMORY=GIB] PARAMS=DIR SIZES=SIZE.. tests/gpu/service.sh C1...
#                                                                 BENCH=N: proofs of the bench [twice the documents]
needs_params=no
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/../system/lib.sh"
[ $# -gt 0 ] || { sed -n 's/^# Usage: //p' "$0"; exit 2; }
[ -z "${PARAMS:-}" ] || params=$PARAMS
real_engine
patience=20

metric() { # name: the sum of its lines
    awk -v n="$1" '$1 ~ "^" n "([{]|$)" { s += $NF } END { print s + 0 }' "$mnt/metrics"
}

loads() { [ "$(metric proofd_parameters)" -gt 0 ]; }

gpus() {
    local f
    for f in "$mnt"/nodes/*/gpus "$mnt"/gpus/*/*; do
        [ -f "$f" ] && echo "${f#"$mnt"/}: $(head -n 12 "$f" | paste -sd' ')"
    done
}

settled() { ! grep -qE ' (load waits|loading [0-9]+%)$' "$1"; } # FILE

load() { # every node has parameters of a size, or says why not
    expect "load $1" eval "echo load >'$mnt/params/$1'"
    expect "parameters of $1 are loaded" wait_for 30 settled "$mnt/params/$1"
    refuse "without a failure" grep failed "$mnt/params/$1"
}

options=()
[ -z "${GPU_MEMORY:-}" ] || options+=(--gpu-memory "${GPU_MEMORY}G")
if [ -n "${DEVELOP:-}" ]; then
    params=$work/none
    mkdir "$params"
    options+=(--development-parameters device)
else
    for size in ${SIZES:-2KiB}; do
        expect "parameters of $size" "$proofctl" setup --params "$params" "$size"
    done
fi
start "${options[@]}"
expect "an engine with parameters" wait_for 60 loads
engines=$(engine_pid) # for later: the path of the parameters may change
confined() { [ -n "$engines" ] && ! grep -L '^Seccomp:.2$' $(printf '/proc/%s/task/*/status ' $engines) | grep -q .; }
expect "all of it is confined" confined
if [ -n "${DEVELOP:-}" ]; then
    params=$store/params-insecure # where the keys are
    for size in ${SIZES:-2KiB}; do
        expect "$size is told to be made" grep -qx "made device" "$mnt/params/$size"
        expect "and to be insecure" grep -qx "trust insecure development parameters" "$mnt/params/$size"
        load "$size"
        cat "$mnt/params/$size"
        gpus
    done
    for f in "$params"/*.vk; do
        expect "$(basename "$f") is the reference's" cmp "$f" "$root/tests/vectors/vk/$(basename "$f")"
    done
fi

began=$(date +%s%3N)
i=0
for c1; do
    i=$((i + 1))
    expect "document $i is taken" cp "$c1" "$jobs/sector$i"
done
[ "$failed" -eq 0 ] || finish # a proof that nobody makes is waited for longer than a GPU is lent
i=0
for c1; do
    i=$((i + 1))
    expect "document $i is proved" ends "sector$i" "done" 60
    echo "sector$i: $(($(date +%s%3N) - began)) ms after the first cp began"
    [ $i -gt 1 ] || gpus
    expect "proof $i is valid" is_valid "$c1" "$jobs/sector$i.proof"
done
[ $# -eq 1 ] || refuse "the proof of another document" is_valid "$1" "$jobs/sector$i.proof"
for name in jobs_failed jobs_refused partitions_failed partitions_returned proofs_unwritten store_set_aside; do
    case $name in *_unwritten | *_aside) ;; *) name=${name}_total ;; esac
    same "$name" "$(metric "proofd_$name")" 0
done
cat "$mnt/status"
remove_all

files=()
for c1; do files+=(--c1 "$c1"); done
"$proofctl" bench --mount "$mnt" "${files[@]}" --count "${BENCH:-$((2 * $#))}" | tee "$work/bench"
same "bench" "${PIPESTATUS[0]}" 0
gpus
for p in "$front" $engines; do
    echo "$(cat "/proc/$p/comm"): $(awk '/^VmHWM|^VmRSS|^HugetlbPages/ { print $1, $2 / 1000, "MB" }' "/proc/$p/status" | paste -sd' ')"
done
grep -h 'parameters loaded' "$log"
expect "stops in good order" stop
if [ -n "${DEVELOP:-}" ]; then # what is made again must have the key that is there
    params=$work/none
    start "${options[@]}"
    expect "an engine after a restart" wait_for 60 loads
    for size in ${SIZES:-2KiB}; do load "$size"; done
    expect "stops in good order once more" stop
fi
[ $# -gt 1 ] || skip "a proof of another document is refused" "one document given"
finish
