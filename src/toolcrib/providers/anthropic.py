"""Anthropic's messages API (rules A1–A22): tools, calls, results, histories.

Translation only. With `deferred`, tools are sent with `defer_loading` and our own search answers
with references to them (A7, A10): the model finds tools without the prompt's prefix changing.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence, Set
from typing import Any

from toolcrib.content import ImagePart, ToolCall, ToolResult
from toolcrib.definition import ToolDefinition, compact_json
from toolcrib.discovery.search_tool import Found
from toolcrib.errors import InvalidDefinition
from toolcrib.jsonvalue import is_object
from toolcrib.providers.cache import Cache
from toolcrib.providers.history import Assistant, History, User
from toolcrib.providers.keys import given_keys, long_keys, with_sent_keys
from toolcrib.providers.media import USUAL, base64_of, in_order, sound, split
from toolcrib.providers.naming import legal_name, restored, sent_name, unique
from toolcrib.providers.pairing import Answered, IdRule, Step, loose, paired
from toolcrib.providers.reading import Reply, arguments_object, as_json, objects, received, text_of
from toolcrib.providers.report import Export, Notes
from toolcrib.providers.roots import flat_root, with_items
from toolcrib.providers.schemas import modern

__all__ = ["calls", "export", "messages", "reply", "results", "tools", "write"]

IDS = IdRule(64, is_plain=True)
PROVIDER = "anthropic"
_cache = Cache()


def export(
    definitions: Iterable[ToolDefinition], *, deferred: Iterable[ToolDefinition] = ()
) -> Export:
    """`definitions` as tools, in their order, then `deferred` (those not among them) with
    `defer_loading`; and what had to be changed.

    Raises `InvalidDefinition` for two tools of one name, and for deferred tools only (A7).
    """
    notes = Notes()
    late = list(deferred)
    late_names = {definition.name for definition in late}
    now = [d for d in unique(definitions) if d.name not in late_names]
    if late and not now:
        raise InvalidDefinition("every tool is deferred: at least the search tool must be sent")
    items = [_cache.get(d, "tool", _tool, notes) for d in now]
    items += [{**_cache.get(d, "tool", _tool, notes), "defer_loading": True} for d in unique(late)]
    return Export(items, notes.all())


def tools(
    definitions: Iterable[ToolDefinition], *, deferred: Iterable[ToolDefinition] = ()
) -> list[dict[str, Any]]:
    """The tools of `export`; the same bytes for the same definitions, every time."""
    return export(definitions, deferred=deferred).tools


def _tool(definition: ToolDefinition, notes: Notes) -> dict[str, Any]:
    flat = flat_root(modern(definition.input_schema, notes), notes)
    words = {"description": definition.description} if definition.description else {}
    schema = with_sent_keys(with_items(flat, notes), notes)
    return {"name": sent_name(definition, notes), **words, "input_schema": schema}


def calls(reply: Reply, definitions: Iterable[ToolDefinition] = ()) -> list[ToolCall]:
    """The calls of a message, in order: the SDK's object or its dict.

    Argument names that were mapped come back; with the `definitions` that were sent, mapped tool
    names and shortened argument names too.
    """
    found = _assistant(as_json(reply)).calls
    return restored(found, definitions, _undo)


def _undo(values: dict[str, Any], definition: ToolDefinition) -> dict[str, Any]:
    notes = Notes()
    return long_keys(values, flat_root(modern(definition.input_schema, notes), notes)["properties"])


def reply(reply: Reply) -> Assistant:
    """A message of the model as a message of a history; its blocks are kept whole (A11)."""
    return _assistant(as_json(reply))


def _assistant(said: dict[str, Any]) -> Assistant:
    content = said.get("content")
    blocks = objects(content)
    text = content if isinstance(content, str) else text_of(blocks)
    found = tuple(
        ToolCall(str(b.get("id") or ""), str(b.get("name") or ""), _arguments(b.get("input")))
        for b in blocks
        if b.get("type") == "tool_use"
    )
    return Assistant(text, found, PROVIDER, compact_json(blocks) if blocks else "")


def _arguments(given: Any) -> str:
    return received(given_keys(given) if is_object(given) else given)


def results(
    results: Sequence[ToolResult],
    calls: Sequence[ToolCall] = (),
    *,
    deferred: Iterable[ToolDefinition] = (),
) -> list[dict[str, Any]]:
    """The one user message that answers the reply just received (A13).

    Images stand in their result; an error is flagged and holds text only (A16). `deferred` as in
    `export`: the search's answer is references to what it exposed.
    """
    notes = Notes()
    step = loose(tuple(results), tuple(calls), IDS)
    return _write([step], {d.name for d in deferred}, notes)


def write(history: History, *, deferred: Iterable[ToolDefinition] = ()) -> Export:
    """A whole history as messages, and what was changed."""
    notes = Notes()
    steps = paired(history, IDS, notes)
    return Export(_write(steps, {d.name for d in deferred}, notes), notes.all())


def messages(history: History, *, deferred: Iterable[ToolDefinition] = ()) -> list[dict[str, Any]]:
    """The messages of `write`."""
    return write(history, deferred=deferred).messages


def _write(steps: Iterable[Step], deferred: Set[str], notes: Notes) -> list[dict[str, Any]]:
    """`steps` as messages, neighbours of one role in one: results come first in a user's (A14)."""
    found: list[dict[str, Any]] = []
    for step in steps:
        if isinstance(step, User):
            role, blocks = "user", [_block(p) for p in in_order(step.content, USUAL, notes)]
        elif isinstance(step, Assistant):
            role, blocks = "assistant", _replayed(step) or _said(step, notes)
        else:
            role, blocks = "user", _answers(step, deferred, notes)
        if blocks and found and found[-1]["role"] == role:
            found[-1]["content"] += blocks
        elif blocks:
            found.append({"role": role, "content": blocks})
    return found


def _block(piece: str | ImagePart) -> dict[str, Any]:
    if isinstance(piece, str):
        return {"type": "text", "text": piece}
    source = {"type": "base64", "media_type": piece.media_type, "data": base64_of(piece)}
    return {"type": "image", "source": source}


def _replayed(step: Assistant) -> list[dict[str, Any]]:
    if step.provider != PROVIDER or not step.raw:
        return []
    blocks: list[dict[str, Any]] = json.loads(step.raw)
    return [b for b in blocks if b.get("type") != "text" or b.get("text")]


def _said(step: Assistant, notes: Notes) -> list[dict[str, Any]]:
    texts = [{"type": "text", "text": sound(step.text)}] if step.text.strip() else []
    uses = [
        {
            "type": "tool_use",
            "id": call.id,
            "name": legal_name(call.name),
            "input": arguments_object(call, notes)[0],
        }
        for call in step.calls
    ]
    return [*texts, *uses]


def _answers(step: Answered, deferred: Set[str], notes: Notes) -> list[dict[str, Any]]:
    return [_answer(call, result, deferred, notes) for call, result in step.pairs]


def _answer(call: ToolCall, result: ToolResult, deferred: Set[str], notes: Notes) -> dict[str, Any]:
    block: dict[str, Any] = {"type": "tool_result", "tool_use_id": call.id}
    if isinstance(found := result.value, Found) and not result.is_error:
        references = [name for name in found.exposed if name in deferred]
        if references:
            named = [{"type": "tool_reference", "tool_name": legal_name(n)} for n in references]
            return {**block, "content": named}
    parts = split(result.content, USUAL, notes, call.id)
    if result.is_error:
        if parts.images:
            notes.add("image of a failed result left out", call.id, "narrower")
        left = "\n[its images are not shown]" if parts.images else ""
        return {**block, "content": (parts.text or "failed") + left, "is_error": True}
    if not parts.images:
        return {**block, "content": parts.text} if parts.text.strip() else block
    texts = [{"type": "text", "text": parts.text}] if parts.text.strip() else []
    return {**block, "content": [*texts, *map(_block, parts.images)]}
