"""Models that speak Anthropic's messages API, through its SDK (extra `anthropic`).

::

    model = AnthropicModel("claude-sonnet-5")                             # ANTHROPIC_API_KEY
    model = AnthropicModel("mine", base_url="http://127.0.0.1:8000")      # any compatible server

Builds requests and reads streams; formats are `providers.anthropic`.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, cast

from toolcrib.content import ToolCall
from toolcrib.definition import ToolDefinition, compact_json
from toolcrib.errors import ConfigurationError, InvalidDefinition
from toolcrib.models.failures import missing
from toolcrib.models.messages_parts import MessagesParts
from toolcrib.models.streaming import Parts, Stream, StreamingModel
from toolcrib.providers import anthropic as wire
from toolcrib.providers.history import Assistant, Message
from toolcrib.providers.reading import arguments_object, objects
from toolcrib.providers.report import Notes

try:
    import anthropic as sdk
    import httpx2 as transport  # whose errors the SDK lets through while a stream is read
except ModuleNotFoundError as error:
    if error.name != "anthropic":  # the SDK is there, but not whole
        raise
    raise missing("anthropic") from error

__all__ = ["AnthropicModel"]

NO_KEY = "none"
"""Sent to a server of one's own where no key is set: the SDK insists on one."""
KEYS = ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN")
MAX_TOKENS = 8_192


class AnthropicModel(StreamingModel):
    """A `loop.Model`. `base_url` stands before `/v1/messages`; `api_key` defaults to
    `ANTHROPIC_API_KEY`, for a server of one's own too. Or give a `client` that is set up already
    (retries, time-outs, proxies): it is not closed here. A response's blocks are replayed whole,
    thinking and signatures too.

    `max_tokens` bounds each response. `options` are more fields of the request (`thinking`,
    `cache_control={"type": "ephemeral"}` for prompt caching, …); they win over ours.
    """

    _errors: ClassVar = (sdk.AnthropicError, transport.HTTPError, ValueError)

    def __init__(
        self,
        model: str,
        *,
        client: sdk.AsyncAnthropic | None = None,
        base_url: str | None = None,
        api_key: str | None = None,
        system: str = "",
        max_tokens: int = MAX_TOKENS,
        options: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(model, system)
        if client is not None and (base_url or api_key):
            raise InvalidDefinition("give a client, or base_url and api_key, not both")
        self.max_tokens = max_tokens
        self.options = dict(options or {})
        self._is_own = client is None
        self._client = client or _client(base_url, api_key)

    def _parts(self) -> Parts:
        return MessagesParts()

    def _request(
        self, messages: Sequence[Message], tools: Sequence[ToolDefinition]
    ) -> dict[str, Any]:
        return {
            "model": self.model,
            "max_tokens": self.max_tokens,
            "messages": wire.messages(messages),
            "stream": True,
            **({"tools": wire.tools(tools)} if tools else {}),
            **({"system": self.system} if self.system else {}),
            "extra_body": self.options,
        }

    async def _send(self, request: dict[str, Any]) -> Stream:
        create: Any = self._client.messages.create
        # requests are checked by the wire's own tests, not by the SDK's TypedDicts
        return cast("Stream", await create(**request))

    def _read(
        self, reply: dict[str, Any], tools: Sequence[ToolDefinition]
    ) -> tuple[Assistant, list[ToolCall]]:
        said = wire.reply(reply)
        return Assistant(said.text, (), said.provider, _replayable(said.raw)), wire.calls(
            reply, tools
        )

    def _secrets(self) -> Sequence[str | None]:
        return (self._client.api_key, self._client.auth_token)

    async def aclose(self) -> None:
        if self._is_own:
            await self._client.close()


def _replayable(raw: str) -> str:
    """`raw` with an object for every input: one that was none (C18) would be refused (A12)."""
    blocks = objects(json.loads(raw)) if raw else []
    broken = [block for block in blocks if isinstance(block.get("input"), str)]
    for block in broken:
        call = ToolCall("", str(block.get("name") or ""), block["input"])
        block["input"] = arguments_object(call, Notes())[0]
    return compact_json(blocks) if broken else raw


def _client(base_url: str | None, api_key: str | None) -> sdk.AsyncAnthropic:
    if not api_key and base_url and not any(map(os.environ.get, KEYS)):
        api_key = NO_KEY
    client = sdk.AsyncAnthropic(base_url=base_url, api_key=api_key)
    if not (client.api_key or client.auth_token or client.credentials):
        raise ConfigurationError(f"no key for anthropic: set {KEYS[0]}, or give a base_url")
    return client
