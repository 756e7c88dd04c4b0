"""Vectors by key in one block of memory, and how alike each is to a query's.

Stored as int8 with one scale a row: a quarter of float32's memory at about its speed, and no
measurable loss in what is found. Products are of whole numbers, so they are the same wherever a row
lies, and cost the one thread they run in. No lock: `hybrid` has one.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from toolcrib.dense.encoder import Vectors

__all__ = ["NOTHING_ALIKE", "Matrix", "Similarities"]

_LEAST_ROWS = 64
_STEPS = np.float32(127)
_QUERY_STEPS = 32_000
_LARGEST_SUM = 2**31 - 1


class Matrix:
    """Rows of `dimensions`, found by key. Adding and removing cost no more than the row: freed rows
    are used again, the block grows and shrinks by halves."""

    def __init__(self, dimensions: int) -> None:
        self._rows = np.zeros((_LEAST_ROWS, dimensions), np.int8)
        self._scales = np.zeros(_LEAST_ROWS, np.float32)
        self._slots: dict[str, int] = {}
        self._keys: list[str | None] = []
        self._free: list[int] = []

    def __len__(self) -> int:
        return len(self._slots)

    def __contains__(self, key: str) -> bool:
        return key in self._slots

    def put(self, key: str, vector: Vectors) -> None:
        """Adds the vector of `key` (one row, of length 1), in place of the one it has."""
        slot = self._slots.get(key)
        if slot is None:
            slot = self._new_slot(key)
        largest = np.abs(vector).max(initial=0) or np.float32(1)
        self._rows[slot] = np.rint(vector * (_STEPS / largest))
        self._scales[slot] = largest / _STEPS

    def drop(self, key: str) -> None:
        """Takes the vector of `key` out; unknown keys are ignored."""
        slot = self._slots.pop(key, None)
        if slot is None:
            return
        self._keys[slot] = None
        self._scales[slot] = 0
        self._free.append(slot)
        if len(self._slots) * 4 < len(self._rows) and len(self._rows) > _LEAST_ROWS:
            self._shrink()

    def similarities(self, vector: Vectors) -> Similarities:
        """How alike every row is to `vector`: their dot products."""
        used = len(self._keys)
        steps = min(_QUERY_STEPS, _LARGEST_SUM // (int(_STEPS) * len(vector)))
        largest = float(np.abs(vector).max(initial=0)) or 1.0
        asked = np.rint(vector * (steps / largest)).astype(np.int16)
        sums = np.einsum("ij,j->i", self._rows[:used], asked, dtype=np.int32)
        return Similarities(sums * self._scales[:used] * (largest / steps), self._keys, self._slots)

    def _new_slot(self, key: str) -> int:
        if self._free:
            slot = self._free.pop()
            self._keys[slot] = key
        else:
            slot = len(self._keys)
            self._keys.append(key)
            if slot == len(self._rows):
                self._resize(slot * 2)
        self._slots[key] = slot
        return slot

    def _resize(self, rows: int) -> None:
        kept = min(rows, len(self._rows))
        wider = np.zeros((rows, self._rows.shape[1]), np.int8)
        wider[:kept] = self._rows[:kept]
        scales = np.zeros(rows, np.float32)
        scales[:kept] = self._scales[:kept]
        self._rows, self._scales = wider, scales

    def _shrink(self) -> None:
        slots = list(self._slots.values())
        self._rows[: len(slots)] = self._rows[slots]
        self._scales[: len(slots)] = self._scales[slots]
        self._keys = list(self._slots)
        self._slots = {key: slot for slot, key in enumerate(self._slots)}
        self._free.clear()
        self._resize(max(_LEAST_ROWS, len(self._rows) // 2))


class Similarities:
    """The answer of one look over a `Matrix`; to be used before the matrix changes."""

    def __init__(
        self, found: NDArray[np.float64], keys: list[str | None], slots: dict[str, int]
    ) -> None:
        self._found = found
        self._keys = keys
        self._slots = slots
        self.mean = round(float(found.sum()) / len(slots), 6) if slots else 0.0

    def __len__(self) -> int:
        return len(self._slots)

    def of(self, key: str) -> float | None:
        """How alike `key` is; None where it has no vector."""
        slot = self._slots.get(key)
        return None if slot is None else float(self._found[slot])

    def best(self, count: int) -> dict[str, float]:
        """At least the `count` most alike, and all that are as alike as the last of them; those
        that are not alike at all (≤ 0) are left out."""
        found = self._found
        least = 0.0
        if 0 < count < len(found):
            least = max(least, float(np.partition(found, len(found) - count)[-count]))
        chosen = np.flatnonzero((found >= least) & (found > 0))
        alike: dict[str, float] = {}
        for slot, value in zip(chosen.tolist(), found[chosen].tolist(), strict=True):
            key = self._keys[slot]
            if key is not None:
                alike[key] = value
        return alike


NOTHING_ALIKE = Matrix(1).similarities(np.zeros(1, np.float32))
