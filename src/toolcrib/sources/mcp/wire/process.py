"""One server process: JSON lines in and out, stderr kept, the whole process group ended, and on
Linux whoever left the group (`descendants`).

Bytes and processes only; what the lines say is `streams`. It stands in for the SDK's own stdio
client, which hides the process: without its id a launcher's children outlive it (MC03), and its
death while idle goes unseen.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import signal
from collections import deque
from collections.abc import Callable
from typing import Final, cast

from mcp.client.stdio import get_default_environment

from toolcrib.sources.mcp.server import McpServer
from toolcrib.sources.mcp.wire.descendants import MARK, end_marked, handed_on

__all__ = ["MAX_LINE", "STDERR_KEPT", "LineTooLong", "ServerProcess"]

STDERR_KEPT: Final = 64 * 1024
MAX_LINE: Final = 64 * 1024 * 1024
"""Bytes of one message; a longer one ends the connection instead of filling the memory."""

_MAX_QUEUED = 1024
"""Lines that wait to be taken before no more are read."""

_BREATH = 64
"""Lines taken one after the other before others have their turn."""

_LATE_OUTPUT = 0.2
"""Seconds for the last output of a process that has ended; a child that inherited the pipe can hold
it open for ever (MC04)."""

_POLL = 0.01
"""Seconds between two looks at whether a group has ended."""

_ALSO_INHERITED = ("LANG", "LC_ALL", "LC_CTYPE", "TMPDIR", "TZ")


class LineTooLong(Exception):
    """The server sent a line of more than 64 MiB."""


class ServerProcess(asyncio.SubprocessProtocol):
    """A running server. Made by `start`, ended by `stop`, used on the loop that made it."""

    def __init__(self) -> None:
        self._mark = secrets.token_hex(16)
        self._lines: deque[bytes] = deque()
        self._partial: list[bytes] = []
        self._partial_size = 0
        self._stderr = bytearray()
        self._readable = asyncio.Event()
        self._writable = asyncio.Event()
        self._writable.set()
        self._exited = asyncio.Event()
        self._ended = False
        self._paused = False
        self._taken = 0
        self._too_long = False
        self._stopping = False

    @classmethod
    async def start(cls, server: McpServer) -> ServerProcess:
        """Starts the command in a process group of its own. Raises `OSError` if it cannot be."""
        process = cls()
        await asyncio.get_running_loop().subprocess_exec(
            lambda: process,
            server.command,
            *server.args,
            env={**environment(server), MARK: handed_on(process._mark)},
            cwd=server.cwd or None,
            start_new_session=True,
        )
        return process

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.SubprocessTransport", transport)
        self.pid = self._transport.get_pid()

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        if fd == 2:
            self.note(data)
            return
        if self._too_long or self._stopping:
            return  # read on all the same: a server that cannot write cannot end in peace
        *lines, rest = data.split(b"\n")  # LF alone: JSON text may hold U+2028 (MC20)
        if lines:
            lines[0] = b"".join((*self._partial, lines[0]))
            self._partial, self._partial_size = [], 0
            self._lines.extend(line for line in lines if line.strip())
            self._readable.set()
        if rest:
            self._partial.append(rest)
            self._partial_size += len(rest)
            if self._partial_size > MAX_LINE:
                self._too_long = True
                self._end()
        if len(self._lines) > _MAX_QUEUED and not self._paused:
            self._paused = True
            self._pipe(1).pause_reading()

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:
        if fd == 1:
            self._end()
        elif fd == 0:
            # Without its input a server is of no use, but its last answer may be under way.
            asyncio.get_running_loop().call_later(_LATE_OUTPUT, self._end)

    def process_exited(self) -> None:
        self._exited.set()
        asyncio.get_running_loop().call_later(_LATE_OUTPUT, self._end)

    def pause_writing(self) -> None:
        self._writable.clear()

    def resume_writing(self) -> None:
        self._writable.set()

    def note(self, text: bytes) -> None:
        """Keeps `text` as diagnostics, the last 64 KiB of it."""
        self._stderr += text
        if (over := len(self._stderr) - STDERR_KEPT) > 0:
            del self._stderr[:over]

    @property
    def stderr(self) -> str:
        """The last 64 KiB of what the server said beside the protocol."""
        return self._stderr.decode(errors="replace")

    @property
    def gone(self) -> bool:
        """Whether nothing can come back any more."""
        return self._ended or self._exited.is_set()

    async def read_line(self) -> bytes | None:
        """The next line that is not blank; None after the last. Raises `LineTooLong`."""
        self._taken += 1
        if self._taken % _BREATH == 0:
            await asyncio.sleep(0)  # where there is always a next line, nothing below waits
        while not self._lines:
            if self._too_long:
                raise LineTooLong(f"it sent a line of more than {MAX_LINE} bytes")
            if self._ended:
                return None
            self._readable.clear()
            await self._readable.wait()
        if self._paused and len(self._lines) < _MAX_QUEUED // 2:
            self._paused = False
            if not (pipe := self._pipe(1)).is_closing():
                pipe.resume_reading()
        return self._lines.popleft()

    async def wait_writable(self) -> None:
        """Waits while the server does not take what was written before."""
        await self._writable.wait()

    def write(self, line: bytes) -> None:
        """Hands `line` over without waiting. Raises `BrokenPipeError` once the server is gone."""
        stdin = cast("asyncio.WriteTransport", self._pipe(0))
        if self.gone or stdin.is_closing():
            raise BrokenPipeError("the server no longer reads")
        stdin.write(line)

    @property
    def how_it_ended(self) -> str:
        """How the process ended, as the end of a sentence about the server; empty while it runs."""
        code = self._transport.get_returncode()
        if code is None:
            return ""
        if code >= 0:
            return f"its process exited with status {code}"
        try:
            return f"its process was ended by {signal.Signals(-code).name}"
        except ValueError:
            return f"its process was ended by signal {-code}"

    async def stop(self, grace: float) -> None:
        """Ends the process and its group: closes its input, waits `grace` seconds, SIGTERM, waits
        again, SIGKILL, also to those who left the group. Whatever happens to the waiting, nothing
        of it is left running."""
        self._stopping = True
        try:
            if self._paused and not self._pipe(1).is_closing():
                self._pipe(1).resume_reading()  # a server stuck in a write cannot see its EOF
            self._pipe(0).close()
            await _until(self._exited.is_set, grace)
            if self._signal(signal.SIGTERM):
                await _until(lambda: not self._signal(0), grace)
        finally:
            # Also when the waiting was cancelled natively, as asyncio.run does at its end.
            self._signal(signal.SIGKILL)
            end_marked(self._mark, self.pid)
            try:
                await _until(self._exited.is_set, grace)
            finally:
                self._transport.close()
                self._end()

    def _signal(self, number: int) -> bool:
        """Signals the group, which outlives its leader; False when nobody is left in it."""
        try:
            os.killpg(self.pid, number)
        except ProcessLookupError:
            return False
        except PermissionError:
            return True  # a member that changed its user: not ours to end
        return True

    def _end(self) -> None:
        self._ended = True
        self._readable.set()
        self._writable.set()

    def _pipe(self, fd: int) -> asyncio.ReadTransport:
        return cast("asyncio.ReadTransport", self._transport.get_pipe_transport(fd))


async def _until(happened: Callable[[], bool], seconds: float) -> None:
    """Waits until `happened()`, at most so long."""
    deadline = asyncio.get_running_loop().time() + seconds
    # Nobody is told when the last process of a group ends.
    while not happened() and asyncio.get_running_loop().time() < deadline:  # noqa: ASYNC110 no event
        await asyncio.sleep(_POLL)


def environment(server: McpServer) -> dict[str, str]:
    """What the server's process sees: the SDK's allow-list, the locale, and what was declared;
    read anew for each start (T-A8e). No key of ours reaches a server unasked (SB06)."""
    also = {name: os.environ[name] for name in _ALSO_INHERITED if name in os.environ}
    return {**get_default_environment(), **also, **server.env}
