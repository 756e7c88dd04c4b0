"""From the wire form of a call's answer to content parts.

Pure. Nothing is dropped: what has no part of its own becomes a data part of its wire form (A11.6).
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from typing import Any

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
from toolcrib.definition import compact_json
from toolcrib.sources.mcp.content.shapes import list_of, object_of, text_of

__all__ = ["part_of", "result_of"]


def result_of(tool: str, wire: Mapping[str, Any]) -> ToolResult:
    """The result that the answer `wire` to a call of the server's `tool` stands for.

    An answer with `isError` is the failure `tool_error` whose message is its text, whatever
    structured content comes with it (RS06); the parts stay. `value` is the structured content.
    """
    items = list_of(wire.get("content"))
    parts = tuple(part for item in items if (part := part_of(item)) is not None)
    value = wire.get("structuredContent")
    if not parts and value is not None:
        parts = (_structured(value),)
    if wire.get("isError") is True:
        return _failed(tool, parts, value)
    return ToolResult(parts or (TextPart(""),), None, value)


def _structured(value: object) -> Part:
    return DataPart(value) if isinstance(value, dict) else TextPart(compact_json(value))


def _failed(tool: str, parts: tuple[Part, ...], value: object) -> ToolResult:
    text = ToolResult(parts).text
    if text:
        return ToolResult(parts, Failure("tool_error", text), value)
    said = f"mcp tool {tool!r} reported an error with no detail"
    return ToolResult.failed("tool_error", said, partial=parts, value=value)


def part_of(item: object) -> Part | None:
    """The part for one content block; None for an empty text."""
    block = object_of(item)
    kind = block.get("type")
    found: Part | None = None
    if kind == "text" and isinstance(text := block.get("text"), str):
        return TextPart(text) if text else None
    if kind in ("image", "audio"):
        found = _media(block.get("data"), block.get("mimeType"), kind)
    elif kind == "resource_link":
        found = _link(block)
    elif kind == "resource":
        resource = object_of(block.get("resource"))
        if isinstance(text := resource.get("text"), str):
            return TextPart(text) if text else None
        found = _media(resource.get("blob"), resource.get("mimeType"))
    return DataPart(item) if found is None else found


def _media(data: object, media_type: object, kind: str = "") -> Part | None:
    """Bytes as an image or sound; `kind` says which where the block does, else the media type."""
    if not isinstance(data, str) or not isinstance(media_type, str) or not media_type:
        return None
    kind = kind or media_type.partition("/")[0].lower()
    if kind not in ("image", "audio"):
        return None
    try:
        raw = base64.b64decode("".join(data.split()), validate=True)
    except (binascii.Error, ValueError):
        return None
    return ImagePart(raw, media_type) if kind == "image" else AudioPart(raw, media_type)


def _link(block: Mapping[str, Any]) -> Part | None:
    uri, size = block.get("uri"), block.get("size")
    if not isinstance(uri, str) or not uri:
        return None
    name, media_type, description = (
        text_of(block.get(key)) for key in ("name", "mimeType", "description")
    )
    whole = size if isinstance(size, int) and not isinstance(size, bool) else None
    return FilePart(uri, name, media_type, description, whole)
