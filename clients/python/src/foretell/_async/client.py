"""The client."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType, TracebackType
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import httpx

from .._core import API_VERSION, AnswerCache, Options, default_user_agent, get, post, read_key
from .._response import RateLimit
from ..types import AccountReadiness, ApiKey, Health, Pause, Readiness, Usage
from .account import AsyncMarkets, AsyncPortfolio, AsyncQuotes, AsyncRedemptions, AsyncWebhooks
from .events import AsyncEvents
from .public import AsyncPublic
from .trades import AsyncTrades
from .transport import AsyncTransport

if TYPE_CHECKING:
    from typing_extensions import Self


class AsyncForetell:
    """A client of the trading API and the public read API.

    Methods return the API's objects as dicts; `response_of` has the metadata of an answer. Writes are safe to retry
    and are retried: each creation has an idempotency key before its first attempt.

    Use it as a context manager, or close it.
    """

    trades: AsyncTrades
    quotes: AsyncQuotes
    markets: AsyncMarkets
    portfolio: AsyncPortfolio
    redemptions: AsyncRedemptions
    events: AsyncEvents
    webhooks: AsyncWebhooks
    public: AsyncPublic

    def __init__(
        self,
        base_url: str,
        api_key: str | None = None,
        *,
        sign_requests: bool = False,
        api_version: str | None = API_VERSION,
        deadline: float = 30.0,
        attempt_timeout: float = 12.0,
        backoff: float = 1.0,
        idle_timeout: float = 45.0,
        stream_patience: float = 3.0,
        etag_cache: int = 0,
        user_agent: str | None = None,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        """Opens no connection yet.

        - `base_url`: the address of the service, such as `https://api.foretell.example`.
        - `api_key`: not needed for `public`.
        - `sign_requests`: signs each request with the key, against proxies that change a body.
        - `api_version`: the version of the API to ask for; None for the key's.
        - `deadline`: how many seconds a call may take with all its attempts.
        - `attempt_timeout`: how many seconds one attempt may take. The service itself answers within 10.
        - `backoff`: the pause before the second attempt in seconds. It doubles with each further one.
        - `idle_timeout`: after how many seconds without a byte a stream is dead. Heartbeats come every 15 seconds.
        - `stream_patience`: how many seconds a wait for a trade waits for the first heartbeat, before it polls.
        - `etag_cache`: how many answers to reads are stored, to be returned again after a 304.
        - `user_agent`: put in front of the client's own.
        - `transport`: sends the requests in the place of httpx's own transport.
        """
        parts = urlsplit(base_url)
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment:
            raise ValueError("base_url must be an address such as https://api.foretell.example")
        if sign_requests and api_key is None:
            raise ValueError("sign_requests needs an api_key, which is the secret of the signatures")
        own = default_user_agent()
        options = Options(
            base_url=base_url.rstrip("/"),
            key=None if api_key is None else read_key(api_key),
            sign_requests=sign_requests,
            api_version=api_version,
            deadline=deadline,
            attempt_timeout=attempt_timeout,
            backoff=backoff,
            idle_timeout=idle_timeout,
            stream_patience=stream_patience,
            user_agent=f"{user_agent} {own}" if user_agent else own,
        )
        limits = httpx.Limits(max_connections=100, max_keepalive_connections=20)
        http = httpx.AsyncClient(transport=transport, limits=limits, follow_redirects=False)
        self._transport = AsyncTransport(options, http, AnswerCache(etag_cache))
        self.trades = AsyncTrades(self._transport)
        self.quotes = AsyncQuotes(self._transport)
        self.markets = AsyncMarkets(self._transport)
        self.portfolio = AsyncPortfolio(self._transport)
        self.redemptions = AsyncRedemptions(self._transport)
        self.events = AsyncEvents(self._transport)
        self.webhooks = AsyncWebhooks(self._transport)
        self.public = AsyncPublic(self._transport)

    @classmethod
    def from_env(cls, environ: Mapping[str, str] | None = None) -> Self:
        """A client for `FORETELL_BASE_URL`, with the key in the file that `FORETELL_API_KEY_FILE` names or in
        `FORETELL_API_KEY`."""
        env = os.environ if environ is None else environ
        if "FORETELL_BASE_URL" not in env:
            raise ValueError("FORETELL_BASE_URL must be the address of the service")
        file = env.get("FORETELL_API_KEY_FILE")
        key = Path(file).read_text(encoding="utf-8").strip() if file else env.get("FORETELL_API_KEY")
        return cls(env["FORETELL_BASE_URL"], key)

    @property
    def rate_limits(self) -> Mapping[str, RateLimit]:
        """The last known state of each request counter: `read`, `write`, `redelivery` or `address`."""
        return MappingProxyType(self._transport.rate_limits)

    async def key(self) -> ApiKey:
        """The calling key with its scopes and limits."""
        return await self._transport.resource(get("/v1/key"), "key", ApiKey)

    async def usage(self) -> Usage:
        """The calling key's numbers of the last day, week and month."""
        return await self._transport.resource(get("/v1/account/usage"), "usage", Usage)

    async def account_readiness(self) -> AccountReadiness:
        """If the key can trade, and what is missing."""
        return await self._transport.resource(get("/v1/account/readiness"), "readiness", AccountReadiness)

    async def pause(self) -> Pause:
        """The emergency stop of the calling key. No call resumes it."""
        return await self._transport.resource(post("/v1/account/pause"), "pause", Pause)

    async def health(self) -> Health:
        """If the process runs."""
        return await self._transport.whole(get("/v1/health"), Health)

    async def ready(self) -> Readiness:
        """If the service can work. Raises `Unavailable` if it cannot."""
        return await self._transport.whole(get("/v1/ready"), Readiness)

    async def aclose(self) -> None:
        """Closes the connections."""
        await self._transport.aclose()

    async def __aenter__(self) -> Self:
        """The client itself."""
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Closes the client."""
        await self.aclose()

    def __repr__(self) -> str:
        """The address, without the key."""
        return f"{type(self).__name__}({self._transport.options.base_url!r})"
