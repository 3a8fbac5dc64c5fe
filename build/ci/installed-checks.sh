#!/usr/bin/env bash
# What installed.sh checks inside a clean system: the package is installed, used, upgraded, removed and purged.
set -euo pipefail
failed=0
image=slipway-test/notebook:1

seconds() { awk -v a="$1" -v b="$EPOCHREALTIME" 'BEGIN {printf "%.1f", b - a}'; }

# check prints a line about what a command came to, and what it said if it failed.
check() {
  local what=$1 said start=$EPOCHREALTIME
  shift
  if said=$("$@" 2>&1); then
    echo "$CODE: ok      $what ($(seconds "$start") s)"
  else
    failed=1
    printf '%s: FAILED  %s\n%s\n' "$CODE" "$what" "$said"
  fi
}

# eventually repeats a command for at most 60 s.
eventually() {
  local until=$((SECONDS + 60))
  while ! "$@" >/dev/null 2>&1; do
    [ $SECONDS -lt $until ] || { echo "not within 60 s: $*"; return 1; }
    sleep 0.2
  done
}

# answers succeeds if an address on the loopback answers with a page. A clean system has no curl.
answers() {
  local rest=${1#http://}
  local host=${rest%%/*}
  exec 3<>"/dev/tcp/127.0.0.1/${host##*:}"
  printf 'GET /%s HTTP/1.0\r\nHost: %s\r\n\r\n' "${rest#*/}" "$host" >&3
  timeout 10 head -n 1 <&3 | grep -E '^HTTP/1.[01] (200|30[2378]) '
}

# address prints the first address in a file.
address() { grep -oEm 1 'http://[^ ]+:[0-9]+/[^ ]*' "$1"; }

install_file() { apt-get install -y -qq --no-install-recommends -o Dpkg::Use-Pty=0 "$1"; }
recommends_an_engine() { apt-get install -s /packages/slipway.deb | grep '^Inst docker.io '; }
version_is() { [ "$(dpkg-query -W -f='${Version}' slipway)" = "$1" ] && slipway version; }

is_complete() {
  local file
  for file in man/man1/slipway.1.gz bash-completion/completions/slipway zsh/vendor-completions/_slipway \
    fish/vendor_completions.d/slipway.fish mime/packages/slipway.xml applications/slipway.desktop \
    metainfo/slipway.metainfo.xml doc/slipway/copyright icons/hicolor/scalable/apps/slipway.svg \
    icons/hicolor/256x256/apps/slipway.png; do
    [ -s "/usr/share/$file" ] || { echo "/usr/share/$file is missing"; return 1; }
  done
  ls /usr/lib/slipway/slipway-linux-*
}

# doctor_runs leaves the verdict to the machine: without systemd and a keyring some checks warn.
doctor_runs() { slipway doctor || [ $? -eq 1 ]; }

demo_serves() {
  local demo result=0
  slipway demo >/tmp/demo 2>&1 &
  demo=$!
  { eventually address /tmp/demo && answers "$(address /tmp/demo)"; } || { cat /tmp/demo; result=1; }
  kill -INT "$demo"
  wait "$demo" || true
  return "$result"
}

# serves also says that a server without Docker is one.
serves() {
  local result=0
  SLIPWAY_HOME=/tmp/simulated slipway serve --engine sim --detach >/tmp/serve 2>&1 && SLIPWAY_HOME=/tmp/simulated slipway ps || result=1
  SLIPWAY_HOME=/tmp/simulated slipway shutdown
  [ "$result" -eq 0 ] || cat /tmp/serve
  return "$result"
}

notebook() {
  slipway run --name first --cpu 1 --mem 512m --wait "$image" && slipway open first >/tmp/notebook &&
    answers "$(address /tmp/notebook)"
}
first_notebook() { install_file /packages/earlier.deb && notebook; }

window_shows() {
  apt-get install -y -qq --no-install-recommends -o Dpkg::Use-Pty=0 xvfb xdotool
  local -x DISPLAY=:77
  [ "$CODE" != trixie ] || DISPLAY=:78 # both may be checked at the same time
  Xvfb "$DISPLAY" -screen 0 1280x900x24 -nolisten tcp >/tmp/screen 2>&1 &
  local screen=$! window result=0
  slipway-desktop >/tmp/window 2>&1 &
  window=$!
  # The page sets this title when it shows the sessions.
  eventually xdotool search --name '· Slipway$' || { cat /tmp/window; result=1; }
  kill "$window" "$screen"
  wait "$window" "$screen" || true
  return "$result"
}

# still_runs succeeds if the session is the one that was launched before, and a command runs in it.
still_runs() { slipway ps | grep -w first && [ "$(slipway exec first -- cat /tmp/mark)" = before ]; }
marks() { slipway exec first -- sh -c 'echo before >/tmp/mark'; }
# upgrades takes the new version from the repository, which offers it first.
upgrades() {
  echo 'deb [trusted=yes] file:/packages/apt stable main' >/etc/apt/sources.list.d/release.list
  apt-get update -qq &&
    apt-get upgrade -s | grep "^Inst .*\[0.0.1\] ($VERSION Slipway:stable" &&
    apt-get install -y -qq --only-upgrade -o Dpkg::Use-Pty=0 slipway && version_is "$VERSION" && still_runs
}
restarts() { slipway shutdown && still_runs; }
ends() { slipway stop first --yes && slipway shutdown; }

# leaves_only_data fails if a file of the package is left anywhere.
leaves_only_data() {
  apt-get "$1" -y -qq slipway
  local left
  left=$(find /usr /etc /var /opt -xdev -name '*slipway*' ! -path '/var/cache/apt/*' ! -path '/var/log/*')
  [ -z "$left" ] || { echo "$left"; return 1; }
  [ -d "$HOME/.local/share/slipway" ]
}

trap 'slipway shutdown >/dev/null 2>&1 || true' EXIT
apt-get update -qq
check "an engine is recommended" recommends_an_engine
check "from the package to a notebook that answers" first_notebook
check "an earlier version is installed" version_is 0.0.1
check "programs, pages, completions, icons are there" is_complete
check "doctor" doctor_runs
check "demo serves its page" demo_serves
check "serve, simulated" serves
check "the window shows the page" window_shows
check "a mark in the session" marks
check "an upgrade from the repository keeps the session" upgrades
check "a restart of the new version keeps the session" restarts
check "the session ends" ends
check "remove leaves only data" leaves_only_data remove
check "install again" install_file /packages/slipway.deb
check "purge leaves only data" leaves_only_data purge
exit "$failed"
