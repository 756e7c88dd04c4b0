"""All pages of a list, whatever the server does with its cursors (MC11, MC12)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from toolcrib.sources.mcp.content.shapes import list_of

__all__ = ["MAX_ITEMS", "MAX_PAGES", "all_pages"]

MAX_PAGES = 1000
MAX_ITEMS = 20_000
"""Far beyond what any model could be offered: a list that has more has no end."""


async def all_pages(
    ask: Callable[[dict[str, Any]], Awaitable[dict[str, Any]]], key: str
) -> tuple[list[Any], bool]:
    """The items under `key` of every page that `ask(params)` gives, and whether that was all.

    An empty cursor is a cursor. Stops at one that was there before, after 1000 pages and after
    20,000 items; the caller bounds the time.
    """
    items: list[Any] = []
    seen: set[str] = set()
    params: dict[str, Any] = {}
    for _ in range(MAX_PAGES):
        result = await ask(params)
        items.extend(list_of(result.get(key)))
        cursor = result.get("nextCursor")
        if not isinstance(cursor, str):
            return items[:MAX_ITEMS], len(items) <= MAX_ITEMS
        if cursor in seen or len(items) > MAX_ITEMS:
            break
        seen.add(cursor)
        params = {"cursor": cursor}
    return items[:MAX_ITEMS], False
