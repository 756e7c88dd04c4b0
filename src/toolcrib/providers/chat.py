"""Messages of OpenAI's chat completions, both ways (O12–O16)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from toolcrib.content import ImagePart, ToolCall
from toolcrib.jsonvalue import is_array, is_object
from toolcrib.providers.history import Assistant, User
from toolcrib.providers.media import USUAL, data_url, in_order, said, sound, split
from toolcrib.providers.naming import legal_name
from toolcrib.providers.pairing import Answered, IdRule, Step
from toolcrib.providers.reading import arguments_object, objects, received, text_of
from toolcrib.providers.report import Notes

__all__ = ["IDS", "assistant", "write"]

IDS = IdRule(40)


def assistant(reply: dict[str, Any]) -> Assistant:
    """What the first choice of a completion says; a message alone is taken too."""
    choices = objects(reply.get("choices"))
    message = choices[0].get("message") if choices else reply
    if not is_object(message):
        return Assistant()
    content = message.get("content")
    text = text_of(objects(content)) if is_array(content) else content
    calls = tuple(
        ToolCall(str(call.get("id") or ""), function["name"], received(function.get("arguments")))
        for call in objects(message.get("tool_calls"))
        if is_object(function := call.get("function")) and isinstance(function.get("name"), str)
    )
    return Assistant(text if isinstance(text, str) else "", calls)


def write(steps: Iterable[Step], notes: Notes) -> list[dict[str, Any]]:
    """`steps` as messages."""
    messages: list[dict[str, Any]] = []
    for step in steps:
        if isinstance(step, User):
            messages += _user(in_order(step.content, USUAL, notes))
        elif isinstance(step, Assistant):
            messages += _assistant(step, notes)
        else:
            messages += _answers(step, notes)
    return messages


def _user(pieces: Sequence[str | ImagePart]) -> list[dict[str, Any]]:
    if not pieces:
        return []
    texts = [piece for piece in pieces if isinstance(piece, str)]
    if len(texts) == len(pieces):
        return [{"role": "user", "content": "\n".join(texts)}]
    return [{"role": "user", "content": [_part(piece) for piece in pieces]}]


def _part(piece: str | ImagePart) -> dict[str, Any]:
    if isinstance(piece, str):
        return {"type": "text", "text": piece}
    return {"type": "image_url", "image_url": {"url": data_url(piece)}}


def _assistant(step: Assistant, notes: Notes) -> list[dict[str, Any]]:
    calls = [_call(call, notes) for call in step.calls]
    if not calls:  # content may be null only beside calls
        return [{"role": "assistant", "content": sound(step.text)}] if step.text else []
    return [{"role": "assistant", "content": sound(step.text) or None, "tool_calls": calls}]


def _call(call: ToolCall, notes: Notes) -> dict[str, Any]:
    function = {"name": legal_name(call.name), "arguments": sound(arguments_object(call, notes)[1])}
    return {"id": call.id, "type": "function", "function": function}


def _answers(step: Answered, notes: Notes) -> list[dict[str, Any]]:
    """One tool message for each call, and then the images of all of them in one user message: a
    tool message holds text only (O15)."""
    messages: list[dict[str, Any]] = []
    shown: list[str | ImagePart] = []
    for call, result in step.pairs:
        found = split(result.content, USUAL, notes, call.id)
        text = said(result, found.text)
        if found.images:
            label = f"{call.name or 'the tool'} ({call.id})"
            shown += [f"Images of {label}:", *found.images]
            notes.add("image of a result in a user message", call.id, "same")
            text = "\n".join(filter(None, (text, "[images in the next message]")))
        messages.append({"role": "tool", "tool_call_id": call.id, "content": text})
    return messages + _user(shown)
