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

from toolcrib.discovery.vocabulary import Vocabulary
from toolcrib.discovery.weights import BITS, COUNTED, FIELD_COUNT, MOST

__all__ = ["Place", "Posting", "Postings"]


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


class Place(NamedTuple):
    """Where a change took place: the term's id, and the position in its posting."""

    term: int
    at: int


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

    def add(self, number: int, fields: Sequence[Sequence[str]]) -> list[Place]:
        """Adds a document, and tells where its terms went."""
        self.rarities.clear()
        end = (number + 1) * FIELD_COUNT
        if len(self.lengths) < end:
            self.lengths.extend([0] * (end - len(self.lengths)))
        self.lengths[end - FIELD_COUNT : end] = array("I", map(len, fields))
        places = [self._file(term, number, count) for term, count in _counted(fields).items()]
        self._terms[number] = array("I", [place.term for place in places])
        return places

    def remove(self, number: int) -> list[Place]:
        """Takes a document out again, and tells where its terms were. Its lengths stay readable
        until its number is used again."""
        self.rarities.clear()
        places: list[Place] = []
        for term in self._terms.pop(number):
            word, numbers, counts = self.postings[term]
            at = bisect_left(numbers, number)
            del numbers[at], counts[at]
            places.append(Place(term, at))
            if not numbers:
                del self._ids[word]
                self._free.append(term)
        return places

    def id(self, term: str) -> int:
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

    def rarity(self, documents: int) -> float:
        """The idf of a term that stands in so many of the documents; positive."""
        return math.log(1 + (len(self._terms) - documents + 0.5) / (documents + 0.5))

    def expansions(self, prefix: str) -> list[str]:
        """The terms that `prefix` properly begins, the shortest first, boundedly many."""
        return self._vocabulary.begun_by(prefix)

    def _file(self, term: str, number: int, count: int) -> Place:
        known = self._ids.get(term)
        if known is None:
            known = self._new_id(term)
        _, numbers, counts = self.postings[known]
        at = len(numbers)
        if at and numbers[-1] > number:
            at = bisect_left(numbers, number)
            numbers.insert(at, number)
            counts.insert(at, count)
        else:
            numbers.append(number)
            counts.append(count)
        return Place(known, at)

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
    for index, terms in enumerate(fields):
        shift = index * BITS
        one = 1 << shift
        for term in terms:
            count = counts.get(term, 0)
            if count >> shift & MOST < COUNTED:
                counts[term] = count + one
    return counts
