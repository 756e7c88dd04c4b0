"""The engine on numpy arrays: every word of a query is added up whole, a vector at a time.

A query's scores are one array over all documents. Words of many documents keep their impacts as
such an array too, others beside the numbers of their documents. They are weighed when a query first
asks for the word; a change mends the dense ones and forgets the sparse ones, which are short.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import numpy as np

from toolcrib.discovery import gain
from toolcrib.discovery.arrays import (
    Dense,
    Floats,
    Numbers,
    Short,
    Sparse,
    by_field,
    weighed,
)
from toolcrib.discovery.engine import PREFIX_WEIGHT, WordList
from toolcrib.discovery.postings import Posting, Postings
from toolcrib.discovery.weights import FIELD_COUNT, Weights

__all__ = ["Packed"]

MAX_KEPT = 96_000_000
"""Bytes of impacts kept at once; beyond it all are forgotten, and weighed again when asked for."""
_DENSE = 16
"""A word in more than this share of the documents is dense: about there adding it becomes faster
so, and its array takes at most six times what it would take sparse."""
_FEW = 48
"""Impacts that are weighed faster one by one."""
_ROOM = 1.25
"""By how much the arrays over all documents grow."""
_SLACK = 1 + 1e-9
"""Bounds are sums of rounded numbers: this much keeps them bounds."""
_GAIN = gain.MOST * _SLACK
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
        self.rarity = self._postings.rarity
        self.frequency = self._postings.frequency
        self.expansions = self._postings.expansions

    def add(self, number: int, fields: Sequence[Sequence[str]]) -> None:
        lengths = list(map(len, fields))
        self._weights.account(lengths, 1)
        if number >= len(self._scores):
            self._make_room(int(number * _ROOM))
        self._size = max(self._size, number + 1)
        self._lengths[:, number] = lengths
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
            numbers, theirs = np.array(posting.numbers), by_field(posting.counts)
            counts[numbers] = np.maximum(counts[numbers], theirs)
        if exact is not None:
            # a field counts the exact word or half the begun one: half of the wider of 2c and b
            numbers, theirs = np.array(exact.numbers), by_field(exact.counts)
            counts[numbers] = np.maximum(counts[numbers], 2 * theirs)
        found = np.flatnonzero(counts.view(np.uint64))
        impacts = weighed(found, counts[found], self._lengths, self._weights.mean, PREFIX_WEIGHT)
        impacts *= self.rarity(len(found))
        if exact is not None:
            numbers, alone = self._weighed(exact)
            at = np.searchsorted(found, numbers)
            high = np.multiply(alone, self.rarity(len(numbers)), dtype=np.float64)
            impacts[at] = np.maximum(impacts[at], high)
        return Sparse(found, impacts.astype(np.float32))

    def candidates(self, lists: Sequence[WordList], most: int) -> dict[int, float]:
        scores, spare = self._scores[: self._size], self._spare[: self._size]
        scores.fill(0.0)
        for weight, impacts, _ in lists:
            cast("Sparse | Dense", impacts).add_to(scores, weight, spare)
        found = np.flatnonzero(scores > _below(scores, most))
        return dict(zip(found.tolist(), scores[found].tolist(), strict=True))

    def _weighed(self, posting: Posting) -> tuple[Numbers, Short]:
        _, numbers, counts = posting
        places = np.array(numbers, np.intp)
        if len(numbers) <= _FEW:
            few = self._weights.impacts(self._postings.lengths, numbers, counts)
            return places, np.array(few)
        many = weighed(places, by_field(counts), self._lengths, self._weights.mean)
        return places, many.astype(np.float32)

    def _make_room(self, room: int) -> None:
        """Widens the arrays over all documents; dense impacts are weighed again."""
        lengths = np.zeros((FIELD_COUNT, room), np.uint32)
        if self._size:
            lengths[:, : self._size] = self._lengths[:, : self._size]
        self._lengths = lengths
        self._scores = np.zeros(room)
        self._spare = np.zeros(room)
        self._forget()

    def _drop(self, term: int, kept: Sparse) -> None:
        self._bytes -= kept.size
        del self._kept[term]

    def _forget(self) -> None:
        self._kept.clear()
        self._bytes = 0


def _below(scores: Floats, most: int) -> float:
    """A score that all documents exceed which can be among the `most` best."""
    blocks = max(4 * most, len(scores) // _BLOCK)
    rows = len(scores) // blocks
    if rows > 1:
        scores = scores[: rows * blocks].reshape(rows, blocks).max(axis=0)
    if len(scores) <= most:
        return 0.0
    least = float(np.partition(scores, len(scores) - most)[len(scores) - most])
    return max(least / _GAIN * (1 - 1e-9), 0.0)
