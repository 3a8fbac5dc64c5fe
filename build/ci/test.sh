#!/usr/bin/env bash
# Everything that a change can break. What needs longer is in verify.sh. Most of what
# needs an engine waits for it, so what needs none runs beside it, one after another:
# the tests of the user interface's parts, lint, and the browser tests without Docker,
# which have programs, ports and folders of their own. What runs in the background is
# printed at the end, as a whole.
set -euo pipefail
cd "$(dirname "$0")/../.."
said=$(mktemp -d)
trap 'kill $(jobs -p) 2>/dev/null || true; wait; rm -r "$said"' EXIT
{
    npm --prefix frontend test --silent
    build/ci/lint.sh
    build/ci/offline.sh npm --prefix frontend run --silent e2e -- --project offline
} >"$said/without" 2>&1 &
without=$!
failed=0
export SLIPWAY_TEST_MODERN_DOCKER=verify SLIPWAY_TEST_MODEL=verify SLIPWAY_TEST_SLURM=verify \
    SLIPWAY_TEST_WINE=verify SLIPWAY_TEST_PODMAN=verify
build/ci/docker.sh build/ci/test-real.sh || failed=1
wait "$without" || failed=1
cat "$said/without"
exit "$failed"
