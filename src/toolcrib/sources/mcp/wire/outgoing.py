"""What became of a request on the wire, told by the transports to whoever sent it.

Decides what a failure means: what was never sent has not happened. A context variable carries it,
because the SDK keeps the sender's context down to the transport, and nothing else.
"""

from __future__ import annotations

import time
from contextvars import ContextVar
from itertools import count
from typing import Final

from toolcrib.sources.mcp.connection import Hears

__all__ = ["Outgoing", "outgoing"]


_ids: Final = count(1 << 20)
"""Our requests count from here, and the SDK's own few below, so that they never meet."""


class Outgoing:
    """One request: whether any byte of it may have left, the HTTP status that answered it (0:
    none), whether the transport knows that no answer will come, whether its sender was told that it
    was not executed (then it must not leave any more), the id it goes by, who hears what the server
    says meanwhile, since when it runs, how often the server has asked something on its behalf, and
    how often, and when last, the stream of its answer was opened again."""

    __slots__ = (
        "abandoned",
        "began",
        "hears",
        "id",
        "questions",
        "resumed",
        "resumed_at",
        "sent",
        "status",
        "withdrawn",
    )

    def __init__(self, hears: Hears | None = None) -> None:
        self.sent = False
        self.status = 0
        self.abandoned = False
        self.withdrawn = False
        self.id = next(_ids)
        self.hears = hears
        self.began = time.monotonic()
        self.questions = 0
        self.resumed = 0
        self.resumed_at = 0.0


outgoing: ContextVar[Outgoing | None] = ContextVar("toolcrib_mcp_outgoing", default=None)
