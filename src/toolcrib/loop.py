"""Leading a conversation: ask a model, run what it calls, until it calls nothing any more.

The transcript holds whole steps only: what a model asked for is in it together with the results,
or not at all. What it may see and call is the session's; how a provider is talked to, the model's.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol, TypeAlias

from toolcrib.content import ToolCall, ToolResult
from toolcrib.definition import ToolDefinition
from toolcrib.errors import ToolcribError
from toolcrib.providers.history import Answers, Assistant, Message, User
from toolcrib.session import Session
from toolcrib.tool import ProgressHandler
from toolcrib.turn import Approve, Round

__all__ = [
    "NO_RECOVERY",
    "CallsMade",
    "Event",
    "InvalidProviderResponse",
    "Model",
    "Recovery",
    "ResultsCame",
    "RoundBegan",
    "ScriptedModel",
    "TextCame",
    "ToolLimitError",
    "UndefinedTool",
    "run",
]

OnText: TypeAlias = Callable[[str], None]


class Model(Protocol):
    """Anything that answers a conversation.

    `respond` gets the messages and the definitions of this round, tells text as it comes to
    `on_text`, and returns the whole response. It raises whatever kept it from one; those of
    `toolcrib.models` raise their `ModelFailed`.
    """

    async def respond(
        self, messages: Sequence[Message], tools: Sequence[ToolDefinition], on_text: OnText
    ) -> Assistant: ...


class InvalidProviderResponse(ToolcribError):
    """A response that no retry of ours can mend: calls although no tools were sent (rule A8.1)."""


class UndefinedTool(ToolcribError):
    """A response called a tool that its round did not send. `call` is the first such call."""

    def __init__(self, call: ToolCall) -> None:
        super().__init__(f"the model called {call.name[:100]!r}, which this round did not send")
        self.call = call


class ToolLimitError(ToolcribError):
    """The turn has used up its tool calls; the steps before are in the transcript."""


@dataclass(frozen=True, slots=True)
class Recovery:
    """Whether a call of a tool that was not sent leads back to `tool_search` instead of an error,
    and how often in one run (rule A8.3)."""

    most: int = 2


NO_RECOVERY = Recovery(0)


@dataclass(frozen=True, slots=True)
class RoundBegan:
    """A request is about to be sent; `number` counts from 1."""

    number: int
    round: Round


@dataclass(frozen=True, slots=True)
class TextCame:
    """A piece of the response's text. Of a response that is rejected, it counts for nothing."""

    text: str


@dataclass(frozen=True, slots=True)
class CallsMade:
    """The response is valid; these calls are about to be asked for, if anybody is, and to run."""

    calls: tuple[ToolCall, ...]


@dataclass(frozen=True, slots=True)
class ResultsCame:
    """The results, in the order of the calls."""

    results: tuple[ToolResult, ...]


Event: TypeAlias = RoundBegan | TextCame | CallsMade | ResultsCame


def _nobody(event: Event) -> None:
    """Where nobody listens."""


async def run(
    session: Session,
    model: Model,
    messages: list[Message],
    *,
    recovery: Recovery = NO_RECOVERY,
    on_event: Callable[[Event], None] = _nobody,
    approve: Approve | None = None,
    on_progress: ProgressHandler | None = None,
) -> Assistant:
    """One user turn: appends to `messages` until a response calls nothing, and returns that one.

    `messages` ends with what the user said, and only ever grows by whole steps, so it can be sent
    again whatever happens. `approve` is asked before calls run, `on_progress` told how far
    they are (`Round.execute`). Raises
    `ToolLimitError` when the turn's limits are exceeded, `UndefinedTool` for a call that its round
    did not send (after `recovery`, if any), `InvalidProviderResponse`, and whatever the model or
    `approve` raises.
    """
    running = _Running(approve, on_progress)
    feedback: list[Message] = []
    recovered = number = 0
    async with session.turn() as turn:
        while True:
            number += 1
            round = turn.round()
            on_event(RoundBegan(number, round))
            request = [*messages, *feedback]
            said = await model.respond(request, round.definitions, lambda t: on_event(TextCame(t)))
            offender = _offender(round, said)
            if offender is not None:
                if recovered >= recovery.most:
                    raise UndefinedTool(offender)
                recovered += 1
                feedback = [User.of(_feedback(round, offender))]
                continue
            feedback = []
            if not said.calls:
                round.accept()
                messages.append(said)
                return said
            await _step(round, said, messages, on_event, running)


def _offender(round: Round, said: Assistant) -> ToolCall | None:
    """The first call of a tool that was not sent."""
    if said.calls and not round.names:
        raise InvalidProviderResponse("the model called tools although none were sent")
    names = set(round.names)
    return next((call for call in said.calls if call.name not in names), None)


class _Running(NamedTuple):
    """What calls are run with."""

    approve: Approve | None
    on_progress: ProgressHandler | None


async def _step(
    round: Round,
    said: Assistant,
    messages: list[Message],
    on_event: Callable[[Event], None],
    running: _Running,
) -> None:
    on_event(CallsMade(said.calls))
    approve, on_progress = running
    results = await round.execute(said.calls, approve=approve, on_progress=on_progress)
    if round.turn.closed:
        raise ToolLimitError(results[0].text)
    messages += [said, Answers(tuple(results))]
    on_event(ResultsCame(tuple(results)))


def _feedback(round: Round, call: ToolCall) -> str:
    """Said to the model instead of its rejected response; never part of the transcript (A8.4)."""
    return (
        f"Your last response was not taken: it called {call.name[:100]!r}, which is not among the"
        f" tools you were given in this round: {round.hint}."
    )


class ScriptedModel:
    """A model for tests: gives the responses it was made with, one a request, and keeps what it was
    asked. A response may be a function of the messages and definitions."""

    def __init__(
        self,
        *responses: Assistant
        | str
        | Callable[[Sequence[Message], Sequence[ToolDefinition]], Assistant],
    ) -> None:
        self._responses = list(responses)
        self.requests: list[tuple[tuple[Message, ...], tuple[ToolDefinition, ...]]] = []

    async def respond(
        self, messages: Sequence[Message], tools: Sequence[ToolDefinition], on_text: OnText
    ) -> Assistant:
        """The next response; raises `IndexError` when there is none left."""
        self.requests.append((tuple(messages), tuple(tools)))
        following = self._responses.pop(0)
        if isinstance(following, str):
            following = Assistant(following)
        elif not isinstance(following, Assistant):
            following = following(messages, tools)
        if following.text:
            on_text(following.text)
        return following
