# One user does his worst; others must not notice.
. "$(dirname "$0")/lib.sh"

learn 2KiB-sealed 2KiB-v1
a=$(c1 2KiB-sealed) b=$(c1 2KiB-v1)
# Another user is another turn at the intake threads; without root there is one user for all.
chmod 755 "$work"
if [ "$(id -u)" -eq 0 ] && command -v setpriv >/dev/null; then
    mallory() { setpriv --reuid 1001 --regid 1001 --clear-groups "$@"; }
else
    mallory() { "$@"; }
fi
now() { date +%s%3N; }
took() { # milliseconds that a command takes, whatever it says
    local start=$(now)
    "$@" >"$work/out" 2>&1
    echo $(($(now) - start))
}
start

# ---- bombs: packed to next to nothing, and a gibibyte when they are unpacked
# Sanitizers are slow, and CI's machine is.
if [ -n "${PROOFD_QUICK:-}" ]; then size=50000000 soon=60000 refused=200; else size=1073000000 soon=30000 refused=1500; fi
{ printf '{"x":[0'; yes ,0 | tr -d '\n' | head -c $size; } | zstd -q -c >"$work/numbers"
{ head -c 2000 "$a"; head -c $size /dev/zero | tr '\0' ' '; } | zstd -q -c >"$work/spaces"
{ printf '{"x":"'; head -c $size /dev/zero | tr '\0' x; } | gzip -1 -c >"$work/letters"
for bomb in numbers spaces letters; do
    ms=$(took mallory cp "$work/$bomb" "$jobs/$bomb")
    like "a bomb of $bomb is refused" "$(cat "$work/out")" "Bad message"
    expect "and soon ($ms ms)" test "$ms" -lt $soon
    expect "with a reason ($(head -n 1 "$jobs/$bomb.error"))" rm "$jobs/$bomb.error"
    expect "under a temporary name it is a file" mallory cp "$work/$bomb" "$jobs/.$bomb"
    ms=$(took mallory mv "$jobs/.$bomb" "$jobs/$bomb")
    like "that does not become a job" "$(cat "$work/out")" "Bad message"
    expect "nor is anything read for that ($ms ms)" test "$ms" -lt $soon
    like "the reason is beside it" "$(cat "$jobs/.$bomb.error")" "byte"
    expect "rm" rm "$jobs/.$bomb"
done

# ---- a file that was not judged when it was closed
{ "$probe" kill "$a" "$jobs/.dead"; } 2>/dev/null
wait_for 5 test -e "$jobs/.dead"
mv "$jobs/.dead" "$jobs/dead" 2>"$work/out" || like "mv of it says: not yet" "$(cat "$work/out")" "temporarily unavailable|busy"
expect "and soon it does" wait_for 5 mv -n "$jobs/.dead" "$jobs/dead"
expect "a job" ends dead done
rm "$jobs/dead"

# ---- a file that is being written
exec 7>"$jobs/.open"
cat "$a" >&7 # its close judges
expect "mv of an open file that was judged" mv "$jobs/.open" "$jobs/open"
like "waits for its writer" "$(cat "$jobs/open.status")" "^receiving "
exec 7>&-
expect "to be a job" ends open done
rm "$jobs/open"

# ---- truncate(2) of a file that somebody else is closing, and other odd calls
cp "$a" "$jobs/.t"
expect "truncate by name" "$probe" truncate "$jobs/.t" 100
same "its size" "$(stat -c %s "$jobs/.t")" 100
refuse "it is no C1 any more" mv "$jobs/.t" "$jobs/t"
rm "$jobs/.t"

# ---- a file that is accepted, and is then made longer than any may be
same "a write behind the longest length, and its close" "$(mallory "$probe" long "$a" "$jobs/long")" "EFBIG EFBIG"
like "the reason" "$(cat "$jobs/long.error")" "longer than 1073741824 bytes"
refuse "there is no job" test -e "$jobs/long"
rm "$jobs/long.error"
cp "$a" "$jobs/.t"
same "by truncate" "$("$probe" truncate "$jobs/.t" $(((1 << 30) + 1)))" EFBIG
expect "which changes nothing" mv "$jobs/.t" "$jobs/t"
expect "and others go on" ends t done

remove_all
expect "a clean end" stop

[ "$(id -u)" -eq 0 ] && command -v setpriv >/dev/null || { skip "a second user" "not root, or no setpriv"; finish; }
start --max-unfinished 40 --max-unsubmitted-user 100 --max-unsubmitted 1000

works() { # what: a job of somebody else is taken and done, soon
    local ms=$(took cp "$a" "$jobs/works")
    expect "$1: cp of another user ($ms ms; $(cat "$work/out"))" test "$ms" -lt $soon
    expect "$1: and its job" ends works done
    expect "$1: and rm" rm "$jobs/works"
}

hold() { # out command...: starts it as mallory with an input that stays open, waits for its first line
    local out=$1
    shift
    rm -f "$work/leave" "$out"
    mkfifo "$work/leave"
    mallory "$@" <"$work/leave" >"$out" 2>&1 &
    exec 5>"$work/leave"
    wait_for 30 test -s "$out"
}
let_go() { exec 5>&-; wait $!; }

# ---- as many opens as there are
hold "$work/held" "$probe" hold "$jobs" "open" 1000
same "half of the places are for others" "$(cat "$work/held")" "20 EAGAIN"
works "with files held open"
same "an open that is refused leaves nothing" "$(ls "$jobs" | grep -c '^open20')" 0
let_go
mallory bash -c "rm -f '$jobs'/open*"
hold "$work/held" "$probe" hold "$jobs" ".open" 1000
same "under temporary names as well" "$(cat "$work/held")" "20 EAGAIN"
works "with temporary files held open"
let_go
mallory bash -c "rm -f '$jobs'/.open*"
# A writer that waits for a place of his own is in nobody's way.
hold "$work/held" "$probe" hold "$jobs" "open" 20
mallory cp "$a" "$jobs/waits" 5>&- & waits=$!
parked 1
expect "his next cp waits" kill -0 $waits
works "with one that waits for itself"
let_go
expect "and then is taken" wait $waits
expect "and done" ends waits done
mallory bash -c "rm -f '$jobs/waits' '$jobs'/open*"
hold "$work/held" "$probe" read "$mnt/status" 10000
same "opens to read" "$(cat "$work/held")" "4096 EMFILE"
expect "others may read" cat "$mnt/status"
let_go
hold "$work/held" "$probe" read "$mnt/events" 1000
same "opens of events" "$(cat "$work/held")" "64 EMFILE"
works "with readers of events that do not read"
let_go

# ---- opens and listings without end
: >"$work/go"
often=()
for n in 1 2 3; do
    mallory bash -c 'while [ -e "$1/go" ]; do : <"$1/mnt/status"; : >>"$1/mnt/jobs/.often$2"; done' x "$work" $n & often+=($!)
done
mallory bash -c 'while [ -e "$1/go" ]; do ls -l "$1/mnt/jobs"; done' x "$work" >/dev/null 2>&1 & often+=($!)
works "with opens and listings without end"
rm "$work/go"
expect "which end by themselves" wait "${often[@]}"
mallory bash -c "rm -f '$jobs'/.often*"

# ---- half files without end
mallory bash -c "for i in \$(seq 500); do echo '{' >'$jobs/.half'\$i || exit; done" >"$work/out" 2>&1
like "half files" "$(cat "$work/out")" "Disk quota exceeded"
same "a hundred of them" "$(ls -A "$jobs" | wc -l)" 100
like "status says so" "$(grep '^files' "$mnt/status")" "100 that are no jobs.* ago: files of uid 1001 that are no jobs: at most 100 files"
works "with a hundred half files"
mallory bash -c "rm -f '$jobs'/.half*"
mallory bash -c "for i in \$(seq $refused); do echo '{' >'$jobs/bad'\$i; done" >"$work/out" 2>&1
works "with $refused refused files"
cp "$work/numbers" "$jobs/mine" 2>/dev/null
few_reasons() { [ "$(ls "$jobs" | grep -c '^bad.*error$')" -le 1001 ]; }
expect "of a thousand the reason is kept" wait_for 20 few_reasons
expect "the other's refused file has kept its reason" test -s "$jobs/mine.error"
rm "$jobs/mine.error"
mallory bash -c "rm -f '$jobs'/bad*"

# ---- files that are made, never opened, and removed
anon() { awk '/^RssAnon/ { print $2 }' "/proc/$front/status"; }
mallory "$probe" make "$jobs/made" 3000
kib=$(anon)
expect "made and removed" mallory "$probe" make "$jobs/made" 30000
kib=$(($(anon) - kib))
if [ -n "${PROOFD_QUICK:-}" ]; then skip "what is kept of them" "sanitizers keep memory"; else
    expect "nothing is kept of them ($kib KiB)" test "$kib" -lt 500
fi
works "with files made and removed"

# ---- writes of a byte
mallory dd if=/dev/zero of="$jobs/.tiny" bs=1 count=1000000 status=none 2>/dev/null & tiny=$!
mallory dd if=/dev/zero of="$jobs/.tiny2" bs=1 count=1000000 status=none 2>/dev/null & tiny2=$!
works "with writes of a byte"
kill $tiny $tiny2 2>/dev/null
wait $tiny $tiny2 2>/dev/null
mallory rm -f "$jobs/.tiny" "$jobs/.tiny2"

# ---- names
long=$(printf 'n%.0s' {1..245})
for name in $'a\nb' $'\x1b[2J' $'\xff\xfe' '-rf' '$(reboot)' '*' ' ' "$long" '..a' '...'; do
    mallory cp "$b" "$jobs/./$name" && continue
    fail "cp to the name '$name'"
done
names=$(ls -A "$jobs" | wc -l)
refuse "a name of 255 bytes" mallory cp "$b" "$jobs/$(printf 'n%.0s' {1..255})"
refuse "the directory's own" mallory cp -T "$b" "$jobs/."
refuse "its parent's" mallory cp -T "$b" "$jobs/.."
same "these are no names" "$(ls -A "$jobs" | wc -l)" "$names"
expect "all done" wait_for 20 bash -c "! grep -qE 'queued [1-9]|proving [1-9]|synthesizing [1-9]' '$mnt/status'"
expect "the log has no control characters" bash -c "! LC_ALL=C grep -q $'[\001-\010\013-\037]' '$log'"
expect "nor bytes that are no UTF-8" iconv -f UTF-8 -t UTF-8 "$log"
works "with odd names"
mallory bash -c "cd '$jobs' && find . -type f ! -name '*.status' ! -name '*.priority' ! -name '*.report' ! -name '*.proof*' -delete"
expect "all of them can be removed" wait_for 5 idle
expect "a clean end" stop
finish
