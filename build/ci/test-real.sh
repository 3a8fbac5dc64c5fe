#!/usr/bin/env bash
# The tests that run with the test engine up (see docker.sh): all Go tests, then the
# browser against real containers. The browser tests without Docker have programs, ports
# and folders of their own, so they run beside these, and not beside the Go tests: what
# starts in a container must answer in a time that users are promised.
set -euo pipefail
cd "$(dirname "$0")/../.."
build/ci/test-go.sh -parallel 4
# Chromium drops what it loads (ERR_NETWORK_CHANGED) when this machine gets or loses
# an address, and the near end of each container's cable gets one of IPv6. So new
# devices get none while the browser tests run.
ipv6=/proc/sys/net/ipv6/conf/default/disable_ipv6
if [ -w "$ipv6" ] && [ "$(cat "$ipv6")" = 0 ]; then
    echo 1 >"$ipv6"
    trap 'echo 0 >"$ipv6"' EXIT
fi
e2e="npm --prefix frontend run --silent e2e -- --project"
build/ci/beside.sh "build/ci/offline.sh $e2e offline" "$e2e containers"
