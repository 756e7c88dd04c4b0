"""What of a result is text, which image can be sent to whom, and a marker for what cannot (RS09).

Never base64 in text, never half an image. Where a provider puts an image is its own module's.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable
from dataclasses import dataclass

from toolcrib.content import AudioPart, DataPart, FilePart, ImagePart, Part, TextPart, ToolResult
from toolcrib.definition import compact_json
from toolcrib.providers.report import Notes

__all__ = [
    "GOOGLE",
    "USUAL",
    "Split",
    "base64_of",
    "data_url",
    "in_order",
    "said",
    "sound",
    "split",
]

USUAL = frozenset(("image/png", "image/jpeg", "image/webp", "image/gif"))
"""The images that OpenAI and Anthropic take (O16, A17)."""
GOOGLE = frozenset(("image/png", "image/jpeg", "image/webp"))
"""The images that Gemini takes in an answer (G13)."""
MAX_IMAGE = 10 * 1024 * 1024
"""Bytes of one image as base64 (A17); the others say nothing."""
MAX_SIDE = 8_000
"""Pixels of a side (A17)."""


@dataclass(frozen=True, slots=True)
class Split:
    """Content in the two kinds every provider knows: text, and images with their true type."""

    text: str
    images: tuple[ImagePart, ...]


def split(content: Iterable[Part], allowed: frozenset[str], notes: Notes, where: str = "") -> Split:
    """`content` as text and images. What cannot be sent leaves a marker in the text."""
    texts: list[str] = []
    images: list[ImagePart] = []
    for part in content:
        if isinstance(part, ImagePart):
            image = ImagePart(part.data, _true_type(part))
            if reason := _unfit(image, allowed):
                notes.add(f"image not sent: {reason}", where, "narrower")
                texts.append(f"[image {image.media_type}, {len(part.data)} bytes: {reason}]")
            else:
                images.append(image)
        else:
            texts.append(_text(part, notes, where))
    return Split(sound("\n".join(text for text in texts if text)), tuple(images))


def in_order(
    content: Iterable[Part], allowed: frozenset[str], notes: Notes
) -> list[str | ImagePart]:
    """`content` piece by piece, for a user's message: text, or an image that can be sent."""
    pieces: list[str | ImagePart] = []
    for part in content:
        found = split((part,), allowed, notes)
        pieces.extend((*((found.text,) if found.text else ()), *found.images))
    return pieces


def said(result: ToolResult, text: str) -> str:
    """The words of a result where a provider has no flag for errors (O17)."""
    return f"Error: {text}" if result.is_error and not text.lower().startswith("error") else text


def _text(part: TextPart | DataPart | FilePart | AudioPart, notes: Notes, where: str) -> str:
    if isinstance(part, TextPart):
        return part.text
    if isinstance(part, DataPart):
        return compact_json(part.value)
    if isinstance(part, FilePart):
        size = "" if part.size is None else f", {part.size} bytes"
        kind = f" ({part.media_type}{size})" if part.media_type or size else ""
        words = f": {part.description}" if part.description else ""
        return f"[file {part.name or part.uri}{kind} at {part.uri}{words}]"
    notes.add("sound not sent", where, "narrower")
    return f"[sound {part.media_type}, {len(part.data)} bytes: not shown]"


def _true_type(image: ImagePart) -> str:
    """The type its bytes show; what was declared where they show none (A17: true to its bytes)."""
    head = image.data[:16]
    if head.startswith(b"\x89PNG\r\n\x1a\n"):
        return "image/png"
    if head.startswith(b"\xff\xd8\xff"):
        return "image/jpeg"
    if head.startswith((b"GIF87a", b"GIF89a")):
        return "image/gif"
    if head[:4] == b"RIFF" and head[8:12] == b"WEBP":
        return "image/webp"
    declared = image.media_type.lower().split(";")[0].strip()
    return "image/jpeg" if declared == "image/jpg" else declared


def _unfit(image: ImagePart, allowed: frozenset[str]) -> str:
    if not image.data:
        return "it is empty"
    if image.media_type not in allowed:
        return "a type that cannot be shown"
    if len(image.data) * 4 // 3 > MAX_IMAGE:
        return "too large to be shown"
    width, height = _sides(image.data)
    return "too many pixels to be shown" if max(width, height) > MAX_SIDE else ""


def _sides(data: bytes) -> tuple[int, int]:
    """Width and height where the header of a PNG or GIF says them; (0, 0) otherwise."""
    if data.startswith(b"\x89PNG") and len(data) >= 24:
        return int.from_bytes(data[16:20]), int.from_bytes(data[20:24])
    if data.startswith(b"GIF8") and len(data) >= 10:
        return int.from_bytes(data[6:8], "little"), int.from_bytes(data[8:10], "little")
    return 0, 0


def base64_of(image: ImagePart) -> str:
    """The image's bytes as base64."""
    return base64.b64encode(image.data).decode("ascii")


def data_url(image: ImagePart) -> str:
    """The image as a data URL (O16)."""
    return f"data:{image.media_type};base64,{base64_of(image)}"


def sound(text: str) -> str:
    """`text` without unpaired surrogates, which no request can carry (RS14)."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-8", "replace").decode()
    return text
