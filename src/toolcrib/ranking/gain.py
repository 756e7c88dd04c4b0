"""What a document gains beyond the sum of a query's words: a factor per document.

`BOUND` bounds the factor, so that engines may leave out what cannot reach the top.
"""

from __future__ import annotations

import heapq
from collections.abc import Mapping, Sequence
from itertools import repeat
from operator import itemgetter
from typing import NamedTuple

from toolcrib.ranking.query import Query

__all__ = ["BOUND", "Gainer", "Gains", "NameWeights", "Traits"]

NAME_COVERAGE = 0.5
COVERAGE_POWER = 3
"""A document gains up to half its score when the query holds all of its name; the cube leaves
little of that to a name half covered. Measured on the development queries of bench/toolret:
without it 0.014 nDCG@10 less."""
SOURCE_COVERAGE = 0.1
"""… and a little when the query holds all of its source's name. Gains 0.001 there, 0.007 in the
two sets of many servers."""

BOUND = (1 + NAME_COVERAGE + SOURCE_COVERAGE) * (1 + 1e-9)
"""The highest factor, and a little: scores and factors are sums of rounded numbers."""
_SCORE = itemgetter(1)
_NOTHING = repeat(0.0)


class Traits(NamedTuple):
    """What of a document is looked at beside its word lists: the distinct terms of its name, those
    of its source's name as text, and all its terms as text: a line a field, each term between
    spaces."""

    name: tuple[str, ...]
    source: str
    stems: str


class Gains(NamedTuple):
    """By how much of its score a document gains, for each reason."""

    name: float
    source: float

    @property
    def factor(self) -> float:
        return 1 + self.name + self.source


def _weight_of(terms: Sequence[str], rarities: Mapping[str, float]) -> float:
    """The `rarities` of `terms` together: the same for all queries until a document changes."""
    return sum(map(rarities.__getitem__, terms))


class Gainer:
    """What documents gain for one query; it remembers the factor of each source."""

    __slots__ = ("_held", "_rarities", "_sources")

    def __init__(self, query: Query) -> None:
        self._rarities = query.rarities
        self._held = query.held
        self._sources: dict[str, float] = {}

    def gains(self, traits: Traits, name_weight: float) -> Gains:
        """What a document of these `traits` gains; `name_weight` is that of its name."""
        by_name = sum(map(self._held.get, traits.name, _NOTHING))
        by_name = by_name and NAME_COVERAGE * (by_name / name_weight) ** COVERAGE_POWER
        return Gains(by_name, self._by_source(traits.source))

    def best(
        self,
        scores: Mapping[int, float],
        most: int,
        traits: Sequence[Traits],
        name_weights: Mapping[int, float],
    ) -> dict[int, float]:
        """`scores` with gains, from the highest on until no gain can lift the next one into the
        best `most`; those that are not among them, or as good, are left out."""
        held, sources = self._held.get, self._sources
        lifted: dict[int, float] = {}
        top: list[float] = []
        least = 0.0  # what the best `most` of those so far have at least
        for number, score in sorted(scores.items(), key=_SCORE, reverse=True):
            if score * BOUND < least:
                break
            name, source, _ = traits[number]
            factor = sources.get(source)
            if factor is None:
                factor = sources[source] = 1 + self._by_source(source)
            by_name = sum(map(held, name, _NOTHING))
            if by_name:
                factor += NAME_COVERAGE * (by_name / name_weights[number]) ** COVERAGE_POWER
            score *= factor
            if score >= least:
                lifted[number] = score
                if len(top) < most:
                    heapq.heappush(top, score)
                else:
                    heapq.heapreplace(top, score)
                if len(top) == most:
                    least = top[0]
        return lifted

    def _by_source(self, name: str) -> float:
        terms = name.split()
        held = sum(map(self._held.get, terms, _NOTHING))
        return held and SOURCE_COVERAGE * held / _weight_of(terms, self._rarities)


class NameWeights(dict[int, float]):
    """The weights of names by document, filled as they are asked; to be cleared when a document
    changes."""

    __slots__ = ("_rarities", "_traits")

    def __init__(self, traits: Sequence[Traits], rarities: Mapping[str, float]) -> None:
        super().__init__()
        self._traits = traits
        self._rarities = rarities

    def __missing__(self, number: int) -> float:
        weight = self[number] = _weight_of(self._traits[number].name, self._rarities)
        return weight
