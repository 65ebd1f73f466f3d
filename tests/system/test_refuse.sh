# What is no C1 is refused while the writer still listens, with an errno and a readable reason, and leaves nothing else.
. "$(dirname "$0")/lib.sh"

learn 2KiB-sealed 2KiB-v1
export ASAN_OPTIONS="${ASAN_OPTIONS:+$ASAN_OPTIONS:}quarantine_size_mb=16" # freed memory that is kept is no leak
a=$(c1 2KiB-sealed) size=$(stat -c %s "$a")
start

reason() { head -n 1 "$jobs/$1.error"; }

# errno's words, then a pattern of the reason
refused() { # what file words pattern
    local name=${1//[^a-z0-9]/-}
    if cp "$2" "$jobs/$name" 2>"$work/out"; then
        fail "$1: taken"
        return
    fi
    like "$1: errno" "$(cat "$work/out")" "$3"
    like "$1: reason" "$(reason "$name")" "$4"
    same "$1: nothing else" "$(ls -A "$jobs")" "$name.error"
    expect "$1: rm" rm "$jobs/$name.error"
    same "$1: nothing left" "$(ls -A "$jobs")" ""
}

# How much of what is endless: a sanitized build reads it twenty times slower.
if [ -n "${PROOFD_QUICK:-}" ]; then bomb=50000000; else bomb=1100000000; fi

# ---- kinds of wrong files
head -c $((size - 1)) "$a" >"$work/f" && refused "without its last byte" "$work/f" "Bad message" .
head -c $((size / 2)) "$a" >"$work/f" && refused "half a file" "$work/f" "Bad message" .
echo '{}' >"$work/f" && refused "an empty object" "$work/f" "Bad message" .
echo 'hello' >"$work/f" && refused "a word" "$work/f" "Bad message" .
printf '\0\0\0\0' >"$work/f" && refused "zeros" "$work/f" "Bad message" .
{ cat "$a"; echo x; } >"$work/f" && refused "something behind the end" "$work/f" "Bad message" .
sed 's/"comm_r":\[/&256,/; s/\(256,[0-9]*\),[0-9]*/\1/' "$a" >"$work/f" && refused "a byte of 256" "$work/f" "Bad message" comm_r
sed 's/"registered_proof":"[^"]*"/"registered_proof":"StackedDrg9KiBV1"/' "$a" >"$work/f" &&
    refused "an unknown proof type" "$work/f" "(Bad message|Invalid argument)" .
sed 's/"registered_proof":"[^"]*"/"registered_proof":"StackedDrg2KiBV1_2_Feat_NonInteractivePoRep"/' "$a" >"$work/f" &&
    refused "a non-interactive one" "$work/f" "Invalid argument" "not supported by this version"
sed 's/"comm_d":/"comm_d":[],&/' "$a" >"$work/f" && refused "a key twice" "$work/f" "Bad message" comm_d
head -c 10000000 /dev/zero | tr '\0' '[' >"$work/f" && refused "ten million brackets" "$work/f" "Bad message" .
{ printf '{"seed":['; head -c 1000000 /dev/zero | tr '\0' 9; } >"$work/f" && refused "a long number" "$work/f" "Bad message" seed
{ head -c 1000 "$a"; printf '\377\376'; tail -c +1003 "$a"; } >"$work/f" && refused "invalid UTF-8" "$work/f" "Bad message" .
{ head -c 70000 "$a"; printf '7'; tail -c +70002 "$a"; } >"$work/f"
if cmp -s "$a" "$work/f"; then printf '8' | dd of="$work/f" bs=1 seek=70000 conv=notrunc status=none; fi
refused "one byte changed" "$work/f" "Bad message" .
gzip -c "$a" | head -c 5000 >"$work/f" && refused "half a gzip" "$work/f" "Bad message" .
head -c $bomb /dev/zero | tr '\0' ' ' | zstd -q -c >"$work/f" && refused "a zstd bomb" "$work/f" "(Bad message|File too large)" .
truncate -s 1100000000 "$work/f" && refused "over a gibibyte" "$work/f" "(Bad message|File too large)" .

# ---- every byte of the way: a sample of truncations and flips
for at in 1 2 10 100 1000 10000 50000 99000; do
    head -c $at "$a" >"$work/f"
    refuse "truncated at $at" cp "$work/f" "$jobs/t"
    { head -c $at "$a"; printf '\1'; tail -c +$((at + 2)) "$a"; } >"$work/f"
    refuse "byte $at overwritten" cp "$work/f" "$jobs/t"
done
expect "rm of the last error" rm "$jobs/t.error"

# ---- memory stays flat
rss() { awk '/^VmRSS/ { print $2 }' "/proc/$front/status"; }
before=$(rss)
tr '\0' ' ' </dev/zero | dd of="$jobs/spaces" bs=1M iflag=fullblock status=none 2>"$work/out"
like "an endless stream of spaces ends" "$(cat "$work/out")" "Bad message"
expect "rm" rm "$jobs/spaces.error"
expect "no memory is kept (before $before kB, after $(rss) kB)" test $(($(rss) - before)) -lt 65536
same "no bytes are kept on disk" "$(du -sm "$store" | awk '{ print ($1 < 8) }')" 1

# ---- each tool says so
bad=$work/bad
head -c 50000 "$a" >"$bad"
refuse "dd" dd if="$bad" of="$jobs/bad" bs=4k status=none
refuse "cat" bash -c "cat '$bad' >'$jobs/bad'"
refuse "tee" bash -c "tee '$jobs/bad' <'$bad' >/dev/null"
cp "$bad" "$work/kept"
refuse "mv from another filesystem" mv "$work/kept" "$jobs/bad"
expect "and the source stays" cmp "$bad" "$work/kept"
refuse "install" install "$bad" "$jobs/bad"
bash -c "printf '{}' >'$jobs/bad'" 2>/dev/null # the shell's own printf does not see it
expect "the reason is there all the same" wait_for 5 test -s "$jobs/bad.error"
expect "a next write removes the error" cp "$a" "$jobs/bad"
refuse "the error is gone" test -e "$jobs/bad.error"
expect "and the job is done" ends bad done
expect "rm" rm "$jobs/bad"

# ---- one that is longer than the kernel's longest write, and wrong at its end: refused once
refusals() { awk '$1 == "proofd_jobs_refused_total" { print $2 }' "$mnt/metrics"; }
{ head -c -1 "$a"; head -c 200000 /dev/zero | tr '\0' ' '; echo '}x'; } >"$work/f"
before=$(refusals)
refuse "submit" "$proofctl" submit --mount "$mnt" --name long "$work/f"
like "says why" "$(cat "$work/out")" "long: refused: .*'x'"
same "one refusal" "$(refusals)" $((before + 1))
same "one line in the log" "$(grep -c 'name=long state=refused' "$log")" 1
rm "$jobs/long.error"

# ---- renames are judged as well
cp "$bad" "$jobs/.bad.tmp"
refuse "a rename of rubbish to a final name" mv "$jobs/.bad.tmp" "$jobs/final"
like "says why" "$(cat "$work/out")" "Bad message"
expect "the file keeps its name" test -e "$jobs/.bad.tmp"
refuse "there is no job" test -e "$jobs/final"
expect "rm" rm "$jobs/.bad.tmp"
expect "the reason stays under the new name" wait_for 5 test -s "$jobs/final.error"
expect "rm of that" rm "$jobs/final.error"

# ---- what cannot be proved here, for want of parameters
big=$(c1 512MiB-sparse)
hint="^no parameters for 512MiB: .*proofctl setup --params $params 512MiB\$"
refuse "cp without parameters" cp "$big" "$jobs/big"
like "says" "$(cat "$work/out")" "Operation not supported"
like "and why" "$(reason big)" "$hint"
rm "$jobs/big.error"
"$proofctl" submit --mount "$mnt" --name big "$big" >"$work/out" 2>&1
same "submit without parameters is no answer" $? 2
like "says why" "$(cat "$work/out")" "^proofctl: big: no parameters for 512MiB: .*proofctl setup"
rm "$jobs/big.error"
cp "$big" "$jobs/.big"
refuse "mv without parameters" mv "$jobs/.big" "$jobs/big"
like "says the same, and nothing of subdirectories" "$(cat "$work/out")" "Operation not supported"
like "and why" "$(reason .big)" "$hint"
sed 's/"registered_proof":"[^"]*"/"registered_proof":"StackedDrg2KiBV1_2_Feat_NonInteractivePoRep"/' "$a" >"$jobs/.non-interactive"
refuse "mv of what this version does not support" mv "$jobs/.non-interactive" "$jobs/big"
like "says, and nothing of subdirectories" "$(cat "$work/out")" "Operation not supported"
rm "$jobs/.non-interactive"
expect "and why" wait_for 5 grep -q "[Nn]on-interactive\|NonInteractive" "$jobs/big.error"
rm "$jobs/big.error"
refuse "mv to a reserved name" mv "$jobs/.big" "$jobs/big.proof"
like "says" "$(cat "$work/out")" "Operation not permitted"
rm "$jobs/.big"

# ---- over a job that has ended
cp "$a" "$jobs/good"
ends good done
refuse "rubbish over an ended job" cp "$bad" "$jobs/good"
expect "its proof stays" is_valid "$a" "$jobs/good.proof"
expect "and an error says why" wait_for 5 test -s "$jobs/good.error"
expect "rm" rm "$jobs/good"

# ---- writers that die leave no job
"$probe" kill "$a" "$jobs/dead" 2>/dev/null
expect "killed with a whole document" wait_for 5 idle
(head -c 60000 "$a"; sleep 30) >"$jobs/dead" &
sleep 0.3
kill -KILL $!
wait $! 2>/dev/null
wait_for 5 bash -c "! test -e '$jobs/dead'"
refuse "killed half-way" test -e "$jobs/dead.status"
rm -f "$jobs/dead.error"
timeout -s TERM 0.3 bash -c "{ head -c 60000 '$a'; exec sleep 30; } | dd of='$jobs/dead' bs=1000 status=none" 2>/dev/null
wait_for 5 bash -c "! test -e '$jobs/dead'"
refuse "a pipe that ends early" test -e "$jobs/dead.status"
rm -f "$jobs/dead.error"
same "nothing is left" "$(ls -A "$jobs")" ""

# ---- a job that the engine gives up
touch "$FAKE_ENGINE_DIR/$("$fake" hash "$a").fail"
expect "cp" cp "$a" "$jobs/hopeless"
expect "fails" ends hopeless failed
same "its files" "$(ls "$jobs" | tr '\n' ' ')" "hopeless hopeless.error hopeless.priority hopeless.report hopeless.status "
like "why" "$(reason hopeless)" "told to fail"

expect "a clean end" stop
finish
