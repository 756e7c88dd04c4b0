"""A user turn and its rounds: what one model request may see and call.

A round is a frozen list of definitions; calls are checked against exactly that list. Ageing and
searching are the session's.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial
from types import TracebackType
from typing import Protocol, TypeAlias

from toolcrib.batch import run_batch
from toolcrib.catalog import Catalog
from toolcrib.content import FailureKind, ToolCall, ToolResult
from toolcrib.definition import ToolDefinition
from toolcrib.discovery.policy import SEARCH_TOOL
from toolcrib.discovery.search_tool import Found, found_result
from toolcrib.executor import Executor
from toolcrib.limits import ToolLimits
from toolcrib.report import RoundReport, Sent, Used, report_of
from toolcrib.tool import ProgressHandler

__all__ = ["Approve", "Conversation", "Round", "Turn", "Verdict"]

Approve: TypeAlias = Callable[[ToolCall, ToolDefinition], Awaitable[str]]
"""Asked before a call runs: blank lets it go on, any other text is why not, told to the model."""


class Conversation(Protocol):
    """What a turn needs of its session."""

    @property
    def catalog(self) -> Catalog: ...

    @property
    def executor(self) -> Executor: ...

    def send(self, catalog: Catalog) -> Sent: ...

    def accepted(self) -> None: ...

    def settled(self, found: Found) -> Found: ...

    async def execute(
        self,
        call: ToolCall,
        *,
        catalog: Catalog | None = None,
        on_progress: ProgressHandler | None = None,
    ) -> ToolResult: ...


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether a response's calls may run. `refused` holds a result for every call when not: the
    offenders are `undefined_tool`, the rest `cancelled`."""

    accepted: bool
    refused: tuple[tuple[ToolCall, FailureKind, str], ...] = ()


class Turn:
    """One user turn: counts batches of calls and calls against its limits."""

    def __init__(self, session: Conversation, limits: ToolLimits) -> None:
        self.session = session
        self.limits = limits
        self.iterations = 0
        self.calls = 0
        self.searches = 0
        self.closed = False

    @property
    def used(self) -> Used:
        """What of the limits is used so far."""
        return Used(self.iterations, self.calls, self.searches)

    def round(self) -> Round:
        """A new model request: what the model may see and call now. Ages nothing."""
        catalog = self.session.catalog
        return Round(self, catalog, self.session.send(catalog))

    def take(self, count: int) -> str:
        """Counts a batch of `count` calls; says what it exceeds, blank for nothing. A turn that
        exceeded a limit is closed."""
        limits = self.limits
        if self.closed:
            return "this turn is closed"
        if self.iterations + 1 > limits.iterations:
            over = f"this turn has used its {limits.iterations} rounds of tool calls"
        elif self.calls + count > limits.calls:
            over = f"{self.calls} + {count} calls exceed the {limits.calls} of this turn"
        else:
            self.iterations += 1
            self.calls += count
            return ""
        self.closed = True
        return over

    def take_search(self) -> str:
        """Counts one search; says what it exceeds, blank for nothing."""
        if self.searches >= self.limits.searches:
            return (
                f"this turn has used its {self.limits.searches} searches: use the tools you have,"
                " or say what is missing"
            )
        self.searches += 1
        return ""

    def close(self) -> None:
        """No further calls in this turn."""
        self.closed = True

    async def __aenter__(self) -> Turn:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


class Round:
    """One model request: the definitions it sends, and the calls that answer it."""

    def __init__(self, turn: Turn, catalog: Catalog, sent: Sent) -> None:
        self.turn = turn
        self.catalog = catalog
        self.names = sent.names
        """The names sent, in wire order."""
        self.definitions: tuple[ToolDefinition, ...] = sent.definitions
        """What to send, in wire order."""
        self._sent = sent
        self._accepted = False

    @property
    def bytes(self) -> int:
        """Bytes of the definitions sent (`ToolDefinition.wire_bytes` each)."""
        return sum(definition.wire_bytes for definition in self.definitions)

    @property
    def tokens(self) -> int:
        """The tokens of the definitions sent: an estimate unless the budget has a counter."""
        return self.report().tokens

    def report(self) -> RoundReport:
        """What this round sends and what that costs, against the round before it and the budgets;
        of the turn's limits, what is used by now."""
        return report_of(self._sent, self.turn.used, self.turn.limits)

    def check(self, calls: Sequence[ToolCall]) -> Verdict:
        """Whether every call names a tool that this round sent; changes nothing (rule A8.1)."""
        names = set(self.names)
        if all(call.name in names for call in calls):
            return Verdict(True)
        return Verdict(False, tuple((c, *self._refusal(c, c.name in names)) for c in calls))

    def _refusal(self, call: ToolCall, is_defined: bool) -> tuple[FailureKind, str]:
        if is_defined:
            return "cancelled", "not run: another call of the same response names an undefined tool"
        text = f"tool {call.name[:100]!r} is not available in this round: {self.hint}"
        return "undefined_tool", text

    @property
    def hint(self) -> str:
        """What a model can do that called a tool it was not given."""
        if SEARCH_TOOL in self.names:
            return f"call {SEARCH_TOOL} to find and load it, then call it in your next message"
        return "use one of the tools you were given"

    def accept(self, calls: Sequence[ToolCall] = ()) -> Verdict:
        """Takes a response, a text-only one too. If its calls are valid the session's pool ages by
        one round, once however often this is called; a rejected response ages nothing."""
        verdict = self.check(calls)
        if verdict.accepted and not self._accepted:
            self._accepted = True
            self.turn.session.accepted()
        return verdict

    async def execute(
        self,
        calls: Sequence[ToolCall],
        *,
        approve: Approve | None = None,
        on_progress: ProgressHandler | None = None,
    ) -> list[ToolResult]:
        """The result of every call, in their order; accepts the response first if `accept` did not.

        If one names a tool that was not sent, none runs. Over a limit of the turn every call is
        `limited` and the turn is closed. Then `approve` is asked for every call before any runs:
        one it refuses is `denied`, what it raises passes through and none runs. `on_progress` is
        told how far each call is (`Progress.call_id` says which), in the thread that reports. What
        a search promises is settled when all have ended.
        """
        session, executor = self.turn.session, self.turn.session.executor
        calls = tuple(calls)  # what was asked for is what runs, whatever becomes of the list
        verdict = self.check(calls)
        if not verdict.accepted:
            return [_not_taken(executor.refuse(*refused)) for refused in verdict.refused]
        if calls and (over := self.turn.take(len(calls))):
            text = f"not run: {over}"
            return [_not_taken(executor.refuse(call, "limited", text)) for call in calls]
        self.accept(calls)
        if not calls:
            return []
        barred = await self._barred(calls, approve)
        refused = {at: executor.refuse(calls[at], *why) for at, why in barred.items()}
        allowed = [call for at, call in enumerate(calls) if at not in refused]
        run = partial(session.execute, catalog=self.catalog, on_progress=on_progress)
        ran = iter(await run_batch(allowed, run, self.turn.limits.parallel))
        return [
            refused[at] if at in refused else _settled(session, next(ran))
            for at in range(len(calls))
        ]

    async def _barred(
        self, calls: Sequence[ToolCall], approve: Approve | None
    ) -> dict[int, tuple[FailureKind, str]]:
        """By their places, the calls that do not run, and why: searches over the limit, and what
        `approve` refuses, asked one after another in the order of the calls (rule C13)."""
        sent = {} if approve is None else dict(zip(self.names, self.definitions, strict=True))
        barred: dict[int, tuple[FailureKind, str]] = {}
        for at, call in enumerate(calls):
            if call.name == SEARCH_TOOL and (over := self.turn.take_search()):
                barred[at] = "limited", f"not run: {over}"
            elif approve is not None and (why := await approve(call, sent[call.name])).strip():
                barred[at] = "denied", why
        return barred

    def __repr__(self) -> str:
        return f"<Round of {len(self.names)} tools, {self.bytes} bytes>"


def _not_taken(result: ToolResult) -> ToolResult:
    """Marked for whoever reads the transcript again: this response aged nothing."""
    return result.with_meta(accepted=False)


def _settled(session: Conversation, result: ToolResult) -> ToolResult:
    """A search's answer as the whole batch left the pool; a result that some limit has cut, or that
    is no search's, stays as it is."""
    found = result.value
    if not isinstance(found, Found) or result.failure is not None:
        return result
    now, told = session.settled(found), found_result(found).content
    if now == found or result.content[: len(told)] != told:
        return result
    content = (*found_result(now).content, *result.content[len(told) :])
    return ToolResult(content, None, now, result.call_id, result.meta)
