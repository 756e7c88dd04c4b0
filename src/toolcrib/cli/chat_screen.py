"""What `toolcrib chat` shows: for people as it happens, or every event as a line of JSON."""

from __future__ import annotations

import sys
from typing import Any, Final, Protocol

import orjson
from rich.markup import escape

from toolcrib.cli.approving import Question, masked
from toolcrib.cli.terminal import console, plain, short, visible
from toolcrib.content import ToolCall, ToolResult
from toolcrib.display import display
from toolcrib.errors import ToolcribError
from toolcrib.loop import CallsMade, Event, RoundBegan, TextCame
from toolcrib.models import ModelFailed, Response
from toolcrib.providers.history import Assistant
from toolcrib.turn import Round

__all__ = ["JsonLines", "Screen", "Shows"]

CALL, RESULT = 160, 300
"""Characters of a call's arguments and of a result that are shown."""
ANSWERS: Final = "[y]es, this once · [a]lways, in this session · [n]o, or: n why ·"


class Shows(Protocol):
    """Told what happens in a conversation."""

    def prompt(self) -> None: ...

    def hint(self, text: str) -> None: ...

    def event(self, event: Event) -> None: ...

    def ask(self, question: Question) -> None: ...

    def heard(self, line: str | None) -> None: ...

    def answered(self, said: Assistant) -> None: ...

    def failed(self, error: ToolcribError) -> None: ...

    def cancelled(self) -> None: ...


class Screen:
    """For people. Text appears as the model writes it, calls and results on lines of their own."""

    def __init__(self, *, is_prompting: bool) -> None:
        self._console = console()
        self._is_prompting = is_prompting
        self._is_mid_line = False
        self._round: Round | None = None

    def prompt(self) -> None:
        if self._is_prompting:
            self._console.out("> ", end="", highlight=False)

    def hint(self, text: str) -> None:
        self._console.print(f"\n[dim]{escape(text)}[/dim]")
        self.prompt()

    def event(self, event: Event) -> None:
        if isinstance(event, TextCame):
            text = plain(event.text)
            self._console.out(text, end="", highlight=False)
            self._is_mid_line = not text.endswith("\n") if text else self._is_mid_line
        elif isinstance(event, RoundBegan):
            self._round = event.round
            self._end_line()
        elif isinstance(event, CallsMade):
            self._end_line()
            for call in event.calls:
                self._call(call)
        else:
            for result in event.results:
                self._result(result)

    def ask(self, question: Question) -> None:
        self._end_line()
        name = escape(visible(question.call.name[:CALL]))
        source = escape(visible(question.source[:CALL]))
        self._console.print(f"[yellow]? {name}[/yellow] of {source}, with the arguments")
        self._console.out(question.arguments, highlight=False)
        self._console.print(f"[yellow]run {name}?[/yellow] {escape(ANSWERS)} ", end="")
        self._is_mid_line = True

    def put(self, text: str) -> None:
        """Shows a question whose answer is the next line. Nothing in it commands the terminal."""
        self._end_line()
        self._console.out(text, end="", highlight=False)
        self._is_mid_line = True

    def withdrawn(self) -> None:
        """Nobody waits for the answer to the last question any more."""
        self._end_line()
        self._console.print("[dim](no longer asked)[/dim]")

    def heard(self, line: str | None) -> None:
        if self._is_prompting and line is not None:  # the terminal has shown the line and its end
            self._is_mid_line = False
        self._end_line()

    def _call(self, call: ToolCall) -> None:
        definitions = self._round.definitions if self._round is not None else ()
        said = display(call, definitions)
        if said is None:
            found = next((each for each in definitions if each.name == call.name), None)
            said = masked(call, found) if found is not None else call.arguments
        shown = short(said, CALL)
        self._console.print(f"[cyan]→ {escape(plain(call.name))}[/cyan] {escape(shown)}")

    def _result(self, result: ToolResult) -> None:
        text = escape(short(result.text, RESULT))
        if result.failure is not None:
            self._console.print(f"[red]✗ {result.failure.kind}[/red] {text}")
        else:
            others = [part.to_json()["type"] for part in result.content]
            rest = "".join(f" [{kind}]" for kind in others if kind not in ("text", "data"))
            self._console.print(f"[green]←[/green] {text}{escape(rest)}")

    def answered(self, said: Assistant) -> None:
        self._end_line()

    def failed(self, error: ToolcribError) -> None:
        self._end_line()
        self._console.print(f"[red]{escape(short(str(error), 2 * RESULT))}[/red]")

    def cancelled(self) -> None:
        self._end_line()
        self._console.print("[yellow]cancelled[/yellow]")

    def _end_line(self) -> None:
        if self._is_mid_line:
            self._console.out("", highlight=False)
        self._is_mid_line = False


class JsonLines:
    """For programs: one JSON object a line, told apart by `event`: `round`, `text`, `calls`,
    `results`, then `answer`, `failed` or `cancelled`, with which every turn ends. The next line of
    input after an `ask` answers it; one that does not is told by the same `ask` again."""

    def prompt(self) -> None:
        """Programs need none."""

    def hint(self, text: str) -> None:
        """Programs need none."""

    def event(self, event: Event) -> None:
        if isinstance(event, TextCame):
            _line("text", text=event.text)
        elif isinstance(event, RoundBegan):
            round = event.round
            _line("round", number=event.number, tools=round.names, bytes=round.bytes)
        elif isinstance(event, CallsMade):
            calls = [{"id": c.id, "name": c.name, "arguments": c.arguments} for c in event.calls]
            _line("calls", calls=calls)
        else:
            _line("results", results=[result.to_json() for result in event.results])

    def ask(self, question: Question) -> None:
        call = question.call
        what = {"id": call.id, "name": call.name, "arguments": call.arguments}
        _line("ask", **what, source=question.source)

    def heard(self, line: str | None) -> None:
        """Programs know what they answered."""

    def answered(self, said: Assistant) -> None:
        more: dict[str, Any] = {}
        if isinstance(said, Response):
            usage = said.usage
            counts = {"input": usage.input, "output": usage.output, "cached": usage.cached}
            more = {"usage": counts, "stop": said.stop}
        _line("answer", text=said.text, **more)

    def failed(self, error: ToolcribError) -> None:
        kind = error.kind if isinstance(error, ModelFailed) else type(error).__name__
        _line("failed", kind=kind, message=str(error))

    def cancelled(self) -> None:
        _line("cancelled")


def _line(event: str, **fields: Any) -> None:
    text = orjson.dumps({"event": event, **fields}, default=str).decode()
    print(text, file=sys.__stdout__, flush=True)
