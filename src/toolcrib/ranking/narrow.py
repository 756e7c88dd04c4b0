"""Which documents the operators of a query leave: the filters of `syntax` against the directory.

Exact decisions about single documents; nothing is ranked here.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import NamedTuple, TypeAlias

from toolcrib.ranking.engine import Engine
from toolcrib.ranking.entries import Entries, Entry, in_order
from toolcrib.ranking.syntax import Ask
from toolcrib.ranking.text import Words, is_cjk

__all__ = ["Needed", "conditions", "left_by"]

Holds: TypeAlias = Callable[[Entry], bool]


class Needed(NamedTuple):
    """What a document must hold: as a person would write it, its test, and terms that every
    document that passes it has (none: it is about no text)."""

    text: str
    holds: Holds
    terms: tuple[str, ...] = ()


def conditions(ask: Ask, words: Words) -> list[Needed]:
    """What a document must hold for `ask`. A phrase or a required word that has no terms asks for
    nothing."""
    found: list[Needed] = []
    if ask.sources:
        found.append(Needed("source:" + "|".join(ask.sources), _is_of(ask.sources)))
    if ask.tags:
        found.append(Needed("tag:" + "|".join(ask.tags), _has_tag(ask.tags)))
    for phrase in ask.phrases:
        stems = in_order(words.terms(phrase))
        if stems.strip():
            found.append(Needed(f'"{phrase}"', _has_phrase(stems), tuple(stems.split())))
    for word in ask.required:
        terms = tuple(words.terms(word))
        if terms:
            found.append(Needed(f"+{word}", _has_in_name(terms, words), terms))
    return found


def left_by(ask: Ask, entries: Entries, words: Words, engine: Engine) -> set[int] | None:
    """The documents that hold everything `ask` requires; None: it requires nothing.

    Sources, tags and the rarest term of all texts are looked up; phrases and required words are
    then tested on what those leave.
    """
    needed = conditions(ask, words) if ask.narrows else ()
    if not needed:
        return None
    groups: list[Collection[int]] = []
    if ask.sources:
        groups.append(entries.of_sources(ask.sources))
    if ask.tags:
        groups.append(entries.of_tags(ask.tags))
    terms = [term for one in needed for term in one.terms]
    if terms:
        groups.append(engine.holding(min(terms, key=engine.frequency)))
    groups.sort(key=len)
    left = set(groups[0]).intersection(*groups[1:])
    for one in needed:
        if one.terms:
            left = {number for number in left if one.holds(entries[number])}
    return left


def _is_of(sources: Collection[str]) -> Holds:
    return lambda entry: entry.source in sources


def _has_tag(tags: Collection[str]) -> Holds:
    return lambda entry: any(tag in tags for tag in entry.tags)


def _has_phrase(stems: str) -> Holds:
    return lambda entry: stems in entry.traits.stems


def _has_in_name(terms: tuple[str, ...], words: Words) -> Holds:
    needed = frozenset(terms)
    texts = [f" {term} " for term in terms if not is_cjk(term)]

    def holds(entry: Entry) -> bool:
        if needed.issubset(entry.traits.name):
            return True
        if entry.full == entry.bare:
            return False
        stems = entry.traits.stems  # a word of a namespace may stand in no text
        return needed.issubset(words.terms(entry.exposed)) and all(t in stems for t in texts)

    return holds
