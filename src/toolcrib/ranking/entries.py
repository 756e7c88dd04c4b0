"""The documents of an index by what they are called: number, key, name, source, tag.

Directories only; how well a document fits is for `reading`, the engine and `gain` to say. Not
thread-safe: the index uses it under its lock.
"""

from __future__ import annotations

from collections.abc import Sequence
from sys import intern
from typing import NamedTuple, TypeAlias

from toolcrib.ranking.engine import Engine
from toolcrib.ranking.fields import FIELDS, Document
from toolcrib.ranking.gain import NameWeights, Traits
from toolcrib.ranking.text import LONGEST_NAME, Words, is_cjk, name_key, names_in

__all__ = ["Entries", "Entry", "in_order"]

_NAME = FIELDS.index("name")
_SOURCE = FIELDS.index("source")
_GONE = Traits((), "", "")
_Owners: TypeAlias = dict[str, dict[int, None]]


class Entry(NamedTuple):
    """One document: its key, exposed name and description; the name keys of its exposed name, of
    its name without namespace, of its source and of its tags; and what of it can gain."""

    key: str
    exposed: str
    description: str
    full: str
    bare: str
    source: str
    tags: tuple[str, ...]
    traits: Traits


class Entries:
    """Documents by number. To be read only: `numbers` has them by key, `traits` their
    traits and `name_weights` the weights of their names by number."""

    __slots__ = (
        "_by_name",
        "_by_source",
        "_by_tag",
        "_entries",
        "name_weights",
        "numbers",
        "traits",
    )

    def __init__(self, engine: Engine) -> None:
        self.numbers: dict[str, int] = {}
        self.traits: list[Traits] = []
        self.name_weights = NameWeights(self.traits, engine.rarities)
        self._entries: dict[int, Entry] = {}
        self._by_name: _Owners = {}
        self._by_source: _Owners = {}
        self._by_tag: _Owners = {}

    def __getitem__(self, number: int) -> Entry:
        return self._entries[number]

    def __len__(self) -> int:
        return len(self._entries)

    def add(self, number: int, document: Document, fields: Sequence[Sequence[str]]) -> None:
        """Adds `document`, whose terms are `fields`, in the order of `FIELDS`."""
        traits = Traits(
            tuple(dict.fromkeys(fields[_NAME])),
            intern(" ".join(dict.fromkeys(fields[_SOURCE]))),  # shared by all tools of a source
            "\n".join(map(in_order, filter(None, fields))),
        )
        full, bare = name_key(document.exposed), name_key(document.name)
        entry = Entry(
            document.key,
            document.exposed,
            document.description,
            full,
            full if bare == full else bare,
            intern(name_key(document.source)),
            tuple(intern(name_key(label)) for label in document.labels),
            traits,
        )
        self.name_weights.clear()
        self._entries[number] = entry
        self.traits += [_GONE] * (number + 1 - len(self.traits))
        self.traits[number] = traits
        self.numbers[document.key] = number
        for owners, names in self._places(entry):
            for name in names:
                owners.setdefault(name, {})[number] = None

    def remove(self, number: int) -> None:
        """Takes a document out again."""
        self.name_weights.clear()
        entry = self._entries.pop(number)
        del self.numbers[entry.key]
        self.traits[number] = _GONE
        for owners, names in self._places(entry):
            for name in names:
                del owners[name][number]
                if not owners[name]:
                    del owners[name]

    def of_sources(self, sources: Sequence[str]) -> set[int]:
        """The documents of any of these sources, given as name keys."""
        return {number for name in sources for number in self._by_source.get(name, ())}

    def of_tags(self, tags: Sequence[str]) -> set[int]:
        """The documents with any of these tags, given as name keys."""
        return {number for name in tags for number in self._by_tag.get(name, ())}

    def named_in(self, query: str, words: Words, engine: Engine) -> dict[int, int]:
        """The documents that `query` names: 2 for a full exposed name, 1 for one without its
        namespace. A plain word (`search`) names a tool where the whole query is made of names, or
        where no other tool's texts know the word."""
        by_name = self._by_name
        written = names_in(query)
        is_none = by_name.keys().isdisjoint
        known = [word for word in written if not is_none(word.keys)]
        only_names = len(known) == len(written)
        found: dict[int, int] = {}
        if len(query) <= LONGEST_NAME:
            self._name(name_key(query), found)
        for word in known:
            for key in filter(by_name.__contains__, word.keys):
                owners = len(by_name[key])
                if word.written or only_names or _is_only_a_name(key, owners, words, engine):
                    self._name(key, found)
        return found

    def _name(self, key: str, found: dict[int, int]) -> None:
        for number in self._by_name.get(key, ()):
            rank = 2 if self._entries[number].full == key else 1
            found[number] = max(rank, found.get(number, 0))

    def _places(self, entry: Entry) -> tuple[tuple[_Owners, set[str]], ...]:
        return (
            (self._by_name, {entry.full, entry.bare}),
            (self._by_source, {entry.source}),
            (self._by_tag, set(entry.tags)),
        )


def in_order(terms: Sequence[str]) -> str:
    """`terms` as text in which a phrase is a part of it: each between spaces, and no pairs of CJK
    characters, which follow the single ones of their run."""
    if "".join(terms).isascii():
        return f" {' '.join(terms)} "
    return f" {' '.join(term for term in terms if len(term) == 1 or not is_cjk(term))} "


def _is_only_a_name(key: str, owners: int, words: Words, engine: Engine) -> bool:
    terms = words.terms(key)
    return len(terms) == 1 and engine.frequency(terms[0]) <= owners
