"""`tool.Source/mcp`: MCP servers declared in the file (guide A, rules A9.1-A9.3).

Everything is judged while the file is read, nothing is connected or started. Needs the extra
`toolcrib[mcp]`, which is asked for only by a file that has such a source.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from toolcrib.deploy.decode import Decoder, Field, list_of, map_of, record, required
from toolcrib.deploy.duration import parse_duration
from toolcrib.deploy.places import At, Rejected
from toolcrib.deploy.resources import Given
from toolcrib.deploy.scalars import choice, directory, duration, lenient_flag, name, program, text

if TYPE_CHECKING:
    from toolcrib.sources.mcp import McpServer, McpSource

__all__ = ["McpSettings", "build_mcp", "mcp_settings"]

_FORBIDDEN = {
    "stdio": ("url", "headers", "http_timeout"),
    "http": ("command", "args", "env", "cwd"),
}
_NEEDED = {"stdio": "command", "http": "url"}
_LATER = ("auth", "breaker", "era", "oauth", "tools")
_OFF = 0.0


@dataclass(frozen=True, slots=True)
class McpSettings:
    """The servers, and the probe interval of those that name none: seconds, 0 is off, None the
    source's own default."""

    servers: tuple[McpServer, ...]
    liveness: float | None = None


def mcp_settings(at: At) -> McpSettings:
    """Decodes the settings; without the extra installed, that is one fault more."""
    make: Callable[..., Any] = _server_made
    if importlib.util.find_spec("mcp") is None:
        at.note("MCP servers need an extra that is not installed: pip install 'toolcrib[mcp]'")
        make = dict  # only judged, never used
    servers = partial(_servers, record(make, _SERVER, later=_LATER, check=_check_transport))
    return record(McpSettings, {"servers": required(servers), "liveness": _liveness})(at)


def build_mcp(given: Given) -> McpSource:
    """The source of `given.settings`, not yet connected to anything."""
    from toolcrib.sources.mcp import McpSource

    settings: McpSettings = given.settings
    if settings.liveness is None:
        return McpSource(settings.servers, name=given.name)
    return McpSource(settings.servers, name=given.name, liveness=settings.liveness)


def _server_made(**values: Any) -> McpServer:
    from toolcrib.sources.mcp.server import McpServer

    return McpServer(**values)


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


def _url(at: At) -> str:
    """An address; never shown, it may hold a password or a key."""
    found = name(at)
    try:
        parts = urlsplit(found)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname)
    except ValueError:
        usable = False
    if not usable:
        at.reject("expected an http:// or https:// address")
    return found


def _positive(at: At) -> float:
    seconds = duration(at)
    if seconds <= 0:
        at.expected("a duration above 0")
    return seconds


def _liveness(at: At) -> float:
    """Seconds between two probes, 0 for off (rule A9.2: a written 0s is refused)."""
    found = at.expand(what := 'a duration above 0 such as 30s, or "off"')
    if found == "off":
        return _OFF
    seconds = parse_duration(found)
    if seconds is None or seconds <= 0:
        at.expected(what)
    return seconds


_SERVER: dict[str, Decoder[Any] | Field] = {
    "name": required(name),
    "transport": required(choice("stdio", "http")),
    "command": program,
    "args": list_of(text),
    "env": map_of(text),
    "cwd": directory,
    "url": _url,
    "headers": map_of(text),
    "http_timeout": _positive,
    "prefix": text,
    "resources": lenient_flag,
    "required": lenient_flag,
    "liveness": _liveness,
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
    servers = list_of(server, least=1)(at)
    if len(at.notes.problems) > before:
        raise Rejected
    return servers
