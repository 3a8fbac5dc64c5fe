#!/usr/bin/env bash
# The Go tests, with the flags that are given. Most of them wait for an engine, a
# process or a clock, so more packages run at a time than there are processors.
set -euo pipefail
cd "$(dirname "$0")/../.."
exec go test "$@" -p 4 -timeout 20m ./...
