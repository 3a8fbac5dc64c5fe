#!/usr/bin/env bash
# Makes the packages for all platforms in build/bin/packages, with their checksums and
# bills of materials, and prints their sizes. `make package` says with what they are
# linked. One commit gives the same bytes: paths are left out, dates are the commit's.
set -euo pipefail
cd "$(dirname "$0")/../.."
: "${VERSION:?}" "${LDFLAGS:?}" "${TAGS:?}" "${LATE:?}"
out=$PWD/build/bin/packages
work=$PWD/build/.cache/package
here=$(go env GOHOSTARCH)
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || stat -c %Y build/VERSION)}
export SOURCE_DATE_EPOCH VERSION TZ=UTC LC_ALL=C GOFLAGS="-trimpath -buildvcs=false"
rm -rf "$out" "$work"
mkdir -p "$out" "$work/share"

# program builds OS ARCH FILE, with the flags that follow.
program() {
  local os=$1 arch=$2 file=$3
  shift 3
  CGO_ENABLED=${CGO_ENABLED:-0} GOOS=$os GOARCH=$arch go build -o "$file" "$@" .
}

# window builds the window for Linux on ARCH, for another one than this with a C compiler for it.
window() {
  local arch=$1 root gnu
  if [ "$arch" != "$here" ]; then
    case $arch in arm64) gnu=aarch64-linux-gnu ;; *) gnu=x86_64-linux-gnu ;; esac
    root=$(build/ci/sysroot.sh "$arch")
    local -x CC="$gnu-gcc --sysroot=$root" PKG_CONFIG_SYSROOT_DIR=$root
    local -x PKG_CONFIG_LIBDIR=$root/usr/lib/$gnu/pkgconfig:$root/usr/share/pkgconfig
  fi
  # Go's number of a build differs by the path of the compiler's files.
  CGO_ENABLED=1 program linux "$arch" "$2" -tags "$TAGS" -ldflags "$LDFLAGS $LATE -buildid="
}

# dated gives all files below a directory the date of the commit and plain modes.
dated() {
  chmod -R u=rwX,go=rX "$1"
  find "$1" -exec touch -h -d "@$SOURCE_DATE_EPOCH" {} +
}

# tarball packs the directory $work/NAME as NAME.tar.gz.
tarball() {
  tar -C "$work" --sort=name --owner=0 --group=0 --numeric-owner --format=gnu -cf - "$1" | gzip -n >"$out/$1.tar.gz"
}

# carries fails unless a program has (yes) or lacks (no) the reader of NVIDIA devices, which only Linux can start.
carries() {
  local found=no
  ! grep -qaF 'slipway/gpu/nvml/slipway-gpu' "$2" || found=yes
  [ "$found" = "$1" ] || { echo "package.sh: $2: reader of NVIDIA devices: $found, wanted: $1" >&2; exit 1; }
}

# What does not depend on the platform.
cat LICENSE build/notices/THIRD_PARTY_NOTICES >"$work/copyright"
for arch in amd64 arm64; do
  program linux "$arch" "$work/slipway-linux-$arch" -tags lean -ldflags "$LDFLAGS"
  program linux "$arch" "$work/slipway-$arch" -ldflags "$LDFLAGS"
  carries yes "$work/slipway-linux-$arch"
done
share=$work/share
go run ./build/docgen -man "$share/man/man1"
gzip -9n "$share"/man/man1/*.1
mkdir -p "$share"/{bash-completion/completions,zsh/{site-functions,vendor-completions},fish/vendor_completions.d}
"$work/slipway-$here" completion bash >"$share/bash-completion/completions/slipway"
"$work/slipway-$here" completion fish >"$share/fish/vendor_completions.d/slipway.fish"
# Debian's zsh looks in the second directory for what packages bring, others in the first.
"$work/slipway-$here" completion zsh | tee "$share/zsh/site-functions/_slipway" >"$share/zsh/vendor-completions/_slipway"
install -D -m 644 "$work/copyright" "$share/doc/slipway/copyright"
install -D -m 644 build/packages/slipway.desktop -t "$share/applications"
install -D -m 644 build/packages/slipway.xml -t "$share/mime/packages"
install -D -m 644 build/packages/slipway.metainfo.xml -t "$share/metainfo"
install -D -m 644 build/icons/slipway.svg -t "$share/icons/hicolor/scalable/apps"
for size in 16 32 48 64 128 256 512; do
  mkdir -p "$share/icons/hicolor/${size}x$size/apps"
  rsvg-convert -w $size -h $size build/icons/slipway.svg -o "$share/icons/hicolor/${size}x$size/apps/slipway.png"
done
icotool -c -o "$work/slipway.ico" "$share"/icons/hicolor/{16x16,32x32,48x48,256x256}/apps/slipway.png
desktop-file-validate build/packages/slipway.desktop >/dev/null
# The project has no domain that could begin its identifier.
appstreamcli validate --no-net --override=cid-desktopapp-is-not-rdns=info build/packages/slipway.metainfo.xml >/dev/null

for arch in amd64 arm64; do
  name=slipway_${VERSION}_linux_$arch
  stage=$work/$name
  mkdir -p "$stage"/{bin,lib/slipway}
  cp -r "$share" "$stage/share"
  cp "$work/slipway-$arch" "$stage/bin/slipway"
  window "$arch" "$stage/bin/slipway-desktop"
  case $arch in amd64) other=arm64 ;; *) other=amd64 ;; esac
  cp "$work/slipway-linux-$other" "$stage/lib/slipway"
  dated "$stage"
  tarball "$name"
  for packager in deb rpm; do
    ARCH=$arch OTHER=$other STAGE=$stage go run github.com/goreleaser/nfpm/v2/cmd/nfpm@v2.43.0 package \
      --config build/packages/nfpm.yaml --packager $packager --target "$out/" >/dev/null
  done
done

for arch in arm64 amd64; do
  name=slipway_${VERSION}_macos_$arch
  mkdir -p "$work/$name"
  program darwin "$arch" "$work/$name/slipway" -ldflags "$LDFLAGS"
  carries no "$work/$name/slipway"
  cp -r "$work"/slipway-linux-{amd64,arm64} "$work/copyright" "$share/man" "$work/$name"
  dated "$work/$name"
  tarball "$name"
done

name=slipway_${VERSION}_windows_amd64
stage=$work/$name
mkdir -p "$stage"
cp "$work"/slipway-linux-{amd64,arm64} "$stage"
cp "$work/copyright" "$stage/copyright.txt"
program windows amd64 "$stage/slipway.exe" -ldflags "$LDFLAGS"
# The window has an icon and says that it knows screens of any density.
resource=rsrc_windows_amd64.syso
trap 'rm -f "$resource"' EXIT
go run github.com/tc-hib/go-winres@v0.3.3 simply --arch amd64 --manifest gui --icon "$work/slipway.ico" \
  --product-name Slipway --product-version "$VERSION" --file-version "$VERSION"
program windows amd64 "$stage/Slipway-Desktop.exe" -tags desktop,production -ldflags "$LDFLAGS -H windowsgui"
rm -f "$resource"
carries no "$stage/slipway.exe"
carries no "$stage/Slipway-Desktop.exe"
dated "$stage"
(cd "$work" && find "$name" -type f | sort | zip -qX "$out/$name.zip" -@)
makensis -V2 "-DOUTPUT=$out/${name}_setup.exe" "-DSTAGE=$stage" "-DICON=$work/slipway.ico" "-DVERSION=$VERSION" \
  build/packages/windows.nsi

# The bills of materials: of the programs for each system, and of the page.
for program in "slipway_${VERSION}_linux_amd64/bin" "slipway_${VERSION}_macos_arm64" "slipway_${VERSION}_windows_amd64"; do
  file=$work/$program/slipway
  [ -e "$file" ] || file=$file.exe
  name=${program%/bin}
  go run github.com/CycloneDX/cyclonedx-gomod/cmd/cyclonedx-gomod@v1.10.0 bin -json -noserial -notimestamp -std \
    -version "v$VERSION" -output "$out/${name%_*}.cdx.json" "$file" 2>"$work/bill.log" || { cat "$work/bill.log" >&2; exit 1; }
done
npm --prefix frontend sbom --sbom-format cyclonedx --sbom-type application --omit dev |
  node -e 'const bill = JSON.parse(require("fs").readFileSync(0)); delete bill.serialNumber; delete bill.metadata.timestamp
    console.log(JSON.stringify(bill, null, 2))' >"$out/slipway_${VERSION}_page.cdx.json"

(cd "$out" && sha256sum -- * >SHA256SUMS)
(cd "$out" && stat -c '%s %n' -- * | awk '{printf "  %-42s %6.1f MB\n", $2, $1 / 1e6}')
