#!/usr/bin/env bash
# The tests that run with both test engines up (see docker.sh and modern.sh): all
# Go tests under the race detector, then the browser against the real program.
set -euo pipefail
go test -race -timeout 20m ./...
cd frontend && npm run --silent e2e
