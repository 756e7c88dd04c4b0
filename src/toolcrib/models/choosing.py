"""From `openai:NAME` or `anthropic:NAME` to a model. Imports the SDK that is asked for only."""

from __future__ import annotations

from toolcrib.errors import NotFound
from toolcrib.models.streaming import StreamingModel

__all__ = ["model_named"]


def model_named(spec: str, *, base_url: str | None = None, system: str = "") -> StreamingModel:
    """The model of `spec`, with a client of its own: key and proxy from the environment.

    Raises `NotFound` for another provider or no name, `MissingExtra` where its SDK is not
    installed, `ConfigurationError` without a key.
    """
    provider, _, name = spec.partition(":")
    if name and provider == "openai":
        from toolcrib.models.openai import OpenAIModel

        return OpenAIModel(name, base_url=base_url, system=system)
    if name and provider == "anthropic":
        from toolcrib.models.anthropic import AnthropicModel

        return AnthropicModel(name, base_url=base_url, system=system)
    raise NotFound(f"no model {spec!r}: write openai:NAME or anthropic:NAME")
