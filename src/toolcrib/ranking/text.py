"""From text to the terms that are searched: the same walk for documents and for queries.

Words only: which texts of a tool count is `fields`, how much each counts is `weights`.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple, Protocol, cast

import Stemmer  # type: ignore[import-not-found]  # a C module without stubs

__all__ = [
    "LONGEST_NAME",
    "NamedWord",
    "Words",
    "is_cjk",
    "name_key",
    "names_in",
]

_CJK = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7a3\U00020000-\U0003ffff"
_RUN = re.compile(f"[{_CJK}]+|[^\\W_{_CJK}]+")
_IS_CJK = re.compile(f"[{_CJK}]")
_PIECE = re.compile(r"[A-Z]{2,}s?(?![a-z])|[A-Z]?[a-z]+|[A-Z]|\d+")
"""The words of one ASCII run: `HTTPServer2` is HTTP, Server, 2; the s of `URLs` stays with them."""
_OTHER_PIECE = re.compile(r"\d+|[^\W\d_]+")
_ACCENTED = re.compile("([A-Za-z])[\u0300-\u036f]+")
_SEPARATORS = re.compile(r"[\W_]+")
_CAMEL = re.compile("[a-z][A-Z]")
_NAME = re.compile(r"\w+(?:[.:/-]+\w+)*")
_CACHED_RUNS = 20_000
"""Runs whose terms are remembered, about 4 MB; when full all are forgotten, and the common ones
are soon back."""
_LONGEST_RUN = 40
LONGEST_NAME = 200
"""Characters of what may be a name; exposed names have 64 at most."""

_STOP_WORDS = """
a about after again all also am an and any are as at be been before being both but by can could
did do does doing done down during each either etc every few find for from further get give had
has have having he help her here hers him his how i if in into is it its just know let like may
me might mine more most must my need neither new no nor not now of off on once only or other our
ours out over own per please provide s same shall she should show so some such t tell than that
the their theirs them then there these they this those through to too under until up us use used
using very via want was we were what when where whether which while who whom whose why will with
would you your yours don ve ll re m
"""
STOP_WORDS = frozenset(_STOP_WORDS.split())
"""English function words, and those every request to an agent is made of (please, find, show). They
stay searchable: `lexicon` only lets them weigh little."""

_FILLER_WORDS = """
able assist assistance available based best call called certain check come curious current currently
details determine different discover example explore first following friend given go going good
great hello help hi idea ideas included includes including info information interested items keep
kind learn looking lot lots love made make named needs next now ok okay one option options
particular planning possible provided recommend related relevant right second specific sort
suggest suitable sure take thank thanks thing things three titled today tomorrow trying two type
types understand using various wanted wants way ways well wondering
"""
FILLER_WORDS = frozenset(_FILLER_WORDS.split()) - STOP_WORDS
"""Words people wrap a request in, which also have a meaning of their own."""


class _Stemmer(Protocol):
    def stemWord(self, word: str, /) -> str: ...


class _Stemmers(Protocol):
    def Stemmer(self, language: str, /) -> _Stemmer: ...


class Words:
    """Text to terms, with a stemmer and a cache of its own.

    One instance must not be used by two threads at once (the stemmer is not made for it); each
    index owns one and uses it under its lock.
    """

    __slots__ = ("_known", "_stem", "filler_terms", "stop_terms")

    def __init__(self) -> None:
        self._stem = cast("_Stemmers", Stemmer).Stemmer("english").stemWord
        self._known: dict[str, tuple[str, ...]] = {}
        self.stop_terms = frozenset(map(self._stem, STOP_WORDS))
        self.filler_terms = frozenset(map(self._stem, FILLER_WORDS)) - self.stop_terms

    def terms(self, text: str) -> list[str]:
        """The terms of `text` in order, repeats included.

        Words are split at everything but letters and digits, at camelCase and between letters and
        digits, lower-cased and stemmed as English. Chinese, Japanese and Korean runs give their
        single characters and adjacent pairs. One-letter and one-digit ASCII words are dropped: as
        prefixes they would match anything (trap T-A6); a word that loses a part so (`s3`, `k8s`)
        is a term as a whole too.
        """
        if not text.isascii():
            text = _plain(text)
        known = self._known
        found: list[str] = []
        for run in _RUN.findall(text):
            terms = known.get(run)
            if terms is None:
                terms = self._remember(run)
            found += terms
        return found

    def spelled(self, text: str, term: str) -> str:
        """How `term` is written in `text` first, lower-cased; the term itself if it is not there.
        A walk through the whole text: for what is told, not for what is ranked."""
        for run in _RUN.findall(_plain(text)):
            for piece in _pieces(run):
                if self._stem(piece.lower()) == term:
                    return piece.lower()
        return term

    def _remember(self, run: str) -> tuple[str, ...]:
        if is_cjk(run):  # whole sentences are one run: not worth remembering
            return (*run, *map("".join, pairwise(run)))
        terms = tuple(self._stemmed(run, _pieces(run)))
        if len(self._known) >= _CACHED_RUNS:
            self._known.clear()
        if len(run) <= _LONGEST_RUN:
            self._known[run] = terms
        return terms

    def _stemmed(self, run: str, pieces: Sequence[str]) -> Iterator[str]:
        dropped = False
        for piece in pieces:
            if len(piece) == 1 and piece.isascii():
                dropped = True
            else:
                yield self._stem(piece.lower())
        if dropped and len(pieces) > 1:  # s3, k8s, v2: nothing would be left of them
            yield self._stem(run.lower())


def _pieces(run: str) -> list[str]:
    return _PIECE.findall(run) if run.isascii() else _OTHER_PIECE.findall(run)


def is_cjk(term: str) -> bool:
    """Whether `term` begins with a Chinese, Japanese or Korean character."""
    return _IS_CJK.match(term) is not None


def name_key(name: str) -> str:
    """`name` without case and separators: `findSymbol`, `FIND_SYMBOL` and `find symbol` are one."""
    return (name if name.isalnum() else _SEPARATORS.sub("", name)).lower()


class NamedWord(NamedTuple):
    """A word of a query that may be a tool's name: the keys it may be known by, its own first, and
    whether it is written as names are: with an inner separator, digit or camelCase capital."""

    keys: tuple[str, ...]
    written: bool


def names_in(query: str) -> list[NamedWord]:
    """The words of `query` as names. Of a name with namespaces (`mcp__fs__read_file`,
    `fs/read_file`) its tails are keys too, so that it is found without them."""
    words = [_short(w) if len(w) <= _LONGEST_RUN else _named(w) for w in _NAME.findall(query)]
    return [word for word in words if word is not None]


def _named(word: str) -> NamedWord | None:
    if len(word) > LONGEST_NAME:
        return None
    is_camel = bool(_CAMEL.search(word))
    if word.isalpha():  # most are: nothing to split
        return NamedWord((word.lower(),), is_camel)
    keys = dict.fromkeys(name_key(part) for part in _tails(word))
    keys.pop("", None)
    return NamedWord(tuple(keys), True) if keys else None


_short = lru_cache(_CACHED_RUNS)(_named)


def _tails(word: str) -> Iterator[str]:
    yield word
    if word.count("/") == 1:
        yield word.partition("/")[2]
    at = word.find("__")
    while at >= 0:
        yield word[at + 2 :]
        at = word.find("__", at + 2)


def _plain(text: str) -> str:
    """Compatibility forms and Latin accents undone: full-width letters are letters, `café` is
    cafe."""
    text = unicodedata.normalize("NFD", unicodedata.normalize("NFKC", text))
    return unicodedata.normalize("NFC", _ACCENTED.sub(r"\1", text))
