#!/usr/bin/env bash
# What takes too long for every change: all Go tests under the race detector, those
# among them that need a Docker Engine of today or a model server, which are built
# from source.
set -euo pipefail
cd "$(dirname "$0")/../.."
if [ "${1:-}" = with-images ]; then
    build/ci/images.sh llama
    export SLIPWAY_TEST_MODEL=slipway-test/llama:1
    exec build/ci/modern.sh build/ci/test-go.sh -race
fi
exec build/ci/docker.sh build/ci/verify.sh with-images
