#!/usr/bin/env bash
# Compares the program that runs containers in jobs with crun, runc, bubblewrap, charliecloud and
# podman of Debian: starts a test cluster of its own, installs them on its first node, and has
# TestOtherRuntimes run the guest by each. Prints the table of backend/README.md. Run it by hand,
# as root on Debian; it takes about four minutes, three more where the cluster's files are missing.
set -euo pipefail
cd "$(dirname "$0")/../.."
packages=(crun runc bubblewrap charliecloud-runtime podman)
work=$(mktemp -d /tmp/slipway-XXXXXX)
export SLIPWAY_SLURM=$work/cluster SLIPWAY_TEST_SLURM=$PWD/build/slurm/rig.sh
trap '"$SLIPWAY_TEST_SLURM" down; rm -rf "$work"' EXIT

"$SLIPWAY_TEST_SLURM" up
# The nodes reach no mirror, so this machine loads what their file system lacks.
archives=$SLIPWAY_SLURM/n1/tmp/packages
mkdir -p "$archives/partial"
apt-get install -qq --yes --download-only --no-install-recommends -o APT::Sandbox::User=root \
    -o Dir::Cache::archives="$archives" \
    -o Dir::State::status="$(cat "$SLIPWAY_SLURM/file-system")/var/lib/dpkg/status" "${packages[@]}"
"$SLIPWAY_TEST_SLURM" as root n1 sh -c 'dpkg --install /tmp/packages/*.deb >/tmp/packages/log 2>&1 ||
    { cat /tmp/packages/log; exit 1; }'
"$SLIPWAY_TEST_SLURM" as root n1 dpkg-query --show "${packages[@]}"
go test -tags runtimes -count 1 -timeout 15m -v -run '^TestOtherRuntimes$' ./backend/engine/slurm
