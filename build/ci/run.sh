#!/usr/bin/env bash
# Opens what was built: the window where there is a display, else serve with a
# printed one-time address. Docker where an engine answers, else simulated.
set -euo pipefail
if [ -n "${DISPLAY:-}${WAYLAND_DISPLAY:-}" ]; then
  exec build/bin/slipway-desktop --engine auto "$@"
fi
echo "slipway: no display here, so the interface is served to a browser instead of a window"
exec build/bin/slipway serve --engine auto "$@"
