"""The fault server as a test holds it: started, told how to misbehave, asked what it saw.

It knows processes and files; what the server does is `fault_server`'s. Linux and macOS.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
from contextlib import suppress
from tempfile import TemporaryDirectory
from types import TracebackType
from typing import IO, TYPE_CHECKING, Any, Literal, Self

from toolcrib.testing.fault_server import command
from toolcrib.testing.fault_server.home import Home

if TYPE_CHECKING:
    from toolcrib.sources.mcp import McpServer

__all__ = ["FaultServer"]

PATIENCE = 10.0
"""Seconds for the server to start, to start again, and to end."""


class FaultServer:
    """An MCP server that misbehaves on demand, as an async context manager.

        async with FaultServer("crash_during*1", transport="http", era="modern") as faulty:
            source = McpSource([faulty.declare()])

    `faults` are `NAME[=VALUE][@METHOD][*TIMES]`; `python -m toolcrib.testing.fault_server --list`
    tells them. Over stdio the source that uses the declaration starts and ends the process. Over
    HTTP the server runs from entering to leaving on a free port of the loopback interface, and is
    started anew whenever it dies.
    """

    def __init__(
        self,
        *faults: str,
        transport: Literal["stdio", "http"] = "stdio",
        era: Literal["legacy", "modern", "silent"] = "legacy",
        name: str = "faulty",
    ) -> None:
        self.transport: Literal["stdio", "http"] = transport
        self.era = era
        self.name = name
        self.url = ""
        self._faults = faults
        self._directory: TemporaryDirectory[str] | None = None
        self._process: asyncio.subprocess.Process | None = None
        self._pid = 0

    async def __aenter__(self) -> Self:
        self._directory = TemporaryDirectory(prefix="toolcrib-faulty-")
        try:
            self.misbehave(*self._faults)
            if self.transport == "http":
                await self.start()
        except BaseException:
            await self.__aexit__(None, None, None)
            raise
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            await self.stop()
        finally:
            if self._directory is not None:
                self._directory.cleanup()

    @property
    def home(self) -> str:
        """The directory of its files; it stands in the command line of each of its processes."""
        if self._directory is None:
            raise RuntimeError("a FaultServer is used as `async with`")
        return self._directory.name

    def declare(self, **more: Any) -> McpServer:
        """The declaration for an `McpSource`; `more` are further fields of `McpServer`."""
        from toolcrib.sources.mcp import McpServer  # needs the extra `mcp`, which others do not

        if self.transport == "http":
            return McpServer(self.name, "http", url=self.url, **more)
        program, *args = self._command("--stdio")
        return McpServer(self.name, "stdio", command=program, args=tuple(args), **more)

    def misbehave(self, *faults: str) -> None:
        """From now on it has these faults and no others; without any it behaves. Raises
        `ValueError`."""
        self._files.set([*faults])

    @property
    def ledger(self) -> list[str]:
        """The keys that the tool `act` wrote down: what was really done, in order."""
        return self._files.ledger()

    @property
    def journal(self) -> list[dict[str, Any]]:
        """Each start and each message that came, in order: `method`, `pid`, and what there was of
        `id`, `params`, `session`, `last` (Last-Event-ID), `authorization`."""
        return self._files.journal()

    def heard(self, method: str) -> list[dict[str, Any]]:
        """The entries of the journal about `method`; "GET" and "DELETE" are HTTP's."""
        return [entry for entry in self.journal if entry["method"] == method]

    @property
    def starts(self) -> list[int]:
        """The process of each start, in order."""
        return [entry["pid"] for entry in self.heard("start")]

    async def restart(self) -> None:
        """Kills the process. Over HTTP it returns once the next one serves; over stdio the source
        starts that."""
        pid = self.starts[-1]
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
        if self.transport == "http":
            while self._pid != pid:  # starts that nobody asked for, after deaths of its own
                self._pid = (await self._told())["pid"]
            self._pid = (await self._told())["pid"]

    async def start(self) -> None:
        """Over HTTP: starts it after `stop`, on the same port as before."""
        port = self.url.rpartition(":")[2].partition("/")[0] or "0"
        with self._stderr("ab") as errors:
            self._process = await asyncio.create_subprocess_exec(
                *self._command("--http", port, "--leashed"),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=errors,
                start_new_session=True,
            )
        self.url = (await self._told())["url"]
        self._pid = (await self._told())["pid"]

    async def stop(self) -> None:
        """Over HTTP: ends it; its address refuses connections from then on."""
        process, self._process = self._process, None
        if process is None:
            return
        assert process.stdin is not None and process.stdout is not None
        process.stdin.close()
        try:
            async with asyncio.timeout(PATIENCE):
                await process.wait()
        except TimeoutError:
            pass
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
        return open(os.path.join(self.home, "stderr"), mode)

    def _command(self, *where: str) -> list[str]:
        return command(*where, "--era", self.era, "--home", self.home)

    @property
    def _files(self) -> Home:
        return Home(self.home, self.transport)
