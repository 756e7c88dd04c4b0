"""The `search:` of a dynamic assembly: by meaning too, decoded. What ranks is `dense.hybrid`.

Needs the extra `dense`, and what the chosen encoder needs; a file without the key needs neither.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from toolcrib.deploy.decode import Decoder, record, required
from toolcrib.deploy.places import At, Rejected
from toolcrib.deploy.scalars import choice, directory, integer, name, text
from toolcrib.ranking.index import Index
from toolcrib.ranking.ranker import Ranker

if TYPE_CHECKING:
    from toolcrib.dense.encoder import Encoder

__all__ = ["ByMeaning", "search_settings"]

DEFAULT_PERCENT = 50
_KINDS = ("minilm", "openai", "sentence-transformers", "fastembed")
_NEEDED = {
    "openai": ("model", "dimensions"),
    "sentence-transformers": ("model",),
    "fastembed": ("model",),
}


@dataclass(frozen=True, slots=True)
class EncoderSettings:
    """Which encoder: `minilm` (`path`: another folder with the model), `openai` (any server with
    OpenAI's embeddings API) or a model of a library."""

    kind: str
    model: str = ""
    path: str = ""
    dimensions: int = 0
    base_url: str | None = None
    api_key: str | None = field(default=None, repr=False)

    def make(self) -> Encoder:
        """The encoder. Raises `MissingExtra` where it needs what is not installed."""
        if self.kind == "minilm":
            from toolcrib.encoders.minilm import MiniLM

            return MiniLM(Path(self.path) if self.path else None)
        if self.kind == "openai":
            from toolcrib.encoders.openai_compatible import OpenAIEncoder

            return OpenAIEncoder(
                self.model, self.dimensions, base_url=self.base_url, api_key=self.api_key
            )
        if self.kind == "fastembed":
            from toolcrib.encoders.fastembed import FastEmbedEncoder

            return FastEmbedEncoder(self.model)
        from toolcrib.encoders.sentence_transformers import SentenceTransformerEncoder

        return SentenceTransformerEncoder(self.model)


@dataclass(frozen=True, slots=True)
class ByMeaning:
    """Makes the ranker of one assembly. `percent` is the share of meaning; `cache` the file that
    keeps vectors from one run to the next (empty: none), closed with the ranker."""

    encoder: EncoderSettings
    cache: str = ""
    percent: int = DEFAULT_PERCENT

    def __call__(self) -> Ranker:
        from toolcrib.dense.hybrid import Hybrid
        from toolcrib.dense.vectors import VectorCache

        cache = VectorCache(Path(self.cache)) if self.cache else None

        class OfAssembly(Hybrid):
            def close(self) -> None:
                super().close()
                if cache is not None:
                    cache.close()

        return OfAssembly(Index(), self.encoder.make(), cache=cache, weight=self.percent / 100)


def _check_kind(at: At) -> None:
    """What the kind of encoder needs, at the key it is about."""
    by_key = at.map_node().by_key
    entry = by_key.get("kind")
    try:
        kind = choice(*_KINDS)(at.silent.under(entry)) if entry is not None else ""
    except Rejected:
        return  # its own decoder says why
    for key in _NEEDED.get(kind, ()):
        if key not in by_key:
            at.note(f"missing required key {key!r}: an encoder of kind {kind} needs it")


def _percent(at: At) -> int:
    found = integer(0)(at)
    if found > 100:
        at.expected("a whole number from 0 to 100")
    return found


_ENCODER: Decoder[EncoderSettings] = record(
    EncoderSettings,
    {
        "kind": required(choice(*_KINDS)),
        "model": name,
        "path": directory,
        "dimensions": integer(1),
        "base_url": name,
        "api_key": text,
    },
    check=_check_kind,
)

search_settings: Callable[[At], Any] = record(
    ByMeaning,
    {"encoder": required(_ENCODER), "cache": directory, "percent": _percent},
)
