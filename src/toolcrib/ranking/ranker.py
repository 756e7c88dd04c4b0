"""What ranks tools for a query: the contract, and what it answers with.

`index.Index` is the one that is always there. Which tools may be found is the caller's `accept`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

from toolcrib.frozen import NOTHING
from toolcrib.ranking.explain import Explanation
from toolcrib.ranking.fields import Document

__all__ = [
    "DEFAULT_LIMIT",
    "Accept",
    "Closes",
    "CorrectingRanker",
    "ExplainingRanker",
    "Hit",
    "LearningRanker",
    "NarrowingRanker",
    "Prepares",
    "Ranker",
    "Searched",
    "searched_by",
]

DEFAULT_LIMIT = 8
"""Hits of a search that names no limit (rule A5.3)."""

Accept = Callable[[str], bool]
"""Whether the document of that key may be found. Asked in rank order, at most once a key."""


@dataclass(frozen=True, slots=True)
class Hit:
    """A tool found: the key of its document (normally its exposed name), a score > 0 that compares
    hits of one search only, and whether the query names the tool: those come before all others."""

    name: str
    score: float
    exact: bool = False


@dataclass(frozen=True, slots=True)
class Searched:
    """A search's hits, best first, and the query's words that were taken for misspelled: as written
    in the query, lower-cased → the known word that was also searched. Only corrections that some
    hit holds are told, so that nobody learns a word of a tool that is hidden from them."""

    hits: tuple[Hit, ...]
    corrected: Mapping[str, str] = field(default=NOTHING)


@runtime_checkable
class Ranker(Protocol):
    """Anything that finds documents, and follows a registry. All methods from any thread."""

    def update(self, put: Iterable[Document] = (), drop: Iterable[str] = ()) -> None:
        """Drops the documents of those keys and then puts `put`, each in place of the one with its
        key, as one step: a search sees all of it or nothing. It is called under the registry's
        lock: queue and return. Unknown keys are ignored."""
        ...

    def search(
        self, query: str, limit: int = DEFAULT_LIMIT, accept: Accept | None = None
    ) -> list[Hit]:
        """The at most `limit` documents that fit `query` best, best first; a limit ≤ 0 means the
        default. Equal histories give equal answers."""
        ...


@runtime_checkable
class Prepares(Protocol):
    """A ranker whose search would block the event loop unless it had time to prepare."""

    async def prepare(self, query: str) -> None:
        """Does what takes long for a `search` of exactly this query, off the loop. A failure is no
        error here: the search goes on without."""
        ...


@runtime_checkable
class CorrectingRanker(Ranker, Protocol):
    """A ranker that also tells what it took for misspelled."""

    def searched(
        self, query: str, limit: int = DEFAULT_LIMIT, accept: Accept | None = None
    ) -> Searched:
        """As `search`, whose answer are the `hits` of this one."""
        ...


@runtime_checkable
class Closes(Protocol):
    """A ranker that holds something which must end with its assembly."""

    def close(self) -> None:
        """Ends it; may take seconds, so it is called in a thread. Safe twice."""
        ...


@runtime_checkable
class LearningRanker(Ranker, Protocol):
    """A ranker that learns from what became of its hits."""

    def note(self, query: str, key: str) -> None:
        """`query` found the document `key`, and the tool was then called successfully."""
        ...


@runtime_checkable
class ExplainingRanker(Ranker, Protocol):
    """A ranker that can say why."""

    def explain(self, query: str, key: str) -> Explanation | None:
        """Why the document `key` has its score for `query`; None if there is none of that key."""
        ...


@runtime_checkable
class NarrowingRanker(Ranker, Protocol):
    """A ranker whose queries may hold the operators of `syntax`."""

    def narrowed(self, query: str) -> Collection[str] | None:
        """The keys of the documents that the operators of `query` leave; None: all."""
        ...


def searched_by(ranker: Ranker, query: str, limit: int, accept: Accept | None = None) -> Searched:
    """What `ranker` finds, with its corrections if it tells any."""
    if isinstance(ranker, CorrectingRanker):
        return ranker.searched(query, limit, accept)
    return Searched(tuple(ranker.search(query, limit, accept)))
