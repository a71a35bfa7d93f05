"""Makes the synchronous client out of the asynchronous one: unasync.py [--check].

Replaces words, nothing else, so both clients do the same. `--check` fails if the result differs from what is there.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from pathlib import Path

PACKAGE = Path(__file__).parent.parent / "src" / "foretell"
HEAD = "# Generated from _async by tools/unasync.py.\n"

WORDS = [
    (r"AsyncGenerator\[([^\[\]]*(?:\[[^\[\]]*\])?[^\[\]]*), None\]", r"Generator[\1, None, None]"),
    (r"Awaitable\[(Page\[_T\])\]", r"\1"),
    (r"collections\.abc import (.*)\bAwaitable, ", r"collections.abc import \1"),
    (r"\basync (def|with|for)\b", r"\1"),
    (r"\bawait ", ""),
    (r"\basynccontextmanager\b", "contextmanager"),
    (r"\basync_sleep\b", "sleep"),
    (r"\bAsyncBaseTransport\b", "BaseTransport"),
    (r"\bAsyncClient\b", "Client"),
    (r"\baiter_bytes\b", "iter_bytes"),
    (r"\baclose\b", "close"),
    (r"__a(enter|exit|iter|next)__", r"__\1__"),
    (r"\bAsync([A-Z])", r"\1"),
    (r"The asynchronous client\. [^\"]*", "The synchronous client."),
]


def convert(text: str) -> str:
    """The synchronous form of a module."""
    for pattern, replacement in WORDS:
        text = re.sub(pattern, replacement, text, flags=re.MULTILINE)
    return HEAD + text


def generate(folder: Path) -> None:
    """Writes the synchronous modules, as ruff formats them."""
    for source in (PACKAGE / "_async").glob("*.py"):
        (folder / source.name).write_text(convert(source.read_text(encoding="utf-8")), encoding="utf-8")
    config = ["--quiet", "--config", str(PACKAGE.parent.parent / "pyproject.toml"), str(folder)]
    for command in (["check", "--fix", "--exit-zero", "--select", "I"], ["format"]):
        subprocess.run([sys.executable, "-m", "ruff", *command, *config], check=True)


def main() -> None:
    """Writes or checks every module."""
    target = PACKAGE / "_sync"
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "foretell" / "_sync"
        folder.mkdir(parents=True)
        generate(folder)
        made = {path.name: path.read_text(encoding="utf-8") for path in sorted(folder.glob("*.py"))}
    present = {path.name: path.read_text(encoding="utf-8") for path in sorted(target.glob("*.py"))}
    if "--check" not in sys.argv:
        for name, text in made.items():
            (target / name).write_text(text, encoding="utf-8")
    elif different := sorted(name for name in made.keys() | present.keys() if made.get(name) != present.get(name)):
        raise SystemExit(f"run tools/unasync.py: {', '.join(different)} differ from the asynchronous client")


if __name__ == "__main__":
    main()
