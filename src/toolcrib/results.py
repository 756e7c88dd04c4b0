"""From whatever a tool returned to a result a model can read.

JSON of anything reasonable, strict and deterministic; what cannot be written is an error at the
call, which names the tool. Cutting is not done here.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import pydantic_core

from toolcrib.content import (
    AudioPart,
    DataPart,
    FilePart,
    ImagePart,
    Part,
    TextPart,
    ToolResult,
)

__all__ = ["json_text", "to_result"]

_PARTS = (TextPart, ImagePart, AudioPart, FilePart, DataPart)
_to_json = pydantic_core.to_json


def to_result(name: str, value: Any) -> ToolResult:
    """The result that `value`, returned by the tool `name`, stands for.

    A `ToolResult` is itself; a string is text as it is; a content part or a non-empty list of them
    is content; anything else becomes JSON text, and the value stays reachable as `.value`. What
    JSON cannot hold gives the failure `invalid_output`.
    """
    if type(value) is str:
        return ToolResult((TextPart(_clean(value)),), None, value)
    if type(value) is int:
        return ToolResult((TextPart(repr(value)),), None, value)
    if isinstance(value, ToolResult):
        return value
    if isinstance(value, _PARTS):
        return ToolResult((value,), None, value)
    if (parts := _as_parts(value)) is not None:
        return ToolResult(parts, None, value)
    kind = type(value).__name__
    try:
        return ToolResult((TextPart(json_text(value)),), None, value)
    except (ValueError, TypeError, RecursionError) as error:
        return ToolResult.failed(
            "invalid_output",
            f"tool {name!r} returned a value of type {kind!r} that cannot be written as JSON"
            f" ({str(error).splitlines()[0][:200]}); the call itself did run",
        )


def _as_parts(value: object) -> tuple[Part, ...] | None:
    if not isinstance(value, list | tuple) or not value:
        return None
    items = cast("Sequence[object]", value)
    return (
        cast("tuple[Part, ...]", tuple(items))
        if all(isinstance(v, _PARTS) for v in items)
        else None
    )


def json_text(value: Any) -> str:
    """Strict JSON of `value`; NaN and infinities become the strings "NaN", "Infinity", "-Infinity".

    Raises `ValueError` or `TypeError` for what cannot be written.
    """
    return _to_json(_ordered(value), inf_nan_mode="strings").decode()


def _ordered(value: Any) -> Any:
    """Sets in a stable order: their own depends on the process."""
    if isinstance(value, set | frozenset):
        return sorted((_ordered(item) for item in cast("set[Any]", value)), key=_sort_key)
    if type(value) is dict:
        return {key: _ordered(item) for key, item in cast("dict[object, Any]", value).items()}
    if isinstance(value, list | tuple):
        return [_ordered(item) for item in cast("Sequence[Any]", value)]
    return value


def _sort_key(item: Any) -> tuple[str, Any]:
    return ("", item) if isinstance(item, int | float) else (type(item).__name__, repr(item))


def _clean(text: str) -> str:
    """Unpaired surrogates replaced: they are no text, and crash whoever encodes them."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text
