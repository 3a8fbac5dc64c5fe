#!/usr/bin/env bash
# Everything that a change can break. What needs longer is in verify.sh, and so is lint.
# Most of what needs an engine waits for it, so the tests of the user interface's parts run
# beside it.
set -euo pipefail
cd "$(dirname "$0")/../.."
export SLIPWAY_TEST_MODERN_DOCKER=verify SLIPWAY_TEST_MODEL=verify SLIPWAY_TEST_SLURM=verify \
    SLIPWAY_TEST_WINE=verify SLIPWAY_TEST_PODMAN=verify
exec build/ci/beside.sh "npm --prefix frontend test --silent" "build/ci/docker.sh build/ci/test-real.sh"
