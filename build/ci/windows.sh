#!/usr/bin/env bash
# The tests of the program for Windows, which build/ci/wine.sh runs: what it is made of, and the
# whole program as a client of this machine.
set -euo pipefail
cd "$(dirname "$0")/../.."
# Only tests without folders of their own: this Wine cannot remove those.
for part in tunnel/pipe=. backend/autostart=TheValue; do
    package=${part%=*}
    test=$PWD/build/.cache/windows-${package##*/}.exe
    GOOS=windows GOARCH=amd64 CGO_ENABLED=0 go test -c -vet off -o "$test" "./$package"
    (cd "$package" && "$SLIPWAY_TEST_WINE" "$test" -test.run "${part#*=}" -test.timeout 1m)
done
go test -count 1 -vet off -run TheProgramForWindows ./backend
