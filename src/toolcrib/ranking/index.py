"""The search behind `tool_search`: which tools does a query mean, best first.

Ranking only: which tools may be found is the caller's `accept`, what becomes of a hit is
`search_tool`. In memory; a process fills it again at its start.
"""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterable, Iterator

from toolcrib.ranking.engine import Engine
from toolcrib.ranking.engines import fastest
from toolcrib.ranking.entries import Entries
from toolcrib.ranking.explain import Explanation
from toolcrib.ranking.fields import Document
from toolcrib.ranking.learned import Learned
from toolcrib.ranking.lexicon import Lexicon
from toolcrib.ranking.narrow import left_by
from toolcrib.ranking.order import Ranking
from toolcrib.ranking.ranker import DEFAULT_LIMIT, Accept, Hit, Searched
from toolcrib.ranking.reading import Sources
from toolcrib.ranking.spelling import Spelling
from toolcrib.ranking.syntax import ask
from toolcrib.ranking.text import Words

__all__ = ["Index"]

MAX_QUERY = 8_000
"""Characters of a query that are read."""


class Index:
    """A search index that follows a registry. Queries may hold the operators of `syntax`:
    `source:NAME`, `tag:NAME`, `"a phrase"`, `+inname`.

    `put` and `drop` only queue: they are cheap, callable from any thread and while any lock is
    held. `search` takes the index's own lock, applies what is queued, and ranks; so no search
    sees half of an `update`, and at 10,000 tools a change costs 0.1 to 0.2 ms when it is applied.

    `engine` keeps and scans the postings: the index's own, a new one; by default the fastest that
    what is installed allows. `learned`: what calls after searches have taught (default: nothing is
    learned).
    """

    def __init__(self, engine: Engine | None = None, *, learned: Learned | None = None) -> None:
        self.learned = learned
        self._lock = threading.Lock()
        self._queue_lock = threading.Lock()  # a leaf: nothing else is ever taken under it
        self._queue: dict[str, Document | None] = {}
        self._applied: set[str] = set()
        engine = fastest() if engine is None else engine
        words = Words()
        self._entries = Entries(engine)
        self._free: list[int] = []
        lexicon, spelling = Lexicon(words, engine), Spelling(engine.frequency)
        self._sources = Sources(words, engine, lexicon, spelling, learned, self._entries.numbers)

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
        lock, so it must not search this index. A query without words finds nothing, one of filters
        alone lists what they leave by name, with equal scores.
        """
        return list(self.searched(query, limit, accept).hits)

    def searched(
        self, query: str, limit: int = DEFAULT_LIMIT, accept: Accept | None = None
    ) -> Searched:
        """As `search`, and which words of the query were taken for misspelled: those that no
        document knows and none begins with, where a known word is one error away (two from eight
        letters on). The known word is searched too, at a lower weight."""
        limit = limit if limit > 0 else DEFAULT_LIMIT
        with self._lock:
            self._apply()
            ranking = Ranking(query[:MAX_QUERY], self._sources, self._entries)
            hits = tuple(_accepted(ranking.hits(limit), limit, accept))
            return Searched(hits, ranking.corrections(hits))

    def note(self, query: str, key: str) -> None:
        """Teaches that `query` led to `key`, where this index learns."""
        if self.learned is not None:
            self.learned.note(query, key)

    def explain(self, query: str, key: str) -> Explanation | None:
        """Why the document `key` has its score for `query`; None if there is none of that key.

        `total` is the score a search gives it, up to rounding, and 0 where it finds it not.
        """
        with self._lock:
            self._apply()
            number = self._entries.numbers.get(key)
            if number is None:
                return None
            return Ranking(query[:MAX_QUERY], self._sources, self._entries).explained(number)

    def narrowed(self, query: str) -> Collection[str] | None:
        """The keys of the documents that the operators of `query` leave; None: all."""
        words, engine, *_ = self._sources
        with self._lock:
            self._apply()
            left = left_by(ask(query[:MAX_QUERY]), self._entries, words, engine)
            return None if left is None else {self._entries[number].key for number in left}

    def _apply(self) -> None:
        with self._queue_lock:
            if not self._queue:
                return
            queue, self._queue = self._queue, {}
            self._applied.difference_update(queue)  # `-=` would copy the whole set
            self._applied.update(key for key, document in queue.items() if document is not None)
        for key, document in queue.items():
            number = self._entries.numbers.get(key)
            if number is not None:
                self._entries.remove(number)
                self._sources.engine.remove(number)
                self._free.append(number)
            if document is not None:
                self._add(document)
        self._sources.lexicon.clear()
        self._sources.engine.settle()

    def _add(self, document: Document) -> None:
        number = self._free.pop() if self._free else len(self._entries)
        words, engine, _, spelling, *_ = self._sources
        fields = [words.terms(text) for text in document.texts]
        engine.add(number, fields)
        self._entries.add(number, document, fields)
        for terms in fields:
            spelling.learn(terms)


def _accepted(ranked: Iterator[Hit], limit: int, accept: Accept | None) -> Iterator[Hit]:
    asked: set[str] = set()
    found = 0
    for hit in ranked:
        if hit.name in asked:
            continue
        asked.add(hit.name)
        if accept is None or accept(hit.name):
            yield hit
            found += 1
            if found == limit:
                return
