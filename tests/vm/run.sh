#!/usr/bin/env bash
# Tests that need a kernel of their own, in a virtual machine without acceleration: the device on a real CUSE, its rules on a
# real udev.
# Ends with `N passed, N failed, N skipped`. VM_SECONDS: how long the machine may take.
set -u
cd "$(dirname "$0")/../.." || exit 2
export BUILD=${BUILD:-build}
dir=$BUILD/vm
seconds=${VM_SECONDS:-480}
lacks() { echo "$1"; exit 77; }

[ "$(uname -m)" = x86_64 ] || lacks "an x86-64 machine to make a virtual machine for"
for p in qemu-system-x86_64 cpio busybox udevadm apt-get dpkg-deb; do command -v $p >/dev/null || lacks "no $p for a virtual machine"; done
tests/vm/image.sh "$dir" "export BUILD=/proofd/build POLLS=${POLLS:-20000}; bash tests/system/test_device.sh && bash tests/vm/udev.sh" || exit 1
console=$dir/console
timeout "$seconds" qemu-system-x86_64 -accel tcg,thread=multi -cpu max -smp 2 -m 1G -nographic -no-reboot \
    -kernel "$dir/vmlinuz" -initrd "$dir/initrd.gz" -append "console=ttyS0 quiet panic=-1" </dev/null 2>&1 |
    sed -u 's/\x1b[^A-Za-z]*[A-Za-z]//g; s/\r//g' | tee "$console"
grep -q '^=== ended' "$console" || { echo "FAILED the virtual machine did not come to its end"; echo "0 passed, 1 failed, 0 skipped"; exit 1; }
# One line for all; nothing may be skipped where everything was brought along.
grep -aE '^[0-9]+ passed, [0-9]+ failed, [0-9]+ skipped$' "$console" | awk '
    { passed += $1; failed += $3; skipped += $5 }
    END { failed += NR < 2; print passed " passed, " failed " failed, " skipped " skipped"; exit failed + skipped > 0 }'
