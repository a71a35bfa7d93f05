"""The programs of the README run as they are printed."""

from __future__ import annotations

import hashlib
import hmac
import re
import threading
import time
from http.server import HTTPServer
from pathlib import Path
from typing import Any

import httpx
import pytest
from conftest import KEY, SERVICE

from foretell import Foretell

README = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")
PROGRAMS = re.findall(r"^```python\n(.*?)^```$", README, re.DOTALL | re.MULTILINE)

SECRET = "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="


def run(program: str, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Runs a program as it is printed. Returns its names."""
    monkeypatch.setenv("FORETELL_BASE_URL", SERVICE)
    monkeypatch.setenv("FORETELL_API_KEY", KEY)
    monkeypatch.setenv("FORETELL_WEBHOOK_SECRET", SECRET)
    names: dict[str, Any] = {"__name__": "program"}
    exec(compile(program, "README program", "exec"), names)
    return names


@pytest.mark.parametrize("number", range(len(PROGRAMS)))
def test_a_program_of_the_readme_runs(
    number: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    program = PROGRAMS[number]
    run(program, monkeypatch)
    printed = capsys.readouterr().out
    assert KEY not in printed
    assert printed or "print(" not in program or "def receive" in program


def test_the_receiver_of_the_readme_accepts_only_signed_deliveries_and_each_event_once(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (program,) = [program for program in PROGRAMS if "class Receiver" in program]
    names = run(program, monkeypatch)
    with HTTPServer(("127.0.0.1", 0), names["Receiver"]) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        body = b'{"id":"e1","type":"trade.completed","data":{"tradeId":"t1"}}'
        now_ms = str(time.time_ns() // 1_000_000)
        signature = hmac.new(SECRET.encode(), now_ms.encode() + b"." + body, hashlib.sha256).hexdigest()

        def post(content: bytes) -> int:
            headers = {"X-Service-Signature": f"t={now_ms},v1={signature}"}
            address = f"http://127.0.0.1:{server.server_port}/"
            return httpx.post(address, content=content, headers=headers, trust_env=False).status_code

        assert [post(body), post(body), post(body + b" ")] == [200, 200, 400]
        server.shutdown()
    assert capsys.readouterr().out == "trade.completed t1\n"


def test_every_call_of_the_readme_exists() -> None:
    calls = set(re.findall(r"\bclient\.([a-z_.]+)\(", README))
    assert len(calls) > 30
    with Foretell(SERVICE, KEY) as client:
        for call in calls:
            found: Any = client
            for name in call.split("."):
                found = getattr(found, name)
            assert callable(found), call
