#!/usr/bin/env bash
# What takes too long for every change: lint, the longest browser tests, the program for
# Windows under Wine, what Podman cannot do, engines that a user runs, what needs a Slurm
# cluster, then the Go tests under the race detector, those among them that need a Docker
# Engine of today or a model server, which are built from source. What needs the cluster
# mostly waits for it, so the rest runs beside it. The packages are made in what time of the
# processors all of that leaves; then they are installed.
set -euo pipefail
cd "$(dirname "$0")/../.."
go=(go test -race -count 1 -ldflags=-w -vet off)
case ${1:-} in
cluster)
    # One package at a time has the cluster. What it finds there is no input that is cached.
    build/ci/slurm.sh "${go[@]}" -p 1 -timeout 20m ./backend/engine/slurm/...
    build/ci/slurm.sh build/ci/docker.sh npm --prefix frontend run --silent e2e -- --project cluster
    ;;
others)
    build/ci/offline.sh npm --prefix frontend run --silent e2e -- --project thorough
    # The tests must compile where they do not run.
    go run ./build/compiles windows darwin
    build/ci/wine.sh build/ci/windows.sh
    engine=("${go[@]}" ./backend/engine/docker -timeout)
    build/ci/podman.sh "${engine[@]}" 5m -run TestPodman
    build/ci/rootless.sh podman "${engine[@]}" 5m -run TestPodman
    SLIPWAY_TEST_PODMAN=verify build/ci/rootless.sh docker "${engine[@]}" 10m \
        -run 'TestOthers|TestEngineKeepsItsPromises/with_the_real_guest'
    export SLIPWAY_TEST_SLURM=verify SLIPWAY_TEST_WINE=verify SLIPWAY_TEST_PODMAN=verify
    exec build/ci/docker.sh build/ci/verify.sh with-images
    ;;
with-images)
    build/ci/images.sh llama lab notebook7
    npm --prefix frontend run --silent e2e -- --project images
    export SLIPWAY_TEST_MODEL=slipway-test/llama:1
    exec build/ci/modern.sh build/ci/verify.sh race
    ;;
race)
    # What draws its stories by chance shows no more races in more of them, and the tools
    # under build run alone.
    stories=(slipway/backend/{idle,scheduler,serving,slurm})
    export SLIPWAY_TEST_SEEDS=4
    build/ci/test-go.sh -race -short "${stories[@]}"
    # The program itself is never built with the race detector.
    go test -count 1 -vet off ./backend/cli -run 'TestTwentyProjectsBecomeSessions/Docker_of_today'
    packages=$(go list . ./app/... ./backend/... ./gpu/... ./tunnel/... ./build/bench/... |
        grep -vxF "$(printf '%s\n' "${stories[@]}")")
    mapfile -t packages <<<"$packages"
    exec build/ci/test-go.sh -race "${packages[@]}"
    ;;
lint-and-package)
    build/ci/lint.sh
    exec make package
    ;;
installed)
    build/ci/docker.sh build/ci/beside.sh "build/ci/installed.sh bookworm" "build/ci/installed.sh trixie"
    exec build/ci/wine.sh build/ci/installed-windows.sh
    ;;
*)
    build/ci/setup.sh modern package podman wine # which one at a time can do
    build/ci/still.sh build/ci/beside.sh "nice -n 10 build/ci/verify.sh lint-and-package" \
        "build/ci/beside.sh 'build/ci/verify.sh cluster' 'build/ci/verify.sh others'"
    exec build/ci/verify.sh installed
    ;;
esac
