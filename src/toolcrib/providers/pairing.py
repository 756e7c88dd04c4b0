"""Brings a history into the order every provider demands: each call answered once, directly after
it, by an id the provider takes (O13, O14, O19, A12, A13, G11).

Pure. Ids are kept wherever they are legal, and mapped the same way for a call and its result.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass, replace

from toolcrib.content import ToolCall, ToolResult
from toolcrib.providers.history import Answers, Assistant, History, User
from toolcrib.providers.report import Notes

__all__ = ["UNNAMED", "Answered", "IdRule", "Step", "legal_id", "loose", "paired"]

_LEGAL = re.compile(r"[A-Za-z0-9_-]+\Z")
_VISIBLE = re.compile(r"[!-~]+\Z")
_ILLEGAL_RUN = re.compile(r"[^A-Za-z0-9_-]+")
UNNAMED = "noid_"
"""Begins an id that we gave to a call which came without one (older Gemini)."""
NO_ANSWER = "no result: the call was not finished"


@dataclass(frozen=True, slots=True)
class Answered:
    """Results in the order of their calls, each with the call it answers."""

    pairs: tuple[tuple[ToolCall, ToolResult], ...]


Step = User | Assistant | Answered


@dataclass(frozen=True, slots=True)
class IdRule:
    """Which ids a provider takes: 1 to `longest` visible ASCII characters; only `[A-Za-z0-9_-]` if
    `is_plain`."""

    longest: int
    is_plain: bool = False


def legal_id(call_id: str, rule: IdRule) -> str:
    """`call_id` where `rule` takes it; otherwise cleaned, cut and given a hash of itself. The same
    id always becomes the same."""
    longest = rule.longest
    legal = _LEGAL if rule.is_plain else _VISIBLE
    if len(call_id) <= longest and legal.match(call_id):
        return call_id
    digest = hashlib.sha256(call_id.encode("utf-8", "surrogatepass")).hexdigest()[:12]
    return f"{_ILLEGAL_RUN.sub('_', call_id)[: longest - 13]}_{digest}"


def paired(history: History, rule: IdRule, notes: Notes) -> list[Step]:
    """`history` as steps in which every call is answered by the step after it.

    A call without a result gets one that says so, unless it ends the history; a result without a
    call is left out; both are noted. An id used before gets a number.
    """
    return _Pairing(rule, notes).steps(history)


class _Pairing:
    def __init__(self, rule: IdRule, notes: Notes) -> None:
        self._rule = rule
        self._notes = notes
        self._used: set[str] = set()
        self._steps: list[Step] = []
        self._open: list[tuple[str, ToolCall]] = []  # id in the history, call as it is sent
        self._found: dict[int, ToolResult] = {}
        self._unnamed: list[ToolResult] = []
        self._is_answered = False

    def steps(self, history: History) -> list[Step]:
        for message in history:
            if isinstance(message, Answers):
                self._is_answered = True
                for result in message.results:
                    self._answer(result)
                continue
            self._close(is_last=False)
            if isinstance(message, Assistant):
                self._ask(message)
            else:
                self._steps.append(message)
        self._close(is_last=True)
        return self._steps

    def _ask(self, message: Assistant) -> None:
        calls = tuple(replace(c, id=self._own(c.id, at)) for at, c in enumerate(message.calls))
        self._open = [(old.id, new) for old, new in zip(message.calls, calls, strict=True)]
        # what is replayed whole must name the same calls; a call without an id names none
        both = zip(message.calls, calls, strict=True)
        same = all(old.id == new.id or old.id.startswith(UNNAMED) for old, new in both)
        self._steps.append(
            replace(message, calls=calls, raw=message.raw if same else "") if calls else message
        )

    def _own(self, call_id: str, at: int) -> str:
        legal = legal_id(call_id, self._rule) if call_id else f"call_{len(self._steps)}_{at}"
        free, count = legal, 1
        while free in self._used:
            count += 1
            free = f"{legal[: self._rule.longest - 6]}_{count}"
        if free != call_id:
            self._notes.add("id of a call mapped", call_id[:80], "same")
        self._used.add(free)
        return free

    def _answer(self, result: ToolResult) -> None:
        if not result.call_id:
            self._unnamed.append(result)
            return
        for at, (old, _) in enumerate(self._open):
            if at not in self._found and old == result.call_id:
                self._found[at] = result
                return
        self._notes.add("result without a call left out", result.call_id[:80], "narrower")

    def _close(self, is_last: bool) -> None:
        if self._open and (self._is_answered or not is_last):
            pairs = tuple((call, self._result(at, call)) for at, (_, call) in enumerate(self._open))
            self._steps.append(Answered(pairs))
        for _ in self._unnamed:
            self._notes.add("result without a call left out", "", "narrower")
        self._open, self._found, self._unnamed, self._is_answered = [], {}, [], False

    def _result(self, at: int, call: ToolCall) -> ToolResult:
        """The result of a call: by its id, else the next one that names no call."""
        if at in self._found:
            return self._found[at]
        if self._unnamed:
            return self._unnamed.pop(0)
        self._notes.add("call without a result answered for it", call.id[:80], "same")
        return ToolResult.failed("cancelled", NO_ANSWER)


def loose(results: tuple[ToolResult, ...], calls: tuple[ToolCall, ...], rule: IdRule) -> Answered:
    """Results of the reply just received, without the history: paired by id with `calls`, or by
    themselves where none are given."""
    by_id = {call.id: call for call in calls}
    pairs: list[tuple[ToolCall, ToolResult]] = []
    for result in results:
        call = by_id.get(result.call_id, ToolCall(result.call_id, ""))
        pairs.append((replace(call, id=legal_id(result.call_id, rule)), result))
    return Answered(tuple(pairs))
