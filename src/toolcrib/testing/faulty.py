"""The fault server as a test holds it: started, told how to misbehave, asked what it saw.

What the server does is `fault_server`'s, its process over HTTP `served`'s. Linux and macOS.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterable
from contextlib import suppress
from tempfile import TemporaryDirectory
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, Self, TypeAlias, get_args

from toolcrib.testing.fault_server import command
from toolcrib.testing.fault_server.home import Home
from toolcrib.testing.fault_server.table import parsed
from toolcrib.testing.running import running
from toolcrib.testing.served import Served

if TYPE_CHECKING:
    from toolcrib.sources.mcp import McpServer

__all__ = ["FaultServer"]

Transport: TypeAlias = Literal["stdio", "http"]
Era: TypeAlias = Literal["legacy", "modern", "silent"]


class FaultServer:
    """An MCP server that misbehaves on demand, as an async context manager, for any client:

        async with FaultServer("crash_during*1", transport="http", era="modern") as faulty:
            async with Client(faulty.url) as client:                     # the MCP SDK's
                ...
            assert faulty.ledger == ["order-7"]                          # was done, once

    Over HTTP it runs from entering to leaving, at `url`, a free port of the loopback interface, and
    is started anew whenever it dies. Over stdio whoever has the `command` starts and ends it; what
    still runs at leaving is killed. `declare()` is the declaration for an `McpSource`.

    A fault is `NAME[=VALUE][@METHOD][*TIMES]`: `crash_before`, `crash_during`, `crash_after`,
    `hang`, `garbage`, `wrong_id`, `duplicates`, `endless`, `storm`, `changed_definition`,
    `oversized`, `hostile_output_schema`, `forget_session`, `refuse`, `slow_start`, `stderr_flood`
    and more: `python -m toolcrib.testing.fault_server --list` tells all of them, and the tools
    (`echo`, `act`, `slow`, …). `hang` is about every call, `hang*1` about the first,
    `hang@tools/list` about listings, `hang@any` about whatever comes.

    `era` is the protocol: `legacy` is 2025-11-25, `modern` 2026-07-28, `silent` a legacy server
    that does not answer methods it does not know. `name` is the server's in `declare()`. Raises
    `ValueError` for what it does not have.
    """

    def __init__(
        self,
        *faults: str,
        transport: Transport = "stdio",
        era: Era = "legacy",
        name: str = "faulty",
    ) -> None:
        _check("transport", transport, get_args(Transport))
        _check("era", era, get_args(Era))
        for fault in faults:
            parsed(fault, transport)
        self.transport: Transport = transport
        self.era: Era = era
        self.name = name
        self.url = ""
        self._faults = faults
        self._directory: TemporaryDirectory[str] | None = None
        self._served: Served | None = None

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
                for pid in self.processes:
                    with suppress(ProcessLookupError):
                        os.kill(pid, signal.SIGKILL)
                self._directory.cleanup()
                self._directory = None

    @property
    def home(self) -> str:
        """The directory of its files; it stands in the command line of each of its processes."""
        if self._directory is None:
            raise RuntimeError("a FaultServer is used, and asked, within its `async with`")
        return self._directory.name

    @property
    def command(self) -> list[str]:
        """Over stdio: the program and its arguments, for whatever client starts servers. Each start
        is one more process with the same faults, ledger and journal."""
        if self.transport != "stdio":
            raise RuntimeError("over HTTP it runs already, at its url")
        return self._command("--stdio")

    @property
    def processes(self) -> list[int]:
        """Its processes that run now, and children of theirs: over stdio none, once a client has
        ended all it started."""
        return running(self.home)

    def declare(self, **more: Any) -> McpServer:
        """The declaration for an `McpSource`; `more` are further fields of `McpServer`."""
        from toolcrib.sources.mcp import McpServer  # needs the extra `mcp`, which others do not

        if self.transport == "http":
            return McpServer(self.name, "http", url=self.url, **more)
        program, *args = self.command
        return McpServer(self.name, "stdio", command=program, args=tuple(args), **more)

    def misbehave(self, *faults: str) -> None:
        """From now on it has these faults and no others; without any it behaves. Raises
        `ValueError`."""
        self._files.set([*faults])

    @property
    def ledger(self) -> list[str]:
        """The keys of the calls of the tool `act`: what was really done, in order."""
        return self._files.ledger()

    @property
    def journal(self) -> list[dict[str, Any]]:
        """Each start and each message that came, in order: `method`, `pid`, and what there was of
        `id` and `params`; over HTTP the headers `session`, `authorization`, `version` and `last`
        (Last-Event-ID), and `refused` (a status). What was no message has the method "", and stands
        in `sent`."""
        return self._files.journal()

    def heard(self, method: str) -> list[dict[str, Any]]:
        """The entries of the journal about `method`; "GET" and "DELETE" are HTTP's."""
        return [entry for entry in self.journal if entry["method"] == method]

    @property
    def starts(self) -> list[int]:
        """The process of each start, in order."""
        return [entry["pid"] for entry in self.heard("start")]

    async def restart(self) -> None:
        """Kills the process. Over HTTP it returns once the next one serves; over stdio the client
        starts that. Raises `RuntimeError` where none was ever started."""
        if not (starts := self.starts):
            raise RuntimeError("no client has started it yet")
        with suppress(ProcessLookupError):
            os.kill(starts[-1], signal.SIGKILL)
        if self._served is not None:
            await self._served.follow(starts[-1])

    async def start(self) -> None:
        """Over HTTP: starts it after `stop`, on the same port as before."""
        if self.transport != "http":
            raise RuntimeError("over stdio the client starts it, by its command")
        if self._served is not None:
            raise RuntimeError("it runs already: stop it first")
        port = self.url.rpartition(":")[2].partition("/")[0] or "0"
        served = self._served = Served(
            self._command("--http", port, "--leashed"), os.path.join(self.home, "stderr")
        )
        try:
            self.url = await served.start()
        except BaseException:
            await self.stop()
            raise

    async def stop(self) -> None:
        """Over HTTP: ends it; its address refuses connections from then on."""
        served, self._served = self._served, None
        if served is not None:
            await served.stop()

    def _command(self, *where: str) -> list[str]:
        return command(*where, "--era", self.era, "--home", self.home)

    @property
    def _files(self) -> Home:
        return Home(self.home, self.transport)


def _check(what: str, given: str, known: Iterable[str]) -> None:
    if given not in known:
        raise ValueError(f"no {what} {given!r}: use one of {', '.join(known)}")
