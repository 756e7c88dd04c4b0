"""The requests under way on one connection, and which of them a server's words belong to.

Progress names its request. A log message names none: over HTTP it comes on the stream of the
request it belongs to; over pipes it is told to the only request there is, else to the server's log.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Mapping
from typing import Any, Final

from toolcrib.sources.mcp.changes import Changes
from toolcrib.sources.mcp.connection import Hears
from toolcrib.sources.mcp.content.logged import severity, words_of
from toolcrib.sources.mcp.content.shapes import text_of
from toolcrib.sources.mcp.wire.outgoing import Outgoing

__all__ = ["InFlight"]

logger = logging.getLogger("toolcrib.mcp")

MAX_LOGGED: Final = 1000
"""Log messages outside any call that one connection may give."""


class InFlight:
    """Requests from `begin` to `end`, and `heard` for every notification of the server."""

    def __init__(self, server: str, masked: Callable[[str], str], changes: Changes) -> None:
        self._server = server
        self._masked = masked
        self._changes = changes
        self._requests: dict[int, Outgoing] = {}
        self._logged = 0

    def begin(self, hears: Hears | None) -> Outgoing:
        going = Outgoing(hears)
        self._requests[going.id] = going
        return going

    def end(self, going: Outgoing) -> None:
        del self._requests[going.id]

    def askers(self, related: Outgoing | None) -> dict[Outgoing, Hears]:
        """The calls that something the server asks may be about: that on whose stream it asks,
        where it is known, else all."""
        known = self._requests.values() if related is None else [related]
        here = [one for one in known if one.id in self._requests]
        return {one: one.hears for one in here if one.hears is not None}

    def busy_since(self, moment: float) -> bool:
        """Whether a request sent before `moment` (monotonic) is still waited for."""
        return any(one.began < moment for one in self._requests.values())

    def heard(self, method: str, params: Mapping[str, Any], related: Outgoing | None) -> None:
        """Takes one notification; `related` is the request on whose stream it came, if known. Lists
        of resources and prompts are read when asked for, so their changes mean nothing."""
        if method == "notifications/tools/list_changed":
            self._changes.told()
        elif method == "notifications/progress":
            self._progress(params)
        elif method == "notifications/message":
            self._log(params, related)

    def _progress(self, params: Mapping[str, Any]) -> None:
        token, current = params.get("progressToken"), _number(params.get("progress"))
        if type(token) is not int or current is None:
            return
        going = self._requests.get(token)
        if going is not None and going.hears is not None:
            message = text_of(params.get("message"))
            going.hears.progress(current, _number(params.get("total")), message)

    def _log(self, params: Mapping[str, Any], related: Outgoing | None) -> None:
        level, text = text_of(params.get("level")), words_of(params)
        if related is None or related.id not in self._requests:
            hearing = [one for one in self._requests.values() if one.hears is not None]
            related = hearing[0] if len(hearing) == 1 else None
        if related is not None and related.hears is not None:
            related.hears.log(level, text)
        elif self._logged < MAX_LOGGED:
            self._logged += 1
            logger.log(severity(level), "MCP server %r says: %s", self._server, self._masked(text))


def _number(value: object) -> float | None:
    """`value` where it is a number that can be reckoned with."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return None
    return value
