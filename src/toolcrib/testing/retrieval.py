"""How well a ranker finds what it should: cases, played through, as figures.

For a catalogue's own queries; it measures and judges nothing.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from toolcrib.errors import InvalidDefinition
from toolcrib.ranking.ranker import Accept, Ranker

__all__ = ["Case", "Missed", "Retrieval", "evaluate"]

DEFAULT_K = 8
RANKS = (1, 5, 8)
"""The ranks whose recall is always told."""
_GAINED = 10


@dataclass(frozen=True, slots=True)
class Case:
    """A query, and the names of the tools it should find. Raises `InvalidDefinition` for a blank
    query or no names."""

    query: str
    relevant: frozenset[str]

    def __post_init__(self) -> None:
        object.__setattr__(self, "relevant", frozenset(self.relevant))
        if not self.query.strip():
            raise InvalidDefinition("a case needs a query")
        if not self.relevant:
            raise InvalidDefinition(f"the case {self.query!r} names no relevant tool")


@dataclass(frozen=True, slots=True)
class Missed:
    """A query whose first k hits lack some relevant tool: which, and what came, in rank order."""

    query: str
    missing: tuple[str, ...]
    came: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Retrieval:
    """Means over `cases` queries, each from 0 to 1: `recall` by rank (the share of the relevant
    tools among the first so many hits), `ndcg` at rank 10, `mrr` (one divided by the rank of the
    first relevant tool; 0 if it is not among the hits looked at: 10, or `k` if that is more).
    `missed` are the queries that lack something at rank `k`."""

    cases: int
    k: int
    recall: Mapping[int, float]
    ndcg: float
    mrr: float
    missed: tuple[Missed, ...]

    def to_json(self) -> dict[str, Any]:
        """{cases, k, recall: {rank: share}, ndcg@10, mrr, missed: [{query, missing, came}]}"""
        missed = [
            {"query": one.query, "missing": list(one.missing), "came": list(one.came)}
            for one in self.missed
        ]
        return {
            "cases": self.cases,
            "k": self.k,
            "recall": {str(rank): share for rank, share in self.recall.items()},
            "ndcg@10": self.ndcg,
            "mrr": self.mrr,
            "missed": missed,
        }


def evaluate(
    ranker: Ranker, cases: Iterable[Case], k: int = DEFAULT_K, accept: Accept | None = None
) -> Retrieval:
    """Plays `cases` through `ranker`, whose searches ask `accept` (default: everything may be
    found). Raises `InvalidDefinition` without cases, or for a `k` below 1."""
    cases = tuple(cases)
    if not cases or k < 1:
        raise InvalidDefinition("an evaluation needs at least one case, and a k of 1 or more")
    limit = max(k, _GAINED, *RANKS)
    ranked = [[hit.name for hit in ranker.search(case.query, limit, accept)] for case in cases]
    played = list(zip(cases, ranked, strict=True))
    ranks = sorted({*RANKS, k})
    return Retrieval(
        len(cases),
        k,
        {rank: _mean([_recall(case, names[:rank]) for case, names in played]) for rank in ranks},
        _mean([_ndcg(case, names[:_GAINED]) for case, names in played]),
        _mean([_reciprocal(case, names) for case, names in played]),
        tuple(missed for case, names in played if (missed := _missed(case, names[:k]))),
    )


def _missed(case: Case, names: Sequence[str]) -> Missed | None:
    missing = case.relevant.difference(names)
    return Missed(case.query, tuple(sorted(missing)), tuple(names)) if missing else None


def _recall(case: Case, names: Sequence[str]) -> float:
    return len(case.relevant.intersection(names)) / len(case.relevant)


def _ndcg(case: Case, names: Sequence[str]) -> float:
    gained = sum(1 / math.log2(at + 2) for at, name in enumerate(names) if name in case.relevant)
    ideal = sum(1 / math.log2(at + 2) for at in range(min(_GAINED, len(case.relevant))))
    return gained / ideal


def _reciprocal(case: Case, names: Sequence[str]) -> float:
    return next((1 / at for at, name in enumerate(names, 1) if name in case.relevant), 0.0)


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)
