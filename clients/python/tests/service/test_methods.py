"""Each method against the service: its path, its answer, and the members that its type promises."""

from __future__ import annotations

import asyncio
import inspect
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest
from conftest import MARKET, SERVICE, done, each, new_client

from foretell import Conflict, ForetellError, Page, Refused, Usdc, Wad, public_types, response_of, types


def check(value: Any, shape: Any) -> Any:
    """Fails if a member that the type requires is missing."""
    missing = shape.__required_keys__ - value.keys()
    assert not missing, f"{shape.__name__} without {missing}"
    return value


async def walk_trading(client: Any) -> None:
    """Calls every method of the trading API that changes no secret."""
    market = check(await done(client.markets.get(MARKET)), types.Market)
    quote = check(await done(client.quotes.buy(MARKET, 0, Usdc("5"))), types.Quote)
    check(await done(client.quotes.sell(MARKET, 0, Wad("1"), block=market["asOf"]["block"])), types.Quote)
    assert response_of(quote).rate_limit is not None
    trade = check(await done(client.trades.create_and_wait(MARKET, 0, "buy", "2.00")), types.Trade)
    assert trade["status"] == "completed"
    assert (await done(client.trades.get(trade["id"])))["id"] == trade["id"]
    assert (await done(client.trades.wait(trade["id"])))["id"] == trade["id"]
    check(await done(client.trades.trace(trade["correlationId"])), types.Trace)
    check(await done(client.trades.dry_run(MARKET, 0, "sell", Wad("1"))), types.DryRun)
    soon = datetime.now(timezone.utc) + timedelta(minutes=5)
    held = await done(client.trades.create(MARKET, 0, "buy", Usdc("25"), deadline=soon, metadata={"a": "b"}))
    assert held["status"] == "pending_confirmation"
    check(await done(client.trades.confirm(held["id"], held["confirmation"]["token"])), types.Trade)
    now = datetime.now(timezone.utc)
    history = client.markets.history(MARKET, interval="1h", start=now - timedelta(hours=3), end=now)
    check(await done(history), types.MarketHistory)
    for pager, shape in (
        (client.markets.list(status=["OPEN", "FROZEN"]), types.Market),
        (client.markets.predictions(MARKET, side="buy"), types.Prediction),
        (client.trades.list(status="completed"), types.Trade),
        (client.events.list(types="*"), types.Event),
        (client.webhooks.events(start=now - timedelta(days=1)), types.WebhookEvent),
    ):
        items = await done(pager.first(3))
        assert items
        assert all(check(item, shape) for item in items)
    event = (await done(client.webhooks.events().first(1)))[0]
    check(await done(client.webhooks.event(event["id"])), types.WebhookEvent)
    check(await done(client.portfolio.get()), types.Portfolio)
    positions: Page[Any] = await done(client.portfolio.positions(market_id=MARKET))
    assert check(positions[0], types.Position)["marketId"] == MARKET
    check(await done(client.key()), types.ApiKey)
    check(await done(client.usage()), types.Usage)
    check(await done(client.account_readiness()), types.AccountReadiness)
    check(await done(client.health()), types.Health)
    check(await done(client.ready()), types.Readiness)
    check(await done(client.webhooks.endpoint()), types.WebhookEndpoint)
    assert await done(client.redemptions.list().first(1)) == []


async def walk_refusals(client: Any) -> None:
    """Methods that have nothing to act on."""
    unknown = "00000000-0000-7000-8000-000000000000"
    calls: list[tuple[Any, type[ForetellError]]] = [
        (lambda: client.redemptions.create(MARKET, 0), Conflict),
        (lambda: client.redemptions.get(unknown), Refused),
        (lambda: client.webhooks.redeliver(unknown), Refused),
        (client.webhooks.test, Conflict),
        (lambda: client.public.organization(unknown), Refused),
        (lambda: client.public.partner(unknown), Refused),
        (lambda: client.public.transaction("0x" + "0" * 64), Refused),
    ]
    for call, family in calls:
        with pytest.raises(family) as caught:
            await done(call())
        assert caught.value.code


async def walk_public(client: Any) -> None:
    """Calls every method of the public API."""
    public = client.public
    check(await done(public.market(MARKET)), public_types.MarketDetail)
    check(await done(public.quote(MARKET, 0, Usdc("5"))), public_types.Quote)
    check(await done(public.history(MARKET)), public_types.MarketHistory)
    check(await done(public.market_social_link(MARKET)), public_types.SocialLink)
    assert check((await done(public.trending_markets(timeframe="24h")))[0], public_types.TrendingMarket)
    assert isinstance(await done(public.featured_markets()), Page)
    thread = (await done(public.threads(status="all").first(1)))[0]
    check(await done(public.thread(thread["id"], include_markets=True)), public_types.ThreadDetail)
    assert await done(public.thread_markets(thread["id"]).first(1))
    assert isinstance(await done(public.thread_chapters(thread["id"])), Page)
    check(await done(public.thread_social_links(thread["id"])), public_types.SocialLink)
    assert check((await done(public.leaderboard(sort="volume").first(1)))[0], public_types.Leader)
    markets = [market["id"] async for market in each(public.markets(status="all", limit=7))]
    assert len(markets) == len(set(markets)) > 7
    organization = (await done(public.market(MARKET))).get("organizationId")
    if organization is not None:
        check(await done(public.organization(organization)), public_types.Organization)
        for pager in (public.organization_threads, public.organization_markets, public.organization_partners):
            assert isinstance(await done(pager(organization).page()), Page)
    async for message in each(public.stream(MARKET)):
        assert (message.event, message.data["id"]) == ("market", MARKET)
        break


@pytest.mark.parametrize("kind", ["sync", "async"])
@pytest.mark.parametrize("walk", [walk_trading, walk_refusals, walk_public])
def test_methods(kind: str, walk: Any) -> None:
    async def main() -> None:
        client = new_client(kind, SERVICE, sign_requests=True)
        try:
            await walk(client)
        finally:
            await done(
                client.aclose() if inspect.iscoroutinefunction(getattr(client, "aclose", None)) else client.close()
            )

    asyncio.run(main())
