#!/usr/bin/env bash
# Tests that need a kernel of their own, in a virtual machine without acceleration: the device on a real CUSE.
# Ends with `N passed, N failed, N skipped`. VM_SECONDS: how long the machine may take.
set -u
cd "$(dirname "$0")/../.." || exit 2
export BUILD=${BUILD:-build}
dir=$BUILD/vm
seconds=${VM_SECONDS:-480}
lacks() { echo "$1"; exit 77; }

[ "$(uname -m)" = x86_64 ] || lacks "an x86-64 machine to make a virtual machine for"
for p in qemu-system-x86_64 cpio busybox apt-get dpkg-deb; do command -v $p >/dev/null || lacks "no $p for a virtual machine"; done
tests/vm/image.sh "$dir" "BUILD=/work/build POLLS=${POLLS:-20000} bash tests/system/test_device.sh" || exit 1
console=$dir/console
timeout "$seconds" qemu-system-x86_64 -accel tcg,thread=multi -cpu max -smp 2 -m 1G -nographic -no-reboot \
    -kernel "$dir/vmlinuz" -initrd "$dir/initrd.gz" -append "console=ttyS0 quiet panic=-1" </dev/null 2>&1 |
    tr -d '\r' | tee "$console"
grep -q '^=== ended' "$console" || { echo "FAILED the virtual machine did not come to its end"; echo "0 passed, 1 failed, 0 skipped"; exit 1; }
line=$(grep -aE '^[0-9]+ passed, [0-9]+ failed, [0-9]+ skipped$' "$console" | tail -n 1)
echo "${line:-0 passed, 1 failed, 0 skipped}"
# Nothing is skipped where everything was brought along.
echo "$line" | grep -q ', 0 failed, 0 skipped$'
