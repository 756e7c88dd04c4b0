"""From what a server lists to what is offered: names, descriptions, schemas.

Pure: no connection, no registry. One bad tool is left out with its reason and takes no other along.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from toolcrib.definition import Annotations, ToolDefinition
from toolcrib.errors import InvalidDefinition, InvalidSchema
from toolcrib.names import exposed_name
from toolcrib.schema import compile_schema
from toolcrib.sources.mcp.content.shapes import object_of, text_of
from toolcrib.sources.mcp.overrides import AS_LISTED, Overrides

__all__ = ["Mirror", "Mirrored", "Rejection", "mirror"]


@dataclass(frozen=True, slots=True)
class Mirrored:
    """One remote tool as it is offered; `remote` is the server's own name, for the call."""

    definition: ToolDefinition
    remote: str


@dataclass(frozen=True, slots=True)
class Rejection:
    """A listed tool that is not offered, and why."""

    server: str
    tool: str
    reason: str


@dataclass(frozen=True, slots=True)
class Mirror:
    """One server's list: what is offered, in the server's order, and what is not. `idle` are the
    host's decisions that had nothing to decide, in words."""

    tools: tuple[Mirrored, ...] = ()
    rejected: tuple[Rejection, ...] = ()
    idle: tuple[str, ...] = ()


def mirror(
    server: str,
    namespace: str,
    listing: Iterable[object],
    fault: Callable[[str, object], str | None] = lambda name, schema: None,
    overrides: Overrides = AS_LISTED,
) -> Mirror:
    """What `listing` (the wire form of tools/list) offers under `namespace`.

    The first of several tools of one name wins; entries that are no object or have no name are
    skipped (A11.2). `fault` may say why a tool of this name and schema must not be offered.
    What `overrides` leaves out is not offered and not rejected either.
    """
    listed = _named(listing)
    taken = overrides.taken(listed)
    tools: dict[str, Mirrored] = {}
    rejected: list[Rejection] = []
    for name, raw in listed.items():
        if not overrides.takes(name):
            continue
        called = overrides.name(name)
        exposed = exposed_name(namespace, called)
        try:
            if (owner := taken.get(called, name)) != name:
                raise InvalidDefinition(
                    f"{owner!r} is renamed to its name: rename or exclude one of the two"
                )
            if exposed in tools:
                raise InvalidDefinition(f"its name {exposed!r} is that of another of its tools")
            if reason := fault(name, raw.get("inputSchema")):
                raise InvalidDefinition(reason)
            said = overrides.descriptions.get(name)
            tools[exposed] = Mirrored(_definition(server, exposed, name, raw, said), name)
        except InvalidDefinition as error:
            rejected.append(Rejection(server, name, str(error)))
    return Mirror(tuple(tools.values()), tuple(rejected), overrides.idle(listed))


def _named(listing: Iterable[object]) -> dict[str, dict[str, Any]]:
    """The entries that have a name, the first of each."""
    named: dict[str, dict[str, Any]] = {}
    for entry in listing:
        raw = object_of(entry)
        name = raw.get("name")
        if isinstance(name, str) and name.strip():
            named.setdefault(name, raw)
    return named


def _definition(
    server: str, exposed: str, name: str, raw: Mapping[str, Any], said: str | None
) -> ToolDefinition:
    """`said` is what the host says of it instead of the server."""
    hints = object_of(raw.get("annotations"))
    return ToolDefinition(
        exposed,
        _description(raw, hints) if said is None else said,
        _input_schema(raw.get("inputSchema")),
        _output_schema(raw.get("outputSchema")),
        Annotations(
            title=text_of(hints.get("title")) or text_of(raw.get("title")) or None,
            read_only=_claim(hints, "readOnlyHint"),
            destructive=_claim(hints, "destructiveHint"),
            idempotent=_claim(hints, "idempotentHint"),
            open_world=_claim(hints, "openWorldHint"),
        ),
        meta={"server": server, "remote_name": name},
    )


def _description(raw: Mapping[str, Any], hints: Mapping[str, Any]) -> str:
    """`<title>: <description>` where the annotations hold a title, else the description, else any
    title (A11.3)."""
    title, description = text_of(hints.get("title")), text_of(raw.get("description"))
    if title and description:
        return f"{title}: {description}"
    return description or title or text_of(raw.get("title"))


def _input_schema(schema: object) -> Mapping[str, Any]:
    """A schema the arguments can be checked against. Raises `InvalidSchema` for one that no
    argument object can satisfy or the validator does not take."""
    raw = object_of(schema)
    kind = raw.get("type", "object")
    if isinstance(kind, str) and kind != "object":
        raise InvalidSchema(f"its schema's root type is {kind!r}, not 'object'")
    typed = raw if "type" in raw else {"type": "object", **raw}
    compile_schema(typed)
    return typed


def _output_schema(schema: object) -> Mapping[str, Any] | None:
    """The output schema, which only describes; one that cannot be used is no reason to lose the
    tool."""
    raw = object_of(schema)
    if not raw:
        return None
    try:
        compile_schema(raw)
    except InvalidSchema:
        return None
    return raw


def _claim(hints: Mapping[str, Any], name: str) -> bool | None:
    value = hints.get(name)
    return value if isinstance(value, bool) else None
