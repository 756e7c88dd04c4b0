"""Lines of standard input, read as they are wanted, without holding up the event loop."""

from __future__ import annotations

import asyncio
import contextlib
import os
import threading

__all__ = ["Lines"]

CHUNK = 65_536


class Lines:
    """Reads a file descriptor: a terminal, a pipe or a file. One line at a time and only when
    `next` asks, so nothing piles up.

    In a daemon thread and by `os.read`: a read of a terminal cannot be interrupted, and one of
    Python's own readers would hold a lock that the end of the process waits for.
    """

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._loop = asyncio.get_running_loop()
        self._queue: asyncio.Queue[tuple[str | None, int]] = asyncio.Queue()
        self._question = 0
        self._wanted = threading.Semaphore(0)
        self._rest = b""
        self._is_over = False
        self._is_awaited = False
        threading.Thread(target=self._serve, name="toolcrib-stdin", daemon=True).start()

    async def next(self) -> str | None:
        """The next line, without its end; None once there are no more. Whoever gives up waiting
        leaves the line to who asks next, unless that is another question (`forget`)."""
        while True:
            if not self._is_awaited:
                self._is_awaited = True
                self._wanted.release()
            line, question = await self._queue.get()
            self._is_awaited = False
            if line is None or question == self._question:
                return line

    def forget(self) -> None:
        """Drops what was typed in a terminal and not read yet: it was meant for something else. A
        pipe or a file, where nobody sees what it answers, loses nothing."""
        if os.isatty(self._descriptor):
            self._question += 1  # a line that the thread has read by now is of the one before
            with contextlib.suppress(ImportError, OSError):  # Windows; a terminal that was closed
                import termios

                termios.tcflush(self._descriptor, termios.TCIFLUSH)

    def _serve(self) -> None:
        while True:
            self._wanted.acquire()
            line = self._line()
            try:
                self._loop.call_soon_threadsafe(self._queue.put_nowait, (line, self._question))
            except RuntimeError:  # the loop has closed meanwhile: nobody wants lines any more
                return

    def _line(self) -> str | None:
        while b"\n" not in self._rest and not self._is_over:
            data = self._read()
            self._rest += data
            self._is_over = not data
        if not self._rest:
            return None
        line, _, self._rest = self._rest.partition(b"\n")
        return line.decode("utf-8", "replace").removesuffix("\r")

    def _read(self) -> bytes:
        try:
            return os.read(self._descriptor, CHUNK)
        except OSError:  # how a terminal that was closed says it (EIO)
            return b""
