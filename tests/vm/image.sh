#!/usr/bin/env bash
# Makes a Debian of this machine's release for a virtual machine: image.sh DIR DEB. DIR gets vmlinuz, initrd and root.img (ext4), with what the
# package DEB depends on. What is there and made by this very script, with the kernel that Debian has today, is kept. Neither root's rights
# nor loop devices are needed.
set -euo pipefail
cd "$(dirname "$0")/../.."
dir=$1
free_mib=400
# Beside the essential packages: what a machine boots with, the tools of the tests, and what our package depends on.
depends=$(dpkg-deb -f "$2" Depends | sed -E 's/[|(][^,]*//g; s/ //g')
packages=systemd,systemd-sysv,udev,kmod,mount,inotify-tools,procps,psmisc,zstd,$depends
in_initrd="virtio_pci virtio_blk ext4"
in_root="fuse cuse 9p 9pnet_virtio autofs4"

release=$(. /etc/os-release && echo "$VERSION_CODENAME")
look_up() { # what Debian has, by this machine's lists of packages
    kernel=$(apt-cache depends linux-image-amd64 2>/dev/null | awk '/Depends: linux-image-/ && !n++ { print $2 }') || true
    version=$(apt-cache policy "${kernel:-none}" | awk '/Candidate:/ { print $2 }')
    inputs="$release $kernel $version $depends $(sha256sum <tests/vm/image.sh)"
}
# A mirror may be slow, or just be changing.
patiently() { "$@" || { sleep 20 && "$@"; } || { sleep 60 && "$@"; }; }

look_up
[ "$(cat "$dir/inputs" 2>/dev/null)" != "$inputs" ] || exit 0
# Lists may be missing, or so old that they name what no mirror has any more.
if [ "$(id -u)" -eq 0 ]; then
    patiently apt-get update -qq
    look_up
fi
[ -n "$kernel" ] || { echo "image: no linux-image-amd64 among this machine's packages (apt-get update)" >&2; exit 1; }
mkdir -p "$dir"
rm -f "$dir/inputs"
dir=$(cd "$dir" && pwd)
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

# Files of an image belong to root, whoever makes it.
as_root() { if [ "$(id -u)" -eq 0 ]; then "$@"; else fakeroot "$@"; fi; }

# ---- the kernel: unpacked, with the few modules that the machine needs
download() (cd "$tmp" && apt-get download -qq -o APT::Sandbox::User=root "$kernel")
patiently download
dpkg-deb -x "$tmp/$kernel"_*.deb "$tmp/kernel"
release_of_kernel=$(ls "$tmp/kernel/lib/modules")
cp "$tmp/kernel/boot/vmlinuz-$release_of_kernel" "$dir/vmlinuz"
depmod -b "$tmp/kernel" "$release_of_kernel"
modules() { # in the order in which they go in
    local m
    for m; do modprobe -d "$tmp/kernel" -S "$release_of_kernel" --show-depends "$m"; done | awk '$1 == "insmod" && !seen[$2]++ { print $2 }'
}

# ---- the initial file system finds the disk, no more; with vm_probe it only says that it has come so far
mkdir -p "$tmp/initrd"/{bin,dev,modules,root}
cp "$(command -v busybox)" "$tmp/initrd/bin/busybox"
for m in $(modules $in_initrd); do
    cp "$m" "$tmp/initrd/modules/"
    basename "$m"
done >"$tmp/initrd/modules/order"
cat >"$tmp/initrd/init" <<'END'
#!/bin/busybox sh
alias bb=/bin/busybox
if [ -n "$vm_probe" ]; then
    echo "=== a machine"
    bb poweroff -f
fi
bb mount -t devtmpfs dev /dev
bb cat /modules/order | while read m; do bb insmod /modules/$m; done
until [ -b /dev/vda ]; do bb sleep 0.1; done
bb mount -t ext4 /dev/vda /root
bb umount /dev
exec /bin/busybox switch_root /root /sbin/init
END
chmod +x "$tmp/initrd/init"
(cd "$tmp/initrd" && find . | as_root cpio -o -H newc --quiet) >"$dir/initrd"

# ---- the disk
bootstrap() {
    mmdebstrap --variant=essential --include="$packages" --aptopt='Acquire::Languages "none"' --dpkgopt=force-unsafe-io \
        --dpkgopt='path-exclude=/usr/share/doc/*' --dpkgopt='path-exclude=/usr/share/man/*' --dpkgopt='path-exclude=/usr/share/locale/*' \
        --customize-hook='rm -f "$1"/etc/dpkg/dpkg.cfg.d/99mmdebstrap' "$release" "$tmp/root.tar" >"$tmp/said" 2>&1 ||
        { tail -n 30 "$tmp/said" >&2; return 1; }
}
patiently bootstrap
root=$tmp/root
in_place=$root/usr/lib/modules/$release_of_kernel
mkdir -p "$root"/{etc/systemd/system,etc/systemd/journald.conf.d,tree,build,params} "$in_place/kernel"
cp "$tmp/kernel/lib/modules/$release_of_kernel"/modules.{builtin,builtin.modinfo,order} "$in_place/"
modules $in_root | xargs cp -t "$in_place/kernel/"
# No terminal waits for anybody, and nothing that takes time is of use here.
for unit in getty@tty1.service serial-getty@ttyS0.service systemd-pstore.service systemd-random-seed.service systemd-update-utmp.service \
    e2scrub_reap.service e2scrub_all.timer dpkg-db-backup.timer fstrim.timer apt-daily.timer; do
    ln -s /dev/null "$root/etc/systemd/system/$unit"
done
printf '[Journal]\nStorage=volatile\nRateLimitBurst=0\n' >"$root/etc/systemd/journald.conf.d/vm.conf"
echo vm >"$root/etc/hostname"
echo 0123456789abcdef0123456789abcdef >"$root/etc/machine-id"
for share in tree build params; do
    echo "$share /$share 9p trans=virtio,version=9p2000.L,msize=1048576,cache=loose,ro 0 0"
done >"$root/etc/fstab"
cat >"$root/etc/systemd/system/vm-tests.service" <<'END'
[Unit]
Description=Tests of proofd
RequiresMountsFor=/tree /build /params
[Service]
ExecStart=/bin/bash /tree/tests/vm/guest.sh
StandardOutput=tty
StandardError=tty
TTYPath=/dev/ttyS0
END
mkdir "$root/etc/systemd/system/multi-user.target.wants"
ln -s ../vm-tests.service "$root/etc/systemd/system/multi-user.target.wants/"
make_disk() {
    mkdir "$tmp/disk"
    tar -xf "$tmp/root.tar" -C "$tmp/disk" --exclude './dev/*'
    cp -a --no-preserve=ownership "$root/." "$tmp/disk/"
    depmod -b "$tmp/disk" "$release_of_kernel"
    truncate -s $(($(du -sm "$tmp/disk" | cut -f1) + free_mib))M "$dir/root.img.new"
    mke2fs -q -t ext4 -O ^has_journal -F -d "$tmp/disk" "$dir/root.img.new"
}
export -f make_disk
export tmp root release_of_kernel dir free_mib
as_root bash -euc make_disk
mv "$dir/root.img.new" "$dir/root.img"
echo "$inputs" >"$dir/inputs"
