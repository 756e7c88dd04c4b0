"""From a query's text to its word lists: its own words, and those that may stand for them.

Pure functions of one state of the index. Operators were taken out before (`syntax`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple, TypeAlias

from toolcrib.discovery.learned import Learned
from toolcrib.discovery.postings import PREFIX_WEIGHT, Postings
from toolcrib.discovery.query import Query, Reason, WordList
from toolcrib.discovery.spelling import Spelling
from toolcrib.discovery.synonyms import synonyms
from toolcrib.discovery.text import Words, is_cjk

__all__ = ["Sources", "parsed"]

STOP_WEIGHT = 0.15
"""What a stop word of the query counts. Measured on the development queries of bench/toolret: 1
costs 0.021 nDCG@10, 0 costs 0.002 and loses the queries made of nothing else."""
FILLER_WEIGHT = 0.5
"""What a word counts that people wrap a request in. Gains 0.003 there."""
SYNONYM_WEIGHT = 0.2
SYNONYM_SHARE = 0.5
"""What a synonym of a query's word counts, and how much of itself it covers of a name. They gain
0.006 there together; 0.3 would gain 0.0005 more, at the cost of 0.002 where tools have sources."""
SYNONYM_FREQUENT = 400
"""Documents with a synonym from which it is left out: it says little, and its list is long. Costs
0.0001 there, 0.002 in one catalogue of all sets, and saves a tenth of the time at 10,000 tools."""
CORRECTED_WEIGHT = 0.5
MAX_LOOKED_UP = 4
"""Unknown words of one query that a correction is looked for."""
MAX_MISSPELLED = 12
"""Distinct terms of a query from which no correction is looked for: it is found by its other words,
and its unknown ones are mostly names and values. Corrections gain nothing in correctly spelled
queries; without this bound they cost 0.0005 there."""
LEARNED_WEIGHT = 0.3
RARE = 8
"""A query word in fewer documents than this, the default limit, also finds the words it begins:
it alone could not fill the answer. Gains 0.002 there."""
MAX_EXPANDED = 32
"""Words of one query that are expanded, the first ones: a bound for queries made to be slow."""


class Sources(NamedTuple):
    """What a query is read against. `numbers`: the documents by key."""

    words: Words
    postings: Postings
    spelling: Spelling
    learned: Learned | None
    numbers: Mapping[str, int]


_Found: TypeAlias = tuple[Reason, WordList]


def parsed(text: str, sources: Sources) -> Query:
    """The query `text`: a repeated word counts by the root of its count, a stop word little."""
    words, postings = sources.words, sources.postings
    counts: dict[str, int] = {}
    for term in words.terms(text):
        counts[term] = counts.get(term, 0) + 1
    weights = {term: count**0.5 * _factor(term, words) for term, count in counts.items()}
    shares = dict.fromkeys(counts, 1.0)
    found = list(_own(weights, shares, words, postings))
    known = {reason.term for reason, _ in found}
    unknown = (
        [term for term in counts if term not in known] if len(counts) <= MAX_MISSPELLED else []
    )
    corrected = _corrections(text, unknown, sources)
    for other in corrected.values():
        shares.setdefault(other, CORRECTED_WEIGHT)
    found += _corrected(weights, corrected, postings)
    found += _alike(weights, shares, postings)
    if sources.learned is not None:
        found += _taught(weights, sources, sources.learned)
    found.sort(key=lambda pair: (-pair[1].bound, pair[0]))
    return Query(
        [entry for _, entry in found],
        [reason for reason, _ in found],
        shares,
        corrected,
    )


def _factor(term: str, words: Words) -> float:
    if term in words.stop_terms:
        return STOP_WEIGHT
    return FILLER_WEIGHT if term in words.filler_terms else 1.0


def _own(
    weights: Mapping[str, float], shares: dict[str, float], words: Words, postings: Postings
) -> Iterator[_Found]:
    """The query's own words, rare ones together with the words they begin (noted in `shares`)."""
    left = MAX_EXPANDED
    for term, weight in weights.items():
        documents = postings.frequency(term)
        others: list[str] = []
        if documents < RARE and left and term not in words.stop_terms and not is_cjk(term):
            others = [other for other in postings.expansions(term) if other not in weights]
        if others:
            left -= 1
            for other in others:
                shares[other] = PREFIX_WEIGHT
            impacts, rarity = _expanded(term, others, postings)
            reason = Reason(term, "word", (term, *others), weight, rarity)
            yield reason, WordList(weight, impacts, weight * max(impacts.values()))
        elif documents:
            yield _listed(Reason(term, "word", (term,), weight, 0.0), postings)


def _listed(reason: Reason, postings: Postings) -> _Found:
    """The list of the one known term that `reason` is about."""
    term = reason.terms[0]
    rarity = postings.rarity(postings.frequency(term))
    impacts, peak = postings.impacts(term)
    weight = reason.weight * rarity
    return reason._replace(rarity=rarity), WordList(weight, impacts, weight * peak)


def _expanded(
    term: str, others: Sequence[str], postings: Postings
) -> tuple[dict[int, float], float]:
    """Impacts, idf included, of a word together with the words it begins, and that idf: they are
    as rare as all of them together, and an exact match keeps its own rarity."""
    impacts = postings.expanded(term, others)
    together = postings.rarity(len(impacts))
    merged = {number: impact * together for number, impact in impacts.items()}
    exact, _ = postings.impacts(term)
    alone = postings.rarity(len(exact))
    for number, impact in exact.items():
        merged[number] = max(merged[number], impact * alone)
    return merged, together


def _alike(
    weights: Mapping[str, float], shares: dict[str, float], postings: Postings
) -> Iterator[_Found]:
    """Synonyms that are not words of the query themselves, each once, for the first word."""
    table = synonyms()
    for term, weight in weights.items():
        for other in table.get(term, ()):
            if other not in shares and 0 < postings.frequency(other) <= SYNONYM_FREQUENT:
                factor = min(weight, 1.0)
                shares[other] = SYNONYM_SHARE * factor
                reason = Reason(term, "synonym", (other,), SYNONYM_WEIGHT * factor, 0.0)
                yield _listed(reason, postings)


def _corrections(text: str, unknown: Sequence[str], sources: Sources) -> dict[str, str]:
    """The first unknown terms of a query and the known ones they may be misspelled for."""
    corrected: dict[str, str] = {}
    postings, words = sources.postings, sources.words
    for term in unknown[:MAX_LOOKED_UP]:
        written = words.spelled(text, term)
        if written.capitalize() in text[1:]:  # a capital inside a sentence: a name
            continue
        nearest = sources.spelling.nearest(term, len(written), postings.frequency)
        if nearest is not None:
            corrected[term] = nearest
    return corrected


def _corrected(
    weights: Mapping[str, float], corrected: Mapping[str, str], postings: Postings
) -> Iterator[_Found]:
    for term, other in corrected.items():
        if other not in weights:
            weight = CORRECTED_WEIGHT * weights[term]
            yield _listed(Reason(term, "corrected", (other,), weight, 0.0), postings)


def _taught(weights: Mapping[str, float], sources: Sources, learned: Learned) -> Iterator[_Found]:
    for term, weight in weights.items():
        strengths = learned.of(term)
        impacts = {
            number: strength
            for key, strength in strengths.items()
            if (number := sources.numbers.get(key)) is not None
        }
        if impacts:
            postings = sources.postings
            rarity = postings.rarity(max(postings.frequency(term), len(impacts)))
            reason = Reason(term, "learned", (term,), LEARNED_WEIGHT * weight, rarity)
            factor = reason.weight * rarity
            yield reason, WordList(factor, impacts, factor * max(impacts.values()))
