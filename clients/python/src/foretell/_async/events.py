"""The feed of events."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable
from types import TracebackType
from typing import TYPE_CHECKING, Any, cast

from .. import _time
from .._core import Request, get, parameters, pause_of
from .._response import Page
from .._sse import FeedState, StreamEnded
from ..errors import ForetellError, RateLimited, Unavailable
from ..types import Beginning, Event, ListEventsQuery
from .pages import AsyncPager
from .transport import AsyncTransport

if TYPE_CHECKING:
    from typing_extensions import Self, Unpack


class AsyncEventStream:
    """An endless iterator over the events of the feed.

    It reconnects after faults and restarts of the service, and continues after the last event that it returned.
    Store `position` together with the results of your work, and pass it as `after` when your program starts again.

    If the operator restores data from a backup, the feed begins a new generation. The stream then reads the feed from
    its start and leaves out the last 10,000 events that it has returned. Older events may come again: ignore each `id`
    that you have processed.

    Errors that a new request would get too end the iteration, such as `Authentication`. After `CURSOR_EXPIRED`,
    events were lost: read `trades.list()`, then stream again from the oldest event.
    """

    def __init__(self, transport: AsyncTransport, types: Iterable[str] | str | None, state: FeedState) -> None:
        self._transport = transport
        self._types = types if types is None or isinstance(types, str) else ",".join(types)
        self._state = state
        self._events = self._run()

    @property
    def position(self) -> str | None:
        """The position after the last event that was returned, such as `1-42`."""
        return self._state.position

    @property
    def generation(self) -> int | None:
        """The feed's generation. It grows if data was restored: read your records from `trades.list()` again."""
        return self._state.generation

    def __aiter__(self) -> Self:
        """The stream itself."""
        return self

    async def __anext__(self) -> Event:
        """The next event. Waits until there is one."""
        return await self._events.__anext__()

    async def __aenter__(self) -> Self:
        """The stream itself."""
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Closes the stream."""
        await self.aclose()

    async def aclose(self) -> None:
        """Closes the connection."""
        await self._events.aclose()

    def _request(self) -> Request:
        if self._state.position is None:
            return get("/v1/events", types=self._types, **{"from": self._state.start})
        request = get("/v1/events", types=self._types)
        return Request("GET", request.path, request.query, None, (("Last-Event-ID", self._state.position),))

    async def _run(self) -> AsyncGenerator[Event, None]:
        failures = 0
        options = self._transport.options
        while True:
            is_interrupted = False
            retry_after = None
            try:
                async with self._transport.stream(self._request(), options.idle_timeout) as messages:
                    async for message in messages:
                        event = self._state.take(message)
                        if event is not None:
                            failures, is_interrupted = 0, True
                            yield cast(Event, event)
            except StreamEnded:
                # Whatever the reason was, the next request is told it too.
                pass
            except ForetellError as error:
                if self._state.restart(error):
                    continue
                if not isinstance(error, Unavailable | RateLimited):
                    raise
                retry_after = error.retry_after
            # A stream that brought events is resumed at once.
            if not is_interrupted:
                failures += 1
                await _time.async_sleep(pause_of(failures, retry_after, options))


class AsyncEvents:
    """`client.events`: everything that happens to your trades, claims and positions."""

    def __init__(self, transport: AsyncTransport) -> None:
        self._transport = transport

    def stream(
        self, *, types: Iterable[str] | str | None = None, after: str | None = None, start: Beginning = "latest"
    ) -> AsyncEventStream:
        """Events as they happen, without an end. Resumes after the position `after`, or else begins at `start`.

        `types` are the types to return, `"*"` for all of them.
        """
        return AsyncEventStream(self._transport, types, FeedState(after, start))

    def list(self, **query: Unpack[ListEventsQuery]) -> AsyncPager[Event]:
        """The stored events, oldest first. Pass the last page's `cursor` later to get what happened since."""
        given = parameters(query, ListEventsQuery)
        start = given.pop("from", None) or "oldest"

        async def fetch(cursor: str | None) -> Page[Event]:
            # A cursor includes the start.
            first: dict[str, Any] = {"from": start} if cursor is None else {}
            request = get("/v1/events", **{**given, **first, "cursor": cursor})
            return await self._transport.page(request, "data", Event)

        return AsyncPager(fetch, given.get("cursor"))
