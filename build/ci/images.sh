#!/usr/bin/env bash
# Makes images from the recipes in build/environments and loads them.
#
#   build/ci/images.sh [--force] [recipe…]   without names: those for the tests
#   build/ci/images.sh --filesystem recipe   prints the path of its tar file, without Docker
#
# An image is made of packages from the mirror that this machine's own apt
# uses, so no registry is needed. It is kept as build/.cache/images/*.tar under
# the hash of its recipe, and imported into DOCKER_HOST (or Docker's default)
# where that does not have it yet. --force makes it anew.
#
# A recipe has one entry a line:
#   image REF            the name of the image
#   packages NAME…       Debian packages beyond the essential ones
#   files NAME…          of these Debian packages only the files, without what they depend on
#   suite NAME           another release of Debian than this machine's
#   from RECIPE          the file system of that recipe instead
#   static DIR NAME      only one file: the Go program in DIR, as /NAME
#   script FILE DIR      what that script makes, with the Go program in DIR
#   change INSTRUCTION   a Dockerfile instruction for docker import
set -euo pipefail

repo=$(cd "$(dirname "$0")/../.." && pwd)
recipes=$repo/build/environments
cache=$repo/build/.cache/images
tests=(minimal notebook static user pip fakemodel)
export PATH=$PATH:/usr/sbin:/sbin:/usr/local/go/bin
force= only=

fail() { echo "images.sh: $*" >&2; exit 1; }
say() { echo "images.sh: $*" >&2; }
as_root() { if [ "$(id -u)" -eq 0 ]; then "$@"; else sudo --preserve-env=http_proxy,https_proxy,no_proxy "$@"; fi; }

# entry prints the rest of each line of a recipe that begins with a word.
entry() { sed -n "s/^$2[[:space:]]\{1,\}//p" "$recipes/$1.recipe"; }

# mirror prints the apt sources of this distribution that the machine uses,
# one a line, without those of third parties.
mirror() {
    local code
    code=$(. /etc/os-release && echo "$VERSION_CODENAME")
    apt-get indextargets --format '$(REPO_URI) $(RELEASE) $(COMPONENT)' 'Identifier: Packages' |
        sort -u | while read -r uri suite component; do
        case $suite in "$code" | "$code-updates" | "$code-security") ;; *) continue ;; esac
        case $component in main | universe) echo "deb $uri $suite $component" ;; esac
    done
}

install_missing() {
    local missing=()
    [ -n "$only" ] || command -v docker >/dev/null || missing+=(docker.io)
    command -v mmdebstrap >/dev/null || missing+=(mmdebstrap)
    [ ${#missing[@]} -eq 0 ] && [ -n "$(mirror)" ] && return
    command -v apt-get >/dev/null || fail "needs apt, on Debian or Ubuntu, to make images"
    { as_root apt-get update -qq && as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}"; } >&2
}

# root_tar writes the file system of a recipe with packages to a tar file.
root_tar() {
    local include suite files proxy from=(- -) option=()
    include=$(entry "$1" packages | tr -s ' \n' ',,' | sed 's/,$//')
    suite=$(entry "$1" suite)
    files=$(entry "$1" files)
    if [ -z "$suite" ]; then suite=$(. /etc/os-release && echo "$VERSION_CODENAME"); else from=(-); fi
    [ -z "$files" ] || option+=(--customize-hook="cd \"\$1/tmp\" &&
        apt-get -o Dir=\"\$1\" -o Dir::State::Lists=\"\$1/var/lib/apt/lists\" download -qq $files &&
        for one in *.deb; do dpkg -x \"\$one\" \"\$1\" && rm \"\$one\"; done")
    proxy=$(apt-config shell P Acquire::http::Proxy | sed "s/^P='\(.*\)'$/\1/")
    [ -z "$proxy" ] || option+=(--aptopt="Acquire::http::Proxy \"$proxy\"")
    # A mirror may be a copy that is some weeks old. What it has is signed all the same.
    as_root mmdebstrap --quiet --variant=essential --include="$include" \
        --aptopt='Acquire::Languages "none"' --aptopt='APT::Install-Recommends "false"' \
        --aptopt='Acquire::Check-Valid-Until "false"' "${option[@]}" \
        --dpkgopt='path-exclude=/usr/share/doc/*' --dpkgopt='path-exclude=/usr/share/man/*' \
        --dpkgopt='path-exclude=/usr/share/locale/*' --dpkgopt='path-exclude=/usr/share/info/*' \
        "$suite" "${from[@]}" >"$2" <<<"$sources"
}

# static_tar writes a tar file that holds one Go program and nothing else.
static_tar() {
    local dir name tree
    read -r dir name < <(entry "$1" static)
    tree=$(mktemp -d)
    (cd "$recipes/$dir" && CGO_ENABLED=0 GO111MODULE=off go build -trimpath -ldflags '-s -w' -o "$tree/$name" .)
    tar -C "$tree" --owner=0 --group=0 -cf "$2" "$name"
    rm -rf "$tree"
}

# script_tar writes the tar file that a recipe's script makes.
script_tar() {
    local script dir
    read -r script dir < <(entry "$1" script)
    "$repo/build/$script" "$2" "$recipes/$dir"
}

# hash prints what decides the content of a recipe's file system.
hash() {
    local base dir script
    base=$(entry "$1" from)
    if [ -n "$base" ]; then hash "$base"; return; fi
    read -r dir _ < <(entry "$1" static) || read -r script dir < <(entry "$1" script) || true
    {
        sed '/^change/d;/^#/d' "$recipes/$1.recipe"
        [ -z "${dir:-}" ] || cat "$recipes/$dir"/*.go
        if [ -n "${script:-}" ]; then cat "$repo/build/$script"; else echo "$sources"; fi
    } | sha256sum | cut -c1-12
}

# filesystem makes the tar file of a recipe where it is missing, and prints its path.
filesystem() {
    local base tar began=$SECONDS
    base=$(entry "$1" from)
    if [ -n "$base" ]; then filesystem "$base"; return; fi
    tar=$cache/$1-$(hash "$1").tar
    if [ ! -e "$tar" ] || [ -n "$force" ]; then
        say "making $1"
        rm -f "$cache/$1"-*.tar
        if [ -n "$(entry "$1" static)" ]; then
            static_tar "$1" "$tar.part"
        elif [ -n "$(entry "$1" script)" ]; then
            script_tar "$1" "$tar.part"
        else
            root_tar "$1" "$tar.part"
        fi
        mv "$tar.part" "$tar"
        say "made $1 in $((SECONDS - began)) s"
    fi
    echo "$tar"
}

# key prints what decides the content of a recipe's image.
key() { echo "$(hash "$1")-$(sha256sum <"$recipes/$1.recipe" | cut -c1-12)"; }

# loaded succeeds where Docker has the image of this very recipe.
loaded() {
    local have
    [ -z "$force" ] || return
    have=$(docker image inspect --format '{{index .Config.Labels "slipway.image.recipe"}}' "$(entry "$1" image)" 2>/dev/null) &&
        [ "$have" = "$(key "$1")" ]
}

# load imports a recipe's image.
load() {
    local ref tar old changes=() line
    ref=$(entry "$1" image)
    tar=$(filesystem "$1")
    while read -r line; do changes+=(--change "$line"); done < <(entry "$1" change)
    old=$(docker image inspect --format '{{.Id}}' "$ref" 2>/dev/null || true)
    docker import "${changes[@]}" --change "LABEL slipway.image.recipe=$(key "$1")" "$tar" "$ref" >/dev/null
    [ -z "$old" ] || docker image rm "$old" >/dev/null 2>&1 || true # nameless by now; kept while in use
    say "loaded $ref"
}

case ${1:-} in
--force) force=yes; shift ;;
--filesystem) only=yes; shift ;;
esac
[ $# -gt 0 ] || set -- "${tests[@]}"
install_missing
sources=$(mirror)
mkdir -p "$cache"
exec 9>"$cache/lock"
flock 9
if [ -n "$only" ]; then filesystem "$1"; exit; fi
docker version >/dev/null || fail "Docker does not answer; start one with build/ci/dockerd.sh start"
# Most of the time one waits for the network or has work for one processor, so they are made at the same time.
wanted=() makers=() failed=
for name; do
    [ -e "$recipes/$name.recipe" ] || fail "no recipe $name in $recipes"
    loaded "$name" || wanted+=("$name")
done
for base in $(for name in "${wanted[@]}"; do from=$(entry "$name" from); echo "${from:-$name}"; done | sort -u); do
    filesystem "$base" >/dev/null &
    makers+=($!)
done
for maker in "${makers[@]}"; do wait "$maker" || failed=yes; done
[ -z "$failed" ] || fail "an image could not be made"
force=
for name in "${wanted[@]}"; do load "$name"; done
