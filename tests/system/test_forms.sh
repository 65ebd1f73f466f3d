# The whole path, with the real engine: every form of a C1 goes through the mount and gives a proof that the verifier
# accepts; the forms of one C1 cost one proof. Kills in the midst of a real proof cost nothing but time.
. "$(dirname "$0")/lib.sh"
[ -z "${PROOFD_QUICK:-}" ] || lacks "PROOFD_QUICK is set: true proofs take too long with this build"

real_engine
start
patience=${PATIENCE:-600}

# Keys in another order, everywhere: all objects turned round.
shuffle() { jq -c 'walk(if type == "object" then to_entries | reverse | from_entries else . end)' "$1"; }

wrap() { # base64 of the bare form, in the order and with the keys that Go tools use
    printf '{"SectorNum":%s,"Phase1Out":"%s","SectorSize":2048}' "$1" "$(base64 -w 0 "$2")"
}

proofs_made() { awk '$1 ~ /^proofd_jobs_done_total/ { print $2 }' "$mnt/metrics"; }

# ---- the forms of one sector, while it is proved
bare=$(c1 2KiB-sealed) forms=$work/forms
mkdir "$forms"
cp "$bare" "$forms/bare"
cp "$vectors/2KiB-sealed/c1.json" "$forms/wrapper"
cp "$vectors/2KiB-sealed/c1.bincode" "$forms/bincode"
tail -c +9 "$vectors/2KiB-sealed/c1.bincode" >"$forms/inner"
base64 -w 0 "$bare" >"$forms/base64"
if command -v jq >/dev/null; then
    shuffle "$bare" >"$forms/shuffled"
    jq . "$bare" >"$forms/indented"
    shuffle "$vectors/2KiB-sealed/c1.json" >"$forms/wrapper-shuffled"
    jq -c '{c1out: ., prover_id: ([233, 7] + [range(30) | 0]), sector_id: 1, miner_id: 1001}' "$bare" >"$forms/task"
    base64 -w 0 "$forms/task" >"$forms/task-base64"
else
    skip "keys in another order" "jq is not installed"
fi
for f in "$forms"/*; do
    gzip -c "$f" >"$f.gz"
    zstd -q -c "$f" >"$f.zst"
done
for f in "$forms"/*; do expect "cp $(basename "$f")" cp "$f" "$jobs/$(basename "$f")"; done

# ---- kills while it is proved
kills=0
if wait_for "$patience" in_state bare proving; then
    kill -KILL "$(engine_pid)" && kills=$((kills + 1))
    wait_for 60 in_state bare queued
fi
if wait_for "$patience" in_state bare proving; then
    kill_front && kills=$((kills + 1))
    start
fi
same "kills in the midst of a real proof" $kills 2

for f in "$forms"/*; do
    name=$(basename "$f")
    expect "$name ends" ends "$name" done "$patience"
    expect "$name is valid" is_valid "$bare" "$jobs/$name.proof"
    same "$name: one proof for all" "$(cat "$jobs/$name.proof")" "$(cat "$jobs/bare.proof")"
done
like "report" "$(cat "$jobs/bare.report")" '"insecure": ?true'

# ---- other sectors; PROOFD_ALL=1: and one of a public project, where that is at hand
declare -A others=([2KiB-v1]=$(c1 2KiB-v1) [2KiB-synthetic]=$(c1 2KiB-synthetic))
public=${PROOFD_SHARED:-../shared}/vectors/public/gpuproxy-c1-2KiB.json
[ -z "${PROOFD_ALL:-}" ] || [ ! -r "$public" ] || others[public]=$public
for c in "${!others[@]}"; do expect "cp $c" cp "${others[$c]}" "$jobs/$c"; done
for c in "${!others[@]}"; do
    expect "$c ends" ends "$c" done "$patience"
    expect "$c is valid" is_valid "${others[$c]}" "$jobs/$c.proof"
    refuse "$c is not valid for another" is_valid "$bare" "$jobs/$c.proof"
done

# ---- a size without parameters is refused at the door
refuse "a sector without parameters" cp "$(c1 8MiB-sealed)" "$jobs/8MiB"
like "says what is missing" "$(cat "$jobs/8MiB.error")" "parameters"
expect "a clean end" stop
finish
