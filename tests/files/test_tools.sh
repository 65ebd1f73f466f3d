# The tools table of doc/filesystem.md, row by row: exit status, number of jobs, bytes in the store. Each command has two minutes.
. "$(dirname "$0")/lib.sh"

learn 2KiB-sealed
S=$(c1 2KiB-sealed)           # a C1
Z=$vectors/2KiB-sealed/bare.json.zst # the same, small
J=$jobs
D=$jobs/row                   # where the tool writes
W=$work/elsewhere             # another filesystem
keys="python3 $root/tests/files/keys.py"
sftp_server=/usr/lib/openssh/sftp-server
mkdir "$W" "$W/www"
cp "$S" "$W/www/row"
echo '{}' >"$work/rubbish"
has_error() { # the reason is left, whatever became of the file
    timeout 10 bash -c 'until grep -q "C1" "$D.error" 2>/dev/null; do sleep 0.02; done'
}
export S Z J D W keys sftp_server work mnt
export -f has_error

# ONLY_ROW=TEXT: the rows with TEXT in their names.
# row TOOL COMMAND YIELDS...; in YIELDS
#   job [FILE]      status 0, one job of the name `row`, of the bytes of FILE (default: the C1), which is proved
#   nothing         status 0, no job, and no file
#   kept            status 0, no job; the one that there was is as it was
#   refused N TEXT  status N, the message has TEXT, no job; what was there before stays
# `over TOOL ...` begins with a job `row` that is done.
rows=()
over=
over() {
    over=yes
    "$@"
    over=
}

row() {
    local tool=$1 command=$2 yields=$3 before id= status
    rows+=("$tool")
    [[ $tool == *"${ONLY_ROW:-}"* ]] || return
    if [ -n "$over" ]; then
        cp "$S" "$D" && ends row done || fail "$tool: no job to begin with"
        id=$(stat -c %i "$D")
    fi
    before=$(queued)
    timeout -k 5 120 bash -c "$command" >"$work/said" 2>&1 </dev/null
    status=$?
    expect "$tool: settles" settle
    case $yields in refused) same "$tool: exit status" $status "$4" ;; *) same "$tool: exit status" $status 0 ;; esac
    [ $status -eq 0 ] || [ "$yields" = refused ] || head -n 3 "$work/said"
    case $yields in
    job)
        same "$tool: jobs" $(($(queued) - before)) 1
        expect "$tool: is done" ends row done
        same "$tool: bytes in the store" "$(spooled row)" "$(stat -c %s "${4:-$S}")"
        expect "$tool: they are what was written" cmp "${4:-$S}" "$D"
        expect "$tool: its proof is valid" is_valid "$S" "$D.proof"
        same "$tool: names" "$(names)" "$(results row)"
        ;;
    nothing)
        same "$tool: jobs" $(($(queued) - before)) 0
        same "$tool: names" "$(names)" ""
        ;;
    kept)
        same "$tool: jobs" $(($(queued) - before)) 0
        same "$tool: the job" "$(stat -c %i "$D")" "$id"
        same "$tool: bytes in the store" "$(spooled row)" "$(stat -c %s "$S")"
        same "$tool: names" "$(names)" "$(results row)"
        ;;
    refused)
        same "$tool: jobs" $(($(queued) - before)) 0
        like "$tool: message" "$(cat "$work/said")" "$5"
        [ -z "$over" ] || same "$tool: the job" "$(stat -c %i "$D") $(spooled row)" "$id $(stat -c %s "$S")"
        ;;
    esac
    rm -f "$D" "$D.error" "$J"/.row* "$J"/p.*
    wait_for 10 idle || { fail "$tool: leaves $(names)"; remove_all; }
}

results() { echo "$1 $1.priority $1.proof $1.proof.bin $1.report $1.status "; }

start
watch_events

# ---- copying
row "cp" 'cp "$S" "$D"' job
row "cp -p" 'cp -p "$S" "$D"' job
row "cp -a" 'cp -a "$S" "$D"' job
row "cp --reflink=auto" 'cp --reflink=auto "$S" "$D"' job
row "cp --sparse=always" 'cp --sparse=always "$S" "$D"' job
over row "cp of a finished job" 'cp "$D" "$W/back" && cmp "$S" "$W/back"' kept
over row "cp over a finished job" 'cp "$S" "$D"' job
row "cp of what is no C1" 'head -c 5000 "$S" >"$W/half"; cp "$W/half" "$D"' refused 1 'Bad message'
row "cp of an empty file" 'cp /dev/null "$D"' nothing
row "install" 'install -m 640 "$S" "$D" && test $(stat -c %a "$D") = 640' job
row "mv across filesystems" 'cp "$S" "$W/row" && mv "$W/row" "$D" && ! test -e "$W/row"' job
row "mv of what is no C1" 'head -c 5000 "$S" >"$W/half"; mv "$W/half" "$D" && exit 99; test -e "$W/half" && exit 1' refused 1 'Bad message'
row "mv inside, from a temporary name" 'cp "$S" "$J/.row" && mv "$J/.row" "$D"' job
row "mv inside, of what is no C1" 'cp "$work/rubbish" "$J/.row"; mv "$J/.row" "$D"; s=$?; has_error && rm "$J/.row" || exit 99; exit $s' refused 1 'Bad message'
over row "mv inside, of a job" 'mv "$D" "$J/other" && test -s "$J/other.proof" && mv "$J/other" "$D"' kept
over row "mv of a proof" 'mv "$D.proof" "$W/" && tail -c 2 "$W/row.proof" && cp "$S" "$D"' job
row "ln" 'cp "$S" "$J/.row"; ln "$J/.row" "$D"; s=$?; rm "$J/.row"; exit $s' refused 1 'Operation not permitted'
row "ln -s" 'ln -s "$S" "$D"' refused 1 'Operation not permitted'
row "mkdir" 'mkdir "$D"' refused 1 'Operation not permitted'
row "rsync" 'rsync "$S" "$D"' job
row "rsync -a" 'rsync -a "$S" "$D"' job
row "rsync --inplace" 'rsync --inplace "$S" "$D"' job
row "rsync of what is no C1" 'rsync "$work/rubbish" "$D"; s=$?; has_error || exit 99; exit $s' refused 23 'Bad message'
over row "rsync of what is no C1, over a finished job" 'rsync "$work/rubbish" "$D"; s=$?; has_error || exit 99; exit $s' refused 23 'Bad message'
over row "rsync -a of the same again" 'rsync -a --checksum "$S" "$D"' kept
row "tar -x" 'tar -C "$W/www" -cf "$W/t.tar" row && tar -C "$J" -xf "$W/t.tar"' job
row "split and cat" 'split -b 40000 "$S" "$J/.row." && cat "$J"/.row.* >"$D" && rm "$J"/.row.*' job
row "split to final names" 'split -b 40000 "$S" "$J/p."' refused 1 'Bad message'

# ---- writing
row "dd bs=1" 'dd if="$Z" of="$D" bs=1 status=none' job "$Z"
row "dd bs=777" 'dd if="$S" of="$D" bs=777 status=none' job
row "dd bs=1M" 'dd if="$S" of="$D" bs=1M status=none' job
row "dd oflag=direct" 'dd if="$S" of="$D" bs=4096 oflag=direct status=none' job
row "dd conv=notrunc" 'dd if="$S" of="$D" bs=64k conv=notrunc status=none' job
over row "dd conv=notrunc over a finished job" 'dd if="$S" of="$D" bs=64k conv=notrunc status=none' job
row "dd conv=fsync" 'dd if="$S" of="$D" bs=64k conv=fsync status=none' job
row "tee" 'tee "$D" <"$S" >/dev/null' job
row "cat >" 'cat "$S" >"$D"' job
row "cat > of what is no C1" 'head -c 5000 "$S" >"$W/half"; cat "$W/half" >"$D"' refused 1 'Bad message'
row "cat >>" 'cat "$S" >>"$D"' job
row "cat >> in two commands" 'head -c 5000 "$S" >>"$J/.row"; tail -c +5001 "$S" >>"$J/.row"; mv "$J/.row" "$D"' job
over row "cat >> to a finished job" 'cat "$work/rubbish" >>"$D"' refused 1 'Bad message'
row "touch, then write" 'touch "$D" && cat "$S" >"$D"' job
row "touch" 'touch "$D"' nothing
over row "touch of a finished job" 'touch "$D"' kept
row "truncate" 'truncate -s 1000 "$D"' refused 1 'Bad message'
over row "truncate of a finished job" 'truncate -s 1000 "$D"' refused 1 'Bad message'
over row "truncate to nothing" 'truncate -s 0 "$D"' kept
row "fallocate" 'fallocate -l 1000 "$D"' refused 1 'not supported'

# ---- editors
{ cat "$S"; echo; } >"$W/line"
{ cat "$S"; printf '\n\n'; } >"$W/lines"
over row "sed -i" 'sed -i "s/x/x/" "$D"' job
row "vim" '$keys ":r $S\r:1d\r:wq\r" vim -u NONE -N "$D"' job "$W/line"
over row "vim of a finished job" '$keys "Go\x1b:wq\r" vim -u NONE -N "$D"' job "$W/lines"
row "nano" '$keys "\x12$S\r\x0f\r\x18" nano -I "$D"' job "$W/line"
over row "nano of a finished job" '$keys "\x0f\r\x18" nano -I "$D"' job "$W/line"

# ---- programs
row "python open, write, close" 'python3 -c "
import os
with open(os.environ[\"D\"], \"wb\") as f:
    f.write(open(os.environ[\"S\"], \"rb\").read())"' job
row "python pwrite at any offset" 'python3 -c "
import os, random
data = open(os.environ[\"S\"], \"rb\").read()
fd = os.open(os.environ[\"D\"], os.O_WRONLY | os.O_CREAT)
places = list(range(0, len(data), 1000))
random.Random(1).shuffle(places)
for at in places:
    assert os.pwrite(fd, data[at:at + 1000], at) == len(data[at:at + 1000])
os.close(fd)"' job
over row "python pread at any offset" 'python3 -c "
import os, random
for end in \"\", \".proof\", \".proof.bin\", \".status\", \".report\":
    fd = os.open(os.environ[\"D\"] + end, os.O_RDONLY)
    whole = b\"\"
    while len(piece := os.pread(fd, 100000, len(whole))):
        whole += piece
    assert len(whole) == os.fstat(fd).st_size, end
    for at in random.Random(1).sample(range(len(whole)), 20):
        assert os.pread(fd, 50, at) == whole[at:at + 50], (end, at)
    assert os.pread(fd, 50, len(whole)) == b\"\", end
    assert os.pread(fd, 50, len(whole) + 12345678) == b\"\", end"' kept
over row "python mmap, reading" 'python3 -c "
import mmap, os
for end in \"\", \".proof\", \".proof.bin\":
    with open(os.environ[\"D\"] + end, \"rb\") as f:
        m = mmap.mmap(f.fileno(), 0, access=mmap.ACCESS_READ)
        assert m[:] == f.read(), end"' kept
row "python mmap, writing" 'python3 -c "
import mmap, os
with open(os.environ[\"D\"], \"w+b\") as f:
    f.truncate(1000)
    try:
        mmap.mmap(f.fileno(), 1000)
        print(\"mapped\", flush=True)
    except OSError as e: # an older Python closes a descriptor of its own before it looks why
        print(e, flush=True)"' refused 1 '^.Errno (19. No such device|74. Bad message)'
row "write, fsync, rename, as Go programs do" 'python3 -c "
import os
D, J = os.environ[\"D\"], os.environ[\"J\"]
fd = os.open(J + \"/.row123456\", os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
os.write(fd, open(os.environ[\"S\"], \"rb\").read())
os.fchmod(fd, 0o644)
os.fsync(fd)
os.close(fd)
os.rename(J + \"/.row123456\", D)
fd = os.open(J, os.O_RDONLY)
os.fsync(fd)"' job
row "python shutil.copy2" 'python3 -c "
import os, shutil
shutil.copy2(os.environ[\"S\"], os.environ[\"D\"])"' job

# ---- from other machines: the far end of sftp and scp is run without the network
cat >"$work/near" <<'END'
#!/bin/sh
# What ssh would do: the last argument is the command, or the subsystem after -s.
for last; do :; done
[ "$last" = sftp ] && exec /usr/lib/openssh/sftp-server
exec sh -c "$last"
END
chmod +x "$work/near"
row "sftp put" 'printf "put %s %s\n" "$S" "$D" | sftp -b - -D "$sftp_server"' job
row "sftp put -p" 'printf "put -p %s %s\n" "$S" "$D" | sftp -b - -D "$sftp_server"' job
row "scp" 'scp -S "$work/near" "$S" "near:$D"' job
row "scp -O" 'scp -O -S "$work/near" "$S" "near:$D"' job
python3 -u -m http.server --bind 127.0.0.1 --directory "$W/www" 0 >"$work/http" 2>&1 &
wait_for 20 grep -q port "$work/http"
url=http://127.0.0.1:$(grep -o 'port [0-9]*' "$work/http" | cut -d ' ' -f 2)/row
export url
row "curl -o" 'curl -sS -o "$D" "$url"' job
row "wget -O" 'wget -q -O "$D" "$url"' job
row "wget -P" 'wget -q -P "$J" "$url"' job

# ---- looking
over row "find" 'test $(find "$J" -type f | wc -l) -eq 6 && find "$J" -name "*.proof" -newermt 2020-01-01 | grep -q proof' kept
over row "ls -l" 'ls -l "$J" | grep -q " row.proof$"' kept
over row "du" 'test $(du -b "$D" | cut -f 1) = $(stat -c %s "$S") && du -s "$J"' kept
over row "df" 'df "$J" | grep -q proofd' kept
over row "df -i" 'df --output=itotal,iused,iavail "$J" | grep -qE "^ *1000 +0 +1000$"' kept
over row "stat -f" 'stat -f -c "%l %t" "$J" | grep -q "^245 65735546$"' kept
over row "tail -f" 'timeout 3 tail -f "$D.status" >"$W/tail"; test $? -eq 124 && grep -q ^done "$W/tail"' kept
over row "cat of events" 'cat "$J/../events" >"$W/cat" & for i in $(seq 100); do : >"$J/.row"; rm "$J/.row"; sleep 0.1; grep -q "removed .row" "$W/cat" && break; done
    kill %1; grep -q "removed .row" "$W/cat"' kept
over row "tail -f of events" 'timeout 1 tail -f "$J/../events"; test $? -eq 124' kept
over row "less" '$keys q less "$D.report" | grep -q done' kept
over row "grep -r" 'grep -rl "^done" "$J" | grep -q row.status' kept
over row "grep -r of the whole mount" 'cd "$J/.." && grep -rl --exclude=events "^done" . | grep -q row.status' kept
over row "md5sum" 'test "$(md5sum <"$D")" = "$(md5sum <"$S")"' kept
row "inotifywait" 'timeout 100 inotifywait -m -e close_write --format %f "$J" >"$W/seen" 2>"$W/set" & until grep -q established "$W/set"; do sleep 0.1; done; cp "$S" "$D"
    for i in $(seq 100); do sleep 0.1; grep -qx row.proof "$W/seen" && break; done; kill %1; grep -qx row.proof "$W/seen"' job
row "inotifywatch" 'inotifywatch -e close_write "$J" >"$W/seen" 2>"$W/set" & until grep -q "Finished establishing" "$W/set"; do sleep 0.1; done; cp "$S" "$D"
    kill %1; wait; grep -q close_write "$W/seen"' job
# What changes while entr starts is no news to it: up to 50 ms after its watch is set it takes no notice. So there is one change after another.
row "entr" 'echo x >"$J/.row"; echo "$J/.row" | timeout 100 entr -n -p sh -c "echo ran >$W/entr" &
    until test -s "$W/entr"; do echo y >>"$J/.row"; sleep 0.2; done; kill %1; rm "$J/.row"; cp "$S" "$D"' job
row "a handler for each event, as incron runs them" 'timeout 100 inotifywait -m -e close_write --format %w%f "$J" 2>"$W/set2" |
    while read -r f; do case $f in *.proof) cp "$f" "$W/handled"; break ;; esac; done & until grep -q established "$W/set2"; do sleep 0.1; done
    cp "$S" "$D"; while ! test -s "$W/handled"; do sleep 0.1; done; test $(wc -c <"$W/handled") = 385' job
# These two look at every process and every mount of the machine, and wait for a foreign mount that answers nothing: so they see ours alone.
alone() {
    if [ "$(id -u)" -eq 0 ]; then unshare -m -p -f --mount-proc bash -c "$1"; else bash -c "$1"; fi
}
foreign() { awk -v ours="$mnt" '$3 ~ /^fuse/ && $2 != ours { print "+e", $2 }' /proc/mounts; }
export -f alone foreign
over row "fuser" 'alone "exec 9<\"$D.status\"; fuser \"$D.status\" 2>/dev/null | grep -qw \$\$"' kept
over row "lsof" 'alone "exec 9<\"$D.status\"; lsof $(foreign | tr "\n" " ") \"$D.status\" 2>/dev/null | grep -qw \$\$"' kept

# ---- the table in the manual is this one
table=$(sed -n 's/^| `\{0,1\}\([^|`]*\)`\{0,1\} |.*/\1/p' "$root/doc/filesystem.md" | grep -vE '^(tool|-+) *$')
same "rows of doc/filesystem.md" "$(diff <(printf '%s\n' "${rows[@]}" | sort) <(echo "$table" | sort))" ""
expect "a clean end" stop
finish
