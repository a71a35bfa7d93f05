#!/usr/bin/env bash
# Tests the crate: its units, the shared table of behaviors, the programs of README.md, its documentation and its package.
# scripts/clients sets the variables.
set -euo pipefail
cd "$(dirname "$0")"

# As a part of the workspace, so that dependencies are not compiled again with other features.
work=$(mktemp -d /tmp/foretell-rust.XXXXXX)
trap 'rm -rf "$work"' EXIT
cargo test --workspace --quiet --no-run --test behaviors --message-format=json >"$work/artifacts"
artifact() { # artifact NAME FIELD: the path of what was compiled
  jq -rs --arg name "$1" "[.[] | select(.reason == \"compiler-artifact\" and .target.name == \$name) | $2 | select(. != null)] | last" "$work/artifacts"
}
library() { artifact "$1" '(.filenames[] | select(endswith(".rlib")))'; }

"$(artifact behaviors .executable)"

# Its programs run as they are printed, except that they all are compiled at once.
client=$(library foretell_client)
rustdoc --test README.md --edition 2024 --crate-name readme --extern "foretell_client=$client" \
  --extern "tokio=$(library tokio)" -L "dependency=$(dirname "$client")" --test-args --quiet

cargo doc --quiet --no-deps --package foretell-client
cargo package --list --allow-dirty >"$work/files"
for file in Cargo.toml README.md AGENTS.md LICENSE-MIT LICENSE-APACHE src/lib.rs; do grep -qx "$file" "$work/files"; done
cargo package --no-verify --allow-dirty --quiet
