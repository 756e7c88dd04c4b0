"""The engine on numpy arrays: every word of a query is added up whole, a vector at a time.

A query's scores are one array over all documents. Words of many documents keep their impacts as
such an array too, others beside the numbers of their documents. They are weighed when a query first
asks for the word; a change mends the dense ones and forgets the sparse ones, which are short.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import accumulate
from typing import cast

import numpy as np

from toolcrib.ranking.arrays import (
    Counts,
    Dense,
    Floats,
    Numbers,
    Short,
    Sparse,
    unpacked,
    weighed,
)
from toolcrib.ranking.engine import PREFIX_WEIGHT, Occurrence, WordList
from toolcrib.ranking.gain import BOUND
from toolcrib.ranking.postings import Postings
from toolcrib.ranking.weights import FIELD_COUNT, Weights

__all__ = ["Packed"]

MAX_KEPT = 96_000_000
"""Bytes of impacts kept at once; beyond it all are forgotten, and weighed again when asked for."""
_DENSE = 8
"""A word in more than this share of the documents is dense: about there adding it becomes faster
so, and its array takes at most six times what it would take sparse."""
_ROOM = 1.25
"""By how much the arrays over all documents grow."""
_MANY = 8
"""Words are added to fewer than this share of the documents alone, otherwise to all."""
_AGAIN = 0.7
"""Once it was in vain, it is asked again when so much less is still to come."""
_BLOCK = 64
"""Documents of whose scores only the highest is looked at to find the threshold: there are as many
at least above it as if all were looked at."""


class Packed:
    """An `Engine` that needs numpy."""

    def __init__(self) -> None:
        self._postings = Postings()
        self._weights = Weights()
        self._kept: dict[int, Sparse | Dense] = {}
        self._bytes = 0
        self._size = 0
        self._make_room(1_000)
        self.rarities = self._postings.rarities
        self.rarity = self._postings.rarity
        self.frequency = self._postings.frequency
        self.holding = self._postings.holding
        self.expansions = self._postings.expansions

    def add(self, number: int, fields: Sequence[Sequence[str]]) -> None:
        lengths = list(map(len, fields))
        self._weights.account(lengths, 1)
        if number >= len(self._scores):
            self._make_room(int(number * _ROOM))
        self._size = max(self._size, number + 1)
        weights = zip(self._weights.factors, lengths, strict=True)
        self._factors[:, number] = [factors[length] for factors, length in weights]
        self._postings.add(number, fields)
        for term in self._postings.terms(number):
            kept = self._kept.get(term)
            if isinstance(kept, Dense):
                _, numbers, counts = self._postings.postings[term]
                packed = counts[bisect_left(numbers, number)]
                kept.put(number, self._weights.impact(lengths, 0, packed))
            elif kept is not None:
                self._drop(term, kept)

    def remove(self, number: int) -> None:
        for term in self._postings.terms(number):
            kept = self._kept.get(term)
            if isinstance(kept, Dense):
                kept.put(number, 0.0)
            elif kept is not None:
                self._drop(term, kept)
        self._postings.remove(number)
        start = number * FIELD_COUNT
        self._weights.account(self._postings.lengths[start : start + FIELD_COUNT], -1)

    def settle(self) -> None:
        if self._weights.begin_epoch():
            self._weigh_lengths()
            self._forget()

    def prepare(self, terms: Iterable[str]) -> None:
        """Weighs those that are not kept, all at once: that is what an array is good at."""
        if self._bytes > MAX_KEPT:
            self._forget()
        postings = self._postings
        cold = [term for term in map(postings.find, terms) if term not in self._kept]
        numbers, counts = array("I"), array("Q")
        ends: list[int] = []
        for term in cold:
            posting = postings.postings[term]
            numbers.extend(posting.numbers)
            counts.extend(posting.counts)
            ends.append(len(numbers))
        if numbers:
            places, starts = np.array(numbers, np.intp), [0, *ends[:-1]]
            impacts = weighed(places, unpacked(counts), self._factors).astype(np.float32)
            peaks = np.maximum.reduceat(impacts, starts).tolist()
            for term, start, end, peak in zip(cold, starts, ends, peaks, strict=True):
                self._keep(term, places[start:end], impacts[start:end], peak)

    def impacts(self, term: str) -> Sparse | Dense:
        known = self._postings.find(term)
        kept = self._kept.get(known)
        if kept is None:
            self.prepare([term])
            kept = self._kept[known]
        return kept

    def expanded(self, term: str, others: Sequence[str]) -> Sparse:
        postings = self._postings
        numbers, packed = array("I"), array("Q")
        for other in others:
            posting = postings.postings[postings.find(other)]
            numbers.extend(posting.numbers)
            packed.extend(posting.counts)
        begun = len(numbers)
        exact = postings.posting(term)
        if exact is not None:
            numbers.extend(exact.numbers)
            packed.extend(exact.counts)
        places, counts = np.array(numbers, np.intp), unpacked(packed)
        counts[begun:] *= 2  # a field counts the wider of the exact word and half the begun one
        found, widest = _widest(places, counts)
        impacts = weighed(found, widest, self._factors, PREFIX_WEIGHT) * self.rarity(len(found))
        if exact is not None:
            alone = weighed(places[begun:], counts[begun:] // 2, self._factors).astype(np.float32)
            at = np.searchsorted(found, places[begun:])
            high = alone.astype(np.float64) * self.rarity(len(alone))
            impacts[at] = np.maximum(impacts[at], high)
        rounded = impacts.astype(np.float32)
        return Sparse(found, rounded, float(rounded.max(initial=0.0)))

    def given(self, impacts: Mapping[int, float]) -> Sparse:
        numbers = sorted(impacts)
        shares = np.array([impacts[number] for number in numbers], np.float32)
        return Sparse(np.array(numbers, np.intp), shares, float(shares.max(initial=0.0)))

    def candidates(self, lists: Sequence[WordList], most: int) -> dict[int, float]:
        """Words are added up from the weightiest on. Before a long one it is asked whether what is
        still to come can only matter to a few documents; if so it is added to those alone."""
        scores, spare = self._scores[: self._size], self._spare[: self._size]
        scores.fill(0.0)
        left = list(accumulate((bound for _, _, bound in reversed(lists)), initial=0.0))[::-1]
        asking = left[0] / (1 + BOUND)  # with more to come the answer is known
        for at, (weight, impacts, _) in enumerate(lists):
            arrays = cast("Sparse | Dense", impacts)
            if left[at] < asking and isinstance(arrays, Dense):
                needed = _threshold(scores, most) - left[at]
                found = (scores > max(needed, 0.0)).nonzero()[0]
                if needed > 0 and _MANY * len(found) < len(scores):
                    return self._finished(lists[at:], found, most)
                asking = left[at] * _AGAIN
            arrays.add_to(scores, weight, spare)
        return _best(np.arange(len(scores)), scores, most)

    def among(self, lists: Sequence[WordList], numbers: Collection[int]) -> dict[int, float]:
        found = np.fromiter(numbers, np.intp, len(numbers))
        sums = np.zeros(len(found))
        self._add_some(lists, found, sums)
        there = sums.nonzero()[0]
        return dict(zip(found[there].tolist(), sums[there].tolist(), strict=True))

    def occurrences(self, term: str, number: int) -> list[Occurrence]:
        packed, lengths = self._postings.count(term, number), self._postings.lengths
        return self._weights.occurrences(lengths, number * FIELD_COUNT, packed)

    def _finished(self, lists: Sequence[WordList], found: Numbers, most: int) -> dict[int, float]:
        sums = self._scores[found]
        self._add_some(lists, found, sums)
        return _best(found, sums, most)

    def _add_some(self, lists: Sequence[WordList], found: Numbers, sums: Floats) -> None:
        spare = self._spare
        for weight, impacts, _ in lists:
            cast("Sparse | Dense", impacts).add_some(sums, found, weight, spare)

    def _keep(self, term: int, numbers: Numbers, impacts: Short, peak: float) -> None:
        if _DENSE * len(numbers) > self._size:
            kept: Sparse | Dense = Dense(numbers, impacts, peak, len(self._scores))
        else:
            kept = Sparse(numbers.copy(), impacts, peak)
        self._kept[term] = kept
        self._bytes += kept.size

    def _make_room(self, room: int) -> None:
        """Widens the arrays over all documents; dense impacts are weighed again."""
        self._factors = np.zeros((FIELD_COUNT, room))
        self._weigh_lengths()
        self._scores = np.zeros(room)
        self._spare = np.zeros(room)
        self._forget()

    def _weigh_lengths(self) -> None:
        lengths = np.array(self._postings.lengths).reshape(-1, FIELD_COUNT)
        for index, factors in enumerate(self._weights.factors):
            there, where = np.unique(lengths[:, index], return_inverse=True)
            known = np.array([factors[length] for length in there.tolist()])
            self._factors[index, : len(where)] = known[where]

    def _drop(self, term: int, kept: Sparse) -> None:
        self._bytes -= kept.size
        del self._kept[term]

    def _forget(self) -> None:
        self._kept.clear()
        self._bytes = 0


def _widest(places: Numbers, counts: Counts) -> tuple[Numbers, Counts]:
    """The documents that occur in `places`, of which there is one at least, by rising number, each
    with the highest count of each field."""
    order = places.argsort(kind="stable")
    rising = places[order]
    starts = np.concatenate(([0], (rising[1:] != rising[:-1]).nonzero()[0] + 1))
    return rising[starts], np.maximum.reduceat(counts[order], starts)


def _threshold(scores: Floats, most: int) -> float:
    """A score below which a document cannot be among the `most` best; 0 where all can."""
    blocks = max(4 * most, len(scores) // _BLOCK)
    rows = len(scores) // blocks
    if rows > 1:
        scores = scores[: rows * blocks].reshape(rows, blocks).max(axis=0)
    if len(scores) <= most:
        return 0.0
    return float(np.partition(scores, len(scores) - most)[len(scores) - most]) / BOUND


def _best(found: Numbers, sums: Floats, most: int) -> dict[int, float]:
    """The documents `found` that can be among the `most` best."""
    there = (sums > max(_threshold(sums, most), 0.0)).nonzero()[0]
    return dict(zip(found[there].tolist(), sums[there].tolist(), strict=True))
