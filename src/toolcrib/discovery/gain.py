"""What a document gains beyond the sum of a query's words: a factor per document.

Pure functions. `MOST` bounds the factor, so that `scan` may leave out what cannot reach the top.
"""

from __future__ import annotations

from collections.abc import Sequence

from toolcrib.discovery.engine import Engine
from toolcrib.discovery.query import Query

__all__ = ["MOST", "coverage_gain"]

NAME_COVERAGE = 0.5
COVERAGE_POWER = 3
"""A document gains up to half its score when the query holds all of its name; the cube leaves
little of that to a name half covered. Measured there too: without it 0.013
less."""

MOST = 1 + NAME_COVERAGE
"""The highest factor."""


def coverage_gain(name_terms: Sequence[str], query: Query, postings: Engine) -> float:
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
