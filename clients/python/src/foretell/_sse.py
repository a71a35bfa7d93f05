"""Server-sent events, and the position in the feed."""

from __future__ import annotations

import json
from collections import OrderedDict
from typing import Any, NamedTuple

from .errors import ForetellError, Unavailable

_MOST_LINE = 4 << 20
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_MOST_REMEMBERED = 10_000
# Positions of the feed from before the data was restored.
RESTARTED = "FEED_RESTARTED"


class StreamMessage(NamedTuple):
    """One event of a stream."""

    event: str
    """Its type, such as `trade`, `status` or `heartbeat`."""
    id: str | None
    """Its position, for a later stream."""
    data: dict[str, Any]
    """Its members."""


class Parser:
    """Reads the messages of a stream out of its bytes, wherever these are divided."""

    def __init__(self) -> None:
        self._rest = b""
        self._is_first, self._ends_with_cr = True, False
        self._event, self._id = "", ""
        self._data: list[str] = []

    def feed(self, chunk: bytes) -> list[StreamMessage]:
        """The messages that end in this chunk."""
        if self._ends_with_cr and chunk.startswith(b"\n"):
            chunk = chunk[1:]
            self._ends_with_cr = False
        if chunk:
            self._ends_with_cr = chunk.endswith(b"\r")
        *lines, self._rest = (self._rest + chunk.replace(b"\r\n", b"\n").replace(b"\r", b"\n")).split(b"\n")
        if len(self._rest) > _MOST_LINE:
            raise Unavailable("UNREADABLE_ANSWER", "the stream sends a line of more than 4 MiB")
        return [message for line in lines if (message := self._read(line)) is not None]

    def _read(self, line: bytes) -> StreamMessage | None:
        if self._is_first:
            self._is_first, line = False, line.removeprefix(_BYTE_ORDER_MARK)
        if line:
            self._set(*line.decode(errors="replace").partition(":"))
            return None
        event, data = self._event or "message", "\n".join(self._data)
        self._event, self._data = "", []
        return StreamMessage(event, self._id or None, _members(data)) if data else None

    def _set(self, name: str, _: str, value: str) -> None:
        value = value.removeprefix(" ")
        if name == "event":
            self._event = value
        elif name == "id":
            self._id = value
        elif name == "data":
            self._data.append(value)
            if sum(map(len, self._data)) > _MOST_LINE:
                raise Unavailable("UNREADABLE_ANSWER", "the stream sends an event of more than 4 MiB")


def _members(data: str) -> dict[str, Any]:
    try:
        members = json.loads(data)
    except (ValueError, RecursionError):
        members = None
    if not isinstance(members, dict):
        raise Unavailable("UNREADABLE_ANSWER", "the stream sends data that is not a JSON object")
    return members


class StreamEnded(Exception):
    """The service said that the stream ends."""


class FeedState:
    """The position of a reader of the feed, and the events that it has read."""

    def __init__(self, position: str | None, start: str) -> None:
        self.position = position
        self.start = start
        self._seen: OrderedDict[str, None] = OrderedDict()

    @property
    def generation(self) -> int | None:
        """The generation of the position."""
        first = (self.position or "").partition("-")[0]
        return int(first) if first.isascii() and first.isdigit() and len(first) < 16 else None

    def take(self, message: StreamMessage) -> dict[str, Any] | None:
        """The event of a message, or None if there is nothing to deliver."""
        if message.event == "closing":
            raise StreamEnded(str(message.data.get("reason")))
        self.position = message.id or self.position
        event_id = message.data.get("id")
        if message.event == "heartbeat" or not isinstance(event_id, str) or event_id in self._seen:
            return None
        self._seen[event_id] = None
        if len(self._seen) > _MOST_REMEMBERED:
            self._seen.popitem(last=False)
        return message.data

    def restart(self, error: ForetellError) -> bool:
        """Begins again at the start of a new generation. False if the error is another one."""
        if error.code != RESTARTED or self.position is None:
            return False
        self.position, self.start = None, "oldest"
        return True
