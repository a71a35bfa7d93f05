"""Lists that are read page by page."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Generic, TypeVar

from .._response import Page

_T = TypeVar("_T")


class AsyncPager(Generic[_T]):
    """A list of the API. Iterate over it to read every item, page after page.

    Nothing is requested before the first item is.
    """

    def __init__(self, fetch: Callable[[str | None], Awaitable[Page[_T]]], cursor: str | None = None) -> None:
        self._fetch = fetch
        self._cursor = cursor

    async def page(self) -> Page[_T]:
        """The first page. Its `cursor` is the position of the next one."""
        return await self._fetch(self._cursor)

    async def pages(self) -> AsyncIterator[Page[_T]]:
        """Every page."""
        cursor = self._cursor
        while True:
            page = await self._fetch(cursor)
            yield page
            if not page.has_more:
                return
            cursor = page.cursor

    async def __aiter__(self) -> AsyncIterator[_T]:
        """Every item."""
        async for page in self.pages():
            for item in page:
                yield item

    async def first(self, most: int) -> list[_T]:
        """The first items, at most this many."""
        items: list[_T] = []
        async for page in self.pages():
            items += page[: most - len(items)]
            if len(items) >= most:
                break
        return items
