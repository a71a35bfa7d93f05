# shellcheck shell=bash
[ -d "$ROOT/tools/reference/node_modules" ] || npm --prefix "$ROOT/tools/reference" ci --no-audit --no-fund --silent
node "$ROOT/tools/examples/website.mjs" "http://127.0.0.1:$PORT" "$FORETELL_BASE_URL" "${CHROMIUM:-/usr/bin/chromium}"
