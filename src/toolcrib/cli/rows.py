"""How one server of a source is, as `toolcrib sources` shows it."""

from __future__ import annotations

from dataclasses import dataclass, field

__all__ = ["Row"]


@dataclass(frozen=True, slots=True)
class Row:
    """`server` is the source's own name where it has no servers. `ready_in` is seconds from the
    start to ready, None where the first attempt was not the one; `since` is Unix time, `bytes`
    those of the definitions."""

    source: str
    server: str
    state: str
    era: str
    tools: int
    bytes: int
    ready_in: float | None
    attempts: int
    reason: str
    since: float
    stderr: str = field(default="", repr=False)
