#!/bin/bash
# The package goes: a removal keeps configuration and jobs, a purge leaves nothing. (The group stays, as groups do: files may belong to it.)
. "$(dirname "$0")/lib.sh"
since=today
files() { find / -xdev -not -path '/var/lib/dpkg/*' -not -path '/var/log/*' -not -path '/var/cache/*' -not -path '/tmp/*' -not -path '/var/tmp/*' | sort; }
rule=/lib/udev/rules.d/60-proof.rules unit=/lib/systemd/system/proofd.service
expect "the service is up" wait_for 60 is_up
submit_test kept 2 9
expect "a job" ends kept done 60
store_entries=$(ls /var/lib/proofd | wc -l)
submit_test unfinished 50 9

expect "dpkg -r" dpkg -r proofd
refuse "the service has ended" systemctl is-active -q proofd
same "no process is left" "$(pgrep -l proofd)" ""
same "no mount" "$(grep " $proof " /proc/mounts)" ""
expect "no device" wait_for 30 test ! -e /dev/proof
for f in $rule $unit /usr/sbin/proofd /usr/sbin/proofd-engine /usr/bin/proofctl; do refuse "no $f" test -e $f; done
expect "the configuration stays" test -e /etc/proofd.conf
expect "and so do the jobs" test "$(ls /var/lib/proofd | wc -l)" -gt "$store_entries"
refuse "nobody writes where the mount was" setpriv --reuid 65534 --regid 65534 --clear-groups touch "$proof/x"

expect "it is installed again" dpkg -i "$given/newer.deb"
expect "and is up" wait_for 60 is_up
expect "with the job" in_state kept done
expect "and the unfinished one goes on" ends unfinished done 120

rm -f /etc/proofd.sim # ours
expect "dpkg --purge" dpkg --purge proofd
same "no process is left behind" "$(pgrep -l proofd)" ""
same "no mount at all" "$(grep -i proof /proc/mounts)" ""
expect "no device at all" wait_for 30 test ! -e /dev/proof
same "systemd knows no unit" "$(systemctl list-unit-files --no-legend 'proofd*'; systemctl list-units --all --no-legend 'proofd*')" ""
same "dpkg knows nothing" "$(dpkg-query -W -f '${db:Status-Status}' proofd 2>/dev/null)" ""
files >"$work/after"
same "no file is left" "$(comm -13 /var/tmp/before "$work/after" | grep -vE '^/(etc/(group|gshadow)-|var/lib/systemd/(timers|catalog))' | head -n 20)" ""
finish_here
