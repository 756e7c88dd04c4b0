"""The forward pass of a BERT encoder in numpy: token numbers to one vector a text.

Inference only, on the CPU, in float32, for the plain architecture (absolute positions, GELU, layer
norms after each part) that all-MiniLM-L6-v2 and its like have. Finding weights and making tokens
is `minilm`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

__all__ = ["Bert"]

Floats: TypeAlias = NDArray[np.float32]
Weights: TypeAlias = Mapping[str, Floats]

EPSILON = np.float32(1e-12)
MASKED = np.float32(-1e9)
_ROWS_AT_ONCE = 64
"""Rows the activation works on at once, so that they stay in the processor's cache."""
# erf by Abramowitz and Stegun 7.1.26, right to 1.5e-7; √½ is taken into the constants
_P = np.float32(0.3275911 * 0.5**0.5)
_A = [np.float32(a) for a in (1.061405429, -1.453152027, 1.421413741, -0.284496736, 0.254829592)]


class _Layer(NamedTuple):
    """One layer's weights, as matrices that a row of features is multiplied with."""

    mixed: Floats
    mixed_bias: Floats
    attended: Floats
    attended_bias: Floats
    attended_norm: tuple[Floats, Floats]
    wide: Floats
    wide_bias: Floats
    narrow: Floats
    narrow_bias: Floats
    norm: tuple[Floats, Floats]


class Bert:
    """A BERT encoder with mean pooling. Only reads its weights: any number of threads may use it.

    `weights` are the model's tensors by their usual names, `heads` how many attention heads it has.
    """

    def __init__(self, weights: Weights, heads: int) -> None:
        self._words = weights["embeddings.word_embeddings.weight"]
        places = weights["embeddings.position_embeddings.weight"]
        self._places = places + weights["embeddings.token_type_embeddings.weight"][0]
        self._norm = _norm_of(weights, "embeddings")
        layers = {name.split(".")[2] for name in weights if name.startswith("encoder.layer.")}
        self._heads = heads
        self.dimensions = int(self._words.shape[1])
        self._layers = [_layer(weights, n, self._scale()) for n in range(len(layers))]

    def vectors(self, tokens: Sequence[Sequence[int]]) -> Floats:
        """One vector of length 1 for each list of tokens, as rows of one float32 array.

        Shorter lists are padded and masked, so lists of one length are the quickest.
        """
        longest = max(map(len, tokens))
        ids = np.zeros((len(tokens), longest), np.int64)
        mask = np.zeros((len(tokens), longest), np.float32)
        for row, numbers in enumerate(tokens):
            ids[row, : len(numbers)] = numbers
            mask[row, : len(numbers)] = 1
        hidden = self._hidden(ids, mask)
        pooled = np.einsum("btd,bt->bd", hidden, mask)
        return np.asarray(pooled / np.linalg.norm(pooled, axis=1, keepdims=True), np.float32)

    def _scale(self) -> np.float32:
        return np.float32((self.dimensions // self._heads) ** -0.5)

    def _hidden(self, ids: NDArray[np.int64], mask: Floats) -> Floats:
        texts, length = ids.shape
        state = (self._words[ids] + self._places[:length]).reshape(texts * length, -1)
        _normalise(state, self._norm)
        hide = ((1 - mask) * MASKED)[:, None, None, :] if not mask.all() else None
        for layer in self._layers:
            state += self._attention(layer, state, hide, (texts, length))
            _normalise(state, layer.attended_norm)
            wide = state @ layer.wide
            wide += layer.wide_bias
            _gelu(wide)
            state += wide @ layer.narrow
            state += layer.narrow_bias
            _normalise(state, layer.norm)
        return np.asarray(state.reshape(texts, length, -1))

    def _attention(
        self, layer: _Layer, state: Floats, hide: Floats | None, shape: tuple[int, int]
    ) -> Floats:
        mixed = state @ layer.mixed
        mixed += layer.mixed_bias
        parts = mixed.reshape(*shape, 3, self._heads, -1).transpose(2, 0, 3, 1, 4)
        queries, keys, values = parts
        weight = queries @ keys.swapaxes(-1, -2)
        if hide is not None:
            weight += hide
        weight -= weight.max(-1, keepdims=True)
        np.exp(weight, out=weight)
        weight /= weight.sum(-1, keepdims=True)
        seen = (weight @ values).transpose(0, 2, 1, 3).reshape(state.shape)
        return np.asarray(seen @ layer.attended + layer.attended_bias)


def _layer(weights: Weights, number: int, scale: np.float32) -> _Layer:
    """The weights of one layer: query, key and value as one matrix, the query scaled already."""
    base = f"encoder.layer.{number}"
    inner = [f"{base}.attention.self.{part}" for part in ("query", "key", "value")]
    factors = (scale, np.float32(1), np.float32(1))
    pairs = list(zip(inner, factors, strict=True))
    return _Layer(
        _matrix(np.concatenate([weights[f"{name}.weight"] * factor for name, factor in pairs])),
        np.concatenate([weights[f"{name}.bias"] * factor for name, factor in pairs]),
        _matrix(weights[f"{base}.attention.output.dense.weight"]),
        weights[f"{base}.attention.output.dense.bias"],
        _norm_of(weights, f"{base}.attention.output"),
        _matrix(weights[f"{base}.intermediate.dense.weight"]),
        weights[f"{base}.intermediate.dense.bias"],
        _matrix(weights[f"{base}.output.dense.weight"]),
        weights[f"{base}.output.dense.bias"],
        _norm_of(weights, f"{base}.output"),
    )


def _matrix(weight: Floats) -> Floats:
    return np.ascontiguousarray(weight.T)


def _norm_of(weights: Weights, base: str) -> tuple[Floats, Floats]:
    return weights[f"{base}.LayerNorm.weight"], weights[f"{base}.LayerNorm.bias"]


def _normalise(state: Floats, norm: tuple[Floats, Floats]) -> None:
    """Layer norm, in place."""
    gain, bias = norm
    state -= state.mean(-1, keepdims=True)
    variance = np.einsum("td,td->t", state, state)[:, None] / np.float32(state.shape[-1])
    state /= np.sqrt(variance + EPSILON)
    state *= gain
    state += bias


def _gelu(state: Floats) -> None:
    """x · Φ(x), in place."""
    for start in range(0, len(state), _ROWS_AT_ONCE):
        rows = state[start : start + _ROWS_AT_ONCE]
        size = np.abs(rows)
        near = 1 / (1 + _P * size)
        tail = near * _A[0]
        for factor in _A[1:]:
            tail += factor
            tail *= near
        tail *= np.exp(np.float32(-0.5) * rows * rows)
        tail *= size
        # x·Φ(x) = max(x, 0) - ½|x|·(1 - erf(|x|/√2))
        tail *= np.float32(0.5)
        np.maximum(rows, 0, out=rows)
        rows -= tail
