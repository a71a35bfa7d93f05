#!/usr/bin/env bash
# Builds the package from FORETELL_OPENAPI, and runs its tests from the packed tarball. scripts/clients sets the variables.
set -euo pipefail
cd "$(dirname "$0")"

[ node_modules/.package-lock.json -nt package-lock.json ] || npm ci --no-audit --no-fund --silent
npm run --silent generate >/dev/null
npm run --silent build
# The build has checked the types.
npm run --silent docs -- --logLevel Warn --emit none --skipErrorChecking

work=$(mktemp -d /tmp/foretell-typescript.XXXXXX)
trap 'rm -rf "$work"' EXIT

# A program for the types of a release compiles with those of today.
mkdir "$work/types"
cp src/generated.ts tests/types/compatible.ts "$work/types"
for document in ../../docs/openapi/trading-api-[0-9]*.json; do
  npm exec -- openapi-typescript "$document" --output "$work/types/released.ts" >/dev/null
  npm exec -- tsc --noEmit --strict --exactOptionalPropertyTypes --module nodenext --target es2022 "$work/types/compatible.ts"
done

# The tests import the package as a user would.
npm pack --silent --pack-destination "$work" >/dev/null
cp -r tests README.md tsconfig.json "$work"
cp -r ../behaviors "$work/behaviors"
cd "$work"
printf '{ "name": "user", "private": true, "type": "module" }\n' >package.json
npm install --no-audit --no-fund --silent --offline ./*.tgz
# The README tells users to install these types.
cp -r "$OLDPWD/node_modules/@types" "$OLDPWD/node_modules/undici-types" node_modules/
PATH=$OLDPWD/node_modules/.bin:$PATH node --test --test-concurrency=1 --test-reporter="${FORETELL_REPORTER:-dot}" tests/*.test.mjs
