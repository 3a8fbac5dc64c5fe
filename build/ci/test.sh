#!/usr/bin/env bash
# Everything that a change can break, what is cheap first. What needs longer is in
# verify.sh. The browser tests without Docker run beside those with it: each has
# programs, ports and folders of its own. What runs in the background is printed at
# the end, as a whole.
set -euo pipefail
cd "$(dirname "$0")/../.."
said=$(mktemp -d)
trap 'kill $(jobs -p) 2>/dev/null || true; wait; rm -r "$said"' EXIT
# The images are made, where they are missing, beside what needs none.
build/ci/docker.sh true >"$said/images" 2>&1 &
images=$!
npm --prefix frontend test --silent >"$said/parts" 2>&1 &
parts=$!
build/ci/lint.sh
wait "$parts" || { cat "$said/parts"; exit 1; }
wait "$images" || { cat "$said/images"; exit 1; }
build/ci/offline.sh npm --prefix frontend run --silent e2e -- --project offline >"$said/offline" 2>&1 &
offline=$!
failed=0
SLIPWAY_TEST_MODERN_DOCKER=verify SLIPWAY_TEST_MODEL=verify SLIPWAY_TEST_SLURM=verify build/ci/docker.sh build/ci/test-real.sh || failed=1
wait "$offline" || failed=1
cat "$said/parts" "$said/offline"
exit "$failed"
