"""What every answer tells about its request."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Any, TypeVar, cast

_T = TypeVar("_T")
_COUNTER = re.compile(r'\s*"([^"]{1,64})"')


@dataclass(frozen=True)
class RateLimit:
    """The state of one request counter, as of one answer."""

    limit: int
    """Requests that the counter allows."""
    remaining: int
    """Requests that are left."""
    reset_at: datetime
    """The time at which the whole limit is available again, if nothing else is sent."""
    counter: str | None
    """`read`, `write`, `redelivery` or another counter, if the answer names it."""


@dataclass(frozen=True)
class Response:
    """The metadata of an answer."""

    status: int
    request_id: str | None
    rate_limit: RateLimit | None
    api_version: str | None
    etag: str | None
    is_replay: bool
    """True if the answer repeats an earlier one with the same idempotency key."""
    is_from_cache: bool
    """True if the service answered 304 and the body is the stored one."""
    attempts: int
    """The number of requests that were sent until this answer came."""


class Resource(dict[str, Any]):
    """A JSON object with the metadata of the answer that contained it."""

    response: Response


class Page(list[_T]):
    """One page of a list, with the metadata of its answer."""

    def __init__(self, items: Iterable[_T], cursor: str | None, has_more: bool, response: Response) -> None:
        super().__init__(items)
        self.cursor = cursor
        """The position of the next page."""
        self.has_more = has_more
        """False on the last page."""
        self.response = response
        """The metadata of the answer."""

    def track(self, item: _T) -> _T:
        """An item as a result of its own, which `response_of` takes."""
        resource = Resource(cast("dict[str, Any]", item))
        resource.response = self.response
        return cast(_T, resource)


def response_of(resource: Mapping[str, Any]) -> Response:
    """The metadata of the answer that contained `resource`: its rate limit, request id and status.

    Raises `TypeError` for a dict that is no direct result of a call, such as a copy or an item of a page.
    """
    if not isinstance(resource, Resource):
        raise TypeError("only the direct result of a call has a response; use the response of its page")
    return resource.response


def read_rate_limit(headers: Mapping[str, str]) -> RateLimit | None:
    """The rate limit that an answer reports, or None."""
    values = [headers.get(f"x-ratelimit-{name}", "") for name in ("limit", "remaining", "reset")]
    if not all(value.isascii() and value.isdigit() and len(value) <= 14 for value in values):
        return None
    limit, remaining, reset = map(int, values)
    # The public API counts in milliseconds, the trading API in seconds.
    seconds = reset / 1000 if reset > 100_000_000_000 else reset
    counter = _COUNTER.match(headers.get("ratelimit", ""))
    return RateLimit(limit, remaining, datetime.fromtimestamp(seconds, timezone.utc), counter[1] if counter else None)
