"""What the requests of one HTTP server share: its sessions, its open streams, and broken ones."""

from __future__ import annotations

import os
import threading
import time

from toolcrib.testing.fault_server.acts import Acts, Block, Die, Message, Wait
from toolcrib.testing.fault_server.protocol import Server, notification
from toolcrib.testing.fault_server.streams import Stream

__all__ = ["Sessions"]


class Sessions:
    """State of `server` over HTTP. Used from many threads."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self._lock = threading.Lock()
        self._known: set[str] = set()
        self._given = 0
        self._streams: list[Stream] = []
        self._broken: dict[str, tuple[Message, int]] = {}

    def begin(self, acts: Acts) -> None:
        """Does what is to be done before the first request."""
        for act in acts:
            if isinstance(act, Block | Wait):
                time.sleep(act.seconds)
            elif isinstance(act, Die):
                os._exit(act.status)

    def new(self) -> str:
        """The id of a session that begins."""
        with self._lock:
            self._given += 1
            # With the process, so that a restart has forgotten every one.
            self._known.add(id := f"session-{os.getpid()}-{self._given}")
            return id

    def knows(self, id: str) -> bool:
        return id in self._known

    def end(self, id: str) -> None:
        self._known.discard(id)

    def forget(self) -> None:
        self._known.clear()

    def tell(self, method: str) -> None:
        """Puts a notification on every open stream."""
        with self._lock:
            for stream in self._streams:
                stream.put(notification(method, stream.subscription))

    def opened(self, stream: Stream) -> None:
        with self._lock:
            self._streams.append(stream)

    def closed(self, stream: Stream) -> None:
        with self._lock:
            self._streams.remove(stream)
            stream.close()

    def broke_off(self, message: Message, drops: int) -> str:
        """The event id under which the rest of a stream can be had."""
        with self._lock:
            self._broken[id := f"e{len(self._broken) + 1}"] = message, drops
            return id

    def rest_of(self, id: str) -> Message | None:
        """What came after the event `id`; None while that shall be nothing."""
        with self._lock:
            message, drops = self._broken.get(id, ({}, 1))
            self._broken[id] = message, drops - 1
            return None if drops > 0 else message
