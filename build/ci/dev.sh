#!/usr/bin/env bash
# Serves the control plane and lets Vite serve the interface from source, with
# reloading; Vite passes /api and /login on to the control plane.
set -euo pipefail
build/bin/slipway serve --engine auto &
serve=$!
trap 'kill "$serve" 2>/dev/null || true' EXIT
cd frontend && npm run dev
