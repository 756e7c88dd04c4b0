"""The engine in plain Python: from a query to the best documents, looking at few of them.

A term's impacts are weighed when a query first asks for the term, and then kept up to date.
"""

from __future__ import annotations

import heapq
from array import array
from bisect import bisect_left
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import cast

from toolcrib.ranking.engine import PREFIX_WEIGHT, Occurrence, WordList
from toolcrib.ranking.gain import BOUND
from toolcrib.ranking.postings import Postings
from toolcrib.ranking.weights import FIELD_COUNT, Weights, widest

__all__ = ["Scan"]

MAX_KEPT = 64_000_000
"""Bytes of impacts kept at once; beyond it all are forgotten, and weighed again when asked for."""

_SHORT = 64
"""Postings worth adding up without asking whether they still matter."""
_LOOKING = 5
"""Postings walked in the time of one binary search."""


class _Listed:
    """`Impacts`: those of `numbers`, which rise."""

    __slots__ = ("impacts", "numbers", "peak")

    def __init__(self, numbers: array[int], impacts: array[float]) -> None:
        self.numbers = numbers
        self.impacts = impacts
        self.peak = max(impacts, default=0.0)


class Scan:
    """An `Engine` that needs nothing installed."""

    def __init__(self) -> None:
        self._postings = Postings()
        self._weights = Weights()
        self._kept: dict[int, _Listed] = {}
        self._bytes = 0
        self.rarities = self._postings.rarities
        self.rarity = self._postings.rarity
        self.frequency = self._postings.frequency
        self.holding = self._postings.holding
        self.expansions = self._postings.expansions

    def add(self, number: int, fields: Sequence[Sequence[str]]) -> None:
        postings, weights = self._postings, self._weights
        weights.account(list(map(len, fields)), 1)
        postings.add(number, fields)
        for term in postings.terms(number):
            kept = self._kept.get(term)
            if kept is not None:
                at = bisect_left(kept.numbers, number)
                packed = postings.postings[term].counts[at]
                impact = weights.impact(postings.lengths, number * FIELD_COUNT, packed)
                kept.impacts.insert(at, impact)
                kept.peak = max(kept.peak, kept.impacts[at])
                self._bytes += kept.impacts.itemsize

    def remove(self, number: int) -> None:
        postings = self._postings
        for term in postings.terms(number):
            kept = self._kept.get(term)
            if kept is not None:
                gone = kept.impacts.pop(bisect_left(kept.numbers, number))
                self._bytes -= kept.impacts.itemsize
                if not kept.impacts:
                    del self._kept[term]
                elif gone == kept.peak:
                    kept.peak = max(kept.impacts)
        postings.remove(number)
        start = number * FIELD_COUNT
        self._weights.account(postings.lengths[start : start + FIELD_COUNT], -1)

    def settle(self) -> None:
        if self._weights.begin_epoch():
            self._forget()

    def prepare(self, terms: Iterable[str]) -> None:
        pass

    def impacts(self, term: str) -> _Listed:
        postings = self._postings
        known = postings.find(term)
        kept = self._kept.get(known)
        if kept is None:
            _, numbers, counts = postings.postings[known]
            if self._bytes > MAX_KEPT:
                self._forget()
            kept = _Listed(numbers, self._weights.impacts(postings.lengths, numbers, counts))
            self._kept[known] = kept
            self._bytes += kept.impacts.itemsize * len(numbers)
        return kept

    def expanded(self, term: str, others: Sequence[str]) -> _Listed:
        weigh, lengths = self._weights.impact, self._postings.lengths
        counts = self._widest_counts(term, others)
        together = self.rarity(len(counts))
        found = {
            number: weigh(lengths, number * FIELD_COUNT, counts[number], PREFIX_WEIGHT) * together
            for number in sorted(counts)
        }
        if self.frequency(term):
            exact = self.impacts(term)
            alone = self.rarity(len(exact.numbers))
            for number, impact in zip(exact.numbers, exact.impacts, strict=True):
                found[number] = max(found[number], impact * alone)
        return _Listed(array("I", found), array("f", found.values()))

    def given(self, impacts: Mapping[int, float]) -> _Listed:
        numbers = sorted(impacts)
        return _Listed(array("I", numbers), array("f", [impacts[number] for number in numbers]))

    def candidates(self, lists: Sequence[WordList], most: int) -> dict[int, float]:
        """Words are added up from the weightiest on. As soon as what the remaining words can still
        give cannot lift a document into the best, they are only looked up for the documents already
        there (the MaxScore rule): the long lists of common words are hardly ever walked."""
        left = [0.0] * (len(lists) + 1)
        for at in range(len(lists) - 1, -1, -1):
            left[at] = left[at + 1] + lists[at].bound
        scores: dict[int, float] = {}
        adding = True
        for at, (weight, impacts, _) in enumerate(lists):
            listed = cast("_Listed", impacts)
            size = len(listed.numbers)
            if adding and size > _SHORT and 2 * size > len(scores) >= most:
                adding = left[at] * BOUND >= _floor(scores, most)
            if adding:
                _add_up(scores, weight, listed)
                continue
            if len(scores) > 4 * most:
                scores = _still_possible(scores, most, left[at])
            _look_up(scores, weight, listed)
        return _still_possible(scores, most, 0.0)

    def among(self, lists: Sequence[WordList], numbers: Collection[int]) -> dict[int, float]:
        scores = dict.fromkeys(numbers, 0.0)
        for weight, impacts, _ in lists:
            _look_up(scores, weight, cast("_Listed", impacts))
        return {number: score for number, score in scores.items() if score}

    def occurrences(self, term: str, number: int) -> list[Occurrence]:
        packed, lengths = self._postings.count(term, number), self._postings.lengths
        return self._weights.occurrences(lengths, number * FIELD_COUNT, packed)

    def _widest_counts(self, term: str, others: Sequence[str]) -> dict[int, int]:
        begun: dict[int, int] = {}
        for other in others:
            _, numbers, counts = self._postings.postings[self._postings.find(other)]
            for number, count in zip(numbers, counts, strict=True):
                known = begun.get(number)
                begun[number] = count if known is None else widest(known, count)
        exact = self._postings.posting(term)
        if exact is not None:
            for number, count in zip(exact.numbers, exact.counts, strict=True):
                # a field counts the exact word or half the begun one: half of the wider of 2c and b
                begun[number] = widest(2 * count, begun.get(number, 0))
        return begun

    def _forget(self) -> None:
        self._kept.clear()
        self._bytes = 0


def _add_up(scores: dict[int, float], weight: float, listed: _Listed) -> None:
    if not scores:
        scores.update(zip(listed.numbers, map(weight.__mul__, listed.impacts), strict=True))
        return
    known = scores.get
    for number, impact in zip(listed.numbers, listed.impacts, strict=True):
        scores[number] = known(number, 0.0) + weight * impact


def _look_up(scores: dict[int, float], weight: float, listed: _Listed) -> None:
    """Adds a word to the documents that have a score already."""
    numbers, impacts = listed.numbers, listed.impacts
    if len(numbers) < _LOOKING * len(scores):
        for number, impact in zip(numbers, impacts, strict=True):
            if number in scores:
                scores[number] += weight * impact
        return
    end = len(numbers)
    for number in scores:
        at = bisect_left(numbers, number)
        if at < end and numbers[at] == number:
            scores[number] += weight * impacts[at]


def _still_possible(scores: dict[int, float], most: int, more: float) -> dict[int, float]:
    """Those of `scores` that can reach the best `most` with `more` points to come."""
    if len(scores) <= most:
        return scores
    needed = _floor(scores, most) / BOUND - more
    return {number: score for number, score in scores.items() if score >= needed}


def _floor(scores: Mapping[int, float], most: int) -> float:
    return heapq.nlargest(most, scores.values())[-1]
