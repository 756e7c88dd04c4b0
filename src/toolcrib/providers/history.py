"""A conversation in nobody's format: what crosses from one provider to another.

Frozen values only; how each provider writes them is its own module's. The system prompt is not
here: every provider takes it beside the messages.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TypeAlias

from toolcrib.content import Part, TextPart, ToolCall, ToolResult

__all__ = ["Answers", "Assistant", "History", "Message", "User"]


@dataclass(frozen=True, slots=True)
class User:
    """What a user said: text, images, files."""

    content: tuple[Part, ...]

    @classmethod
    def of(cls, text: str) -> User:
        """A message of one text."""
        return cls((TextPart(text),))


@dataclass(frozen=True, slots=True)
class Assistant:
    """What a model said and asked for.

    `raw` is the JSON text of the provider's own content, `provider` whose it is: sent back to the
    same provider it is replayed whole (reasoning, signatures: O24, A11, G12); others get `text` and
    `calls`.
    """

    text: str = ""
    calls: tuple[ToolCall, ...] = ()
    provider: str = ""
    raw: str = field(default="", repr=False)


@dataclass(frozen=True, slots=True)
class Answers:
    """The results of the calls just before, each with its `call_id`; in any order."""

    results: tuple[ToolResult, ...]


Message: TypeAlias = User | Assistant | Answers
History: TypeAlias = Iterable[Message]
