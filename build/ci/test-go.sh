#!/usr/bin/env bash
# The Go tests, with the flags that are given. Packages that load an engine are
# tested one after the other, because they share its networks and the processors
# of the machine; the others side by side.
set -euo pipefail
here=$(cd "$(dirname "$0")/../.." && pwd)
cd "$here"
engine=$(grep -rlE --include='*_test.go' 'RequireDocker|RequireModernDocker|SLIPWAY_TEST_DOCKER' app backend build gpu tunnel |
  xargs -n 1 dirname | sort -u | sed 's|^|slipway/|')
mapfile -t apart < <(comm -23 <(go list ./... | sort) <(sort <<<"$engine"))
mapfile -t engine <<<"$engine"
go build "$@" ./...
failed=0
go test "$@" -timeout 20m "${apart[@]}" || failed=1
go test "$@" -p 1 -timeout 20m "${engine[@]}" || failed=1
exit $failed
