"""The programs of the README run as they are printed."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from conftest import KEY, SERVICE

README = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")
PROGRAMS = re.findall(r"^```python\n(.*?)^```$", README, re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize("number", range(len(PROGRAMS)))
def test_a_program_of_the_readme_runs(
    number: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("FORETELL_BASE_URL", SERVICE)
    monkeypatch.setenv("FORETELL_API_KEY", KEY)
    program = PROGRAMS[number]
    exec(compile(program, f"README program {number}", "exec"), {"__name__": "program"})
    printed = capsys.readouterr().out
    assert KEY not in printed
    assert printed or "print(" not in program or "def receive" in program
