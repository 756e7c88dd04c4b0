"""Remembers what a definition was converted to, so that every round sends the same bytes (TS08).

Bounded; what it hands out is made afresh, so that a caller may change it.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from threading import Lock
from typing import Any

from toolcrib.definition import ToolDefinition, compact_json
from toolcrib.providers.media import sound
from toolcrib.providers.report import Degraded, Notes

__all__ = ["Cache"]

MAX_ENTRIES = 8_192


class Cache:
    """One conversion's results. Keyed by what the model sees: a fingerprint leaves the order of
    keys open, which an author chose (TS09)."""

    __slots__ = ("_found", "_lock")

    def __init__(self) -> None:
        self._found: dict[tuple[str, ...], tuple[str, tuple[Degraded, ...]]] = {}
        self._lock = Lock()

    def get(
        self,
        definition: ToolDefinition,
        how: str,
        convert: Callable[[ToolDefinition, Notes], dict[str, Any]],
        notes: Notes,
    ) -> dict[str, Any]:
        """What `convert` makes of `definition` in the way `how`; its notes go to `notes`."""
        key = (how, definition.name, definition.description, definition.schema_json)
        found = self._found.get(key)
        if found is None:
            own = Notes(definition.name)
            converted = convert(definition, own)
            text = compact_json(converted)
            if (whole := sound(text)) != text:
                own.add("unpaired surrogates replaced", effect="wording")
            found = (whole, own.all())
            with self._lock:
                while len(self._found) >= MAX_ENTRIES:
                    del self._found[next(iter(self._found))]
                self._found[key] = found
        notes.extend(found[1])
        fresh: dict[str, Any] = json.loads(found[0])
        return fresh
