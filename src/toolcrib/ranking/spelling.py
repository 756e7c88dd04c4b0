"""Did you mean: the known term nearest to a query's word that nothing knows.

Edit distances only, against the terms that were learned. Which words are looked up, and what a
correction counts, is `reading`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

__all__ = ["Spelling"]

LEAST_LETTERS = 4
"""Shorter words have too many neighbours to mean any of them."""
TWO_ERRORS_FROM = 8
"""Letters from which two errors are looked past."""
_SLACK = 1_024
"""Terms that may be gone before it is worth looking which."""


class Spelling:
    """The terms of an index, by first letter and length.

    `frequency` says in how many documents a term stands, 0: it is gone. `learn` only queues; the
    terms are sorted in by the next `nearest`. Not thread-safe: the index uses it under its lock.
    """

    __slots__ = ("_buckets", "_frequency", "_kept", "_most", "_new", "_size")

    def __init__(self, frequency: Callable[[str], int]) -> None:
        self._frequency = frequency
        self._new: set[str] = set()
        self._most = _SLACK
        self._buckets: dict[tuple[str, int], dict[str, int]] = {}
        self._size = self._kept = 0

    def learn(self, terms: Iterable[str]) -> None:
        """Terms of a document that was added."""
        self._new.update(terms)
        if len(self._new) > self._most:  # nothing was misspelled for long, and many may be gone
            self._new = set(filter(self._frequency, self._new))
            self._most = 2 * len(self._new) + _SLACK

    def nearest(self, term: str, letters: int) -> str | None:
        """The known term nearest to `term`, which has `letters` letters as written: one error away,
        or two from `TWO_ERRORS_FROM` letters on. Swapped neighbours are one error; the first letter
        must be right. Of equally near ones, the most frequent."""
        if letters < LEAST_LETTERS or not (term.isascii() and term.isalpha()):
            return None
        self._sort_in()
        frequency = self._frequency
        most = 2 if letters >= TWO_ERRORS_FROM else 1
        found = [
            (errors, -documents, other)
            for other in self._similar(term, most)
            if other != term
            and (documents := frequency(other))
            and (errors := _errors(term, other, most)) <= most
        ]
        return min(found)[2] if found else None

    def _similar(self, term: str, most: int) -> Iterator[str]:
        """Terms of a fitting length that neither lack nor add more letters than `most` errors
        explain: a bit for each letter that occurs decides for almost all, without looking at the
        word."""
        mask = _letters(term)
        for length in range(len(term) - most, len(term) + most + 1):
            for other, letters in self._buckets.get((term[0], length), {}).items():
                differing = mask ^ letters
                if (differing & mask).bit_count() <= most >= (differing & letters).bit_count():
                    yield other

    def _sort_in(self) -> None:
        if self._size > 2 * self._kept + _SLACK:
            for bucket in self._buckets.values():
                self._new.update(filter(self._frequency, bucket))
            self._buckets, self._size = {}, 0
        if not self._buckets:
            self._kept = len(self._new)
        for term in self._new:
            if term.isascii() and term.isalpha():
                bucket = self._buckets.setdefault((term[0], len(term)), {})
                self._size += term not in bucket
                bucket[term] = _letters(term)
        self._new.clear()


def _letters(term: str) -> int:
    mask = 0
    for letter in term:
        mask |= 1 << (ord(letter) & 31)
    return mask


def _errors(one: str, other: str, most: int) -> int:
    """The edit distance with swaps of neighbours (optimal string alignment); more than `most` is
    told as `most` + 1."""
    before: list[int] = []
    above = list(range(len(other) + 1))
    for i, letter in enumerate(one, 1):
        row = [i]
        for j, facing in enumerate(other, 1):
            cost = min(above[j] + 1, row[-1] + 1, above[j - 1] + (letter != facing))
            if i > 1 and j > 1 and letter == other[j - 2] and one[i - 2] == facing:
                cost = min(cost, before[j - 2] + 1)
            row.append(cost)
        if min(row) > most:
            return most + 1
        before, above = above, row
    return above[-1]
