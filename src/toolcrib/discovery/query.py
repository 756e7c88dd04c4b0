"""What a query's words ask for: word lists with their weights, and why each list is there.

Values only. How a text becomes them is `reading`; which documents the lists lead to is `scan`, what
a document gains beyond them `gain`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, TypeAlias

from toolcrib.frozen import NOTHING

__all__ = ["Origin", "Query", "Reason", "WordList", "scores_among"]

Origin: TypeAlias = Literal["word", "synonym", "corrected", "learned"]
"""Why a list is there: a word of the query · what may stand for one · what one may be misspelled
for · what use has taught."""


class WordList(NamedTuple):
    """One word of a query: its weight, its impact per document, and the bound of their product."""

    weight: float
    impacts: Mapping[int, float]
    bound: float


class Reason(NamedTuple):
    """Why a list is there: the query's term, what of it, the index terms counted, the weight they
    have in the query, and their rarity. The first of `terms` counts whole, the others half."""

    term: str
    origin: Origin
    terms: tuple[str, ...]
    weight: float
    rarity: float


@dataclass(frozen=True, slots=True)
class Query:
    """A query against one state of the index. `lists` has the weightiest word first, `reasons` the
    reason of each; `shares` says how much of each index term the query holds; `corrected` which
    term was also looked up as which."""

    lists: Sequence[WordList]
    reasons: Sequence[Reason]
    shares: Mapping[str, float]
    corrected: Mapping[str, str] = field(default=NOTHING)


def scores_among(query: Query, numbers: Iterable[int]) -> dict[int, float]:
    """The scores of `numbers` by the query's lists, those without any word of it left out."""
    scores: dict[int, float] = {}
    for number in numbers:
        score = 0.0
        for weight, impacts, _ in query.lists:
            score += weight * impacts.get(number, 0.0)
        if score:
            scores[number] = score
    return scores
