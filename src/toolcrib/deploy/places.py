"""A place in the file: what stands there, and where its faults are noted.

Faults are collected while a file is decoded; `Rejected` only ends the decoding of one place. No
message shows a value that came from outside the file.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NoReturn

from toolcrib.deploy.document import BadNode, Entry, ListNode, MapNode, Node, TextNode
from toolcrib.deploy.paths import joined
from toolcrib.errors import ConfigurationError, Problem
from toolcrib.names import nearest

__all__ = ["At", "Notes", "Place", "Rejected", "did_you_mean", "suggestion"]

_LONGEST_SHOWN = 60
_MOST_HINTS = 100


class Rejected(Exception):
    """This place gives no value; why was noted. Never leaves the decoding of a file."""


@dataclass(frozen=True, slots=True)
class Notes:
    """What one decoding knows and finds out. The two lists grow while it goes on."""

    file: str
    environ: Mapping[str, str] = field(repr=False)
    base: Path | None
    problems: list[Problem]
    warnings: list[Problem]


@dataclass(frozen=True, slots=True)
class Place:
    """Where in a file something was said, for faults that show only when it is built."""

    path: str
    file: str
    line: int

    def problem(self, message: str) -> Problem:
        return Problem(message, self.path, self.file, self.line)

    def error(self, message: str) -> ConfigurationError:
        return ConfigurationError([self.problem(message)])


@dataclass(frozen=True, slots=True)
class At:
    """A place in a file: what stands there, its path and line, and where faults are noted."""

    node: Node = field(repr=False)
    path: str
    line: int
    notes: Notes = field(repr=False)

    def note(self, message: str) -> None:
        """A fault of this place; the decoding goes on."""
        self.notes.problems.append(self.place.problem(message))

    def warn(self, message: str) -> None:
        """Something that is accepted, for now."""
        self.notes.warnings.append(self.place.problem(message))

    def reject(self, message: str) -> NoReturn:
        self.note(message)
        raise Rejected

    def expected(self, what: str) -> NoReturn:
        self.reject(f"expected {what}, got {self.shown}")

    @property
    def place(self) -> Place:
        return Place(self.path, self.notes.file, self.line)

    @property
    def shown(self) -> str:
        """What stands here, for a message: a short scalar as written, no value from outside."""
        node = self.node
        if isinstance(node, MapNode):
            return "a mapping"
        if isinstance(node, ListNode):
            return "a list"
        if not isinstance(node, TextNode):
            return "something refused"
        if node.is_null:
            return "nothing (leave the key out, or give it a value)"
        if node.from_outside:
            outside = (one.shown for one in node.references if one.literal is None)
            return f"the value of {', '.join(dict.fromkeys(outside))}"
        text = node.written
        if len(text) > _LONGEST_SHOWN:
            return f"a text of {len(text)} characters"
        return repr(text) if node.plain else f"the quoted {text!r}"

    def text_node(self, what: str = "a text") -> TextNode:
        """The scalar here, which may not be null."""
        if isinstance(self.node, BadNode):
            raise Rejected
        if not isinstance(self.node, TextNode) or self.node.is_null:
            self.expected(what)
        return self.node

    def expand(self, what: str = "a text") -> str:
        """The scalar here as text, with its references replaced."""
        pieces: list[str] = []
        failed = False
        for part in self.text_node(what).parts:
            if isinstance(part, str):
                pieces.append(part)
                continue
            try:
                pieces.append(part.resolve(self.notes.environ, self.notes.base))
            except ConfigurationError as error:
                self.note(str(error))
                failed = True
        if failed:
            raise Rejected
        return "".join(pieces)

    def map_node(self) -> MapNode:
        if isinstance(self.node, BadNode):
            raise Rejected
        if not isinstance(self.node, MapNode):
            self.expected("a mapping")
        return self.node

    def list_node(self) -> ListNode:
        if isinstance(self.node, BadNode):
            raise Rejected
        if not isinstance(self.node, ListNode):
            self.expected("a list")
        return self.node

    @property
    def silent(self) -> At:
        """This place for a look ahead: what is noted there is forgotten."""
        return replace(self, notes=replace(self.notes, problems=[], warnings=[]))

    def has(self, key: str) -> bool:
        """Whether a mapping stands here and has that key, whatever its value."""
        return isinstance(self.node, MapNode) and key in self.node.by_key

    def under(self, entry: Entry) -> At:
        return At(entry.value, joined(self.path, entry.key), entry.line, self.notes)

    def item(self, number: int, node: Node) -> At:
        return At(node, joined(self.path, number), node.line, self.notes)


def did_you_mean(notes: Notes, name: str, known: Iterable[str]) -> str:
    """`, did you mean 'x'?`, or nothing where nothing is near."""
    if len(notes.problems) > _MOST_HINTS or len(name) > _LONGEST_SHOWN:
        return ""  # comparing costs milliseconds per hundred names; a hostile file has thousands
    near = nearest(name, known, 1)
    return f", did you mean {near[0]!r}?" if near else ""


def suggestion(notes: Notes, name: str, known: tuple[str, ...]) -> str:
    """What `name` may have been meant as, and everything it might have been."""
    if not known:
        return ": none is known here"
    hint = did_you_mean(notes, name, known)
    return f"{hint or ';'} known: {', '.join(known)}"
