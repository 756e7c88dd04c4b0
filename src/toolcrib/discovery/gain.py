"""What a document gains beyond the sum of a query's words: a factor per document.

`MOST` bounds the factor, so that `scan` may leave out what cannot reach the top.
"""

from __future__ import annotations

import heapq
from collections.abc import Mapping, Sequence
from itertools import repeat
from operator import itemgetter
from typing import NamedTuple

from toolcrib.discovery.postings import Postings
from toolcrib.discovery.query import Query

__all__ = ["MOST", "Gainer", "Gains", "NameWeights", "Traits", "weight_of"]

NAME_COVERAGE = 0.5
COVERAGE_POWER = 3
"""A document gains up to half its score when the query holds all of its name; the cube leaves
little of that to a name half covered. Measured on the development queries of bench/toolret:
without it 0.014 nDCG@10 less."""
SOURCE_COVERAGE = 0.1
"""… and a little when the query holds all of its source's name. Gains 0.001 there, 0.007 in the
two sets of many servers."""

MOST = 1 + NAME_COVERAGE + SOURCE_COVERAGE
"""The highest factor."""
_MOST = MOST * (1 + 1e-9)  # factors are sums of rounded numbers
_SCORE = itemgetter(1)
_NOTHING = repeat(0.0)


class Traits(NamedTuple):
    """What of a document is looked at beside its word lists: the distinct terms of its name and of
    its source's name, and all its terms as text: a line a field, each term between spaces."""

    name: tuple[str, ...]
    source: tuple[str, ...]
    stems: str


class Gains(NamedTuple):
    """By how much of its score a document gains, for each reason."""

    name: float
    source: float

    @property
    def factor(self) -> float:
        return 1 + self.name + self.source


def weight_of(terms: Sequence[str], postings: Postings) -> float:
    """The rarities of `terms` together: the same for all queries until a document changes."""
    return sum(postings.rarity(postings.frequency(term)) for term in terms)


class Gainer:
    """What documents gain for one query; it remembers what it found of a source."""

    __slots__ = ("_held", "_postings", "_sources")

    def __init__(self, query: Query, postings: Postings) -> None:
        self._postings = postings
        self._held = {
            term: share * postings.rarity(postings.frequency(term))
            for term, share in query.shares.items()
        }
        self._sources: dict[tuple[str, ...], float] = {}

    def gains(self, traits: Traits, name_weight: float) -> Gains:
        """What a document of these `traits` gains; `name_weight` is that of its name."""
        by_name = sum(map(self._held.get, traits.name, _NOTHING))
        by_name = by_name and NAME_COVERAGE * (by_name / name_weight) ** COVERAGE_POWER
        return Gains(by_name, self._by_source(traits.source))

    def best(
        self,
        scores: Mapping[int, float],
        most: int,
        traits: Mapping[int, Traits],
        name_weights: Mapping[int, float],
    ) -> dict[int, float]:
        """`scores` with gains, from the highest on until no gain can lift the next one into the
        best `most`; the others are left out."""
        held, by_source = self._held.get, self._by_source
        lifted: dict[int, float] = {}
        top: list[float] = []
        for number, score in sorted(scores.items(), key=_SCORE, reverse=True):
            if len(top) == most and score * _MOST < top[0]:
                break
            name, source, _ = traits[number]
            factor = 1 + by_source(source)
            by_name = sum(map(held, name, _NOTHING))
            if by_name:
                factor += NAME_COVERAGE * (by_name / name_weights[number]) ** COVERAGE_POWER
            lifted[number] = score = score * factor
            if len(top) < most:
                heapq.heappush(top, score)
            elif score > top[0]:
                heapq.heapreplace(top, score)
        return lifted

    def _by_source(self, terms: tuple[str, ...]) -> float:
        gain = self._sources.get(terms)
        if gain is None:
            held = sum(map(self._held.get, terms, _NOTHING))
            gain = held and SOURCE_COVERAGE * held / weight_of(terms, self._postings)
            self._sources[terms] = gain
        return gain


class NameWeights(dict[int, float]):
    """The weights of names by document, filled as they are asked; to be cleared when a document
    changes."""

    __slots__ = ("_postings", "_traits")

    def __init__(self, traits: Mapping[int, Traits], postings: Postings) -> None:
        super().__init__()
        self._traits = traits
        self._postings = postings

    def __missing__(self, number: int) -> float:
        weight = self[number] = weight_of(self._traits[number].name, self._postings)
        return weight
