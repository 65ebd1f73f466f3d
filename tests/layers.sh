#!/bin/sh
# Includes go one way: numa <- gpu <- daemon <- fuse; the programs may include what they need.
set -u
cd "$(dirname "$0")/.." || exit 2
bad=0
refuse() { # files' layer, forbidden layers, exempt files
    found=$(grep -nE "^#include \"($2)/" $(find "$1" -name '*.[ch]' -o -name '*.cu' -o -name '*.cuh' -o -name '*.cc' | grep -vxE "$3") /dev/null)
    [ -z "$found" ] || { echo "$1/ must not include $2:"; echo "$found"; bad=1; }
}
refuse numa 'gpu|daemon|fuse|tests' 'none'
refuse gpu 'daemon|fuse|tests' 'none'
refuse daemon 'fuse|tests' 'daemon/(main|engine|ctl)\.c'
refuse fuse 'tests' 'none'
exit $bad
