#!/usr/bin/env bash
# Runs a command with the private test engine up and its images loaded:
# SLIPWAY_TEST_DOCKER and DOCKER_HOST name it. Stops it afterwards if it was
# this script that started it.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
was_up=no
"$here/dockerd.sh" status >/dev/null 2>&1 && was_up=yes
"$here/dockerd.sh" start
SLIPWAY_TEST_DOCKER=$("$here/dockerd.sh" host)
export SLIPWAY_TEST_DOCKER DOCKER_HOST="$SLIPWAY_TEST_DOCKER"
finish() { [ "$was_up" = yes ] || "$here/dockerd.sh" stop; }
trap finish EXIT
"$here/images.sh"
"$@"
