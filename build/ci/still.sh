#!/usr/bin/env bash
# Runs a command while new network devices of this machine get no address of IPv6, as the
# near end of each container's cable would. Chromium drops what it loads
# (ERR_NETWORK_CHANGED) when the machine gets or loses an address.
#
#   build/ci/still.sh COMMAND…
set -euo pipefail
ipv6=/proc/sys/net/ipv6/conf/default/disable_ipv6
if [ -w "$ipv6" ] && [ "$(cat "$ipv6")" = 0 ]; then
    echo 1 >"$ipv6"
    trap 'echo 0 >"$ipv6"' EXIT
fi
"$@"
