"""`toolcrib chat`: a conversation in the terminal, led by `loop` with a model of `models`.

Takes lines and interrupts, and decides what becomes of a turn; what is seen is `chat_screen`'s,
which calls a person is asked for, `approving`'s, how a server's question is put, `asking`'s.
Ctrl-C cancels the turn that runs and keeps the session; a second one, or the end of the input,
ends.
"""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from toolcrib.cli.approving import Approver, Approving
from toolcrib.cli.asking import Ask, Asking
from toolcrib.cli.chat_input import Lines
from toolcrib.cli.chat_screen import JsonLines, Screen, Shows
from toolcrib.cli.commands import READY_PATIENCE
from toolcrib.cli.exits import Exit
from toolcrib.deploy import load
from toolcrib.errors import ConfigurationError, ToolcribError
from toolcrib.loop import Event, Model, Recovery, run
from toolcrib.models import MissingExtra, model_named
from toolcrib.models.streaming import StreamingModel
from toolcrib.principal import Principal
from toolcrib.providers.history import Message, User
from toolcrib.session import Session

__all__ = ["chat"]

NO_INPUT = -1
"""No file descriptor: what is read of it has ended."""


async def chat(
    file: Path,
    name: str | None,
    spec: str,
    *,
    base_url: str | None,
    system: str,
    scopes: tuple[str, ...],
    json: bool,
    approve: Approving | None,
) -> Exit:
    """Converses until the input ends. The exit code says whether a turn failed. Without `approve`,
    a terminal is asked about writes, a script about nothing; what a server asks, is asked at a
    terminal only, and refused elsewhere."""
    is_terminal = bool(sys.stdin) and sys.stdin.isatty()
    which = approve or (Approving.WRITES if is_terminal else Approving.NONE)
    lines = Lines(sys.stdin.fileno() if sys.stdin else NO_INPUT)
    show = JsonLines() if json else Screen(is_prompting=is_terminal)
    built = load(file).build(name)
    if is_terminal and isinstance(show, Screen):
        built.assembly.host = Asking(_at(show, lines))
    async with _model(spec, base_url, system) as model, built as assembly:
        await assembly.wait_ready(READY_PATIENCE)
        principal = Principal("cli", scopes=frozenset(scopes))
        approver = Approver(which, show, lines)
        talk = _Talk(assembly.session(principal=principal), model, show, approver)
        interrupts = _Interrupts(show)
        with interrupts.listening():
            await _converse(talk, lines, interrupts)
    if interrupts.is_over:
        return Exit.INTERRUPTED
    return Exit.FAILED if talk.has_failed else Exit.OK


def _model(spec: str, base_url: str | None, system: str) -> StreamingModel:
    try:
        return model_named(spec, base_url=base_url, system=system)
    except MissingExtra as error:
        raise ConfigurationError(str(error)) from error


def _at(screen: Screen, lines: Lines) -> Ask:
    """Questions of servers at the terminal: one line each, typed after it was asked for."""

    async def ask(text: str) -> str | None:
        lines.forget()
        screen.put(text)
        try:
            line = await lines.next()
        except asyncio.CancelledError:
            screen.withdrawn()
            raise
        screen.heard(line)
        return line

    return ask


class _Talk:
    """The conversation. A turn from which nothing came, not even a step, leaves no trace in it."""

    def __init__(self, session: Session, model: Model, show: Shows, approver: Approver) -> None:
        self.show = show
        self.has_failed = False
        self._session = session
        self._model = model
        self._approver = approver
        self._messages: list[Message] = []

    async def turn(self, line: str) -> None:
        asked = User.of(line)
        self._messages.append(asked)
        try:
            said = await run(
                self._session,
                self._model,
                self._messages,
                recovery=Recovery(),
                on_event=self._event,
                approve=self._approver,
            )
        except ToolcribError as error:
            self.has_failed = True
            self.show.failed(error)
        else:
            self.show.answered(said)
        finally:
            if self._messages[-1] is asked:
                self._messages.pop()

    def _event(self, event: Event) -> None:
        self._approver.event(event)
        self.show.event(event)


class _Interrupts:
    """Ctrl-C. The first one of a turn cancels it, or says how to end; the next one ends."""

    def __init__(self, show: Shows) -> None:
        self._show = show
        self._turn: asyncio.Task[None] | None = None
        self._is_struck = False
        self._over = asyncio.Event()

    @property
    def is_over(self) -> bool:
        return self._over.is_set()

    @contextmanager
    def listening(self) -> Generator[None]:
        loop = asyncio.get_running_loop()
        try:
            loop.add_signal_handler(signal.SIGINT, self._strike)
        except NotImplementedError:  # Windows: Ctrl-C ends at once, as in the other commands
            yield
            return
        try:
            yield
        finally:
            loop.remove_signal_handler(signal.SIGINT)

    def _strike(self) -> None:
        if self._is_struck:
            self._over.set()
        elif self._turn is not None:
            self._turn.cancel()
        else:
            self._show.hint("Ctrl-C once more, or Ctrl-D, ends")
        self._is_struck = True

    async def line(self, lines: Lines) -> str | None:
        """The next line; None at the end of the input, or of the conversation."""
        reading = asyncio.create_task(lines.next())
        await self._first(reading)
        return None if self.is_over else reading.result()

    async def turn(self, talk: _Talk, line: str) -> None:
        """Runs a turn to its end, or to the end of the conversation."""
        self._is_struck = False
        self._turn = asyncio.create_task(talk.turn(line))
        try:
            await self._first(self._turn)
            if self._turn.cancelled():
                talk.show.cancelled()
            elif self._turn.done():
                self._turn.result()
        finally:
            self._turn = None

    async def _first(self, task: asyncio.Task[str | None] | asyncio.Task[None]) -> None:
        """Waits for `task`, or until it is over; what is not done then is cancelled."""
        over = asyncio.create_task(self._over.wait())
        try:
            await asyncio.wait((task, over), return_when=asyncio.FIRST_COMPLETED)
        finally:
            over.cancel()
            if self.is_over or not task.done():
                task.cancel()


async def _converse(talk: _Talk, lines: Lines, interrupts: _Interrupts) -> None:
    while not interrupts.is_over:
        talk.show.prompt()
        line = await interrupts.line(lines)
        if line is None:
            return
        if line.strip():
            await interrupts.turn(talk, line)
