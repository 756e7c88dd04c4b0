"""Impacts as numpy arrays: how they are weighed, kept and added up, for the engine `packed`.

The same operations in the same order as `weights` does in Python, so that both give the same bits.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from toolcrib.ranking.weights import BITS, FIELD_COUNT, MOST, SATURATION

__all__ = [
    "Counts",
    "Dense",
    "Factors",
    "Floats",
    "Numbers",
    "Short",
    "Sparse",
    "unpacked",
    "weighed",
]

Floats = npt.NDArray[np.float64]
Short = npt.NDArray[np.float32]
"""Impacts are kept in half the space; their sums are not."""
Numbers = npt.NDArray[np.intp]
Counts = npt.NDArray[np.uint8]
"""Documents × fields."""
Factors = npt.NDArray[np.float64]
"""Fields × documents: what one occurrence weighs."""


def unpacked(packed: Sequence[int]) -> Counts:
    """Packed counts, taken apart."""
    return np.array(packed, "<u8").view(np.uint8).reshape(-1, FIELD_COUNT)


def weighed(numbers: Numbers, counts: Counts, factors: Factors, share: float = 1.0) -> Floats:
    """The impacts of a term that stands so often in the fields of those documents."""
    weight = np.zeros(len(numbers))
    present = int(np.bitwise_or.reduce(counts.view("<u8"), axis=None))
    for index in range(FIELD_COUNT):
        if present >> index * BITS & MOST:
            weight += counts[:, index] * factors[index][numbers]
    weight *= share
    return weight * (SATURATION + 1) / (weight + SATURATION)


class Sparse:
    """`Impacts` of few documents, beside their numbers."""

    __slots__ = ("impacts", "numbers", "peak")

    def __init__(self, numbers: Numbers, impacts: Short, peak: float) -> None:
        self.numbers = numbers
        self.impacts = impacts.astype(np.float64)
        self.peak = peak

    @property
    def size(self) -> int:
        """Its bytes."""
        return self.numbers.nbytes + self.impacts.nbytes

    def add_to(self, scores: Floats, weight: float, _: Floats) -> None:
        """Adds the weighted impacts to the scores of all documents."""
        scores[self.numbers] += self.impacts * weight

    def add_some(self, sums: Floats, found: Numbers, weight: float, spare: Floats) -> None:
        """Adds them to the sums of the documents `found` only, by way of `spare`."""
        spare[found] = 0.0
        spare[self.numbers] = self.impacts
        sums += spare[found] * weight


class Dense:
    """`Impacts` of many documents: one for each there is or could be."""

    __slots__ = ("impacts", "peak")

    def __init__(self, numbers: Numbers, impacts: Short, peak: float, room: int) -> None:
        self.impacts = np.zeros(room, np.float32)
        self.impacts[numbers] = impacts
        self.peak = peak

    @property
    def size(self) -> int:
        """Its bytes."""
        return self.impacts.nbytes

    def put(self, number: int, impact: float) -> None:
        """Sets the impact of one document; 0 takes it out."""
        impacts = self.impacts
        was, impacts[number] = impacts[number], impact
        if was == self.peak:
            self.peak = float(impacts.max())
        else:
            self.peak = max(self.peak, float(impacts[number]))

    def add_to(self, scores: Floats, weight: float, spare: Floats) -> None:
        """Adds the weighted impacts to the scores of all documents, by way of `spare`."""
        np.copyto(spare, self.impacts[: len(scores)])
        np.multiply(spare, weight, out=spare)
        np.add(scores, spare, out=scores)

    def add_some(self, sums: Floats, found: Numbers, weight: float, _: Floats) -> None:
        """Adds them to the sums of the documents `found` only."""
        sums += self.impacts[found].astype(np.float64) * weight
