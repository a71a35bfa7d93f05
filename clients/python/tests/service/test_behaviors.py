"""The table of behaviors that all clients share, with both kinds of client."""

from __future__ import annotations

import asyncio
import json
import logging
import re
import time
import traceback
import uuid
from collections.abc import Callable
from typing import Any

import pytest
from conftest import (
    KEY,
    MARKET,
    SERVICE,
    TABLE,
    Clock,
    Proxy,
    close,
    done,
    each,
    fill,
    matches,
    new_client,
    settings_of,
)

import foretell
from foretell import ForetellError, response_of

KINDS = ("sync", "async")
MEMBERS = {"idempotencyKey": "idempotency_key", "clientRequestId": "client_request_id"}


def entries_of(name: str) -> list[Any]:
    """Each entry with both kinds of client."""
    return [pytest.param(kind, entry, id=f"{entry['id']}-{kind}") for entry in TABLE[name] for kind in KINDS]


async def confirm_held(client: Any, trade: dict[str, Any]) -> Any:
    """Creates a trade that is held, and confirms it."""
    held = await done(client.trades.create(MARKET, 0, "buy", **trade))
    return await done(client.trades.confirm(held["id"], held["confirmation"]["token"]))


async def create_then_wait(client: Any, trade: dict[str, Any]) -> Any:
    """Creates a trade, and waits for its end with another call."""
    on_status = trade.pop("on_status")
    created = await done(client.trades.create(MARKET, 0, "buy", **trade))
    return await done(client.trades.wait(created["id"], on_status=on_status))


async def list_markets(client: Any, given: dict[str, Any]) -> list[Any]:
    """Walks through all markets."""
    return [market async for market in each(client.markets.list(limit=given["limit"]))]


CALLS: dict[str, Callable[[Any, dict[str, Any]], Any]] = {
    "createTrade": lambda client, trade: client.trades.create(MARKET, 0, "buy", **trade),
    "createAndWait": lambda client, trade: client.trades.create_and_wait(MARKET, 0, "buy", **trade, timeout=60),
    "createThenWait": create_then_wait,
    "dryRun": lambda client, trade: client.trades.dry_run(MARKET, 0, "buy", **trade),
    "confirmHeld": confirm_held,
    "confirm": lambda client, given: client.trades.confirm(given["trade"], given["token"]),
    "getMarket": lambda client, _: client.markets.get(MARKET),
    "getKey": lambda client, _: client.key(),
    "listMarkets": list_markets,
    "redeem": lambda client, given: client.redemptions.create(MARKET, given["outcomeIndex"]),
    "redeliver": lambda client, given: client.webhooks.redeliver(given["event"]),
    "rotateSecret": lambda client, _: client.webhooks.rotate_secret(),
}


async def make_call(client: Any, call: dict[str, Any], reported: list[str]) -> list[Any]:
    """Makes the call of an entry, and returns the results. Adds the statuses that a wait reports to `reported`."""
    given = {MEMBERS.get(name, name): value for name, value in call.get("with", {}).items()}
    if call["do"].endswith("Wait"):
        given["on_status"] = lambda change: reported.append(change["status"])
    return [await done(CALLS[call["do"]](client, given)) for _ in range(call.get("times", 1))]


def caught(
    kind: str, address: str, settings: dict[str, Any], call: dict[str, Any], reported: list[str]
) -> tuple[list[Any], ForetellError | None]:
    """Makes a call with a new client. Returns its results or its error."""

    async def main() -> list[Any]:
        client = new_client(kind, address, **settings)
        try:
            return await make_call(client, call, reported)
        finally:
            await close(client)

    try:
        return asyncio.run(main()), None
    except ForetellError as error:
        return [], error


@pytest.mark.parametrize(("kind", "entry"), entries_of("calls"))
def test_call(
    kind: str, entry: dict[str, Any], proxy: Proxy, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    words = {"$name": str(uuid.uuid4()), "$market": MARKET, "$apiKey": KEY, "$unknown": str(uuid.uuid4())}
    entry = fill(entry, words)
    clock = Clock(monkeypatch, is_real=entry.get("clock") == "real")
    if "before" in entry:
        caught(kind, SERVICE, {}, entry["before"], [])
    proxy.set_rules(entry["rules"])
    began = time.monotonic()
    reported: list[str] = []
    results, error = caught(kind, Proxy.address, settings_of(entry.get("options", {})), entry["call"], reported)
    assert (time.monotonic() - began) * 1000 <= entry["expect"].get("withinMs", float("inf"))
    log = proxy.log()
    check_result(entry, results, error)
    assert reported == entry["expect"].get("statusesReported", reported)
    check_requests(entry["expect"], log)
    check_names(entry, log)
    if entry.get("clock") != "real":
        check_pauses(entry["expect"], clock.pauses)
    check_secrets(error, caplog.text)


def check_result(entry: dict[str, Any], results: list[Any], error: ForetellError | None) -> None:
    expect = entry["expect"]
    if "error" in expect:
        assert error is not None, f"no error, but {results}"
        check_error(expect, error)
        return
    if error is not None:
        raise error
    if "status" in expect:
        assert results[0]["status"] == expect["status"]
    if "rateLimit" in expect:
        limit = response_of(results[0]).rate_limit
        assert (limit is not None) == expect["rateLimit"]
        assert limit is None or (limit.limit > limit.remaining >= 0 and limit.reset_at.year > 2000)
    if expect.get("sameResult"):
        assert all(result == results[0] for result in results)
    if expect.get("confirmed"):
        assert results[0]["status"] != "pending_confirmation"
    if expect.get("items") == "markets":
        with new_client("sync", SERVICE) as client:
            assert [market["id"] for market in results[0]] == [m["id"] for m in client.markets.list(limit=100)]


def check_error(expect: dict[str, Any], error: ForetellError) -> None:
    wanted = expect["error"]
    assert type(error) is getattr(foretell, wanted["family"])
    assert error.code == wanted["code"]
    assert error.status == wanted["status"]
    if "submission" in wanted:
        assert error.submission == wanted["submission"]
    if "retryAfterMs" in wanted:
        assert error.retry_after == wanted["retryAfterMs"] / 1000
    assert all(text in str(error) for text in expect.get("messageContains", []))
    if "docUrl" in expect:
        assert error.doc_url == expect["docUrl"]
    if "requestId" in expect:
        assert error.request_id == expect["requestId"]


def check_requests(expect: dict[str, Any], log: list[dict[str, Any]]) -> None:
    sent = [f"{entry['method']} {entry['path']}" for entry in log]
    if "requests" in expect:
        assert len(sent) == len(expect["requests"]), sent
        assert all(matches(pattern, entry) for pattern, entry in zip(expect["requests"], log, strict=True)), sent
    assert len(sent) >= expect.get("requestsAtLeast", 0)
    for pattern in expect.get("contains", []):
        assert any(matches(pattern, entry) for entry in log), sent
    if "statuses" in expect:
        assert [entry["status"] for entry in log] == expect["statuses"]
    if "signatures" in expect:
        signatures = [entry["headers"].get("x-service-signature") for entry in log]
        assert all(signatures)
        assert len(set(signatures)) == len(signatures) == expect["signatures"]


def check_names(entry: dict[str, Any], log: list[dict[str, Any]]) -> None:
    expect = entry["expect"]
    creations = [request for request in log if matches("POST /v1/trades", request)]
    keys = {request["headers"].get("idempotency-key") for request in creations}
    if expect.get("sameName"):
        assert len({request["body"] for request in creations}) == len(keys) == 1
        assert all(keys)
        assert json.loads(creations[0]["body"])["clientRequestId"]
    if "names" in expect:
        assert keys == {expect["names"]["idempotencyKey"]}
        assert json.loads(creations[0]["body"])["clientRequestId"] == expect["names"]["clientRequestId"]
    if "trades" in expect:
        name = json.loads(creations[0]["body"]).get("clientRequestId")
        with new_client("sync", SERVICE) as client:
            found = list(client.trades.list(client_request_id=name)) if name else []
        assert len(found) == expect["trades"]


def check_pauses(expect: dict[str, Any], pauses: list[float]) -> None:
    if "pauses" in expect:
        assert len(pauses) == len(expect["pauses"])
        for pause, (least, most) in zip(pauses, expect["pauses"], strict=True):
            assert least <= pause <= most
    if expect.get("deadline"):
        deadline = TABLE["policy"]["deadlineMs"]
        assert sum(pauses) <= deadline
        assert sum(pauses) + TABLE["policy"]["maxPauseMs"] * (1 + TABLE["policy"]["jitter"]) > deadline


def check_secrets(error: ForetellError | None, logged: str) -> None:
    assert KEY not in logged
    assert "whsec_" not in logged
    if error is not None:
        texts = [str(error), repr(error), repr(vars(error)), "".join(traceback.format_exception(error))]
        cause = error.__cause__
        if cause is not None:
            texts += [repr(cause), str(getattr(cause, "request", None) and cause.request.headers)]  # type: ignore[attr-defined]
        assert not any(KEY in text or "whsec_" in text for text in texts)


async def read_feed(client: Any, after: str | None, count: int | None) -> tuple[list[str], list[int | None]]:
    """Reads so many events, or all until an error, and the generations that they belong to."""
    ids: list[str] = []
    generations: list[int | None] = []
    stream = client.events.stream(after=after, start="oldest", types="*")
    try:
        async for event in each(stream):
            ids.append(event["id"])
            generations.append(stream.generation)
            if len(ids) == count:
                return ids, generations
    finally:
        read_feed.found = ids  # type: ignore[attr-defined]
        await close(stream)
    raise AssertionError("the feed has ended")


@pytest.mark.parametrize(("kind", "entry"), entries_of("feeds"))
def test_feed(kind: str, entry: dict[str, Any], proxy: Proxy, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(monkeypatch, is_real=entry.get("clock") == "real")
    expect = entry["expect"]
    proxy.set_rules(entry["rules"])

    async def main() -> tuple[list[str], list[int | None]]:
        client = new_client(kind, Proxy.address, **settings_of(entry.get("options", {})))
        try:
            return await read_feed(client, entry.get("after"), None if "error" in expect else len(expect["events"]))
        finally:
            await close(client)

    if "error" in expect:
        with pytest.raises(ForetellError) as caught_error:
            asyncio.run(main())
        check_error(expect, caught_error.value)
        assert read_feed.found == expect["events"]  # type: ignore[attr-defined]
    else:
        ids, generations = asyncio.run(main())
        assert ids == expect["events"]
        assert sorted({one for one in generations if one is not None and one > 1}) == expect.get("generations", [])
    log = proxy.log()
    if "lastEventIds" in expect:
        assert [request["headers"].get("last-event-id") for request in log] == expect["lastEventIds"]
    if "requestsExactly" in expect:
        assert len(log) == expect["requestsExactly"]
    for pause, (least, most) in zip(clock.pauses, expect.get("pauses", []), strict=False):
        assert least <= pause <= most


def test_the_key_of_the_service_has_the_documented_form() -> None:
    # The checks for secrets above mean something.
    assert re.fullmatch(r"service_test_[0-9A-Za-z]{32}", KEY)
