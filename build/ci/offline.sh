#!/usr/bin/env bash
# Runs a command where nothing but this machine's loopback is reached: in a network
# namespace of its own, with no Docker. SLIPWAY_OFFLINE names the protocols in which
# the kernel there counts whoever tries to get further. Needs the right to make such
# a namespace: root, or user namespaces.
set -euo pipefail
unset SLIPWAY_TEST_DOCKER SLIPWAY_TEST_MODERN_DOCKER
export DOCKER_HOST=unix:///nowhere/docker.sock npm_config_update_notifier=false
space=(unshare --net --mount)
"${space[@]}" true 2>/dev/null || space=(unshare --user --map-root-user --net --mount)
"${space[@]}" true || { echo "slipway: no network namespace can be made here; run as root, or allow user namespaces" >&2; exit 1; }
exec "${space[@]}" bash -euo pipefail -c '
  ip link set lo up
  # Whoever asks for a name asks a server that is not on this machine, and is counted.
  if asked=$(realpath -e /etc/resolv.conf 2>/dev/null); then
    names=$(mktemp)
    echo "nameserver 192.0.2.1" >"$names"
    mount --bind "$names" "$asked"
    rm "$names"
  fi
  # Chromium tries at each start whether it has a way there, sends nothing, and is not to be counted.
  export SLIPWAY_OFFLINE="Ip Ip6"
  ip -6 route add prohibit 2001:4860:4860::8888 2>/dev/null || SLIPWAY_OFFLINE=Ip
  exec "$@"' offline "$@"
