"""A deployment file's text as a frozen tree whose nodes know their line.

YAML 1.2 without what hides or repeats things: no anchors, aliases or tags, no key twice, one
document, bounded in size, depth and number of nodes. Every scalar stays the text that was written;
whether `NO`, `1.10` or `0755` is a word or a number is decided by the field that reads it
(`scalars`).

References (`${env:X}`) are cut out of the text before the YAML parser sees it and are parts of the
scalar afterwards, so neither they nor their values are ever parsed as YAML, and one in a comment
does not exist. A key holds no reference.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeAlias

from toolcrib.interpolate import Reference, references

__all__ = [
    "MAX_BYTES",
    "MAX_DEPTH",
    "MAX_NODES",
    "BadNode",
    "Cuts",
    "Entry",
    "ListNode",
    "MapNode",
    "Node",
    "TextNode",
]

MAX_BYTES = 256 * 1024
"""Of a file, in UTF-8: 3,000 servers, or two seconds of parsing."""

MAX_DEPTH = 32
MAX_NODES = 20_000


@dataclass(frozen=True, slots=True)
class TextNode:
    """A scalar. `parts` are the written text and the references in it, in order."""

    line: int
    parts: tuple[str | Reference, ...] = field(repr=False)
    plain: bool
    """Written without quotes and without a reference: only such a scalar may be more than text."""

    @property
    def written(self) -> str:
        """The text where no reference is; references as messages show them."""
        return "".join(part if isinstance(part, str) else part.shown for part in self.parts)

    @property
    def references(self) -> tuple[Reference, ...]:
        return tuple(part for part in self.parts if isinstance(part, Reference))

    @property
    def from_outside(self) -> bool:
        """Whether a part of its value is not written in the file."""
        return any(reference.literal is None for reference in self.references)

    @property
    def is_null(self) -> bool:
        return self.plain and self.written in ("", "~", "null", "Null", "NULL")


@dataclass(frozen=True, slots=True)
class ListNode:
    line: int
    items: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Entry:
    """One key of a mapping and what it holds; `line` is the key's."""

    key: str
    line: int
    value: Node


@dataclass(frozen=True)
class MapNode:
    line: int
    entries: tuple[Entry, ...] = ()

    @cached_property
    def by_key(self) -> Mapping[str, Entry]:
        return {entry.key: entry for entry in self.entries}


@dataclass(frozen=True, slots=True)
class BadNode:
    """Stands where something was that has been reported already."""

    line: int


Node: TypeAlias = TextNode | ListNode | MapNode | BadNode


class Cuts:
    """A text with its references cut out: `text` is what the YAML parser gets.

    Each is replaced by a marker that means nothing to YAML in any place a scalar may stand, and
    that the file cannot hold by chance or by escapes: it carries the hash of the text it is put in.
    """

    def __init__(self, original: str) -> None:
        digest = hashlib.sha256(original.encode("utf-8", "surrogatepass")).hexdigest()[:16]
        self._marker = re.compile(rf"\${digest}\.(\d+)\$")
        self._original = original
        self._references = tuple(references(original))
        pieces: list[str] = []
        at = 0
        for number, reference in enumerate(self._references):
            pieces += (original[at : reference.start], f"${digest}.{number}$")
            at = reference.end
        self.text = "".join(pieces) + original[at:]

    def parts(self, scalar: str) -> tuple[str | Reference, ...]:
        """A parsed scalar with its references back in place."""
        return tuple(self._parts(scalar))

    def _parts(self, scalar: str) -> Iterator[str | Reference]:
        for number, piece in enumerate(self._marker.split(scalar)):
            if number % 2:
                yield self._references[int(piece)]
            elif piece:
                yield piece

    def fault_on(self, line: int) -> str:
        """What is wrong with a reference that begins on that line of the text, if any is."""
        for reference in self._references:
            if reference.fault and self._original.count("\n", 0, reference.start) + 1 == line:
                return reference.fault
        return ""

    def restored(self, text: str) -> str:
        """`text`, a message say, with every marker as the reference it stands for."""
        return self._marker.sub(lambda found: self._references[int(found[1])].shown, text)
