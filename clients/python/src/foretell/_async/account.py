"""Markets, quotes, portfolio, redemptions and webhooks: everything that is one request."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .. import webhooks as _webhooks
from .._core import get, parameters, path, post
from .._response import Page
from ..money import Usdc, Wad
from ..types import (
    GetMarketHistoryQuery,
    ListMarketsQuery,
    ListPredictionsQuery,
    ListRedemptionsQuery,
    ListWebhookEventsQuery,
    Market,
    MarketHistory,
    Position,
    Prediction,
    QueuedEvent,
    Quote,
    Redemption,
    Side,
    WebhookEndpoint,
    WebhookEvent,
    WebhookSecret,
)
from ..types import Portfolio as PortfolioTotals
from .pages import AsyncPager
from .transport import AsyncTransport

if TYPE_CHECKING:
    from typing_extensions import Unpack


class AsyncMarkets:
    """`client.markets`: markets, their trades and their prices over time."""

    def __init__(self, transport: AsyncTransport) -> None:
        self._transport = transport

    def list(self, **query: Unpack[ListMarketsQuery]) -> AsyncPager[Market]:
        """Markets, newest first."""
        return self._transport.list("/v1/markets", Market, parameters(query, ListMarketsQuery))

    async def get(self, market_id: str) -> Market:
        """One market."""
        return await self._transport.resource(get(path("/v1/markets/{}", market_id)), "market", Market)

    def predictions(self, market_id: str, **query: Unpack[ListPredictionsQuery]) -> AsyncPager[Prediction]:
        """The market's trades on chain, newest first."""
        target = path("/v1/markets/{}/predictions", market_id)
        return self._transport.list(target, Prediction, parameters(query, ListPredictionsQuery))

    async def history(self, market_id: str, **query: Unpack[GetMarketHistoryQuery]) -> MarketHistory:
        """Candles of each outcome."""
        request = get(path("/v1/markets/{}/history", market_id), **parameters(query, GetMarketHistoryQuery))
        return await self._transport.resource(request, "history", MarketHistory)


class AsyncQuotes:
    """`client.quotes`: what a trade would move."""

    def __init__(self, transport: AsyncTransport) -> None:
        self._transport = transport

    async def buy(self, market_id: str, outcome_index: int, amount: Usdc, *, block: int | None = None) -> Quote:
        """The tokens that a buy of `amount` USDC, fee included, receives; now or after a block."""
        if not isinstance(amount, Usdc):
            raise TypeError(f"the amount of a buy must be a Usdc, not {type(amount).__name__}")
        return await self._quote(market_id, outcome_index, "buy", amount, block)

    async def sell(self, market_id: str, outcome_index: int, tokens: Wad, *, block: int | None = None) -> Quote:
        """The USDC that a sell of `tokens` brings, after the fee; now or after a block."""
        if not isinstance(tokens, Wad):
            raise TypeError(f"the amount of a sell must be a Wad, not {type(tokens).__name__}")
        return await self._quote(market_id, outcome_index, "sell", tokens, block)

    async def _quote(
        self, market_id: str, outcome_index: int, action: Side, amount: Usdc | Wad, block: int | None
    ) -> Quote:
        target = path("/v1/markets/{}/quote", market_id)
        request = get(target, outcomeIndex=outcome_index, action=action, amount=amount.atomic, block=block)
        return await self._transport.resource(request, "quote", Quote)


class AsyncPortfolio:
    """`client.portfolio`: the smart account's balance and positions."""

    def __init__(self, transport: AsyncTransport) -> None:
        self._transport = transport

    async def get(self) -> PortfolioTotals:
        """The balance, and the totals of the positions."""
        return await self._transport.resource(get("/v1/portfolio"), "portfolio", PortfolioTotals)

    async def positions(self, *, market_id: str | None = None) -> Page[Position]:
        """Every position, in one page."""
        return await self._transport.page(get("/v1/portfolio/positions", marketId=market_id), "data", Position)


class AsyncRedemptions:
    """`client.redemptions`: winnings of resolved markets and refunds of cancelled ones."""

    def __init__(self, transport: AsyncTransport) -> None:
        self._transport = transport

    async def create(self, market_id: str, outcome_index: int) -> Redemption:
        """Claims a position. A position has one claim, so a repeated call returns the same one."""
        request = post("/v1/redemptions", {"marketId": market_id, "outcomeIndex": outcome_index})
        return await self._transport.resource(request, "redemption", Redemption)

    async def get(self, redemption_id: str) -> Redemption:
        """One claim."""
        request = get(path("/v1/redemptions/{}", redemption_id))
        return await self._transport.resource(request, "redemption", Redemption)

    def list(self, **query: Unpack[ListRedemptionsQuery]) -> AsyncPager[Redemption]:
        """The user's claims, newest first."""
        return self._transport.list("/v1/redemptions", Redemption, parameters(query, ListRedemptionsQuery))


class AsyncWebhooks:
    """`client.webhooks`: deliveries, and the secret that signs them."""

    verify = staticmethod(_webhooks.verify)

    def __init__(self, transport: AsyncTransport) -> None:
        self._transport = transport

    def events(self, **query: Unpack[ListWebhookEventsQuery]) -> AsyncPager[WebhookEvent]:
        """The events of all keys of the user with their deliveries, newest first."""
        return self._transport.list("/v1/webhooks/events", WebhookEvent, parameters(query, ListWebhookEventsQuery))

    async def event(self, event_id: str) -> WebhookEvent:
        """One event with its payload and every attempt."""
        request = get(path("/v1/webhooks/events/{}", event_id))
        return await self._transport.resource(request, "event", WebhookEvent)

    async def redeliver(self, event_id: str) -> QueuedEvent:
        """Queues an event once more. Each call queues one more delivery, so an uncertain attempt is not repeated."""
        request = post(path("/v1/webhooks/events/{}/redeliver", event_id), again=False)
        return await self._transport.resource(request, "event", QueuedEvent)

    async def test(self) -> QueuedEvent:
        """Queues a test event. An uncertain attempt is not repeated."""
        return await self._transport.resource(post("/v1/webhooks/test", again=False), "event", QueuedEvent)

    async def endpoint(self) -> WebhookEndpoint:
        """The key's receiver and its queue."""
        return await self._transport.resource(get("/v1/webhooks/endpoint"), "endpoint", WebhookEndpoint)

    async def rotate_secret(self) -> WebhookSecret:
        """Replaces the key's webhook secret, and returns the new one, which is shown once.

        The previous secret signs for seven more days. An uncertain attempt is not repeated: rotate again after a
        minute if the answer was lost.
        """
        request = post("/v1/auth/api-keys/me/webhook-secret/rotate", again=False)
        return await self._transport.resource(request, "webhookSecret", WebhookSecret)
