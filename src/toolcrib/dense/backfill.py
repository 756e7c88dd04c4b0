"""Encoding documents behind everybody's back: what waits, and the thread that works it off.

Which documents there are and what becomes of their vectors is `hybrid`.
"""

from __future__ import annotations

import logging
import re
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import TypeAlias

from toolcrib.dense.encoder import Encoder, Vectors, checked
from toolcrib.dense.vectors import VectorCache, mark_of
from toolcrib.errors import InvalidDefinition
from toolcrib.ranking.fields import Document

__all__ = ["Backfill", "Deliver", "Retry", "text_of"]

logger = logging.getLogger("toolcrib.dense.hybrid")

BATCH = 32
"""Texts given to the encoder at once."""
_ENDING = 5.0
"""Seconds `close` waits for the batch that is being encoded."""
MAX_DESCRIPTION = 600
MAX_PARAMETERS = 200
"""Characters of a description and of parameters' names that are encoded."""
_SEPARATORS = re.compile(r"[\W_]+|(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


@dataclass(frozen=True, slots=True)
class Retry:
    """How long to leave a failing encoder alone, in seconds: `first`, doubled with each failure in
    a row, `longest` at most."""

    first: float = 1.0
    longest: float = 60.0

    def __post_init__(self) -> None:
        if not 0 < self.first <= self.longest:
            raise InvalidDefinition("a retry needs 0 < first <= longest")

    def after(self, failures: int) -> float:
        """Seconds to wait after that many failures in a row."""
        return min(self.longest, self.first * 2.0 ** min(failures - 1, 30))


Deliver: TypeAlias = Callable[[Mapping[str, tuple[Document, Vectors]]], None]
"""Takes vectors by key, each with the document it was made of."""


class Backfill:
    """Encodes what is `add`ed, in order, in one daemon thread that starts with the first document.

    A newer document takes the place of one of its key that waits. A batch that fails is tried again
    later, behind the others and in smaller parts, so that one bad text holds up no other for long.
    """

    def __init__(
        self, encoder: Encoder, cache: VectorCache | None, retry: Retry, deliver: Deliver
    ) -> None:
        self._encoder = encoder
        self._cache = cache
        self._retry = retry
        self._deliver = deliver
        self._changed = threading.Condition()
        self._waiting: dict[str, Document] = {}
        self._flight: dict[str, Document] = {}
        self._closing = False
        self._thread: threading.Thread | None = None
        self._size = BATCH
        self._failures = 0
        self._told = False

    def add(self, documents: Mapping[str, Document], gone: Iterable[str]) -> None:
        """Takes back those whose keys are `gone`, then adds `documents`. Never waits."""
        with self._changed:
            for key in (*gone, *documents):
                self._waiting.pop(key, None)
                self._flight.pop(key, None)
            self._waiting |= documents
            if self._waiting and self._thread is None and not self._closing:
                self._thread = threading.Thread(
                    target=self._work, name="toolcrib-encoding", daemon=True
                )
                self._thread.start()
            self._changed.notify_all()

    def wait(self, timeout: float | None) -> bool:
        """Waits until nothing is left to do; False after `timeout` seconds, or once closed with
        work left."""
        with self._changed:
            self._changed.wait_for(lambda: self._closing or self._is_done(), timeout)
            return self._is_done()

    def close(self) -> None:
        """Ends the thread after the batch it is at; what waits stays undone. Safe twice."""
        with self._changed:
            self._closing = True
            self._changed.notify_all()
            thread = self._thread
        if thread is not None and thread is not threading.current_thread():
            thread.join(_ENDING)

    def _is_done(self) -> bool:
        return not self._waiting and not self._flight

    def _work(self) -> None:
        while (batch := self._next()) is not None:
            try:
                self._deliver(self._encoded(batch))
            except Exception as error:
                self._failed(error)
            else:
                self._succeeded()

    def _next(self) -> dict[str, Document] | None:
        """The next batch; None when it is time to end."""
        with self._changed:
            self._changed.wait_for(lambda: self._closing or self._waiting)
            if self._closing:
                return None
            batch = dict(islice(self._waiting.items(), self._size))
            for key in batch:
                del self._waiting[key]
            self._flight = dict(batch)
            return batch

    def _encoded(self, batch: Mapping[str, Document]) -> dict[str, tuple[Document, Vectors]]:
        texts = {key: text_of(document) for key, document in batch.items()}
        marks = {key: mark_of(self._encoder.name, text) for key, text in texts.items()}
        known = self._kept(marks.values())
        new = {marks[key]: text for key, text in texts.items() if marks[key] not in known}
        if new:
            rows = self._encoder.documents(list(new.values()))
            made = dict(zip(new, checked(rows, len(new), self._encoder.dimensions), strict=True))
            if self._cache is not None:
                self._cache.put(made)
            known |= made
        return {key: (document, known[marks[key]]) for key, document in batch.items()}

    def _kept(self, marks: Iterable[bytes]) -> dict[bytes, Vectors]:
        if self._cache is None:
            return {}
        wide = self._encoder.dimensions
        return {m: v for m, v in self._cache.get(marks).items() if v.shape == (wide,)}

    def _succeeded(self) -> None:
        with self._changed:
            self._size = min(BATCH, self._size * 2)
            self._failures = 0
            self._flight = {}
            self._told = self._told and bool(self._waiting)
            self._changed.notify_all()

    def _failed(self, error: Exception) -> None:
        """Puts the batch, less what was taken back, at the end of what waits; then waits itself."""
        with self._changed:
            if not self._told:
                self._told = True
                name = self._encoder.name
                logger.warning("%s fails, tools are found by their words only: %s", name, error)
            self._failures += 1
            self._size = max(1, self._size // 2)
            self._waiting |= self._flight
            self._flight = {}
            self._changed.wait_for(lambda: self._closing, self._retry.after(self._failures))


def text_of(document: Document) -> str:
    """What of a document is encoded: its source, its name in words, the beginning of its
    description, and its parameters' names."""
    source = f"{document.source}: " if document.source else ""
    text = f"{source}{_words(document.name)}: {document.description[:MAX_DESCRIPTION]}"
    parameters = _words(document.parameters)[:MAX_PARAMETERS]
    return f"{text} Parameters: {parameters}" if parameters else text


def _words(name: str) -> str:
    return _SEPARATORS.sub(" ", name).strip()
