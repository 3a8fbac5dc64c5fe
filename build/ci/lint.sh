#!/usr/bin/env bash
# Lint (vet is in it), types and generated files. golangci-lint is built once, at a
# pinned version, into build/.cache.
set -euo pipefail
cd "$(dirname "$0")/../.."
large=$(git ls-files -z | xargs -0 -r du -b 2>/dev/null | awk '$1 > 1000000 { print $2 }' || true)
if [ -n "$large" ]; then
  echo "lint.sh: larger than 1 MB, so built and not written: $large" >&2
  exit 1
fi
go run ./build/rpcgen -check
go run ./build/figures
go run ./build/tsgen -check
go run ./build/docgen -check
go run ./build/notices/gen -check
build/ci/spell.sh
linter=$PWD/build/.cache/bin/golangci-lint
version=v2.15.0
if ! "$linter" version 2>/dev/null | grep -q "${version#v}"; then
  GOBIN=$PWD/build/.cache/bin go install "github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$version"
fi
"$linter" run ./...
(cd frontend && npm run --silent lint)
# The script that sessions get is outside the interface, and read by the same rules.
frontend/node_modules/.bin/eslint --config frontend/eslint.config.js --max-warnings 0 backend/agent/apps/lab
frontend/node_modules/.bin/prettier --config frontend/.prettierrc.json --check --log-level warn backend/agent/apps/lab
