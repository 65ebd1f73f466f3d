#!/usr/bin/env bash
# The device's rules under a real udev. Only in the virtual machine: udevd is started, and /dev/proof made.
needs_params=no
. "$(dirname "$0")/../system/lib.sh"
attributes() { stat -c '%U %G %a' /dev/proof; }
ready() { [ "$(attributes 2>/dev/null)" = "root proof 660" ]; }
property() { udevadm info --query=property --name=/dev/proof | sed -n "s/^$1=//p"; }

/bin/systemd-udevd --daemon || { echo "udevd does not start"; exit 1; }
start --device proof
expect "owner, group and mode" wait_for 10 ready
same "what they are" "$(attributes)" "root proof 660"
like "its tag" "$(property TAGS)" ':systemd:'
same "its alias" "$(property SYSTEMD_ALIAS)" /dev/proofd
as() { setpriv --reuid 65534 --regid "$1" --clear-groups "$build/doc/examples/device-client" status none; }
as 990 2>"$work/said"
expect "its group may use it" grep -q 'none: No such file' "$work/said"
as 65534 2>"$work/said"
expect "others may not" grep -q 'Permission denied' "$work/said"
expect "stop" stop
expect "it goes with the service" wait_for 5 test ! -e /dev/proof
finish
