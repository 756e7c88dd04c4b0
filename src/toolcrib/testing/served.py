"""The process of a fault server that serves HTTP, from its start to its end.

It says on its stdout where it serves, and which process each start of its own is.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
from contextlib import suppress
from typing import IO, Any

__all__ = ["Served"]

PATIENCE = 10.0
"""Seconds for the server to start, to start again, and to end."""


class Served:
    """Runs `command`, whose stderr goes to the file `errors`."""

    def __init__(self, command: list[str], errors: str) -> None:
        self._command = command
        self._errors = errors
        self._process: asyncio.subprocess.Process | None = None
        self._pid = 0

    async def start(self) -> str:
        """The url that it serves. Raises `RuntimeError` with what it said where it does not."""
        with self._stderr("ab") as errors:
            self._process = await asyncio.create_subprocess_exec(
                *self._command,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=errors,
                start_new_session=True,
            )
        url: str = (await self._told())["url"]
        self._pid = (await self._told())["pid"]
        return url

    async def follow(self, killed: int) -> None:
        """Returns once the process after `killed` serves."""
        while self._pid != killed:  # starts that nobody asked for, after deaths of its own
            self._pid = (await self._told())["pid"]
        self._pid = (await self._told())["pid"]

    async def stop(self) -> None:
        """Ends it with all its children."""
        process = self._process
        if process is None:
            return
        assert process.stdin is not None
        process.stdin.close()
        try:
            async with asyncio.timeout(PATIENCE):
                await process.wait()
        except TimeoutError:
            pass  # it is killed all the same, as one that ended in time is with its children
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            await process.wait()

    async def _told(self) -> dict[str, Any]:
        """The next line that the server says of itself."""
        assert self._process is not None and self._process.stdout is not None
        async with asyncio.timeout(PATIENCE):
            line = await self._process.stdout.readline()
        if not line:
            with self._stderr("rb") as errors:
                said = errors.read()[-2000:].decode(errors="replace")
            raise RuntimeError(f"the fault server did not start: {said}")
        told: dict[str, Any] = json.loads(line)
        return told

    def _stderr(self, mode: str) -> IO[bytes]:
        return open(self._errors, mode)
