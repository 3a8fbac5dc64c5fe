#!/usr/bin/env bash
# The Go tests of packages, in the order given, after flags. Most of them wait for an
# engine, a process or a clock, so more packages run at a time than there are processors.
# lint.sh vets. Nobody debugs these programs, so they are linked without what a debugger reads.
set -euo pipefail
cd "$(dirname "$0")/../.."
# `ip netns` mounts a directory for its first namespace and leaves it mounted. Where
# it was not mounted before, it is unmounted again once it holds no namespace.
names=/run/netns
if ! mountpoint -q "$names"; then
    trap '[ -n "$(ls -A "$names" 2>/dev/null)" ] || ! mountpoint -q "$names" || { umount "$names" && rmdir "$names"; }' EXIT
fi
go test -p 4 -ldflags=-w -vet off -timeout 40m "$@"
