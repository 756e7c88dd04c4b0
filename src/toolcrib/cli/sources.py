"""`toolcrib sources`: opens every source of a file, alone, and looks how each of its servers is.

Without an assembly: one server that is given up shall not hide the others. A row is a value; what
it looks like is `render_sources`.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from toolcrib.cli import render_sources
from toolcrib.cli.exits import Exit
from toolcrib.cli.rows import Row
from toolcrib.deploy import Deployment, load
from toolcrib.deploy.resources import SOURCE
from toolcrib.errors import ToolcribError
from toolcrib.registry import Registry
from toolcrib.sources.contract import Source

if TYPE_CHECKING:
    from toolcrib.sources.mcp.health import Health

__all__ = ["sources"]


@runtime_checkable
class _Reports(Protocol):
    """A source of several servers that says how each of them is."""

    def health(self) -> Sequence[Health]: ...


@dataclass(frozen=True, slots=True)
class _Opening:
    """A source, what it publishes, its first attempt, and when that began."""

    source: Source
    registry: Registry
    attempt: asyncio.Task[None]
    began: float

    def rows(self) -> Iterator[Row]:
        if not isinstance(self.source, _Reports):
            return iter((self._whole(),))
        return (self._server(health) for health in self.source.health())

    def _server(self, health: Health) -> Row:
        tools = [
            d for d in self.registry.catalog.definitions if d.meta.get("server") == health.name
        ]
        is_first = health.state == "ready" and health.attempts == 1
        return Row(
            self.source.name,
            health.name,
            health.state,
            health.era,
            len(tools),
            sum(tool.wire_bytes for tool in tools),
            max(0.0, health.since - self.began) if is_first else None,
            health.attempts,
            health.reason or _silence(health.state, self.began),
            health.since,
            health.stderr,
        )

    def _whole(self) -> Row:
        tools = self.registry.catalog.definitions
        error = self.attempt.exception() if self.attempt.done() else None
        state = "given_up" if error else "ready" if self.attempt.done() else "connecting"
        size = sum(tool.wire_bytes for tool in tools)
        reason = str(error) if error else _silence(state, self.began)
        name = self.source.name
        return Row(name, name, state, "", len(tools), size, None, 1, reason, self.began)


async def sources(file: Path, patience: float, stderr: bool, json: bool) -> Exit:
    """Shows every server once its first attempt has ended, or after `patience` seconds."""
    async with _opened(load(file)) as openings:
        if openings:
            await asyncio.wait([one.attempt for one in openings], timeout=patience)
        rows = tuple(row for one in openings for row in one.rows())
        for one in openings:
            _raise_fault(one.attempt)
    if json:
        render_sources.rows_json(rows)
    else:
        render_sources.rows_table(rows, stderr)
    return Exit.OK if all(row.state == "ready" for row in rows) else Exit.FAILED


def _silence(state: str, began: float) -> str:
    """Why a server is not ready of which nothing was heard."""
    if state != "connecting":
        return ""
    return f"no answer yet, after {time.time() - began:.0f} s (--wait waits longer)"


def _raise_fault(attempt: asyncio.Task[None]) -> None:
    """What is no report about a source but a fault of ours or of the source's code."""
    error = attempt.exception() if attempt.done() else None
    if error is not None and not isinstance(error, ToolcribError):
        raise error


@asynccontextmanager
async def _opened(deployment: Deployment) -> AsyncGenerator[list[_Opening]]:
    """Every source of the file, being opened into a registry of its own; closed at the end."""
    names = [one.name for one in deployment.resources if one.kind == SOURCE]
    built = [deployment.build(name) for name in names]
    openings = [_opening(one.resource) for one in built]
    try:
        yield openings
    finally:
        for opening in openings:
            opening.attempt.cancel()
        await asyncio.gather(*(one.attempt for one in openings), return_exceptions=True)
        await asyncio.gather(*(one.close_all() for one in built))


def _opening(source: Source) -> _Opening:
    registry = Registry()

    async def attempt() -> None:
        await source.open(lambda tools: registry.publish(source.name, tools))

    return _Opening(source, registry, asyncio.create_task(attempt()), time.time())
