"""A conversation's view as JSON and back, so that it can be resumed elsewhere.

The shape, version 1: `{"version": 1, "rounds": n, "touches": n, "tools": {name: [last use, touch,
rank]}, "required": {name: touch}, "sent": [names], "held": [names], "held_since": n, "admitted":
n}`. Names only: what a tool is today, the catalogue says.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from toolcrib.discovery.pool import Pool, Pooled
from toolcrib.discovery.visible import View
from toolcrib.errors import InvalidDefinition

__all__ = ["VERSION", "saved", "view_of"]

VERSION = 1
MAX_NAMES = 100_000
"""Names of one saved list that are read: no session needs more."""


def saved(view: View) -> dict[str, Any]:
    """`view` as a JSON object."""
    pool = view.pool
    return {
        "version": VERSION,
        "rounds": pool.rounds,
        "touches": pool.seq,
        "tools": {name: [one.last_use, one.seq, one.rank] for name, one in pool.tools.items()},
        "required": dict(view.required),
        "sent": list(view.sent),
        "held": sorted(view.held),
        "held_since": view.held_since,
        "admitted": view.admitted,
    }


def view_of(state: Mapping[str, Any]) -> View:
    """The view that `saved` gave as `state`; what was sent counts as decided, so that it keeps its
    place. Whole numbers may have become floats on their way (trap T-A19). Raises
    `InvalidDefinition` for anything that `saved` does not give."""
    try:
        if _number(state["version"]) != VERSION:
            raise ValueError(f"version {state['version']!r}, this is for version {VERSION}")
        tools = {
            name: Pooled(*map(_number, _three(numbers)))
            for name, numbers in _mapping(state["tools"]).items()
        }
        pool = Pool(tools, _number(state["rounds"]), _number(state["touches"]))
        required = {name: _number(at) for name, at in _mapping(state["required"]).items()}
        return View(
            pool,
            required,
            _names(state["sent"]),
            decided=pool.seq,
            held=frozenset(_names(state["held"])),
            held_since=_number(state["held_since"]),
            admitted=_number(state["admitted"]),
        )
    except (KeyError, TypeError, ValueError) as error:
        what = f"{error} is missing" if isinstance(error, KeyError) else str(error)
        raise InvalidDefinition(f"this is no saved state of a session: {what}") from error


def _number(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int | float) or value % 1:
        raise ValueError(f"{value!r} is no whole number")
    if value < 0:
        raise ValueError(f"{value!r} is negative")
    return int(value)


def _three(value: object) -> list[object]:
    found = cast("list[object]", value)
    if not isinstance(value, list) or len(found) != 3:
        raise ValueError(f"{value!r} is not [last use, touch, rank]")
    return found


def _mapping(value: object) -> dict[str, object]:
    if not isinstance(value, Mapping):
        raise ValueError(f"{type(value).__name__} where an object should be")
    found = cast("Mapping[str, object]", value)
    _names(list(found))
    return dict(found)


def _names(value: object) -> tuple[str, ...]:
    if not isinstance(value, list):
        raise ValueError(f"{type(value).__name__} where a list of names should be")
    found = cast("list[object]", value)
    if len(found) > MAX_NAMES:
        raise ValueError(f"{len(found)} names are more than {MAX_NAMES}")
    names = tuple(one for one in found if isinstance(one, str))
    if len(names) != len(found) or len(set(names)) != len(names):
        raise ValueError("names must be texts, each once")
    return names
