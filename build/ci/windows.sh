#!/usr/bin/env bash
# The tests of the program for Windows, which build/ci/wine.sh runs: what it is made of, the
# whole program as a client of this machine, and its demo in a browser of this machine.
set -euo pipefail
cd "$(dirname "$0")/../.."
dir=$PWD/build/.cache/windows
mkdir -p "$dir"

# Go removes what is in a folder that it holds as Windows 10 does, or in the older way where
# that is unknown. It does not know the words in which Wine 8 says so. What is tested here does.
source=$(go env GOROOT)/src/internal/syscall/windows/at_windows.go
sed 's/case STATUS_INVALID_INFO_CLASS,/& NTStatus(0xC0000002),/' "$source" >"$dir/at_windows.go"
! cmp -s "$source" "$dir/at_windows.go" || { echo "windows.sh: Go removes otherwise by now" >&2; exit 1; }
printf '{"Replace":{"%s":"%s"}}' "$source" "$dir/at_windows.go" >"$dir/overlay.json"
export GOFLAGS="${GOFLAGS:-} -overlay=$dir/overlay.json"

for part in tunnel/pipe=. backend/autostart=TheValue; do
    package=${part%=*}
    test=$dir/${package##*/}.exe
    GOOS=windows GOARCH=amd64 CGO_ENABLED=0 go test -c -vet off -o "$test" "./$package"
    (cd "$package" && "$SLIPWAY_TEST_WINE" "$test" -test.run "${part#*=}" -test.timeout 1m)
done
GOOS=windows GOARCH=amd64 CGO_ENABLED=0 go build -o "$dir/slipway.exe" slipway
go test -count 1 -vet off -run TheProgramForWindows ./backend
# The browser tests start it as if it were of this system: folders are named as Windows does.
cat >"$dir/slipway" <<'SH'
#!/usr/bin/env bash
windows() { echo "Z:${1//\//\\}"; }
SLIPWAY_HOME=$(windows "$SLIPWAY_HOME")
export SLIPWAY_HOME
words=()
for word; do
    [ ! -d "$word" ] || word=$(windows "$word")
    words+=("$word")
done
exec "$SLIPWAY_TEST_WINE" "$(dirname "$0")/slipway.exe" "${words[@]}"
SH
chmod +x "$dir/slipway"
SLIPWAY_BIN=$dir/slipway npm --prefix frontend run --silent e2e -- --project thorough demo
