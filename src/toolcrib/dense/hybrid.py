"""Finding tools by words and by meaning: a lexical ranker and an encoder as one `Ranker`.

Joins the parts: `fusion` decides the ranking, `backfill` makes the documents' vectors, `matrix`
holds them, `asked` has those of queries. Needs the extra `dense`.
"""

from __future__ import annotations

import asyncio
import itertools
import threading
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from toolcrib.dense.asked import Asked
from toolcrib.dense.backfill import Backfill, Retry
from toolcrib.dense.encoder import Encoder, Vectors
from toolcrib.dense.fusion import Scale, fused, scale_of
from toolcrib.dense.matrix import NOTHING_ALIKE, Matrix, Similarities
from toolcrib.dense.vectors import VectorCache
from toolcrib.errors import InvalidDefinition
from toolcrib.frozen import NOTHING
from toolcrib.ranking.explain import Explanation
from toolcrib.ranking.fields import Document
from toolcrib.ranking.ranker import (
    DEFAULT_LIMIT,
    Accept,
    ExplainingRanker,
    Hit,
    LearningRanker,
    NarrowingRanker,
    Ranker,
    Searched,
    searched_by,
)
from toolcrib.ranking.syntax import ask

__all__ = ["Hybrid", "Retry"]

DEPTH = 100
"""Documents of each side that are fused first; portions four times as large follow if needed."""
WEIGHT = 0.5
"""The share of meaning; between 0.4 and 0.6 what is found hardly differs."""
MAX_QUERY = 8_000
"""Characters of a query that are encoded, at most."""


class Hybrid:
    """A `Ranker` of two sides, lexical and dense.

    `lexical` is the hybrid's from then on: update it through the hybrid only. `weight` (0…1) is the
    share of meaning. `cache` keeps the documents' vectors between runs; it is not closed here.
    Documents are encoded in a thread of the hybrid's own, which `close` ends; until a document's
    vector is there, and for as long as the encoder fails, it is found by its words. `retry` says
    how long a failing encoder is left alone.

    Encoding a query takes milliseconds, or a request to a server. On an event loop `await
    prepare(query)` first: `search` then need not encode.
    """

    def __init__(
        self,
        lexical: Ranker,
        encoder: Encoder,
        *,
        cache: VectorCache | None = None,
        weight: float = WEIGHT,
        retry: Retry = Retry(),
    ) -> None:
        if not 0 <= weight <= 1:
            raise InvalidDefinition(f"the weight of meaning is between 0 and 1, not {weight}")
        self.weight = weight
        self._lexical = lexical
        self._lock = threading.Lock()  # held for a whole search
        self._queue_lock = threading.Lock()  # under it only the backfill's own is taken
        self._queue: dict[str, Document | None] = {}
        self._applied: set[str] = set()
        self._versions: dict[str, int] = {}  # hashes of the documents as they are now
        self._made: dict[str, int] = {}  # hashes of the documents that the vectors were made of
        self._matrix = Matrix(encoder.dimensions)
        self._asked = Asked(encoder, retry)
        self._backfill = Backfill(encoder, cache, retry, self._take)

    def update(self, put: Iterable[Document] = (), drop: Iterable[str] = ()) -> None:
        """Drops and then puts, as one step: a search sees all of it or nothing. Only queues; what
        is new or says something else than before is encoded from now on, one after another."""
        documents = {document.key: document for document in put}
        gone = set(drop) - documents.keys()
        versions = {key: hash(document) for key, document in documents.items()}
        with self._queue_lock:
            for key in gone:
                self._versions.pop(key, None)
                if key in self._applied or key in self._made:
                    self._queue[key] = None
                else:  # nowhere yet: there is nothing to take out and nothing to remember
                    self._queue.pop(key, None)
            self._queue |= documents
            new = {k: d for k, d in documents.items() if self._versions.get(k) != versions[k]}
            self._versions |= versions
            self._backfill.add(new, gone)

    def search(
        self, query: str, limit: int = DEFAULT_LIMIT, accept: Accept | None = None
    ) -> list[Hit]:
        """The at most `limit` documents that fit `query` best, best first; ties by key.

        What the lexical side calls exact comes first. Encodes the query unless it was prepared or
        asked lately; by words alone where that fails. `accept` is asked in rank order, at most once
        a key and only until the limit is reached; it must not search this hybrid. A blank query
        finds nothing.
        """
        return list(self.searched(query, limit, accept).hits)

    def searched(
        self, query: str, limit: int = DEFAULT_LIMIT, accept: Accept | None = None
    ) -> Searched:
        """As `search`, with the words that the lexical side took for misspelled."""
        limit = limit if limit > 0 else DEFAULT_LIMIT
        if not query.strip():
            return Searched(())
        words = self._meant(query)
        vector = self._asked.vector(words) if words.strip() else None
        found: list[Hit] = []
        with self._lock:
            self._apply()
            left = self._left(query)
            first = searched_by(self._lexical, query, DEPTH)
            for hit in self._ranked(query, first.hits, vector):
                if (left is None or hit.name in left) and (accept is None or accept(hit.name)):
                    found.append(hit)
                    if len(found) == limit:
                        break
            return Searched(tuple(found), self._told(query, first, found))

    def explain(self, query: str, key: str) -> Explanation | None:
        """Why the document `key` has the score the lexical side gives it; None also where that
        side does not explain. Marked `partial`: what meaning adds is not told apart."""
        if not isinstance(self._lexical, ExplainingRanker):
            return None
        with self._lock:
            self._apply()
            told = self._lexical.explain(query, key)
        return None if told is None else replace(told, partial=True)

    def note(self, query: str, key: str) -> None:
        """Tells the lexical side, where that learns."""
        if isinstance(self._lexical, LearningRanker):
            self._lexical.note(query, key)

    async def prepare(self, query: str) -> None:
        """Encodes `query` in a thread, so that a `search` for it soon after need not. Never raises
        for an encoder that fails: the search then answers by words."""
        words = self._meant(query)
        if words.strip() and self._asked.remembered(words) is None:
            await asyncio.to_thread(self._asked.vector, words)

    @property
    def ready(self) -> bool:
        """Whether every document has its vector."""
        return self._backfill.wait(0)

    def wait_encoded(self, timeout: float | None = None) -> bool:
        """Waits until every document has its vector; blocks. Gives False after `timeout` seconds
        (None: no limit), or if the hybrid was closed before."""
        return self._backfill.wait(timeout)

    def close(self) -> None:
        """Ends the encoding of documents. What is encoded stays found by meaning, the rest and what
        is put from now on by words. Safe twice."""
        self._backfill.close()

    def _take(self, made: Mapping[str, tuple[Document, Vectors]]) -> None:
        """Takes the vectors that the backfill made, but for documents that changed meanwhile."""
        with self._lock, self._queue_lock:
            for key, (document, vector) in made.items():
                version = hash(document)
                if self._versions.get(key) == version:
                    self._made[key] = version
                    self._matrix.put(key, vector)

    def _apply(self) -> None:
        with self._queue_lock:
            queue, self._queue = self._queue, {}
            for key, document in queue.items():
                if document is None:
                    self._applied.discard(key)
                else:
                    self._applied.add(key)
                if self._made.get(key) != self._versions.get(key):
                    self._made.pop(key, None)
                    self._matrix.drop(key)
        if queue:
            self._lexical.update(
                [document for document in queue.values() if document is not None],
                [key for key, document in queue.items() if document is None],
            )

    def _meant(self, query: str) -> str:
        """What of `query` is encoded: no operators, where the lexical side has some."""
        query = query[:MAX_QUERY]
        return ask(query).text if isinstance(self._lexical, NarrowingRanker) else query

    def _left(self, query: str) -> Collection[str] | None:
        """The documents that the operators of `query` leave; None: all."""
        lexical = self._lexical
        return lexical.narrowed(query) if isinstance(lexical, NarrowingRanker) else None

    def _told(self, query: str, first: Searched, found: Sequence[Hit]) -> Mapping[str, str]:
        """Those of the first portion's corrections that a hit holds which may be found."""
        names = {hit.name for hit in found} & {hit.name for hit in first.hits}
        if not first.corrected or not names:
            return NOTHING
        return searched_by(self._lexical, query, len(names), names.__contains__).corrected

    def _ranked(self, query: str, first: Sequence[Hit], vector: Vectors | None) -> Iterator[Hit]:
        """Hits in rank order, each once, in ever larger portions on one scale; `first` are the
        first `DEPTH` of the lexical side."""
        alike = self._matrix.similarities(vector) if vector is not None else NOTHING_ALIKE
        seen: set[str] = set()
        scale: Scale | None = None
        for depth in (DEPTH * 4**portion for portion in itertools.count()):
            hits = first if depth == DEPTH else self._lexical.search(query, depth)
            likenesses = _likenesses(hits, alike, depth)
            scale = scale or scale_of(hits, likenesses, alike.mean)
            for hit in fused(hits, likenesses, scale, self.weight):
                if hit.name not in seen:
                    seen.add(hit.name)
                    yield hit
            if len(hits) < depth and len(alike) <= depth:
                return


def _likenesses(hits: Sequence[Hit], alike: Similarities, depth: int) -> dict[str, float]:
    """Those of the `depth` documents most alike, and of all of `hits` that have a vector."""
    found = alike.best(depth)
    for hit in hits:
        likeness = alike.of(hit.name)
        if likeness is not None:
            found[hit.name] = likeness
    return found
