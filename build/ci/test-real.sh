#!/usr/bin/env bash
# The tests that run with the test engine up (see docker.sh): all Go tests, then
# the browser against real containers.
set -euo pipefail
cd "$(dirname "$0")/../.."
build/ci/test-go.sh
cd frontend && npm run --silent e2e -- --project containers
