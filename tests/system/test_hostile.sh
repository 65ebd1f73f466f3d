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
if [ -n "${PROOFD_QUICK:-}" ]; then size=50000000; else size=1073000000; fi
{ printf '{"x":[0'; yes ,0 | tr -d '\n' | head -c $size; } | zstd -q -c >"$work/numbers"
{ head -c 2000 "$a"; head -c $size /dev/zero | tr '\0' ' '; } | zstd -q -c >"$work/spaces"
{ printf '{"x":"'; head -c $size /dev/zero | tr '\0' x; } | gzip -1 -c >"$work/letters"
for bomb in numbers spaces letters; do
    ms=$(took mallory cp "$work/$bomb" "$jobs/$bomb")
    like "a bomb of $bomb is refused" "$(cat "$work/out")" "Bad message"
    expect "and soon ($ms ms)" test "$ms" -lt 5000
    expect "with a reason ($(head -n 1 "$jobs/$bomb.error"))" rm "$jobs/$bomb.error"
    expect "under a temporary name it is a file" mallory cp "$work/$bomb" "$jobs/.$bomb"
    ms=$(took mallory mv "$jobs/.$bomb" "$jobs/$bomb")
    like "that does not become a job" "$(cat "$work/out")" "Bad message"
    expect "nor is anything read for that ($ms ms)" test "$ms" -lt 1000
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

remove_all
expect "a clean end" stop
finish
