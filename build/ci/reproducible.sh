#!/usr/bin/env bash
# Makes the packages of the last commit twice, in two copies of it at different paths, and
# compares their bytes. With --quick, it makes one copy and compares that with the packages
# that `make package` made here of the same commit. The copy takes the page that is built here
# and what Go has compiled before.
set -euo pipefail
cd "$(dirname "$0")/../.."
git diff --quiet HEAD || { echo "reproducible.sh: some files are not committed" >&2; exit 1; }
work=$(mktemp -d /tmp/slipway-twice.XXXXXX)
trap 'chmod -R u+w "$work" && rm -rf "$work"' EXIT
copy=$work/another/place
git clone -q . "$copy"
mkdir -p "$copy/build/.cache"
if [ "${1:-}" = --quick ]; then
  one=$PWD
  # npm lists no libraries behind a link.
  cp -r frontend/node_modules frontend/dist "$copy/frontend"
  cp -r frontend/notebook/dist "$copy/frontend/notebook"
  cp -r frontend/public/docs "$copy/frontend/public"
  ln -s "$PWD"/build/.cache/sysroot-* "$copy/build/.cache"
  touch "$copy/frontend/node_modules/.package-lock.json" "$copy/frontend/dist/index.html"
  make -C "$copy" package
else
  one=$work/one
  git clone -q . "$one"
  for place in "$one" "$copy"; do GOCACHE=$place.cache make -C "$place" package; done
fi
diff "$one/build/bin/packages/SHA256SUMS" "$copy/build/bin/packages/SHA256SUMS"
echo "reproducible.sh: $(wc -l <"$copy/build/bin/packages/SHA256SUMS") files have the same bytes twice"
