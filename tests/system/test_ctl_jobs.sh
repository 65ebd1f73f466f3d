# proofctl submit, wait, status and cancel on a service: what they print, as text and as JSON, and their exit codes.
. "$(dirname "$0")/lib.sh"

learn 2KiB-sealed 2KiB-sparse
a=$(c1 2KiB-sealed) b=$(c1 2KiB-sparse)
head -c 1000 "$a" >"$work/cut.json"
: >"$work/nothing"

# exits CODE WHAT ARGUMENT...: proofctl with the mount; output to $work/said and $work/complained.
exits() {
    local wanted=$1 what=$2 command=$3
    shift 3
    "$proofctl" "$command" --mount "$mnt" "$@" >"$work/said" 2>"$work/complained" </dev/null
    same "$what: exit status" $? "$wanted"
}
says() { same "$1" "$(cat "$work/said")" "$2"; }
complains() { like "$1" "$(cat "$work/complained")" "$2"; }
# json WHAT JQ-FILTER WANTED: of all objects that were printed.
json() { same "$1" "$(jq -r "$2" "$work/said" 2>&1)" "$3"; }

start
delays 0 60000

# ---- refused: there is no job, but a reason
exits 1 "submit an empty file" submit "$work/nothing"
complains "and says so" "nothing: refused: the file is empty"
exits 1 "submit what is no C1" submit "$work/cut.json"
complains "and says why" "^proofctl: cut.json: refused: .*byte 1000 of the file"
reason=$(head -n 1 "$jobs/cut.json.error")
exits 1 "submit what is no C1, as JSON" submit --json --name bad "$work/cut.json"
json "says why" '.name + " " + .state + " " + .error' "bad refused $reason"
same "and nothing else" "$(cat "$work/complained")" ""
exits 0 "status of what was refused" status cut.json
says "shows the reason" "cut.json: refused: $reason"
exits 0 "status of what was refused, as JSON" status --json bad
json "shows the reason" '.state + " " + .error' "refused $reason"
exits 1 "wait for what was refused" wait cut.json
says "shows the reason" "cut.json: refused: $reason"
exits 1 "cancel what was refused" cancel cut.json
complains "it has ended" "cut.json: has ended already: refused"
exits 2 "a name that is the service's" submit --name x.proof "$a"
complains "says so" "^proofctl: x.proof: no name for a job"
exits 2 "a name that is too long" submit --name "$(printf 'x%.0s' {1..300})" "$a"

# ---- accepted
exits 0 "submit" submit --name one "$a"
like "says how it stands" "$(cat "$work/said")" "^one: (queued|synthesizing|proving) "
exits 1 "submit to a name in use" submit --name one "$b"
complains "says what to do" "one: refused: a job of this name has not ended \(--name"
exits 0 "submit from standard input needs a name" submit --name two "$b"
exits 2 "or is wrong usage" submit -
exits 2 "a name with a slash" wait a/b
exits 2 "a file that is not there" submit "$work/absent"
complains "is named" "$work/absent: No such file"
exits 2 "a directory" submit "$work"
complains "is none" "^proofctl: $work: Is a directory"
for name in .x x.part x.tmp x~; do
    exits 2 "$name would never be a job" submit --name $name "$a"
    complains "and says so" "^proofctl: $name: a temporary name; --name gives another"
done
cp "$a" "$work/x.tmp"
exits 2 "nor would a file of such a name, in JSON" submit --json "$work/x.tmp"
json "is an error" '.name + ": " + .error' "x.tmp: a temporary name; --name gives another"
same "and none is in the mount" "$(ls -A "$jobs" | grep x)" ""
wait_for 20 in_state one proving
wait_for 20 in_state two proving
exits 0 "status of jobs" status one two
same "a line each" "$(cut -d' ' -f1,2 "$work/said" | tr '\n' ' ')" "one: proving two: proving "
exits 0 "status of jobs as JSON" status --json one two
json "an object each" '.name + " " + .state + " " + (.text | split(" ")[0])' "one proving proving
two proving proving"
exits 0 "status of all as JSON" status --json
sort -o "$work/said" "$work/said"
json "with what was refused" '.name + " " + .state' "$(printf '%s\n' "bad refused" "cut.json refused" "one proving" "two proving")"
exits 0 "status of the service" status
complains "nothing" "^$"
like "is the mount's own" "$(cat "$work/said")" "insecure development parameters"

# ---- no such job
exits 2 "status of no job" status three
complains "says so" "^proofctl: three: no such job"
exits 2 "status of a job and of none" status --json one three
json "tells them apart" '.name + " " + (.error // .state)' "one proving
three no such job"
exits 2 "wait for no job" wait --json three
json "says so" '.name + ": " + .error' "three: no such job"
exits 2 "no service" status --json --mount "$work/absent"
json "is an error in JSON" '.error | endswith("is proofd running there?")' true
exits 2 "wrong usage" cancel --json
json "is an error in JSON" '.error | startswith("usage: proofctl cancel")' true

# ---- cancelled
"$proofctl" wait --mount "$mnt" two >"$work/waited" 2>&1 &
waiter=$!
opened $waiter "$jobs/two.status"
exits 0 "cancel" cancel two
says "says so" "two: cancelled"
wait "$waiter"
same "who waits for it: exit status" $? 1
same "who waits for it is told" "$(cat "$work/waited")" "two: cancelled"
exits 2 "cancel again: there is no such job" cancel two
complains "and says so" "two: no such job"

# ---- renamed: the job goes on, and so does who waits for it, whoever has its old name
wait_renamed() { # WAITER FROM TO: once it waits
    opened "$1" "$jobs/$2.status"
    mv "$jobs/$2" "$jobs/$3"
}
exits 0 "submit" submit --name before "$b"
wait_for 20 in_state before proving
"$proofctl" wait --mount "$mnt" before >"$work/waited" 2>"$work/grumbled" &
waiter=$!
wait_renamed $waiter before after
expect "who waits is told of the new name" wait_for 20 grep -q "^proofctl: before: renamed to after; waiting" "$work/grumbled"
exits 0 "the old name is free" submit --name before "$a"
"$proofctl" submit --wait --mount "$mnt" --name over "$a" >"$work/waited2" 2>"$work/grumbled2" &
submitter=$!
wait_renamed $submitter over beyond
expect "who submitted too" wait_for 20 grep -q "^proofctl: over: renamed to beyond; waiting" "$work/grumbled2"
expect "they wait on" kill -0 $waiter $submitter
delays 0 0
wait $waiter
same "who waited: exit status" $? 0
same "and the answer" "$(cat "$work/waited")" "after: $(cat "$jobs/after.status")"
wait $submitter
same "who submitted: exit status" $? 0
same "and the answer" "$(cat "$work/waited2")" "beyond: $(cat "$jobs/beyond.status")"
exits 0 "over an ended job" submit --wait --name after "$a"
says "it is waited for as well" "after: $(cat "$jobs/after.status")"
exits 0 "the job of the old name" wait before
rm "$jobs/before" "$jobs/after" "$jobs/beyond"
delays 0 60000

# ---- done
"$proofctl" submit --wait --mount "$mnt" --name again "$a" >"$work/waited" 2>&1 &
waiter=$!
wait_for 20 test -e "$jobs/again.status"
delays 0 0
exits 1 "cancel as JSON what is not there, and one that was refused" cancel --json bad
json "is an error" '.error' "has ended already: refused"
exits 0 "wait" wait one
says "says so" "one: $(cat "$jobs/one.status")"
like "with the parameters" "$(cat "$work/said")" "insecure development parameters"
expect "the same content is waited for too" wait "$waiter"
same "and done" "$(cat "$work/waited")" "again: $(cat "$jobs/again.status")"
exits 1 "cancel what is done" cancel one
complains "it has ended" "one: has ended already: done"
exits 0 "wait for what has ended" wait --json one again
json "an object each" '.name + " " + .state' "one done
again done"
json "with the line of the status" .text "$(cat "$jobs/one.status" "$jobs/again.status")"
expect "its proof" is_valid "$a" "$jobs/one.proof"

# ---- a restart while somebody waits, clean and not
delays 0 60000
exits 0 "submit" submit --name stays "$b"
wait_for 20 in_state stays proving
"$proofctl" wait --mount "$mnt" stays >"$work/waited" 2>"$work/grumbled" &
waiter=$!
"$proofctl" submit --wait --mount "$mnt" --name goes "$b" >"$work/waited2" 2>"$work/grumbled2" &
submitter=$!
opened $waiter "$jobs/stays.status"
opened $submitter "$jobs/goes.status"
wait_for 20 in_state goes proving
expect "a clean end" stop
expect "who waits says that the service is gone" wait_for 20 grep -q "$mnt: the service is gone; waiting" "$work/grumbled"
exits 2 "wait where there is none" wait stays
complains "says so" "$mnt/jobs: .*is proofd running there\?"
expect "start again" restart
wait_for 20 in_state stays proving
opened $waiter "$jobs/stays.status" # on the new mount
kill_front
delays 0 0
expect "start again after a crash" restart
expect "who waited gets the answer" wait "$waiter"
same "which is all that it says" "$(cat "$work/waited")" "stays: $(cat "$jobs/stays.status")"
expect "and who submitted" wait "$submitter"
same "which is all that it says" "$(cat "$work/waited2")" "goes: $(cat "$jobs/goes.status")"
expect "a clean end" stop
finish
