#!/usr/bin/env bash
# Runs a command with Debian's Podman up and the image of its tests loaded:
# SLIPWAY_TEST_PODMAN and SLIPWAY_TEST_DOCKER name its socket. Both have namespaces of their own for networks,
# mounts and processes, and all files of Podman are in a temporary directory, so nothing
# of it is left and no other Podman is touched. Needs root or sudo.
#
#   build/ci/podman.sh COMMAND…
#
# make verify runs only what is about Podman. The suite of engines passes here too, but takes 5 min, and on a busy
# machine a container sometimes does not start ("netavark: : EOF"), which is not understood yet:
#
#   SLIPWAY_TEST_MODERN_DOCKER=verify build/ci/podman.sh go test -timeout 10m ./backend/engine/docker \
#       -run 'TestOthers|TestKernelsOf|TestEngineKeepsItsPromises/with_the_real_guest'
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
export PATH=$PATH:/usr/sbin:/sbin

if [ "${1:-}" != --inside ]; then
    "$here/setup.sh" podman
    [ "$(id -u)" -eq 0 ] || exec sudo --preserve-env "$0" "$@"
    dir=$(mktemp -d /tmp/slipway-podman-XXXXXX)
    # The control groups of its containers remain without them.
    finish() {
        find /sys/fs/cgroup -depth -type d -path '*/libpod_parent*' -exec rmdir {} + 2>/dev/null || true
        rm -rf "$dir"
    }
    trap finish EXIT
    # It ends with this script, also where that is ended before.
    unshare --mount --net --pid --fork --kill-child --mount-proc "$0" --inside "$dir" root "$@" &
    trap 'kill -9 $! 2>/dev/null || true; exit 143' TERM INT
    wait $!
    exit
fi

# rootless.sh has another user, and has brought the network up.
dir=$2 as=$3
shift 3
person=()
if [ "$as" = root ]; then
    ip link set lo up
    mkdir "$dir/tmp"
else
    person=(setpriv --reuid "$as" --regid "$as" --clear-groups env "HOME=$dir/home" "XDG_RUNTIME_DIR=$dir/tmp")
fi
# The test registries speak plain HTTP. Events are kept in a file, because there may be no journal.
cat >"$dir/registries.conf" <<'CONF'
[[registry]]
location = "127.0.0.1"
insecure = true
CONF
cat >"$dir/containers.conf" <<CONF
[engine]
cgroup_manager = "cgroupfs"
events_logger = "file"
[network]
network_backend = "netavark"
network_config_dir = "$dir/networks"
CONF
printf '[storage]\ndriver = "overlay"\ngraphroot = "%s"\nrunroot = "%s"\n' "$dir/root" "$dir/run" >"$dir/storage.conf"
export CONTAINERS_CONF=$dir/containers.conf CONTAINERS_STORAGE_CONF=$dir/storage.conf \
    CONTAINERS_REGISTRIES_CONF=$dir/registries.conf
podman=("${person[@]}" podman --tmpdir "$dir/tmp")
# What watches a container writes into the directory of the service.
(cd "$dir" && exec "${podman[@]}" system service --time 0 "unix://$dir/podman.sock" >"$dir/log" 2>&1) &
service=$!
finish() {
    "${podman[@]}" rm --all --force --time 0 --volumes >/dev/null || true
    kill "$service" 2>/dev/null && wait "$service" || true
    umount -l "$dir/root/overlay" 2>/dev/null || true
}
trap finish EXIT
for _ in $(seq 100); do
    [ -S "$dir/podman.sock" ] && break
    kill -0 "$service" || { cat "$dir/log" >&2; exit 1; }
    sleep 0.1
done
export SLIPWAY_TEST_PODMAN=unix://$dir/podman.sock
export SLIPWAY_TEST_DOCKER=$SLIPWAY_TEST_PODMAN DOCKER_HOST=$SLIPWAY_TEST_PODMAN
"$here/images.sh" minimal
"$@"
