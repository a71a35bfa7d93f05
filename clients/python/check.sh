#!/usr/bin/env bash
# Checks the Python client: its form and types, its unit tests, its wheel in a fresh environment, the shared behaviors and
# the load. scripts/clients starts the service and the proxy, and sets the variables.
#
# FORETELL_WRITE_CLIENTS=1 writes the modules that are generated. FORETELL_PYTHONS names further interpreters for the unit
# tests, such as "python3.10 python3.13". Needs Python with venv.
set -euo pipefail
cd "$(dirname "$0")"
tools=$(realpath ../..)/.tools/clients-python
work=$(mktemp -d /tmp/foretell-python.XXXXXX)
trap 'rm -rf "$work"' EXIT

# The tools, and wheels for environments of tests: installed again when a version changes.
if ! cmp -s requirements-dev.txt "$tools/requirements-dev.txt"; then
  python3 -m venv --clear "$tools"
  "$tools/bin/pip" install --quiet --disable-pip-version-check -r requirements-dev.txt
  "$tools/bin/pip" wheel --quiet --disable-pip-version-check --wheel-dir "$tools/wheels" -r requirements-test.txt
  cp requirements-dev.txt "$tools/"
fi
export PATH=$tools/bin:$PATH PYTHONDONTWRITEBYTECODE=1

# What is generated is what the service and the asynchronous client say.
"$FORETELL_BINARY" openapi --public >"$work/public.json"
python tools/make_types.py "$FORETELL_OPENAPI" "$work/types.py"
python tools/make_types.py "$work/public.json" "$work/public_types.py"
ruff format --quiet --config pyproject.toml "$work"/*.py
if [ -n "${FORETELL_WRITE_CLIENTS:-}" ]; then
  cp "$work"/*types.py src/foretell/
  python tools/unasync.py
fi
for module in types public_types; do
  cmp "$work/$module.py" "src/foretell/$module.py" || {
    echo "the API has changed: run FORETELL_WRITE_CLIENTS=1 scripts/clients python" >&2
    exit 1
  }
done
python tools/unasync.py --check
python tools/count_lines.py 1500
ruff check --quiet .
ruff format --quiet --check .
mypy --no-error-summary --package foretell
mypy --no-error-summary tests tools
# A program that uses every type of a release has no error with the types of today. Its folder has no types.py, which
# would hide the module of Python.
mkdir "$work/uses"
for module in trading-api:types public-read-api:public_types; do
  for document in ../../docs/openapi/"${module%:*}"-[0-9]*.json; do
    python tools/make_types.py "$document" "$work/released.py"
    python tools/use_types.py "$work/released.py" "foretell.${module#*:}" "$(mktemp "$work/uses/use_XXXXXX.py")"
  done
done
mypy --no-error-summary "$work"/uses/*.py

# The tests import the wheel, as a user would.
python -m build --no-isolation --wheel --outdir "$work" . >"$work/log" || { cat "$work/log"; exit 1; }
run_tests() { # run_tests PYTHON TESTS...: in a fresh environment of this interpreter
  local fresh=$work/${1##*/}
  "$1" -m venv --without-pip "$fresh"
  pip --python "$fresh/bin/python" install --quiet --disable-pip-version-check --no-index --find-links "$tools/wheels" \
    "$work"/*.whl pytest
  shift
  "$fresh/bin/python" -m pytest --show-capture=no "$@"
}
for interpreter in ${FORETELL_PYTHONS:-}; do run_tests "$interpreter" tests/unit; done
run_tests python3 tests

# The reference, with every public name.
PYTHONPATH=src pdoc --docformat google --output-directory "$work/reference" foretell foretell.types foretell.public_types foretell.errors foretell.webhooks \
  2>"$work/log" || { cat "$work/log"; exit 1; }
grep -q create_and_wait "$work/reference/foretell.html"
