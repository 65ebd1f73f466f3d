#!/usr/bin/env bash
# Makes an initramfs that runs a command in a copy of this tree's build, under Debian's own kernel.
# Usage: image.sh DIR COMMAND. DIR gets vmlinuz and initrd.gz; the programs come from this machine.
set -eu
cd "$(dirname "$0")/../.."
build=${BUILD:-build}
dir=$1 command=$2
tree=$dir/tree
mkdir -p "$dir"

# The kernel that apt would install here; an unpacked one is kept.
if ! ls "$dir"/kernel/boot/vmlinuz-* >/dev/null 2>&1; then
    package=$(apt-cache depends linux-image-amd64 | awk '/Depends: linux-image-/ { print $2; exit }')
    (cd "$dir" && apt-get download -qq "$package")
    dpkg-deb -x "$dir/$package"_*.deb "$dir/kernel"
fi
cp "$dir"/kernel/boot/vmlinuz-* "$dir/vmlinuz"

rm -rf "$tree"
mkdir -p "$tree"/{bin,sbin,usr/bin,usr/sbin,lib64,dev,proc,sys,tmp,run,etc,modules,proofd/build}
# What a program needs to run: itself and its libraries, at their places.
with_libraries() { # file destination
    cp -L "$1" "$tree$2"
    ldd "$1" 2>/dev/null | grep -o '/[^ ]*' | while read -r lib; do
        [ -e "$tree$lib" ] || { mkdir -p "$tree${lib%/*}" && cp -L "$lib" "$tree$lib"; }
    done
}
for p in bash sh cat cmp cp cut date dd dirname basename env false grep head id kill ls mkdir mktemp mount mv nproc od pgrep \
    readlink rm sed seq setpriv sleep sort stat tail tee timeout touch tr true umount uniq wc awk chmod find sync comm; do
    path=$(command -v "$p") && case $path in /*) with_libraries "$path" "/bin/$p" ;; esac
done
with_libraries "$(command -v udevadm)" /bin/udevadm
ln -s udevadm "$tree/bin/systemd-udevd" # the daemon too, by its name
mkdir -p "$tree/usr/lib/udev/rules.d" "$tree/etc/udev"
cp udev/60-proof.rules "$tree/usr/lib/udev/rules.d/"
cp /bin/busybox "$tree/bin/busybox"
for p in proofd proofd-engine proofctl; do with_libraries "$build/$p" "/proofd/build/$p"; done
mkdir -p "$tree/proofd/build/tests/system" "$tree/proofd/build/doc/examples"
for p in tests/system/probe tests/system/fake_engine doc/examples/device-client; do with_libraries "$build/$p" "/proofd/build/$p"; done
mkdir -p "$tree/proofd/tests" "$tree/proofd/doc"
cp -r tests/system tests/lib tests/vm tests/run.sh "$tree/proofd/tests/"
cp -r doc/examples "$tree/proofd/doc/"
find "$dir/kernel" -name fuse.ko -o -name cuse.ko | while read -r m; do cp "$m" "$tree/modules/"; done
printf 'root:x:0:0::/root:/bin/sh\nnobody:x:65534:65534::/:/bin/false\n' >"$tree/etc/passwd"
printf 'root:x:0:\nproof:x:990:\nnogroup:x:65534:\n' >"$tree/etc/group"
cat >"$tree/init" <<END
#!/bin/busybox sh
export PATH=/bin:/sbin:/usr/bin:/usr/sbin HOME=/tmp
busybox mount -t proc proc /proc
busybox mount -t sysfs sys /sys
busybox mount -t devtmpfs dev /dev
busybox mount -t tmpfs tmp /tmp
[ -e /dev/fd ] || busybox ln -s /proc/self/fd /dev/fd
busybox mkdir -p /dev/shm && busybox mount -t tmpfs shm /dev/shm
busybox insmod /modules/fuse.ko
busybox insmod /modules/cuse.ko
busybox ip link set lo up
cd /proofd
echo
$command
echo "=== ended \$?"
busybox poweroff -f
END
chmod +x "$tree/init"
(cd "$tree" && find . | cpio -o -H newc --quiet | gzip -1) >"$dir/initrd.gz"
