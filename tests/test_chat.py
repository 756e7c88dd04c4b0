"""`toolcrib chat` as a person or a script uses it: real processes, a real terminal (pty) for
Ctrl-C, and a loopback server that streams as the providers do."""

from __future__ import annotations

import json
import os
import pty
import re
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from checkers.streaming import USAGE, Call, Reply, Streams, streams

KEY = "sk-very-secret-key-0123456789"

TOOLS = '''
import asyncio
from toolcrib import ToolError, tool

@tool(effects="read")
def double(number: int) -> int:
    """Double a whole number."""
    print("a tool may print")
    return 2 * number

@tool
def refuse() -> str:
    """Always refuse."""
    raise ToolError("not today \\x1b[31m")

@tool(effects="read")
async def wait() -> str:
    """Wait for ever."""
    await asyncio.Event().wait()
    return ""

@tool(scopes={"vault"})
def open_vault() -> str:
    """Open the vault of the bank."""
    return "open"
'''

FILE = """
resources:
  own:
    kind: tool.Source
    impl: functions
    settings: {path: ., modules: [chat_tools]}
  tools:
    kind: tool.Assembly
    impl: middleware
    deps: {tool: own}
    settings: {dynamic: {default: deferred}}
"""

COMMAND = [sys.executable, "-c", "from toolcrib.cli import main; main()", "chat"]
SEARCH = Reply("Ich schaue: 世界.", (Call("s1", "tool_search", '{"query": "double a number"}'),))
DOUBLE = Reply("", (Call("c1", "double", '{"number": 21}'),))
ANSWER = Reply("Es ist 42.")


@pytest.fixture
def deployment(tmp_path: Path) -> Path:
    (tmp_path / "chat_tools.py").write_text(TOOLS)
    file = tmp_path / "shop.yaml"
    file.write_text(FILE)
    return file


def arguments(file: Path, server: Streams, provider: str, *more: str) -> list[str]:
    base = f"{server.url}/v1" if provider == "openai" else server.url
    return [*COMMAND, str(file), "--model", f"{provider}:m", "--base-url", base, *more]


def environ() -> dict[str, str]:
    keys = dict.fromkeys(("OPENAI_API_KEY", "ANTHROPIC_API_KEY"), KEY)
    return {**os.environ, "COLUMNS": "120", **keys}


def chat(command: list[str], said: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command, input=said, capture_output=True, text=True, timeout=60, env=environ(), check=False
    )


@pytest.mark.parametrize("provider", ["openai", "anthropic"])
def test_search_call_answer_as_a_person_sees_it(deployment: Path, provider: str) -> None:
    with streams(SEARCH, DOUBLE, ANSWER, Reply("Gern.")) as server:
        command = arguments(deployment, server, provider, "--system", "Be brief.")
        talked = chat(command, "What is 21 doubled?\n\nthanks")
    assert talked.returncode == 0, talked.stderr
    lines = talked.stdout.splitlines()
    assert lines[0] == SEARCH.text
    assert lines[1].startswith("→ tool_search ") and '"double a number"' in lines[1]
    assert lines[2].startswith("← ") and "double" in lines[2]
    assert lines[3].startswith("→ double ") and "21" in lines[3]
    assert lines[4:] == ["← 42", ANSWER.text, "Gern."]
    assert "a tool may print" in talked.stderr
    assert KEY not in talked.stdout + talked.stderr
    assert len(server.requests) == 4
    assert "Be brief." in json.dumps(server.requests[0])
    assert ANSWER.text in json.dumps(server.requests[3], ensure_ascii=False)  # one conversation


def told(talked: subprocess.CompletedProcess[str]) -> list[dict[str, Any]]:
    return [json.loads(line) for line in talked.stdout.splitlines()]


def test_json_tells_every_event_on_a_line(deployment: Path) -> None:
    with streams(SEARCH, DOUBLE, ANSWER) as server:
        talked = chat(arguments(deployment, server, "openai", "--json"), "21?\n")
    events = told(talked)
    kinds = [one["event"] for one in events if one["event"] != "text"]
    assert kinds == ["round", "calls", "results", "round", "calls", "results", "round", "answer"]
    rounds = [one for one in events if one["event"] == "round"]
    assert next(one["tools"] for one in rounds) == ["tool_search"]
    assert "double" in rounds[1]["tools"]
    results = [one["results"][0] for one in events if one["event"] == "results"]
    assert results[1]["call_id"] == "c1"
    assert results[1]["content"] == [{"type": "text", "text": "42"}]
    counts = dict(zip(("input", "output", "cached"), USAGE, strict=True))
    assert events[-1] == {
        "event": "answer",
        "text": ANSWER.text,
        "usage": counts,
        "stop": "stop",
    }
    text = "".join(one["text"] for one in events if one["event"] == "text")
    assert text == SEARCH.text + ANSWER.text


def test_a_failed_turn_is_told_leaves_no_trace_and_makes_the_exit_code_1(deployment: Path) -> None:
    bad = Reply(status=401, message=f"the key {KEY} is wrong")
    with streams(bad, Reply("Hello.")) as server:
        talked = chat(arguments(deployment, server, "openai", "--json"), "one\ntwo\n")
    assert talked.returncode == 1
    failed, answer = (one for one in told(talked) if one["event"] in ("failed", "answer"))
    assert failed["kind"] == "refused"
    assert failed["message"] == "HTTP 401: api_error: the key [redacted] is wrong"
    assert answer["text"] == "Hello."
    assert [m["content"] for m in server.requests[1]["messages"]] == ["two"]
    assert KEY not in talked.stdout + talked.stderr


def test_a_model_that_never_stops_is_ended_and_its_steps_are_kept(deployment: Path) -> None:
    doubles = [Reply("", (Call(f"c{at}", "double", '{"number": 1}'),)) for at in range(25)]
    with streams(SEARCH, *doubles, Reply("Hm.")) as server:
        talked = chat(arguments(deployment, server, "openai", "--json"), "go\nand?\n")
    assert talked.returncode == 1, talked.stderr
    assert [one["kind"] for one in told(talked) if one["event"] == "failed"] == ["ToolLimitError"]
    roles = [message["role"] for message in server.requests[26]["messages"]]
    assert roles == ["user", *["assistant", "tool"] * 25, "user"]  # 25 is what a turn may


def test_a_call_of_an_undiscovered_tool_recovers(deployment: Path) -> None:
    with streams(DOUBLE, SEARCH, DOUBLE, ANSWER) as server:
        talked = chat(arguments(deployment, server, "openai"), "21?\n")
    assert talked.returncode == 0, talked.stdout
    assert talked.stdout.count("→ double") == 1


def test_neither_a_model_nor_a_tool_commands_the_terminal(deployment: Path) -> None:
    search = Reply("", (Call("s1", "tool_search", '{"query": "always refuse"}'),))
    calls = Reply("\x1b]0;owned\x07red: \x1b[31m[bold]x", (Call("c1", "refuse", "{}"),))
    with streams(search, calls, Reply("Well.")) as server:
        talked = chat(arguments(deployment, server, "openai"), "go\n")
    assert "\x1b" not in talked.stdout and "\x07" not in talked.stdout
    assert "red: [31m[bold]x\n" in talked.stdout
    assert "✗ tool_error not today [31m" in talked.stdout


def test_a_scope_is_granted_on_the_command_line(deployment: Path) -> None:
    search = Reply("", (Call("s1", "tool_search", '{"query": "open the vault of the bank"}'),))
    vault = Reply("", (Call("c1", "open_vault", "{}"),))
    with streams(search, vault, Reply("Done.")) as server:
        talked = chat(arguments(deployment, server, "openai", "--scope", "vault"), "go\n")
    assert "← open\n" in talked.stdout


@pytest.mark.parametrize(
    ("change", "code", "words"),
    [
        (("--model", "gemini:x"), 2, "openai:NAME or anthropic:NAME"),
        (("--assembly", "other"), 2, "other"),
    ],
)
def test_wrong_usage_exits_with_2(
    deployment: Path, change: tuple[str, ...], code: int, words: str
) -> None:
    command = [*COMMAND, str(deployment), "--model", "openai:m", *change]
    talked = chat(command, "")
    assert talked.returncode == code
    assert words in talked.stderr


def test_a_missing_sdk_key_or_file_exits_with_3(deployment: Path, tmp_path: Path) -> None:
    code = "import sys; sys.modules['openai'] = None; from toolcrib.cli import main; main()"
    without = [sys.executable, "-c", code, "chat", str(deployment), "--model", "openai:m"]
    talked = chat(without, "")
    assert talked.returncode == 3
    assert "pip install 'toolcrib[openai]'" in talked.stderr
    assert chat([*COMMAND, str(tmp_path / "none.yaml"), "--model", "openai:m"], "").returncode == 3


# -- in a terminal --------------------------------------------------------------------------------


class Terminal:
    """A process whose terminal is ours. `until` waits, with a bound, for what it shows."""

    def __init__(self, master: int, process: subprocess.Popen[bytes]) -> None:
        self._master = master
        self.process = process
        self.shown = ""

    def types(self, text: str) -> None:
        os.write(self._master, text.encode())

    def until(self, pattern: str, within: float = 15.0) -> None:
        """Reads on until `pattern` comes after what an earlier `until` found."""
        end = time.monotonic() + within
        while (found := re.search(pattern, self.shown)) is None:
            left = end - time.monotonic()
            assert left > 0, f"{pattern!r} did not come; shown: {self.shown!r}"
            if select.select([self._master], [], [], left)[0]:
                self.shown += self._read()
        self.shown = self.shown[found.end() :]

    def _read(self) -> str:
        try:
            data = os.read(self._master, 65_536)
        except OSError:  # the other side is closed
            data = b""
        assert data, f"the terminal was closed; shown: {self.shown!r}"
        return data.decode("utf-8", "replace").replace("\r\n", "\n")


@contextmanager
def in_terminal(file: Path, server: Streams, provider: str, *more: str) -> Iterator[Terminal]:
    master, slave = pty.openpty()
    process = subprocess.Popen(
        arguments(file, server, provider, *more),
        stdin=slave,
        stdout=slave,
        stderr=slave,
        env={**environ(), "TERM": "dumb", "NO_COLOR": "1"},
        start_new_session=True,
        preexec_fn=_take_terminal,
    )
    os.close(slave)
    try:
        yield Terminal(master, process)
    finally:
        if process.poll() is None:
            process.kill()
        process.wait(10)
        os.close(master)


def _take_terminal() -> None:
    """Makes standard input the controlling terminal, so that a typed ^C is a signal."""
    import fcntl
    import termios

    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


HELD = Reply("I begin. " * 9, then="hold", cut=12)


def test_ctrl_c_cancels_what_the_model_says_and_keeps_the_session(deployment: Path) -> None:
    replies = (Reply("Hi."), HELD, Reply("Still here."))
    with streams(*replies) as server, in_terminal(deployment, server, "openai") as screen:
        screen.until("> ")
        screen.types("hello\n")
        screen.until("Hi.\n> ")
        screen.types("talk\n")
        screen.until("I begin.")
        screen.types("\x03")
        screen.until("cancelled\n> ")
        assert server.gone.wait(5), "the request was left open"
        screen.types("there?\n")
        screen.until("Still here.\n> ")
        screen.types("\x04")
        assert screen.process.wait(10) == 0
    said = [message["content"] for message in server.requests[2]["messages"]]
    assert said == ["hello", "Hi.", "there?"]


def test_ctrl_c_cancels_a_call_and_the_steps_before_stay(deployment: Path) -> None:
    search = Reply("", (Call("s1", "tool_search", '{"query": "wait for ever"}'),))
    waits = Reply("", (Call("w1", "wait", "{}"),))
    replies = (search, waits, Reply("Yes?"))
    with streams(*replies) as server, in_terminal(deployment, server, "anthropic") as screen:
        screen.until("> ")
        screen.types("wait\n")
        screen.until("→ wait")
        screen.types("\x03")
        screen.until("cancelled\n> ")
        screen.types("hello?\n")
        screen.until("Yes\\?\n> ")
        screen.types("\x04")
        assert screen.process.wait(10) == 0
    roles = [message["role"] for message in server.requests[2]["messages"]]
    assert roles == ["user", "assistant", "user"]  # the last one: the search's result, "hello?"
    assert "w1" not in json.dumps(server.requests[2])


def test_a_second_ctrl_c_ends_with_130(deployment: Path) -> None:
    with streams(HELD) as server, in_terminal(deployment, server, "openai") as screen:
        screen.until("> ")
        screen.types("talk\n")
        screen.until("I begin.")
        screen.types("\x03")
        screen.until("cancelled\n> ")
        screen.types("\x03")
        assert screen.process.wait(10) == 130


def test_ctrl_c_at_the_prompt_says_how_to_end(deployment: Path) -> None:
    with (
        streams(Reply("Hi.")) as server,
        in_terminal(deployment, server, "openai") as screen,
    ):
        screen.until("> ")
        screen.types("\x03")
        screen.until("Ctrl-C once more, or Ctrl-D, ends\n> ")
        screen.types("hello\n")
        screen.until("Hi.\n> ")
        screen.types("\x03")
        screen.until("once more")
        screen.types("\x03")
        assert screen.process.wait(10) == 130


def test_a_signal_cancels_the_turn_of_a_script_too_and_the_next_line_is_taken(
    deployment: Path,
) -> None:
    with streams(HELD, Reply("Next.")) as server:
        process = subprocess.Popen(
            arguments(deployment, server, "openai", "--json"),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environ(),
        )
        assert process.stdin is not None
        process.stdin.write("talk\nnext\n")
        process.stdin.flush()
        assert server.held.wait(15)
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate(timeout=15)
    events = [json.loads(line)["event"] for line in out.splitlines()]
    assert "cancelled" in events and events[-1] == "answer"
    assert process.returncode == 0
