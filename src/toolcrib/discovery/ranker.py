"""What ranks tools for a query: the contract, and what it answers with.

`index.Index` is the one that is always there. Which tools may be found is the caller's `accept`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from toolcrib.discovery.fields import Document

__all__ = ["DEFAULT_LIMIT", "Accept", "Closes", "Hit", "Prepares", "Ranker"]

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
class Closes(Protocol):
    """A ranker that holds something which must end with its assembly."""

    def close(self) -> None:
        """Ends it; may take seconds, so it is called in a thread. Safe twice."""
        ...
