"""Any text model of the fastembed library (onnxruntime, no torch) as an `Encoder`.

Fetching models is the library's; prefixes for queries and passages are too.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from toolcrib.dense.encoder import Vectors, library, unit
from toolcrib.errors import InvalidDefinition

__all__ = ["FastEmbedEncoder"]


class Model(Protocol):
    """What is used of a `fastembed.TextEmbedding`."""

    def passage_embed(self, texts: list[str]) -> Any: ...
    def query_embed(self, query: list[str]) -> Any: ...


class FastEmbedEncoder:
    """`model`: a name that the library knows and may fetch, or a `TextEmbedding`, which then needs
    a `name` to tell its vectors from other models'. Encodes one text to learn the dimensions."""

    def __init__(self, model: str | Model, *, name: str = "") -> None:
        if isinstance(model, str):
            name = name or model
            self._model: Model = library("fastembed", "fastembed").TextEmbedding(model)
        elif not name:
            raise InvalidDefinition("a loaded model needs a name to keep its vectors apart by")
        else:
            self._model = model
        self.name = f"fastembed/{name}"
        self.dimensions = int(self.queries(["dimensions"]).shape[1])

    def documents(self, texts: Sequence[str]) -> Vectors:
        return unit(np.stack(list(self._model.passage_embed(list(texts)))))

    def queries(self, texts: Sequence[str]) -> Vectors:
        return unit(np.stack(list(self._model.query_embed(list(texts)))))
