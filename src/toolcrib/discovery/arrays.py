"""Impacts as numpy arrays: how they are weighed, kept and added up, for the engine `packed`.

The same operations in the same order as `weights` does in Python, so that both give the same bits.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from toolcrib.discovery.weights import (
    FIELD_COUNT,
    LENGTH_PENALTY,
    SATURATION,
    SHORTEST,
    WEIGHTS,
)

__all__ = ["Counts", "Dense", "Floats", "Lengths", "Numbers", "Sparse", "by_field", "weighed"]

Floats = npt.NDArray[np.float64]
Short = npt.NDArray[np.float32]
"""Impacts are kept in half the space; their sums are not."""
Numbers = npt.NDArray[np.intp]
Counts = npt.NDArray[np.uint8]
"""Documents × fields."""
Lengths = npt.NDArray[np.uint32]
"""Fields × documents."""


def by_field(packed: Sequence[int]) -> Counts:
    """Packed counts, taken apart."""
    return np.array(packed, "<u8").view(np.uint8).reshape(-1, FIELD_COUNT)


def weighed(
    numbers: Numbers, counts: Counts, lengths: Lengths, mean: Sequence[float], share: float = 1.0
) -> Floats:
    """The impacts of a term that stands so often in the fields of those documents."""
    weight = np.zeros(len(numbers))
    for index in np.flatnonzero(counts.any(axis=0)).tolist():
        column = counts[:, index]
        at = np.flatnonzero(column)
        divisor = lengths[index, numbers[at]] / mean[index]
        np.maximum(divisor, SHORTEST, out=divisor)
        divisor *= LENGTH_PENALTY[index]
        divisor += 1 - LENGTH_PENALTY[index]
        weight[at] += column[at] * WEIGHTS[index] / divisor
    weight *= share
    return weight * (SATURATION + 1) / (weight + SATURATION)


class Sparse:
    """`Impacts` of few documents, beside their numbers."""

    __slots__ = ("impacts", "numbers", "peak")

    def __init__(self, numbers: Numbers, impacts: Short) -> None:
        self.numbers = numbers
        self.impacts = impacts
        self.peak = float(impacts.max(initial=0.0))

    @property
    def size(self) -> int:
        """Its bytes."""
        return self.numbers.nbytes + self.impacts.nbytes

    def add_to(self, scores: Floats, weight: float, _: Floats) -> None:
        """Adds the weighted impacts to the scores of all documents."""
        scores[self.numbers] += np.multiply(self.impacts, weight, dtype=np.float64)


class Dense:
    """`Impacts` of many documents: one for each there is or could be."""

    __slots__ = ("impacts", "peak")

    def __init__(self, numbers: Numbers, impacts: Short, room: int) -> None:
        self.impacts = np.zeros(room, np.float32)
        self.impacts[numbers] = impacts
        self.peak = float(impacts.max(initial=0.0))

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
        np.multiply(self.impacts[: len(scores)], weight, out=spare, dtype=np.float64)
        np.add(scores, spare, out=scores)
