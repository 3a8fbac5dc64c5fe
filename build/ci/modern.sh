#!/usr/bin/env bash
# Runs a command with a daemon of today and made-up devices up (see
# moderndocker.sh): SLIPWAY_TEST_MODERN_DOCKER names it. Stops it afterwards if
# it was this script that started it.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
was_up=no
"$here/moderndocker.sh" status >/dev/null 2>&1 && was_up=yes
"$here/moderndocker.sh" start
SLIPWAY_TEST_MODERN_DOCKER=$("$here/moderndocker.sh" host)
export SLIPWAY_TEST_MODERN_DOCKER
finish() { [ "$was_up" = yes ] || "$here/moderndocker.sh" stop; }
trap finish EXIT
"$@"
