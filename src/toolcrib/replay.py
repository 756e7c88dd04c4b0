"""A conversation's view derived from its transcript alone, where nobody kept the state.

It plays the rounds through again: every response ages the pool, every search takes in what it
found, every call that ran touches its tool. What is no longer in the transcript is not known here.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

from toolcrib.catalog import Catalog
from toolcrib.content import DataPart, FailureKind, TextPart, ToolCall, ToolResult
from toolcrib.discovery.eviction import after_call, after_round, at_turn, taking_in
from toolcrib.discovery.policy import SEARCH_TOOL, Dynamic
from toolcrib.discovery.visible import View, visible
from toolcrib.principal import Principal
from toolcrib.providers.history import Assistant, Message, User

__all__ = ["replayed"]

_NEVER_RAN: frozenset[FailureKind] = frozenset(
    ("not_found", "undefined_tool", "invalid_arguments", "denied", "limited")
)
_NOT_TAKEN_IN = ("load_failed", "admission_budget", "not_discoverable", "unknown")


def replayed(
    messages: Iterable[Message],
    catalog: Catalog,
    dynamic: Dynamic,
    principal: Principal,
    view: View = View(),
) -> View:
    """The view of a session of `principal` after `messages`, as far as today's `catalog` has their
    tools; the same as that session's own if the catalogue did not change meanwhile, each batch's
    calls ran in their order, and no round was left out of the transcript. `view` is where it began
    (default: new)."""
    calls: Sequence[ToolCall] = ()
    for message in messages:
        if isinstance(message, User):
            view = view.released(at_turn(view.pool, catalog, dynamic))
        elif isinstance(message, Assistant):
            names = visible(catalog, view, dynamic, principal)
            view = view.sending(names, catalog)
            if dynamic.discovery.evict == "never-in-turn":
                view = view.holding(names)
            calls = message.calls
            if not calls:
                view = _accepted(view, catalog, dynamic)
        else:
            results = {result.call_id: result for result in message.results}
            if not _was_refused(results.values()):
                view = _accepted(view, catalog, dynamic)
                for call in calls:
                    view = _touched(view, call, results.get(call.id), catalog, dynamic)
            calls = ()
    return view


def _accepted(view: View, catalog: Catalog, dynamic: Dynamic) -> View:
    return replace(view, pool=after_round(view.pool, catalog, dynamic), admitted=0)


def _was_refused(results: Iterable[ToolResult]) -> bool:
    """Whether a round took none of the calls: its response was not accepted."""
    kinds = {result.failure.kind if result.failure is not None else "" for result in results}
    return "undefined_tool" in kinds or kinds == {"limited"}


def _touched(
    view: View, call: ToolCall, result: ToolResult | None, catalog: Catalog, dynamic: Dynamic
) -> View:
    if result is None or (result.failure is not None and result.failure.kind in _NEVER_RAN):
        return view
    if call.name != SEARCH_TOOL:
        return replace(view, pool=after_call(view.pool, call.name, catalog, dynamic))
    names = _found(result)
    pool, _ = taking_in(view.pool, names, catalog, dynamic)
    came = sum(1 for name in names if name in pool.tools and name not in view.pool.tools)
    return replace(view, pool=pool, admitted=view.admitted + came)


def _found(result: ToolResult) -> list[str]:
    """The names a search took in, best first, from its data or from the text of it."""
    for part in result.content:
        told = part.value if isinstance(part, DataPart) else None
        if isinstance(part, TextPart):
            try:
                told = json.loads(part.text)
            except ValueError:
                continue  # prose, or an answer that a limit has cut
        if isinstance(told, Mapping):
            return _names_in(cast("Mapping[str, Any]", told))
    return []


def _names_in(told: Mapping[str, Any]) -> list[str]:
    refused = {one.get("name") for one in _objects(told.get("failed")) if _is_final(one)}
    names = [one.get("name") for one in _objects(told.get("hits"))]
    return [name for name in names if isinstance(name, str) and name not in refused]


def _is_final(failed: Mapping[str, Any]) -> bool:
    return failed.get("reason") in _NOT_TAKEN_IN


def _objects(value: object) -> list[Mapping[str, Any]]:
    found = cast("list[object]", value) if isinstance(value, list) else []
    return [cast("Mapping[str, Any]", one) for one in found if isinstance(one, Mapping)]
