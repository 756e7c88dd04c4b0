"""The search behind `tool_search`: which tools does a query mean, best first.

Ranking only: which tools may be found is the caller's `accept`, what becomes of a hit is
`search_tool`. In memory; a process fills it again at its start.
"""

from __future__ import annotations

import heapq
import threading
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from toolcrib.discovery.engine import Engine
from toolcrib.discovery.engines import fastest
from toolcrib.discovery.fields import FIELDS, Document
from toolcrib.discovery.gain import best_gained, coverage_gain
from toolcrib.discovery.query import Query, parsed
from toolcrib.discovery.ranker import DEFAULT_LIMIT, Accept, Hit
from toolcrib.discovery.text import LONGEST_NAME, Words, name_key, names_in

__all__ = ["Index"]

MAX_QUERY = 8_000
"""Characters of a query that are read."""

_NAME_FIELD = FIELDS.index("name")


class _Entry(NamedTuple):
    key: str
    name_terms: tuple[str, ...]
    full: str
    bare: str


class Index:
    """A search index that follows a registry.

    `put` and `drop` only queue: they are cheap, callable from any thread and while any lock is
    held. `search` takes the index's own lock, applies what is queued, and ranks; so no search
    sees half of an `update`, and at 10,000 tools a change costs 0.1 to 0.2 ms when it is applied.
    """

    def __init__(self, engine: Engine | None = None) -> None:
        """`engine` keeps and scans the postings: its own, a new one; by default the fastest that
        what is installed allows."""
        self._lock = threading.Lock()
        self._queue_lock = threading.Lock()  # a leaf: nothing else is ever taken under it
        self._queue: dict[str, Document | None] = {}
        self._applied: set[str] = set()
        self._words = Words()
        self._postings = fastest() if engine is None else engine
        self._entries: dict[int, _Entry] = {}
        self._numbers: dict[str, int] = {}
        self._named: dict[str, dict[int, None]] = {}
        self._free: list[int] = []

    def put(self, document: Document) -> None:
        """Adds `document`, in place of the one with its key, from the next search on."""
        self.update([document])

    def drop(self, key: str) -> None:
        """Takes the document `key` out from the next search on; unknown keys are ignored."""
        self.update(drop=[key])

    def update(self, put: Iterable[Document] = (), drop: Iterable[str] = ()) -> None:
        """Drops and then puts, as one step: a search sees all of it or nothing."""
        put, drop = tuple(put), tuple(drop)
        with self._queue_lock:
            for key in drop:
                if key in self._applied:
                    self._queue[key] = None
                else:  # never applied, so there is nothing to take out and nothing to remember
                    self._queue.pop(key, None)
            for document in put:
                self._queue[document.key] = document

    def search(
        self, query: str, limit: int = DEFAULT_LIMIT, accept: Accept | None = None
    ) -> list[Hit]:
        """The at most `limit` documents that fit `query` best, best first; ties by key.

        Tools that the query names, case and separators ignored, come before all others. A limit
        ≤ 0 means the default. `accept` says of a key whether it may be found; it is asked in rank
        order and only until the limit is reached, at most once a key. It runs under the index's
        lock, so it must not search this index. A query without words finds nothing.
        """
        limit = limit if limit > 0 else DEFAULT_LIMIT
        query = query[:MAX_QUERY]
        with self._lock:
            self._apply()
            found: list[Hit] = []
            asked: set[str] = set()
            for hit in self._ranked(query, limit):
                if hit.name in asked:
                    continue
                asked.add(hit.name)
                if accept is None or accept(hit.name):
                    found.append(hit)
                    if len(found) == limit:
                        break
            return found

    def _apply(self) -> None:
        with self._queue_lock:
            if not self._queue:
                return
            queue, self._queue = self._queue, {}
            self._applied.difference_update(queue)  # `-=` would copy the whole set
            self._applied.update(key for key, document in queue.items() if document is not None)
        for key, document in queue.items():
            number = self._numbers.pop(key, None)
            if number is not None:
                self._remove(number)
            if document is not None:
                self._add(document)
        self._postings.settle()

    def _add(self, document: Document) -> None:
        number = self._free.pop() if self._free else len(self._entries)
        fields = [self._words.terms(text) for text in document.texts]
        name_terms = tuple(dict.fromkeys(fields[_NAME_FIELD]))
        full, bare = name_key(document.exposed), name_key(document.name)
        entry = _Entry(document.key, name_terms, full, bare)
        self._postings.add(number, fields)
        self._entries[number] = entry
        self._numbers[document.key] = number
        for name in {full, bare}:
            self._named.setdefault(name, {})[number] = None

    def _remove(self, number: int) -> None:
        entry = self._entries.pop(number)
        self._free.append(number)
        self._postings.remove(number)
        for name in {entry.full, entry.bare}:
            owners = self._named[name]
            del owners[number]
            if not owners:
                del self._named[name]

    def _ranked(self, text: str, limit: int) -> Iterator[Hit]:
        """Hits in rank order, in ever larger portions; a later portion repeats the earlier ones."""
        query = parsed(text, self._words, self._postings)
        named = self._named_in(text)
        most = limit + len(named)
        while True:
            ranked = self._best(query, most, named)
            yield from ranked
            if len(ranked) < most:
                return
            most *= 4

    def _best(self, query: Query, most: int, named: dict[int, int]) -> list[Hit]:
        """The best `most` hits, the named ones first; `most` must have room for those."""
        entries = self._entries

        def gain(number: int) -> float:
            return coverage_gain(entries[number].name_terms, query)

        scores = self._postings.candidates(query.lists, most)
        gained = best_gained(scores, most, gain)
        step = max(gained.values(), default=1.0)
        for number, rank in named.items():
            known = gained.get(number)
            if known is None:
                known = scores[number] * gain(number) if number in scores else 0.0
            gained[number] = known + rank * step
        best = heapq.nsmallest(most, [(-s, entries[n].key, n) for n, s in gained.items()])
        return [Hit(key, -score, number in named) for score, key, number in best]

    def _named_in(self, query: str) -> dict[int, int]:
        """The documents that `query` names: 2 for a full exposed name, 1 for one without its
        namespace. A plain word (`search`) names a tool where the whole query is made of names, or
        where no other tool's texts know the word."""
        words = names_in(query)
        known = [{k: self._named[k] for k in word.keys if k in self._named} for word in words]
        only_names = all(known)
        found: dict[int, int] = {}
        if len(query) <= LONGEST_NAME:
            self._name(name_key(query), found)
        for word, names in zip(words, known, strict=True):
            for key, owners in names.items():
                if word.written or only_names or self._is_only_a_name(key, len(owners)):
                    self._name(key, found)
        return found

    def _name(self, key: str, found: dict[int, int]) -> None:
        for number in self._named.get(key, ()):
            rank = 2 if self._entries[number].full == key else 1
            found[number] = max(rank, found.get(number, 0))

    def _is_only_a_name(self, key: str, owners: int) -> bool:
        terms = self._words.terms(key)
        return len(terms) == 1 and self._postings.frequency(terms[0]) <= owners
