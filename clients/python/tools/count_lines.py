"""Counts the lines of code that people maintain: count_lines.py MOST. Fails if there are more.

Not counted: generated modules, blank lines, comments and docstrings.
"""

from __future__ import annotations

import ast
import sys
import tokenize
from pathlib import Path

PACKAGE = Path(__file__).parent.parent / "src" / "foretell"
GENERATED = ("_sync", "types.py", "public_types.py")
NO_CODE = (tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER)


def docstrings(module: Path) -> set[int]:
    """The lines of strings that are statements."""
    tree = ast.parse(module.read_text(encoding="utf-8"))
    texts = [node for node in ast.walk(tree) if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)]
    return {line for text in texts for line in range(text.lineno, (text.end_lineno or text.lineno) + 1)}


def code(module: Path) -> set[int]:
    """The lines that contain code."""
    with tokenize.open(module) as file:
        tokens = [token for token in tokenize.generate_tokens(file.readline) if token.type not in NO_CODE]
    return {line for token in tokens for line in range(token.start[0], token.end[0] + 1)} - docstrings(module)


def main() -> None:
    """Prints the sum, and compares it with the limit."""
    modules = [path for path in PACKAGE.rglob("*.py") if not set(path.relative_to(PACKAGE).parts) & set(GENERATED)]
    lines = sum(len(code(module)) for module in modules)
    print(f"{lines} lines of code")
    if lines > int(sys.argv[1]):
        raise SystemExit(f"the client has {lines} lines of code, but must have at most {sys.argv[1]}")


if __name__ == "__main__":
    main()
