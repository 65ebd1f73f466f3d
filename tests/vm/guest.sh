#!/bin/bash
# What happens in the virtual machine, from its first boot to its end. The second boot begins where the first one ended.
cd /tree || exit 1
export BUILD=/build PROOFD_QUICK=1 # slow, as sanitized builds are: waits are four times as long
begun=/var/tmp/begun
stage() { # script
    local start=$SECONDS
    echo "--- $1"
    bash "$@"
    echo "--- $1: $((SECONDS - start)) s"
}

echo
systemctl is-system-running --wait >/dev/null
echo "--- up after $(cut -d. -f1 /proc/uptime) s: $(uname -v), nodes $(cat /sys/devices/system/node/online)"
if [ ! -e $begun ]; then
    touch $begun
    stage tests/vm/install.sh
    systemctl poweroff 2>/dev/null
    exit
fi
stage tests/vm/service.sh
stage tests/vm/faults.sh
if grep -q 'vm_proof=cpu' /proc/cmdline; then stage tests/vm/cpu.sh; fi
stage tests/vm/removal.sh
stage tests/system/test_device.sh
echo "=== ended"
systemctl poweroff 2>/dev/null
