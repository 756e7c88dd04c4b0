"""The engine on numpy arrays: every word of a query is added up whole, a vector at a time.

A query's scores are one array over all documents. Words of many documents keep their impacts as
such an array too, others beside the numbers of their documents. They are weighed when a query first
asks for the word; a change mends the dense ones and forgets the sparse ones, which are short.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import cast

import numpy as np

from toolcrib.discovery import gain
from toolcrib.discovery.arrays import (
    Dense,
    Floats,
    Numbers,
    Short,
    Sparse,
    unpacked,
    weighed,
)
from toolcrib.discovery.engine import PREFIX_WEIGHT, WordList
from toolcrib.discovery.postings import Posting, Postings
from toolcrib.discovery.weights import FIELD_COUNT, Weights

__all__ = ["Packed"]

MAX_KEPT = 96_000_000
"""Bytes of impacts kept at once; beyond it all are forgotten, and weighed again when asked for."""
_DENSE = 8
"""A word in more than this share of the documents is dense: about there adding it becomes faster
so, and its array takes at most six times what it would take sparse."""
_FEW = 20
"""Impacts that are weighed faster one by one."""
_ROOM = 1.25
"""By how much the arrays over all documents grow."""
_SLACK = 1 + 1e-9
"""Bounds are sums of rounded numbers: this much keeps them bounds."""
_GAIN = gain.MOST * _SLACK
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
        self.expansions = self._postings.expansions

    def add(self, number: int, fields: Sequence[Sequence[str]]) -> None:
        lengths = list(map(len, fields))
        self._weights.account(lengths, 1)
        if number >= len(self._scores):
            self._make_room(int(number * _ROOM))
        self._size = max(self._size, number + 1)
        weights = zip(self._weights.factors, lengths, strict=True)
        self._factors[:, number] = [factors[length] for factors, length in weights]
        for term, at in self._postings.add(number, fields):
            kept = self._kept.get(term)
            if isinstance(kept, Dense):
                packed = self._postings.postings[term].counts[at]
                kept.put(number, self._weights.impact(lengths, 0, packed))
            elif kept is not None:
                self._drop(term, kept)

    def remove(self, number: int) -> None:
        start = number * FIELD_COUNT
        self._weights.account(self._postings.lengths[start : start + FIELD_COUNT], -1)
        for term, _ in self._postings.remove(number):
            kept = self._kept.get(term)
            if isinstance(kept, Dense):
                kept.put(number, 0.0)
            elif kept is not None:
                self._drop(term, kept)

    def settle(self) -> None:
        if self._weights.begin_epoch():
            self._weigh_lengths()
            self._forget()

    def impacts(self, term: str) -> Sparse | Dense:
        known = self._postings.id(term)
        kept = self._kept.get(known)
        if kept is None:
            numbers, impacts = self._weighed(self._postings.postings[known])
            if _DENSE * len(numbers) > self._size:
                kept = Dense(numbers, impacts, len(self._scores))
            else:
                kept = Sparse(numbers, impacts)
            if self._bytes + kept.size > MAX_KEPT:
                self._forget()
            self._kept[known] = kept
            self._bytes += kept.size
        return kept

    def expanded(self, term: str, others: Sequence[str]) -> Sparse:
        counts = np.zeros((self._size, FIELD_COUNT), np.uint8)
        postings = self._postings
        exact = postings.posting(term)
        for posting in [postings.postings[postings.id(other)] for other in others]:
            numbers, theirs = np.array(posting.numbers), unpacked(posting.counts)
            counts[numbers] = np.maximum(counts[numbers], theirs)
        if exact is not None:
            # a field counts the exact word or half the begun one: half of the wider of 2c and b
            numbers, theirs = np.array(exact.numbers), unpacked(exact.counts)
            counts[numbers] = np.maximum(counts[numbers], 2 * theirs)
        found = np.flatnonzero(counts.view(np.uint64))
        impacts = weighed(found, counts[found], self._factors, PREFIX_WEIGHT)
        impacts *= self.rarity(len(found))
        if exact is not None:
            numbers, alone = self._weighed(exact)
            at = np.searchsorted(found, numbers)
            high = np.multiply(alone, self.rarity(len(numbers)), dtype=np.float64)
            impacts[at] = np.maximum(impacts[at], high)
        return Sparse(found, impacts.astype(np.float32))

    def candidates(self, lists: Sequence[WordList], most: int) -> dict[int, float]:
        """Words are added up from the weightiest on. Before a long one it is asked whether what is
        still to come can only matter to a few documents; if so it is added to those alone."""
        scores, spare = self._scores[: self._size], self._spare[: self._size]
        scores.fill(0.0)
        left = list(accumulate((bound for _, _, bound in reversed(lists)), initial=0.0))[::-1]
        asking = left[0] / (1 + _GAIN)  # with more to come the answer is known
        for at, (weight, impacts, _) in enumerate(lists):
            arrays = cast("Sparse | Dense", impacts)
            if left[at] < asking and isinstance(arrays, Dense):
                needed = _threshold(scores, most) - left[at]
                found = np.flatnonzero(scores > needed) if needed > 0 else np.zeros(0)
                if 0 < _MANY * len(found) < len(scores):
                    return self._finished(lists[at:], found, most)
                asking = left[at] * _AGAIN
            arrays.add_to(scores, weight, spare)
        return _best(np.arange(len(scores)), scores, most)

    def _finished(
        self, lists: Sequence[WordList], found: Numbers, most: int
    ) -> dict[int, float]:
        sums, spare = self._scores[found], self._spare
        for weight, impacts, _ in lists:
            cast("Sparse | Dense", impacts).add_some(sums, found, weight, spare)
        return _best(found, sums, most)

    def _weighed(self, posting: Posting) -> tuple[Numbers, Short]:
        _, numbers, counts = posting
        places = np.array(numbers, np.intp)
        if len(numbers) <= _FEW:
            few = self._weights.impacts(self._postings.lengths, numbers, counts)
            return places, np.array(few)
        many = weighed(places, unpacked(counts), self._factors)
        return places, many.astype(np.float32)

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


def _threshold(scores: Floats, most: int) -> float:
    """A score below which a document cannot be among the `most` best; 0 where all can."""
    blocks = max(4 * most, len(scores) // _BLOCK)
    rows = len(scores) // blocks
    if rows > 1:
        scores = scores[: rows * blocks].reshape(rows, blocks).max(axis=0)
    if len(scores) <= most:
        return 0.0
    return float(np.partition(scores, len(scores) - most)[len(scores) - most]) / _GAIN


def _best(found: Numbers, sums: Floats, most: int) -> dict[int, float]:
    """The documents `found` that can be among the `most` best."""
    there = np.flatnonzero(sums > max(_threshold(sums, most), 0.0))
    return dict(zip(found[there].tolist(), sums[there].tolist(), strict=True))
