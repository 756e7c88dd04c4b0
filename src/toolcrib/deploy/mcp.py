"""`tool.Source/mcp`: MCP servers declared in the file, or in the file of another MCP client.

Everything is judged while the file is read, nothing is connected or started. What a server's keys
mean is `mcp_servers`, how other clients' files are read `clients`. Needs the extra
`toolcrib[mcp]`, which is asked for only by a file that has such a source.
"""

from __future__ import annotations

import importlib.util
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

from toolcrib.deploy.clients import DIALECTS, dialect_named, read_client_file, usable
from toolcrib.deploy.decode import Decoder, Field, list_of, record
from toolcrib.deploy.mcp_servers import liveness, server_made, servers
from toolcrib.deploy.places import At, Rejected
from toolcrib.deploy.resources import Given
from toolcrib.deploy.scalars import choice, directory, secret_texts
from toolcrib.errors import ConfigurationError
from toolcrib.frozen import NOTHING
from toolcrib.host import Ability

if TYPE_CHECKING:
    from toolcrib.sources.mcp import McpServer, McpSource

__all__ = ["McpSettings", "build_mcp", "mcp_settings", "reload_mcp"]

logger = logging.getLogger("toolcrib.deploy")


@dataclass(frozen=True, slots=True)
class McpSettings:
    """The servers. `unavailable` are servers of a client's file that cannot be used here, with the
    reason. `abilities` is what hosts of sessions can be asked."""

    servers: tuple[McpServer, ...]
    unavailable: Mapping[str, str] = field(default=NOTHING)
    abilities: frozenset[Ability] = frozenset()


def mcp_settings(at: At) -> McpSettings:
    """Decodes the settings; without the extra installed, that is one fault more."""
    make: Callable[..., Any] = server_made
    if not _has_extra():
        at.note("MCP servers need an extra that is not installed: pip install 'toolcrib[mcp]'")
        make = dict  # only judged, never used
    fields: dict[str, Decoder[Any] | Field] = {
        "servers": partial(servers, make),
        "liveness": liveness,
        "config": directory,  # a path like any other
        "format": choice("auto", *DIALECTS),
        "inputs": secret_texts,
        "abilities": list_of(choice(*get_args(Ability))),
    }
    return record(partial(_made, at), fields, check=_check_origin)(at)


def build_mcp(given: Given) -> McpSource:
    """The source of `given.settings`, not yet connected to anything."""
    from toolcrib.sources.mcp import McpSource

    settings: McpSettings = given.settings
    return McpSource(
        settings.servers,
        name=given.name,
        unavailable=settings.unavailable,
        abilities=settings.abilities,
    )


async def reload_mcp(source: McpSource, given: Given) -> None:
    """Goes on with what `given.settings` declares. Abilities are only ever added, for connections
    made from now on."""
    settings: McpSettings = given.settings
    source.may_ask(settings.abilities)
    done = await source.reload(settings.servers, settings.unavailable)
    logger.info("MCP source %r was reloaded: %s", given.name, done)


def _has_extra() -> bool:
    return importlib.util.find_spec("mcp") is not None


def _check_origin(at: At) -> None:
    """Servers come from `servers`, `config` or both; the other two keys are about `config`."""
    if not at.has("servers") and not at.has("config"):
        at.note("missing required key 'servers' (or 'config', the file of another MCP client)")
    for entry in at.map_node().entries:
        if entry.key in ("format", "inputs") and not at.has("config"):
            at.under(entry).note(f"{entry.key!r} is about the file in 'config', and there is none")


def _made(
    at: At,
    servers: tuple[McpServer, ...] = (),
    liveness: float | None = None,
    config: str = "",
    format: str = "auto",
    inputs: Mapping[str, str] = NOTHING,
    abilities: tuple[Ability, ...] = (),
) -> McpSettings:
    if not config:
        return _settings(servers, NOTHING, liveness, abilities)
    if not _has_extra():
        raise Rejected  # was noted
    place = at.under(at.map_node().by_key["config"])
    try:
        read = read_client_file(Path(config), dialect_named(format))
    except ConfigurationError as error:
        at.notes.problems.extend(error.problems)
        raise Rejected from error
    found, unavailable = usable(read, at.notes.environ, inputs)
    for doubt in (doubt for one in read.servers for doubt in one.doubts):
        place.warn(doubt)
    own = {one.name for one in servers}
    for name in sorted(own & {*unavailable, *(one.name for one in found)}):
        place.warn(f"server {name!r} of that file is not used: 'servers' has one of that name")
    found = tuple(one for one in found if one.name not in own)
    unavailable = {name: why for name, why in unavailable.items() if name not in own}
    for name, why in unavailable.items():
        place.warn(f"server {name!r} of that file is not available: {why}")
    if not (servers or found or unavailable):
        place.reject("that file has no MCP server that is switched on")
    return _settings((*servers, *found), unavailable, liveness, abilities)


def _settings(
    servers: tuple[McpServer, ...],
    unavailable: Mapping[str, str],
    liveness: float | None,
    abilities: tuple[Ability, ...],
) -> McpSettings:
    """`liveness` is that of the servers that name none: seconds, 0 is off, None the default."""
    if liveness is not None and _has_extra():
        servers = tuple(
            replace(one, liveness=liveness) if one.liveness is None else one for one in servers
        )
    return McpSettings(servers, unavailable, frozenset(abilities))
