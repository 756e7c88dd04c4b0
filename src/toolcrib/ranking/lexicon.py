"""What a term means to a query, looked up once: its weight and its neighbours.

A cache of one state of the index, to be cleared when a document changes. What becomes of these
facts in a query is `reading`.
"""

from __future__ import annotations

from typing import NamedTuple

from toolcrib.ranking.engine import Engine
from toolcrib.ranking.synonyms import synonyms
from toolcrib.ranking.text import Words, is_cjk

__all__ = ["Lexicon", "Term"]

STOP_WEIGHT = 0.15
"""What a stop word of the query counts. Measured on the development queries of bench/toolret: 1
costs 0.021 nDCG@10, 0 costs 0.002 and loses the queries made of nothing else."""
FILLER_WEIGHT = 0.5
"""What a word counts that people wrap a request in. Gains 0.003 there."""
SYNONYM_FREQUENT = 400
"""Documents with a synonym from which it is left out: it says little, and its list is long. Costs
0.0001 there, 0.002 in one catalogue of all sets, and saves a tenth of the time at 10,000 tools."""
RARE = 8
"""A query word in fewer documents than this, the default limit, also finds the words it begins:
it alone could not fill the answer. Gains 0.002 there."""
LONGEST = 40
"""Letters of a term that is remembered."""
MAX_TERMS = 20_000
"""Terms remembered, about 8 MB; when full all are forgotten, and the common ones are soon back."""


class Term(NamedTuple):
    """A word of a query: what it counts there, whether any document knows it, the words it stands
    for also, as their beginning, and the known ones that may stand for it."""

    weight: float
    is_known: bool
    begun: tuple[str, ...]
    near: tuple[str, ...]


class Lexicon(dict[str, Term]):
    """Terms as they are asked for, known or not. Not thread-safe: the index uses it under its
    lock."""

    __slots__ = ("_engine", "_words")

    def __init__(self, words: Words, engine: Engine) -> None:
        super().__init__()
        self._words = words
        self._engine = engine

    def __missing__(self, term: str) -> Term:
        if len(self) >= MAX_TERMS:
            self.clear()
        found = self._looked_up(term)
        if len(term) <= LONGEST:
            self[term] = found
        return found

    def _looked_up(self, term: str) -> Term:
        engine, words = self._engine, self._words
        weight, documents = 1.0, engine.frequency(term)
        if term in words.stop_terms:
            weight = STOP_WEIGHT
        elif term in words.filler_terms:
            weight = FILLER_WEIGHT
        begun: list[str] = []
        if documents < RARE and term not in words.stop_terms and not is_cjk(term):
            begun = engine.expansions(term)
        near = [
            other
            for other in synonyms().get(term, ())
            if 0 < engine.frequency(other) <= SYNONYM_FREQUENT
        ]
        return Term(weight, documents > 0, tuple(begun), tuple(near))
