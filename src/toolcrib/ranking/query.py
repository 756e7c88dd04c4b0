"""What a query's words ask for: word lists with their weights, and why each list is there.

Values only. How a text becomes them is `reading`; which documents the lists lead to is the engine's
matter, what a document gains beyond them `gain`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, TypeAlias

from toolcrib.frozen import NOTHING
from toolcrib.ranking.engine import WordList

__all__ = ["Origin", "Query", "Reason"]

Origin: TypeAlias = Literal["word", "synonym", "corrected", "learned"]
"""Why a list is there: a word of the query · what may stand for one · what one may be misspelled
for · what use has taught."""


class Reason(NamedTuple):
    """Why a list is there: the query's term, what of it, the index terms counted, and the weight
    they have in the query. The first of `terms` counts whole, the others half."""

    term: str
    origin: Origin
    terms: tuple[str, ...]
    weight: float


@dataclass(frozen=True, slots=True)
class Query:
    """A query against one state of the index. `lists` has the weightiest word first, `reasons` the
    reason of each; `held` says how much of each indexed term the query holds, times its idf, which
    `rarities` has of any; `is_blank`: there was no word in it; `corrected`: which term was also
    looked up as which."""

    lists: Sequence[WordList]
    reasons: Sequence[Reason]
    held: Mapping[str, float]
    rarities: Mapping[str, float]
    is_blank: bool = False
    corrected: Mapping[str, str] = field(default=NOTHING)
