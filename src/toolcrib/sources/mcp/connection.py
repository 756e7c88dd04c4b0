"""What a supervisor needs of one connection, and what a caller may hear on it.

Contracts only: `link.link` is the connection there is, `calls.hearing` passes on what is heard.
"""

from __future__ import annotations

import asyncio
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from typing import Any, Protocol

from toolcrib.sources.mcp.asking.questions import Caller
from toolcrib.sources.mcp.changes import Changes

__all__ = ["Connection", "Hears"]


class Hears(Protocol):
    """Told what a server says while it is at work on one request; must return at once. `caller` is
    whom it may ask, and `waiting` lasts for as long as that takes."""

    @property
    def caller(self) -> Caller: ...

    def progress(self, current: float, total: float | None, message: str) -> None: ...
    def log(self, level: str, text: str) -> None: ...
    def waiting(self) -> AbstractContextManager[None]: ...


class Connection(Protocol):
    """One connection, used once. `listening` is set once it is known whether the peer tells of
    changes on a stream of its own."""

    ended: asyncio.Event
    suspect: asyncio.Event
    listening: asyncio.Event
    changes: Changes
    reason: str
    version: str

    @property
    def is_usable(self) -> bool: ...
    @property
    def pingable(self) -> bool: ...
    @property
    def last_status(self) -> int: ...
    @property
    def how_it_ended(self) -> str: ...
    @property
    def stderr(self) -> str: ...

    def open(self) -> AbstractAsyncContextManager[None]: ...
    def end(self, reason: str) -> None: ...
    def abort(self) -> None: ...
    def busy_since(self, moment: float) -> bool: ...
    async def probe(self) -> None: ...
    async def watch_closure(self) -> bool: ...

    async def renew(self) -> bool:
        """After HTTP 401: gets the credential replaced. Whether there is a new one to try."""
        ...

    async def request(
        self, method: str, params: dict[str, Any], hears: Hears | None = None
    ) -> dict[str, Any]: ...
