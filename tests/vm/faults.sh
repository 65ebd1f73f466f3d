#!/bin/bash
# Faults of a machine with two nodes. Where the others have their tests, and these without a second node:
#   hugepages missing            here; the ladder: unit/test_arena; transparent ones on any machine: every system test
#   node full                    here; unit/test_arena, the machine full there too; a plan that never fits: unit/test_plan
#   engine binary missing        here; system/test_proofd (at the start and later), unit/test_supervise
#   a node without memory        here; unit/test_placement, unit/test_topology
#   one offline CPU              here; unit/test_placement
#   cpuset smaller than asked    here; unit/test_placement
#   clock jumps                  unit/test_clock
#   disk full while journalling  system/test_disk_full; store on a model of a disk: unit/test_store
. "$(dirname "$0")/lib.sh"
pools=/sys/devices/system/node
pool_of() { echo $pools/node"$1"/hugepages/hugepages-2048kB/nr_hugepages; }
thp=/sys/kernel/mm/transparent_hugepage/enabled
free_kib() { awk '/MemFree/ { print $4 }' $pools/node"$1"/meminfo; }
pages() { echo "$(value 0/hugepages pages), $(value 1/hugepages pages)"; }
works() { # name: two partitions for each node
    submit_test "$1" 4 7
    expect "$1: jobs are proved" ends "$1" done 60
}
up_with() { # lines of the configuration
    configure "$@"
    restart_service
    expect "$*: it is up" wait_for 60 is_up
}
simulate

# ---- hugepages missing: on one node, then everywhere
echo 0 >"$(pool_of 1)"
up_with "nodes = 0 1"
same "one pool is empty" "$(pages)" "2 MiB, 2 MiB (transparent)"
expect "which is said" says 'lost="2 MiB: 6 pages needed, 0 free in the pool (vm.nr_hugepages)"'
same "yet on the node" "$(value 1/hugepages bound) $(value 1/hugepages misplaced_bytes)" "yes 0"
echo never >$thp
up_with "nodes = 0 1"
same "and no transparent ones" "$(pages)" "2 MiB, 4 KiB"
expect "which is said too" says '2 MiB (transparent): the kernel gave none'
same "on the node, too" "$(value 1/hugepages misplaced_bytes) $(value 1/hugepages huge_bytes)" "0 0"
works small-pages
echo madvise >$thp

# ---- a node that is full: memory of another one is used, and that is an alarm
mkdir "$work/fill"
mount -t tmpfs -o size=90%,mpol=bind:1 fill "$work/fill"
head -c $(($(free_kib 1) - 64 * 1024))K /dev/zero >"$work/fill/f"
simulate "witness = 64M" "evaluation = 64M"
up_with "nodes = 0 1"
expect "node full: an alarm" says 'msg="memory lies on another node"'
expect "with its bytes" test "$(value 1/hugepages misplaced_bytes)" -gt 0
same "and whose they are" "$(value 1/hugepages misplaced_on)" 0
works full
umount "$work/fill"
simulate
echo 220 >"$(pool_of 1)"

# ---- a node without memory
up_with "nodes = 2"
same "no memory" "$(value 2/topology cpus), memory of $(value 2/topology memory_node)" "4, memory of 1"
same "which is said" "$(value 2/topology lost)" "node 2 has no memory, that of node 1 is used"
expect "in the log, too" says "node 2 has no memory, that of node 1 is used"
same "the CPUs are the node's" "$(of_process "$(engine_of 2)" Cpus_allowed_list)" 4
same "its memory is of the pool" "$(value 2/hugepages pages)" "2 MiB"
works no-memory

# ---- a CPU that is offline
echo 0 >/sys/devices/system/cpu/cpu3/online
up_with "nodes = 0 1"
same "offline: what the node has" "$(value 1/topology cpus), $(value 1/topology threads) thread" "2, 1 thread"
up_with "nodes = cpus:0-1 cpus:2-3"
same "offline: what was asked for" "$(value 1/topology lost)" "of CPUs 2-3 only 2 can be used"
works offline
echo 1 >/sys/devices/system/cpu/cpu3/online

# ---- a cpuset that leaves less than was asked for, or nothing
limit() { # CPUs
    mkdir -p /run/systemd/system/proofd.service.d
    printf '[Service]\nAllowedCPUs=%s\n' "$1" >/run/systemd/system/proofd.service.d/limit.conf
    systemctl daemon-reload
}
limit "0-2 4"
up_with "nodes = 0 1"
same "cpuset: less" "$(value 1/topology lost)" "of CPUs 2-3 only 2 can be used"
same "cpuset: it is the engine's" "$(of_process "$(engine_of 1)" Cpus_allowed_list)" 2
works cpuset
limit 0-1
configure "nodes = 0 1"
refuse "cpuset: nothing is left" restart_service
expect "which is said" says "node 1: none of its CPUs (2-3) can be used"
up_with "nodes ="
same "without being asked it does without the node" "$(ls "$proof/nodes")" 0
rm -r /run/systemd/system/proofd.service.d
systemctl daemon-reload

# ---- no engine to start
up_with "nodes = 0 1"
engine=/usr/sbin/proofd-engine
mv $engine $engine.away
pid=$(engine_of 1)
kill -KILL "$pid"
expect "no engine: which is said" wait_for 30 says "$engine"
expect "the mount answers" test -e "$proof/status"
submit_test waits 4 8
mv $engine.away $engine
expect "an engine is started when it is back" wait_for 120 is_up
expect "and jobs are proved" ends waits done 60
mv $engine $engine.away
refuse "no engine at the start" restart_service
expect "is said" says "$engine"
mv $engine.away $engine
up_with "nodes = 0 1"
finish_here
