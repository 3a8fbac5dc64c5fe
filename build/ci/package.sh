#!/usr/bin/env bash
# Makes build/bin/slipway_VERSION_ARCH.deb, with nfpm at a pinned version, and a
# tarball of the same programs and man pages. OTHER is the architecture of other
# machines whose program they carry, too. Dates in them are those of the commit.
set -euo pipefail
cd "$(dirname "$0")/../.."
VERSION=${1:?usage: package.sh VERSION OTHER}
OTHER=${2:?usage: package.sh VERSION OTHER}
ARCH=$(go env GOARCH)
export VERSION ARCH OTHER
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || stat -c %Y build/VERSION)}
export SOURCE_DATE_EPOCH
rm -rf build/bin/man
go run ./build/docgen -man build/bin/man/man1
gzip -9n build/bin/man/man1/*.1
cat LICENSE build/notices/THIRD_PARTY_NOTICES >build/bin/copyright
go run github.com/goreleaser/nfpm/v2/cmd/nfpm@v2.43.0 package \
  --config build/packages/nfpm.yaml --packager deb --target build/bin/
tar -czf "build/bin/slipway_${VERSION}_linux_${ARCH}.tar.gz" -C build/bin slipway slipway-desktop "slipway-linux-$OTHER" man copyright
