#!/usr/bin/env bash
# Everything that a change can break, in the order in which a failure is cheapest
# to find. What needs longer is in verify.sh.
set -euo pipefail
cd "$(dirname "$0")/../.."
build/ci/lint.sh
(cd frontend && npm test --silent)
SLIPWAY_TEST_MODERN_DOCKER=verify build/ci/docker.sh build/ci/test-real.sh
build/ci/offline.sh npm --prefix frontend run --silent e2e -- --project offline
