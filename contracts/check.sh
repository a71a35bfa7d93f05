#!/usr/bin/env bash
# Builds and tests the contracts, and holds the committed artifacts and gas figures against what the sources give.
# Needs node and npm, nothing else.
set -euo pipefail
cd "$(dirname "$0")"

[ -d node_modules ] || npm ci --no-audit --no-fund

echo "== artifacts"
fresh=$(mktemp -d)
trap 'rm -rf "$fresh"' EXIT
node tools/artifacts.js "$fresh"
if ! diff -rq artifacts "$fresh"; then
  echo "artifacts/ is not what src/ compiles to: run 'npm run build' and commit it" >&2
  exit 1
fi

echo "== tests"
npm test --silent

echo "== gas of whole transactions"
npm run gas --silent
