#!/usr/bin/env bash
# Builds and tests the contracts, and holds the committed artifacts and gas figures against what the sources give.
# Needs node and npm, and Python's venv for the symbolic proofs.
set -euo pipefail
cd "$(dirname "$0")"

# Installed again if the lock file asks for other versions than those that are there.
npm ls --depth=0 >/dev/null 2>&1 || npm ci --no-audit --no-fund

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

echo "== properties that hold for all inputs"
tools/halmos
