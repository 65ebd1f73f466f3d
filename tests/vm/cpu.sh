#!/bin/bash
# A proof by the CPUs of the machine: half an hour and more where they are emulated.
. "$(dirname "$0")/lib.sh"
pools=$(ls /sys/devices/system/node/node[01]/hugepages/hugepages-2048kB/nr_hugepages)
before=$(cat $pools)
echo 0 | tee $pools >/dev/null
printf '%s\n' "params = /params" "nodes = 0" >/etc/proofd.conf
install -m 600 "$given"/cache/proofd/params-trusted-chunks-* /var/lib/proofd/ # as if it had loaded them before
restart_service
expect "it is up" wait_for 60 is_up
cp "$given/2KiB-sealed.json" "$jobs/by-cpu"
expect "the proof is made" ends by-cpu done 7200
expect "it is valid" is_valid "$given/2KiB-sealed.json" "$jobs/by-cpu.proof"
same "by whom" "$(value 0/topology prover)" cpu
grep -o '"stages.*' -A1 "$jobs/by-cpu.report"
expect "rm" rm "$jobs/by-cpu"

# As it was, for what comes next.
paste -d' ' <(echo "$before") <(echo "$pools") | while read -r pages pool; do echo "$pages" >"$pool"; done
configure "nodes = 0 1"
restart_service
expect "the simulated devices are back" wait_for 60 is_up
finish_here
