"""The rules of requests, answers and retries: no input, no output."""

from __future__ import annotations

import json
import random
import re
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone
from typing import Any, TypeVar, cast
from urllib.parse import quote, urlencode

import httpx

from . import _time
from ._response import Page, RateLimit, Resource, Response, read_rate_limit
from ._version import __version__
from .errors import Conflict, ForetellError, RateLimited, Unavailable, family
from .signing import sign

_T = TypeVar("_T")

UNREADABLE = "UNREADABLE_ANSWER"
API_VERSION = "2026-04-29"
MAX_BODY = 32 << 20
_KEY = re.compile(r"[!-~]{1,200}")
_LONGEST_PAUSE_S = 8.0
_UNDERSCORE = re.compile(r"_([a-z])")
# Words of Python, or unclear without the route.
_NAMES = {"start": "from", "end": "to"}


class Secret:
    """A text that is never printed."""

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        self._text = text

    def reveal(self) -> str:
        """The text."""
        return self._text

    def __repr__(self) -> str:
        return "Secret(...)"


def read_key(text: str) -> Secret:
    """Checks that a key can be sent in a header. No message contains it."""
    if not _KEY.fullmatch(text):
        raise ValueError("api_key must be 1 to 200 visible ASCII characters, such as service_test_ and 32 more")
    return Secret(text)


@dataclass(frozen=True)
class Options:
    """The settings of a client."""

    base_url: str
    key: Secret | None
    sign_requests: bool
    api_version: str | None
    deadline: float
    attempt_timeout: float
    backoff: float
    idle_timeout: float
    stream_patience: float
    user_agent: str


@dataclass(frozen=True)
class Request:
    """A request of the API, before it has a signature."""

    method: str
    path: str
    query: tuple[tuple[str, str], ...] = ()
    body: bytes | None = None
    headers: tuple[tuple[str, str], ...] = ()
    is_repeatable: bool = True
    """True if sending it twice does what sending it once does."""

    @property
    def is_write(self) -> bool:
        """True if the service may store something."""
        return self.method != "GET"

    @property
    def target(self) -> str:
        """The path and the query."""
        return f"{self.path}?{urlencode(self.query)}" if self.query else self.path


def path(template: str, *ids: str) -> str:
    """A path with ids, escaped so that no id can name another route."""
    if any(one in ("", ".", "..") for one in ids):
        raise ValueError("an id must not be empty or a dot")
    return template.format(*(quote(one, safe="") for one in ids))


def get(path: str, /, **query: Any) -> Request:
    """A read. Parameters that are None are not sent."""
    pairs = [(name, query_value(path, value)) for name, value in query.items() if value is not None]
    return Request("GET", path, tuple(pairs))


def parameters(given: Mapping[str, Any], shape: type) -> dict[str, Any]:
    """The parameters of a query under the API's names. `shape` has the names that exist."""
    unknown = given.keys() - shape.__annotations__.keys()
    if unknown:
        # Without a misspelled filter, a list has more than the caller wants.
        raise TypeError(f"{shape.__name__} has no {', '.join(sorted(unknown))}")
    return {_NAMES.get(name) or _UNDERSCORE.sub(lambda one: one[1].upper(), name): given[name] for name in given}


def query_value(path: str, value: Any) -> str:
    """A parameter as the service reads it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, datetime):
        return instant(value) if path.startswith("/v1/") else str(int(value.timestamp()))
    return value if isinstance(value, str) or not isinstance(value, Iterable) else ",".join(map(str, value))


def instant(value: datetime | str) -> str:
    """A time in ISO 8601 and UTC."""
    if isinstance(value, str):
        return value
    if value.tzinfo is None:
        raise ValueError("a time must have a time zone")
    return value.astimezone(timezone.utc).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def post(path: str, body: Mapping[str, Any] | None = None, *, name: str | None = None, again: bool = True) -> Request:
    """A write, with an idempotency key if it has a name. `again` is False if repeating it does more."""
    content = None
    if body is not None:
        members = {member: value for member, value in body.items() if value is not None}
        content = json.dumps(members, separators=(",", ":"), ensure_ascii=False, allow_nan=False).encode()
    headers = (("Idempotency-Key", name),) if name is not None else ()
    return Request("POST", path, (), content, headers, again)


def headers_of(request: Request, options: Options, signed_path: str) -> dict[str, str]:
    """The headers of one attempt. Each attempt is signed with its own time."""
    headers = {"User-Agent": options.user_agent, "Accept": "application/json", **dict(request.headers)}
    if request.body is not None:
        headers["Content-Type"] = "application/json"
    if request.path.startswith("/v1/"):
        if options.api_version is not None:
            headers["X-Service-Api-Version"] = options.api_version
        if options.key is not None:
            headers["X-API-Key"] = options.key.reveal()
            if options.sign_requests:
                time_ms = _time.now_ms()
                text = sign(options.key.reveal(), time_ms, request.method, signed_path, request.body or b"")
                headers["X-Service-Signature"] = text
    return headers


def without_key(content: bytes, options: Options) -> bytes:
    """The body of an error without the key, in case something on the way repeats the request."""
    return content if options.key is None else content.replace(options.key.reveal().encode(), b"***")


def forget_secrets(sent: httpx.Request) -> None:
    """Removes the key from a request that was sent, which errors and answers refer to."""
    for name in ("X-API-Key", "X-Service-Signature"):
        sent.headers.pop(name, None)


@dataclass
class Reply:
    """A successful answer."""

    request: Request
    response: Response
    body: dict[str, Any]

    def resource(self, name: str, shape: type[_T]) -> _T:
        """The object under `name`."""
        value = self.body.get(name)
        if not isinstance(value, dict):
            raise unreadable(self.request, f"the answer has no object {name!r}", self.response)
        return self._track(value, shape)

    def whole(self, shape: type[_T]) -> _T:
        """The whole body."""
        return self._track(self.body, shape)

    def _track(self, value: dict[str, Any], shape: type[_T]) -> _T:  # noqa: ARG002
        resource = Resource(value)
        resource.response = self.response
        return cast(_T, resource)

    def page(self, name: str, shape: type[_T], offset: int | None = None) -> Page[_T]:  # noqa: ARG002
        """The list under `name`, with the position of the next page."""
        items = self.body.get(name)
        if not isinstance(items, list):
            raise unreadable(self.request, f"the answer has no list {name!r}", self.response)
        pagination = self.body.get("pagination")
        found: dict[str, Any] = pagination if isinstance(pagination, dict) else {}
        cursor = found.get("cursor") if offset is None else str(offset + len(items))
        has_more = found.get("hasMore") is True and bool(cursor) and (offset is None or bool(items))
        return Page(items, cursor if isinstance(cursor, str) else None, has_more, self.response)


def describe(status: int, headers: Mapping[str, str], attempts: int, is_from_cache: bool = False) -> Response:
    """The metadata of an answer."""
    return Response(
        status=status,
        request_id=headers.get("x-request-id"),
        rate_limit=read_rate_limit(headers),
        api_version=headers.get("x-service-api-version"),
        etag=headers.get("etag"),
        is_replay=headers.get("idempotent-replayed") == "true",
        is_from_cache=is_from_cache,
        attempts=attempts,
    )


def read_reply(request: Request, status: int, headers: Mapping[str, str], content: bytes) -> Reply:
    """The answer, or its error."""
    response = describe(status, headers, 1)
    body = _parse(content)
    if 200 <= status < 300:
        if body is None:
            raise unreadable(request, "the answer is not a JSON object", response)
        return Reply(request, response, body)
    if body is None or not isinstance(body.get("code"), str) or status < 400:
        # Not the service's: a page of a proxy, or a redirect.
        error = family(status)(
            f"HTTP_{status}",
            "the answer is not one of the API: check the address and the proxies",
            status=status,
            request_id=response.request_id,
            retry_after=_retry_after(headers),
            rate_limit=response.rate_limit,
        )
        if request.is_write and (status < 400 or status >= 500):
            error.submission = "unknown"
        raise error
    raise _problem(status, headers, body, response)


def _problem(status: int, headers: Mapping[str, str], body: Mapping[str, Any], response: Response) -> ForetellError:
    detail = body.get("detail") or body.get("message") or body.get("title") or "no detail"
    extensions = body.get("extensions")
    retry_after = _retry_after(headers)
    given = body.get("retryAfter")
    if retry_after is None and isinstance(given, int):
        retry_after = float(given)
    doc_url, request_id = body.get("type"), body.get("requestId")
    return family(status)(
        body["code"],
        str(detail),
        status=status,
        request_id=request_id if isinstance(request_id, str) else response.request_id,
        doc_url=doc_url if isinstance(doc_url, str) else None,
        retry_after=retry_after,
        extensions=extensions if isinstance(extensions, dict) else None,
        rate_limit=response.rate_limit,
    )


def _parse(content: bytes) -> dict[str, Any] | None:
    try:
        body = json.loads(content)
    except (ValueError, RecursionError):
        return None
    return body if isinstance(body, dict) else None


def _retry_after(headers: Mapping[str, str]) -> float | None:
    text = headers.get("retry-after", "")
    return float(text) if text.isascii() and text.isdigit() and len(text) <= 9 else None


def unreadable(request: Request, detail: str, response: Response) -> Unavailable:
    """A success that does not have the documented form. It may have been stored."""
    error = Unavailable(UNREADABLE, detail, status=response.status, request_id=response.request_id)
    error.submission = "unknown" if request.is_write else None
    return error


def connection_failed(request: Request, cause: httpx.HTTPError) -> Unavailable:
    """An attempt without an answer."""
    error = Unavailable("CONNECTION_FAILED", f"the service did not answer: {type(cause).__name__}: {cause}")
    early = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout, httpx.UnsupportedProtocol, httpx.ProxyError)
    error._is_before_sending = isinstance(cause, early)
    if request.is_write:
        error.submission = "not_submitted" if error._is_before_sending else "unknown"
    return error


def is_retryable(request: Request, error: ForetellError) -> bool:
    """True if the same request may succeed later and repeating it does no harm."""
    if isinstance(error, RateLimited):
        return error.extensions.get("permanent") is not True
    if isinstance(error, Conflict):
        return error.extensions.get("reason") == "in_progress"
    if not isinstance(error, Unavailable):
        return False
    if not request.is_repeatable:
        return error.submission == "not_submitted" and error.status != 500
    return error.status in (None, 502, 503, 504) or error.code == UNREADABLE


def pause_of(failures: int, retry_after: float | None, options: Options) -> float:
    """Seconds to wait after this many failures: what the service asks for, or else ever longer.

    The factor is random, because clients that were cut off together must not return together.
    """
    backoff = min(options.backoff * 2.0 ** (min(failures, 30) - 1), _LONGEST_PAUSE_S)
    return (backoff if retry_after is None else retry_after) * random.uniform(1.0, 1.25)  # noqa: S311 -- no secret


class Attempts:
    """Decides after each failed attempt if and when the next one starts."""

    def __init__(self, request: Request, options: Options, clock: Callable[[], float]) -> None:
        self._request = request
        self._options = options
        self._clock = clock
        self._ends = clock() + options.deadline
        self._is_uncertain = False
        self.count = 0

    def start(self) -> float:
        """Counts an attempt, and returns its timeout."""
        self.count += 1
        return min(self._options.attempt_timeout, max(1.0, self._ends - self._clock()))

    def pause_after(self, error: ForetellError) -> float | None:
        """Seconds until the next attempt, or None if the error is the result."""
        self._is_uncertain = self._is_uncertain or error.submission == "unknown"
        error.attempts = self.count
        error._is_uncertain = self._is_uncertain
        if not is_retryable(self._request, error):
            return None
        pause = pause_of(self.count, error.retry_after, self._options)
        return pause if self._clock() + pause < self._ends else None


@dataclass
class _Stored:
    etag: str
    content: bytes


@dataclass
class AnswerCache:
    """The last answers with their entity tags, the oldest of which is dropped first."""

    size: int
    _entries: OrderedDict[str, _Stored] = field(default_factory=OrderedDict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def find(self, request: Request) -> _Stored | None:
        """The stored answer of a read."""
        with self._lock:
            entry = self._entries.get(request.target) if request.method == "GET" else None
            if entry is not None:
                self._entries.move_to_end(request.target)
            return entry

    def store(self, request: Request, status: int, headers: Mapping[str, str], content: bytes) -> None:
        """Stores an answer that has an entity tag."""
        etag = headers.get("etag")
        if self.size < 1 or status != 200 or request.method != "GET" or not etag:
            return
        with self._lock:
            self._entries[request.target] = _Stored(etag, content)
            self._entries.move_to_end(request.target)
            while len(self._entries) > self.size:
                self._entries.popitem(last=False)


def read_answer(
    request: Request, status: int, headers: Mapping[str, str], content: bytes, stored: _Stored | None
) -> Reply:
    """The answer of one attempt, taken from the cache after a 304."""
    if status == 304 and stored is not None:
        reply = read_reply(request, 200, headers, stored.content)
        reply.response = replace(reply.response, status=304, is_from_cache=True)
        return reply
    return read_reply(request, status, headers, content)


class RateLimits(dict[str, RateLimit]):
    """The last state of each request counter."""

    def update_from(self, headers: Mapping[str, str]) -> None:
        """Remembers what an answer reports."""
        found = read_rate_limit(headers)
        if found is not None and found.counter is not None:
            self[found.counter] = found


def default_user_agent() -> str:
    """The value of the header `User-Agent`."""
    return f"foretell-python/{__version__}"
