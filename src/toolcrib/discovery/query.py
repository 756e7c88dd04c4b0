"""What a query asks for: its words with their weights, against one state of the postings.

Pure functions; which documents they lead to is `scan`, what a document gains beyond them `gain`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from toolcrib.discovery.engine import PREFIX_WEIGHT, Engine, WordList
from toolcrib.discovery.text import Words, is_cjk

__all__ = ["Query", "parsed"]

STOP_WEIGHT = 0.15
"""What a stop word of the query counts. Measured on the development queries of bench/toolret: 1
costs 0.021 nDCG@10, 0 costs 0.002 and loses the queries made of nothing else."""
RARE = 8
"""A query word in fewer documents than this, the default limit, also finds the words it begins:
it alone could not fill the answer. Gains 0.002 there."""
MAX_EXPANDED = 32
"""Words of one query that are expanded, the first ones: a bound for queries made to be slow."""


@dataclass(frozen=True, slots=True)
class Query:
    """A query against one state of the postings. `lists` has the weightiest word first; `shares`
    says how much of each index term the query holds; `rarities` has the idf of every term."""

    lists: Sequence[WordList]
    shares: Mapping[str, float]
    rarities: Mapping[str, float]


def parsed(text: str, words: Words, postings: Engine) -> Query:
    """The query `text`: a repeated word counts by the root of its count, a stop word little."""
    counts: dict[str, int] = {}
    for term in words.terms(text):
        counts[term] = counts.get(term, 0) + 1
    shares = dict.fromkeys(counts, 1.0)
    postings.prepare(filter(postings.frequency, counts))
    left = MAX_EXPANDED
    found: list[tuple[str, WordList]] = []
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
            impacts = postings.expanded(term, others)
            found.append((term, WordList(weight, impacts, weight * impacts.peak)))
        elif documents:
            impacts = postings.impacts(term)
            weight *= postings.rarity(documents)
            found.append((term, WordList(weight, impacts, weight * impacts.peak)))
    found.sort(key=lambda pair: (-pair[1].bound, pair[0]))
    return Query([entry for _, entry in found], shares, postings.rarities)
