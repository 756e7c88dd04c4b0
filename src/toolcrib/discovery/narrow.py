"""Which documents the operators of a query leave: the filters of `syntax` against the directory.

Exact decisions about single documents; nothing is ranked here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeAlias

from toolcrib.discovery.entries import Entries, Entry, in_order
from toolcrib.discovery.syntax import Ask
from toolcrib.discovery.text import Words

__all__ = ["conditions", "left_by"]

Holds: TypeAlias = Callable[[Entry], bool]


def conditions(ask: Ask, words: Words) -> Iterator[tuple[str, Holds]]:
    """What a document must hold for `ask`: each condition as a person would write it, and its test.
    A phrase or a required word that has no terms asks for nothing."""
    if ask.sources:
        yield "source:" + "|".join(ask.sources), lambda entry: entry.source in ask.sources
    if ask.tags:
        yield "tag:" + "|".join(ask.tags), lambda entry: not set(ask.tags).isdisjoint(entry.tags)
    for phrase in ask.phrases:
        terms = words.terms(phrase)
        if terms:
            yield f'"{phrase}"', _has_phrase(in_order(terms))
    for word in ask.required:
        terms = words.terms(word)
        if terms:
            yield f"+{word}", _has_in_name(terms, words)


def left_by(ask: Ask, entries: Entries, words: Words) -> set[int] | None:
    """The documents that hold everything `ask` requires; None: it requires nothing.

    Sources and tags are looked up; phrases and required words are then tested on what they leave,
    in the worst case on every document (some 3 ms at 10,000).
    """
    tests = [holds for _, holds in conditions(ask, words)]
    if not tests:
        return None
    left: set[int] | None = None
    if ask.sources:
        left = entries.of_sources(ask.sources)
    if ask.tags:
        tagged = entries.of_tags(ask.tags)
        left = tagged if left is None else left & tagged
    return {
        number
        for number in (entries if left is None else left)
        if all(holds(entries[number]) for holds in tests)
    }


def _has_phrase(stems: str) -> Holds:
    return lambda entry: stems in entry.traits.stems


def _has_in_name(terms: list[str], words: Words) -> Holds:
    first = f" {terms[0]} "  # every word of a name stands in some text: most documents end here

    def holds(entry: Entry) -> bool:
        return first in entry.traits.stems and set(terms) <= {
            *entry.traits.name,
            *words.terms(entry.exposed),
        }

    return holds
