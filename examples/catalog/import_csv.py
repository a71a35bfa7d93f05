"""Imports threads and markets from a CSV file, as a spreadsheet saves it.

    python3 import_csv.py markets.csv --dry-run    # check, and show what would be created
    python3 import_csv.py markets.csv              # create it

It writes a catalog and runs `foretell admin import`, on the machine of the service. `FORETELL_DATA_DIR` and the other
settings of `foretell` apply. It needs only Python. README.md describes the columns.

To change markets, edit the file and run the same command again: nothing is created twice, because the column `key`
identifies a market. A run that was killed is continued by the next one.
"""

from __future__ import annotations

import argparse
import csv
import hashlib
import json
import re
import subprocess
import sys
import tempfile
import unicodedata
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any

COLUMNS = {"key", "thread", "question", "outcomes", "liquidity", "fee_percent", "trading_ends"}
OPTIONAL = {"odds", "category", "tags", "description", "thread_key"}


class Fault(Exception):
    """A fault of the file, for people."""


def words(text: str) -> list[str]:
    """The parts of a cell such as `Yes|No`."""
    return [part.strip() for part in text.split("|") if part.strip()]


def key_of(title: str) -> str:
    """The key of a thread. A new title is a new thread.

    `Town hall` has the key `town-hall`. If words of a-z and 0-9 cannot say the whole title, a part of its hash follows.
    Otherwise `C` and `C++`, or two titles in Cyrillic, would be one thread.
    """
    folded = " ".join(unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", title).lower()).split())
    key = re.sub(r"[^a-z0-9]+", "-", folded).strip("-")
    if key == folded.replace(" ", "-") and len(key) <= 100:
        return key
    digest = hashlib.sha256(folded.encode()).hexdigest()[:12]
    return f"{key[:80]}-{digest}".strip("-")


def hundredths(text: str) -> int:
    """A percentage in hundredths of a percent, exactly."""
    try:
        value = Decimal(text) * 100
    except InvalidOperation:
        raise Fault(f"fee_percent must be a number such as 1.5, got {text!r}") from None
    if value != value.to_integral_value():
        raise Fault(f"fee_percent must have at most two decimals, got {text!r}")
    return int(value)


def market_of(row: dict[str, str]) -> dict[str, Any]:
    """A row as a market of the catalog. The service checks the values."""
    market: dict[str, Any] = {
        "key": row["key"],
        "thread": row.get("thread_key") or key_of(row["thread"]),
        "question": row["question"],
        "outcomes": words(row["outcomes"]),
        # Decimals stay strings, so that none is rounded.
        "liquidity": row["liquidity"],
        "feeBps": hundredths(row["fee_percent"]),
        "endTime": row["trading_ends"],
    }
    optional = {
        "openingOdds": words(row.get("odds", "")),
        "category": row.get("category", ""),
        "tags": words(row.get("tags", "")),
        "description": row.get("description", ""),
    }
    return market | {name: value for name, value in optional.items() if value}


def read(file: Path) -> tuple[dict[str, Any], dict[str, list[int]]]:
    """The catalog of a file, and the lines of its threads and markets."""
    threads: dict[str, dict[str, Any]] = {}
    markets: list[dict[str, Any]] = []
    lines: dict[str, list[int]] = {"threads": [], "markets": []}
    # Spreadsheets begin UTF-8 files with a mark, which is not a part of the first column.
    with file.open(encoding="utf-8-sig", newline="") as source:
        rows = csv.DictReader(source, strict=True)
        names = set(rows.fieldnames or ())
        if missing := COLUMNS - names:
            raise Fault(f"these columns are missing: {', '.join(sorted(missing))}")
        if unknown := names - COLUMNS - OPTIONAL:
            raise Fault(f"these columns are unknown: {', '.join(sorted(unknown))}")
        for cells in rows:
            try:
                if None in cells or None in cells.values():
                    raise Fault("must have a cell for each column")
                row = {name: text.strip() for name, text in cells.items()}
                if empty := [name for name in COLUMNS if not row[name]]:
                    raise Fault(f"{', '.join(sorted(empty))} must not be empty")
                market = market_of(row)
                thread = {"key": market["thread"], "title": row["thread"]}
                if threads.get(thread["key"], thread) != thread:
                    title = threads[thread["key"]]["title"]
                    raise Fault(f"thread must be written like {title!r} above, got {row['thread']!r}")
            except Fault as fault:
                raise Fault(f"line {rows.line_num}: {fault}") from None
            if thread["key"] not in threads:
                threads[thread["key"]] = thread
                lines["threads"].append(rows.line_num)
            markets.append(market)
            lines["markets"].append(rows.line_num)
    return {"threads": list(threads.values()), "markets": markets}, lines


def explain(output: str, lines: dict[str, list[int]]) -> str:
    """The service's faults, with lines of the CSV file instead of places in the catalog."""
    try:
        error = json.loads(output.splitlines()[-1])["error"]
    except (IndexError, KeyError, ValueError):
        return output
    faults = [error["message"].partition("\n")[0]]
    for problem in error.get("problems", []):
        place = re.match(r"/(threads|markets)/([0-9]+)(.*)", problem["path"])
        where = f"line {lines[place[1]][int(place[2])]}{place[3]}" if place else problem["path"]
        faults.append(f"{where}: {problem['detail']}")
    return "\n".join(faults)


def main() -> None:
    parser = argparse.ArgumentParser(description="Imports threads and markets from a CSV file.")
    parser.add_argument("file", type=Path)
    parser.add_argument("--dry-run", action="store_true", help="check, and create nothing")
    parser.add_argument("--foretell", default="foretell", help="the program of the service")
    args = parser.parse_args()
    try:
        catalog, lines = read(args.file)
    except (Fault, csv.Error, OSError, UnicodeDecodeError) as fault:
        raise SystemExit(f"{args.file}: {fault}") from None
    with tempfile.NamedTemporaryFile("w", suffix=".json", encoding="utf-8") as written:
        json.dump(catalog, written)
        written.flush()
        options = ["--dry-run"] if args.dry_run else []
        command = [args.foretell, "admin", "--json", "import", written.name, *options]
        try:
            run = subprocess.run(command, capture_output=True, text=True, check=False)
        except FileNotFoundError:
            raise SystemExit(f"{args.foretell} must be in the PATH, or be named with --foretell") from None
    if run.returncode != 0:
        raise SystemExit(f"{args.file}: {explain(run.stdout or run.stderr, lines)}")
    sys.stdout.write(run.stdout)


if __name__ == "__main__":
    main()
