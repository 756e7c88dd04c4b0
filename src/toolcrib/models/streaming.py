"""One request, one stream, one response: what the models of every SDK have in common.

Never sends a request twice: the SDK's own client does so (`max_retries`, 2 by default), and only
until a response has begun. From then on a stream that fails is `ModelFailed`, whatever was told.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, aclosing
from dataclasses import replace
from types import TracebackType
from typing import Any, ClassVar, Final, Protocol, TypeVar

from toolcrib.content import ToolCall
from toolcrib.decoding import decode
from toolcrib.definition import ToolDefinition
from toolcrib.errors import InvalidArguments
from toolcrib.models.failures import Broken, failure
from toolcrib.models.response import Response, Usage
from toolcrib.models.telling import Telling
from toolcrib.providers.history import Assistant, Message

__all__ = ["Event", "Parts", "StreamingModel"]

OUT_OF_TOKENS: Final = frozenset(
    {"length", "max_tokens", "max_output_tokens", "model_context_window_exceeded"}
)


class Event(Protocol):
    """An event as the SDKs give it: pydantic's way to JSON."""

    def model_dump(
        self, *, by_alias: bool, exclude_none: bool, warnings: bool
    ) -> dict[str, Any]: ...


class Parts(Protocol):
    """Assembles the events of one stream; pure. Raises `Broken` where no response comes of it."""

    @property
    def usage(self) -> Usage: ...

    @property
    def stop(self) -> str: ...

    @property
    def last_arguments(self) -> str | None:
        """Of the last call, as far as they came; None without a call."""

    def feed(self, event: dict[str, Any]) -> str:
        """Takes the next event; gives the text in it."""
        ...

    def reply(self) -> dict[str, Any]:
        """The whole reply, as the API would have sent it without streaming."""
        ...


Stream = AbstractAsyncContextManager[AsyncIterator[Event]]
M = TypeVar("M", bound="StreamingModel")


class StreamingModel(ABC):
    """A `loop.Model` over an SDK's async client. `usage` sums the tokens of everything asked
    through this object, also of responses that were rejected or cut; for those of one response see
    `Response`. May be shared by conversations of one event loop."""

    _errors: ClassVar[tuple[type[Exception], ...]]

    def __init__(self, model: str, system: str) -> None:
        self.model = model
        self.system = system
        self.usage = Usage()

    @abstractmethod
    def _parts(self) -> Parts: ...

    @abstractmethod
    def _request(
        self, messages: Sequence[Message], tools: Sequence[ToolDefinition]
    ) -> dict[str, Any]: ...

    @abstractmethod
    async def _send(self, request: dict[str, Any]) -> Stream: ...

    @abstractmethod
    def _read(
        self, reply: dict[str, Any], tools: Sequence[ToolDefinition]
    ) -> tuple[Assistant, list[ToolCall]]: ...

    @abstractmethod
    def _secrets(self) -> Sequence[str | None]: ...

    @abstractmethod
    async def aclose(self) -> None:
        """Closes the client if the model made it itself."""

    async def respond(
        self,
        messages: Sequence[Message],
        tools: Sequence[ToolDefinition],
        on_text: Callable[[str], None],
    ) -> Response:
        """The response to `messages`, its text told as it comes. Raises `ModelFailed`; cancelled,
        or when `on_text` raises, the connection is closed."""
        parts, telling = self._parts(), Telling(on_text)
        try:
            async with aclosing(self._events(self._request(messages, tools), telling)) as events:
                async for event in events:
                    telling(parts.feed(event))
            response = self._response(parts, tools)
        except Broken as broken:
            failed = failure(broken, self._secrets(), told=telling.told)
        else:
            telling.end(response.text)
            return response
        finally:
            self.usage += parts.usage
        raise failed  # here, where `broken` is no context of it any more

    async def _events(
        self, request: dict[str, Any], telling: Telling
    ) -> AsyncGenerator[dict[str, Any]]:
        begun = False
        try:
            async with await self._send(request) as stream:
                async for event in stream:
                    begun = True
                    # without warnings: other servers' events need not fit the SDK's types
                    yield event.model_dump(by_alias=True, exclude_none=True, warnings=False)
        except self._errors as error:
            failed = failure(error, self._secrets(), told=telling.told, begun=begun)
        else:
            return
        raise failed

    def _response(self, parts: Parts, tools: Sequence[ToolDefinition]) -> Response:
        said, calls = self._read(parts.reply(), tools)
        if parts.stop in OUT_OF_TOKENS and calls and not _is_whole(parts.last_arguments):
            raise Broken(
                f"the response ran out of tokens ({parts.stop}) inside a call of"
                f" {calls[-1].name[:100]!r}: allow more output",
                "cut",
            )
        return Response(
            said.text,
            tuple(replace(call, id=call.id or f"call_{at}") for at, call in enumerate(calls)),
            said.provider,
            said.raw,
            usage=parts.usage,
            stop=parts.stop,
        )

    async def __aenter__(self: M) -> M:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.aclose()

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.model!r}>"


def _is_whole(arguments: str | None) -> bool:
    """Whether a call cut by its token limit is whole all the same. Nothing yet is not: its
    arguments may have been about to come."""
    if not arguments:
        return False
    try:
        decode(arguments)
    except InvalidArguments:
        return False
    return True
