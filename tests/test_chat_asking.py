"""What a server asks during a call, asked at the terminal of `toolcrib chat`: real processes, a
real terminal, a server of either era."""

from __future__ import annotations

import asyncio
import json
import os
import pty
import select
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from checkers.streaming import Call, Reply, Streams, streams
from servers.support import BOUND, HERE, until
from test_chat import Terminal, arguments, chat, in_terminal
from toolcrib.cli.chat_input import Lines

FILE = """
resources:
  servers:
    kind: tool.Source
    impl: mcp
    settings:
      servers:
        - name: raw
          transport: stdio
          command: {python}
          args: [-S, -I, {raw}, era={era}]
          settings: {{ask_timeout: {seconds}s}}
          liveness: "off"
          tools: {{include: [want]}}
  tools:
    kind: tool.Assembly
    impl: middleware
    deps: {{tool: servers}}
    settings: {{dynamic: {{default: always}}}}
"""

FORM = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "title": "Your name"},
        "seats": {"type": "integer"},
    },
    "required": ["name"],
}


def deployed(folder: Path, era: str, seconds: float = 30.0) -> Path:
    file = folder / "chat.yaml"
    raw = HERE / "raw.py"
    file.write_text(FILE.format(python=sys.executable, raw=raw, era=era, seconds=seconds))
    return file


def wants(message: str = "Who?", schema: Any = FORM) -> Reply:
    asked = {"message": message, "requestedSchema": schema, "mode": "form"}
    call = {"method": "elicitation/create", "params": asked}
    return Reply("", (Call("c1", "raw__want", json.dumps(call)),))


def answered(server: Streams) -> Any:
    """What the tool said, as the model got it, of what it was answered."""
    (said,) = [m["content"] for m in server.requests[1]["messages"] if m["role"] == "tool"]
    return said


@contextmanager
def asked(then: str, file: Path, approve: str = "none") -> Iterator[tuple[Streams, Terminal]]:
    """A conversation at a terminal whose first message was sent; it is left at its next prompt."""
    with (
        streams(wants(), Reply(then)) as server,
        in_terminal(file, server, "openai", "--approve", approve) as screen,
    ):
        screen.until("> $")
        screen.types("go\n")
        yield server, screen
        screen.types("\x04")
        assert screen.process.wait(10) == 0


@pytest.mark.parametrize("era", ["legacy", "modern"])
def test_a_form_is_asked_at_the_terminal_and_the_call_goes_on(tmp_path: Path, era: str) -> None:
    with asked("Booked.", deployed(tmp_path, era)) as (server, screen):
        screen.until(r"MCP server 'raw' \(for raw__want\) asks: Who\?\n.*\nYour name > $")
        screen.types("Ana\n")
        screen.until("seats > $")
        screen.types("many\n")
        screen.until("! this is no whole number\nseats > $")
        screen.types("3\n")
        screen.until("Booked.\n> $")
    assert '"accept"' in answered(server)
    assert '"Ana"' in answered(server)


def test_what_was_typed_before_a_server_asked_is_no_answer(tmp_path: Path) -> None:
    with asked("Done.", deployed(tmp_path, "modern"), "all") as (server, screen):
        screen.until(r"run raw__want\? .* · $")
        screen.types("y\nMallory\n")
        screen.until("Your name > $")
        screen.types("Ana\n")
        screen.until("seats > $")
        screen.types("2\n")
        screen.until("Done.\n> $")
    assert '"Ana"' in answered(server)
    assert "Mallory" not in answered(server)


def test_ctrl_c_at_a_servers_question_cancels_the_turn(tmp_path: Path) -> None:
    with asked("Still here.", deployed(tmp_path, "modern")) as (_, screen):
        screen.until("Your name > $")
        screen.types("\x03")
        screen.until(r"\(no longer asked\)\ncancelled\n> $")
        screen.types("there?\n")
        screen.until("Still here.\n> $")


def test_a_question_that_nobody_answers_in_time_is_taken_back(tmp_path: Path) -> None:
    file = deployed(tmp_path, "modern", seconds=0.5)
    with asked("Done.", file) as (_, screen):
        screen.until(r"Your name > \n\(no longer asked\)\n[^>]*Done.\n> $")


async def test_what_was_typed_after_a_question_was_taken_back_answers_no_other() -> None:
    master, slave = pty.openpty()
    try:
        lines = Lines(slave)
        taken_back = asyncio.create_task(lines.next())
        await asyncio.sleep(0)
        taken_back.cancel()
        os.write(master, b"y\n")
        await until(lambda: select.select([master], [], [], 0)[0])  # its echo
        await until(lambda: not select.select([slave], [], [], 0)[0])  # it has been read
        lines.forget()
        next = asyncio.create_task(lines.next())
        await asyncio.sleep(0)
        os.write(master, b"n\n")
        async with asyncio.timeout(BOUND):
            assert await next == "n"
    finally:
        os.close(master)
        os.close(slave)


@pytest.mark.parametrize("more", [[], ["--json"]])
def test_where_there_is_no_terminal_a_server_is_refused(tmp_path: Path, more: list[str]) -> None:
    with streams(wants(), Reply("Done."), Reply("Yes, Ana?")) as server:
        command = arguments(deployed(tmp_path, "legacy"), server, "openai", *more)
        done = chat(command, "go\nAna\n")
        assert "asks" not in done.stdout
    assert len(server.requests) == 3  # "Ana" was the next message, and no answer
    assert '"accept"' not in answered(server)


def test_for_programs_at_a_terminal_a_server_is_refused_too(tmp_path: Path) -> None:
    with (
        streams(wants(), Reply("Done.")) as server,
        in_terminal(
            deployed(tmp_path, "legacy"), server, "openai", "--json", "--approve", "none"
        ) as screen,
    ):
        screen.types("go\n")
        screen.until('"event":"answer"')
        screen.types("\x04")
        assert screen.process.wait(10) == 0
    assert '"accept"' not in answered(server)
