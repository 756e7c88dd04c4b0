"""How patient one server is dealt with: bounds of calls, of listings, of reconnecting, of sessions.

Values only; what they mean is `calls.repeats` (calls), `changes` (listings), `keep.breaker`
(reconnecting) and `keep.per_session`.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Literal, TypeAlias, get_args

from toolcrib.errors import InvalidDefinition
from toolcrib.sources.mcp.checks import number

__all__ = ["USUAL", "LogLevel", "ServerSettings"]

LogLevel: TypeAlias = Literal[
    "debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"
]

_COUNTS = ("open_after", "max_sessions", "input_rounds")
_MAY_BE_ZERO = ("reconnect_wait", "jitter", "list_quiet")
_MAY_BE_NONE = ("idle_timeout", "open_pause")


@dataclass(frozen=True, slots=True)
class ServerSettings:
    """Bounds of one server. Seconds, unless said otherwise.

    `call_timeout` bounds a call in all, with every wait and repetition; `idle_timeout` (None: none)
    the time without any progress told, never beyond the former. `reconnect_wait` is how long a call
    that was not sent waits for the connection being made (0: not at all).

    `list_quiet` without a further word of a changed list, or `list_longest` after the first, and
    the list is read again.

    After `open_after` failed connections in a row the server is left alone for `open_pause` (None:
    the source's longest pause) before each further attempt. `jitter` lengthens each pause by up to
    that fraction, by chance.

    `max_sessions` bounds the number of connections of single sessions, `session_idle` how long one
    is kept without a call. `log_level` is the least level of log messages that a server of protocol
    2026-07-28 is asked for.

    `ask_timeout` is how long a host has to answer a question of the server; neither `call_timeout`
    nor `idle_timeout` runs meanwhile, the deadline of a caller and the `timeout` of a policy do.
    `input_rounds` is how often one call may be answered with questions. Raises
    `InvalidDefinition`.
    """

    call_timeout: float = 600.0
    idle_timeout: float | None = None
    reconnect_wait: float = 2.0
    list_quiet: float = 0.1
    list_longest: float = 1.0
    open_after: int = 5
    open_pause: float | None = None
    jitter: float = 0.0
    max_sessions: int = 16
    session_idle: float = 600.0
    log_level: LogLevel = "info"
    ask_timeout: float = 300.0
    input_rounds: int = 10

    def __post_init__(self) -> None:
        for each in fields(self):
            value = getattr(self, each.name)
            if each.name == "log_level":
                if value not in get_args(LogLevel):
                    raise InvalidDefinition(
                        f"unknown log_level {value!r}: use one of {', '.join(get_args(LogLevel))}"
                    )
            elif each.name in _COUNTS:
                if type(value) is not int or value < 1:
                    raise InvalidDefinition(f"{each.name} {value!r} is not a whole number ≥ 1")
            elif value is not None or each.name not in _MAY_BE_NONE:
                number(each.name, value, "≥ 0" if each.name in _MAY_BE_ZERO else "> 0")


USUAL = ServerSettings()
