"""The way to one server: a process of ours or an HTTP address, opened within its time, left once.

What goes over it is `link`'s. It is entered and left in one task, the owner's (`keep.keeper`), as
the SDK's client is.
"""

from __future__ import annotations

import math
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import asynccontextmanager, contextmanager
from typing import Any

import anyio

from toolcrib.sources.mcp.failures import NotSent
from toolcrib.sources.mcp.link.era import Era
from toolcrib.sources.mcp.link.starting import Turn
from toolcrib.sources.mcp.server import McpServer
from toolcrib.sources.mcp.wire.dispatcher import Handlers
from toolcrib.sources.mcp.wire.process import ServerProcess
from toolcrib.sources.mcp.wire.session import RawClient, raw_client
from toolcrib.sources.mcp.wire.streams import HttpWatch, http_streams, process_streams

__all__ = ["Line"]

LEAVING = 3.0
"""Seconds for a farewell over HTTP (the DELETE of a session)."""


class Line:
    """`connect_timeout` is seconds to connect, `grace` those that each step of ending a process
    takes. `on_refusal` is told why no request will be accepted any more."""

    def __init__(
        self,
        server: McpServer,
        era: Era,
        *,
        connect_timeout: float,
        grace: float,
        on_refusal: Callable[[str], None],
    ) -> None:
        self._server = server
        self._era = era
        self._connect_timeout = connect_timeout
        self._grace = grace
        self._process: ServerProcess | None = None
        self._watch = HttpWatch(on_refusal, self._waiting)
        self._scope = anyio.CancelScope()

    @asynccontextmanager
    async def open(self, handlers: Handlers) -> AsyncGenerator[RawClient]:
        """Connects; leaving closes. Raises whatever the SDK raises, in an exception group where it
        died under us, `NotSent` where the peer speaks another version than it did, and
        `TimeoutError`."""
        opened, turn = False, Turn()
        with self._scope as scope:
            # One scope round everything: the SDK's scopes must not outlive an inner one of ours.
            try:
                if self._server.transport == "stdio":
                    # Waiting for it is no time of the server.
                    await (turn.begin_again() if self._era.is_known else turn.begin())
                scope.deadline = anyio.current_time() + self._connect_timeout
                client = raw_client(self._transport(), self._era.mode, handlers)
                async with client:
                    turn.end()
                    opened, scope.deadline = True, math.inf
                    self._era.connected(client.raw.is_modern)
                    try:
                        yield client
                    finally:
                        scope.deadline = anyio.current_time() + LEAVING
            except Exception as error:
                if not opened and self._era.failed(error):
                    raise NotSent("it speaks another protocol version than before") from error
                raise
            finally:
                turn.end()
        if scope.cancelled_caught and not opened:
            timeout = TimeoutError(f"it did not answer within {self._connect_timeout:g} s")
            self._era.failed(timeout)
            raise timeout

    @asynccontextmanager
    async def _transport(self) -> AsyncGenerator[Any]:
        if self._server.transport == "http":
            async with http_streams(self._server, self._watch) as streams:
                yield streams
            return
        with anyio.CancelScope(shield=True):
            # A start that is cancelled half-way leaves a process that nobody can end any more.
            self._process = await ServerProcess.start(self._server)
        assert self._process is not None
        async with process_streams(self._process, self._grace) as streams:
            yield streams

    @contextmanager
    def _waiting(self) -> Generator[None]:
        """Inside, somebody is asked to log in, and the time to connect stands still."""
        left = self._scope.deadline - anyio.current_time()
        self._scope.deadline = math.inf
        try:
            yield
        finally:
            until = anyio.current_time() + left
            self._scope.deadline = min(self._scope.deadline, until)  # perhaps it is left already

    def abort(self) -> None:
        """Stops whatever the owner is waiting for here."""
        self._scope.cancel()

    @property
    def is_http(self) -> bool:
        return self._server.transport == "http"

    @property
    def is_gone(self) -> bool:
        """Whether the process has ended."""
        return self._process is not None and self._process.gone

    @property
    def how_it_ended(self) -> str:
        """What is known of the server's end; after the link was left, of its process too. Empty
        where nothing is."""
        return self._process.how_it_ended if self._process else ""

    @property
    def stderr(self) -> str:
        """The tail of what the server wrote beside the protocol."""
        return self._process.stderr if self._process else ""

    @property
    def last_status(self) -> int:
        """The status of the last HTTP answer, 0 where there was none."""
        return self._watch.last_status
