"""The values of supervision: how a server is, and how often it is tried.

Nothing here acts; that is `keep`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, TypeAlias

__all__ = ["Health", "Pace", "State", "delay"]


State: TypeAlias = Literal["connecting", "ready", "degraded", "open", "given_up", "closed"]
"""What each means stands at `Health`."""


@dataclass(frozen=True, slots=True)
class Health:
    """How one server is. `since` is Unix time, `reason` why it is not ready; `era` is the protocol
    version last negotiated; `stderr` the tail of what its process last said.

    `state`: connecting (no attempt has ended yet), ready, degraded (down, tried again soon), open
    (it failed too often in a row: tried again after a long pause), given_up (its configuration is
    wrong: not tried again), closed.
    """

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
    """Seconds: between two probes (0: none), before the first and at most before any retry, for
    everything that is done with a fresh connection before it counts as ready, and for closing. The
    rest is of `ServerSettings`."""

    liveness: float = 15.0
    first_backoff: float = 1.0
    max_backoff: float = 30.0
    use_timeout: float = 30.0
    close_timeout: float = 10.0
    open_after: int = 5
    open_pause: float | None = None
    jitter: float = 0.0
    list_quiet: float = 0.1
    list_longest: float = 1.0


def delay(failures: int, first: float, longest: float) -> float:
    """Seconds to wait after so many connections in a row that failed: first, doubled, up to
    longest."""
    return min(longest, first * 2.0 ** min(failures - 1, 60))  # 2.0 ** 1024 would be an error
