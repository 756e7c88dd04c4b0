"""One MCP server as a deployment file declares it: its keys, and what its transport allows.

Judged while the file is read (rules A9.1-A9.3); nothing is connected or started.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from toolcrib.deploy.decode import (
    Decoder,
    Field,
    list_of,
    map_of,
    plain_record,
    record,
    required,
)
from toolcrib.deploy.duration import parse_duration
from toolcrib.deploy.mcp_auth import auth
from toolcrib.deploy.places import At, Rejected
from toolcrib.deploy.scalars import (
    address,
    choice,
    directory,
    duration,
    integer,
    lenient_flag,
    name,
    program,
    secret_texts,
    text,
)
from toolcrib.frozen import NOTHING

if TYPE_CHECKING:
    from toolcrib.sources.mcp import McpServer

__all__ = ["liveness", "server_made", "servers"]

_FORBIDDEN = {
    "stdio": ("url", "headers", "http_timeout", "auth"),
    "http": ("command", "args", "env", "cwd"),
}
_NEEDED = {"stdio": "command", "http": "url"}
_LATER = ("era", "oauth")
_OFF = 0.0
_FRACTION = re.compile(r"(?:0(?:\.[0-9]{1,9})?|1(?:\.0{1,9})?)\Z")
_LEVELS = ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency")


def servers(make: Callable[..., Any], at: At) -> tuple[McpServer, ...]:
    """Decodes the list of servers, each made by `make` of its values."""
    return _servers(record(make, _SERVER, later=_LATER, check=_check_transport), at)


def server_made(
    tools: Mapping[str, Any] = NOTHING, settings: Mapping[str, Any] = NOTHING, **values: Any
) -> McpServer:
    """The server of those values. Needs the extra `mcp`."""
    from toolcrib.sources.mcp.overrides import Overrides
    from toolcrib.sources.mcp.server import McpServer
    from toolcrib.sources.mcp.settings import ServerSettings

    return McpServer(tools=Overrides(**tools), settings=ServerSettings(**settings), **values)


def _check_transport(at: At) -> None:
    """What the transport needs and forbids, at the key it is about."""
    transport = _transport(at)
    if transport is None:
        return
    if (needed := _NEEDED[transport]) not in _keys(at):
        at.note(f"missing required key {needed!r}: transport {transport} needs it")
    for entry in at.map_node().entries:
        if entry.key in _FORBIDDEN[transport]:
            at.under(entry).note(f"transport {transport} takes no {entry.key!r}")


def _transport(at: At) -> str | None:
    entry = at.map_node().by_key.get("transport")
    if entry is None:
        return None
    try:
        return choice("stdio", "http")(at.silent.under(entry))
    except Rejected:
        return None  # the key's own decoder says why


def _keys(at: At) -> frozenset[str]:
    return frozenset(at.map_node().by_key)


def _positive(at: At) -> float:
    seconds = duration(at)
    if seconds <= 0:
        at.expected("a duration above 0")
    return seconds


def _not_negative(at: At) -> float:
    seconds = duration(at)
    if seconds < 0:
        at.expected("a duration ≥ 0")
    return seconds


def _fraction(at: At) -> float:
    found = at.expand(what := "a fraction from 0 to 1, such as 0.1")
    if not _FRACTION.match(found):
        at.expected(what)
    return float(found)


def liveness(at: At) -> float:
    """Seconds between two probes, 0 for off (rule A9.2: a written 0s is refused)."""
    found = at.expand(what := 'a duration above 0 such as 30s, or "off"')
    if found == "off":
        return _OFF
    seconds = parse_duration(found)
    if seconds is None or seconds <= 0:
        at.expected(what)
    return seconds


_TOOLS = plain_record(
    {
        "include": list_of(name),
        "exclude": list_of(name),
        "rename": map_of(name),
        "descriptions": map_of(text),
    }
)

_SETTINGS = plain_record(
    {
        "call_timeout": _positive,
        "idle_timeout": _positive,
        "reconnect_wait": _not_negative,
        "list_quiet": _not_negative,
        "list_longest": _positive,
        "open_after": integer(1),
        "open_pause": _positive,
        "jitter": _fraction,
        "max_sessions": integer(1),
        "session_idle": _positive,
        "log_level": choice(*_LEVELS),
        "ask_timeout": _positive,
        "input_rounds": integer(1),
    }
)

_SERVER: dict[str, Decoder[Any] | Field] = {
    "name": required(name),
    "transport": required(choice("stdio", "http")),
    "command": program,
    "args": list_of(text),
    "env": secret_texts,
    "cwd": directory,
    "url": address,
    "headers": secret_texts,
    "http_timeout": _positive,
    "prefix": text,
    "resources": lenient_flag,
    "required": lenient_flag,
    "liveness": liveness,
    "tools": _TOOLS,
    "settings": _SETTINGS,
    "prompts": lenient_flag,
    "per_session": lenient_flag,
    "auth": auth,
}


def _servers(server: Decoder[McpServer], at: At) -> tuple[McpServer, ...]:
    """At least one, each name once."""
    seen: dict[str, int] = {}
    before = len(at.notes.problems)
    for number, item in enumerate(at.list_node().items):
        place = at.item(number, item)
        entry = getattr(item, "by_key", {}).get("name")
        if entry is None:
            continue
        try:
            own_name = name(place.silent.under(entry))
        except Rejected:
            continue  # the key's own decoder says why
        if (first := seen.setdefault(own_name, number)) != number:
            named = place.under(entry)
            named.note(f"server name {named.shown} is taken by servers[{first}]")
    found = list_of(server, least=1)(at)
    if len(at.notes.problems) > before:
        raise Rejected
    return found
