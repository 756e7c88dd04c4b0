"""One query against one state of the index: its hits in rank order, and why.

The layer that puts `syntax`, `reading`, the engine, `gain` and the directory together. It lives
only as long as the index's lock is held for one search.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from toolcrib.frozen import NOTHING
from toolcrib.ranking.entries import Entries
from toolcrib.ranking.explain import Condition, Explanation, shares_of
from toolcrib.ranking.gain import Gainer
from toolcrib.ranking.narrow import conditions, left_by
from toolcrib.ranking.ranker import Hit
from toolcrib.ranking.reading import Sources, parsed
from toolcrib.ranking.syntax import ask

__all__ = ["Ranking"]

LISTED = 1.0
"""The score of what filters alone have found."""


class Ranking:
    """What `text` means, and the ways to its hits."""

    __slots__ = ("_ask", "_entries", "_gainer", "_left", "_named", "_query", "_sources")

    def __init__(self, text: str, sources: Sources, entries: Entries) -> None:
        self._sources = sources
        self._entries = entries
        self._ask = ask(text)
        self._left = left_by(self._ask, entries, sources.words, sources.engine)
        self._query = parsed(self._ask.text, sources)
        self._gainer = Gainer(self._query)
        named = entries.named_in(self._ask.text, sources.words, sources.engine)
        left = self._left
        self._named = named if left is None else {n: r for n, r in named.items() if n in left}

    def hits(self, limit: int) -> Iterator[Hit]:
        """Hits in rank order, in ever larger portions; a later portion repeats the earlier ones."""
        most = limit + len(self._named)
        while True:
            ranked = self._best(most)
            yield from ranked
            if len(ranked) < most:
                return
            most *= 4

    def corrections(self, hits: Iterable[Hit]) -> Mapping[str, str]:
        """The corrections that some of `hits` hold, as words are written in query and hit."""
        if not self._query.corrected:
            return NOTHING
        entries, words = self._entries, self._sources.words
        found = [entries[entries.numbers[hit.name]] for hit in hits]
        told: dict[str, str] = {}
        for term, other in self._query.corrected.items():
            for entry in found:
                if f" {other} " in entry.traits.stems:
                    text = f"{entry.exposed} {entry.description}"
                    told[words.spelled(self._ask.text, term)] = words.spelled(text, other)
                    break
        return told

    def explained(self, number: int) -> Explanation:
        """Why the document `number` has its score."""
        sources, entry, query = self._sources, self._entries[number], self._query
        held = tuple(
            Condition(one.text, one.holds(entry)) for one in conditions(self._ask, sources.words)
        )
        words = shares_of(query, number, sources.engine)
        gains = self._gainer.gains(entry.traits, self._entries.name_weights[number])
        named, listed = 0.0, self._is_listing()
        if number in self._named:
            named = self._named[number] * _step(self._scores(1 + len(self._named)))
        total = LISTED if listed else sum(word.points for word in words) * gains.factor + named
        if not all(condition.holds for condition in held):
            total = 0.0
        return Explanation(entry.key, words, gains, held, named, listed, total)

    def _best(self, most: int) -> list[Hit]:
        """The best `most` hits, the named ones first; `most` must have room for those."""
        entries, named = self._entries, self._named
        scores = self._scores(most)
        step = _step(scores)
        for number, rank in named.items():
            scores[number] = scores.get(number, 0.0) + rank * step
        first = sorted([(-score, entries[number].key, number) for number, score in scores.items()])
        return [Hit(key, -score, number in named) for score, key, number in first[:most]]

    def _scores(self, most: int) -> dict[int, float]:
        """The scores of all that can be among the best `most`, and of all that is named."""
        engine, lists, left = self._sources.engine, self._query.lists, self._left
        if left is None:
            scores = self._gained(engine.candidates(lists, most), most)
        elif self._is_listing():
            return dict.fromkeys(left, LISTED)
        else:
            scores = self._gained(engine.among(lists, left), most)
        missing = [number for number in self._named if number not in scores]
        if missing:
            scores.update(self._gained(engine.among(lists, missing), len(missing)))
        return scores

    def _gained(self, scores: Mapping[int, float], most: int) -> dict[int, float]:
        entries = self._entries
        return self._gainer.best(scores, most, entries.traits, entries.name_weights)

    def _is_listing(self) -> bool:
        """Whether the query has operators only: nothing that ranks."""
        return self._left is not None and self._query.is_blank


def _step(scores: Mapping[int, float]) -> float:
    """What being named is worth: more than anything else."""
    return max(scores.values(), default=1.0)
