"""Requests of tools: how long each may take, and the one case of sending it again.

Nothing is ever sent twice blindly: a request that was not sent goes to the next connection, one
whose answer was lost only where the deployment's policy says that this does no harm. Who connects
is `keep`.
"""

from __future__ import annotations

import math
import time
import uuid
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Any, Final, Protocol, TypeAlias

from toolcrib.errors import NotAvailable
from toolcrib.policy import Policy
from toolcrib.sources.mcp.asking.questions import Asker
from toolcrib.sources.mcp.asking.relay import Relay
from toolcrib.sources.mcp.calls.clock import Clock
from toolcrib.sources.mcp.calls.hearing import ToCall
from toolcrib.sources.mcp.calls.rounds import MAY_ASK, Rounds
from toolcrib.sources.mcp.connection import Hears
from toolcrib.sources.mcp.failures import AnswerLost, Forbidden, TooLate
from toolcrib.sources.mcp.settings import ServerSettings
from toolcrib.tool import CallContext

__all__ = ["KEY", "Calls", "Lease", "Server", "patience"]

KEY: Final = "toolcrib/idempotency_key"
"""In `_meta` of a request that may be sent twice: the same both times. One with the answers to a
server's questions is another request, and has a key of its own."""


class Server(Protocol):
    """Where requests go: a supervised server. `request` raises `NotAvailable`, `Forbidden`,
    `AnswerLost`, `ServerFault` or `Unreadable`."""

    @property
    def generation(self) -> int: ...

    async def request(
        self, method: str, params: dict[str, Any], hears: Hears | None = None
    ) -> dict[str, Any]: ...

    async def connected_after(self, generation: int, seconds: float) -> bool: ...


Lease: TypeAlias = Callable[[CallContext], AbstractAsyncContextManager[Server]]
"""The connection that a call uses, for as long as it lasts."""


def patience(
    error: NotAvailable | AnswerLost, policy: Policy, settings: ServerSettings, left: float
) -> float:
    """Seconds to wait for a new connection to send the request again; 0: it is not sent again.
    `left` is what the call has left."""
    if isinstance(error, NotAvailable):
        return min(settings.reconnect_wait, left)
    return left if policy.idempotent is True else 0.0


@dataclass(frozen=True, slots=True)
class Calls:
    """The requests of one server's tools."""

    name: str
    settings: ServerSettings
    lease: Lease
    masked: Callable[[str], str] = str

    async def send(self, ctx: CallContext, method: str, params: dict[str, Any]) -> dict[str, Any]:
        """The answer, within the call's time, after whatever the server asks first. Raises as
        `Server.request` and `Rounds.lead`, and `TooLate`; a call that this ends is cancelled on
        the server too."""
        end = time.monotonic() + self.settings.call_timeout
        deadline = math.inf if ctx.deadline is None else ctx.deadline
        clock = Clock(end, self.settings.idle_timeout, deadline)
        hears = ToCall(ctx, self.masked, clock)

        async def send(params: dict[str, Any]) -> dict[str, Any]:
            if ctx.policy.idempotent is True:
                params = {**params, "_meta": {**params.get("_meta", {}), KEY: uuid.uuid4().hex}}
            return await self._send(server, ctx.policy, (method, params, hears), clock)

        try:
            async with clock, self.lease(ctx) as server:
                if method in MAY_ASK:
                    return await self._rounds.lead(send, params, hears)
                return await send(params)
        except TimeoutError:
            raise TooLate(clock.why) from None

    @property
    def _rounds(self) -> Rounds:
        relay = Relay(Asker(self.name, self.masked), self.settings.ask_timeout)
        return Rounds(relay, self.settings.input_rounds)

    async def _send(
        self,
        server: Server,
        policy: Policy,
        request: tuple[str, dict[str, Any], Hears],
        clock: Clock,
    ) -> dict[str, Any]:
        generation = server.generation
        try:
            return await server.request(*request)
        except (NotAvailable, AnswerLost) as error:
            wait = patience(error, policy, self.settings, clock.left)
            if not await server.connected_after(generation, wait):
                raise
            lost = error if isinstance(error, AnswerLost) else None
        try:
            return await server.request(*request)
        except (NotAvailable, Forbidden):
            if lost is not None:
                raise lost from None  # what became of the first time is still unknown
            raise
