#!/usr/bin/env bash
# Runs a command with the private test engine up and its images loaded:
# SLIPWAY_TEST_DOCKER and DOCKER_HOST name it. Whoever is the last of those that use
# it stops it, unless it was up before the first of them.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
cache=$here/../.cache
mkdir -p "$cache"
ours=$cache/docker-is-ours
# Each holds the lock with others; what is started must not hold it any longer.
exec 9>"$cache/docker-users"
flock -s 9
if ! "$here/dockerd.sh" status >/dev/null 2>&1; then
    touch "$ours"
fi
finish() {
    flock -u 9
    if [ -e "$ours" ] && flock -n -x 9; then
        "$here/dockerd.sh" stop 9>&-
        rm -f "$ours"
    fi
}
trap finish EXIT
"$here/dockerd.sh" start 9>&-
SLIPWAY_TEST_DOCKER=$("$here/dockerd.sh" host)
export SLIPWAY_TEST_DOCKER DOCKER_HOST="$SLIPWAY_TEST_DOCKER"
"$here/images.sh" 9>&-
"$@" 9>&-
