# through_mount.sh PARAMS NAME...: vectors go through the mount and the real engine under the parameters in PARAMS, and the
# verifier accepts what comes out under the vectors' key, which is an independent implementation's. Called by tests that have
# those parameters.
. "$(dirname "$0")/lib.sh"
params=$1
shift
real_engine
start
for name; do
    expect "cp $name" cp "$(c1 "$name")" "$jobs/$name"
done
for name; do
    expect "$name ends" ends "$name" done "${PATIENCE:-600}"
    expect "$name is valid" "$proofctl" verify --params "$root/tests/vectors/vk" "$(c1 "$name")" "$jobs/$name.proof"
done
expect "stops" stop
finish
