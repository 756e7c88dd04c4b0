"""The names under which tools are sent, and the way back from a call to the tool.

A definition normally carries an exposed name already (`names`); one that does not is mapped the
same way here rather than sent to be refused (O2, A2, G2).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

from toolcrib.arguments import decode
from toolcrib.content import ToolCall
from toolcrib.definition import ToolDefinition, compact_json
from toolcrib.errors import InvalidArguments, InvalidDefinition
from toolcrib.names import exposed_name
from toolcrib.providers.report import Notes

__all__ = ["Restore", "legal_name", "restored", "sent_name", "unique"]

Restore = Callable[[dict[str, Any], ToolDefinition], dict[str, Any]]
"""Undoes what an export did to the arguments of one tool."""


def legal_name(name: str) -> str:
    """`name` as every provider takes it, in a call of the past too."""
    return exposed_name("", name) if name else "unknown"


def sent_name(definition: ToolDefinition, notes: Notes) -> str:
    """The name `definition` is sent under."""
    name = legal_name(definition.name)
    if name != definition.name:
        notes.add("name mapped", definition.name[:80], "same")
    return name


def unique(definitions: Iterable[ToolDefinition]) -> list[ToolDefinition]:
    """`definitions` as a list. Raises `InvalidDefinition` if two have one name: a call of it could
    not be dispatched (O5, A3, G3)."""
    found = list(definitions)
    names: set[str] = set()
    for definition in found:
        if definition.name in names:
            raise InvalidDefinition(f"two of the tools to send are named {definition.name!r}")
        names.add(definition.name)
    return found


def restored(
    calls: Sequence[ToolCall], definitions: Iterable[ToolDefinition], undo: Restore | None = None
) -> list[ToolCall]:
    """`calls` by the names and argument names of `definitions` instead of those that were sent."""
    sent = {exposed_name("", definition.name): definition for definition in definitions}
    return [
        call if call.name not in sent else _restored(call, sent[call.name], undo) for call in calls
    ]


def _restored(call: ToolCall, definition: ToolDefinition, undo: Restore | None) -> ToolCall:
    named = replace(call, name=definition.name)
    if undo is None:
        return named
    try:
        values, _ = decode(call.arguments)
    except InvalidArguments:  # told to the model by the tool's own parse
        return named
    changed = undo(values, definition)
    return named if changed == values else replace(named, arguments=compact_json(changed))
