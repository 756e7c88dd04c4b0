"""Vectors of queries, made when asked for and remembered for a while.

A failing encoder costs one try at a time: until it may be tried again there is no vector, and
`hybrid` answers by words.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import OrderedDict

from toolcrib.dense.backfill import Retry
from toolcrib.dense.encoder import Encoder, Vectors, checked

__all__ = ["Asked"]

logger = logging.getLogger("toolcrib.dense.hybrid")

REMEMBERED = 256
"""Queries whose vectors are remembered, those asked for longest ago forgotten first."""


class Asked:
    """The vectors of queries. From any thread; two that ask the same at once may both encode it."""

    def __init__(self, encoder: Encoder, retry: Retry) -> None:
        self._encoder = encoder
        self._retry = retry
        self._lock = threading.Lock()
        self._known: OrderedDict[str, Vectors] = OrderedDict()
        self._failures = 0
        self._not_before = 0.0

    def vector(self, query: str) -> Vectors | None:
        """The vector of `query`, encoded now unless it is remembered; None while that fails."""
        known = self.remembered(query)
        if known is not None or self._is_left_alone():
            return known
        try:
            encoder = self._encoder
            made: Vectors = checked(encoder.queries([query]), 1, encoder.dimensions)[0]
        except Exception as error:
            self._failed(error)
            return None
        with self._lock:
            self._failures = 0
            self._known[query] = made
            while len(self._known) > REMEMBERED:
                self._known.popitem(last=False)
        return made

    def remembered(self, query: str) -> Vectors | None:
        """The vector of `query` if it is remembered; never waits for the encoder."""
        with self._lock:
            if query in self._known:
                self._known.move_to_end(query)
            return self._known.get(query)

    def _is_left_alone(self) -> bool:
        with self._lock:
            return time.monotonic() < self._not_before

    def _failed(self, error: Exception) -> None:
        with self._lock:
            self._failures += 1
            first = self._failures == 1
            self._not_before = time.monotonic() + self._retry.after(self._failures)
        if first:
            logger.warning("%s fails, queries are answered by words: %s", self._encoder.name, error)
