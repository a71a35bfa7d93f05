# The commands that contributors use most. `just` lists them.

_default:
    @just --list --unsorted

# Start a development service with demonstration data
dev *args:
    cargo run --release --bin foretell -- dev {{args}}

# Check formatting and lints
lint:
    cargo fmt --all --check
    cargo clippy --workspace --all-targets --quiet -- -D warnings

# Run the tests whose names contain a text, for example `just test usecases slippage::`
test target filter="":
    cargo test --workspace --test {{target}} -- {{filter}}

# Run the unit tests
unit filter="":
    cargo test --workspace --lib --bins -- {{filter}}

# Run everything that CI runs
ci:
    scripts/test

# Build and test the contracts
contracts:
    contracts/check.sh

# Plant each known bug and check that a test notices it
controls *ids:
    scripts/controls {{ids}}

# Compare the speed with the limits
bench *args:
    cargo bench --package foretell --bench service -- {{args}}

# Check what needs no compiler: text, scripts, workflows, dependencies
form *checks:
    scripts/form {{checks}}

# Check advisories, licenses and sources of dependencies. Downloads the database of advisories
deny:
    cargo deny check

# Find spelling mistakes and unused dependencies
tidy:
    typos
    cargo machete
