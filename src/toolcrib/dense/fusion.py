"""How two rankings become one: a pure function of lexical hits and likenesses.

Scores, not ranks, are fused: each side's are brought to 0…1 and added by weight. Where they come
from is `hybrid`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from toolcrib.ranking.ranker import Hit

__all__ = ["Scale", "fused", "scale_of"]

_LEAST = 1e-9
"""A hit's score is above 0."""


class Scale(NamedTuple):
    """What counts as 1 and as 0 in one search: the best lexical score (none: 0) as 1, and the
    likenesses that are 1 and 0. One search keeps one scale, however deep it looks."""

    lexical: float
    alike: float
    unlike: float


def scale_of(hits: Sequence[Hit], likenesses: Mapping[str, float], usual: float) -> Scale:
    """The scale of a search whose best are these. `usual`, the mean likeness of all documents, is
    0: measured from there, models count the same whose likenesses all lie between 0.7 and 0.9.
    What is named exactly is measured apart."""
    best = max((hit.score for hit in hits if not hit.exact), default=0.0)
    return Scale(best, max(likenesses.values(), default=usual), usual)


def fused(
    hits: Sequence[Hit], likenesses: Mapping[str, float], scale: Scale, weight: float
) -> list[Hit]:
    """All of `hits` and of `likenesses` (by key) as one ranking, best first, ties by key.

    `weight` (0…1) is the share of likeness. Exact hits come first, in their own order. A hit
    without a likeness, its vector not being there yet, counts by its lexical score alone.
    """
    named = [hit for hit in hits if hit.exact]
    lexical = {hit.name: hit.score for hit in hits if not hit.exact}
    top = max((hit.score for hit in named), default=1.0)
    first = [Hit(hit.name, 1 + hit.score / top, True) for hit in named]
    keys = (lexical.keys() | likenesses.keys()) - {hit.name for hit in named}
    rest = [
        Hit(key, max(_LEAST, _score(lexical.get(key, 0.0), likenesses.get(key), scale, weight)))
        for key in keys
    ]
    return sorted(first + rest, key=lambda hit: (-hit.score, hit.name))


def _score(lexical: float, likeness: float | None, scale: Scale, weight: float) -> float:
    words = min(1.0, lexical / scale.lexical) if scale.lexical > 0 else 0.0
    if likeness is None:
        return words
    span = scale.alike - scale.unlike
    meaning = (likeness - scale.unlike) / span if span > 0 else float(likeness >= scale.alike)
    return (1 - weight) * words + weight * min(1.0, max(0.0, meaning))
