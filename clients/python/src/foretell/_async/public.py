"""The public read API, which needs no key."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from .. import public_types as types
from .._core import Request, get, parameters, path
from .._response import Page
from .._sse import StreamMessage
from ..money import Usdc, Wad
from .pages import AsyncPager
from .transport import AsyncTransport

if TYPE_CHECKING:
    from typing_extensions import Unpack

_T = TypeVar("_T")


class AsyncPublic:
    """`client.public`: threads, markets, organizations, partners and trades, without a key."""

    def __init__(self, transport: AsyncTransport) -> None:
        self._transport = transport

    def _list(
        self, name: str, shape: type[_T], target: str, query: Mapping[str, Any], query_shape: type
    ) -> AsyncPager[_T]:
        given = parameters(query, query_shape)

        async def fetch(cursor: str | None) -> Page[_T]:
            offset = int(cursor or 0)
            return await self._transport.page(get(target, offset=offset or None, **given), name, shape, offset)

        return AsyncPager(fetch)

    async def _one(self, name: str, shape: type[_T], target: str, **query: Any) -> _T:
        return await self._transport.resource(get(target, **query), name, shape)

    def markets(self, **query: Unpack[types.ListPublicMarketsQuery]) -> AsyncPager[types.Market]:
        """Markets; by default those that are open."""
        return self._list("markets", types.Market, "/api/markets", query, types.ListPublicMarketsQuery)

    async def market(self, market_id: str) -> types.MarketDetail:
        """One market."""
        return await self._one("market", types.MarketDetail, path("/api/markets/{}", market_id))

    async def trending_markets(self, **query: Unpack[types.ListTrendingMarketsQuery]) -> Page[types.TrendingMarket]:
        """Open markets that were traded in the timeframe, by score."""
        request = get("/api/markets/trending", **parameters(query, types.ListTrendingMarketsQuery))
        return await self._transport.page(request, "markets", types.TrendingMarket)

    async def featured_markets(self) -> Page[types.FeaturedMarket]:
        """The markets that the operator chose."""
        return await self._transport.page(get("/api/markets/featured"), "markets", types.FeaturedMarket)

    async def quote(self, market_id: str, outcome_index: int, amount: Usdc | Wad) -> types.Quote:
        """The amounts that a buy of USDC or a sell of tokens would move."""
        action = "buy" if isinstance(amount, Usdc) else "sell"
        query = {"outcomeIndex": outcome_index, "action": action, "amount": str(amount)}
        return await self._one("quote", types.Quote, path("/api/markets/{}/quote", market_id), **query)

    async def history(self, market_id: str, **query: Unpack[types.GetPublicMarketHistoryQuery]) -> types.MarketHistory:
        """Candles of each outcome."""
        given = parameters(query, types.GetPublicMarketHistoryQuery)
        return await self._one("history", types.MarketHistory, path("/api/markets/{}/history", market_id), **given)

    async def stream(self, market_id: str, *, after: str | None = None) -> AsyncIterator[StreamMessage]:
        """The market's state (`market`), then each `trade` and `status` as it happens, until the connection ends.

        Also yields `heartbeat` and `closing`. To continue, pass the last `id` as `after`.
        """
        headers = (("Last-Event-ID", after),) if after is not None else ()
        request = Request("GET", path("/api/markets/{}/stream", market_id), (), None, headers)
        async with self._transport.stream(request, self._transport.options.idle_timeout) as messages:
            async for message in messages:
                yield message

    async def market_social_link(self, market_id: str) -> types.SocialLink:
        """Links that share a market."""
        return await self._one("socialLink", types.SocialLink, path("/api/markets/{}/social-link", market_id))

    def threads(self, **query: Unpack[types.ListThreadsQuery]) -> AsyncPager[types.Thread]:
        """Threads."""
        return self._list("threads", types.Thread, "/api/threads", query, types.ListThreadsQuery)

    async def thread(self, thread_id: str, *, include_markets: bool | None = None) -> types.ThreadDetail:
        """One thread."""
        target = path("/api/threads/{}", thread_id)
        return await self._one("thread", types.ThreadDetail, target, includeMarkets=include_markets)

    def thread_markets(self, thread_id: str, **query: Unpack[types.ListThreadMarketsQuery]) -> AsyncPager[types.Market]:
        """The markets of a thread."""
        target = path("/api/threads/{}/markets", thread_id)
        return self._list("markets", types.Market, target, query, types.ListThreadMarketsQuery)

    async def thread_chapters(self, thread_id: str) -> Page[types.Chapter]:
        """The chapters of a thread."""
        request = get(path("/api/threads/{}/chapters", thread_id))
        return await self._transport.page(request, "chapters", types.Chapter)

    async def thread_social_links(self, thread_id: str) -> types.SocialLink:
        """Links that share a thread."""
        return await self._one("socialLinks", types.SocialLink, path("/api/threads/{}/social-links", thread_id))

    async def organization(self, organization_id: str) -> types.Organization:
        """One organization."""
        target = path("/api/organizations/{}", organization_id)
        return await self._one("organization", types.Organization, target)

    def organization_threads(
        self, organization_id: str, **query: Unpack[types.ListOrganizationThreadsQuery]
    ) -> AsyncPager[types.Thread]:
        """The threads of an organization."""
        target = path("/api/organizations/{}/threads", organization_id)
        return self._list("threads", types.Thread, target, query, types.ListOrganizationThreadsQuery)

    def organization_markets(
        self, organization_id: str, **query: Unpack[types.ListOrganizationMarketsQuery]
    ) -> AsyncPager[types.Market]:
        """The markets of an organization."""
        target = path("/api/organizations/{}/markets", organization_id)
        return self._list("markets", types.Market, target, query, types.ListOrganizationMarketsQuery)

    def organization_partners(
        self, organization_id: str, **query: Unpack[types.ListOrganizationPartnersQuery]
    ) -> AsyncPager[types.Partner]:
        """The partners of an organization."""
        target = path("/api/organizations/{}/partners", organization_id)
        return self._list("partners", types.Partner, target, query, types.ListOrganizationPartnersQuery)

    async def partner(self, partner_id: str) -> types.Partner:
        """One partner."""
        return await self._one("partner", types.Partner, path("/api/partners/{}", partner_id))

    def partner_threads(
        self, partner_id: str, **query: Unpack[types.ListPartnerThreadsQuery]
    ) -> AsyncPager[types.Thread]:
        """The threads of a partner."""
        target = path("/api/partners/{}/threads", partner_id)
        return self._list("threads", types.Thread, target, query, types.ListPartnerThreadsQuery)

    def leaderboard(self, **query: Unpack[types.GetLeaderboardQuery]) -> AsyncPager[types.Leader]:
        """The traders by `total` or `realized` profit or by `volume`."""
        return self._list("leaders", types.Leader, "/api/leaderboard", query, types.GetLeaderboardQuery)

    async def transaction(self, tx_hash: str) -> types.Transaction:
        """The amounts that a transaction moved."""
        return await self._one("transaction", types.Transaction, path("/api/transactions/{}", tx_hash))
