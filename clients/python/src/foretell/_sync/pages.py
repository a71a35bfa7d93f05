# Generated from _async by tools/unasync.py.
"""Lists that are read page by page."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Generic, TypeVar

from .._response import Page

_T = TypeVar("_T")


class Pager(Generic[_T]):
    """A list of the API. Iterate over it to read every item, page after page.

    Nothing is requested before the first item is.
    """

    def __init__(self, fetch: Callable[[str | None], Page[_T]], cursor: str | None = None) -> None:
        self._fetch = fetch
        self._cursor = cursor

    def page(self) -> Page[_T]:
        """The first page. Its `cursor` is the position of the next one."""
        return self._fetch(self._cursor)

    def pages(self) -> Iterator[Page[_T]]:
        """Every page."""
        cursor = self._cursor
        while True:
            page = self._fetch(cursor)
            yield page
            if not page.has_more:
                return
            cursor = page.cursor

    def __iter__(self) -> Iterator[_T]:
        """Every item."""
        for page in self.pages():
            for item in page:
                yield item

    def first(self, most: int) -> list[_T]:
        """The first items, at most this many."""
        items: list[_T] = []
        for page in self.pages():
            items += page[: most - len(items)]
            if len(items) >= most:
                break
        return items
