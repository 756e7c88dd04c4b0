"""The values of supervision: how a server is, how often it is tried, what a connection must offer.

Nothing here acts; that is `keep`.
"""

from __future__ import annotations

import asyncio
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, TypeAlias

__all__ = ["Connection", "Health", "OnProgress", "Pace", "State", "delay"]


class OnProgress(Protocol):
    """Told how far a request is."""

    async def __call__(self, progress: float, total: float | None, message: str | None) -> None: ...


State: TypeAlias = Literal["connecting", "ready", "degraded", "given_up", "closed"]
"""connecting: no attempt has ended yet · ready · degraded: down, and tried again · given_up: the
configuration is wrong, not tried again · closed."""


@dataclass(frozen=True, slots=True)
class Health:
    """How one server is. `since` is Unix time, `reason` why it is not ready; `era` is the protocol
    version last negotiated; `stderr` the tail of what its process last said."""

    name: str
    state: State = "connecting"
    reason: str = ""
    since: float = 0.0
    era: str = ""
    tools: int = 0
    attempts: int = 0
    stderr: str = field(default="", repr=False)


@dataclass(frozen=True, slots=True)
class Pace:
    """Seconds: between two probes (0: none), before the first and at most before any retry, and for
    everything that is done with a fresh connection before it counts as ready."""

    liveness: float = 15.0
    first_backoff: float = 1.0
    max_backoff: float = 30.0
    use_timeout: float = 30.0
    close_timeout: float = 10.0


def delay(failures: int, first: float, longest: float) -> float:
    """Seconds to wait after so many connections in a row that failed: first, doubled, up to
    longest."""
    return min(longest, first * 2.0 ** min(failures - 1, 60))


class Connection(Protocol):
    """What a keeper needs of a link."""

    ended: asyncio.Event
    suspect: asyncio.Event
    reason: str
    version: str

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
    async def request(
        self, method: str, params: dict[str, Any], on_progress: OnProgress | None = None
    ) -> dict[str, Any]: ...
