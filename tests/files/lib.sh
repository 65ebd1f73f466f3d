# Sourced by the tests of this directory, after what they need of tests/system/lib.sh: counts jobs, and the bytes that the store has of them.
#
#   watch_events        from now on; for queued
#   queued              how many jobs were queued since
#   settle              waits until every close is through, and every event of it was read
#   spooled NAME        bytes that the store has of job NAME
#   names               what is in the directory of jobs, on one line

. "$(dirname "${BASH_SOURCE[0]}")/../system/lib.sh"

marks=0
patience=5 # nothing here has a time to meet: a limit ends what hangs, on however busy a machine

watch_events() {
    cat "$mnt/events" >"$work/events" &
    opened $! "$mnt/events"
}

# By any state behind it too: of a job that is quick only the last may be told.
queued() { awk '$3 ~ /^(queued|synthesizing|proving|done|failed)$/ && !seen[$2]++ { n++ } END { print n + 0 }' "$work/events"; }

nothing_is_received() { grep -q '^proofd_jobs{state="receiving"} 0$' "$mnt/metrics"; }

# A close is answered before what comes of it, and events come in order: so behind a mark of our own everything has been told.
settle() {
    wait_for 20 nothing_is_received || return 1
    marks=$((marks + 1))
    : >"$jobs/.mark$marks"
    rm "$jobs/.mark$marks" && wait_for 10 grep -q " removed .mark$marks\$" "$work/events"
}

# An inode number is the job's number times 16.
spooled() { stat -c %s "$store/$(printf %016x $(($(stat -c %i "$jobs/$1") / 16)))/c1"; }

names() { ls -A "$jobs" | LC_ALL=C sort | tr '\n' ' '; }
