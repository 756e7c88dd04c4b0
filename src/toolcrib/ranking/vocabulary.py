"""The indexed words in order: which of them does a prefix begin?"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Collection

__all__ = ["Vocabulary"]

MAX_EXPANSIONS = 64
"""Words one prefix is expanded to, the shortest first: they are closest to it."""
_FEW = 64
"""New words that are cheaper put in one by one than sorted in together."""


class Vocabulary:
    """A sorted list of the words in `known`, which its owner changes; it tells of new ones only.

    Words that went stay in the list, and are skipped, until they are half of it; new ones are
    merged in at the first look after they came.
    """

    __slots__ = ("_known", "_new", "_words")

    def __init__(self, known: Collection[str]) -> None:
        self._known = known
        self._words: list[str] = []
        self._new: set[str] = set()

    def add(self, word: str) -> None:
        """Tells of a word that came."""
        self._new.add(word)
        if len(self._new) > 2 * len(self._known) + _FEW:  # most of them went before any look
            self._new.intersection_update(self._known)

    def begun_by(self, prefix: str) -> list[str]:
        """The words that `prefix` properly begins, at most `MAX_EXPANSIONS`, shortest first."""
        words = self._sorted()
        start = bisect_right(words, prefix)
        end = bisect_left(words, prefix + "\U0010ffff", start)
        known = self._known
        found = {word for word in words[start:end] if word in known}
        return sorted(found, key=lambda word: (len(word), word))[:MAX_EXPANSIONS]

    def _sorted(self) -> list[str]:
        words = self._words
        if len(words) + len(self._new) > 2 * len(self._known) + _FEW:
            words = self._words = sorted(self._known)
        elif len(self._new) > _FEW:
            words.extend(self._new)
            words.sort()
        else:
            for word in self._new:
                insort(words, word)
        self._new.clear()
        return words
