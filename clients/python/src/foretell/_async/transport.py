"""Sends requests, and sends them again."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any, TypeVar

import httpx

from .. import _time
from .._core import (
    MAX_BODY,
    AnswerCache,
    Attempts,
    Options,
    RateLimits,
    Reply,
    Request,
    connection_failed,
    describe,
    forget_secrets,
    get,
    headers_of,
    read_answer,
    unreadable,
    without_key,
)
from .._response import Page
from .._sse import Parser, StreamMessage
from ..errors import ForetellError
from .pages import AsyncPager

_T = TypeVar("_T")
_R = TypeVar("_R")


class AsyncTransport:
    """One connection pool, with the settings of a client."""

    def __init__(self, options: Options, http: httpx.AsyncClient, cache: AnswerCache) -> None:
        self.options = options
        self.rate_limits = RateLimits()
        self._http = http
        self._cache = cache

    async def resource(self, request: Request, name: str, shape: type[_T]) -> _T:
        """The object `name` of the answer."""
        return await self._call(request, lambda reply: reply.resource(name, shape))

    async def page(self, request: Request, name: str, shape: type[_T], offset: int | None = None) -> Page[_T]:
        """The list `name` of the answer."""
        return await self._call(request, lambda reply: reply.page(name, shape, offset))

    def list(self, target: str, shape: type[_T], query: dict[str, Any]) -> AsyncPager[_T]:
        """The items of a list of the trading API."""

        async def fetch(cursor: str | None) -> Page[_T]:
            return await self.page(get(target, **{**query, "cursor": cursor}), "data", shape)

        return AsyncPager(fetch, query.get("cursor"))

    async def whole(self, request: Request, shape: type[_T]) -> _T:
        """The whole answer."""
        return await self._call(request, lambda reply: reply.whole(shape))

    async def _call(self, request: Request, read: Callable[[Reply], _R]) -> _R:
        """Returns what `read` makes of the answer, with retries until the deadline."""
        attempts = Attempts(request, self.options, _time.monotonic)
        while True:
            try:
                return read(await self._attempt(request, attempts.start(), attempts.count))
            except ForetellError as error:
                pause = attempts.pause_after(error)
                if pause is None:
                    raise
            await _time.async_sleep(pause)

    async def _attempt(self, request: Request, timeout: float, number: int) -> Reply:
        ends = _time.monotonic() + timeout
        stored = self._cache.find(request)
        sent = self._build(request, timeout, accept=None, etag=stored.etag if stored else None)
        try:
            response = await self._http.send(sent, stream=True)
            try:
                content = await self._read(request, response, ends)
            finally:
                await response.aclose()
        except httpx.HTTPError as cause:
            raise connection_failed(request, cause) from cause
        finally:
            forget_secrets(sent)
        self.rate_limits.update_from(response.headers)
        reply = read_answer(request, response.status_code, response.headers, content, stored)
        self._cache.store(request, response.status_code, response.headers, content)
        reply.response = replace(reply.response, attempts=number)
        return reply

    async def _read(self, request: Request, response: httpx.Response, ends: float) -> bytes:
        content = bytearray()
        async for chunk in response.aiter_bytes():
            content += chunk
            # httpx only limits the time between two chunks.
            if _time.monotonic() > ends:
                raise httpx.ReadTimeout("the answer does not end", request=response.request)
            if len(content) > MAX_BODY:
                info = describe(response.status_code, response.headers, 1)
                raise unreadable(request, "the answer is above 32 MiB", info)
        return bytes(content) if response.status_code < 400 else without_key(bytes(content), self.options)

    def _build(self, request: Request, timeout: float, accept: str | None, etag: str | None = None) -> httpx.Request:
        sent = self._http.build_request(
            request.method, self.options.base_url + request.target, content=request.body, timeout=httpx.Timeout(timeout)
        )
        headers = headers_of(request, self.options, sent.url.raw_path.partition(b"?")[0].decode("ascii"))
        sent.headers.update(headers)
        if accept is not None:
            sent.headers["Accept"] = accept
        if etag is not None:
            sent.headers["If-None-Match"] = etag
        return sent

    @asynccontextmanager
    async def stream(self, request: Request, silence: float) -> AsyncGenerator[AsyncIterator[StreamMessage], None]:
        """Opens a stream once, and yields its messages. Reading fails after `silence` seconds without a byte."""
        sent = self._build(request, silence, accept="text/event-stream")
        try:
            try:
                response = await self._http.send(sent, stream=True)
            finally:
                forget_secrets(sent)
            try:
                self.rate_limits.update_from(response.headers)
                if response.status_code != 200 or "text/event-stream" not in response.headers.get("content-type", ""):
                    content = await self._read(request, response, _time.monotonic() + silence)
                    reply = read_answer(request, response.status_code, response.headers, content, None)
                    raise unreadable(request, "the answer is not a stream", reply.response)
                yield _messages(response)
            finally:
                await response.aclose()
        except httpx.HTTPError as cause:
            raise connection_failed(request, cause) from cause

    async def aclose(self) -> None:
        """Closes the connections."""
        await self._http.aclose()


async def _messages(response: httpx.Response) -> AsyncIterator[StreamMessage]:
    parser = Parser()
    async for chunk in response.aiter_bytes():
        for message in parser.feed(chunk):
            yield message
