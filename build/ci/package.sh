#!/usr/bin/env bash
# Makes build/bin/slipway_VERSION_ARCH.deb, with nfpm at a pinned version, and a
# tarball of the same programs. OTHER is the architecture of other machines whose
# program they carry, too.
set -euo pipefail
cd "$(dirname "$0")/../.."
VERSION=${1:?usage: package.sh VERSION OTHER}
OTHER=${2:?usage: package.sh VERSION OTHER}
ARCH=$(go env GOARCH)
export VERSION ARCH OTHER
go run github.com/goreleaser/nfpm/v2/cmd/nfpm@v2.43.0 package \
  --config build/packages/nfpm.yaml --packager deb --target build/bin/
tar -czf "build/bin/slipway_${VERSION}_linux_${ARCH}.tar.gz" -C build/bin slipway slipway-desktop "slipway-linux-$OTHER"
