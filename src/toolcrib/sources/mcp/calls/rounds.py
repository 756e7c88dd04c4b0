"""What a server of 2026-07-28 asks: it answers a request with questions, and is sent the request
once more with what was answered, until it is done.

Knows no connections: `send` makes one request. Servers before that ask on their own (`link.asked`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from toolcrib.host import abilities_of
from toolcrib.sources.mcp.asking.questions import METHODS, Refused
from toolcrib.sources.mcp.asking.relay import Relay
from toolcrib.sources.mcp.connection import Hears
from toolcrib.sources.mcp.content.shapes import object_of
from toolcrib.sources.mcp.failures import Unanswered, Unreadable
from toolcrib.sources.mcp.health import delay

__all__ = ["MAY_ASK", "Rounds"]

MAY_ASK: Final = ("tools/call", "prompts/get", "resources/read")
"""The methods whose answer may be a question."""

MAX_QUESTIONS: Final = 32
"""Of one round."""

FIRST_PAUSE: Final = 0.05
LONGEST_PAUSE: Final = 0.25
"""Seconds before a server is asked again that wants nothing but that."""

Send: TypeAlias = Callable[[dict[str, Any]], Awaitable[dict[str, Any]]]


@dataclass(frozen=True, slots=True)
class Rounds:
    """Answers what is asked during one call, at most `most` times."""

    relay: Relay
    most: int

    async def lead(self, send: Send, params: dict[str, Any], hears: Hears) -> dict[str, Any]:
        """The server's last word on the request `params`. Raises what `send` does, `Unreadable`,
        and `Unanswered` where a question has nobody to answer it or there is no end of them."""
        answer = await send(params)
        pauses = 0
        for _ in range(self.most):
            if answer.get("resultType") != "input_required":
                return answer
            questions, state = _asked(answer, hears)
            pauses = 0 if questions else pauses + 1
            if pauses:
                await asyncio.sleep(delay(pauses, FIRST_PAUSE, LONGEST_PAUSE))
            more = {"inputResponses": await self._answers(questions, hears)} if questions else {}
            answer = await send({**params, **more, **state})
        if answer.get("resultType") == "input_required":
            raise Unanswered(f"it still wants to know more after {self.most} answers")
        return answer

    async def _answers(
        self, questions: Mapping[str, Mapping[str, Any]], hears: Hears
    ) -> dict[str, Any]:
        """One after the other, as the server has them: a person answers one at a time."""
        answers: dict[str, Any] = {}
        with hears.waiting():
            for key, question in questions.items():
                method = str(question.get("method"))
                try:
                    answers[key] = await self.relay.ask(
                        hears.caller, method, object_of(question.get("params"))
                    )
                except Refused as refused:
                    raise Unanswered(f"its question is not answered: {refused}") from None
        return answers


def _asked(answer: Mapping[str, Any], hears: Hears) -> tuple[dict[str, dict[str, Any]], Any]:
    """The questions of a round, and the state to give back as it is. Raises `Unanswered` for what
    the request did not say can be asked."""
    abilities = abilities_of(hears.caller.host)
    if not abilities:
        raise Unanswered("it wants to ask a person before it goes on, and nobody is there to ask")
    given = answer.get("inputRequests")
    questions = {key: object_of(one) for key, one in object_of(given).items()}
    if len(questions) > MAX_QUESTIONS:
        raise Unanswered(f"it asks {len(questions)} questions at once")
    for question in questions.values():
        ability = METHODS.get(str(question.get("method")))
        if ability not in abilities:
            raise Unanswered("it asks for what it was told that nobody here can do")
    state = answer.get("requestState")
    if not (questions or state is not None) or not isinstance(state, str | None):
        raise Unreadable("it wants an answer to no question")
    return questions, {} if state is None else {"requestState": state}
