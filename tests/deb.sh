#!/usr/bin/env bash
# The Debian package: without an error for lintian; installed into a root of its own it is whole, and purged it leaves nothing.
# Ends with `N passed, N failed, N skipped`.
set -u
cd "$(dirname "$0")/.." || exit 2
build=${BUILD:-build}
deb=$(ls "$build"/deb/proofd_*.deb) || exit 2
grpc=$(ls "$build"/deb/proofd-grpc_*.deb) || exit 2
passed=0 failed=0 skipped=0
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
expect() { # what command...
    local what=$1
    shift
    if "$@" >"$root.out" 2>&1; then passed=$((passed + 1)); else failed=$((failed + 1)); echo "FAILED $what: $*"; head -n 10 "$root.out"; fi
    rm -f "$root.out"
}

lintian --fail-on error "$deb" 2>&1 | grep '^E:'
expect "lintian finds no error" lintian --fail-on error "$deb"
lintian --fail-on error "$grpc" 2>&1 | grep '^E:'
expect "nor in what speaks gRPC" lintian --fail-on error "$grpc"
dpkg-deb -R "$grpc" "$root/unpacked"
files=$(cd "$root/unpacked" && find . -path ./DEBIAN -prune -o -type f -print | grep -v /doc/ | sort | tr '\n' ' ')
expect "whose files are $files" test "$files" = "./lib/systemd/system/proofd-grpc.service ./usr/lib/sysusers.d/proofd-grpc.conf ./usr/sbin/proofd-grpc ./usr/share/man/man8/proofd-grpc.8.gz "
expect "it runs" "$root/unpacked/usr/sbin/proofd-grpc" --version
for s in "$root"/unpacked/DEBIAN/{postinst,prerm,postrm}; do expect "$(basename "$s") of it is a shell script" sh -n "$s"; done
rm -rf "$root/unpacked"
# A database of its own.
mkdir -p "$root/var/lib/dpkg"/{info,updates,triggers}
touch "$root/var/lib/dpkg/status"
dpkg=(dpkg --root="$root" --force-not-root --force-depends --force-script-chrootless --log=/dev/null)
dpkg-deb -R "$deb" "$root/unpacked"
for f in usr/sbin/proofd usr/sbin/proofd-engine usr/bin/proofctl lib/systemd/system/proofd.service lib/udev/rules.d/60-proof.rules \
    usr/lib/sysusers.d/proofd.conf usr/lib/tmpfiles.d/proofd.conf usr/include/proofd/abi.h usr/share/man/man1/proofctl.1.gz \
    usr/share/man/man4/proof.4.gz usr/share/man/man5/proofd.conf.5.gz usr/share/man/man7/proof.7.gz usr/share/man/man8/proofd.8.gz \
    usr/share/man/man8/proofd-engine.8.gz usr/share/bash-completion/completions/proofctl usr/share/bash-completion/completions/proofd \
    usr/share/proofd/prometheus-rules.yml usr/share/proofd/grafana-dashboard.json usr/share/doc/proofd/examples/device-client.c; do
    expect "$f" test -e "$root/unpacked/$f"
done
expect "nothing lands in /usr/local" test ! -e "$root/unpacked/usr/local"
expect "the unit starts what is installed" grep -qx 'ExecStart=/usr/sbin/proofd' "$root/unpacked/lib/systemd/system/proofd.service"
for p in sbin/proofd sbin/proofd-engine bin/proofctl; do expect "$p runs" "$root/unpacked/usr/$p" --version; done
for s in "$root"/unpacked/DEBIAN/{postinst,prerm,postrm}; do expect "$(basename "$s") is a shell script" sh -n "$s"; done
rm -rf "$root/unpacked"
before=$(cd "$root" && find . -not -path './var/lib/dpkg/*' | sort)
if [ "$(id -u)" -eq 0 ]; then
    expect "dpkg unpacks" "${dpkg[@]}" --unpack "$deb"
    expect "proofd is there" test -x "$root/usr/sbin/proofd"
    rm -f "$root"/var/lib/dpkg/info/proofd.{preinst,postinst,prerm,postrm} # those are for a running system
    expect "dpkg removes" "${dpkg[@]}" --purge proofd
    expect "and nothing is left" test "$(cd "$root" && find . -not -path './var/lib/dpkg/*' | sort)" = "$before"
fi
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ]
