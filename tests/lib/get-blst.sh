#!/bin/sh
# Brings blst's source tree to DIR. Debian has no package of it; the npm package c-kzg carries a full, unmodified tree
# (Apache-2.0), pinned here by version and SHA-256. npm runs no script of the package with `npm pack`.
set -eu
dir=$1
version=4.1.0
sha256=c56d9ed6aaa17bafa95c337c28837c68d2e54dabd76d91a185e2600a26480965

command -v npm >/dev/null || { echo "get-blst: npm is missing (apt-get install npm), or give BLST_SRC=DIR" >&2; exit 1; }
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
echo "  GET   blst (c-kzg $version)"
(cd "$tmp" && npm pack --silent "c-kzg@$version" >/dev/null) ||
    { echo "get-blst: cannot download c-kzg@$version; give BLST_SRC=DIR instead" >&2; exit 1; }
echo "$sha256  $tmp/c-kzg-$version.tgz" | sha256sum --check --quiet ||
    { echo "get-blst: checksum of c-kzg-$version.tgz is not the pinned one: refused" >&2; exit 1; }
tar -xzf "$tmp/c-kzg-$version.tgz" -C "$tmp" package/deps/blst
mkdir -p "$(dirname "$dir")"
rm -rf "$dir"
mv "$tmp/package/deps/blst" "$dir"
