#!/bin/bash
# The service from boot on: device, nodes, jobs by both interfaces, kills, an upgrade under load.
. "$(dirname "$0")/lib.sh"
since=today

# ---- it came up with the machine
expect "it is up" wait_for 60 is_up
same "systemd waits for it" "$(systemctl show -p Type --value proofd)" notify
same "and had no trouble" "$(systemctl show -p NRestarts --value proofd) $(systemctl show -p Result --value proofd)" "0 success"
same "nothing else had" "$(systemctl --failed --no-legend)" ""
device_is_right() { [ "$(stat -c '%U %G %a' /dev/proof)" = "root proof 660" ]; }
expect "the device is there" wait_for 30 device_is_right
property() { udevadm info --query=property --name=/dev/proof | sed -n "s/^$1=//p"; }
like "its tag" "$(property TAGS)" ':systemd:'
same "its alias" "$(property SYSTEMD_ALIAS)" /dev/proofd
expect "its unit" wait_for 30 systemctl is-active -q dev-proof.device
as() { setpriv --reuid 65534 --regid "$1" --clear-groups "$client" status none; }
as proof 2>"$work/said"
expect "its group may use it" grep -q 'none: No such file' "$work/said"
as 65534 2>"$work/said"
expect "others may not" grep -q 'Permission denied' "$work/said"

# ---- each engine on its node: by its own word, by the kernel's
for n in 0 1; do
    cpus=$((2 * n))-$((2 * n + 1)) pid=$(engine_of $n)
    same "node $n: its CPUs" "$(value $n/topology cpus), $(of_process "$pid" Cpus_allowed_list)" "$cpus, $cpus"
    same "node $n: a thread for each" "$(value $n/topology threads)" 2
    same "node $n: its memory" "$(value $n/topology memory_node)" $n
    same "node $n: its pages" "$(value $n/hugepages pages), bound $(value $n/hugepages bound), locked $(value $n/hugepages locked)" \
        "2 MiB, bound yes, locked yes"
    same "node $n: none elsewhere" "$(value $n/hugepages misplaced_bytes)" 0
    pages=$(($(value $n/hugepages arena_bytes) >> 21))
    pool=/sys/devices/system/node/node$n/hugepages/hugepages-2048kB
    same "node $n: they come from its pool" $(($(cat $pool/nr_hugepages) - $(cat $pool/free_hugepages))) $pages
    expect "node $n: and lie there" grep -qE "bind:$n .*huge.* N$n=$pages kernelpagesize_kB=2048" "/proc/$pid/numa_maps"
done

# ---- a sector of 2 KiB by each interface, at the same time
cp "$given/2KiB-sealed.json" "$jobs/by-mount"
expect "cp" test -e "$jobs/by-mount.status"
"$client" submit "$given/2KiB-sparse.json" by-device >"$work/proof" 2>"$work/said"
same "a job by the device" "$? $(cat "$work/said")" "0 "
expect "the job by the mount" ends by-mount done 240
expect "its proof is valid" is_valid "$given/2KiB-sealed.json" "$jobs/by-mount.proof"
expect "and so is the device's" is_valid "$given/2KiB-sparse.json" "$work/proof"
expect "which the mount has as well" cmp "$work/proof" "$jobs/by-device.proof"
same "proved on pages of the pool" "$(for n in 0 1; do value $n/hugepages pages; done | sort -u)" "2 MiB"

# ---- kill -9, of the front and of an engine
submit_test killed 20 1
expect "it is being proved" wait_for 30 in_state killed proving
pid=$(front_pid)
kill -KILL "$pid"
is_new() { [ "$(front_pid)" != "$pid" ] && is_up; }
expect "systemd starts the front again" wait_for 60 is_new
same "once" "$(systemctl show -p NRestarts --value proofd)" 1
expect "the device comes back" wait_for 30 device_is_right
pid=$(engine_of 1)
kill -KILL "$pid"
engine_is_new() { [ -n "$(engine_of 1)" ] && [ "$(engine_of 1)" != "$pid" ]; }
expect "the front starts an engine again" wait_for 60 engine_is_new
expect "the job in flight ends" ends killed done 60
expect "those that had ended are there" is_valid "$given/2KiB-sealed.json" "$jobs/by-mount.proof"

# ---- a newer package while jobs are received, queued and proved
for i in $(seq 6); do submit_test "load$i" 30 "$i"; done
for i in $(seq 10); do # behind all others, so that there is work left however long the package takes
    submit_test "last$i" 100 "10$i"
    expect "what comes last" bash -c "echo low >$jobs/last$i.priority"
done
work_is_left() { grep -qvh '^done' "$jobs"/*.status; }
in_flight() { grep -qh '^proving' "$jobs"/*.status; } # those of a busy machine's first jobs may have ended by now
expect "some are in flight" wait_for 30 in_flight
for i in 1 6; do
    $proofctl wait load$i >"$work/wait$i" 2>&1 &
    waiters[i]=$!
done
: >"$work/taken"
while [ ! -e "$work/installed" ]; do # a writer who knows of nothing: what was taken is written down
    n=$((n + 1))
    submit_test "during$n" 5 $n 2>/dev/null && echo "during$n" >>"$work/taken"
    sleep 0.5
done &
writer=$!
pid=$(front_pid)
expect "dpkg -i of a newer one" dpkg -i "$given/newer.deb"
expect "it runs" wait_for 60 is_new
expect "there is work left" wait_for 10 work_is_left
touch "$work/installed"
wait $writer
same "that is what is installed" "$(dpkg-query -W -f '${db:Status-Status} ${Version}' proofd)" "installed $(dpkg-deb -f "$given/newer.deb" Version)"
for i in $(seq 6); do expect "load$i ends" ends "load$i" done 120; done
expect "the writer came through" test -s "$work/taken"
while read -r name; do expect "$name ends" ends "$name" done 30; done <"$work/taken"
for i in 1 6; do
    wait "${waiters[i]}"
    same "who waits for load$i sees its end" "$?" 0
done
for i in $(seq 10); do expect "last$i goes" rm "$jobs/last$i"; done
expect "the device is there again" wait_for 30 device_is_right
finish_here
