#!/usr/bin/env bash
# What is measured with the test engine up (see docker.sh), beside a Docker Engine of
# today and of a Slurm cluster. A real model server is measured as well, whose image is
# made first.
set -euo pipefail
cd "$(dirname "$0")/../.."
build/ci/images.sh llama
exec build/ci/slurm.sh build/ci/modern.sh go run ./build/bench "$@"
