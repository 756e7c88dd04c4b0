"""Any model of the sentence-transformers library as an `Encoder`.

Loading, devices and prompts are the library's: a model whose settings name prompts for queries and
documents gets them.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any, Protocol

from toolcrib.dense.encoder import Vectors, library, unit
from toolcrib.errors import InvalidDefinition

__all__ = ["SentenceTransformerEncoder"]


class Model(Protocol):
    """What is used of a `sentence_transformers.SentenceTransformer`."""

    def get_embedding_dimension(self) -> int | None: ...
    def encode_document(self, inputs: Any, *, show_progress_bar: bool) -> Any: ...
    def encode_query(self, inputs: Any, *, show_progress_bar: bool) -> Any: ...


class SentenceTransformerEncoder:
    """`model`: a name or a folder, which the library loads, or a loaded model, which then needs a
    `name` to tell its vectors from other models'. One batch is encoded at a time."""

    def __init__(self, model: str | Model, *, name: str = "") -> None:
        if isinstance(model, str):
            name = name or model
            sdk = library("sentence_transformers", "sentence-transformers")
            self._model: Model = sdk.SentenceTransformer(model)
        elif not name:
            raise InvalidDefinition("a loaded model needs a name to keep its vectors apart by")
        else:
            self._model = model
        self.name = f"sentence-transformers/{name}"
        self._lock = threading.Lock()  # the library does not say that a model may be shared
        self.dimensions = self._model.get_embedding_dimension() or 0

    def documents(self, texts: Sequence[str]) -> Vectors:
        with self._lock:
            return unit(self._model.encode_document(list(texts), show_progress_bar=False))

    def queries(self, texts: Sequence[str]) -> Vectors:
        with self._lock:
            return unit(self._model.encode_query(list(texts), show_progress_bar=False))
