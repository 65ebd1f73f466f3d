#!/bin/sh
# Prints the path of c2-reference, the independent implementation that some tests ask: $C2_REFERENCE, the PATH, or the packed
# copy in $PROOFD_SHARED/tools (default ../shared), unpacked into $BUILD. Fails where there is none.
set -eu
if [ -n "${C2_REFERENCE:-}" ]; then
    echo "$C2_REFERENCE"
    exit 0
fi
if command -v c2-reference; then exit 0; fi
packed=${PROOFD_SHARED:-../shared}/tools/c2-reference.xz
[ -r "$packed" ] || exit 1
out=${BUILD:-build}/c2-reference
if [ ! -x "$out" ] || [ "$packed" -nt "$out" ]; then
    mkdir -p "$(dirname "$out")"
    xz -dkc "$packed" >"$out.$$"
    chmod +x "$out.$$"
    mv "$out.$$" "$out"
fi
"$out" vk StackedDrg2KiBV1_1 "$(dirname "$out")/c2-reference-vk" >/dev/null 2>&1 || exit 1
echo "$out"
