#!/usr/bin/env bash
# Everything that a change can break. What needs longer is in verify.sh. Most of what
# needs an engine waits for it, so the tests of the user interface's parts and lint run
# beside it.
set -euo pipefail
cd "$(dirname "$0")/../.."
if [ "${1:-}" = without-docker ]; then
    npm --prefix frontend test --silent
    exec build/ci/lint.sh
fi
export SLIPWAY_TEST_MODERN_DOCKER=verify SLIPWAY_TEST_MODEL=verify SLIPWAY_TEST_SLURM=verify \
    SLIPWAY_TEST_WINE=verify SLIPWAY_TEST_PODMAN=verify
exec build/ci/beside.sh "build/ci/test.sh without-docker" "build/ci/docker.sh build/ci/test-real.sh"
