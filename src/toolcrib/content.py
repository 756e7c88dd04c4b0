"""What a call gives back: typed parts, and a failure that is a value.

Nothing here cuts, formats or sends anything; that is `middleware`, `executor` and `providers`.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeAlias

from toolcrib.definition import compact_json
from toolcrib.frozen import NOTHING

__all__ = [
    "AudioPart",
    "DataPart",
    "Failure",
    "FailureKind",
    "FilePart",
    "ImagePart",
    "Part",
    "TextPart",
    "ToolCall",
    "ToolResult",
]

FailureKind: TypeAlias = Literal[
    "not_found",
    "undefined_tool",
    "invalid_arguments",
    "denied",
    "limited",
    "timeout",
    "cancelled",
    "not_available",
    "outcome_unknown",
    "tool_error",
    "invalid_output",
    "internal",
]
"""Why a call failed. `outcome_unknown`: it was sent, its answer was lost, it may have happened."""


@dataclass(frozen=True, slots=True)
class TextPart:
    """Text for the model."""

    text: str

    def to_json(self) -> dict[str, Any]:
        return {"type": "text", "text": self.text}


@dataclass(frozen=True, slots=True)
class ImagePart:
    """An image's raw bytes (not base64) and its media type, e.g. `image/png`."""

    data: bytes = field(repr=False)
    media_type: str

    def to_json(self) -> dict[str, Any]:
        return {"type": "image", "media_type": self.media_type, "data": _base64(self.data)}


@dataclass(frozen=True, slots=True)
class AudioPart:
    """A sound's raw bytes (not base64) and its media type, e.g. `audio/wav`."""

    data: bytes = field(repr=False)
    media_type: str

    def to_json(self) -> dict[str, Any]:
        return {"type": "audio", "media_type": self.media_type, "data": _base64(self.data)}


@dataclass(frozen=True, slots=True)
class FilePart:
    """A reference to a file or resource: where it is, not its bytes. `size` is in bytes."""

    uri: str
    name: str = ""
    media_type: str = ""
    description: str = ""
    size: int | None = None

    def to_json(self) -> dict[str, Any]:
        rest = {"name": self.name, "media_type": self.media_type, "description": self.description}
        given = {key: value for key, value in rest.items() if value}
        size = {} if self.size is None else {"size": self.size}
        return {"type": "file", "uri": self.uri, **given, **size}


@dataclass(frozen=True, slots=True)
class DataPart:
    """Structured data: any JSON value. `str()` of a result renders it as compact JSON."""

    value: Any

    def to_json(self) -> dict[str, Any]:
        return {"type": "data", "value": self.value}


Part: TypeAlias = TextPart | ImagePart | AudioPart | FilePart | DataPart


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a call failed. `message` is written for the model. `reference` is the short id under
    which the log holds what the model must not see (only for `internal`)."""

    kind: FailureKind
    message: str
    reference: str = ""


@dataclass(frozen=True, slots=True, init=False)
class ToolResult:
    """What one call gave back.

    `content` is what the model gets, in order. `failure` is set for a failed call and then
    `content` holds its message, after whatever partial result there was. `value` is the tool's own
    return value (or a remote tool's structured content) for programs; it never reaches a model.
    `meta` holds the program's notes, e.g. `repairs` made to the arguments. `call_id` is the call's.
    """

    content: tuple[Part, ...] = ()
    failure: Failure | None = None
    value: Any = field(default=None, repr=False)
    call_id: str = ""
    meta: Mapping[str, Any] = field(default=NOTHING, repr=False)

    def __init__(
        self,
        content: tuple[Part, ...] = (),
        failure: Failure | None = None,
        value: Any = None,
        call_id: str = "",
        meta: Mapping[str, Any] = NOTHING,
    ) -> None:
        # Two of these are made per call; a frozen dataclass's own __init__ takes thrice as long.
        _set_content(self, content)
        _set_failure(self, failure)
        _set_value(self, value)
        _set_call_id(self, call_id)
        _set_meta(self, meta)

    @classmethod
    def ok(cls, text: str, value: Any = None) -> ToolResult:
        """A success of one text part."""
        return cls((TextPart(text),), None, value)

    @classmethod
    def failed(
        cls,
        kind: FailureKind,
        message: str,
        *,
        partial: Iterable[Part] = (),
        reference: str = "",
        value: Any = None,
    ) -> ToolResult:
        """A failure that tells the model `message`, after any `partial` content."""
        return cls((*partial, TextPart(message)), Failure(kind, message, reference), value)

    @property
    def is_error(self) -> bool:
        """Whether the call failed."""
        return self.failure is not None

    @property
    def text(self) -> str:
        """The text of the text and data parts, a line break between two of them."""
        content = self.content
        if len(content) == 1 and type(content[0]) is TextPart:
            return content[0].text
        return "\n".join(
            part.text if isinstance(part, TextPart) else compact_json(part.value)
            for part in content
            if isinstance(part, TextPart | DataPart)
        )

    @property
    def markdown(self) -> str:
        """For displays, never for a model: what the value's own `markdown()` says; JSON indented
        in a fence; otherwise, and of a failure always, the text (rule B11)."""
        if self.failure is not None:
            return self.text
        value: object = self.value
        render = getattr(type(value), "markdown", None)
        if callable(render):
            return str(render(value))
        return self.text if isinstance(value, str) else _fenced(self.text)

    def __str__(self) -> str:
        return self.text

    def to_json(self) -> dict[str, Any]:
        """A JSON object: call_id, is_error, failure (kind, message, reference), content parts."""
        failure = self.failure
        said = (
            {}
            if failure is None
            else {
                "failure": {
                    "kind": failure.kind,
                    "message": failure.message,
                    "reference": failure.reference,
                }
            }
        )
        parts = [part.to_json() for part in self.content]
        return {"call_id": self.call_id, "is_error": self.is_error, **said, "content": parts}

    def with_meta(self, **notes: Any) -> ToolResult:
        """The same result with more notes."""
        return replace(self, meta={**self.meta, **notes})


def _setter(name: str) -> Callable[[ToolResult, object], None]:
    set_slot: Callable[[ToolResult, object], None] = vars(ToolResult)[name].__set__
    return set_slot


_set_content, _set_failure = _setter("content"), _setter("failure")
_set_value, _set_call_id, _set_meta = _setter("value"), _setter("call_id"), _setter("meta")


@dataclass(frozen=True, slots=True)
class ToolCall:
    """One call as a model asked for it: `arguments` is the JSON text exactly as received."""

    id: str
    name: str
    arguments: str = "{}"


def _fenced(text: str) -> str:
    """A JSON object or array indented in a code fence; any other text as it is."""
    if text[:1] not in ("{", "["):
        return text
    try:
        indented = json.dumps(json.loads(text), indent=2, ensure_ascii=False)
    except (ValueError, RecursionError):  # it only looks like JSON
        return text
    fence = "```" if "```" not in indented else "````"
    return f"{fence}json\n{indented}\n{fence}"


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")
