#!/bin/sh
# Prints the directory of the 2 KiB development parameters, which all tests of this tree share; makes them at the first
# call (half a minute, 1.1 GB). PROOFD_TEST_PARAMS names a directory that has them already.
set -eu
cd "$(dirname "$0")/../.."
root=$(pwd)
build=${BUILD:-build}
dir=${PROOFD_TEST_PARAMS:-$root/build/params}
mkdir -p "$dir"
# Two tests that begin at the same time make them once.
exec 9>"$dir/.lock"
flock 9
"$build/proofctl" setup --params "$dir" 2KiB >&2
echo "$dir"
