"""Models that speak OpenAI's chat completions or responses, through its SDK (extra `openai`).

::

    model = OpenAIModel("gpt-5")                                          # OPENAI_API_KEY
    model = OpenAIModel("qwen3", base_url="http://127.0.0.1:8000/v1")     # any compatible server

Builds requests and reads streams; formats are `providers.openai`.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, cast

from toolcrib.content import ToolCall
from toolcrib.definition import ToolDefinition
from toolcrib.errors import ConfigurationError, InvalidDefinition
from toolcrib.models.chat_parts import ChatParts
from toolcrib.models.failures import missing
from toolcrib.models.responses_parts import ResponsesParts
from toolcrib.models.streaming import Parts, Stream, StreamingModel
from toolcrib.providers import openai as wire
from toolcrib.providers.history import Assistant, Message

try:
    import openai as sdk
except ModuleNotFoundError as error:
    if error.name != "openai":  # the SDK is there, but not whole
        raise
    raise missing("openai") from error

__all__ = ["OpenAIModel"]

NO_KEY = "none"
"""Sent to a server of one's own where no key is set: the SDK insists on one."""


class OpenAIModel(StreamingModel):
    """A `loop.Model`. `base_url` ends in `/v1` as a rule; `api_key` defaults to `OPENAI_API_KEY`,
    for a server of one's own too. Or give a `client` that is set up already (retries, time-outs,
    proxies): it is not closed here.

    `api="responses"` replays a response's own items, reasoning included, and leaves storing to the
    API's default; `strict` asks for strict tools where a tool has a strict form. `options` are more
    fields of the request (`temperature`, `reasoning`, …); they win over ours.
    """

    _errors: ClassVar = (sdk.OpenAIError, ValueError)

    def __init__(
        self,
        model: str,
        *,
        client: sdk.AsyncOpenAI | None = None,
        base_url: str | None = None,
        api_key: str | None = None,
        api: wire.Api = "chat",
        system: str = "",
        strict: bool = False,
        options: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(model, system)
        if client is not None and (base_url or api_key):
            raise InvalidDefinition("give a client, or base_url and api_key, not both")
        self.api: wire.Api = api
        self.strict = strict
        self.options = dict(options or {})
        self._is_own = client is None
        self._client = client or _client(base_url, api_key)

    def _parts(self) -> Parts:
        return ChatParts() if self.api == "chat" else ResponsesParts()

    def _request(
        self, messages: Sequence[Message], tools: Sequence[ToolDefinition]
    ) -> dict[str, Any]:
        written = wire.messages(messages, api=self.api)
        request: dict[str, Any] = {"model": self.model, "stream": True}
        if tools:  # an empty list is refused (O3)
            request["tools"] = wire.tools(tools, api=self.api, strict=self.strict)
        if self.api == "chat":
            head = [{"role": "system", "content": self.system}] if self.system else []
            request["messages"] = head + written
            request["stream_options"] = {"include_usage": True}
        else:
            request["input"] = written
            if self.system:
                request["instructions"] = self.system
        return {**request, "extra_body": self.options}

    async def _send(self, request: dict[str, Any]) -> Stream:
        client = self._client
        create: Any = (
            client.chat.completions.create if self.api == "chat" else client.responses.create
        )
        # requests are checked by the wire's own tests, not by the SDK's TypedDicts
        return cast("Stream", await create(**request))

    def _read(
        self, reply: dict[str, Any], tools: Sequence[ToolDefinition]
    ) -> tuple[Assistant, list[ToolCall]]:
        return wire.reply(reply), wire.calls(reply, tools)

    def _secrets(self) -> Sequence[str | None]:
        return (self._client.api_key,)

    async def aclose(self) -> None:
        if self._is_own:
            await self._client.close()


def _client(base_url: str | None, api_key: str | None) -> sdk.AsyncOpenAI:
    if not api_key and base_url and not os.environ.get("OPENAI_API_KEY"):
        api_key = NO_KEY
    try:
        return sdk.AsyncOpenAI(base_url=base_url, api_key=api_key)
    except sdk.OpenAIError as error:
        raise ConfigurationError(
            "no key for openai: set OPENAI_API_KEY, or give a base_url"
        ) from error
