"""Writes a program that reads and sends everything that a release has types for: use_types.py TYPES MODULE PROGRAM.

TYPES is what make_types.py makes of the release's document, MODULE the module that must still have these types. If mypy
accepts the program, so it does those of users.
"""

from __future__ import annotations

import ast
import sys
from pathlib import Path

HEAD = '''"""Uses every type of a release."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any, Literal

from {module} import *
'''


def members_of(statement: ast.ClassDef | ast.Call) -> dict[str, str]:
    """The members of a type and their types."""
    if isinstance(statement, ast.ClassDef):
        lines = [line for line in statement.body if isinstance(line, ast.AnnAssign)]
        return {ast.unparse(line.target): ast.unparse(line.annotation) for line in lines}
    members = ast.literal_eval(statement.args[1])
    return {str(name): str(value) for name, value in members.items()}


def read(name: str, members: dict[str, str]) -> list[str]:
    """A function that reads each member of an object."""
    lines = [f"    _{number}: {value} = found[{member!r}]" for number, (member, value) in enumerate(members.items())]
    return ["", "", f"def read_{name}(found: {name}) -> None:", *lines]


def send(name: str, members: dict[str, str]) -> list[str]:
    """A function that fills each parameter of a query."""
    given = ", ".join(f"{member}: {value}" for member, value in members.items())
    pairs = ", ".join(f"{member!r}: {member}" for member in members)
    return ["", "", f"def send_{name}({given}) -> {name}:", f"    return {{{pairs}}}"]


def main() -> None:
    """Writes the program."""
    types, module, program = sys.argv[1:]
    lines: list[str] = []
    bases: dict[str, dict[str, str]] = {}
    for statement in ast.parse(Path(types).read_text(encoding="utf-8")).body:
        if isinstance(statement, ast.AnnAssign) and statement.value is not None:
            name = ast.unparse(statement.target)
            lines += ["", "", f"def name_{name}(found: {name}) -> {ast.unparse(statement.value)}:", "    return found"]
            continue
        if isinstance(statement, ast.Assign) and isinstance(statement.value, ast.Call):
            name, members = ast.unparse(statement.targets[0]), members_of(statement.value)
        elif isinstance(statement, ast.ClassDef):
            name, members = statement.name, members_of(statement)
            for base in statement.bases:
                members = {**bases.get(ast.unparse(base), {}), **members}
            bases[name] = members
        else:
            continue
        if name.startswith("_"):
            continue
        lines += send(name, members) if name.endswith("Query") else read(name, members)
    Path(program).write_text(HEAD.format(module=module) + "\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
