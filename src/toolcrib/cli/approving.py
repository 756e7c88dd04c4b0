"""Asking a person before a call runs: which calls are asked for, what is seen, what answers mean.

What becomes of a refused call is `turn`'s; where a question is shown and its answer read,
`chat_screen`'s and `chat_input`'s. A tool's claim to be read-only is believed here.
"""

from __future__ import annotations

import enum
import json
from dataclasses import dataclass
from typing import Any, Final, Protocol

from toolcrib.cli.terminal import visible
from toolcrib.content import ToolCall
from toolcrib.decoding import decode
from toolcrib.definition import ToolDefinition, compact_json
from toolcrib.discovery.policy import SEARCH_TOOL
from toolcrib.errors import InvalidArguments
from toolcrib.jsonable import clean
from toolcrib.jsonvalue import is_array, is_object
from toolcrib.loop import Event, RoundBegan
from toolcrib.opening import OWN
from toolcrib.redact import MASK
from toolcrib.secret import secret_at
from toolcrib.shorten import shorten
from toolcrib.turn import Round

__all__ = ["Approver", "Approving", "Question", "masked", "visible"]

BYTES, LINES = 4_000, 40
"""What is shown of a call's arguments: bytes of JSON, and lines when it is indented."""
ONE_LINE: Final = 80
"""Characters of JSON that are not indented."""
REFUSED: Final = "not run: the user did not allow this call"
_SAYS_SECRET: Final = ('"writeOnly"', '"password"')


class Approving(enum.StrEnum):
    """Which calls are asked for: none; those of tools that do not say they only read; all but
    `tool_search`."""

    NONE = "none"
    WRITES = "writes"
    ALL = "all"


@dataclass(frozen=True, slots=True)
class Question:
    """A call that waits for an answer, and the source that its tool is of."""

    call: ToolCall
    definition: ToolDefinition
    source: str

    @property
    def arguments(self) -> str:
        """The arguments as the tool will get them, for a person: secret ones masked, bounded, and
        with an escape for whatever could not be seen. Text that is no JSON object is quoted."""
        written = self.call.arguments
        try:
            values, repairs = decode(written)
        except InvalidArguments:
            text = MASK if _has_secrets(self.definition) else shorten(clean(written), BYTES)
            repairs = ("this is not read as a JSON object",)
        else:
            text = _indented(shorten(_masked(values, self.definition), BYTES))
        lines = (*text.split("\n"), *(f"({repair})" for repair in repairs))
        return "\n".join(map(visible, lines))


class Asks(Protocol):
    """Where a question is put."""

    def ask(self, question: Question) -> None: ...

    def heard(self, line: str | None) -> None:
        """The line that came as an answer; None: the input has ended."""


class Reads(Protocol):
    """Where the answer comes from, a line each; None at the end of the input."""

    def forget(self) -> None: ...

    async def next(self) -> str | None: ...


class Approver:
    """An `Approve` for one conversation: asks, and keeps what is always allowed in it.

    `always` holds for a tool as it was when it was allowed: one that another source publishes
    under its name, or whose definition has changed, is asked for again.
    """

    def __init__(self, which: Approving, asks: Asks, lines: Reads) -> None:
        self._which = which
        self._asks = asks
        self._lines = lines
        self._always: set[tuple[str, str]] = set()
        self._round: Round | None = None

    def event(self, event: Event) -> None:
        """Told what happens in the conversation: which round the calls to come are of."""
        if isinstance(event, RoundBegan):
            self._round = event.round

    async def __call__(self, call: ToolCall, definition: ToolDefinition) -> str:
        source = self._source(definition.name)
        if not self._is_asked_for(definition, source):
            return ""
        tool = (source, definition.fingerprint)
        if tool in self._always:
            return ""
        question = Question(call, definition, source)
        while True:
            self._lines.forget()
            self._asks.ask(question)
            line = await self._lines.next()
            self._asks.heard(line)
            match ["n"] if line is None else line.strip().split(None, 1):
                case ["y"]:
                    return ""
                case ["a"]:
                    self._always.add(tool)
                    return ""
                case ["n"]:
                    return REFUSED
                case ["n", why]:
                    return f"{REFUSED}: {why}"
                case _:  # no answer: a word that could be meant for either must not decide
                    continue

    def _source(self, name: str) -> str:
        entry = self._round.catalog.get(name) if self._round is not None else None
        return entry.source if entry is not None else ""

    def _is_asked_for(self, definition: ToolDefinition, source: str) -> bool:
        if self._which is Approving.WRITES:
            return definition.annotations.read_only is not True
        is_search = definition.name == SEARCH_TOOL and source == OWN
        return self._which is Approving.ALL and not is_search


def masked(call: ToolCall, definition: ToolDefinition) -> str:
    """The call's arguments as one line for a person: as the model wrote them, unless some of them
    are secret (`secret`)."""
    if not _has_secrets(definition):
        return call.arguments
    try:
        values, _ = decode(call.arguments)
    except InvalidArguments:
        return MASK
    return compact_json(_masked(values, definition))


def _masked(values: dict[str, Any], definition: ToolDefinition) -> Any:
    return _without(values, definition.input_schema, ()) if _has_secrets(definition) else values


def _has_secrets(definition: ToolDefinition) -> bool:
    return any(word in definition.schema_json for word in _SAYS_SECRET)


def _without(value: Any, schema: object, steps: tuple[object, ...]) -> Any:
    if secret_at(schema, steps) is not None:
        return MASK
    if is_object(value):
        return {key: _without(each, schema, (*steps, key)) for key, each in value.items()}
    if is_array(value):
        return [_without(each, schema, (*steps, at)) for at, each in enumerate(value)]
    return value


def _indented(text: str) -> str:
    """JSON over several lines, where it takes them and they are not too many."""
    if len(text) <= ONE_LINE:
        return text
    indented = json.dumps(json.loads(text), indent=2, ensure_ascii=False)
    return indented if indented.count("\n") < LINES else text
