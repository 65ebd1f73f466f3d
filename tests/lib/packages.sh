#!/bin/sh
# Makes sure that Debian's packages for a purpose are there: build, demo, check, files, vm, deb or fuzz. Says which are missing; installs them as root
# (or in CI through sudo), otherwise prints the one line that does and fails. Elsewhere than on a Debian it only says
# what is needed.
set -eu
build="gcc libc6-dev make pkg-config libfuse3-dev libnuma-dev libssl-dev libzstd-dev zlib1g-dev libseccomp-dev"
# What proofd-grpc is built with; the rest does without.
grpc="libgrpc++-dev libprotobuf-dev protobuf-compiler protobuf-compiler-grpc"
demo="fuse3 inotify-tools"
check="g++ check fuse3 inotify-tools zstd gzip xz-utils rsync python3 jq procps psmisc attr systemd strace $grpc python3-grpcio python3-protobuf openssl"
# Every tool of doc/filesystem.md.
files="$check util-linux tar findutils grep sed less vim nano curl wget openssh-client openssh-sftp-server entr lsof"
deb="debhelper lintian $grpc"
vm="$deb qemu-system-x86 seabios mmdebstrap e2fsprogs cpio kmod busybox-static fakeroot zstd"
fuzz="clang libclang-rt-14-dev"

case ${1:-} in
build) want="$build" ;;
demo) want="$build $demo" ;;
check) want="$build $check" ;;
files) want="$build $files" ;;
vm) want="$build $vm" ;;
deb) want="$build $deb" ;;
fuzz) want="$build $check $fuzz" ;;
*) echo "usage: packages.sh build|demo|check|files|vm|deb|fuzz" >&2; exit 2 ;;
esac
# npm only fetches blst; who gives BLST_SRC, or has it already, needs none.
if [ -z "${BLST_SRC:-}" ] && [ ! -e build/deps/blst/bindings/blst.h ] && ! command -v npm >/dev/null; then
    want="$want npm ca-certificates"
fi

if ! command -v dpkg-query >/dev/null; then
    echo "packages: not a Debian; needed are the equivalents of: $want"
    exit 0
fi
missing=
for p in $want; do
    dpkg-query -W -f '${db:Status-Status}\n' "$p" 2>/dev/null | grep -qx installed || missing="$missing $p"
done
[ -n "$missing" ] || exit 0

line="apt-get install -y --no-install-recommends$missing"
echo "packages: missing:$missing"
if [ "$(id -u)" -eq 0 ]; then
    root=
elif [ -n "${CI:-}" ] && command -v sudo >/dev/null; then
    root=sudo
else
    echo "packages: as root, run:"
    echo "    sudo $line"
    exit 1
fi
export DEBIAN_FRONTEND=noninteractive
$root apt-get update -qq
$root $line
