# kill -9 of a front that is in its own mount, making results appear, while others make and remove names there: nobody hangs, neither the
# front nor they. KILLS times. And SIGTERM then: a clean end.
needs_params=no
. "$(dirname "$0")/lib.sh"
real_engine
command -v python3 >/dev/null || lacks "python3"
kills=${KILLS:-$([ -n "${PROOFD_QUICK:-}" ] && echo 2 || echo 3)}
echo "finish_ms = 2000" >"$work/sim"
published() { [ "$(ls "$jobs" | grep -c '\.proof$')" -ge "$1" ]; }
abort() { # the way out of a mount that hangs
    local dev=$(awk -v m="$mnt" '$5 == m { print $3 }' /proc/self/mountinfo)
    mount -t fusectl none /sys/fs/fuse/connections 2>/dev/null
    echo 1 >"/sys/fs/fuse/connections/${dev#*:}/abort"
}
ended() { [ ! -e "/proc/$1/task" ] || [ "$(ls "/proc/$1/task" 2>/dev/null | wc -l)" -le 1 ]; } # a thread may be left behind
start --nodes all --simulate "$work/sim"
for k in $(seq "$kills"); do
    for w in 1 2 3 4; do
        python3 tests/system/churn.py "$jobs/.$w" &
        makers[w]=$!
    done
    # Of one content, so that they all end at once.
    for i in $(seq 60); do echo "{\"proofd-test\":{\"partitions\":1,\"seed\":$k}}" >"$jobs/j$i"; done
    expect "$k: results appear" wait_for 60 published 1
    kill -KILL "$front"
    expect "$k: the front ends" wait_for 20 ended "$front"
    [ "$failed" -eq 0 ] || abort
    wait "$front" 2>/dev/null
    front=
    for w in 1 2 3 4; do wait "${makers[w]}" 2>/dev/null; done
    expect "$k: a restart" restart --nodes all --simulate "$work/sim"
    [ "$failed" -eq 0 ] || break
    expect "$k: every job ends" wait_for 60 published 60
    expect "$k: rm" bash -c "rm '$jobs'/j?.* '$jobs'/j??.* -f; rm '$jobs'/j? '$jobs'/j??"
done

# ---- the same with an end in good order, again and again at another moment: publications that are under way, watchers, files that are open
for k in $(seq "$kills"); do
    for w in 1 2; do
        python3 tests/system/churn.py "$jobs/.$w" 2>/dev/null &
        makers[w]=$!
    done
    cat "$mnt/events" >/dev/null 2>&1 &
    reader=$!
    for i in $(seq 60); do echo "{\"proofd-test\":{\"partitions\":1,\"seed\":9$k}}" >"$jobs/j$i"; done
    expect "$k: results appear" wait_for 60 published $((k % 3 * 8))
    kill -TERM "$front"
    wait "$front"
    same "$k: SIGTERM among them: a clean end" $? 0
    front=
    for w in 1 2; do wait "${makers[w]}" 2>/dev/null; done
    wait "$reader" 2>/dev/null
    expect "$k: a restart" restart --nodes all --simulate "$work/sim"
    expect "$k: every job ends" wait_for 60 published 60
    expect "$k: rm" bash -c "rm '$jobs'/j?.* '$jobs'/j??.* -f; rm '$jobs'/j? '$jobs'/j??"
done
expect "a clean end" stop
finish
