#!/usr/bin/env bash
# The tests that run with both test engines up (see docker.sh and modern.sh): all
# Go tests under the race detector, then the browser against real containers.
# Packages are built side by side and tested one after the other, because many of
# them load engines, networks and processors of the one machine that they share.
set -euo pipefail
go build -race ./...
go test -race -p 1 -timeout 20m ./...
cd frontend && npm run --silent e2e -- --project containers
