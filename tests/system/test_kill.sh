# kill -9 of the front or of the engine at a random moment, then a restart: every job that was accepted ends with a valid
# proof, none is lost, none is half accepted. KILLS rounds; the state of each job at the moment of the kill is counted.
. "$(dirname "$0")/lib.sh"

kills=${KILLS:-$([ -n "${PROOFD_QUICK:-}" ] && echo 24 || echo 100)}
least=$([ "$kills" -ge 100 ] && echo 5 || echo 1)
seed=${SEED:-$(od -An -N2 -tu2 /dev/urandom | tr -d ' ')}
RANDOM=$seed
echo "seed $seed, $kills kills"

contents=(2KiB-sealed 2KiB-v1 2KiB-sparse 2KiB-synthetic)
learn "${contents[@]}"
files=() proofs=()
for c in "${contents[@]}"; do
    files+=("$(c1 "$c")")
    proofs+=("$(awk '{ print $2 }' "$vectors/$c/proof-r3-s5.txt")")
    printf '%s\n' "${proofs[-1]}" >"$work/known-$c"
    expect "the proof known of $c is valid" is_valid "$(c1 "$c")" "$work/known-$c"
done
hopeless=$FAKE_ENGINE_DIR/$("$fake" hash "${files[3]}").fail
head -c 60000 "${files[0]}" >"$work/bad"

declare -A histogram content_of writer_of
moments=(receiving receiving accepted queued synthesizing proving done failed rejected cancelled random random)
lost=0 wrong=0 half=0 revived=0 front_kills=0 engine_kills=0 in_a_row=0

count_state() { histogram[$1]=$((${histogram[$1]:-0} + 1)); }

submit() { # name content: a cp that may be killed
    content_of[$1]=$2
    cp "${files[$2]}" "$jobs/$1" 2>/dev/null &
    writer_of[$1]=$!
}

submit_and_wait() { # name content
    submit "$1" "$2"
    wait "${writer_of[$1]}"
}

a_little() { sleep "0.0$((RANDOM % 10))"; }

# Brings things to the moment of the kill.
bring_to() { # moment round
    local n=$2 i
    delays $((RANDOM % 60)) $((RANDOM % 60))
    case $1 in
    receiving) # half a file
        exec 9>"$jobs/r$n"
        cat "$work/bad" >&9 2>/dev/null
        ;;
    accepted) # a whole file whose writer has not closed it yet, but has been told that it is taken
        exec 9>"$jobs/a$n"
        content_of[a$n]=1
        { cat "${files[1]}" >&9; } 2>/dev/null & writer_of[a$n]=$!
        wait $!
        ;;
    queued) # more than the engine takes at a time
        delays 60000 60000
        for i in 0 1 2 3; do submit_and_wait "q$n.$i" $i; done
        ;;
    synthesizing | proving)
        if [ "$1" = proving ]; then delays 0 60000; else delays 60000 0; fi
        for i in 0 1; do submit_and_wait "w$n.$i" $i; done
        wait_for 10 in_state "w$n.0" "$1"
        ;;
    done)
        delays 0 0
        submit_and_wait "d$n" $((RANDOM % 4))
        wait_for 10 in_state "d$n" done
        ;;
    failed)
        touch "$hopeless"
        submit_and_wait "f$n" 3
        wait_for 10 in_state "f$n" failed
        ;;
    rejected)
        cp "$work/bad" "$jobs/b$n" 2>/dev/null
        ;;
    cancelled)
        delays 0 60000
        submit_and_wait "c$n" 2
        wait_for 10 in_state "c$n" proving
        unset "content_of[c$n]"
        rm "$jobs/c$n" && sync "$jobs" # else the kill may bring it back
        ;;
    random)
        for i in 0 1 2 3; do submit "x$n.$i" $((RANDOM % 4)); a_little; done
        a_little
        ;;
    esac
}

look_and_kill() { # moment pid
    local f s
    local -a seen=()
    for f in "$jobs"/*.status; do
        read -r s _ <"$f" && seen+=("$s")
    done 2>/dev/null
    kill -KILL "$2"
    case $1 in rejected | cancelled) count_state "$1" ;; esac
    for s in "${seen[@]}"; do count_state "$s"; done
}

check_accepted() { # name
    local content=${content_of[$1]}
    if ! wait_for 60 has_ended "$1" done; then
        lost=$((lost + 1))
        echo "LOST $1: $(cat "$jobs/$1.status" "$jobs/$1.error" 2>&1)"
    elif [ "$(cat "$jobs/$1.proof")" != "${proofs[$content]}" ] || ! cmp -s "${files[$content]}" "$jobs/$1"; then
        wrong=$((wrong + 1))
        echo "WRONG $1"
    fi
}

check_refused() { # name: whose writer was killed or told of an error: no job, or a whole one
    if [ -e "$jobs/$1" ]; then
        if cmp -s "${files[${content_of[$1]}]}" "$jobs/$1"; then check_accepted "$1"; else
            half=$((half + 1))
            echo "HALF $1"
        fi
    fi
}

check_failed() { # round
    if ! wait_for 20 has_ended "f$1" failed; then
        lost=$((lost + 1))
        echo "LOST f$1, which had failed: $(cat "$jobs/f$1.status" 2>&1)"
    fi
    unset "content_of[f$1]"
    rm -f "$hopeless"
}

check_gone() { # moment name...
    local name
    for name in "${@:2}"; do
        if [ -e "$jobs/$name" ] || [ -e "$jobs/$name.status" ]; then
            revived=$((revived + 1))
            echo "REVIVED $name, which was $1"
        fi
    done
}

round() { # number
    local n=$1 moment=${moments[$1 % ${#moments[@]}]} victim=$front name
    content_of=() writer_of=()
    bring_to "$moment" "$n"
    if [ $((RANDOM % 3)) -eq 0 ] && [ $in_a_row -lt 2 ]; then victim=$(engine_pid); fi
    [ -n "$victim" ] || victim=$front
    look_and_kill "$moment" "$victim"
    if [ "$victim" = "$front" ]; then
        front_kills=$((front_kills + 1)) in_a_row=0
        wait "$front" 2>/dev/null
        { exec 9>&-; } 2>/dev/null
        restart || { echo "no restart"; tail "$log"; failed=$((failed + 1)); finish; }
    else
        engine_kills=$((engine_kills + 1)) in_a_row=$((in_a_row + 1))
        { exec 9>&-; } 2>/dev/null
    fi
    delays 0 0
    [ "$moment" != failed ] || check_failed "$n"
    for name in "${!content_of[@]}"; do
        if wait "${writer_of[$name]}" 2>/dev/null; then check_accepted "$name"; else check_refused "$name"; fi
    done
    check_gone receiving "r$n"
    check_gone rejected "b$n"
    check_gone cancelled "c$n"
    remove_all || { echo "round $n: something stays:"; ls "$jobs"; half=$((half + 1)); }
}

start
exec 9>/dev/null
for n in $(seq 1 "$kills"); do round "$n"; done 2>"$work/noise"

echo "killed: front $front_kills, engine $engine_kills; jobs by their state at the kill:"
for s in receiving queued synthesizing proving done failed rejected cancelled; do
    printf '%14s %4d\n' "$s" "${histogram[$s]:-0}"
    expect "at least $least jobs were $s" test "${histogram[$s]:-0}" -ge "$least"
done
same "accepted jobs lost" $lost 0
same "wrong proofs or files" $wrong 0
same "half accepted" $half 0
same "refused, cancelled or unfinished files that came back" $revived 0
expect "a clean end" stop
same "nothing is left in the store" "$(find "$store" -name c1 -o -name job | wc -l)" 0
finish
