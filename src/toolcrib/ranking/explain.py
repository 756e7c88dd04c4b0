"""Why a document has the score it has: the shares of a query's words, and what was gained.

Values, and how a word's contribution is split over the fields; the score itself is `order`'s.
"""

from __future__ import annotations

from dataclasses import dataclass

from toolcrib.ranking.engine import PREFIX_WEIGHT, Engine
from toolcrib.ranking.gain import Gains
from toolcrib.ranking.query import Origin, Query, Reason

__all__ = ["Condition", "Explanation", "FieldShare", "WordShare", "shares_of"]


@dataclass(frozen=True, slots=True)
class FieldShare:
    """One field's part in a word's contribution: how often the word stands there, the field's
    weight per occurrence (its length reckoned with), and the points. A word that is only begun by
    the query's counts half an occurrence."""

    field: str
    count: float
    weight: float
    points: float


@dataclass(frozen=True, slots=True)
class WordShare:
    """One word's part in a score: the query's term, why the index terms `terms` are counted for it
    (`word`: they are it, or begin with it), the word's weight in the query, its rarity (idf), and
    the points. What use has taught has no fields."""

    term: str
    origin: Origin
    terms: tuple[str, ...]
    weight: float
    rarity: float
    fields: tuple[FieldShare, ...]
    points: float


@dataclass(frozen=True, slots=True)
class Condition:
    """An operator of the query as written, and whether the document holds it."""

    text: str
    holds: bool


@dataclass(frozen=True, slots=True)
class Explanation:
    """A document's score for a query: (Σ `words` points) × `gains.factor` + `named`, points for
    being named in the query; 0 if a condition does not hold. `listed`: the query has filters and no
    words, so that all it leaves score 1. `partial`: the score of a ranker that has more than words
    to go by is another; this is the part of the words."""

    name: str
    words: tuple[WordShare, ...]
    gains: Gains
    conditions: tuple[Condition, ...]
    named: float
    listed: bool
    total: float
    partial: bool = False


def shares_of(query: Query, number: int, engine: Engine) -> tuple[WordShare, ...]:
    """The parts of all words that give the document `number` anything, the largest first."""
    found: list[WordShare] = []
    for reason, listed in zip(query.reasons, query.lists, strict=True):
        points = engine.among([listed], [number]).get(number)
        if points is not None:
            fields = _fields(reason, number, points, engine)
            rarity = _rarity(reason, engine)
            term, origin, terms, weight = reason
            found.append(WordShare(term, origin, terms, weight, rarity, fields, points))
    return tuple(sorted(found, key=lambda share: -share.points))


def _rarity(reason: Reason, engine: Engine) -> float:
    """The idf of the terms counted together."""
    return engine.rarity(len({at for term in reason.terms for at in engine.holding(term)}))


def _fields(reason: Reason, number: int, points: float, engine: Engine) -> tuple[FieldShare, ...]:
    """`points` split over the fields by weight; in each field the best match counts, as it does in
    `Engine.expanded`. Saturation belongs to all fields together and is shared in proportion."""
    if reason.origin == "learned":
        return ()
    best: dict[str, tuple[float, float]] = {}
    for at, term in enumerate(reason.terms):
        share = 1.0 if at == 0 else PREFIX_WEIGHT
        for name, count, weight in engine.occurrences(term, number):
            known = best.get(name, (0.0, 0.0))
            best[name] = max(known, (count * share, weight))
    total = sum(count * weight for count, weight in best.values())
    shares = [
        FieldShare(name, count, weight, points * count * weight / total)
        for name, (count, weight) in best.items()
    ]
    return tuple(sorted(shares, key=lambda share: -share.points))
