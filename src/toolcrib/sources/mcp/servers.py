"""The servers of one source, as they are declared together, and what another declaration changes.

Values only: what follows from them is `source`'s.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import cast

from toolcrib.errors import InvalidDefinition
from toolcrib.sources.mcp.checks import text
from toolcrib.sources.mcp.health import Health
from toolcrib.sources.mcp.server import McpServer

__all__ = ["Reloaded", "declared", "difference", "only_told"]


@dataclass(frozen=True, slots=True)
class Reloaded:
    """The names of the servers that are new, that are declared otherwise than before, and that are
    gone; each sorted. Every other server keeps its connection."""

    added: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()


def declared(
    source: str, servers: Iterable[McpServer], unavailable: Mapping[str, str]
) -> tuple[McpServer, ...]:
    """The servers, sorted by name. Raises `InvalidDefinition` where no source can be of them and
    of the `unavailable`."""
    if not text("the name of an MCP source", source).strip():
        raise InvalidDefinition("an MCP source needs a name: it is blank")
    found = tuple(sorted(_servers(source, servers), key=lambda server: server.name))
    names = [server.name for server in found] + [*unavailable]
    if not names:
        raise InvalidDefinition(f"MCP source {source!r} has no server")
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise InvalidDefinition(f"MCP source {source!r}: two servers are named {twice[0]!r}")
    return found


def _servers(source: str, given: object) -> Iterator[McpServer]:
    for one in cast("Iterable[object]", given) if isinstance(given, Iterable) else (given,):
        if not isinstance(one, McpServer) or one is given:
            raise InvalidDefinition(
                f"MCP source {source!r} takes a list of McpServer, not {type(one).__name__}; what"
                " mcp.stdio and mcp.http give is a source already: hand it to the assembly"
            )
        yield one


def only_told(unavailable: Mapping[str, str]) -> tuple[Health, ...]:
    """How servers are that cannot be configured here, by name and reason."""
    now = time.time()
    return tuple(Health(name, "given_up", reason, now) for name, reason in unavailable.items())


def difference(before: Iterable[McpServer], after: Iterable[McpServer]) -> Reloaded:
    """From one declaration to another: a server is the same one by its name, and unchanged where
    everything it was declared with is equal, the values of variables included."""
    old, new = ({server.name: server for server in servers} for servers in (before, after))
    return Reloaded(
        added=tuple(sorted(new.keys() - old.keys())),
        changed=tuple(sorted(name for name in new.keys() & old.keys() if new[name] != old[name])),
        removed=tuple(sorted(old.keys() - new.keys())),
    )
