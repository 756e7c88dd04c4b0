"""From a query to the best documents, without looking at most of them.

Pure functions of a query and `Postings`; names, keys and permissions are `index`.
"""

from __future__ import annotations

import heapq
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from toolcrib.discovery.postings import PREFIX_WEIGHT, Postings
from toolcrib.discovery.text import Words, is_cjk

__all__ = ["Query", "candidates", "coverage_gain", "parsed"]

STOP_WEIGHT = 0.15
"""What a stop word of the query counts. Measured on the development queries of bench/toolret: 1
costs 0.021 nDCG@10, 0 costs 0.002 and loses the queries made of nothing else."""
NAME_COVERAGE = 0.5
COVERAGE_POWER = 3
"""A document gains up to half its score when the query holds all of its name; the cube leaves
little of that to a name half covered. Measured there too: without it 0.013
less."""
RARE = 8
"""A query word in fewer documents than this, the default limit, also finds the words it begins:
it alone could not fill the answer. Gains 0.002 there."""
MAX_EXPANDED = 32
"""Words of one query that are expanded, the first ones: a bound for queries made to be slow."""

_SLACK = 1 + 1e-9
"""Bounds are sums of rounded numbers: this much keeps them bounds."""
_SHORT = 64
"""Postings worth adding up without asking whether they still matter."""


class _List(NamedTuple):
    """One word of a query: its weight, its impact per document, and the bound of their product."""

    weight: float
    impacts: Mapping[int, float]
    bound: float


@dataclass(frozen=True, slots=True)
class Query:
    """A query against one state of the postings. `lists` has the weightiest word first; `shares`
    says how much of each index term the query holds; `rarities` remembers idfs asked for."""

    lists: Sequence[_List]
    shares: Mapping[str, float]
    rarities: dict[str, float] = field(default_factory=dict[str, float])


def parsed(text: str, words: Words, postings: Postings) -> Query:
    """The query `text`: a repeated word counts by the root of its count, a stop word little."""
    counts: dict[str, int] = {}
    for term in words.terms(text):
        counts[term] = counts.get(term, 0) + 1
    shares = dict.fromkeys(counts, 1.0)
    left = MAX_EXPANDED
    found: list[tuple[str, _List]] = []
    for term, count in counts.items():
        stop = term in words.stop_terms
        weight = count**0.5 * (STOP_WEIGHT if stop else 1.0)
        documents = postings.frequency(term)
        others: list[str] = []
        if documents < RARE and left and not stop and not is_cjk(term):
            others = [other for other in postings.expansions(term) if other not in shares]
        if others:
            left -= 1
            shares.update(dict.fromkeys(others, PREFIX_WEIGHT))
            impacts = _expanded(term, others, postings)
            found.append((term, _List(weight, impacts, weight * max(impacts.values()))))
        elif documents:
            exact, peak = postings.impacts(term)
            weight *= postings.rarity(documents)
            found.append((term, _List(weight, exact, weight * peak)))
    found.sort(key=lambda pair: (-pair[1].bound, pair[0]))
    return Query([entry for _, entry in found], shares)


def _expanded(term: str, others: Sequence[str], postings: Postings) -> dict[int, float]:
    """Impacts, idf included, of a word together with the words it begins: they are as rare as
    all of them together, and an exact match keeps its own rarity."""
    impacts = postings.expanded(term, others)
    together = postings.rarity(len(impacts))
    merged = {number: impact * together for number, impact in impacts.items()}
    exact, _ = postings.impacts(term)
    alone = postings.rarity(len(exact))
    for number, impact in exact.items():
        merged[number] = max(merged[number], impact * alone)
    return merged


def candidates(query: Query, most: int) -> dict[int, float]:
    """Documents and their scores: all that can be among the `most` best once `coverage_gain` was
    applied, and few others.

    Words are added up from the weightiest on. As soon as what the remaining words can still give
    cannot lift a document into the best, they are only looked up for the documents already there
    (the MaxScore rule): the long lists of common words are hardly ever walked.
    """
    lists = query.lists
    left = [0.0] * (len(lists) + 1)
    for at in range(len(lists) - 1, -1, -1):
        left[at] = left[at + 1] + lists[at].bound
    scores: dict[int, float] = {}
    at = 0
    for at, (weight, impacts, _) in enumerate(lists):
        long = len(impacts) > _SHORT and 2 * len(impacts) > len(scores) >= most
        if long and left[at] * _GAIN < _floor(scores, most):
            break
        _add_up(scores, weight, impacts)
    else:
        at = len(lists)
    for rest in range(at, len(lists)):
        if len(scores) > 4 * most:
            scores = _still_possible(scores, most, left[rest])
        weight, impacts, _ = lists[rest]
        for number in scores:
            impact = impacts.get(number)
            if impact is not None:
                scores[number] += weight * impact
    return _still_possible(scores, most, 0.0)


_GAIN = (1 + NAME_COVERAGE) * _SLACK


def _add_up(scores: dict[int, float], weight: float, impacts: Mapping[int, float]) -> None:
    if not scores:
        scores.update({number: weight * impact for number, impact in impacts.items()})
        return
    known = scores.get
    for number, impact in impacts.items():
        scores[number] = known(number, 0.0) + weight * impact


def _still_possible(scores: dict[int, float], most: int, more: float) -> dict[int, float]:
    """Those of `scores` that can reach the best `most` with `more` points to come."""
    if len(scores) <= most:
        return scores
    needed = _floor(scores, most) / _GAIN - more
    return {number: score for number, score in scores.items() if score >= needed}


def _floor(scores: Mapping[int, float], most: int) -> float:
    return heapq.nlargest(most, scores.values())[-1]


def coverage_gain(name_terms: Sequence[str], query: Query, postings: Postings) -> float:
    """The factor by which a document gains from the share of its name that the query holds."""
    shares, rarities = query.shares, query.rarities
    if shares.keys().isdisjoint(name_terms):
        return 1.0
    held = total = 0.0
    for term in name_terms:
        rarity = rarities.get(term)
        if rarity is None:
            rarity = rarities[term] = postings.rarity(postings.frequency(term))
        total += rarity
        held += rarity * shares.get(term, 0.0)
    return 1 + NAME_COVERAGE * (held / total) ** COVERAGE_POWER
