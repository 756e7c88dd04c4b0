"""One connection to one server: opened, asked, listed, closed; used once.

The SDK's client is entered and left in one task, the owner's (`keep.keeper`); requests run in
whichever task asks. When to connect again is not decided here.
"""

from __future__ import annotations

import asyncio
import logging
import math
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

from mcp import MCPError
from mcp.client.subscriptions import SubscriptionLost
from mcp_types import CONNECTION_CLOSED, METHOD_NOT_FOUND

from toolcrib.host import Ability
from toolcrib.sources.mcp.asking.questions import Asker
from toolcrib.sources.mcp.asking.relay import Relay
from toolcrib.sources.mcp.changes import Changes
from toolcrib.sources.mcp.connection import Hears
from toolcrib.sources.mcp.failures import AnswerLost, Forbidden, NotSent, ServerFault, Unreadable
from toolcrib.sources.mcp.link.asked import Asked
from toolcrib.sources.mcp.link.era import Era
from toolcrib.sources.mcp.link.faults import CLOSED, NO_ANSWER, Seen, fate, words
from toolcrib.sources.mcp.link.inflight import InFlight
from toolcrib.sources.mcp.link.line import Line
from toolcrib.sources.mcp.link.listing import listed_tools
from toolcrib.sources.mcp.server import McpServer
from toolcrib.sources.mcp.wire.dispatcher import Handlers
from toolcrib.sources.mcp.wire.outgoing import Outgoing, outgoing
from toolcrib.sources.mcp.wire.session import RawClient, RawSession

__all__ = ["Link"]

logger = logging.getLogger("toolcrib.mcp")


class Link:
    """One connection. `ended` is set once it is of no more use, `reason` then says why; `suspect`
    asks the supervisor to find out whether it still is. `changes` is told when the server's list
    changed, `listening` set once it is known whether a 2026-07-28 peer tells that. A peer before
    that is told `abilities`: what hosts can be asked on this connection.

    A call that is given up after more than `silence` seconds makes the server suspect: a 2026-07-28
    peer that hangs shows it in no other way. Over HTTP an exchange that breaks off leaves the
    others alone, but raises a doubt: until a probe is answered no further request is sent."""

    def __init__(
        self,
        server: McpServer,
        era: Era,
        abilities: frozenset[Ability] = frozenset(),
        *,
        connect_timeout: float,
        grace: float,
        silence: float = math.inf,
    ) -> None:
        self._server = server
        self._silence = silence
        self._line = Line(
            server, era, connect_timeout=connect_timeout, grace=grace, on_refusal=self.end
        )
        self._client: RawClient | None = None
        self._session: RawSession | None = None
        self.changes = Changes()
        self._in_flight = InFlight(server.name, server.masked, self.changes)
        relay = Relay(Asker(server.name, server.masked), server.settings.ask_timeout)
        self._asked = Asked(relay, self._in_flight)
        self._handlers = Handlers(self._lost, self._in_flight.heard, self._asked.answer, abilities)
        self._listed = False
        self._in_doubt = False
        self.ended = asyncio.Event()
        self.suspect = asyncio.Event()
        self.listening = asyncio.Event()
        self.reason = ""
        self.version = ""

    @asynccontextmanager
    async def open(self) -> AsyncGenerator[None]:
        """Connects; leaving closes. Enter and leave it in one task. Raises as `Line.open`."""
        async with self._line.open(self._handlers) as client:
            self._client, self._session = client, client.raw
            self.version = client.protocol_version
            try:
                yield
            finally:
                self._client = self._session = None

    def end(self, reason: str) -> None:
        """Declares the connection of no more use: the owner leaves it. The first reason stays."""
        if not self.ended.is_set():
            self.reason = reason
            self.ended.set()

    def abort(self) -> None:
        """Stops whatever the owner is waiting for on this connection."""
        self.end("closed")
        self._line.abort()

    def _lost(self) -> None:
        self.end(CLOSED)

    @property
    def how_it_ended(self) -> str:
        return self._line.how_it_ended

    @property
    def stderr(self) -> str:
        return self._line.stderr

    @property
    def last_status(self) -> int:
        return self._line.last_status

    @property
    def pingable(self) -> bool:
        """Whether the peer knows ping: 2026-07-28 took it away."""
        return self._session is not None and not self._session.is_modern

    @property
    def is_usable(self) -> bool:
        """Whether a request would be sent now."""
        return self._session is not None and not (self.ended.is_set() or self._in_doubt)

    def busy_since(self, moment: float) -> bool:
        """Whether a request sent before `moment` (monotonic) is still waited for."""
        return self._in_flight.busy_since(moment)

    async def request(
        self, method: str, params: dict[str, Any], hears: Hears | None = None
    ) -> dict[str, Any]:
        """The result of one request, in the caller's task; cancelling it tells the server.

        Raises `NotSent`, `Forbidden`, `AnswerLost`, `ServerFault` or `Unreadable`.
        """
        session = self._session
        if session is None or self.ended.is_set():
            raise NotSent(self.reason or "it is not connected")
        if self._in_doubt:
            raise NotSent("an exchange with it broke off, and it has not answered a probe since")
        going = self._in_flight.begin(hears)
        token = outgoing.set(going)
        level = self._server.settings.log_level
        try:
            return await session.raw(method, params, going=going, log_level=level)
        except MCPError as error:
            raise self._failure(error, going, session.is_modern) from error
        except asyncio.CancelledError:
            if time.monotonic() - going.began > self._silence:
                self.suspect.set()  # given up after a while: does anything still get an answer?
            raise
        finally:
            self._in_flight.end(going)
            self._asked.ended(going)
            outgoing.reset(token)

    def _failure(self, error: MCPError, going: Outgoing, modern: bool) -> Exception:
        http, status = self._line.is_http, going.status
        # A server may send the SDK's code for a closed connection as its own.
        gone = self.ended.is_set() or self._line.is_gone
        seen = Seen(going.sent, status, going.abandoned, gone)
        what = fate(error.code, seen, http=http, modern=modern)
        # The transport may still be at it: waiting for a token, or for a connection.
        going.withdrawn = what in ("turned_away", "not_sent", "stale")
        if what == "turned_away" and status == 403:
            return Forbidden("it answered HTTP 403")  # for this call; the connection is as it was
        if http and what in ("turned_away", "lost", "not_sent"):
            self.suspect.set()
            self._in_doubt |= status < 300
        if what == "answered":
            return ServerFault(self._server.masked(error.message))
        if what == "unreadable":
            return Unreadable("its answer cannot be read")
        if what == "lost":
            is_closed = status >= 400 or error.code == CONNECTION_CLOSED
            return AnswerLost(self._server.masked(words(error, status)) if is_closed else NO_ANSWER)
        if what == "stale":
            self.end("its session is no longer valid")
        elif what == "not_sent" and (gone or not http):
            self.end(CLOSED)
        return NotSent(self.reason or words(error, status))

    async def probe(self) -> None:
        """Raises unless the server answers: a ping, or for those without ping a discover."""
        session = self._session
        if session is None:
            raise NotSent("it is not connected")
        await session.raw("server/discover" if session.is_modern else "ping")
        self._in_doubt = False

    async def renew(self) -> bool:
        """Nobody here can get a new credential."""
        return False

    async def watch_closure(self) -> bool:
        """Holds a stream open on a 2026-07-28 peer and returns when it ends: at once when the peer
        dies, but a proxy's idle limit ends it too. False where the peer offers none."""
        client = self._client
        if client is None:
            return False
        try:
            async with client.listen(tools_list_changed=True) as stream:
                if self._listed:
                    self.changes.told()  # what changed before this stream was there, nobody told
                self.listening.set()
                async for _ in stream:
                    pass
        except (MCPError, SubscriptionLost) as error:
            logger.debug("watching MCP server %r: %s", self._server.name, words(error))
            return not (isinstance(error, MCPError) and error.code == METHOD_NOT_FOUND)
        finally:
            self.listening.set()
        return True

    async def tools(self) -> list[Any]:
        """The wire form of every tool the server lists; the caller bounds the time."""
        session = self._session
        if session is None:
            raise NotSent(self.reason or "it is not connected")
        self._listed = True
        return await listed_tools(session, self._server.name)

    def header_fault(self, tool: str, schema: object) -> str | None:
        """Why the protocol forbids offering this tool, else None (its `x-mcp-header` is wrong)."""
        return self._session.header_fault(tool, schema) if self._session else None
