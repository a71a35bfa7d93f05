"""Time and waiting, for both kinds of client."""

from __future__ import annotations

import asyncio
import time
from time import monotonic

__all__ = ["async_sleep", "monotonic", "now_ms", "sleep"]


def now_ms() -> int:
    """Milliseconds since 1970."""
    return time.time_ns() // 1_000_000


async def async_sleep(seconds: float) -> None:
    """Waits without blocking the event loop."""
    await asyncio.sleep(seconds)


def sleep(seconds: float) -> None:
    """Waits."""
    time.sleep(seconds)
