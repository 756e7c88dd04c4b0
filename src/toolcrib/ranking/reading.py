"""From a query's text to its word lists: its own words, and those that may stand for them.

Pure functions of one state of the index, whose `lexicon` remembers what it knows of a term.
Operators were taken out before (`syntax`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from toolcrib.ranking.engine import PREFIX_WEIGHT, Engine, WordList
from toolcrib.ranking.learned import Learned
from toolcrib.ranking.lexicon import Lexicon
from toolcrib.ranking.query import Query, Reason
from toolcrib.ranking.spelling import Spelling
from toolcrib.ranking.text import Words

__all__ = ["Sources", "parsed"]

SYNONYM_WEIGHT = 0.2
SYNONYM_SHARE = 0.5
"""What a synonym of a query's word counts, and how much of itself it covers of a name. They gain
0.006 there together; 0.3 would gain 0.0005 more, at the cost of 0.002 where tools have sources."""
CORRECTED_WEIGHT = 0.5
MAX_LOOKED_UP = 4
"""Unknown words of one query that a correction is looked for."""
MAX_MISSPELLED = 12
"""Distinct terms of a query from which no correction is looked for: it is found by its other words,
and its unknown ones are mostly names and values. Corrections gain nothing in correctly spelled
queries; without this bound they cost 0.0005 there."""
LEARNED_WEIGHT = 0.3
MAX_EXPANDED = 32
"""Words of one query that are expanded, the first ones: a bound for queries made to be slow."""


class Sources(NamedTuple):
    """What a query is read against. `numbers`: the documents by key."""

    words: Words
    engine: Engine
    lexicon: Lexicon
    spelling: Spelling
    learned: Learned | None
    numbers: Mapping[str, int]


def parsed(text: str, sources: Sources) -> Query:
    """The query `text`: a repeated word counts by the root of its count, a stop word little."""
    lexicon, engine = sources.lexicon, sources.engine
    weights: dict[str, float] = {}
    for term in sources.words.terms(text):
        weights[term] = weights.get(term, 0.0) + 1.0
    for term, count in weights.items():
        weights[term] = count**0.5 * lexicon[term].weight
    shares: dict[str, float] = {}
    reasons = _own(weights, shares, lexicon)
    corrected: dict[str, str] = {}
    if len(reasons) < len(weights) <= MAX_MISSPELLED:
        known = {reason.term for reason in reasons}
        corrected = _corrections(text, [term for term in weights if term not in known], sources)
        reasons += _corrected(weights, shares, corrected)
    reasons += _alike(weights, shares, lexicon)
    found = list(zip(_lists(reasons, engine), reasons, strict=True))
    if sources.learned is not None:
        found += _taught(weights, sources, sources.learned)
    found.sort(key=_by_bound)
    lists, why = zip(*found, strict=True) if found else ((), ())
    rarities = engine.rarities
    held = {term: share * rarities[term] for term, share in shares.items()}
    return Query(lists, why, held, rarities, not weights, corrected)


def _by_bound(found: tuple[WordList, Reason]) -> tuple[float, Reason]:
    return -found[0].bound, found[1]


def _own(weights: Mapping[str, float], shares: dict[str, float], lexicon: Lexicon) -> list[Reason]:
    """The query's own words that are known, rare ones together with the words they begin. What of
    these is indexed is noted in `shares`."""
    found: list[Reason] = []
    left = MAX_EXPANDED
    for term, weight in weights.items():
        _, is_known, begun, _ = lexicon[term]
        terms: tuple[str, ...] = (term,)
        if begun and left:
            others = [other for other in begun if other not in weights]
            if others:
                left -= 1
                terms = (term, *others)
                shares.update(dict.fromkeys(others, PREFIX_WEIGHT))
        if is_known:
            shares[term] = 1.0
            found.append(Reason(term, "word", terms, weight))
        elif len(terms) > 1:
            found.append(Reason(term, "word", terms, weight))
    return found


def _alike(
    weights: Mapping[str, float], shares: dict[str, float], lexicon: Lexicon
) -> Iterator[Reason]:
    """Synonyms that are not words of the query themselves, each once, for the first word."""
    for term, weight in weights.items():
        for other in lexicon[term].near:
            if other not in shares:
                factor = min(weight, 1.0)
                shares[other] = SYNONYM_SHARE * factor
                yield Reason(term, "synonym", (other,), SYNONYM_WEIGHT * factor)


def _corrections(text: str, unknown: Sequence[str], sources: Sources) -> dict[str, str]:
    """The first unknown terms of a query and the known ones they may be misspelled for."""
    corrected: dict[str, str] = {}
    words = sources.words
    for term in unknown[:MAX_LOOKED_UP]:
        written = words.spelled(text, term)
        if written.capitalize() in text[1:]:  # a capital inside a sentence: a name
            continue
        nearest = sources.spelling.nearest(term, len(written))
        if nearest is not None:
            corrected[term] = nearest
    return corrected


def _corrected(
    weights: Mapping[str, float], shares: dict[str, float], corrected: Mapping[str, str]
) -> Iterator[Reason]:
    for term, other in corrected.items():
        shares.setdefault(other, CORRECTED_WEIGHT)
        if other not in weights:
            yield Reason(term, "corrected", (other,), CORRECTED_WEIGHT * weights[term])


def _lists(reasons: Sequence[Reason], engine: Engine) -> Iterator[WordList]:
    """The lists of the known terms that `reasons` are about."""
    engine.prepare([terms[0] for _, _, terms, _ in reasons if len(terms) == 1])
    for _, _, terms, weight in reasons:
        term = terms[0]
        if len(terms) > 1:
            impacts = engine.expanded(term, terms[1:])
        else:
            impacts = engine.impacts(term)
            weight *= engine.rarities[term]
        yield WordList(weight, impacts, weight * impacts.peak)


def _taught(
    weights: Mapping[str, float], sources: Sources, learned: Learned
) -> Iterator[tuple[WordList, Reason]]:
    engine = sources.engine
    for term, weight in weights.items():
        strengths = {
            number: strength
            for key, strength in learned.of(term).items()
            if (number := sources.numbers.get(key)) is not None
        }
        if strengths:
            reason = Reason(term, "learned", (term,), LEARNED_WEIGHT * weight)
            impacts = engine.given(strengths)
            factor = reason.weight * engine.rarity(max(engine.frequency(term), len(strengths)))
            yield WordList(factor, impacts, factor * impacts.peak), reason
