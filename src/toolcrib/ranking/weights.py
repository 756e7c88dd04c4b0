"""How much a term counts in a document: BM25F over fields, with averages that are frozen a while.

An impact (a term's share of a document's score) depends on the average length of each field, which
every change moves a little. So the averages are frozen for an epoch; once a live average has left
the frozen one by more than `DRIFT`, a new epoch begins and what was weighed is worth nothing.
Adding and removing therefore never re-weigh the rest, and two indexes of the same documents differ
in ranking by that drift at most, whatever their histories; which documents are found never differs.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence

from toolcrib.ranking.engine import Occurrence
from toolcrib.ranking.fields import FIELDS

__all__ = [
    "BITS",
    "COUNTED",
    "FIELD_COUNT",
    "LENGTH_PENALTY",
    "MOST",
    "SATURATION",
    "SHORTEST",
    "WEIGHTS",
    "Weights",
    "widest",
]

_WEIGHTS = {
    "name": 1.5,
    "title": 0.7,
    "description": 1.0,
    "tags": 1.0,
    "source": 2.5,
    "parameters": 0.5,
    "notes": 0.3,
    "values": 0.2,
}
_LENGTH_PENALTY = {
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
DRIFT = 0.05
"""How far an average length may leave its frozen value, as a share of it."""

BITS = 8
"""Bits of a packed count a field, the first field lowest."""
MOST = (1 << BITS) - 1
COUNTED = MOST >> 1
"""Occurrences counted in one field: enough to saturate, and twice as many still fit."""
FIELD_COUNT = len(FIELDS)
WEIGHTS = tuple(_WEIGHTS[field] for field in FIELDS)
LENGTH_PENALTY = tuple(_LENGTH_PENALTY[field] for field in FIELDS)


class _Factors(dict[int, float]):
    """What one occurrence in a field weighs, by the field's length; filled as lengths are met."""

    def __init__(self, weight: float, penalty: float, mean: float) -> None:
        self._weight = weight
        self._penalty = penalty
        self._mean = mean

    def __missing__(self, length: int) -> float:
        b = self._penalty
        found = self[length] = self._weight / (1 - b + b * max(length / self._mean, SHORTEST))
        return found


class Weights:
    """The average lengths of the documents there are, and the impacts that follow from them.
    `factors` has, for each field and length of it, what one occurrence weighs."""

    __slots__ = ("_mean", "_sums", "_used", "factors")

    def __init__(self) -> None:
        self._sums = [0] * FIELD_COUNT
        self._used = [0] * FIELD_COUNT
        self._freeze([1.0] * FIELD_COUNT)

    def account(self, lengths: Sequence[int], sign: int) -> None:
        """Counts a document's lengths in (1) or out (-1)."""
        for index, length in enumerate(lengths):
            if length:
                self._sums[index] += sign * length
                self._used[index] += sign

    def begin_epoch(self) -> bool:
        """Whether an average has drifted too far, so that all impacts are other ones now."""
        frozen = self._mean
        totals = zip(self._sums, self._used, frozen, strict=True)
        live = [total / used if used else mean for total, used, mean in totals]
        if all(abs(n - then) <= DRIFT * then for n, then in zip(live, frozen, strict=True)):
            return False
        self._freeze(live)
        return True

    def impact(self, lengths: Sequence[int], start: int, packed: int, share: float = 1.0) -> float:
        """The impact of a term that stands `packed` times in the document whose lengths begin at
        `start`."""
        weight = 0.0
        index = 0
        while packed:
            count = packed & MOST
            if count:
                weight += count * self.factors[index][lengths[start + index]]
            packed >>= BITS
            index += 1
        weight *= share
        return weight * (SATURATION + 1) / (weight + SATURATION)

    def impacts(
        self, lengths: Sequence[int], numbers: Sequence[int], counts: Sequence[int]
    ) -> array[float]:
        """The impacts of a term on all its documents, rounded as both engines keep them."""
        factors, impact = self.factors[0], self.impact
        return array(
            "f",
            [
                (weight := packed * factors[lengths[number * FIELD_COUNT]])
                * (SATURATION + 1)
                / (weight + SATURATION)
                if packed <= MOST  # most stand in the first field only: half the time is saved
                else impact(lengths, number * FIELD_COUNT, packed)
                for number, packed in zip(numbers, counts, strict=True)
            ],
        )

    def occurrences(self, lengths: Sequence[int], start: int, packed: int) -> list[Occurrence]:
        """The fields of the document whose lengths begin at `start` that `packed` counts in."""
        return [
            Occurrence(field, count, self.factors[index][lengths[start + index]])
            for index, field in enumerate(FIELDS)
            if (count := packed >> index * BITS & MOST)
        ]

    def _freeze(self, mean: list[float]) -> None:
        self._mean = mean
        self.factors = [
            _Factors(weight, b, average)
            for weight, b, average in zip(WEIGHTS, LENGTH_PENALTY, mean, strict=True)
        ]


def widest(one: int, other: int) -> int:
    """Two packed counts as one: the higher in each field."""
    wide = 0
    for shift in range(0, FIELD_COUNT * BITS, BITS):
        wide |= max(one >> shift & MOST, other >> shift & MOST) << shift
    return wide
