# Sourced by the tests in the virtual machine: those of tests/system/lib.sh, but the service is the one that is installed.
needs_params=no
. "$(dirname "${BASH_SOURCE[0]}")/../system/lib.sh"
proof=/proof jobs=/proof/jobs params=/params given=$build/vm/given proofctl=/usr/bin/proofctl
client=$build/doc/examples/device-client

# Keys and values of the service's configuration, beside those that all tests have; then its simulated device.
configure() {
    printf '%s\n' "params = /params" "permits = 2" "simulate = /etc/proofd.sim" "$@" >/etc/proofd.conf
}

simulate() { # a slot is of pages, large enough to come from the pool
    printf '%s\n' "proofs = $given/true" "witness = 4M" "evaluation = 4M" "$@" >/etc/proofd.sim
}

is_up() { [ "$(systemctl is-active proofd)" = active ] && [ -e "$proof/status" ] && ! grep -q '^proofd_engine_up.* 0$' "$proof/metrics"; }
front_pid() { systemctl show -p MainPID --value proofd; }
engine_of() { sed -nE "s/^[a-z]* +node $1: .* pid ([0-9]+),.*/\1/p" "$proof/status"; }
of_process() { sed -n "s/^$2:[[:space:]]*//p" "/proc/$1/status"; } # PID FIELD

# A line of the journal since the last restart by this function.
restart_service() {
    since=$(date '+%F %T')
    systemctl reset-failed proofd 2>/dev/null
    systemctl restart proofd
}
journal() { journalctl -q -u proofd -o cat --since "$since"; }
says() { journal | grep -qF -- "$1"; }

submit_test() { # NAME PARTITIONS SEED: by a program that hears of errors at the end, too
    echo "{\"proofd-test\":{\"partitions\":$2,\"seed\":$3}}" >"$work/document"
    cp "$work/document" "$jobs/$1"
}
value() { sed -n "s/^$2 //p" "$proof/nodes/$1"; } # nodes/ FILE KEY

# With what the service said, where something failed.
finish_here() {
    [ "$failed" -eq 0 ] || journalctl -q -u proofd -o short-monotonic -n 40
    finish
}
