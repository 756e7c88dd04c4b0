"""An open event stream of the HTTP side, and the socket it is written to."""

from __future__ import annotations

import os
import select
import socket
from collections import deque

from toolcrib.testing.fault_server.acts import Message
from toolcrib.testing.fault_server.protocol import wire

__all__ = ["Stream", "event", "hung_up"]


class Stream:
    """What others `put` is sent while `run` runs; `subscription` is the id it belongs to."""

    def __init__(self, subscription: object = None) -> None:
        self.subscription = subscription
        self._messages: deque[Message] = deque()
        self._woken, self._wake = os.pipe()

    def put(self, message: Message) -> None:
        self._messages.append(message)
        os.write(self._wake, b"!")

    def run(self, connection: socket.socket) -> None:
        """Until the client hangs up."""
        while True:
            ready, _, _ = select.select([connection.fileno(), self._woken], [], [])
            if connection.fileno() in ready:
                return
            os.read(self._woken, 4096)
            while self._messages:
                connection.sendall(event(self._messages.popleft()))

    def close(self) -> None:
        os.close(self._woken)
        os.close(self._wake)


def event(message: Message | None, id: str = "") -> bytes:
    """One event; with no message, the one that only tells its id, and a short time to come back."""
    head = f"id: {id}\nretry: 10\n" if id else ""
    data = b"" if message is None else wire(message)
    return b"%bevent: message\ndata: %b\n\n" % (head.encode(), data)


def hung_up(connection: socket.socket, within: float | None) -> bool:
    """Whether the client hangs up within so many seconds; None waits until it does."""
    ready, _, _ = select.select([connection], [], [], within)
    return bool(ready)
