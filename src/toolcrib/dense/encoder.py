"""What turns text into vectors for `hybrid`: the contract, and how it fails.

Models and their libraries are `encoders`; what becomes of the vectors is `matrix` and `vectors`.
"""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import Any, Protocol, TypeAlias, runtime_checkable

from toolcrib.errors import MissingExtra, ToolcribError


def missing(what: str, install: str) -> MissingExtra:
    """What to raise where `what` is not there; `install` is what pip is to be told."""
    return MissingExtra(f"{what} is not installed: pip install {install}", name=what)


try:
    import numpy as np
    from numpy.typing import NDArray
except ModuleNotFoundError as error:
    if error.name != "numpy":
        raise
    raise missing("numpy", "'toolcrib[dense]'") from error

__all__ = [
    "Encoder",
    "EncodingFailed",
    "Vectors",
    "checked",
    "library",
    "missing",
    "unit",
]

Vectors: TypeAlias = NDArray[np.float32]
"""Float32, of shape (texts, dimensions); the one of a single text may be (dimensions,)."""


class EncodingFailed(ToolcribError):
    """No vectors came of some texts. Its text holds neither keys nor what was to be encoded."""


@runtime_checkable
class Encoder(Protocol):
    """Texts to vectors whose dot product says how alike they are in meaning.

    Both methods give one row a text, in order: float32, `dimensions` wide, of length 1 (`unit`
    makes them so). They block, and are called from several threads at once, never on purpose on
    an event loop. They raise what they like, `EncodingFailed` if they can. A text's vector is the
    same, but for rounding, whatever else is in the batch.
    """

    @property
    def name(self) -> str:
        """Model and settings: vectors of encoders with one name may be mixed and kept."""
        ...

    @property
    def dimensions(self) -> int: ...

    def documents(self, texts: Sequence[str]) -> Vectors:
        """Vectors of what is searched."""
        ...

    def queries(self, texts: Sequence[str]) -> Vectors:
        """Vectors of what is asked."""
        ...


def library(name: str, install: str) -> Any:
    """The module `name`, imported now; raises `MissingExtra` where it, or what it needs, is not
    installed."""
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        raise missing(str(error.name), install) from error


def unit(rows: Vectors) -> Vectors:
    """`rows` scaled to length 1, as float32; a row of nothing but zeros stays."""
    rows = np.asarray(rows, np.float32)
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    lengths[lengths == 0] = 1
    return np.asarray(rows / lengths, np.float32)


def checked(rows: Vectors, count: int, dimensions: int) -> Vectors:
    """`rows` if that is what an encoder owes for `count` texts; raises `EncodingFailed` if not."""
    rows = np.asarray(rows, np.float32)
    if rows.shape != (count, dimensions):
        raise EncodingFailed(
            f"{count} texts gave vectors of shape {rows.shape}, not {(count, dimensions)}"
        )
    if not np.isfinite(rows).all():
        raise EncodingFailed("a vector holds numbers that are not finite")
    return rows
