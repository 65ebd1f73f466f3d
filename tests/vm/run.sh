#!/usr/bin/env bash
# Tests that need a machine of their own: Debian in a virtual one, on two NUMA nodes with pages in their pools and a third node without
# memory. Our package is installed there, and all of tests/vm/guest.sh happens to it. Makes the disk at the first run (image.sh).
# Ends with `N passed, N failed, N skipped`. VM_ACCEL: kvm, or tcg, which emulates; KVM where it works is what is taken otherwise.
# VM_SECONDS: how long a boot may take, however busy this machine is. VM_PROOF=cpu: in the end a proof is made there by its CPUs as well,
# which takes half an hour and more when they are emulated.
set -u
cd "$(dirname "$0")/../.." || exit 2
export BUILD=${BUILD:-build}
dir=$BUILD/vm
proof=${VM_PROOF:-given}
seconds=${VM_SECONDS:-$([ "$proof" = cpu ] && echo 10800 || echo 3600)}
accel=${VM_ACCEL:-}
case $accel in "" | kvm | tcg) ;; *) echo "VM_ACCEL is kvm or tcg, not $accel"; exit 2 ;; esac
lacks() { echo "SKIP  the virtual machine: $1"; echo "0 passed, 0 failed, 1 skipped"; exit 77; }

[ "$(uname -m)" = x86_64 ] || lacks "an x86-64 machine to make a virtual machine for"
for p in qemu-system-x86_64 mmdebstrap cpio busybox depmod apt-get dpkg-deb mke2fs; do
    command -v $p >/dev/null || lacks "no $p for a virtual machine"
done
deb=$(ls "$BUILD"/deb/proofd_*.deb) || exit 1
start=$SECONDS
tests/vm/image.sh "$dir" "$deb" || { echo "0 passed, 1 failed, 0 skipped"; exit 1; }
echo "disk: $((SECONDS - start)) s"

# What the machine is given: the package, the same one with a higher version, and true proofs for its simulated devices.
rm -rf "$dir/given"
mkdir -p "$dir/given/true"
cp "$deb" "$dir/given/old.deb"
dpkg-deb -R "$deb" "$dir/given/newer"
sed -i 's/^Version: .*/&+newer/' "$dir/given/newer/DEBIAN/control"
dpkg-deb --root-owner-group -Zgzip -z1 -b "$dir/given/newer" "$dir/given/newer.deb" >/dev/null
rm -rf "$dir/given/newer"
for name in 2KiB-sealed 2KiB-sparse; do
    zstd -q -d "tests/vectors/c1/$name/bare.json.zst" -o "$dir/given/$name.json"
    "$BUILD/tests/system/sim_learn" "$dir/given/$name.json" "tests/vectors/c1/$name/proof-r3-s5.txt" "$dir/given/true" || exit 1
done
params=$(tests/lib/dev-params.sh 2>"$dir/setup") || { cat "$dir/setup"; exit 1; }
# A look at every point would take an emulated machine an hour: it is given the note of one that was had here.
if [ "$proof" = cpu ]; then
    XDG_CACHE_HOME=$PWD/$dir/given/cache "$BUILD/proofctl" prove --params "$params" -o "$dir/given/by-host.proof" "$dir/given/2KiB-sealed.json" ||
        { echo "0 passed, 1 failed, 0 skipped"; exit 1; }
fi

share() { echo "-virtfs local,path=$(cd "$2" && pwd),mount_tag=$1,security_model=none,readonly=on"; }
memory=1024 # MiB of a node
[ "$proof" = given ] || memory=5120
console=$dir/console
cp --sparse=always "$dir/root.img" "$dir/disk.img"
# no_timer_check: a kernel that gets no time on a busy machine would believe its timer broken.
machine() { # kvm|tcg SECONDS words of the kernel's command line
    local cpu="tcg,thread=multi -cpu max"
    [ "$1" = tcg ] || cpu="kvm -cpu host"
    timeout "$2" qemu-system-x86_64 -accel $cpu -nographic -nodefaults -serial stdio -no-reboot \
        -smp 5 -m $((2 * memory)) \
        -object memory-backend-ram,id=m0,size=${memory}M -object memory-backend-ram,id=m1,size=${memory}M \
        -numa node,nodeid=0,cpus=0-1,memdev=m0 -numa node,nodeid=1,cpus=2-3,memdev=m1 -numa node,nodeid=2,cpus=4 \
        -numa dist,src=0,dst=1,val=21 -numa dist,src=0,dst=2,val=31 -numa dist,src=1,dst=2,val=21 \
        -drive "file=$dir/disk.img,format=raw,if=virtio,cache=unsafe" $(share tree .) $(share build "$BUILD") $(share params "$params") \
        -kernel "$dir/vmlinuz" -initrd "$dir/initrd" \
        -append "console=ttyS0 quiet panic=-1 no_timer_check systemd.show_status=0 hugepagesz=2M hugepages=0:220,1:220 $3" </dev/null 2>&1 |
        sed -u 's/\x1b[^A-Za-z]*[A-Za-z]//g; s/\r//g'
}
# A /dev/kvm may open, and make machines that get nowhere: the very machine has to come up, for which it needs two seconds.
kvm_works() {
    machine kvm 20 vm_probe=yes >"$dir/probe"
    grep -q '^=== a machine' "$dir/probe"
}
if [ -z "$accel" ]; then
    accel=tcg
    if [ ! -e /dev/kvm ]; then
        echo "emulated: there is no /dev/kvm"
    elif kvm_works; then
        accel=kvm
    else
        echo "emulated: by KVM no machine comes up within 20 s ($(grep -v '^ *$' "$dir/probe" | tail -n 1))"
    fi
fi
boot() { machine $accel "$seconds" "vm_proof=$proof" | tee -a "$console" | sed -u 's/^/    | /'; }
# The first boot ends when the package is installed; the second one begins with it.
start=$SECONDS
: >"$console"
boot
boot
rm -f "$dir/disk.img"
echo "machine: $((SECONDS - start)) s, by $accel"
grep -q '^=== ended' "$console" || { echo "FAILED the virtual machine did not come to its end"; echo "0 passed, 1 failed, 0 skipped"; exit 1; }
# One line for all. Nothing may be skipped where everything was brought along, and a script without a closing line has failed.
awk '/^--- tests\/.*\.sh$/ { begun++ }
    /^[0-9]+ passed, [0-9]+ failed, [0-9]+ skipped$/ { ended++; passed += $1; failed += $3; skipped += $5 }
    END { failed += begun > ended ? begun - ended : !begun
          printf "%d passed, %d failed, %d skipped\n", passed, failed, skipped; exit failed + skipped > 0 }' "$console"
