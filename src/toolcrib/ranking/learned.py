"""What use teaches the search: a tool that was called after a query is found by its words again.

A deployment's own small memory, off unless it is given to an index. Bounded in tools and in terms
of each; what is not confirmed fades. What a learned word counts is `reading`.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Mapping
from typing import Any

from toolcrib.errors import InvalidDefinition
from toolcrib.ranking.text import Words

__all__ = ["Learned"]

MAX_TOOLS = 2_000
MAX_TERMS = 24
MAX_QUERY = 500
"""Characters of a query that are learned from."""
HALF_LIFE = 500
"""Notes after which a term that was not confirmed counts half."""
_FORGOTTEN = 0.05


class Learned:
    """Terms of queries, by the tool they led to.

    From any thread. At most `MAX_TOOLS` tools, the longest unnoted going first, and `MAX_TERMS`
    terms of each, the weakest going first. A strength lies in (0, 1): 0.5 after one note, nearing 1
    with each further one, halved every `HALF_LIFE` notes of anything.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._words = Words()
        self._ignored = self._words.stop_terms | self._words.filler_terms
        self._notes = 0
        self._tools: dict[str, dict[str, tuple[float, int]]] = {}
        self._owners: dict[str, dict[str, None]] = {}

    def note(self, query: str, key: str) -> None:
        """Notes that `query` led to a successful call of the tool `key`. Stop words, those people
        wrap a request in, numbers and one-letter words teach nothing."""
        with self._lock:
            terms = dict.fromkeys(
                term
                for term in self._words.terms(query[:MAX_QUERY])
                if term not in self._ignored and not term.isdigit()
            )
            if not terms:
                return
            self._notes += 1
            known = self._tools.pop(key, {})
            self._tools[key] = known  # the last noted stands last
            for term in terms:
                known[term] = (self._count(known.get(term)) + 1, self._notes)
                self._owners.setdefault(term, {})[key] = None
            self._trim(key, known)
            if len(self._tools) > MAX_TOOLS:
                self._drop(next(iter(self._tools)))

    def of(self, term: str) -> dict[str, float]:
        """The tools that `term` led to, with its strength for each."""
        with self._lock:
            found: dict[str, float] = {}
            for key in self._owners.get(term, ()):
                count = self._count(self._tools[key][term])
                if count > _FORGOTTEN:
                    found[key] = count / (count + 1)
            return found

    def to_json(self) -> dict[str, Any]:
        """Everything noted, for `from_json`: {notes, tools: {key: {term: [count, note]}}}."""
        with self._lock:
            tools = {
                key: {t: list(c) for t, c in terms.items()} for key, terms in self._tools.items()
            }
            return {"notes": self._notes, "tools": tools}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Learned:
        """What `to_json` gave. Raises `InvalidDefinition` for anything else."""
        learned = cls()
        try:
            learned._notes = max(0, int(value["notes"]))
            tools = list(value["tools"].items())[-MAX_TOOLS:]
            learned._tools = {str(key): _read(terms, learned._notes) for key, terms in tools}
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
            raise InvalidDefinition(f"this is not what Learned.to_json gives: {error!r}") from error
        for key, terms in learned._tools.items():
            for term in terms:
                learned._owners.setdefault(term, {})[key] = None
        return learned

    def _count(self, noted: tuple[float, int] | None) -> float:
        return 0.0 if noted is None else noted[0] * 0.5 ** ((self._notes - noted[1]) / HALF_LIFE)

    def _trim(self, key: str, known: dict[str, tuple[float, int]]) -> None:
        if len(known) > MAX_TERMS:
            strongest = sorted(known, key=lambda term: (-self._count(known[term]), term))
            for term in strongest[MAX_TERMS:]:
                del known[term]
                self._disown(term, key)

    def _drop(self, key: str) -> None:
        for term in self._tools.pop(key):
            self._disown(term, key)

    def _disown(self, term: str, key: str) -> None:
        owners = self._owners[term]
        del owners[key]
        if not owners:
            del self._owners[term]


def _read(terms: Mapping[str, Any], notes: int) -> dict[str, tuple[float, int]]:
    """The terms of one tool: a count is a positive number, and was noted not after `notes`."""
    read = {str(term): (float(count), int(at)) for term, (count, at) in terms.items()}
    if not all(0 < count < math.inf and 0 <= at <= notes for count, at in read.values()):
        raise ValueError("counts must be positive, and noted before now")
    return dict(list(read.items())[:MAX_TERMS])
