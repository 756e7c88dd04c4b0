"""What an inverted index offers to the search: the contract of its two implementations.

`scan` is the one in plain Python, `packed` the one on numpy arrays; given equal histories they
answer alike, to the last bit. Documents are numbers here, terms texts, and nothing else: what a
query means is `reading`, which tools it names `entries`. Not thread-safe; `index` holds its lock
round every use.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple, Protocol

__all__ = ["PREFIX_WEIGHT", "Engine", "Impacts", "Occurrence", "WordList"]

PREFIX_WEIGHT = 0.5
"""What a field counts where a query's word is only the beginning of its word (rule A5.6)."""


class Impacts(Protocol):
    """A word's share of the score of each of its documents, in a form only its engine reads.
    Worth nothing once the engine has changed."""

    @property
    def peak(self) -> float:
        """The highest of them."""
        ...


class WordList(NamedTuple):
    """One word of a query: its weight, its impact per document, and the bound of their product."""

    weight: float
    impacts: Impacts
    bound: float


class Occurrence(NamedTuple):
    """How often a term stands in one field of a document, as far as it is counted, and what one
    occurrence weighs there: a document's impact is what the sum of times × weight saturates to."""

    field: str
    times: int
    weight: float


class Engine(Protocol):
    """Documents by number, each a list of terms per field.

    Numbers are small: who gives them takes one that was removed before a new one.
    """

    def add(self, number: int, fields: Sequence[Sequence[str]]) -> None:
        """Adds a document: its terms for each of `FIELDS`, in that order."""
        ...

    def remove(self, number: int) -> None:
        """Takes a document out again; its number is free."""
        ...

    def settle(self) -> None:
        """To be called after changes, before ranking."""
        ...

    @property
    def rarities(self) -> dict[str, float]:
        """The `rarity` of every term, also of those in no document."""
        ...

    def rarity(self, documents: int) -> float:
        """The idf of a term that stands in so many of the documents; positive."""
        ...

    def frequency(self, term: str) -> int:
        """How many documents hold `term`."""
        ...

    def holding(self, term: str) -> Sequence[int]:
        """The documents that hold `term`."""
        ...

    def expansions(self, prefix: str) -> list[str]:
        """The terms that `prefix` properly begins, the shortest first, boundedly many."""
        ...

    def prepare(self, terms: Iterable[str]) -> None:
        """Told of terms whose impacts will be asked for next; each stands in some document."""
        ...

    def impacts(self, term: str) -> Impacts:
        """The impacts, without idf, of a term that stands in some document."""
        ...

    def expanded(self, term: str, others: Sequence[str]) -> Impacts:
        """The impacts, idf included, of the word `term` together with `others`, indexed words it
        begins. Those count `PREFIX_WEIGHT`, and in each field the best match counts, never the sum
        (trap T-A7). The word is as rare as all of them together; an exact match keeps its own
        rarity where that gives more."""
        ...

    def given(self, impacts: Mapping[int, float]) -> Impacts:
        """Impacts > 0 that come from elsewhere, by document."""
        ...

    def candidates(self, lists: Sequence[WordList], most: int) -> dict[int, float]:
        """Documents and the sums of their weighted impacts: all that can be among the `most` best
        once each was multiplied by a factor from 1 to `gain.BOUND`, and few others."""
        ...

    def among(self, lists: Sequence[WordList], numbers: Collection[int]) -> dict[int, float]:
        """The sums of the weighted impacts of the documents `numbers`, those that have none left
        out."""
        ...

    def occurrences(self, term: str, number: int) -> list[Occurrence]:
        """The fields of a document that hold `term`. For explanations."""
        ...
