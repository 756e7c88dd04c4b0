"""Puts one question of a server to the host of a call, for so long and no longer.

Knows neither connections nor eras. Whatever a host does, it costs no more than its answer: what it
raises, or that it never answers, counts as "cancel", and where the protocol has no word for that,
as a refusal.
"""

from __future__ import annotations

import asyncio
import json
import logging
import traceback
from collections.abc import Coroutine, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeVar, cast

import anyio
from mcp_types import INTERNAL_ERROR

from toolcrib.host import (
    CANCELLED,
    DECLINED,
    Elicits,
    HasRoots,
    Samples,
)
from toolcrib.sources.mcp.asking.questions import (
    METHODS,
    Asker,
    Caller,
    Refused,
    elicitation,
    elicited,
    rooted,
    sampled,
    sampling,
)

__all__ = ["Relay"]

T = TypeVar("T")

logger = logging.getLogger("toolcrib.mcp")

GRACE: Final = 0.05
"""Seconds a host that is no longer waited for has to end; then it is left behind."""

REJECTED: Final = -1
"""What the specification answers where a person does not let a model be asked."""

_left_behind: Final[set[asyncio.Task[Any]]] = set()


class _NoAnswer(Exception):
    """The host gave none."""


@dataclass(frozen=True, slots=True)
class Relay:
    """Asks on behalf of one server; a host has `seconds` for each answer."""

    asker: Asker
    seconds: float

    async def ask(self, caller: Caller, method: str, params: Mapping[str, Any]) -> dict[str, Any]:
        """The answer in its wire form. Raises `Refused`."""
        ability = METHODS.get(method)
        try:
            if ability == "elicit":
                return await self._elicit(caller, params)
            if ability == "sample":
                return await self._sample(caller, params)
            if ability == "roots":
                return await self._roots(caller)
        except _NoAnswer as error:
            logger.warning("no answer for MCP server %r: %s", self.asker.server, error)
            raise Refused("the host gave no answer", INTERNAL_ERROR) from None
        raise Refused(f"{method[:100]!r} is not supported")

    async def _elicit(self, caller: Caller, params: Mapping[str, Any]) -> dict[str, Any]:
        question, host = elicitation(self.asker, caller, params), caller.host
        if not isinstance(host, Elicits):
            return elicited(question, DECLINED)[0]

        async def ask() -> tuple[dict[str, Any], str]:
            wire, wrong = elicited(question, await host.elicit(question))
            return _sendable(wire), wrong

        try:
            wire, wrong = await self._given(ask())
        except _NoAnswer as error:
            wire, wrong = elicited(question, CANCELLED)[0], str(error)
        if wrong:
            logger.warning("no answer for MCP server %r: %s", self.asker.server, wrong)
        return wire

    async def _sample(self, caller: Caller, params: Mapping[str, Any]) -> dict[str, Any]:
        request, host = sampling(self.asker, caller, params), caller.host
        if not isinstance(host, Samples):
            raise Refused("sampling is not supported: nobody here has a model to ask")

        async def ask() -> dict[str, Any] | None:
            answer = await host.sample(request)
            return None if answer is None else _sendable(sampled(answer))

        wire = await self._given(ask())
        if wire is None:
            raise Refused("the host does not let its model be asked", REJECTED)
        return wire

    async def _roots(self, caller: Caller) -> dict[str, Any]:
        host = caller.host
        if not isinstance(host, HasRoots):
            raise Refused("roots are not supported: nobody here has any")

        async def ask() -> dict[str, Any]:
            return _sendable(rooted(await host.roots()))

        return await self._given(ask())

    async def _given(self, work: Coroutine[Any, Any, T]) -> T:
        """What the host gives, made ready to be sent. Raises `_NoAnswer`."""
        task = asyncio.create_task(work)
        try:
            await asyncio.wait((task,), timeout=self.seconds)
        finally:
            if not task.done():
                await _leave(task)
        if not task.done() or task.cancelled():
            raise _NoAnswer(f"the host did not answer within {self.seconds:g} s, or gave up")
        if (error := task.exception()) is not None:
            # Its text is the host's, and may repeat what a person typed.
            trace = "".join(traceback.format_tb(error.__traceback__))
            logger.debug("a host failed:\n%s%s", trace, type(error).__name__)
            raise _NoAnswer(f"the host failed ({type(error).__name__})")
        return task.result()


def _sendable(wire: dict[str, Any]) -> dict[str, Any]:
    """`wire` as it is after JSON. Raises for what JSON cannot hold: here it is the host's fault,
    and on the wire it would be the connection's."""
    text = json.dumps(wire, ensure_ascii=False, allow_nan=False)
    return cast("dict[str, Any]", json.loads(text.encode()))


async def _leave(task: asyncio.Task[Any]) -> None:
    task.cancel()
    _left_behind.add(task)
    task.add_done_callback(_ended)
    with anyio.move_on_after(GRACE, shield=True):
        await asyncio.wait((task,))


def _ended(task: asyncio.Task[Any]) -> None:
    _left_behind.discard(task)
    if not task.cancelled():
        task.exception()  # looked at, so that asyncio does not report it as lost
