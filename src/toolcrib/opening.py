"""The sources of one assembly, from their first attempt to the last close.

What sources publish and how is each one's own; here is only when they are asked and waited for.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeAlias

from toolcrib.errors import Conflict, InvalidDefinition
from toolcrib.function import tool
from toolcrib.host import Host, abilities_of
from toolcrib.registry import Change, Registry
from toolcrib.sources.contract import Asks, Source
from toolcrib.sources.functions import FunctionSource
from toolcrib.tool import Tool

__all__ = ["OWN", "Item", "Opening", "sources_of"]

logger = logging.getLogger("toolcrib.assembly")

Item: TypeAlias = Tool | Source | Callable[..., Any]
"""A tool, a source of tools, or a plain function, which becomes a tool."""

PATIENCE = 5.0
"""Seconds `open` waits for the first attempt of every source; slower ones publish later."""

OWN = "toolcrib"
"""The owner of the assembly's own tools: no source may have this name."""
PROGRAM = "program"


class Opening:
    """Opens `sources` into `registry`, all at once, and closes them, the last first."""

    def __init__(self, sources: Sequence[Source], registry: Registry) -> None:
        self._sources = sources
        self._registry = registry
        self._tasks: dict[asyncio.Task[None], Source] = {}

    async def open(self, host: Host | None = None) -> None:
        """Returns when every source has made its first attempt, or after 5 seconds; raises what one
        raised within that time. What is slower goes on in the background. Sources whose tools ask
        are told what `host` can be asked."""
        for source in self._sources:
            if isinstance(source, Asks):
                source.may_ask(abilities_of(host))
            self._tasks[asyncio.create_task(self._open(source))] = source
        if not self._tasks:
            return
        done, slow = await asyncio.wait(
            self._tasks, timeout=PATIENCE, return_when=asyncio.FIRST_EXCEPTION
        )
        for task in done:
            if (error := task.exception()) is not None:
                raise error
        for task in slow:
            task.add_done_callback(self._opened_late)

    async def _open(self, source: Source) -> None:
        def publish(tools: Iterable[Tool]) -> Change:
            return self._registry.publish(source.name, tools)

        await source.open(publish)

    def _opened_late(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and (error := task.exception()) is not None:
            logger.error("source %r gave up: %s", self._tasks[task].name, error, exc_info=error)

    async def wait_ready(self, timeout: float | None) -> None:
        """Waits for the `wait_ready` of every source; raises the first fault."""
        waits = [asyncio.ensure_future(source.wait_ready(timeout)) for source in self._sources]
        try:
            await asyncio.gather(*waits)  # raises the first fault itself, not a group of one
        finally:
            for wait in waits:
                wait.cancel()

    async def close(self) -> None:
        """Ends what is opening, then every source; a source's fault is logged."""
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)
        for source in reversed(self._sources):
            try:
                await source.close()
            except Exception:
                logger.exception("closing source %r failed", source.name)


def sources_of(items: Iterable[Item]) -> tuple[Source, ...]:
    """`items` as sources: tools and functions together are one, named "program". Raises `Conflict`
    where two have one name, `InvalidDefinition` for anything that is no item."""
    tools: list[Tool] = []
    sources: list[Source] = []
    for item in items:
        if isinstance(item, Source):
            sources.append(item)
        elif isinstance(item, Tool):
            tools.append(item)
        elif callable(item):
            tools.append(tool(item))
        else:
            raise InvalidDefinition(f"{item!r} is neither a tool, a source nor a function")
    if tools:
        sources.insert(0, FunctionSource(tools, name=PROGRAM))
    names = [OWN, *(source.name for source in sources)]
    for name in names:
        if names.count(name) > 1:
            raise Conflict(f"two sources are named {name!r}: give one of them another name")
    return tuple(sources)
