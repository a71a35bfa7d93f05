"""Trades, and the wait for their end."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from .. import _time
from .._core import Request, get, parameters, path, post
from .._response import response_of
from .._trades import NAME_CONFLICTS, Progress, TradeOptions, body_of, creation, has_ended, is_same_trade, names_of
from ..errors import ForetellError, Unavailable
from ..money import Usdc, Wad
from ..types import DryRun, ListTradesQuery, Side, Trace, Trade, TradeStatusChange
from .pages import AsyncPager
from .transport import AsyncTransport

if TYPE_CHECKING:
    from typing_extensions import Unpack

# A trade has ten minutes, and the chain some time to make its result final.
WAIT_S = 660.0
_LONGEST_POLL_S = 5.0


class AsyncTrades:
    """`client.trades`: create trades, follow them, confirm large ones."""

    def __init__(self, transport: AsyncTransport) -> None:
        self._transport = transport

    async def create(
        self,
        market_id: str,
        outcome_index: int,
        side: Side,
        amount: str | Usdc | Wad | None = None,
        *,
        client_request_id: str | None = None,
        idempotency_key: str | None = None,
        **options: Unpack[TradeOptions],
    ) -> Trade:
        """Creates a trade, at most once.

        `amount` is a decimal string in whole USDC (or tokens, with `amount_type="tokens"`), a `Usdc`, or a `Wad` for
        tokens. Every attempt has the same `Idempotency-Key`: `idempotency_key` or a new one. It is also the
        `clientRequestId` unless you give one. To continue after your own restart, pass the same name again: the call
        then returns the trade that exists, as it was created. `get` and `create_and_wait` return it as it is now.

        A trade at or above the key's threshold is `pending_confirmation`: pass the token of its `confirmation` to
        `confirm`.

        If attempts were left without an answer, the trade is looked up before an error is raised. An error with
        `submission` `unknown` therefore means that it is not there yet: repeat the call with the same name.
        """
        body = body_of(market_id, outcome_index, side, amount, options)
        key, name = names_of(idempotency_key, client_request_id)
        request = creation(body, key, name)
        try:
            return await self._transport.resource(request, "trade", Trade)
        except ForetellError as error:
            if not error._is_uncertain or error.code in NAME_CONFLICTS:
                raise
            found = await self._look_up(request, body, name) if name is not None else None
            if found is None:
                error.submission = "unknown"
                raise
            return found

    async def _look_up(self, request: Request, body: Mapping[str, Any], name: str) -> Trade | None:
        """The trade of a creation that was left without an answer."""
        try:
            page = await self.list(client_request_id=name).page()
            found = next((trade for trade in page if is_same_trade(body, trade)), None)
            if found is not None and found["status"] == "pending_confirmation":
                # Only a replay of the creation has the token.
                return await self._transport.resource(request, "trade", Trade)
            return None if found is None else page.track(found)
        except ForetellError:
            # The error of the creation says more.
            return None

    async def create_and_wait(
        self,
        market_id: str,
        outcome_index: int,
        side: Side,
        amount: str | Usdc | Wad | None = None,
        *,
        client_request_id: str | None = None,
        idempotency_key: str | None = None,
        timeout: float = WAIT_S,
        on_status: Callable[[TradeStatusChange], object] | None = None,
        **options: Unpack[TradeOptions],
    ) -> Trade:
        """Creates a trade like `create`, and returns it when it is `completed`, `failed` or `rejected`.

        A trade that must be confirmed first is returned at once, as `pending_confirmation`. `on_status` receives each
        status of the trade, once and in order.
        """
        progress = Progress(on_status)
        created = await self.create(
            market_id,
            outcome_index,
            side,
            amount,
            client_request_id=client_request_id,
            idempotency_key=idempotency_key,
            **options,
        )
        trade = progress.report(created)
        if has_ended(trade) or trade["status"] == "pending_confirmation":
            return trade
        if response_of(trade).is_replay:
            # It has the trade as it was created.
            trade = progress.report(await self.get(trade["id"]))
        return trade if has_ended(trade) else await self._wait(trade["id"], timeout, progress)

    async def dry_run(
        self,
        market_id: str,
        outcome_index: int,
        side: Side,
        amount: str | Usdc | Wad | None = None,
        **options: Unpack[TradeOptions],
    ) -> DryRun:
        """Makes every check of a creation and shows what would move, but creates nothing."""
        body = body_of(market_id, outcome_index, side, amount, options)
        return await self._transport.resource(post("/v1/trades", {**body, "dryRun": True}), "dryRun", DryRun)

    async def confirm(self, trade_id: str, token: str) -> Trade:
        """Releases a trade that is held, with the token of its `confirmation`.

        A token can be used once. If the answer to the first use was lost, the trade is looked up.
        """
        request = post(path("/v1/trades/{}/confirm", trade_id), {"token": token})
        try:
            return await self._transport.resource(request, "trade", Trade)
        except ForetellError as error:
            # An earlier attempt, whose answer was lost, has confirmed the trade.
            if error._is_uncertain and error.code == "CONFIRMATION_TOKEN_USED":
                return await self.get(trade_id)
            raise

    async def get(self, trade_id: str) -> Trade:
        """One trade."""
        return await self._transport.resource(get(path("/v1/trades/{}", trade_id)), "trade", Trade)

    def list(self, **query: Unpack[ListTradesQuery]) -> AsyncPager[Trade]:
        """The user's trades, newest first."""
        return self._transport.list("/v1/trades", Trade, parameters(query, ListTradesQuery))

    async def trace(self, correlation_id: str) -> Trace:
        """Each step of a trade with its time."""
        return await self._transport.resource(get(path("/v1/traces/{}", correlation_id)), "trace", Trace)

    async def wait(
        self, trade_id: str, *, timeout: float = WAIT_S, on_status: Callable[[TradeStatusChange], object] | None = None
    ) -> Trade:
        """Returns a trade when it is `completed`, `failed` or `rejected`.

        Follows the feed of events, or polls if streams do not arrive. Raises `Unavailable` with the code
        `WAIT_TIMED_OUT` after `timeout` seconds. `on_status` receives each status of the trade, once and in order.
        """
        return await self._wait(trade_id, timeout, Progress(on_status))

    async def _wait(self, trade_id: str, timeout: float, progress: Progress) -> Trade:
        ends = _time.monotonic() + timeout
        silence = self._transport.options.stream_patience
        while (left := ends - _time.monotonic()) > 0:
            trade, is_heard = await self._follow(trade_id, min(silence, left), ends, progress)
            if trade is not None:
                return trade
            if not is_heard:
                break
            silence = self._transport.options.idle_timeout
            await _time.async_sleep(min(self._transport.options.backoff, 1.0))
        pause = 0.25
        while True:
            trade = progress.report(await self.get(trade_id))
            if has_ended(trade):
                return trade
            if _time.monotonic() + pause > ends:
                break
            await _time.async_sleep(pause)
            pause = min(pause * 2, _LONGEST_POLL_S)
        detail = f"the trade is still {trade['status']} after {timeout:g} seconds"
        raise Unavailable("WAIT_TIMED_OUT", detail, submission="submitted", trade_id=trade_id)

    async def _follow(
        self, trade_id: str, silence: float, ends: float, progress: Progress
    ) -> tuple[Trade | None, bool]:
        """Follows one stream until the trade ends. The second value is true if the stream sent anything."""
        request = get("/v1/events", types=progress.events, **{"from": "latest"})
        is_heard = False
        try:
            async with self._transport.stream(request, silence) as messages:
                async for message in messages:
                    details = message.data.get("data")
                    is_about_it = isinstance(details, dict) and details.get("tradeId") == trade_id
                    # Also after the first message, because the trade may have ended before the stream began.
                    if is_about_it or not is_heard:
                        is_heard = True
                        trade = progress.report(await self.get(trade_id))
                        if has_ended(trade):
                            return trade, True
                    if _time.monotonic() > ends:
                        break
        except Unavailable:
            pass
        except ForetellError:
            # Too many streams, or none for this key.
            return None, False
        return None, is_heard
