"""From a query to the best documents, without looking at most of them.

Pure functions of a query's lists; names, keys and permissions are `index`.
"""

from __future__ import annotations

import heapq
from collections.abc import Mapping

from toolcrib.discovery import gain
from toolcrib.discovery.query import Query

__all__ = ["candidates"]

_SLACK = 1 + 1e-9
"""Bounds are sums of rounded numbers: this much keeps them bounds."""
_SHORT = 64
"""Postings worth adding up without asking whether they still matter."""
_GAIN = gain.MOST * _SLACK


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
