#!/usr/bin/env bash
# What the service and its engines may do. The units for systemd: right by its own tools, and enough for the service: with the capabilities that the unit leaves, results
# of another user's jobs still appear, and are told of.
needs_params=no
. "$(dirname "$0")/lib.sh"
unit=daemon/systemd/proofd.service
printf 'start_ms = 20\nfinish_ms = 20\n' >"$work/sim"

# What would give the service a mount namespace hides its mount from everybody.
private='Private(Tmp|Devices|Mounts|IPC|Users)|Protect(System|Home|Proc|Kernel[A-Za-z]*|ControlGroups|Clock)|ProcSubset|(Read(Only|Write)|Inaccessible|Bind)[A-Za-z]*Paths|Root(Directory|Image)|TemporaryFileSystem|MountFlags'
same "no mount namespace of its own" "$(grep -E "^($private)=" "$unit")" ""
expect "it says when it is ready" grep -qx 'Type=notify' "$unit"
if command -v systemd-analyze >/dev/null; then
    sed "s|/usr/sbin/proofd|$proofd|; /^Documentation/d" "$unit" >"$work/proofd.service"
    same "systemd-analyze verify" "$(systemd-analyze verify "$work/proofd.service" 2>&1 | grep proofd.service)" ""
    sed "s|/usr/sbin/proofd-grpc|/bin/true|; /^Documentation/d; /^User\|^Group/d" daemon/systemd/proofd-grpc.service >"$work/proofd-grpc.service"
    same "systemd-analyze verify of proofd-grpc" "$(systemd-analyze verify "$work/proofd-grpc.service" 2>&1 | grep proofd-grpc.service)" ""
    expect "systemd-analyze security of proofd-grpc" systemd-analyze security --offline=yes --threshold=30 --no-pager "$work/proofd-grpc.service"
    expect "systemd-analyze security" systemd-analyze security --offline=yes --threshold=50 --no-pager "$work/proofd.service"
fi
if command -v systemd-sysusers >/dev/null; then
    mkdir -p "$work/root/etc" "$work/root/usr/lib/sysusers.d" "$work/root/usr/lib/tmpfiles.d"
    cp daemon/systemd/proofd.sysusers "$work/root/usr/lib/sysusers.d/proofd.conf"
    expect "sysusers" systemd-sysusers --root="$work/root" proofd.conf
    expect "makes the group" grep -q '^proof:' "$work/root/etc/group"
fi
if command -v systemd-tmpfiles >/dev/null && [ "$(id -u)" -eq 0 ]; then
    cp daemon/systemd/proofd.tmpfiles "$work/root/usr/lib/tmpfiles.d/proofd.conf"
    expect "tmpfiles" systemd-tmpfiles --root="$work/root" --create proofd.conf
    same "make the place of the mount" "$(stat -c %a "$work/root/proof")" 555
    same "and of the store" "$(stat -c %a "$work/root/var/lib/proofd")" 700
fi
# ---- an engine is confined, and need not be
real_engine
of_engine() { awk -v k="$1:" '$1 == k { print $2 }' "/proc/$(pgrep -f "^$engine .*--params $params" | head -n 1)/status"; }
up() { wait_for 30 grep -q '^proofd_engine_up.* 1$' "$mnt/metrics"; }
filtered=2
[ -z "${PROOFD_QUICK:-}" ] || filtered=0 # sanitizers do without
inherited="$(awk '/^(NoNewPrivs|Seccomp):/ { printf "%s%s", sep, $2; sep = " " }' /proc/self/status)"
for how in on off; do
    start --nodes all --simulate "$work/sim" --confine $how
    expect "an engine with confine $how" up
    [ $how = on ] && wanted="1 $filtered" || wanted=$inherited
    same "its no_new_privs and filter" "$(of_engine NoNewPrivs) $(of_engine Seccomp)" "$wanted"
    [ $how = off ] || same "its capabilities" $((0x$(of_engine CapEff) & ~(1 << 2 | 1 << 14 | 1 << 23))) 0
    echo "{\"proofd-test\":{\"partitions\":2,\"seed\":7}}" >"$jobs/$how"
    expect "proves" ends $how done
    expect "stop" stop
done
[ "$(id -u)" -eq 0 ] || finish # an ordinary user's service has no capabilities to lose

capabilities=-all$(sed -n 's/^CapabilityBoundingSet=//p' "$unit" | tr ' ' '\n' | sed 's/^CAP_/,+/' | tr -d '\n' | tr A-Z a-z)
limited=$work/limited
printf '#!/bin/sh\nexec setpriv --no-new-privs --bounding-set=%s "%s" "$@"\n' "$capabilities" "$proofd" >"$limited"
chmod +x "$limited"
proofd=$limited
chmod 755 "$work"
start --nodes all --simulate "$work/sim"
wait_for 30 grep -q '^proofd_engine_up.* 1$' "$mnt/metrics"
same "the service has no other capability" \
    "$(awk '/^CapBnd/ { print $2 }' "/proc/$front/status")" \
    "$(setpriv --no-new-privs --bounding-set="$capabilities" awk '/^CapBnd/ { print $2 }' /proc/self/status)"
inotifywait -m -e create,attrib --format '%e %f' "$jobs" >"$work/told" 2>"$work/set" &
watching "$work/set"
echo '{"proofd-test":{"partitions":2,"seed":1}}' >"$work/doc"
chmod 644 "$work/doc"
expect "another user submits" setpriv --reuid 65534 --regid 65534 --clear-groups sh -c "umask 077; cp '$work/doc' '$jobs/theirs'"
expect "the job ends" ends theirs done
expect "its proof is told of" wait_for 10 grep -q '^CREATE theirs.proof$' "$work/told"
expect "and its states are" grep -q '^ATTRIB theirs.status$' "$work/told"
expect "its owner has it" setpriv --reuid 65534 --regid 65534 --clear-groups cat "$jobs/theirs.proof"
expect "stop" stop
finish
