#!/usr/bin/env bash
# What is measured with the test engine up (see docker.sh), beside a Docker Engine of
# today. Model servers are measured as well, whose images are made first.
set -euo pipefail
cd "$(dirname "$0")/../.."
build/ci/images.sh llama fakemodel
exec build/ci/modern.sh go run ./build/bench "$@"
