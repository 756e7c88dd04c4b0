"""From nodes to frozen settings: every fault of a file is noted, not only the first.

A decoder is a function from a place in the file (`At`) to a value. It notes what is wrong and
raises `Rejected`; what holds others (`record`, `list_of`, `map_of`) lets each of them speak before
it gives up itself. What single values look like is `scalars`; which settings there are is said
where they are used. No message shows a value that came from outside the file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, Generic, NoReturn, TypeAlias, TypeVar

from toolcrib.deploy.document import BadNode, Entry, ListNode, MapNode, Node, TextNode
from toolcrib.deploy.paths import joined
from toolcrib.errors import ConfigurationError, InvalidDefinition, Problem
from toolcrib.names import nearest

__all__ = [
    "LATER",
    "At",
    "Decoder",
    "Field",
    "Notes",
    "Place",
    "Rejected",
    "did_you_mean",
    "gathered",
    "list_of",
    "map_of",
    "nothing",
    "plain_record",
    "record",
    "required",
    "suggestion",
]

T = TypeVar("T")

LATER = "not available in this version"


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
        return repr(text) if len(text) <= _LONGEST_SHOWN else f"a text of {len(text)} characters"

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


_LONGEST_SHOWN = 60

Decoder: TypeAlias = Callable[[At], T]
"""Gives the value of a place, or notes why there is none and raises `Rejected`."""


@dataclass(frozen=True, slots=True)
class Field(Generic[T]):
    """A key of a record that must be there."""

    decode: Decoder[T]


def required(decode: Decoder[T]) -> Field[T]:
    return Field(decode)


def record(
    make: Callable[..., T],
    fields: Mapping[str, Decoder[Any] | Field[Any]],
    *,
    later: Iterable[str] = (),
    check: Callable[[At], None] | None = None,
) -> Decoder[T]:
    """A mapping with exactly these keys, given to `make` by name; an absent one is not given.

    `check` looks at the whole mapping before its keys are decoded, for rules between keys. `later`
    are keys this version does not have yet. `make` may raise `InvalidDefinition`; its text is
    shown, so it must not hold values.
    """
    decoders: dict[str, Decoder[Any]] = {
        key: one.decode if isinstance(one, Field) else one for key, one in fields.items()
    }
    needed = tuple(key for key, one in fields.items() if isinstance(one, Field))
    unbuilt = frozenset(later)

    def decode(at: At) -> T:
        before = len(at.notes.problems)
        node = at.map_node()
        for key in needed:
            if key not in node.by_key:
                at.note(f"missing required key {key!r}")
        if check is not None:
            check(at)
        values: dict[str, Any] = {}
        for entry in node.entries:
            if (decoder := decoders.get(entry.key)) is None:
                _unknown_key(at.under(entry), entry.key, tuple(decoders), unbuilt)
                continue
            try:
                values[entry.key] = decoder(at.under(entry))
            except Rejected:
                # It said why; the other keys have their say before the record fails as a whole.
                continue
        if len(at.notes.problems) > before or len(values) < len(node.entries):
            raise Rejected
        return _made(at, make, values)

    return decode


def plain_record(
    fields: Mapping[str, Decoder[Any] | Field[Any]], *, later: Iterable[str] = ()
) -> Decoder[dict[str, Any]]:
    """A `record` as a dict of the keys that are there."""
    return record(_as_dict, fields, later=later)


def _as_dict(**values: Any) -> dict[str, Any]:
    return values


def _made(at: At, make: Callable[..., T], values: Mapping[str, Any]) -> T:
    try:
        return make(**values)
    except InvalidDefinition as error:
        at.reject(str(error))


def list_of(decode: Decoder[T], *, least: int = 0) -> Decoder[tuple[T, ...]]:
    """A list of at least `least` items that `decode` each."""

    def decode_list(at: At) -> tuple[T, ...]:
        items = at.list_node().items
        if len(items) < least:
            at.note(f"expected at least {least}, got {'none' if not items else len(items)}")
        places = (at.item(number, item) for number, item in enumerate(items))
        return tuple(gathered(partial(decode, place) for place in places))

    return decode_list


def map_of(decode: Decoder[T]) -> Decoder[dict[str, T]]:
    """A mapping from names of the user's own choice to what `decode` gives; none is blank."""

    def decode_map(at: At) -> dict[str, T]:
        entries = at.map_node().entries
        for entry in entries:
            if not entry.key.strip():
                at.under(entry).note("a blank key")
        values = gathered(partial(decode, at.under(entry)) for entry in entries)
        return dict(zip((entry.key for entry in entries), values, strict=True))

    return decode_map


def gathered(decodings: Iterable[Callable[[], T]]) -> list[T]:
    """What each gives; rejected as a whole if one was, after all had their say."""
    values: list[T] = []
    failed = False
    for decoding in decodings:
        try:
            values.append(decoding())
        except Rejected:
            failed = True
    if failed:
        raise Rejected
    return values


class _Nothing:
    """What an implementation without settings gets."""


nothing: Decoder[object] = record(_Nothing, {})
"""Settings of an implementation that has none: any key is unknown."""


def _unknown_key(at: At, key: str, known: tuple[str, ...], later: frozenset[str]) -> None:
    if key in later:
        at.note(f"{key!r} is {LATER}")
    else:
        at.note(f"unknown key {key!r}{suggestion(at.notes, key, known)}")


def suggestion(notes: Notes, name: str, known: tuple[str, ...]) -> str:
    """What `name` may have been meant as, and everything it might have been."""
    if not known:
        return ": none is known here"
    hint = did_you_mean(notes, name, known)
    return f"{hint or ';'} known: {', '.join(known)}"


def did_you_mean(notes: Notes, name: str, known: Iterable[str]) -> str:
    """`, did you mean 'x'?`, or nothing where nothing is near."""
    if len(notes.problems) > _MOST_HINTS or len(name) > _LONGEST_SHOWN:
        return ""  # comparing costs milliseconds per hundred names; a hostile file has thousands
    near = nearest(name, known, 1)
    return f", did you mean {near[0]!r}?" if near else ""


_MOST_HINTS = 100
