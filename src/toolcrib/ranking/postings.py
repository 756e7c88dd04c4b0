"""The raw inverted index, kept incrementally: which documents hold a term, how often in each field.

Compact arrays of numbers; what they weigh is `weights`, and how they are ranked `scan` and
`packed`, which both stand on this.
"""

from __future__ import annotations

import math
from array import array
from bisect import bisect_left
from collections.abc import Sequence
from typing import NamedTuple

from toolcrib.ranking.vocabulary import Vocabulary
from toolcrib.ranking.weights import BITS, COUNTED, FIELD_COUNT, MOST

__all__ = ["Posting", "Postings"]


class Posting(NamedTuple):
    """The documents of one term, by rising number, and beside them how often it stands in each of
    their fields, packed."""

    term: str
    numbers: array[int]
    counts: array[int]


class _Rarities(dict[str, float]):
    """The idf of each term asked for, until the next change."""

    def __init__(self, postings: Postings) -> None:
        self._postings = postings

    def __missing__(self, term: str) -> float:
        postings = self._postings
        found = self[term] = postings.rarity(postings.frequency(term))
        return found


_NOTHING = Posting("", array("I"), array("Q"))


class Postings:
    """Documents by number. Terms have ids, which are used again once their last document went:
    `postings` has the posting of each id, `lengths` the number of terms in each field of each
    document, that of number n from n × `FIELD_COUNT` on."""

    __slots__ = ("_free", "_ids", "_terms", "_vocabulary", "lengths", "postings", "rarities")

    def __init__(self) -> None:
        self._ids: dict[str, int] = {}
        self.postings: list[Posting] = []
        self._free: list[int] = []
        self._terms: dict[int, array[int]] = {}
        self.lengths = array("I")
        self._vocabulary = Vocabulary(self._ids)
        self.rarities = _Rarities(self)

    def add(self, number: int, fields: Sequence[Sequence[str]]) -> None:
        """Adds a document."""
        self.rarities.clear()
        end = (number + 1) * FIELD_COUNT
        if len(self.lengths) < end:
            self.lengths.extend([0] * (end - len(self.lengths)))
        self.lengths[end - FIELD_COUNT : end] = array("I", map(len, fields))
        ids, postings = self._ids, self.postings
        terms = self._terms[number] = array("I")
        for term, count in _counted(fields).items():
            known = ids.get(term)
            if known is None:
                known = self._new_id(term)
            terms.append(known)
            _, numbers, counts = postings[known]
            if numbers and numbers[-1] > number:
                at = bisect_left(numbers, number)
                numbers.insert(at, number)
                counts.insert(at, count)
            else:
                numbers.append(number)
                counts.append(count)

    def remove(self, number: int) -> None:
        """Takes a document out again. Its lengths stay readable until its number is used again."""
        self.rarities.clear()
        for term in self._terms.pop(number):
            word, numbers, counts = self.postings[term]
            at = bisect_left(numbers, number)
            del numbers[at], counts[at]
            if not numbers:
                self.postings[term] = _NOTHING
                del self._ids[word]
                self._free.append(term)

    def terms(self, number: int) -> array[int]:
        """The ids of a document's terms."""
        return self._terms[number]

    def find(self, term: str) -> int:
        """The id of a term that stands in some document."""
        return self._ids[term]

    def posting(self, term: str) -> Posting | None:
        """The documents of `term`, if there are any."""
        known = self._ids.get(term)
        return None if known is None else self.postings[known]

    def frequency(self, term: str) -> int:
        """How many documents hold `term`."""
        known = self._ids.get(term)
        return 0 if known is None else len(self.postings[known].numbers)

    def holding(self, term: str) -> array[int]:
        """The documents that hold `term`, by rising number."""
        known = self._ids.get(term)
        return _NOTHING.numbers if known is None else self.postings[known].numbers

    def count(self, term: str, number: int) -> int:
        """How often `term` stands in the fields of a document, packed."""
        posting = self.posting(term) or _NOTHING
        at = bisect_left(posting.numbers, number)
        is_there = at < len(posting.numbers) and posting.numbers[at] == number
        return posting.counts[at] if is_there else 0

    def rarity(self, documents: int) -> float:
        """The idf of a term that stands in so many of the documents; positive."""
        return math.log(1 + (len(self._terms) - documents + 0.5) / (documents + 0.5))

    def expansions(self, prefix: str) -> list[str]:
        """The terms that `prefix` properly begins, the shortest first, boundedly many."""
        return self._vocabulary.begun_by(prefix)

    def _new_id(self, term: str) -> int:
        self._vocabulary.add(term)
        if self._free:
            known = self._free.pop()
        else:
            known = len(self.postings)
            self.postings.append(_NOTHING)
        self.postings[known] = Posting(term, array("I"), array("Q"))
        self._ids[term] = known
        return known


def _counted(fields: Sequence[Sequence[str]]) -> dict[str, int]:
    """How often each term stands in each field, packed."""
    counts: dict[str, int] = {}
    known = counts.get
    for index, terms in enumerate(fields):
        shift = index * BITS
        one = 1 << shift
        if len(terms) <= COUNTED:
            for term in terms:
                counts[term] = known(term, 0) + one
        else:
            for term in terms:
                count = known(term, 0)
                if count >> shift & MOST < COUNTED:
                    counts[term] = count + one
    return counts
