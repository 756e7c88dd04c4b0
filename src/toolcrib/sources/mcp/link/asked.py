"""What a server before 2026-07-28 asks on its own, while it is at work: requests the other way.

Over HTTP such a request comes on the stream of the call it belongs to. Over pipes it names none: it
belongs to the only call there is, or to all of them where one host stands behind them all. It is
waited for as long as one of these calls is. Later servers ask in their answers (`calls.rounds`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from typing import Any, Final

import anyio
from mcp import MCPError

from toolcrib.sources.mcp.asking.questions import Caller, Refused
from toolcrib.sources.mcp.asking.relay import Relay
from toolcrib.sources.mcp.connection import Hears
from toolcrib.sources.mcp.link.inflight import InFlight
from toolcrib.sources.mcp.wire.outgoing import Outgoing

__all__ = ["Asked", "joint"]

MAX_OPEN: Final = 16
MAX_ASKED: Final = 100
"""Questions that one connection may have open at once, and one call may ask: while a question is
open the call's time stands still, and so much of that must have an end."""


def joint(hearers: Iterable[Hears]) -> Caller:
    """On whose behalf a server asks that is at work on the calls of `hearers`. Raises `Refused`
    where that is nobody, or cannot be told."""
    callers = [one.caller for one in hearers]
    if not callers:
        raise Refused("nobody waits for anything that could be asked about")
    if len(callers) == 1:
        return callers[0]
    if any(one.host is not callers[0].host for one in callers):
        raise Refused("calls of several conversations are under way: it cannot be told whose it is")
    return Caller(callers[0].host)


class Asked:
    """The open questions of one connection. Call `ended` at the end of each request."""

    def __init__(self, relay: Relay, in_flight: InFlight) -> None:
        self._relay = relay
        self._in_flight = in_flight
        self._open: dict[anyio.CancelScope, set[Outgoing]] = {}

    async def answer(
        self, method: str, params: Mapping[str, Any], related: Outgoing | None
    ) -> dict[str, Any]:
        """The answer to one request of the server; `related` is ours on whose stream it came, if
        known. Raises `MCPError` where it is refused."""
        try:
            return await self._answer(method, params, self._in_flight.askers(related))
        except Refused as refused:
            raise MCPError(code=refused.code, message=str(refused)) from None

    async def _answer(
        self, method: str, params: Mapping[str, Any], calls: dict[Outgoing, Hears]
    ) -> dict[str, Any]:
        caller = joint(calls.values())
        for call in calls:
            call.questions += 1
        if len(self._open) >= MAX_OPEN or any(call.questions > MAX_ASKED for call in calls):
            raise Refused("it asks too much")
        with anyio.CancelScope() as scope, ExitStack() as waiting:
            self._open[scope] = {*calls}
            waiting.callback(self._open.pop, scope)
            for hears in calls.values():
                waiting.enter_context(hears.waiting())
            return await self._relay.ask(caller, method, params)
        raise Refused("the call that it was about is over")

    def ended(self, going: Outgoing) -> None:
        """A request is over: what was asked on its behalf alone is, too."""
        for scope, calls in self._open.items():
            calls.discard(going)
            if not calls:
                scope.cancel()
