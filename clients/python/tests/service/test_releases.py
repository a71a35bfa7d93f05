"""Every operation against each released document: with new members, words and codes, and without optional members."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from typing import Any

import httpx
import pytest
from conftest import TABLE, Clock, close, done, each, new_client

from foretell import ForetellError, Usdc, Wad

RELEASES = os.environ.get("FORETELL_RELEASES", "")
ID = "0198f3a0-5d4e-7b06-9aa4-5eb35423f988"
ORDER = (ID, 0, "buy", "1.00")


def read(path: str) -> Any:
    """Asks the server of releases about itself."""
    return httpx.get(RELEASES + path, trust_env=False).raise_for_status().json()


async def first(items: Any) -> Any:
    """The first item of a list or stream."""
    try:
        async for item in each(items):
            return item
    finally:
        if hasattr(items, "close") or hasattr(items, "aclose"):
            await close(items)
    raise AssertionError("the list is empty")


CALLS: list[tuple[str, Callable[[Any], Any]]] = [
    ("confirmTrade", lambda client: client.trades.confirm(ID, "token")),
    ("createRedemption", lambda client: client.redemptions.create(ID, 0)),
    ("createTrade", lambda client: client.trades.create(*ORDER)),
    ("createTrade", lambda client: client.trades.dry_run(*ORDER)),
    ("getAccountReadiness", lambda client: client.account_readiness()),
    ("getHealth", lambda client: client.health()),
    ("getKey", lambda client: client.key()),
    ("getMarket", lambda client: client.markets.get(ID)),
    ("getMarketHistory", lambda client: client.markets.history(ID)),
    ("getPortfolio", lambda client: client.portfolio.get()),
    ("getQuote", lambda client: client.quotes.buy(ID, 0, Usdc("1"))),
    ("getQuote", lambda client: client.quotes.sell(ID, 0, Wad("1"))),
    ("getReadiness", lambda client: client.ready()),
    ("getRedemption", lambda client: client.redemptions.get(ID)),
    ("getTrace", lambda client: client.trades.trace("a1" * 16)),
    ("getTrade", lambda client: client.trades.get(ID)),
    ("getUsage", lambda client: client.usage()),
    ("getWebhookEndpoint", lambda client: client.webhooks.endpoint()),
    ("getWebhookEvent", lambda client: client.webhooks.event(ID)),
    ("listEvents", lambda client: first(client.events.list())),
    ("listEvents", lambda client: first(client.events.stream())),
    ("listMarkets", lambda client: first(client.markets.list())),
    ("listPositions", lambda client: client.portfolio.positions()),
    ("listPredictions", lambda client: first(client.markets.predictions(ID))),
    ("listRedemptions", lambda client: first(client.redemptions.list())),
    ("listTrades", lambda client: first(client.trades.list())),
    ("listWebhookEvents", lambda client: first(client.webhooks.events())),
    ("pauseKey", lambda client: client.pause()),
    ("redeliverWebhookEvent", lambda client: client.webhooks.redeliver(ID)),
    ("rotateWebhookSecret", lambda client: client.webhooks.rotate_secret()),
    ("sendTestWebhook", lambda client: client.webhooks.test()),
    ("getLeaderboard", lambda client: first(client.public.leaderboard())),
    ("getMarketSocialLink", lambda client: client.public.market_social_link(ID)),
    ("getOrganization", lambda client: client.public.organization(ID)),
    ("getPartner", lambda client: client.public.partner(ID)),
    ("getPublicMarket", lambda client: client.public.market(ID)),
    ("getPublicMarketHistory", lambda client: client.public.history(ID)),
    ("getPublicQuote", lambda client: client.public.quote(ID, 0, Usdc("1"))),
    ("getThread", lambda client: client.public.thread(ID)),
    ("getThreadSocialLinks", lambda client: client.public.thread_social_links(ID)),
    ("getTransaction", lambda client: client.public.transaction("0x" + "a1" * 32)),
    ("listFeaturedMarkets", lambda client: client.public.featured_markets()),
    ("listOrganizationMarkets", lambda client: first(client.public.organization_markets(ID))),
    ("listOrganizationPartners", lambda client: first(client.public.organization_partners(ID))),
    ("listOrganizationThreads", lambda client: first(client.public.organization_threads(ID))),
    ("listPartnerThreads", lambda client: first(client.public.partner_threads(ID))),
    ("listPublicMarkets", lambda client: first(client.public.markets())),
    ("listThreadChapters", lambda client: client.public.thread_chapters(ID)),
    ("listThreadMarkets", lambda client: first(client.public.thread_markets(ID))),
    ("listThreads", lambda client: first(client.public.threads())),
    ("listTrendingMarkets", lambda client: client.public.trending_markets()),
    ("streamMarket", lambda client: first(client.public.stream(ID))),
]


async def caught(call: Any) -> tuple[Any, ForetellError | None]:
    """The result of a call or its error."""
    try:
        return await done(call()), None
    except ForetellError as error:
        return None, error


async def check_answers(client: Any, operations: list[str], form: str) -> None:
    """Makes each call that the release has an operation for."""
    for name, call in CALLS:
        if name not in operations:
            continue
        result, error = await caught(lambda call=call: call(client))
        if form == "problems":
            # The public API's codes are any text. The other operations without an error are the public API's, too.
            codes = ("new_word",) if name in TABLE["releases"]["operations"] else ("new_word", "text", None)
            assert (error and error.code) in codes, name
            continue
        assert error is None, f"{name}: {error}"
        item = result[0] if isinstance(result, list) else result
        if name != "streamMarket":
            assert ("later" in item) == (form == "new-members"), name


@pytest.mark.parametrize("kind", ["sync", "async"])
def test_the_client_reads_every_answer_of_each_release(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    Clock(monkeypatch, is_real=False)
    served = read("/")

    async def main(address: str, operations: list[str], form: str) -> None:
        client = new_client(kind, address)
        try:
            await check_answers(client, operations, form)
        finally:
            await close(client)

    for release, operations in served["releases"].items():
        for form in served["forms"]:
            asyncio.run(main(f"{RELEASES}/{release}/{form}", operations, form))
            asked = read(f"/{release}/{form}/asked")
            assert not [name for name in TABLE["releases"]["operations"] if name in operations and name not in asked]
