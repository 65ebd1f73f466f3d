#!/bin/bash
# The package comes to a machine that runs: everything is there without a boot.
. "$(dirname "$0")/lib.sh"

files() { find / -xdev -not -path '/var/lib/dpkg/*' -not -path '/var/log/*' -not -path '/var/cache/*' -not -path '/tmp/*' -not -path '/var/tmp/*' | sort; }
files >/var/tmp/before
since=today
expect "dpkg -i" dpkg -i "$given/old.deb"
expect "the service is started" wait_for 60 is_up
same "it will be at each boot" "$(systemctl is-enabled proofd)" enabled
device_is_right() { [ "$(stat -c '%U %G %a' /dev/proof)" = "root proof 660" ]; }
expect "the device has its group at once" wait_for 30 device_is_right
same "what it has" "$(stat -c '%U %G %a' /dev/proof)" "root proof 660"
simulate "start_ms = 300"
configure "nodes = 0 1"
expect "the configuration is one" proofd --check-config
sync
finish_here
