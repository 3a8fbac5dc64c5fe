#!/usr/bin/env bash
# Installs the packages that `make package` made on clean systems, as people do, and prints
# a line for each check. Without arguments: Debian 12 and 13. Needs root, and the private
# test engine: build/ci/docker.sh build/ci/installed.sh [bookworm] [trixie]
#
# Each system is a directory made by mmdebstrap, with mounts of its own and without systemd.
# The engine reads its folders, so the home directory there has the same path here, and
# Slipway asks who its guests are, so it sees the processes of this computer. What is upgraded
# comes from the site of a release, as apt reads it.
set -euo pipefail
cd "$(dirname "$0")/../.."
repo=$PWD
: "${DOCKER_HOST:?run it with build/ci/docker.sh}"
VERSION=$(cat build/VERSION)
export VERSION
arch=$(dpkg --print-architecture)
package=$repo/build/bin/packages/slipway_${VERSION}_$arch.deb
[ -e "$package" ] || { echo "installed.sh: $package is missing: run make package" >&2; exit 1; }
cache=$repo/build/.cache/roots
mkdir -p "$cache"
work=$(mktemp -d /tmp/slipway-installed.XXXXXX)
trap 'rm -rf --one-file-system "$work"' EXIT # mounts are in namespaces that are gone by then

# An earlier version of the package, which is upgraded: the same programs under a lower number.
mkdir "$work/old"
dpkg-deb --raw-extract "$package" "$work/old"
sed -i "s/^Version: .*/Version: 0.0.1/" "$work/old/DEBIAN/control"
rm -f "$work/old/DEBIAN/conffiles" # it has none, which dpkg-deb does not take for an answer
dpkg-deb --root-owner-group -Znone --build "$work/old" "$work/earlier.deb" >/dev/null
rm -r "$work/old"

# A release of nothing but these packages.
mkdir -p "$work/release/build/bin/packages"
ln -s "$repo"/build/bin/packages/*.deb "$work/release/build/bin/packages"
cp build/VERSION "$work/release/build"
printf '## %s, %s\n\n- A test.\n' "$VERSION" "$(date -u +%F)" >"$work/release/CHANGELOG.md"
go build -o "$work/make-site" ./build/release
(cd "$work/release" && "$work/make-site" site "$work/site")

failed=0
[ $# -gt 0 ] || set -- bookworm trixie
for code in "$@"; do
  base=$cache/$code-$arch.tar
  mkdir -p "$cache/archives-$code"
  if [ ! -e "$base" ]; then
    mmdebstrap --quiet --variant=apt "$code" "$work/$code.tar"
    mv "$work/$code.tar" "$base"
  fi
  root=$work/$code
  home=$work/home-$code
  mkdir -p "$root" "$home"
  tar -xf "$base" -C "$root" --exclude='./dev/*'
  mkdir -p "$root/packages"
  cp "$package" "$root/packages/slipway.deb"
  cp "$work/earlier.deb" "$root/packages"
  cp -r "$work/site/apt" "$root/packages"
  cp build/ci/installed-checks.sh "$root/packages/checks.sh"
  cp /etc/resolv.conf "$root/etc/resolv.conf"
  code=$code home=$home root=$root archives=$cache/archives-$code socket=${DOCKER_HOST#unix://} \
    unshare --mount --uts --ipc bash -euo pipefail -c '
      mount --bind "$root" "$root"
      mount --rbind /proc "$root/proc"
      mount --rbind /dev "$root/dev"
      mount --rbind /sys "$root/sys"
      mount -t tmpfs tmpfs "$root/run"
      mount -t tmpfs tmpfs "$root/tmp"
      mkdir -p "$root$home" "$root/run/docker"
      mount --bind "$home" "$root$home"
      mount --bind "$archives" "$root/var/cache/apt/archives"
      touch "$root/run/docker/docker.sock"
      mount --bind "$socket" "$root/run/docker/docker.sock"
      exec chroot "$root" /usr/bin/env -i HOME="$home" PATH=/usr/sbin:/usr/bin:/sbin:/bin LANG=C.UTF-8 CODE="$code" \
        DOCKER_HOST=unix:///run/docker/docker.sock DEBIAN_FRONTEND=noninteractive VERSION="$VERSION" bash /packages/checks.sh' || failed=1
done
exit "$failed"
