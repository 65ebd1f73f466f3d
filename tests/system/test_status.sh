# What the service says of itself: names that are no text, one word for one thing, and what the disk damaged.
. "$(dirname "$0")/lib.sh"

learn 2KiB-sealed 2KiB-v1 2KiB-sparse
a=$(c1 2KiB-sealed) b=$(c1 2KiB-v1) c=$(c1 2KiB-sparse)
start
cat "$mnt/events" >"$work/events" &
opened $! "$mnt/events"
says() { grep -qE -- "$2" "$1"; } # FILE PATTERN

# ---- a fresh service lacks nothing
expect "what it has not loaded yet is no lack" wait_for 20 says "$mnt/status" '^ +no parameters are loaded, and no memory is taken for proofs$'
refuse "of memory" says "$mnt/status" 'has no memory'

# ---- a name cannot forge a line or reach a terminal
delays 60000 0
cp "$a" "$jobs/"$'a\nengine      node 7: \e[2Jready'
expect "a line break in a name" wait_for 5 says "$mnt/status" '^ +[0-9]+ a\\nengine +node 7: \\x1b\[2Jready: synthesizing 0/1, priority normal$'
expect "an engine that is none" eval "! grep -q '^engine      node 7' '$mnt/status'"
expect "no control characters" eval "! LC_ALL=C grep -q '[[:cntrl:]]' '$mnt/status'"
expect "the log has one line for it" says "$log" '<6>job=[0-9]+ name="?a\\nengine +node 7: \\x1b\[2Jready"? state=queued uid=[0-9]+ bytes=[0-9]+$'

# ---- one word each for what ended how: log, events, status, metrics
rm "$jobs/"a*ready
expect "cancelled: the log" wait_for 5 says "$log" '<6>job=[0-9]+ name=.* state=cancelled uid=[0-9]+ bytes=[0-9]+$'
delays 0 0
cp "$b" "$jobs/good"
expect "done" ends good done
refuse "a file that is none" cp /etc/passwd "$jobs/refused one"
expect "refused: the log says why" wait_for 5 says "$log" '<6>job=[0-9]+ name="refused one" state=refused uid=[0-9]+ bytes=[0-9]+ error=".*byte.*"$'
touch "$FAKE_ENGINE_DIR/$("$fake" hash "$c").fail"
cp "$c" "$jobs/bad"
expect "failed" ends bad failed
same "status counts them" "$(grep -oE 'done [0-9]+, failed [0-9]+, refused [0-9]+, cancelled [0-9]+' "$mnt/status")" \
    "done 1, failed 1, refused 1, cancelled 1"
for word in done failed refused cancelled; do
    same "metrics count $word" "$(awk -v m="proofd_jobs_${word}_total" '$1 == m { print $2 }' "$mnt/metrics")" 1
    expect "metrics have $word" says "$mnt/metrics" "^proofd_jobs\{state=\"$word\"\} "
    expect "events have $word" wait_for 5 says "$work/events" "^[^ ]+ [0-9]+ $word "
done
same "nothing else is counted" "$(grep -oE '^proofd_jobs_[a-z]+_total' "$mnt/metrics" | sort | tr '\n' ' ')" \
    "proofd_jobs_cancelled_total proofd_jobs_done_total proofd_jobs_failed_total proofd_jobs_refused_total "

# ---- parameters
like "whose they are" "$(grep '^parameters  2KiB' "$mnt/status")" '^parameters  2KiB: .*\.params \(insecure development parameters\)$'
expect "in one word" says "$mnt/metrics" '^proofd_parameters\{size="2KiB",trust="insecure"\} 1$'
expect "the log of each proof" says "$log" 'stage=verified .*params="insecure development parameters"'
expect "the report" says "$jobs/good.report" '"parameters": "insecure development parameters"'
expect "a clean end" stop

# ---- damage at rest: what can be made again is, and nothing is lost without a word
id=$(basename "$(dirname "$(grep -l "good" "$store"/*/job)")")
printf x | dd of="$store/$id/job" bs=1 seek=40 conv=notrunc status=none
printf x | dd of="$store/$id/proof" bs=1 seek=40 conv=notrunc status=none
mkdir "$store/00000000000000f0"
: >"$store/00000000000000f1"
mkfifo "$store/00000000000000f2"
mkdir "$store/ffffffffffffffff"
start
expect "a damaged job is there" in_state good done
expect "with its proof" is_valid "$b" "$jobs/good.proof"
expect "which the log tells" says "$log" '<3>job=[0-9]+ name=good msg="its record was damaged'
expect "and of the proof" says "$log" '<3>job=[0-9]+ msg="its proof was damaged on disk: put together'
expect "and of what is no job" says "$log" '<3>job=241 msg="set aside'
expect "status counts what was set aside" says "$mnt/status" '2 entries cannot be read as jobs'
expect "metrics too" says "$mnt/metrics" '^proofd_store_set_aside 2$'
expect "and what was made again" says "$mnt/metrics" '^proofd_store_repaired_total 2$'
cp "$a" "$jobs/next"
expect "the service goes on" ends next done

# ---- a job's own file, cut short: no read of it is taken for the whole
truncate -s 5000 "$store/$id/c1"
refuse "cp of it" cp "$jobs/good" "$work/copy"
like "says so" "$(cat "$work/out")" "Input/output error"
refuse "cat of it" cat "$jobs/good"
same "the log says so once" "$(grep -cE '<3>job=[0-9]+ name=good msg="its C1 file was damaged on disk: the end is missing' "$log")" 1
expect "its proof is there" is_valid "$b" "$jobs/good.proof"
cp "$b" "$jobs/good"
expect "another one in its place" ends good done
expect "is as it was written" cmp "$b" "$jobs/good"
id=$(basename "$(dirname "$(grep -l "good" "$store"/*/job)")")

# ---- while it runs
printf x | dd of="$store/$id/proof" bs=1 seek=40 conv=notrunc status=none
expect "a proof damaged while the service runs" is_valid "$b" "$jobs/good.proof"
printf x | dd of="$store/$id/proof" bs=1 seek=40 conv=notrunc status=none
printf x | dd of="$store/$id/partitions" bs=1 seek=40 conv=notrunc status=none
refuse "beyond repair: no proof is better than a wrong one" cat "$jobs/good.proof"
expect "it is proved again" wait_for 20 is_valid "$b" "$jobs/good.proof"
expect "done" in_state good done
expect "a clean end" stop
finish
