#!/usr/bin/env bash
# Prints the directory of what a C compiler needs to link the desktop window for another
# architecture: headers and libraries of this machine's Debian. It is made once, without
# running any of its programs, and kept in build/.cache.
set -euo pipefail
arch=${1:?usage: sysroot.sh ARCH}
cache=$(cd "$(dirname "$0")/.." && pwd)/.cache
code=$(. /etc/os-release && echo "$VERSION_CODENAME")
root=$cache/sysroot-$code-$arch
mkdir -p "$cache"
exec 9>"$cache/sysroot.lock"
flock 9 # one makes it at a time
if [ ! -d "$root" ]; then
  new=$(mktemp -d "$root.XXXXXX")
  trap 'rm -rf "$new"' EXIT
  mmdebstrap --quiet --architectures="$arch" --variant=extract --include=libgtk-3-dev,libwebkit2gtk-4.1-dev "$code" - |
    tar -x -C "$new" --exclude='./usr/lib/gcc' --exclude='./usr/lib/*/perl' ./lib ./usr/include ./usr/lib ./usr/share/pkgconfig
  chmod 755 "$new"
  mv -T "$new" "$root"
fi
echo "$root"
