#!/usr/bin/env bash
# Everything that a change can break, what is cheap first. What needs longer is in
# verify.sh. The browser tests without Docker run beside those with it: each has
# programs, ports and folders of its own. What they say comes at the end, as a whole.
set -euo pipefail
cd "$(dirname "$0")/../.."
said=$(mktemp)
# The images are made, where they are missing, beside what needs none.
build/ci/docker.sh true >"$said" 2>&1 &
images=$!
trap 'kill "$images" 2>/dev/null || true; wait; rm -f "$said"' EXIT
build/ci/lint.sh
(cd frontend && npm test --silent)
wait "$images" || { cat "$said"; exit 1; }
build/ci/offline.sh npm --prefix frontend run --silent e2e -- --project offline >"$said" 2>&1 &
offline=$!
trap 'kill "$offline" 2>/dev/null || true; wait; rm -f "$said"' EXIT
failed=0
SLIPWAY_TEST_MODERN_DOCKER=verify build/ci/docker.sh build/ci/test-real.sh || failed=1
wait "$offline" || failed=1
cat "$said"
exit "$failed"
