#!/usr/bin/env bash
# Runs two commands at the same time and fails if one of them does. What the first prints comes at the end, as a whole.
# Where this script is ended, so is all that they have started.
#
#   build/ci/beside.sh "FIRST COMMAND" "SECOND COMMAND"
set -euo pipefail
said=$(mktemp)
set -m # each in a group of its own
bash -c "$1" >"$said" 2>&1 </dev/null &
first=$!
bash -c "$2" </dev/null &
second=$!
set +m
trap 'kill -- "-$first" "-$second" 2>/dev/null || true; wait; rm "$said"' EXIT
trap 'exit 143' TERM INT
failed=0
wait "$second" || failed=1
wait "$first" || failed=1
cat "$said"
exit "$failed"
