"""Getting lazy tools loaded where a registry has them, and the registry told of what they became.

When to load is the caller's: before a call `executor`, for a search `session`.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable

from toolcrib.catalog import Entry
from toolcrib.errors import NotAvailable
from toolcrib.lazy import LazyTool
from toolcrib.registry import Registry

__all__ = ["is_unloaded", "load_all", "loaded_entry"]

logger = logging.getLogger("toolcrib.lazy")

AT_ONCE = 16
"""Loads that one search runs at the same time."""


def is_unloaded(entry: Entry) -> bool:
    """Whether `entry` is a lazy tool of which there is only the placeholder."""
    return isinstance(entry.tool, LazyTool) and entry.tool.loaded is None


async def loaded_entry(entry: Entry, registry: Registry) -> Entry:
    """The entry as it is now, loaded if it is a lazy tool's. Raises `NotAvailable` where that
    failed."""
    tool = entry.tool
    if not isinstance(tool, LazyTool):
        return entry
    await tool.load()
    registry.refresh(tool)
    current = registry.catalog.get(entry.name)
    return current if current is not None and current.tool is tool else entry


async def load_all(entries: Iterable[Entry], registry: Registry, patience: float) -> frozenset[str]:
    """Loads the lazy tools among `entries`, several at a time; the names of those that failed or
    took longer than `patience` seconds, whose loads go on. Never raises for a tool."""
    unloaded = [entry for entry in entries if is_unloaded(entry)]
    if not unloaded:
        return frozenset()
    places = asyncio.Semaphore(AT_ONCE)

    async def load(entry: Entry) -> None:
        async with places:
            await loaded_entry(entry, registry)

    tasks = {asyncio.create_task(load(entry)): entry.name for entry in unloaded}
    try:
        done, late = await asyncio.wait(tasks, timeout=patience)
    finally:
        for task in tasks:
            task.cancel()
    for task in done:
        error = task.exception()
        if error is not None and not isinstance(error, NotAvailable):
            raise error
    if late:
        names = ", ".join(sorted(tasks[task] for task in late))
        logger.warning("not loaded within %g s, left out for now: %s", patience, names)
    return frozenset(tasks[task] for task in tasks if task in late or task.exception() is not None)
