#!/usr/bin/env bash
# Every test, in the order in which a failure is cheapest to find.
set -euo pipefail
cd "$(dirname "$0")/../.."
build/ci/lint.sh
(cd frontend && npm test --silent)
build/ci/docker.sh build/ci/modern.sh build/ci/test-real.sh
build/ci/offline.sh npm --prefix frontend run --silent e2e -- --project offline
