#!/usr/bin/env bash
# A sector that nobody has seen before: c2-reference seals a random one and says what the assignment and the exact proof must
# be; then its proof goes to our verifier.
set -u
cd "$(dirname "$0")/../.."
export BUILD=${BUILD:-build}
[ -z "${PROOFD_QUICK:-}" ] || { echo "PROOFD_QUICK is set: true proofs take too long with this build"; exit 77; }
reference=$(tests/lib/find-reference.sh) || { echo "c2-reference is not at hand"; exit 77; }
params=$(tests/lib/dev-params.sh) || { echo "cannot make the 2 KiB parameters"; exit 1; }
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
passed=0 failed=0
r='a label for r' s='a label for s'

expect() { # what, found, wanted
    if [ "$2" = "$3" ]; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        printf 'FAILED %s\n  found  %s\n  wanted %s\n' "$1" "$2" "$3"
    fi
}

kinds=(StackedDrg2KiBV1_1 StackedDrg2KiBV1 StackedDrg2KiBV1_1_Feat_SyntheticPoRep)
# One kind a run, another each time; PROOFD_ALL=1: all of them.
[ -n "${PROOFD_ALL:-}" ] || kinds=("${kinds[RANDOM % 3]}")
for kind in "${kinds[@]}"; do
    sector=$((RANDOM * 32768 + RANDOM))
    echo "seed: $kind, sector $sector"
    sealed=$dir/$kind
    "$reference" seal "$kind" "$sealed" "$sector" >"$dir/log" 2>&1 || { cat "$dir/log"; exit 1; }
    "$reference" witness "$sealed" >"$dir/log" 2>&1 || { cat "$dir/log"; exit 1; }
    "$reference" expect "$sealed" "$r" "$s" >"$dir/log" 2>&1 || { cat "$dir/log"; exit 1; }
    "$reference" vk "$kind" "$sealed" >"$dir/log" 2>&1 || { cat "$dir/log"; exit 1; }

    "$BUILD/tests/system/prove_fixed" "$params" "$sealed/c1.json" "$r" "$s" >"$dir/ours" || exit 1
    expect "$kind assignment" "$(sed -n 's/^assignment //p' "$dir/ours")" \
        "$(jq -r '.partitions[0].assignment_sha256' "$sealed/witness.json")"
    expect "$kind proof bytes" "$(sed -n 's/^proof //p' "$dir/ours")" \
        "$(sed -n 's/^0 //p' "$sealed"/expected-*.txt)"

    # Our verifier takes the reference's (test_ctl.sh has the other way).
    sed -n 's/^0 //p' "$sealed"/expected-*.txt >"$sealed/theirs.hex"
    expect "$kind our word on the reference's" \
        "$("$BUILD/proofctl" verify --params "$params" "$sealed/c1.json" "$sealed/theirs.hex")" valid
    # Neither takes a proof of another sector.
    expect "$kind our word on a wrong one" "$("$BUILD/proofctl" verify --params "$params" \
        tests/vectors/c1/2KiB-sealed/c1.json "$sealed/theirs.hex")" invalid
done
echo "$passed passed, $failed failed, 0 skipped"
[ "$failed" -eq 0 ]
