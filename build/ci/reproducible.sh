#!/usr/bin/env bash
# Makes the packages of the last commit twice, in two copies of it at different paths, and
# compares their bytes. With --quick, both copies take the page that is built here and what
# Go has compiled before; otherwise each of them builds everything.
set -euo pipefail
cd "$(dirname "$0")/../.."
work=$(mktemp -d /tmp/slipway-twice.XXXXXX)
trap 'chmod -R u+w "$work" && rm -rf "$work"' EXIT
for copy in "$work/one" "$work/another/place"; do
  git clone -q . "$copy"
  mkdir -p "$copy/build/.cache"
  if [ "${1:-}" = --quick ]; then
    ln -s "$PWD/frontend/node_modules" "$copy/frontend/node_modules"
    cp -r frontend/dist "$copy/frontend"
    cp -r frontend/notebook/dist "$copy/frontend/notebook"
    ln -s "$PWD"/build/.cache/sysroot-* "$copy/build/.cache"
    touch "$copy/frontend/node_modules/.package-lock.json" "$copy/frontend/dist/index.html"
    make -C "$copy" package
  else
    GOCACHE=$copy.cache make -C "$copy" package
  fi
done
cd "$work"
diff one/build/bin/packages/SHA256SUMS another/place/build/bin/packages/SHA256SUMS
echo "reproducible.sh: $(wc -l <one/build/bin/packages/SHA256SUMS) files have the same bytes twice"
