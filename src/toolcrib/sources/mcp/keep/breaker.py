"""When to connect again: a value that each ended connection turns into the next.

Pure: no clock, no chance, no task; `keeper` acts on it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from toolcrib.sources.mcp.health import Pace, delay

__all__ = ["Breaker", "Phase"]

Phase: TypeAlias = Literal["closed", "open", "half_open"]
"""closed: connecting is worth trying · open: it failed too often, leave the server alone ·
half_open: one attempt after such a pause shows whether it is back."""


@dataclass(frozen=True, slots=True)
class Breaker:
    """How often connecting failed in a row, and what follows from it."""

    phase: Phase = "closed"
    failures: int = 0

    def failed(self, ready_for: float, pace: Pace) -> Breaker:
        """After a connection that was ready for so many seconds (0: never).

        One that was ready for longer than the longest wait was sound, and counting starts anew. Any
        other is a failure in a row, also one that answered: a server that connects and dies at once
        must not be restarted ever faster.
        """
        failures = 1 if ready_for > pace.max_backoff else self.failures + 1
        return Breaker("open" if failures >= pace.open_after else "closed", failures)

    def trying(self) -> Breaker:
        """Once the pause is over and the next attempt begins."""
        return Breaker("half_open", self.failures) if self.phase == "open" else self

    def pause(self, pace: Pace, luck: float = 0.0) -> float:
        """Seconds to the next attempt; `luck` (0 to 1) chooses within the jitter."""
        if self.phase == "open":
            pause = pace.max_backoff if pace.open_pause is None else pace.open_pause
        else:
            pause = delay(self.failures, pace.first_backoff, pace.max_backoff)
        return pause * (1.0 + pace.jitter * luck)
