#!/usr/bin/env bash
# Runs a command with Debian's Podman or Docker up that a user runs who is not root, as in podman.sh: with namespaces and
# a temporary directory of their own, which alone know the user. SLIPWAY_TEST_DOCKER names the socket. The tests of the
# engine run again as that user. Needs root or sudo. The user has no control groups, so nothing is limited.
#
#   build/ci/rootless.sh podman|docker COMMAND…
#
# The suite of engines passes on both, but takes some minutes:
#
#   SLIPWAY_TEST_MODERN_DOCKER=verify SLIPWAY_TEST_PODMAN=verify build/ci/rootless.sh docker go test -timeout 10m \
#       ./backend/engine/docker -run 'TestOthers|TestKernelsOf|TestEngineKeepsItsPromises/with_the_real_guest'
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
export PATH=$PATH:/usr/sbin:/sbin
fail() { echo "rootless.sh: $*" >&2; exit 1; }

if [ "${1:-}" != --inside ]; then
    case ${1:-} in podman | docker) ;; *) fail "name podman or docker" ;; esac
    "$here/setup.sh" podman
    [ "$(id -u)" -eq 0 ] || exec sudo --preserve-env "$0" "$@"
    dir=$(mktemp -d /tmp/slipway-rootless-XXXXXX)
    trap 'rm -rf "$dir"' EXIT
    # It ends with this script, also where that is ended before.
    unshare --mount --net --pid --fork --kill-child --mount-proc "$0" --inside "$dir" "$@" &
    trap 'kill -9 $! 2>/dev/null || true; exit 143' TERM INT
    wait $!
    exit
fi

dir=$2 engine=$3 as=slipway
shift 3
ip link set lo up
mkdir "$dir/home" "$dir/tmp"
# The user and the further ids of the user are in a copy that only these mounts show.
cp -a /etc "$dir/etc"
touch "$dir/etc/subuid" "$dir/etc/subgid" # without them useradd gives no further ids
mount --bind "$dir/etc" /etc
useradd --no-create-home --home-dir "$dir/home" --uid 1700 "$as"
chown "$as:$as" "$dir" "$dir/home" "$dir/tmp"
# Networks of users need it.
mknod -m 666 "$dir/tun" c 10 200
mount --bind "$dir/tun" /dev/net/tun
mount --make-rshared /
[ "$engine" = docker ] || exec "$here/podman.sh" --inside "$dir" "$as" "$@"

setpriv --reuid "$as" --regid "$as" --clear-groups env -C "$dir/home" HOME="$dir/home" XDG_RUNTIME_DIR="$dir/tmp" \
    /usr/share/docker.io/contrib/dockerd-rootless.sh --storage-driver overlay2 >"$dir/log" 2>&1 &
service=$!
trap 'kill "$service" 2>/dev/null && wait "$service" || true' EXIT
for _ in $(seq 300); do
    [ ! -S "$dir/tmp/docker.sock" ] || break
    kill -0 "$service" 2>/dev/null || { cat "$dir/log" >&2; fail "Docker does not start"; }
    sleep 0.1
done
export SLIPWAY_TEST_DOCKER=unix://$dir/tmp/docker.sock DOCKER_HOST=unix://$dir/tmp/docker.sock
"$here/images.sh" minimal
"$@"
