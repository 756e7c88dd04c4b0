"""A provider's reply as JSON, and the few things that every provider's reply is asked for.

Takes the official SDK's object (anything with `model_dump`) or its dict; no SDK is imported.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Protocol, TypeAlias

from toolcrib.arguments import decode
from toolcrib.content import ToolCall
from toolcrib.definition import compact_json
from toolcrib.errors import InvalidArguments
from toolcrib.jsonvalue import is_array, is_object
from toolcrib.providers.media import sound
from toolcrib.providers.report import Notes

__all__ = ["Dumps", "Reply", "arguments_object", "as_json", "objects", "received", "text_of"]


class Dumps(Protocol):
    """An SDK's reply: pydantic's way to JSON."""

    def model_dump(self, *, mode: str, by_alias: bool, exclude_none: bool) -> dict[str, Any]: ...


Reply: TypeAlias = Dumps | Mapping[str, Any]


def as_json(reply: Reply) -> dict[str, Any]:
    """`reply` as a JSON object. Raises `TypeError` for neither a mapping nor an SDK's object."""
    if isinstance(reply, Mapping):
        return dict(reply)
    if not hasattr(reply, "model_dump"):
        raise TypeError(f"a reply is an SDK's response or its dict, not {type(reply).__name__!r}")
    return reply.model_dump(mode="json", by_alias=True, exclude_none=True)


def objects(value: Any) -> list[dict[str, Any]]:
    """The objects of a JSON array, None among them left out; empty for anything else."""
    return [_said(each) for each in value if is_object(each)] if is_array(value) else []


def _said(item: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in item.items() if value is not None}


def text_of(parts: Iterable[Mapping[str, Any]]) -> str:
    """The text of those parts that hold some."""
    return "".join(part["text"] for part in parts if isinstance(part.get("text"), str))


def received(arguments: Any) -> str:
    """Arguments as JSON text: text exactly as it was sent, an object as compact JSON, none as
    `{}` (AR03)."""
    if arguments is None:
        return "{}"
    return arguments if isinstance(arguments, str) else compact_json(arguments)


def arguments_object(call: ToolCall, notes: Notes) -> tuple[dict[str, Any], str]:
    """The arguments of a past call as an object and as its JSON text (AR02, AR03).

    None, blank and `null` are `{}`. Text that is no object cannot be sent back as it is: it is
    wrapped, so that the model still sees what it wrote.
    """
    try:
        values, repairs = decode(call.arguments)
    except InvalidArguments:
        notes.add("arguments of a past call that are no object wrapped", call.name, "same")
        values, repairs = {"invalid_arguments": sound(call.arguments)}, ("wrapped",)
    is_kept = not repairs and call.arguments.lstrip().startswith("{")
    return values, call.arguments if is_kept else compact_json(values)
