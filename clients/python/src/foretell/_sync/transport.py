# Generated from _async by tools/unasync.py.
"""Sends requests, and sends them again."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
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
from .pages import Pager

_T = TypeVar("_T")
_R = TypeVar("_R")


class Transport:
    """One connection pool, with the settings of a client."""

    def __init__(self, options: Options, http: httpx.Client, cache: AnswerCache) -> None:
        self.options = options
        self.rate_limits = RateLimits()
        self._http = http
        self._cache = cache

    def resource(self, request: Request, name: str, shape: type[_T]) -> _T:
        """The object `name` of the answer."""
        return self._call(request, lambda reply: reply.resource(name, shape))

    def page(self, request: Request, name: str, shape: type[_T], offset: int | None = None) -> Page[_T]:
        """The list `name` of the answer."""
        return self._call(request, lambda reply: reply.page(name, shape, offset))

    def list(self, target: str, shape: type[_T], query: dict[str, Any]) -> Pager[_T]:
        """The items of a list of the trading API."""

        def fetch(cursor: str | None) -> Page[_T]:
            return self.page(get(target, **{**query, "cursor": cursor}), "data", shape)

        return Pager(fetch, query.get("cursor"))

    def whole(self, request: Request, shape: type[_T]) -> _T:
        """The whole answer."""
        return self._call(request, lambda reply: reply.whole(shape))

    def _call(self, request: Request, read: Callable[[Reply], _R]) -> _R:
        """Returns what `read` makes of the answer, with retries until the deadline."""
        attempts = Attempts(request, self.options, _time.monotonic)
        while True:
            try:
                return read(self._attempt(request, attempts.start(), attempts.count))
            except ForetellError as error:
                pause = attempts.pause_after(error)
                if pause is None:
                    raise
            _time.sleep(pause)

    def _attempt(self, request: Request, timeout: float, number: int) -> Reply:
        ends = _time.monotonic() + timeout
        stored = self._cache.find(request)
        sent = self._build(request, timeout, accept=None, etag=stored.etag if stored else None)
        try:
            response = self._http.send(sent, stream=True)
            try:
                content = self._read(request, response, ends)
            finally:
                response.close()
        except httpx.HTTPError as cause:
            raise connection_failed(request, cause) from cause
        finally:
            forget_secrets(sent)
        self.rate_limits.update_from(response.headers)
        reply = read_answer(request, response.status_code, response.headers, content, stored)
        self._cache.store(request, response.status_code, response.headers, content)
        reply.response = replace(reply.response, attempts=number)
        return reply

    def _read(self, request: Request, response: httpx.Response, ends: float) -> bytes:
        content = bytearray()
        for chunk in response.iter_bytes():
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

    @contextmanager
    def stream(self, request: Request, silence: float) -> Generator[Iterator[StreamMessage], None, None]:
        """Opens a stream once, and yields its messages. Reading fails after `silence` seconds without a byte."""
        sent = self._build(request, silence, accept="text/event-stream")
        try:
            try:
                response = self._http.send(sent, stream=True)
            finally:
                forget_secrets(sent)
            try:
                self.rate_limits.update_from(response.headers)
                if response.status_code != 200 or "text/event-stream" not in response.headers.get("content-type", ""):
                    content = self._read(request, response, _time.monotonic() + silence)
                    reply = read_answer(request, response.status_code, response.headers, content, None)
                    raise unreadable(request, "the answer is not a stream", reply.response)
                yield _messages(response)
            finally:
                response.close()
        except httpx.HTTPError as cause:
            raise connection_failed(request, cause) from cause

    def close(self) -> None:
        """Closes the connections."""
        self._http.close()


def _messages(response: httpx.Response) -> Iterator[StreamMessage]:
    parser = Parser()
    for chunk in response.iter_bytes():
        for message in parser.feed(chunk):
            yield message
