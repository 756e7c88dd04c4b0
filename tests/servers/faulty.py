"""The fault server in one cell of (transport × era), in a host, and nothing left of it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from servers.support import BOUND, Host, descriptors, hosting, source, until, with_token, working
from toolcrib.content import ToolResult
from toolcrib.sources.mcp.settings import ServerSettings
from toolcrib.testing import FaultServer

Cell = tuple[str, str]

CELLS: list[Cell] = [(t, e) for t in ("stdio", "http") for e in ("legacy", "modern")]
STDIO = [cell for cell in CELLS if cell[0] == "stdio"]
HTTP = [cell for cell in CELLS if cell[0] == "http"]
LEGACY = [cell for cell in CELLS if cell[1] == "legacy"]
MODERN = [cell for cell in CELLS if cell[1] == "modern"]

SWIFT = {"reconnect_wait": 0.0, "list_quiet": 0.01, "list_longest": 0.1}
VERSIONS = {"legacy": "2025-11-25", "modern": "2026-07-28"}


def cells(among: Iterable[Cell] = tuple(CELLS)) -> Any:
    """Has a test run in each of these cells."""
    return pytest.mark.parametrize("cell", list(among), ids="-".join)


@asynccontextmanager
async def faulty(cell: Cell, *faults: str, name: str = "faulty") -> AsyncIterator[FaultServer]:
    """A fault server. At its end no process, no task and no descriptor of it is left."""
    tasks, open_files = working(), descriptors()
    transport, era = cell
    server = FaultServer(*faults, transport=transport, era=era, name=name)  # type: ignore[arg-type]
    async with server:
        home = server.home
        yield server
        if transport == "stdio":
            await until(lambda: not with_token(home))
    await until(lambda: not with_token(home))
    await until(lambda: not working() - tasks)
    await until(lambda: descriptors() <= open_files)


@asynccontextmanager
async def serving(
    cell: Cell, *faults: str, bounds: dict[str, Any] | None = None, **declared: Any
) -> AsyncIterator[tuple[FaultServer, Host]]:
    """A fault server in an open source. `bounds` are settings of the source; the settings of the
    server (`settings`) are added to swift ones."""
    settings = ServerSettings(**{**SWIFT, **declared.pop("settings", {})})
    async with faulty(cell, *faults) as server:
        declared = {"liveness": 0.0, **declared}
        mcp = source(server.declare(settings=settings, **declared), **(bounds or {}))
        async with hosting(mcp) as host:
            yield server, host


def kind(result: ToolResult) -> str:
    return result.failure.kind if result.failure else "ok"


def health(host: Host) -> Any:
    return host.health("faulty")


async def answered(host: Host, **arguments: Any) -> ToolResult:
    """What `echo` says once a call of it got through: one that met the dying is made again."""
    async with asyncio.timeout(BOUND):
        while kind(result := await host.again("faulty__echo", **arguments)) == "outcome_unknown":
            pass
    return result


async def ready(host: Host) -> None:
    await host.ready("faulty")
