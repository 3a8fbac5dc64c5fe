#!/usr/bin/env bash
# A Docker Engine of today with a made-up NVIDIA device, for tests of handing in
# devices by CDI where there is neither a new Docker nor a device.
#
#   build/ci/moderndocker.sh start    builds dockerd and runc once, into build/.cache/modern,
#                                     starts it, loads the images minimal and pip
#   build/ci/moderndocker.sh stop     stops it
#   build/ci/moderndocker.sh status   prints DOCKER_HOST=… and exits 0 if it answers
#   build/ci/moderndocker.sh host     prints its address, running or not
#
# It stands beside any other daemon, as dockerd.sh has it. Its devices are in
# build/.cache/modern/cdi: those of SLIPWAY_TEST_GPUS (UUIDs, with spaces), or
# two and a MIG instance. A container that gets one has FAKE_GPU_<n>=<UUID> and the file
# /run/fake-gpu/<UUID>.
set -euo pipefail

repo=$(cd "$(dirname "$0")/../.." && pwd)
modern=$repo/build/.cache/modern
dockerd=v2.0.0-beta.24
runc=v1.2.6
gpus=${SLIPWAY_TEST_GPUS:-GPU-11111111-aaaa-4000-8000-000000000001 GPU-22222222-bbbb-4000-8000-000000000002 MIG-33333333-cccc-4000-8000-000000000003}
export PATH=$PATH:/usr/local/go/bin
export SLIPWAY_DOCKERD=$modern/state SLIPWAY_DOCKERD_BIN=$modern/bin SLIPWAY_DOCKERD_CONFIG=$modern/daemon.json

# install builds a program of another module, unless that version is there.
install() {
    local name=$1 version=$2 package=$3 tags=${4:-}
    [ "$(cat "$modern/bin/$name.version" 2>/dev/null)" = "$version $tags" ] && [ -x "$modern/bin/$name" ] && return
    local began=$SECONDS
    echo "moderndocker.sh: building $name $version" >&2
    # Outside the module, so that its requirements do not count.
    (cd "$modern" && GOFLAGS=-mod=mod GOBIN=$modern/bin go install -trimpath -tags "$tags" -ldflags '-s -w' "$package@$version") >"$modern/$name.log" 2>&1 ||
        { tail -n 20 "$modern/$name.log" >&2; exit 1; }
    echo "$version $tags" >"$modern/bin/$name.version"
    echo "moderndocker.sh: built $name in $((SECONDS - began)) s" >&2
}

build() {
    mkdir -p "$modern/bin"
    # BuildKit gives each step a seccomp profile, whatever the daemon's configuration says.
    "$repo/build/ci/setup.sh" modern
    install runc "$runc" github.com/opencontainers/runc seccomp
    install dockerd "$dockerd" github.com/moby/moby/v2/cmd/dockerd
}

# specification writes the CDI specification of the made-up devices.
specification() {
    local uuid number=0 separator=
    mkdir -p "$modern/cdi" "$modern/gpus"
    echo '{"cdiVersion":"0.6.0","kind":"nvidia.com/gpu","devices":['
    for uuid in $gpus; do
        echo "$uuid" >"$modern/gpus/$uuid"
        printf '%s{"name":"%s","containerEdits":{"env":["FAKE_GPU_%d=%s"],"mounts":[{"hostPath":"%s","containerPath":"/run/fake-gpu/%s","options":["ro","bind"]}]}}\n' \
            "$separator" "$uuid" "$number" "$uuid" "$modern/gpus/$uuid" "$uuid"
        number=$((number + 1)) separator=,
    done
    echo ']}'
}

start() {
    build
    mkdir -p "$modern/cdi"
    specification >"$modern/cdi/nvidia.json.new"
    mv "$modern/cdi/nvidia.json.new" "$modern/cdi/nvidia.json"
    echo "{\"cdi-spec-dirs\": [\"$modern/cdi\"], \"features\": {\"containerd-snapshotter\": false}}" >"$modern/daemon.json"
    "$repo/build/ci/dockerd.sh" start
    DOCKER_HOST=$("$repo/build/ci/dockerd.sh" host) "$repo/build/ci/images.sh" minimal pip
}

mkdir -p "$modern"
case ${1:-} in
start) start ;;
stop | host | status) "$repo/build/ci/dockerd.sh" "$1" ;;
*)
    sed -n '2,/^set/s/^# \{0,1\}//p' "$0" >&2
    exit 2
    ;;
esac
