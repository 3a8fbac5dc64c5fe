#!/usr/bin/env bash
# The Go tests, with the flags that are given. Most of them wait for an engine, a
# process or a clock, so more packages run at a time than there are processors. lint.sh vets.
set -euo pipefail
cd "$(dirname "$0")/../.."
exec go test "$@" -p 4 -vet off -timeout 20m ./...
