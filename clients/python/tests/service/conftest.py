"""The service, the proxy that makes faults, and the table of behaviors. `scripts/clients` starts them."""

from __future__ import annotations

import inspect
import json
import os
import re
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from foretell import AsyncForetell, Foretell, _time

TABLE: dict[str, Any] = json.loads(
    (Path(__file__).parents[3] / "behaviors" / "behaviors.json").read_text(encoding="utf-8")
)
KEY = os.environ.get("FORETELL_API_KEY", "")
SERVICE = os.environ.get("FORETELL_URL", "")
MARKET = os.environ.get("FORETELL_MARKET", "")


def pytest_collection_modifyitems() -> None:
    """Fails early and clearly without a service."""
    if not KEY:
        raise pytest.UsageError("these tests need a service: run scripts/clients python")


class Proxy:
    """The proxy and its log."""

    address = os.environ.get("FORETELL_PROXY", "")

    def __init__(self, control: httpx.Client) -> None:
        self._control = control

    def set_rules(self, rules: list[dict[str, Any]]) -> None:
        """Replaces the rules, and empties the log."""
        self._control.put("/rules", json=rules).raise_for_status()

    def log(self) -> list[dict[str, Any]]:
        """The requests since then."""
        entries: list[dict[str, Any]] = self._control.get("/log").json()
        return entries


@pytest.fixture(scope="session")
def proxy() -> Iterator[Proxy]:
    """The proxy of this suite."""
    with httpx.Client(base_url=os.environ["FORETELL_PROXY_CONTROL"], trust_env=False, verify=False) as control:
        yield Proxy(control)


class Clock:
    """A clock that pauses advance."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *, is_real: bool) -> None:
        self.pauses: list[float] = []
        self._offset = 0.0
        real_sleep, real_async_sleep = _time.sleep, _time.async_sleep
        real_monotonic, real_now_ms = _time.monotonic, _time.now_ms

        def sleep(seconds: float) -> None:
            self._record(seconds, is_real)
            real_sleep(seconds if is_real else 0)

        async def async_sleep(seconds: float) -> None:
            self._record(seconds, is_real)
            await real_async_sleep(seconds if is_real else 0)

        monkeypatch.setattr(_time, "sleep", sleep)
        monkeypatch.setattr(_time, "async_sleep", async_sleep)
        began = real_monotonic()
        # Only pauses advance it, so that a slow machine changes nothing.
        monkeypatch.setattr(_time, "monotonic", real_monotonic if is_real else lambda: began + self._offset)
        monkeypatch.setattr(_time, "now_ms", lambda: real_now_ms() + round(self._offset * 1000))

    def _record(self, seconds: float, is_real: bool) -> None:
        self.pauses.append(seconds * 1000)
        if not is_real:
            self._offset += seconds


OPTIONS = {
    "attemptMs": "attempt_timeout",
    "deadlineMs": "deadline",
    "firstPauseMs": "backoff",
    "idleTimeoutMs": "idle_timeout",
    "streamPatienceMs": "stream_patience",
}


def settings_of(options: dict[str, Any]) -> dict[str, Any]:
    """The constructor's arguments for the options of an entry."""
    settings: dict[str, Any] = {OPTIONS[name]: value / 1000 for name, value in options.items() if name in OPTIONS}
    if options.get("sign"):
        settings["sign_requests"] = True
    if options.get("etags"):
        settings["etag_cache"] = 10
    return settings


def new_client(kind: str, address: str, **settings: Any) -> Any:
    """A client of one of the two kinds."""
    # Without certificates, which take longer to load than most calls.
    if kind == "async":
        return AsyncForetell(address, KEY, transport=httpx.AsyncHTTPTransport(verify=False), **settings)
    return Foretell(address, KEY, transport=httpx.HTTPTransport(verify=False), **settings)


async def done(result: Any) -> Any:
    """The result of a call of either client."""
    return await result if inspect.isawaitable(result) else result


async def each(items: Any) -> AsyncIterator[Any]:
    """The items of an iterable of either client."""
    if hasattr(items, "__aiter__"):
        async for item in items:
            yield item
    else:
        for item in items:
            yield item


async def close(client: Any) -> None:
    """Closes either client, or a stream of it."""
    await done(client.aclose() if hasattr(client, "aclose") else client.close())


def fill(value: Any, words: dict[str, str]) -> Any:
    """Replaces the placeholders of an entry."""
    if isinstance(value, str):
        for word, text in words.items():
            value = value.replace(word, text)
        return value
    if isinstance(value, list):
        return [fill(item, words) for item in value]
    return {name: fill(item, words) for name, item in value.items()} if isinstance(value, dict) else value


def matches(pattern: str, entry: dict[str, Any]) -> bool:
    """True if a request of the log is the one that `pattern` describes."""
    expression = "[^/]+".join(map(re.escape, pattern.split("*")))
    return re.fullmatch(expression, f"{entry['method']} {entry['path']}") is not None
