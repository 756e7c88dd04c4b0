"""What became of a request on the wire, told by the transports to whoever sent it.

Decides what a failure means: what was never sent has not happened. A context variable carries it,
because the SDK keeps the sender's context down to the transport, and nothing else.
"""

from __future__ import annotations

from contextvars import ContextVar

__all__ = ["Outgoing", "outgoing"]


class Outgoing:
    """One request: whether any byte of it may have left, and the HTTP status that answered it
    (0: none)."""

    __slots__ = ("sent", "status")

    def __init__(self) -> None:
        self.sent = False
        self.status = 0


outgoing: ContextVar[Outgoing | None] = ContextVar("toolcrib_mcp_outgoing", default=None)
