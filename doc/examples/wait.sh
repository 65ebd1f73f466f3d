#!/bin/bash
# Waits for the end of a job: wait.sh /proof/jobs/NAME
#
# Prints the path of the proof and exits 0; prints why there is none and exits 1; exits 2 where there is no such job, or none is named; a job that is
# renamed meanwhile goes on under another name. Goes on waiting through a restart of the service. Needs inotifywait.
set -u
[ $# -eq 1 ] || { echo "usage: wait.sh /proof/jobs/NAME" >&2; exit 2; }
job=$1
jobs=$(dirname "$job")
name=$(basename "$job")
watcher=

stop_watching() { [ -z "$watcher" ] || kill "$watcher" 2>/dev/null; }
trap stop_watching EXIT

service_is_there() { [ -e "$jobs/../status" ]; }

look() {
    if [ -e "$job.proof" ]; then
        echo "$job.proof"
        exit 0
    elif [ -e "$job.error" ]; then
        cat "$job.error" >&2
        exit 1
    elif service_is_there && [ ! -e "$job" ] && service_is_there; then
        echo "$job: no such job: never there, or removed or renamed meanwhile" >&2
        exit 2
    fi
}

# Watch first, then look: what happens in between is seen either way. A restart is a new mount, which has to be watched anew; the watch
# of the old one says UNMOUNT. And a look now and then costs nothing, should an event have been lost.
while :; do
    exec 3< <(exec inotifywait -m -e close_write -e delete -e moved_from -e unmount --format '%e %f' "$jobs" 2>&1)
    watcher=$!
    while read -r -t 30 -u 3 line && [ "$line" != "Watches established." ]; do :; done
    look
    while read -r -t 30 -u 3 line || [ $? -gt 128 ]; do
        case $line in
        UNMOUNT* | *IGNORED*) break ;;
        *" $name" | *" $name."*) look ;;
        esac
        service_is_there || break
        [ -n "$line" ] || look
        line=
    done
    stop_watching
    until service_is_there; do sleep 1; done
done
