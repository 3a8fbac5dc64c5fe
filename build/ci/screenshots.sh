#!/usr/bin/env bash
# Makes the pictures of build/docs anew, from the built program over the
# simulated engine.
set -euo pipefail
cd "$(dirname "$0")/../../frontend"
command -v img2webp >/dev/null || { echo "slipway: img2webp is missing; install the package webp" >&2; exit 1; }
npx vitest run --config e2e/screenshots.config.ts
ls -l ../build/docs/pictures
