"""From whatever a tool returned to a result a model can read.

JSON of anything reasonable, strict and deterministic (`jsonable` says what becomes what); what
cannot be written is an error at the call, which names the tool. Cutting is `format`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, cast

from toolcrib.content import (
    AudioPart,
    DataPart,
    Failure,
    FilePart,
    ImagePart,
    Part,
    TextPart,
    ToolResult,
)
from toolcrib.jsonable import REPLACED, NotJson, clean, json_text, jsonable

__all__ = ["RENDERED", "structured", "to_result"]

_PARTS = (TextPart, ImagePart, AudioPart, FilePart, DataPart)

RENDERED = "for_model"
"""Stands in the meta of a result whose value has rendered itself for the model: it is not formatted
again (rule B6)."""


def to_result(name: str, value: Any) -> ToolResult:
    """The result that `value`, returned by the tool `name`, stands for.

    A `ToolResult` is itself; a string, or bytes, is text as it is; a content part or a list that
    holds one is content; a value with a method `for_model()` is what that gives; anything else
    becomes JSON text. The value stays reachable as `.value`. What had to be replaced on the way is
    noted in `meta["notes"]`. What JSON cannot hold gives the failure `invalid_output` (RS01).
    """
    if type(value) is str:
        text = value if value.isascii() else clean(value)
        if text is value:
            return ToolResult((TextPart(text),), None, value)
        return ToolResult((TextPart(text),), None, value, "", {"notes": (REPLACED,)})
    if type(value) is int:
        return ToolResult((TextPart(repr(value)),), None, value)
    try:
        if isinstance(value, ToolResult):
            return _sound(value)
        return _other(name, value)
    except NotJson as error:
        return ToolResult.failed(
            "invalid_output",
            f"tool {name!r} returned what cannot be written as JSON ({error}); the call itself did"
            " run",
        )


def _other(name: str, value: object) -> ToolResult:
    kind = type(value)
    if kind is not dict and kind is not list and (render := getattr(kind, "for_model", None)):
        said = to_result(name, render(value))
        return replace(said, value=value, meta={**said.meta, RENDERED: True})
    if isinstance(value, str | bytes | bytearray | memoryview):
        text, notes = jsonable(value)
        return _noted(ToolResult((TextPart(text),), None, value), notes)
    if (parts := _as_parts(value)) is not None:
        return _sound(ToolResult(parts, None, value))
    text, notes = json_text(value)
    return _noted(ToolResult((TextPart(text),), None, value), notes)


def _noted(result: ToolResult, notes: tuple[str, ...]) -> ToolResult:
    if not notes:
        return result
    before: tuple[str, ...] = tuple(result.meta.get("notes", ()))
    return result.with_meta(notes=tuple(dict.fromkeys((*before, *notes))))


def _as_parts(value: object) -> tuple[Part, ...] | None:
    """The content that a part stands for, or a list with at least one: its strings are text, the
    rest is data."""
    if isinstance(value, _PARTS):
        return (value,)
    if not isinstance(value, list | tuple):
        return None
    items = cast("Sequence[object]", value)
    if not any(isinstance(item, _PARTS) for item in items):
        return None
    return tuple(
        item
        if isinstance(item, _PARTS)
        else TextPart(item)
        if isinstance(item, str)
        else DataPart(item)
        for item in items
    )


def _sound(result: ToolResult) -> ToolResult:
    """`result` with text that is text and data that is JSON; the same object where it is."""
    notes: dict[str, None] = {}
    content = tuple(_sound_part(part, notes) for part in result.content)
    failure = result.failure
    if failure is not None and (message := clean(failure.message)) is not failure.message:
        notes[REPLACED] = None
        failure = Failure(failure.kind, message, failure.reference)
    if all(new is old for new, old in zip(content, result.content, strict=True)) and not notes:
        return result
    return _noted(replace(result, content=content, failure=failure), tuple(notes))


def _sound_part(part: Part, notes: dict[str, None]) -> Part:
    if isinstance(part, TextPart):
        text = clean(part.text)
        if text is part.text:
            return part
        notes[REPLACED] = None
        return TextPart(text)
    if isinstance(part, DataPart):
        value, found = jsonable(part.value)
        notes.update(dict.fromkeys(found))
        return part if value is part.value else DataPart(value)
    if isinstance(part, FilePart):
        words = (part.uri, part.name, part.media_type, part.description)
        if "".join(words).isascii():
            return part
        uri, name, media_type, description = map(clean, words)
        return FilePart(uri, name, media_type, description, part.size)
    return part


def structured(result: ToolResult) -> Any:
    """The plain JSON value of `result.value`: what a program or a client with an output schema
    gets. None where there is none, or none that JSON can hold."""
    try:
        return jsonable(result.value)[0]
    except NotJson:
        return None
