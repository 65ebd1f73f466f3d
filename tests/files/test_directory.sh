# The directory while jobs come and go: what stays is listed once, never twice and never not; numbers outlive a restart; limits are told
# where they are met.
. "$(dirname "$0")/lib.sh"

learn 2KiB-sealed
a=$(c1 2KiB-sealed)
printf 'keep_finished = 1000\n' >"$work/conf"
start --config "$work/conf"
watch_events

# ---- listed once
kept=60
for i in $(seq $kept); do cp "$a" "$jobs/kept$i"; done
for i in $(seq $kept); do ends "kept$i" done || fail "kept$i is not done"; done
cat >"$work/list.py" <<'END'
"""Lists a directory, with and without a look at each name, while files come and go: what stays is there once."""
import os
import sys
import threading

jobs, want = sys.argv[1], int(sys.argv[2])
stop = threading.Event()
made = 0


def churn(which):
    global made
    n = 0
    while not stop.is_set():
        n += 1
        path = f"{jobs}/.come{which}-{n}"
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT))
        os.rename(path, path + "x")
        os.unlink(path + "x")
        made += 1


threads = [threading.Thread(target=churn, args=(i,)) for i in range(2)]
for t in threads:
    t.start()
bad = listings = 0
while listings < 150 or made < 1000:
    if listings % 2:
        names = [e.name for e in os.scandir(jobs) if e.name.startswith("kept") and e.stat()]
    else:
        names = [n for n in os.listdir(jobs) if n.startswith("kept")]
    listings += 1
    if len(names) != want or len(set(names)) != want:
        bad += 1
stop.set()
for t in threads:
    t.join()
print(f"{bad} listings are wrong")
END
same "while others come and go" "$(timeout 600 python3 "$work/list.py" "$jobs" $((kept * 6)))" "0 listings are wrong"

# ---- what a listing told the kernel is not believed when the job has changed
cat >"$work/changed.py" <<'END'
import os
import sys

jobs = sys.argv[1]
ENDS = ["", ".status", ".priority", ".report", ".proof.bin", ".proof"]
wrong = set()


def look(job):  # at everything: then the kernel knows
    for e in os.scandir(jobs):
        e.stat()
    return [jobs + "/" + job + end for end in ENDS]


def want(what, yes):
    if not yes:
        wrong.add(what)


for n in range(1, 21):
    job = f"kept{n}"
    for path in look(job):
        with open(path, "rb") as f:
            size = os.stat(path).st_size
            want("size", size == os.fstat(f.fileno()).st_size == len(f.read()) > 0)
    paths = look(job)
    os.chmod(paths[0], 0o640)
    want("mode", [os.stat(p).st_mode & 0o777 for p in paths] == [0o640, 0o440, 0o640, 0o440, 0o440, 0o440])
    paths = look(job)
    with open(paths[2], "w") as f:
        f.write("low\n")
    want("priority", os.stat(paths[2]).st_size == 4)
    paths = look(job)
    os.unlink(paths[5])
    want("rm of a proof", [os.path.exists(p) for p in paths] == [True] * 5 + [False])
    paths = look(job)
    os.unlink(paths[0])
    want("rm", not any(os.path.exists(p) or os.access(p, os.F_OK) for p in paths))

# The results of a name are those of the job that has it now. These are the first of a listing, whose beginning always brings attributes.
one, other, old = f"{jobs}/kept21", f"{jobs}/kept22", f"{jobs}/old"
others = [os.stat(other + end).st_ino for end in ENDS]
for _ in range(30):
    os.listdir(jobs)
    os.rename(one, old)
    os.rename(other, one)
    want("rename", [os.stat(one + end).st_ino for end in ENDS] == others)
    os.rename(one, other)
    os.rename(old, one)
print("wrong:", *sorted(wrong))
END
same "changed after it was listed" "$(timeout 600 python3 "$work/changed.py" "$jobs" 2>&1)" "wrong:"
for i in $(seq 20); do cp "$a" "$jobs/kept$i"; done
for i in $(seq 20); do ends "kept$i" done || fail "kept$i is not done again"; done

# ---- numbers
numbers() { ls -i "$jobs" | sort -k 2; }
before=$(numbers)
cp "$a" "$jobs/.left"
same "a number for each name" "$(echo "$before" | awk '{ print $1 }' | sort -u | wc -l)" $((kept * 6))
kill_front
restart --config "$work/conf"
same "after a crash and a restart" "$(numbers)" "$before"
refuse "a temporary name is gone" mv "$jobs/.left" "$jobs/left"
expect "the log says so" grep -q 'dropped.*files=1$' "$log"
expect "a stop" stop
start --config "$work/conf"
same "after a stop and a start" "$(numbers)" "$before"

# ---- SIGHUP: options read again, all or nothing
says() { grep -qE -- "$2" "$1"; }
hup() { # then wait for what the log says
    local n=$(grep -c "$1" "$log")
    kill -HUP "$front"
    more_of() { [ "$(grep -c "$1" "$log")" -gt "$n" ]; }
    expect "SIGHUP: $1" wait_for 10 more_of "$1"
}
printf 'keep_finished = 20\nlog_level = debug\nmax_unfinished = 7\n' >"$work/conf"
hup "options read again"
same "log_level" "$(cat "$mnt/log_level")" debug
same "places" "$(df --output=itotal "$mnt" | tail -n 1 | tr -d ' ')" 7
like "status says what is kept" "$(grep '^kept' "$mnt/status")" 'at most 20,'
left() { [ "$(ls "$jobs" | grep -c '\.proof$')" -le "$1" ]; }
expect "retention by number" wait_for 20 left 20
printf 'keep_finished = 5\nmax_unfinished = many\n' >"$work/conf"
hup "options stay as they are.*many"
printf 'keep_finished = 5\nthreads = 3\n' >"$work/conf"
hup "options stay as they are.*threads has changed"
same "nothing has changed" "$(df --output=itotal "$mnt" | tail -n 1 | tr -d ' ')" 7
like "nor what is kept" "$(grep '^kept' "$mnt/status")" 'at most 20,'
sleep 6
refuse "none went" left 19
printf 'keep_finished = 20\nkeep_finished_bytes = 700K\n' >"$work/conf"
hup "options read again"
expect "retention by bytes" wait_for 20 left 6
printf 'keep_finished_age = 1s\n' >"$work/conf"
hup "options read again"
expect "retention by age" wait_for 20 left 0
same "nothing is left" "$(names)" ""

# ---- limits
printf 'max_store = 400K\n' >"$work/conf"
hup "options read again"
for i in 1 2 3 4 5; do cp "$a" "$jobs/big$i" 2>"$work/said" || break; done
like "the store is full: cp says so" "$(cat "$work/said")" "No space left on device"
refuse "and leaves no job" test -e "$jobs/big$i.status"
size=$(df --output=size -B1 "$mnt" | tail -n 1)
expect "df has the store's size ($size)" test "$size" -le 409600 -a "$size" -ge 400000
df_is_true() { # in blocks, and of all that the jobs keep
    local told=$(awk '/^proofd_store_bytes / { print $2 }' "$mnt/metrics") used=$(df --output=used -B1 "$mnt" | tail -n 1)
    [ $((told - used)) -ge 0 ] && [ $((told - used)) -lt 4096 ] && [ "$told" -ge $(((i - 1) * $(stat -c %s "$a"))) ]
}
expect "df has what is used of it" wait_for 10 df_is_true
like "status says which limit" "$(grep '^files' "$mnt/status")" 'the store .*: at most 409600 bytes'
expect "a clean end" stop

# ---- what cannot work is refused at the start
for option in --store --params; do
    out=$(timeout 20 "$proofd" --mount "$mnt" --store "$store" --params "$params" $option "$mnt/inside" 2>&1)
    same "$option inside the mount" $? 2
    like "$option inside the mount" "$out" "lies inside the mount"
done
finish
