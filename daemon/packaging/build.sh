#!/bin/sh
# Builds the Debian packages into BUILD/deb. Called by `make deb`. Who publishes it says who he is: DEBFULLNAME, DEBEMAIL.
set -eu
cd "$(dirname "$0")/../.."
source=$(pwd)
version=$(sed -n 's/^#define PROOFD_VERSION "\(.*\)"/\1/p' daemon/version.h)
dir=$source/${BUILD:-build}/deb
rm -rf "$dir/proofd-$version" "$dir"/proofd_* "$dir"/proofd-grpc_* "$dir"/proofd-*dbgsym_*
mkdir -p "$dir/proofd-$version"
cp -r daemon/packaging/debian "$dir/proofd-$version/debian"
maintainer="${DEBFULLNAME:-The proofd authors} <${DEBEMAIL:-proofd@users.noreply.github.com}>"
sed -i "s/@MAINTAINER@/$maintainer/" "$dir/proofd-$version/debian/control"
# The date of the last change, so that the same tree gives the same package.
date=$(git log -1 --format=%cD 2>/dev/null || date -R)
cat >"$dir/proofd-$version/debian/changelog" <<END
proofd ($version) unstable; urgency=medium

  * See the history of the source.

 -- $maintainer  $date
END
cd "$dir/proofd-$version"
# Named as from the source: what depends on which header is kept under these names, by ccache too.
SOURCE=$source OBJECTS=${BUILD:-build}/deb/objects dpkg-buildpackage -b -us -uc
ls "$dir"/proofd_*.deb "$dir"/proofd-grpc_*.deb
