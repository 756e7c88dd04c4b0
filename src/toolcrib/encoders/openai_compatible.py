"""Vectors from OpenAI, or from any server that speaks its embeddings API, through the official SDK
(extra `openai`).

    encoder = OpenAIEncoder("text-embedding-3-small", 1536)                   # OPENAI_API_KEY
    encoder = OpenAIEncoder("nomic-embed-text", 768, base_url="http://127.0.0.1:11434/v1")

Retries and time-outs are the SDK's.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from toolcrib.dense.encoder import EncodingFailed, Vectors, checked, library, unit
from toolcrib.errors import InvalidDefinition
from toolcrib.redact import Redactor

if TYPE_CHECKING:
    from openai import OpenAI

__all__ = ["OpenAIEncoder", "Prefixes"]

NO_KEY = "none"
"""Sent to a server of one's own where no key is set: the SDK insists on one."""
TIMEOUT = 20.0
"""Seconds of one try, of at most three."""
MOST_AT_ONCE = 64
"""Texts in one request."""
MOST_WORDS = 1_000
"""Characters of a server's own words that are kept."""


@dataclass(frozen=True, slots=True)
class Prefixes:
    """What the model wants before each text, as `search_query: `; many want nothing."""

    query: str = ""
    document: str = ""


class OpenAIEncoder:
    """`dimensions` is what the model gives; an answer of another width is an `EncodingFailed`.
    `base_url` ends in `/v1` as a rule; `api_key` defaults to `OPENAI_API_KEY`. Or give a `client`
    that is set up already: it is not closed here.

    Every fault of a request is raised as `EncodingFailed`, without key and texts. The name, by
    which vectors are kept, holds model, server and prefixes.
    """

    def __init__(
        self,
        model: str,
        dimensions: int,
        *,
        base_url: str | None = None,
        api_key: str | None = None,
        client: OpenAI | None = None,
        prefixes: Prefixes = Prefixes(),
    ) -> None:
        if client is not None and (base_url or api_key):
            raise InvalidDefinition("give a client, or base_url and api_key, not both")
        if dimensions < 1:
            raise InvalidDefinition(f"vectors have no {dimensions} dimensions")
        self.model = model
        self.dimensions = dimensions
        self.prefixes = prefixes
        self._client = client or _client(base_url, api_key)
        self.name = f"openai/{self._client.base_url}/{model}/{dimensions}/{prefixes}"

    def documents(self, texts: Sequence[str]) -> Vectors:
        return self._vectors([self.prefixes.document + text for text in texts])

    def queries(self, texts: Sequence[str]) -> Vectors:
        return self._vectors([self.prefixes.query + text for text in texts])

    def _vectors(self, texts: list[str]) -> Vectors:
        rows = [
            row
            for start in range(0, len(texts), MOST_AT_ONCE)
            for row in self._requested(texts[start : start + MOST_AT_ONCE])
        ]
        return np.array(rows, np.float32).reshape(len(texts), self.dimensions)

    def _requested(self, texts: list[str]) -> Vectors:
        import openai as sdk

        try:
            answer = self._client.embeddings.create(
                model=self.model, input=[text or " " for text in texts], encoding_format="float"
            )
            found = sorted(answer.data, key=lambda item: item.index)
            rows = np.array([item.embedding for item in found], np.float32)
        except (sdk.OpenAIError, ValueError, TypeError, AttributeError) as error:
            raise EncodingFailed(f"{self.model}: {self._words(error)}") from None
        if [item.index for item in found] != list(range(len(texts))):
            raise EncodingFailed(f"{self.model}: {len(texts)} texts gave {len(found)} vectors")
        return unit(checked(rows, len(texts), self.dimensions))

    def _words(self, error: Exception) -> str:
        words = f"{type(error).__name__}: {error}"
        key = self._client.api_key
        return Redactor([] if key == NO_KEY else [key]).text(words)[:MOST_WORDS]


def _client(base_url: str | None, api_key: str | None) -> OpenAI:
    sdk = library("openai", "'toolcrib[openai]'")
    key = api_key or os.environ.get("OPENAI_API_KEY") or (NO_KEY if base_url else None)
    client: OpenAI = sdk.OpenAI(base_url=base_url, api_key=key, timeout=TIMEOUT)
    return client
