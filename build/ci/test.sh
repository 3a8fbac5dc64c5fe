#!/usr/bin/env bash
# Everything that a change can break. What needs longer is in verify.sh. Most of what
# needs an engine waits for it, so what needs none runs beside it, one after another:
# the tests of the user interface's parts, lint, and the browser tests without Docker,
# which have programs, ports and folders of their own.
set -euo pipefail
cd "$(dirname "$0")/../.."
if [ "${1:-}" = without-docker ]; then
    npm --prefix frontend test --silent
    build/ci/lint.sh
    exec build/ci/offline.sh npm --prefix frontend run --silent e2e -- --project offline
fi
export SLIPWAY_TEST_MODERN_DOCKER=verify SLIPWAY_TEST_MODEL=verify SLIPWAY_TEST_SLURM=verify \
    SLIPWAY_TEST_WINE=verify SLIPWAY_TEST_PODMAN=verify
exec build/ci/beside.sh "build/ci/test.sh without-docker" "build/ci/docker.sh build/ci/test-real.sh"
