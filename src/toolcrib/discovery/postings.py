"""The inverted index and its weights: BM25F over the fields of documents, kept incrementally.

Numbers for documents and terms, nothing else: what a query means, which names it holds and who may
see what is `index`. Not thread-safe; `index` holds its lock round every use.

What is stored is raw: for each term the numbers of its documents, and how often it stands in each
of their fields. A term's impacts (its share of a document's score) are computed when a query first
asks for the term, and then kept up to date. They depend on the average length of each field, which
every change moves a little. So the averages are frozen for an epoch; once a live average has left
the frozen one by more than `DRIFT`, a new epoch begins and all impacts are forgotten. Adding and
removing therefore never re-weigh the rest, and two indexes of the same documents differ in ranking
by that drift at most, whatever their histories; which documents are found never differs.
"""

from __future__ import annotations

import math
from array import array
from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterable, Mapping, Sequence

from toolcrib.discovery.fields import FIELDS

__all__ = ["PREFIX_WEIGHT", "Postings"]

WEIGHTS = {
    "name": 1.5,
    "title": 0.7,
    "description": 1.0,
    "tags": 1.0,
    "source": 2.5,
    "parameters": 0.5,
    "notes": 0.3,
    "values": 0.2,
}
LENGTH_PENALTY = {
    "name": 0.5,
    "title": 0.5,
    "description": 0.6,
    "tags": 0.3,
    "source": 0.3,
    "parameters": 0.3,
    "notes": 0.7,
    "values": 0.7,
}
SATURATION = 1.2
"""BM25F's weights, b and k1, chosen on the development queries of bench/toolret (11 sets, 12,509
tools); its tools have neither titles nor tags, whose figures are set by analogy: a title mostly
repeats the name and, with MCP, also opens the description."""

SHORTEST = 0.5
"""A text shorter than this share of the average gains no more from being short: a description of
one word would outweigh a name. It makes no difference there (0.0003)."""

PREFIX_WEIGHT = 0.5
"""What a field counts where a query's word is only the beginning of its word (rule A5.6)."""
MAX_EXPANSIONS = 64
"""Index terms one query word is expanded to, the shortest first: they are closest to it."""
DRIFT = 0.05
"""How far an average length may leave its frozen value, as a share of it."""
MAX_KEPT = 600_000
"""Impacts kept at once, about 50 MB; beyond it all are forgotten, and computed again when asked
for."""

_BITS = 8
_MOST = (1 << _BITS) - 1
_COUNTED = _MOST >> 1
"""Occurrences counted in one field: enough to saturate, and twice as many still fit."""
_FIELD_COUNT = len(FIELDS)
_FEW = 64
"""New terms that are cheaper put in one by one than sorted in together."""
_WEIGHT = tuple(WEIGHTS[field] for field in FIELDS)
_PENALTY = tuple(LENGTH_PENALTY[field] for field in FIELDS)


class _Posting:
    """The documents of one term, by rising number; `counts` packs how often it stands in each
    field, 8 bits a field, the first field lowest."""

    __slots__ = ("counts", "impacts", "numbers", "peak")

    def __init__(self) -> None:
        self.numbers = array("Q")
        self.counts = array("Q")
        self.impacts: dict[int, float] | None = None
        self.peak = 0.0


class Postings:
    """Documents by number, each a list of terms per field.

    Numbers must rise from one `add` to the next and are never used twice.
    """

    def __init__(self) -> None:
        self._postings: dict[str, _Posting] = {}
        self._terms: dict[int, tuple[str, ...]] = {}
        self._lengths: dict[int, tuple[int, ...]] = {}
        self._sums = [0] * _FIELD_COUNT
        self._used = [0] * _FIELD_COUNT
        self._mean = [1.0] * _FIELD_COUNT
        self._kept = 0
        self._vocabulary: list[str] = []
        self._new: set[str] = set()

    def __len__(self) -> int:
        return len(self._terms)

    def __contains__(self, term: str) -> bool:
        return term in self._postings

    def add(self, number: int, fields: Sequence[Sequence[str]]) -> None:
        """Adds a document: its terms for each of `FIELDS`, in that order."""
        counts: dict[str, int] = {}
        for index, terms in enumerate(fields):
            shift = index * _BITS
            one = 1 << shift
            for term in terms:
                count = counts.get(term, 0)
                if count >> shift & _MOST < _COUNTED:
                    counts[term] = count + one
        lengths = tuple(map(len, fields))
        self._account(lengths, 1)
        self._lengths[number] = lengths
        self._terms[number] = tuple(counts)
        for term, count in counts.items():
            posting = self._postings.get(term)
            if posting is None:
                posting = self._postings[term] = _Posting()
                self._new.add(term)
            posting.numbers.append(number)
            posting.counts.append(count)
            if posting.impacts is not None:
                impact = self._impact(number, count)
                posting.impacts[number] = impact
                posting.peak = max(posting.peak, impact)
                self._kept += 1

    def remove(self, number: int) -> None:
        """Takes a document out again."""
        for term in self._terms.pop(number):
            posting = self._postings[term]
            at = bisect_left(posting.numbers, number)
            del posting.numbers[at], posting.counts[at]
            if posting.impacts is not None:
                del posting.impacts[number]
                self._kept -= 1
            if not posting.numbers:
                del self._postings[term]
        self._account(self._lengths.pop(number), -1)

    def settle(self) -> None:
        """Begins a new epoch if an average length has drifted too far. To be called after changes,
        before ranking."""
        frozen = self._mean
        totals = zip(self._sums, self._used, frozen, strict=True)
        live = [total / used if used else mean for total, used, mean in totals]
        pairs = zip(live, frozen, strict=True)
        if any(abs(now - then) > DRIFT * then for now, then in pairs):
            self._mean = live
            self._forget()

    def rarity(self, documents: int) -> float:
        """The idf of a term that stands in so many of the documents; positive."""
        return math.log(1 + (len(self._terms) - documents + 0.5) / (documents + 0.5))

    def frequency(self, term: str) -> int:
        """How many documents hold `term`."""
        posting = self._postings.get(term)
        return 0 if posting is None else len(posting.numbers)

    def impacts(self, term: str) -> tuple[Mapping[int, float], float]:
        """The impact of `term` on each of its documents, without idf, and a bound of them."""
        posting = self._postings.get(term)
        if posting is None:
            return {}, 0.0
        if posting.impacts is None:
            if self._kept > MAX_KEPT:
                self._forget()
            pairs = zip(posting.numbers, posting.counts, strict=True)
            posting.impacts = {number: self._impact(number, count) for number, count in pairs}
            posting.peak = max(posting.impacts.values())
            self._kept += len(posting.impacts)
        return posting.impacts, posting.peak

    def expansions(self, prefix: str) -> list[str]:
        """The terms that `prefix` properly begins, at most `MAX_EXPANSIONS`, shortest first."""
        words = self._sorted_terms()
        start = bisect_right(words, prefix)
        end = bisect_left(words, prefix + "\U0010ffff", start)
        found = {word for word in words[start:end] if word in self._postings}
        return sorted(found, key=lambda word: (len(word), word))[:MAX_EXPANSIONS]

    def expanded(self, term: str, others: Iterable[str]) -> dict[int, float]:
        """The impacts of the word `term` where `others`, words it begins, count half: in each field
        the best match counts, never the sum (trap T-A7)."""
        begun: dict[int, int] = {}
        for other in others:
            posting = self._postings[other]
            for number, count in zip(posting.numbers, posting.counts, strict=True):
                known = begun.get(number)
                begun[number] = count if known is None else _widest(known, count)
        impact = self._impact
        found = {number: impact(number, count, PREFIX_WEIGHT) for number, count in begun.items()}
        exact = self._postings.get(term)
        if exact is not None:
            for number, count in zip(exact.numbers, exact.counts, strict=True):
                # a field counts the exact word or half the begun one: half of the wider of 2c and b
                doubled = _widest(2 * count, begun.get(number, 0))
                found[number] = impact(number, doubled, PREFIX_WEIGHT)
        return found

    def _forget(self) -> None:
        """Drops the impacts of all terms; a ranking under way keeps those it holds."""
        self._kept = 0
        for posting in self._postings.values():
            posting.impacts = None

    def _account(self, lengths: Sequence[int], sign: int) -> None:
        for index, length in enumerate(lengths):
            if length:
                self._sums[index] += sign * length
                self._used[index] += sign

    def _impact(self, number: int, packed: int, share: float = 1.0) -> float:
        lengths, mean = self._lengths[number], self._mean
        weight = 0.0
        index = 0
        while packed:
            count = packed & _MOST
            if count:
                b = _PENALTY[index]
                relative = lengths[index] / mean[index]
                weight += count * _WEIGHT[index] / (1 - b + b * max(relative, SHORTEST))
            packed >>= _BITS
            index += 1
        weight *= share
        return weight * (SATURATION + 1) / (weight + SATURATION)

    def _sorted_terms(self) -> list[str]:
        """The vocabulary in order. Terms that went stay in it, and are skipped, until they are
        half of it; new ones are merged in at the first look after they came."""
        words = self._vocabulary
        if len(words) > 2 * len(self._postings) + 64:
            words = self._vocabulary = sorted(self._postings)
        elif len(self._new) > _FEW:
            words.extend(self._new)
            words.sort()
        else:
            for word in self._new:
                insort(words, word)
        self._new.clear()
        return words

    def occurrences(self, term: str, number: int) -> list[tuple[str, int, float]]:
        """The fields of a document that hold `term`: name, how often (what is counted of it), and
        the weight of one occurrence there. For explanations: a document's impact is what the sum of
        count × weight saturates to."""
        posting = self._postings.get(term)
        at = bisect_left(posting.numbers, number) if posting is not None else 0
        if posting is None or at == len(posting.numbers) or posting.numbers[at] != number:
            return []
        found: list[tuple[str, int, float]] = []
        for index, field in enumerate(FIELDS):
            count = posting.counts[at] >> index * _BITS & _MOST
            if count:
                b = _PENALTY[index]
                relative = max(self._lengths[number][index] / self._mean[index], SHORTEST)
                found.append((field, count, _WEIGHT[index] / (1 - b + b * relative)))
        return found


def _widest(one: int, other: int) -> int:
    """Two packed counts as one: the higher in each field."""
    wide = 0
    for shift in range(0, _FIELD_COUNT * _BITS, _BITS):
        wide |= max(one >> shift & _MOST, other >> shift & _MOST) << shift
    return wide
