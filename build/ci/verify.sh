#!/usr/bin/env bash
# What takes too long for every change: all Go tests under the race detector, those
# among them that need a Docker Engine of today, which is built from source.
set -euo pipefail
cd "$(dirname "$0")/../.."
build/ci/docker.sh build/ci/modern.sh build/ci/test-go.sh -race
