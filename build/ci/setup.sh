#!/usr/bin/env bash
# Installs the Debian packages that building ("build"), testing ("test"), measuring ("bench"), packaging ("package"),
# releasing ("release"), building a Docker of today ("modern"), running Podman ("podman") and running programs of
# Windows ("wine") need and that are not there yet. Needs root or sudo only if something is missing.
set -euo pipefail

build_packages=(gcc libc6-dev pkg-config libgtk-3-dev libwebkit2gtk-4.1-dev)
# The engine and the images of the tests install what they need themselves.
test_packages=(chromium-headless-shell g++ dbus-daemon gnome-keyring docker-registry python3 xvfb xauth xdotool
  wmctrl openbox webkit2gtk-driver fonts-dejavu-core procps util-linux hunspell hunspell-en-us
  openssh-client openssh-server libpam-google-authenticator rsync iproute2)
# The proxy beside which services are measured.
bench_packages=(nginx-light)
# Wine, and what the library is made with that it lacks.
wine_packages=(wine64 binutils-mingw-w64-x86-64)
# Podman, with its networks, and what a user needs to run Podman or Docker.
podman_packages=(podman netavark aardvark-dns iptables iproute2 passwd
  docker.io rootlesskit slirp4netns uidmap)
# The header with which the runc of a Docker of today is built.
modern_packages=(libseccomp-dev)
package_packages=(appstream desktop-file-utils icoutils librsvg2-bin mmdebstrap nsis zip)
# What makes a site of packages.
release_packages=(createrepo-c gnupg)
# The reader of NVIDIA devices and the window are for the other architecture, too.
case "$(dpkg --print-architecture)" in
  arm64) package_packages+=(gcc-x86-64-linux-gnu libc6-dev-amd64-cross) ;;
  *) package_packages+=(gcc-aarch64-linux-gnu libc6-dev-arm64-cross) ;;
esac

for need in go node npm git make; do
  command -v "$need" >/dev/null || { echo "slipway: $need is missing; install it first" >&2; exit 1; }
done

wanted=()
for group in "$@"; do
  case "$group" in
    build) wanted+=("${build_packages[@]}") ;;
    test) wanted+=("${test_packages[@]}" "${release_packages[@]}") ;;
    bench) wanted+=("${bench_packages[@]}") ;;
    package) wanted+=("${package_packages[@]}") ;;
    release) wanted+=("${release_packages[@]}") ;;
    podman) wanted+=("${podman_packages[@]}") ;;
    modern) wanted+=("${modern_packages[@]}") ;;
    wine) wanted+=("${wine_packages[@]}") ;;
    *) echo "usage: setup.sh [build] [test] [bench] [package] [release] [modern] [podman] [wine]" >&2; exit 2 ;;
  esac
done

missing=()
for package in "${wanted[@]}"; do
  [ "$(dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null || true)" = installed ] || missing+=("$package")
done
[ ${#missing[@]} -eq 0 ] && exit 0

as_root=()
if [ "$(id -u)" -ne 0 ]; then
  command -v sudo >/dev/null || { echo "slipway: these packages are missing and need root: ${missing[*]}" >&2; exit 1; }
  as_root=(sudo)
fi
echo "slipway: installing ${missing[*]}"
export DEBIAN_FRONTEND=noninteractive
# Packages start services of their own, which nobody asked for here.
policy=/usr/sbin/policy-rc.d
if [ ! -e "$policy" ]; then
  printf '#!/bin/sh\nexit 101\n' | "${as_root[@]}" tee "$policy" >/dev/null
  "${as_root[@]}" chmod 755 "$policy"
  trap '"${as_root[@]}" rm -f "$policy"' EXIT
fi
"${as_root[@]}" apt-get update -qq
"${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=580 install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
