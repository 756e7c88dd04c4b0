"""What a tool says of itself: the frozen part that models, searches and policies look at.

Not how it runs (`tool.Tool`), not who may use it (`policy.Policy`).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final, Literal, TypeAlias

import orjson

from toolcrib.errors import InvalidDefinition, InvalidSchema
from toolcrib.frozen import NOTHING

__all__ = [
    "NO_PARAMETERS",
    "UNCUT",
    "Annotations",
    "DisplayHint",
    "Example",
    "Format",
    "ToolDefinition",
    "compact_json",
]


NO_PARAMETERS: Mapping[str, Any] = NOTHING
"""Stands for the schema of a tool without parameters."""

WIRE_OVERHEAD = 32
"""Bytes a definition costs on the wire besides its own text, in any provider's format."""


def compact_json(value: Any) -> str:
    """Compact JSON, keys in their own order. Raises `TypeError` for what JSON cannot hold."""
    try:
        return orjson.dumps(value, option=orjson.OPT_PASSTHROUGH_DATACLASS).decode()
    except TypeError:  # orjson stops at 64-bit integers; the standard library does not
        return json.dumps(value, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


@dataclass(frozen=True, slots=True)
class Annotations:
    """What a tool claims about its effects. `None` means it makes no claim (MCP's hints).

    A claim of a foreign server is only a claim: policy decides, never an annotation alone.
    """

    title: str | None = None
    read_only: bool | None = None
    destructive: bool | None = None
    idempotent: bool | None = None
    open_world: bool | None = None


@dataclass(frozen=True, slots=True)
class Format:
    """How much of a tool's result a model gets, and which end of it (guide B; rules B7, B9).

    `max_bytes` of UTF-8 and `max_lines` are hard: the notice and the hint count inside them; a
    number below 1 means the default. `style` names the end that is kept: "tail" as of a terminal,
    "head" as of a file. `recovery_hint` is added where something was cut; `{name}` in it is
    replaced by original_bytes, original_lines, shown_bytes, shown_lines, style, next_offset,
    result_id, or by a note of that name in the result's meta (`with_meta(path=…)`), which wins;
    what is unknown stays as it is. Raises `InvalidDefinition` for another style.
    """

    max_bytes: int = 50_000
    max_lines: int = 2_000
    style: Literal["tail", "head"] = "tail"
    recovery_hint: str = ""

    def __post_init__(self) -> None:
        for name, default in (("max_bytes", 50_000), ("max_lines", 2_000)):
            if getattr(self, name) < 1:
                object.__setattr__(self, name, default)
        if self.style not in ("tail", "head"):
            raise InvalidDefinition(f"format.style is {self.style!r}: use 'tail' or 'head'")


UNCUT: Final = Format(2**62, 2**62)
"""The format of a tool that bounds its results itself."""


@dataclass(frozen=True, slots=True)
class Example:
    """One use of a tool: the arguments, what it gives for them, and why. Sent to no model unless
    the host puts `render_examples` into its prompt (rule guide B)."""

    input: Mapping[str, Any]
    output: Any = None
    explanation: str = ""


DisplayHint: TypeAlias = Callable[[dict[str, Any]], Any]
"""From a call's parsed arguments to what people are shown of it; pure, and never sent (B12)."""


@dataclass(frozen=True)
class ToolDefinition:
    """Name, description and schemas of one tool, as a model will see them.

    `input_schema` and `output_schema` are JSON Schemas (2020-12 unless `$schema` says otherwise);
    they are copied in, so changing the mapping that was handed over changes nothing here, and they
    are not to be changed afterwards. `tags` help the search; `meta` is the host's own; `examples`
    and `display_hint` are for hosts too: neither is ever on the wire. `format` bounds the results.
    Raises `InvalidDefinition` for a blank name and `InvalidSchema` for a schema JSON cannot hold.
    """

    name: str
    description: str = ""
    input_schema: Mapping[str, Any] = NO_PARAMETERS
    output_schema: Mapping[str, Any] | None = None
    annotations: Annotations = Annotations()
    tags: tuple[str, ...] = ()
    meta: Mapping[str, Any] = field(default=NOTHING, repr=False)
    examples: tuple[Example, ...] = field(default=(), repr=False)
    format: Format = field(default=Format(), repr=False)
    display_hint: DisplayHint | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        if not self.name.strip():
            raise InvalidDefinition("a tool needs a name: its definition's name is blank")
        if not self.description.isascii():  # an unpaired surrogate is no text, and no request
            described = self.description.encode("utf-16", "surrogatepass").decode(
                "utf-16", "replace"
            )
            object.__setattr__(self, "description", described)
        for which in ("input_schema", "output_schema"):
            schema = getattr(self, which)
            if schema is not None:
                object.__setattr__(self, which, _copied(self.name, which, schema))

    def __hash__(self) -> int:
        return hash(self.name)

    @property
    def title(self) -> str:
        """The title for people; the name where none was given."""
        return self.annotations.title or self.name

    @cached_property
    def schema_json(self) -> str:
        """The input schema as compact JSON, in the author's key order."""
        return compact_json(self.input_schema)

    @cached_property
    def wire_bytes(self) -> int:
        """Bytes this definition costs in a request: UTF-8 of name, description and compact schema
        JSON, plus 32 (DESIGN §8.6)."""
        text = len(self.name.encode()) + len(self.description.encode())
        return text + len(self.schema_json.encode()) + WIRE_OVERHEAD

    @cached_property
    def fingerprint(self) -> str:
        """sha256 of the canonical (sorted) JSON of everything a model or a policy can see."""
        hints = self.annotations
        canonical = {
            "name": self.name,
            "description": self.description,
            "input_schema": self.input_schema,
            "output_schema": self.output_schema,
            "annotations": [getattr(hints, name) for name in hints.__slots__],
            "tags": self.tags,
        }
        text = json.dumps(canonical, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
        return hashlib.sha256(text.encode()).hexdigest()


def _copied(name: str, which: str, schema: Mapping[str, Any]) -> dict[str, Any]:
    try:
        text = compact_json(dict(schema))
        text.encode()
        copy: dict[str, Any] = json.loads(text)
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidSchema(f"tool {name!r}: its {which} is not JSON: {error}") from error
    return copy or {"type": "object", "properties": {}}
