#!/usr/bin/env bash
# Runs a command with the Slurm cluster for tests up (see build/slurm/rig.sh):
# SLIPWAY_TEST_SLURM is the path of the script that runs commands on its nodes. One
# command has the cluster at a time. It is ended afterwards, unless it was up before.
#
#   build/ci/slurm.sh [--accounting] COMMAND…
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
SLIPWAY_TEST_SLURM=$(cd "$here/../slurm" && pwd)/rig.sh
export SLIPWAY_TEST_SLURM
accounting=
if [ "${1:-}" = --accounting ]; then accounting=accounting; shift; fi
mkdir -p "$here/../.cache"
ours=$here/../.cache/slurm-is-ours
# What is started must not hold the lock any longer.
exec 8>"$here/../.cache/slurm-user"
flock 8
finish() {
    [ ! -e "$ours" ] || "$SLIPWAY_TEST_SLURM" down 8>&-
    rm -f "$ours"
}
# One that was killed has left it.
finish
"$SLIPWAY_TEST_SLURM" status >/dev/null 2>&1 8>&- || touch "$ours"
trap finish EXIT
"$SLIPWAY_TEST_SLURM" up $accounting 8>&-
"$@" 8>&-
