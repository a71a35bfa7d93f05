"""Rules of the client that need no service."""

from __future__ import annotations

import inspect
import json
import pickle
from collections.abc import Callable
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import httpx
import pytest

import foretell
from foretell import Conflict, Foretell, Refused, Unavailable, Usdc, Wad, _time, response_of
from foretell._sse import Parser

ADDRESS = "https://api.foretell.example"
KEY = "service_test_0123456789ABCDEFGHIJKLMNOPQRSTUV"
TRADE = {"id": "t1", "status": "pending", "marketId": "m", "outcomeIndex": 0, "side": "buy", "amount": "1"}

Handler = Callable[[httpx.Request], httpx.Response]


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pauses end at once."""
    offset = [0.0]
    real = _time.monotonic
    monkeypatch.setattr(_time, "sleep", lambda seconds: offset.append(offset.pop() + seconds))
    monkeypatch.setattr(_time, "monotonic", lambda: real() + offset[0])


def client_for(handler: Handler, **settings: Any) -> Foretell:
    return Foretell(ADDRESS, KEY, transport=httpx.MockTransport(handler), **settings)


def created(request: httpx.Request) -> httpx.Response:
    return httpx.Response(201, json={"trade": {**TRADE, **json.loads(request.content)}})


@pytest.mark.parametrize(
    ("given", "names"),
    [
        ({"idempotency_key": "k"}, ("k", "k")),
        ({"client_request_id": "c"}, ("c", "c")),
        ({"idempotency_key": "k", "client_request_id": "c"}, ("k", "c")),
        ({"idempotency_key": "k" * 129}, ("k" * 129, None)),
    ],
)
def test_a_name_that_is_missing_is_the_other_one(given: dict[str, str], names: tuple[str, str | None]) -> None:
    sent: list[httpx.Request] = []
    client = client_for(lambda request: sent.append(request) or created(request))  # type: ignore[func-returns-value]
    client.trades.create("m", 0, "buy", "1.00", **given)  # type: ignore[arg-type]
    body = json.loads(sent[0].content)
    assert (sent[0].headers["Idempotency-Key"], body.get("clientRequestId")) == names


def test_a_connection_that_was_refused_has_stored_nothing() -> None:
    def refuse(request: httpx.Request) -> httpx.Response:
        raise httpx.ConnectError("refused", request=request)

    with pytest.raises(Unavailable) as caught:
        client_for(refuse).trades.create("m", 0, "buy", "1.00")
    assert (caught.value.submission, caught.value.status) == ("not_submitted", None)
    assert caught.value.attempts > 3


def test_a_trade_that_is_held_is_looked_up_with_its_token() -> None:
    attempts: list[str] = []

    def answer(request: httpx.Request) -> httpx.Response:
        attempts.append(request.method)
        trade = {**TRADE, "status": "pending_confirmation", "amountType": "usdc"}
        if request.method == "GET":
            return httpx.Response(200, json={"data": [trade], "pagination": {"hasMore": False}})
        if attempts.count("POST") == 1:
            return httpx.Response(500, json={"code": "INTERNAL_ERROR", "extensions": {"submission": "unknown"}})
        return httpx.Response(202, json={"trade": {**trade, "confirmation": {"token": "ct_x", "expiresAt": "later"}}})

    trade = client_for(answer).trades.create("m", 0, "buy", "1.00")
    assert trade["confirmation"]["token"] == "ct_x"
    assert attempts == ["POST", "GET", "POST"]


def test_amounts_go_into_the_body_as_the_api_counts_them() -> None:
    client = client_for(created)
    trade: Any = client.trades.create("m", 0, "buy", Usdc("25.10"), min_tokens_out=Wad("0.5"))
    assert (trade["amount"], trade["minTokensOut"], "amountType" in trade) == ("25.1", "500000000000000000", False)
    trade = client.trades.create("m", 0, "sell", Wad(3), max_slippage_bps=50)
    assert (trade["amount"], trade["amountType"], trade["maxSlippageBps"]) == ("3", "tokens", 50)
    trade = client.trades.create("m", 0, "sell", amount_type="all")
    assert trade["amountType"] == "all"


@pytest.mark.parametrize("members", [{"amount": 25}, {"amount": 2.5}, {"amount": "1", "min_tokens_out": "1"}])
def test_amounts_without_a_unit_are_rejected(members: dict[str, Any]) -> None:
    with pytest.raises(TypeError):
        client_for(created).trades.create("m", 0, "buy", **members)
    with pytest.raises(TypeError):
        client_for(created).quotes.buy("m", 0, members["amount"])
    with pytest.raises(ValueError, match="does not fit"):
        client_for(created).trades.create("m", 0, "sell", Wad(1), amount_type="usdc")


def test_a_misspelled_option_is_rejected() -> None:
    with pytest.raises(TypeError, match="max_slipage_bps"):
        client_for(created).trades.create("m", 0, "buy", "1", max_slipage_bps=50)  # type: ignore[call-arg]


def test_neither_the_client_nor_its_parts_show_the_key() -> None:
    client = client_for(created, sign_requests=True)
    seen: list[object] = [client]
    texts = [repr(client)]
    while seen:
        part = seen.pop()
        for value in vars(part).values():
            texts.append(repr(value))
            if type(value).__module__.startswith("foretell") and hasattr(value, "__dict__"):
                seen.append(value)
    assert KEY not in "".join(texts)
    with pytest.raises(TypeError, match="pickle"):
        pickle.dumps(client)


@pytest.mark.parametrize("key", ["", "service test", "service_test_\n", "schlüssel"])
def test_a_key_that_no_header_can_hold_is_rejected_without_showing_it(key: str) -> None:
    with pytest.raises(ValueError, match="api_key must be") as caught:
        Foretell(ADDRESS, key)
    assert not key or key not in str(caught.value)


@pytest.mark.parametrize("address", ["", "api.foretell.example", "ftp://x", "https://x/?a=1", "https:///v1"])
def test_an_address_must_be_one_of_http(address: str) -> None:
    with pytest.raises(ValueError, match="base_url must be"):
        Foretell(address, KEY)


def test_the_key_is_only_sent_to_the_trading_api() -> None:
    sent: list[httpx.Request] = []

    def answer(request: httpx.Request) -> httpx.Response:
        sent.append(request)
        return httpx.Response(200, json={"market": {"id": request.headers.get("X-API-Key", "none")}})

    client = client_for(answer)
    assert client.markets.get("m")["id"] == KEY
    assert client.public.market("m")["id"] == "none"
    # Errors and answers refer to requests: the key is gone when they are sent.
    assert not any("X-API-Key" in request.headers for request in sent)


def test_the_environment_names_the_address_and_the_key(tmp_path: Path) -> None:
    file = tmp_path / "key"
    file.write_text(f"{KEY}\n")
    found = Foretell.from_env({"FORETELL_BASE_URL": ADDRESS, "FORETELL_API_KEY_FILE": str(file)})
    assert found._transport.options.key is not None
    assert found._transport.options.key.reveal() == KEY
    with pytest.raises(ValueError, match="FORETELL_BASE_URL"):
        Foretell.from_env({})


@pytest.mark.parametrize("market_id", ["", ".", ".."])
def test_an_id_cannot_name_another_route(market_id: str) -> None:
    with pytest.raises(ValueError, match="an id must not be"):
        client_for(created).markets.get(market_id)


def test_an_id_is_escaped() -> None:
    def answer(request: httpx.Request) -> httpx.Response:
        return httpx.Response(200, json={"market": {"id": request.url.raw_path.decode()}})

    assert client_for(answer).markets.get("a/../b?c#d")["id"] == "/v1/markets/a%2F..%2Fb%3Fc%23d"


def test_metadata_is_on_direct_results_only() -> None:
    headers = {"X-Request-Id": "req_1", "Idempotent-Replayed": "true", "RateLimit": '"write";r=9;t=60'}
    limits = {"X-RateLimit-Limit": "10", "X-RateLimit-Remaining": "9", "X-RateLimit-Reset": "1800003720"}
    client = client_for(lambda _: httpx.Response(201, json={"trade": TRADE}, headers={**headers, **limits}))
    trade = client.trades.create("m", 0, "buy", "1")
    response = response_of(trade)
    assert (response.request_id, response.is_replay, response.attempts) == ("req_1", True, 1)
    assert client.rate_limits["write"] == response.rate_limit
    assert response.rate_limit is not None
    assert response.rate_limit.reset_at.timestamp() == 1800003720
    with pytest.raises(TypeError, match="direct result"):
        response_of(dict(trade))


def test_the_answers_of_the_cache_are_copies_and_the_oldest_goes() -> None:
    sent: list[str | None] = []

    def answer(request: httpx.Request) -> httpx.Response:
        sent.append(request.headers.get("If-None-Match"))
        if sent[-1]:
            return httpx.Response(304, headers={"ETag": sent[-1]})
        return httpx.Response(200, json={"market": {"id": "m", "tags": []}}, headers={"ETag": 'W/"1"'})

    client = client_for(answer, etag_cache=2)
    client.markets.get("1")["tags"].append("changed")
    again = client.markets.get("1")
    assert (again["tags"], response_of(again).is_from_cache, response_of(again).status) == ([], True, 304)
    for market_id in ("2", "3", "1"):
        client.markets.get(market_id)
    assert sent == [None, 'W/"1"', None, None, None]


def test_an_error_says_which_fields_are_wrong() -> None:
    errors = [{"pointer": "/amount", "detail": "must be above zero"}, "odd"]
    problem = {"code": "VALIDATION_FAILED", "detail": "No.", "requestId": "req_1", "extensions": {"errors": errors}}
    with pytest.raises(Refused) as caught:
        client_for(lambda _: httpx.Response(400, json=problem)).key()
    assert str(caught.value) == "VALIDATION_FAILED: No.; /amount must be above zero (request req_1)"


def test_a_submission_that_is_not_known_is_unknown() -> None:
    problem = {"code": "X", "extensions": {"submission": "perhaps"}}
    with pytest.raises(Conflict) as caught:
        client_for(lambda _: httpx.Response(409, json=problem)).trades.confirm("t", "ct_x")
    assert caught.value.submission == "unknown"


@pytest.mark.parametrize("content", [b"", b"[]", b"{", b'{"data": 1}', b"[" * 100_000])
def test_an_answer_of_another_form_is_unreadable(content: bytes) -> None:
    client = client_for(lambda _: httpx.Response(200, content=content), deadline=1)
    with pytest.raises(Unavailable) as caught:
        client.markets.list().page()
    assert caught.value.code == "UNREADABLE_ANSWER"


def test_parameters_of_a_query_have_the_names_of_the_api() -> None:
    sent: list[str] = []

    def answer(request: httpx.Request) -> httpx.Response:
        sent.append(str(request.url).removeprefix(ADDRESS))
        return httpx.Response(200, json={"data": [], "markets": [], "history": {}})

    client = client_for(answer)
    noon = datetime(2026, 4, 29, 12, tzinfo=timezone.utc)
    client.markets.list(status=["OPEN", "FROZEN"], thread_id="t", limit=None, cursor="c").page()
    client.markets.history("m", interval="1h", start=noon, outcome_index=0)
    client.public.markets(resolved_after=noon, sort_by="title", active=True).page()
    assert sent == [
        "/v1/markets?status=OPEN%2CFROZEN&threadId=t&cursor=c",
        "/v1/markets/m/history?interval=1h&from=2026-04-29T12%3A00%3A00.000Z&outcomeIndex=0",
        "/api/markets?resolvedAfter=1777464000&sortBy=title&active=true",
    ]


def test_a_misspelled_parameter_is_rejected() -> None:
    client = client_for(lambda _: httpx.Response(200, json={"data": []}))
    with pytest.raises(TypeError, match="ListMarketsQuery has no staus"):
        client.markets.list(staus="OPEN")  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="ListThreadsQuery has no cursor"):
        client.public.threads(cursor="c")  # type: ignore[call-arg]


def test_a_list_ends_at_an_empty_page_of_an_offset() -> None:
    def answer(request: httpx.Request) -> httpx.Response:
        offset = int(request.url.params.get("offset", 0))
        rows = [{"id": str(offset + row)} for row in range(2 if offset < 4 else 0)]
        return httpx.Response(200, json={"markets": rows, "pagination": {"hasMore": True}})

    client = client_for(answer)
    assert [market["id"] for market in client.public.markets()] == ["0", "1", "2", "3"]
    assert [market["id"] for market in client.public.markets().first(3)] == ["0", "1", "2"]


def test_a_stream_may_not_use_memory_without_bounds() -> None:
    with pytest.raises(Unavailable, match="4 MiB"):
        Parser().feed(b"data: " + b"x" * (5 << 20))
    parser = Parser()
    with pytest.raises(Unavailable, match="4 MiB"):
        parser.feed((b"data: " + b"x" * (1 << 20) + b"\n") * 10)


def test_a_wait_ends_at_its_timeout_and_names_the_trade() -> None:
    def answer(request: httpx.Request) -> httpx.Response:
        if request.url.path == "/v1/events":
            return httpx.Response(403, json={"code": "INSUFFICIENT_SCOPE"})
        return httpx.Response(200, json={"trade": TRADE})

    with pytest.raises(Unavailable) as caught:
        client_for(answer).trades.wait("t1", timeout=20)
    assert (caught.value.code, caught.value.trade_id) == ("WAIT_TIMED_OUT", "t1")


def test_both_clients_have_the_same_methods_and_parameters() -> None:
    for name in ("client.Foretell", "trades.Trades", "events.Events", "account.Markets", "public.Public"):
        module, kind = name.split(".")
        blocking = getattr(__import__(f"foretell._sync.{module}", fromlist=[kind]), kind)
        concurrent = getattr(__import__(f"foretell._async.{module}", fromlist=[kind]), f"Async{kind}")
        methods = [method for method in vars(blocking) if not method.startswith("_") and method != "close"]
        assert methods
        for method in methods:
            if callable(vars(blocking)[method]):
                found = inspect.signature(getattr(concurrent, method)).parameters
                assert list(found) == list(inspect.signature(getattr(blocking, method)).parameters)


def test_everything_that_is_exported_exists() -> None:
    assert all(hasattr(foretell, name) for name in foretell.__all__)
