#!/usr/bin/env bash
# Builds Apptainer from the Go module proxy and prints the directory of its program. It
# takes about ten minutes, once: the result is kept in build/.cache/apptainer. Tests that
# find it there run containers by it as well. No distribution of the tests' has it.
set -euo pipefail
version=1.3.6
cache=$(mkdir -p "$(dirname "$0")/../.cache/apptainer" && cd "$(dirname "$0")/../.cache/apptainer" && pwd)
to=$cache/$version
if [ ! -e "$to/bin/apptainer" ]; then
    work=$(mktemp -d "$cache/work-XXXXXX")
    trap 'chmod -R u+w "$work"; rm -rf "$work"' EXIT
    # The database of checksums does not have it. The build has a cache of its own, which
    # its Makefile would empty halfway.
    export GONOSUMDB=* GOFLAGS=-mod=mod GOCACHE="$work/cache"
    mkdir "$work/none"
    from=$(cd "$work/none" && go mod download -json "github.com/apptainer/apptainer@v$version" |
        sed -n 's/^\t"Dir": "\(.*\)",$/\1/p')
    cp -r "$from" "$work/src"
    chmod -R u+w "$work/src"
    cd "$work/src"
    echo "$version" >VERSION
    find . \( -name '*.sh' -o -path './scripts/*' -o -path './mlocal/scripts/*' -o -path './makeit/*' -o -name mconfig \) \
        -exec chmod +x {} +
    sed -i '/clean -cache/d' mlocal/frags/build_runtime.mk
    # Where it is installed does not matter, because it finds its own files.
    made=$work/made/opt/apptainer
    targets=(bin/apptainer libexec/apptainer/bin/starter var/apptainer/mnt/session
        etc/apptainer/apptainer.conf etc/apptainer/capability.json etc/apptainer/ecl.toml)
    {
        ./mconfig --without-suid --without-seccomp --prefix=/opt/apptainer
        nice -n 19 make -C builddir "DESTDIR=$work/made" "${targets[@]/#/$made/}"
    } >"$cache/log" 2>&1 || { tail -n 20 "$cache/log" >&2; exit 1; }
    mv "$made" "$to"
fi
echo "$to/bin"
