"""Items of OpenAI's responses API, both ways (O12–O24), and its client-executed tool search."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from toolcrib.content import ImagePart, ToolCall, ToolResult
from toolcrib.definition import compact_json
from toolcrib.discovery.policy import SEARCH_TOOL
from toolcrib.discovery.search_tool import Found
from toolcrib.providers.history import Assistant, User
from toolcrib.providers.media import USUAL, data_url, in_order, said, sound, split
from toolcrib.providers.naming import legal_name
from toolcrib.providers.pairing import Answered, IdRule, Step
from toolcrib.providers.reading import arguments_object, objects, received, text_of
from toolcrib.providers.report import Notes

__all__ = ["IDS", "assistant", "search_spec", "write"]

IDS = IdRule(64)
PROVIDER = "openai.responses"
_SEARCH_CALL = "tool_search_call"


def search_spec(function: Mapping[str, Any]) -> dict[str, Any]:
    """Our search tool as the API's own, executed by us (O22)."""
    return {
        "type": "tool_search",
        "execution": "client",
        "description": function.get("description") or "Find tools for a task.",
        "parameters": function["parameters"],
    }


def assistant(reply: dict[str, Any]) -> Assistant:
    """What a response says; its items are kept whole, reasoning included (O24)."""
    items = objects(reply.get("output"))
    calls: list[ToolCall] = []
    texts: list[str] = []
    for item in items:
        call_id, kind = str(item.get("call_id") or ""), item.get("type")
        if kind == "function_call":
            calls.append(ToolCall(call_id, item.get("name", ""), received(item.get("arguments"))))
        elif kind == _SEARCH_CALL and call_id and item.get("execution") != "server":
            calls.append(ToolCall(call_id, SEARCH_TOOL, received(item.get("arguments"))))
        elif kind == "message":
            texts.append(text_of(objects(item.get("content"))))
    return Assistant("\n".join(texts), tuple(calls), PROVIDER, compact_json(items))


def write(
    steps: Iterable[Step], notes: Notes, loadable: Mapping[str, dict[str, Any]]
) -> list[dict[str, Any]]:
    """`steps` as input items; `loadable` are the deferred tools by name."""
    items: list[dict[str, Any]] = []
    searches = {""}  # ids of calls of the API's own search
    for step in steps:
        if isinstance(step, User):
            items += _user(in_order(step.content, USUAL, notes))
        elif isinstance(step, Assistant):
            written = _replayed(step, notes) or _assistant(step, bool(loadable), notes)
            searches |= {item["call_id"] for item in written if item.get("type") == _SEARCH_CALL}
            items += written
        else:
            is_loose = not items  # results of the reply just received: no call is written here
            items += _answers(step, searches, is_loose and bool(loadable), loadable, notes)
    return items


def _user(pieces: Sequence[str | ImagePart]) -> list[dict[str, Any]]:
    content = [_part(piece) for piece in pieces]
    return [{"role": "user", "content": content}] if content else []


def _part(piece: str | ImagePart) -> dict[str, Any]:
    if isinstance(piece, str):
        return {"type": "input_text", "text": piece}
    return {"type": "input_image", "image_url": data_url(piece), "detail": "auto"}


def _replayed(step: Assistant, notes: Notes) -> list[dict[str, Any]]:
    """The provider's own items, whole; only arguments that are no object are put right (AR02)."""
    if step.provider != PROVIDER or not step.raw:
        return []
    items: list[dict[str, Any]] = json.loads(step.raw)
    for item in items:
        if item.get("type") == "function_call":
            call = ToolCall("", item.get("name", ""), received(item.get("arguments")))
            item["arguments"] = arguments_object(call, notes)[1]
        elif item.get("type") == _SEARCH_CALL:
            item.setdefault("call_id", None)
    return items


def _assistant(step: Assistant, native: bool, notes: Notes) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = []
    if step.text:
        items.append({"role": "assistant", "content": sound(step.text)})
    for call in step.calls:
        values, text = arguments_object(call, notes)
        if native and call.name == SEARCH_TOOL:
            items.append(
                {
                    "type": _SEARCH_CALL,
                    "call_id": call.id,
                    "execution": "client",
                    "arguments": values,
                    "status": "completed",
                }
            )
        else:
            name = legal_name(call.name)
            named = {"type": "function_call", "call_id": call.id, "name": name}
            items.append({**named, "arguments": sound(text)})
    return items


def _answers(
    step: Answered,
    searches: set[str],
    all_native: bool,
    loadable: Mapping[str, dict[str, Any]],
    notes: Notes,
) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = []
    for call, result in step.pairs:
        if call.id in searches or (all_native and call.name == SEARCH_TOOL):
            items.append(_loaded(call, result, loadable, notes))
        else:
            output = _output(call, result, notes)
            items.append({"type": "function_call_output", "call_id": call.id, "output": output})
    return items


def _output(call: ToolCall, result: ToolResult, notes: Notes) -> str | list[dict[str, Any]]:
    found = split(result.content, USUAL, notes, call.id)
    text = said(result, found.text)
    if not found.images:
        return text
    return [_part(piece) for piece in (*((text,) if text else ()), *found.images)]


def _loaded(
    call: ToolCall, result: ToolResult, loadable: Mapping[str, dict[str, Any]], notes: Notes
) -> dict[str, Any]:
    """A search's answer: the whole definitions of what it exposed. It has no place for words."""
    found = result.value
    names = found.exposed if isinstance(found, Found) and not result.is_error else ()
    if not names:
        notes.add("words of a search that loaded nothing", call.id, "narrower")
    loaded = [loadable[name] for name in names if name in loadable]
    return {
        "type": "tool_search_output",
        "call_id": call.id,
        "execution": "client",
        "status": "completed",
        "tools": loaded,
    }
