#!/usr/bin/env bash
# The tests that run with the test engine up (see docker.sh): all Go tests, then the
# browser against real containers. The browser tests without Docker have programs, ports
# and folders of their own, so they run beside these, and not beside the Go tests: what
# starts in a container must answer in a time that users are promised.
set -euo pipefail
cd "$(dirname "$0")/../.."
# The longest come first, so that none of them is the last alone.
build/ci/test-go.sh -parallel 4 ./backend/engine/docker ./backend/agent ./backend ./backend/cli ./backend/agentrpc \
    ./tunnel ./gpu/nvml ./build/bench/soak ./...
e2e="npm --prefix frontend run --silent e2e -- --project"
exec build/ci/still.sh build/ci/beside.sh "build/ci/offline.sh $e2e offline" "$e2e containers"
