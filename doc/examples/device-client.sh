#!/bin/sh
# A client of /dev/proof in shell: hands a C1 file over, waits for its end and prints the proof. A shell has no ioctl, so
# the job gets a number for a name; which one is found by its content, beside it in the mount. What is refused has no content
# there: of that only the owner is looked at, so one user should not run this twice at a time with files that are wrong.
# Usage: device-client.sh FILE. PROOF_DEVICE and PROOF_MOUNT name others than /dev/proof and /proof.
# Exit status: 0 done, 1 refused or failed, 2 no answer.
set -u
device=${PROOF_DEVICE:-/dev/proof}
jobs=${PROOF_MOUNT:-/proof}/jobs
record=$(mktemp) || exit 2
trap 'rm -f "$record"' EXIT
trap 'exit 130' INT TERM

# Watch first, then submit, so that nothing is missed. A reader starts at the present.
exec 3<"$device" || exit 2
cat "$1" >"$device" || { echo "device-client.sh: $1: refused" >&2; exit 1; }

# The layout of a record is that of struct proof_event: 304 bytes, the state at 40, the name from 48 on.
while dd bs=304 count=1 of="$record" <&3 2>/dev/null && [ -s "$record" ]; do
    state=$(od -An -t u4 -j 40 -N 4 "$record" | tr -d ' ')
    name=$(tail -c +49 "$record" | tr -d '\000')
    case $name in device-*) ;; *) continue ;; esac
    case $state in
    2) # refused: there is no file of that name, only its error
        [ -O "$jobs/$name.error" ] && [ ! -e "$jobs/$name" ] || continue
        cat "$jobs/$name.error" >&2
        exit 1
        ;;
    6) # done; the same content has the same proof, whoever submitted it
        cmp -s "$1" "$jobs/$name" || continue
        until [ -e "$jobs/$name.proof" ]; do sleep 0.1; done
        cat "$jobs/$name.proof"
        exit 0
        ;;
    7 | 8)
        cmp -s "$1" "$jobs/$name" || continue
        cat "$jobs/$name.error" >&2
        exit 1
        ;;
    esac
done
echo "device-client.sh: the service has stopped" >&2
exit 2
