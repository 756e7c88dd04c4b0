"""Calls that somebody is asked about before they run: in a round, and in `toolcrib chat`."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

from checkers.streaming import Call, Reply, Streams, streams
from conftest import Plain, ended, outcome
from test_chat import COMMAND, Terminal, arguments, chat, environ, in_terminal, told
from toolcrib import Assembly, Dynamic, ToolCall, ToolDefinition, ToolLimits, ToolResult
from toolcrib.cli.approving import Approver, Approving, Question
from toolcrib.cli.chat_screen import Screen
from toolcrib.loop import ScriptedModel, run
from toolcrib.providers.history import Assistant, Message, User


def calls(*names: str) -> list[ToolCall]:
    return [ToolCall(f"c{at}", name, f'{{"at": {at}}}') for at, name in enumerate(names)]


class Asked:
    """An approver that writes down what it was asked, and refuses the calls of these ids."""

    def __init__(self, *refused: str) -> None:
        self.calls: list[ToolCall] = []
        self.definitions: list[ToolDefinition] = []
        self._refused = refused

    async def __call__(self, call: ToolCall, definition: ToolDefinition) -> str:
        self.calls.append(call)
        self.definitions.append(definition)
        return f"no {call.id}" if call.id in self._refused else ""


async def test_C13_all_calls_are_asked_for_one_after_another_in_order_before_any_runs() -> None:
    log: list[str] = []

    async def approve(call: ToolCall, definition: ToolDefinition) -> str:
        log.append(f"ask {call.id}")
        for _ in range(5 - int(call.id[1:])):  # the later ones would be done first
            await asyncio.sleep(0)
        log.append(f"asked {call.id}")
        return ""

    async def ran(ctx: object, arguments: str) -> str:
        log.append("ran")
        return ""

    async with Assembly([Plain("a", ran), Plain("b", ran)]) as tools:
        await tools.session().turn().round().execute(calls("b", "a", "b"), approve=approve)
    asked = [word for at in range(3) for word in (f"ask c{at}", f"asked c{at}")]
    assert log == [*asked, "ran", "ran", "ran"]


async def test_a_refused_call_is_denied_with_the_words_of_the_approver_and_the_others_run() -> None:
    plain = Plain("a", "ran")
    async with Assembly([plain]) as tools:
        batch = calls("a", "a", "a", "a")
        round = tools.session().turn().round()
        results = await round.execute(batch, approve=Asked("c0", "c2"))
        counts = tools.executor.counts
    assert [outcome(r) for r in results] == ["denied", "ran", "denied", "ran"]
    assert [r.call_id for r in results] == ["c0", "c1", "c2", "c3"]
    assert results[2].text == "no c2"
    assert plain.got == ['{"at": 1}', '{"at": 3}']
    assert (counts["denied"], counts["ok"]) == (2, 2)


async def test_two_calls_alike_are_two_questions() -> None:
    answers = iter(("not this one", ""))

    async def approve(call: ToolCall, definition: ToolDefinition) -> str:
        return next(answers)

    async with Assembly([Plain("a", "ran")]) as tools:
        same = [ToolCall("x", "a"), ToolCall("x", "a")]
        results = await tools.session().turn().round().execute(same, approve=approve)
    assert [outcome(r) for r in results] == ["denied", "ran"]


async def test_a_blank_answer_lets_the_call_go_on() -> None:
    async def approve(call: ToolCall, definition: ToolDefinition) -> str:
        return " \n"

    async with Assembly([Plain("a", "ran")]) as tools:
        results = await tools.session().turn().round().execute(calls("a"), approve=approve)
    assert outcome(results[0]) == "ran"


async def test_what_the_approver_raises_passes_through_and_nothing_of_the_batch_runs() -> None:
    async def approve(call: ToolCall, definition: ToolDefinition) -> str:
        if call.id == "c1":
            raise LookupError("nobody there")
        return ""

    plain = Plain("a", "ran")
    async with Assembly([plain]) as tools:
        turn = tools.session().turn()
        with pytest.raises(LookupError, match="nobody there"):
            await turn.round().execute(calls("a", "a"), approve=approve)
        assert plain.got == []
        assert (turn.iterations, turn.calls) == (1, 2)  # the limits were counted before
        assert outcome((await turn.round().execute(calls("a")))[0]) == "ran"


async def test_an_approver_that_gives_no_text_approves_nothing() -> None:
    async def approve(call: ToolCall, definition: ToolDefinition) -> Any:
        return None

    plain = Plain("a", "ran")
    async with Assembly([plain]) as tools:
        with pytest.raises(AttributeError):
            await tools.session().turn().round().execute(calls("a"), approve=approve)
    assert plain.got == []


async def test_cancelled_while_the_last_call_is_asked_for_none_runs_and_none_counts() -> None:
    reached = asyncio.Event()

    async def approve(call: ToolCall, definition: ToolDefinition) -> str:
        if call.id == "c0":
            return "no"
        if call.id == "c2":
            reached.set()
            await asyncio.Event().wait()
        return ""

    plain = Plain("a", "ran")
    async with Assembly([plain]) as tools:
        batch = tools.session().turn().round().execute(calls("a", "a", "a"), approve=approve)
        running = asyncio.create_task(batch)
        await ended(reached.wait())
        running.cancel()
        await asyncio.wait((running,), timeout=3)
        assert running.cancelled()
        assert plain.got == []
        assert not tools.executor.counts


async def test_nobody_is_asked_about_what_cannot_run() -> None:
    asked = Asked()
    async with Assembly([Plain("a")], limits=ToolLimits(calls=1)) as tools:
        turn = tools.session().turn()
        undefined = await turn.round().execute(calls("a", "nowhere"), approve=asked)
        limited = await turn.round().execute(calls("a", "a"), approve=asked)
    assert [outcome(r) for r in undefined] == ["cancelled", "undefined_tool"]
    assert [outcome(r) for r in limited] == ["limited", "limited"]
    assert asked.calls == []


async def test_a_search_is_asked_for_too_and_one_over_the_limit_is_not() -> None:
    asked = Asked("c0")
    limits = ToolLimits(searches=2)
    async with Assembly([Plain("a")], dynamic=Dynamic(), limits=limits) as tools:
        searches = [ToolCall(f"c{at}", "tool_search", '{"query": "a"}') for at in range(3)]
        results = await tools.session().turn().round().execute(searches, approve=asked)
    assert [call.id for call in asked.calls] == ["c0", "c1"]
    assert [r.failure.kind if r.failure else "" for r in results] == ["denied", "", "limited"]


async def test_what_was_asked_for_is_what_runs() -> None:
    plain, other = Plain("a", "ran"), Plain("a", "other", description="another tool")
    text = '{"at":  0, "text": "\\u4e16"}  '
    asked: list[ToolCall] = [ToolCall("c0", "a", text)]

    async def approve(call: ToolCall, definition: ToolDefinition) -> str:
        assert call.arguments == text
        assert definition is plain.definition
        asked[:] = calls("a", "a")
        return ""

    async with Assembly([plain]) as tools:
        (result,) = await tools.session().turn().round().execute(asked, approve=approve)
        assert outcome(result) == "ran"
        assert plain.got == [text]

        async def replaces(call: ToolCall, definition: ToolDefinition) -> str:
            tools.registry.replace(other, "program")
            return ""

        round = tools.session().turn().round()
        (result,) = await round.execute(calls("a"), approve=replaces)
    assert outcome(result) == "not_available"
    assert other.got == []


async def test_a_refused_call_is_no_use_of_its_tool() -> None:
    async with Assembly([Plain("a", "ran")], dynamic=Dynamic(always=["a"])) as tools:
        session = tools.session()
        await session.turn().round().execute(calls("a"), approve=Asked("c0"))
        assert "a" not in session.view.pool.tools


async def test_a_middleware_that_sees_refusals_sees_this_one() -> None:
    seen: list[tuple[ToolCall, str]] = []

    class Watches:
        async def __call__(self, invocation: Any, call_next: Any) -> Any:
            return await call_next(invocation)

        def refused(self, call: ToolCall, result: ToolResult) -> None:
            seen.append((call, outcome(result)))

    async with Assembly([Plain("a")], middlewares=[Watches()]) as tools:
        batch = calls("a", "a")
        await tools.session().turn().round().execute(batch, approve=Asked("c1"))
    assert seen == [(batch[1], "denied")]


# -- whom a person allows what --------------------------------------------------------------------


class Person:
    """Gives answers in turn, and keeps the questions."""

    def __init__(self, *answers: str) -> None:
        self.questions: list[Question] = []
        self._answers = list(answers)

    def ask(self, question: Question) -> None:
        self.questions.append(question)

    def heard(self, line: str | None) -> None:
        """Knows what was said."""

    def forget(self) -> None:
        """Says nothing unasked."""

    async def next(self) -> str | None:
        return self._answers.pop(0)


async def test_always_ends_where_the_tool_is_another_one_or_another_sources() -> None:
    person = Person("a", "a", "a")
    approver = Approver(Approving.WRITES, person, person)
    async with Assembly([]) as tools:
        session, registry = tools.session(), tools.registry

        async def asked_with(tool: Plain, owner: str) -> int:
            registry.add(tool, owner)
            model = ScriptedModel(Assistant("", (ToolCall("1", "a"),)), "Done.")
            messages: list[Message] = [User.of("go")]
            await run(session, model, messages, on_event=approver.event, approve=approver)
            registry.remove("a")
            return len(person.questions)

        assert await asked_with(Plain("a"), "one") == 1
        assert await asked_with(Plain("a"), "one") == 1
        assert await asked_with(Plain("a", description="changed"), "one") == 2
        assert await asked_with(Plain("a"), "two") == 3
    assert [one.source for one in person.questions] == ["one", "one", "two"]


def test_names_do_not_command_the_terminal_or_take_a_line_of_their_own(
    capfd: pytest.CaptureFixture[str],
) -> None:
    name = "no\x1b[2J\x9b\u202e[bold]te\nrun double?"
    question = Question(ToolCall("1", name), ToolDefinition(name), "o\x07\nwn")
    Screen(is_prompting=False).ask(question)
    shown = capfd.readouterr().out
    said = r"no\u001b[2J\u009b\u202e[bold]te\nrun double?"
    assert shown.startswith(f"? {said} of o\\u0007\\nwn, with the arguments\n{{}}\nrun {said}? ")
    assert shown.count("\n") == 2


# -- toolcrib chat --------------------------------------------------------------------------------

TOOLS = '''
from pathlib import Path
from typing import Annotated

from toolcrib import Secret, tool

DIARY = Path(__file__).with_name("diary")

@tool(effects="read")
def double(number: int) -> int:
    """Double a whole number."""
    return 2 * number

@tool(effects="write")
def note(text: str, times: int = 1, tags: list[str] = []) -> str:
    """Write a note into the diary."""
    with DIARY.open("a", encoding="utf-8") as file:
        file.write(times * (text + ";"))
    return f"noted {len(text)}"

@tool
def wipe() -> str:
    """Empty the diary."""
    DIARY.unlink(missing_ok=True)
    return "wiped"

@tool(effects="write", display_hint=lambda given: "enter as " + given["user"])
def enter(user: str, token: Annotated[str, Secret]) -> str:
    """Enter the vault."""
    return "entered"

@tool(effects="write")
def leave(token: Annotated[str, Secret], door: str = "front") -> str:
    """Leave the vault."""
    return "left"
'''

FILE = """
resources:
  own: {kind: tool.Source, impl: functions, settings: {path: ., modules: [approved_tools]}}
  tools:
    kind: tool.Assembly
    impl: middleware
    deps: {tool: own}
    settings: {dynamic: {default: always}}
"""

PROMPT = r"run (\w+)\? .* · $"
"""The end of a question: nothing follows but the answer."""


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    (tmp_path / "approved_tools.py").write_text(TOOLS)
    file = tmp_path / "shop.yaml"
    file.write_text(FILE)
    return file


def diary(shop: Path) -> str:
    file = shop.with_name("diary")
    return file.read_text("utf-8") if file.exists() else ""


def says(*asked: tuple[str, str]) -> Reply:
    return Reply("", tuple(Call(f"c{at}", *each) for at, each in enumerate(asked)))


def note(text: str) -> tuple[str, str]:
    return "note", json.dumps({"text": text})


def leaves(screen: Terminal) -> None:
    screen.until("> $")
    screen.types("\x04")
    assert screen.process.wait(10) == 0


def sent_back(server: Streams, request: int = 1) -> list[str]:
    """The results in the last message of a request."""
    messages = server.requests[request]["messages"]
    return [one["content"] for one in messages if one["role"] == "tool"]


def test_at_a_terminal_a_write_waits_for_a_y_and_a_read_does_not(shop: Path) -> None:
    batch = says(("double", '{"number": 21}'), ("note", '{"text": "hi", "times": 2}'))
    with (
        streams(batch, Reply("Done.")) as server,
        in_terminal(shop, server, "openai") as screen,
    ):
        screen.until("> ")
        screen.types("go\n")
        screen.until(r'\? note of own, with the arguments\n\{"text":"hi","times":2\}\n')
        screen.until(PROMPT)
        assert diary(shop) == ""
        screen.types("y\n")
        screen.until("y\n← 42\n← noted 2\nDone.\n")
        leaves(screen)
    assert diary(shop) == "hi;hi;"
    assert sent_back(server) == ["42", "noted 2"]


def test_a_no_and_its_reason_reach_the_model_and_the_other_call_runs(shop: Path) -> None:
    replies = (says(note("loud"), note("soft"), ("wipe", "{}")), Reply("As you like."))
    with streams(*replies) as server, in_terminal(shop, server, "openai") as screen:
        screen.until("> ")
        screen.types("go\n")
        for answer in ("n  too loud, try again ", "y", "n"):
            screen.until(PROMPT)
            screen.types(f"{answer}\n")
        screen.until("✗ denied .*too loud.*\n← noted 4\n✗ denied .*\nAs you like.\n")
        leaves(screen)
    refused = "Error: not run: the user did not allow this call"
    assert sent_back(server) == [f"{refused}: too loud, try again", "noted 4", refused]
    assert diary(shop) == "soft;"


def test_what_is_no_answer_is_asked_again(shop: Path) -> None:
    replies = (says(note("x")), Reply("Well."))
    with streams(*replies) as server, in_terminal(shop, server, "openai") as screen:
        screen.until("> ")
        screen.types("go\n")
        for answer in ("", "yes", "Y", "y please", "a note", "no", "always"):
            screen.until(PROMPT)
            screen.types(f"{answer}\n")
        screen.until(PROMPT)
        assert diary(shop) == ""
        screen.types("n\n")
        screen.until("✗ denied")
        leaves(screen)
    assert diary(shop) == ""


def test_always_holds_for_that_tool_and_for_the_whole_session(shop: Path) -> None:
    batch = says(note("one"), note("two"), ("wipe", "{}"))
    replies = (batch, Reply("First."), says(note("three")), Reply("Second."))
    with streams(*replies) as server, in_terminal(shop, server, "openai") as screen:
        screen.until("> ")
        screen.types("go\n")
        screen.until(r'"one"\}\n.*run note\?.* · $')
        screen.types("a\n")
        screen.until(r"run (note|wipe)\? ")  # not: note once more
        assert "run note" not in screen.shown
        screen.until(" · $")
        screen.types("n\n")
        screen.until("← noted 3\n← noted 3\n✗ denied .*\nFirst.\n> ")
        screen.types("again\n")
        screen.until("← noted 5\nSecond.\n")
        leaves(screen)
    assert diary(shop) == "one;two;three;"


def test_ctrl_c_at_a_question_cancels_the_turn_and_the_next_line_is_no_answer(shop: Path) -> None:
    replies = (says(note("x"), note("z")), Reply("Yes?"))
    with streams(*replies) as server, in_terminal(shop, server, "openai") as screen:
        screen.until("> ")
        screen.types("go\n")
        screen.until(PROMPT)
        screen.types("y\n")
        screen.until(PROMPT)
        screen.types("\x03")
        screen.until("\ncancelled\n> ")
        screen.types("y\n")
        screen.until("Yes\\?\n")
        leaves(screen)
    assert [one["content"] for one in server.requests[1]["messages"]] == ["y"]
    assert diary(shop) == ""


def test_a_second_ctrl_c_at_a_question_ends_with_130(shop: Path) -> None:
    with (
        streams(says(note("x"))) as server,
        in_terminal(shop, server, "openai") as screen,
    ):
        screen.until("> ")
        screen.types("go\n")
        screen.until(PROMPT)
        screen.types("\x03")
        screen.until("cancelled\n> ")
        screen.types("\x03")
        assert screen.process.wait(10) == 130
    assert diary(shop) == ""


def test_the_end_of_the_input_at_a_question_means_no(shop: Path) -> None:
    replies = (says(note("x"), note("y")), Reply("Bye."))
    with streams(*replies) as server, in_terminal(shop, server, "openai") as screen:
        screen.until("> ")
        screen.types("go\n")
        screen.until(PROMPT)
        screen.types("\x04")
        screen.until("\n✗ denied .*\n✗ denied .*\nBye.\n")
        assert screen.process.wait(10) == 0
    assert diary(shop) == ""


def test_what_was_typed_before_a_question_does_not_answer_it(shop: Path) -> None:
    replies = (says(note("x")), Reply("Well."))
    with streams(*replies) as server, in_terminal(shop, server, "openai") as screen:
        screen.until("> ")
        screen.types("go\ny\n")
        screen.until(PROMPT)
        screen.types("n\n")
        screen.until("✗ denied .*\nWell.\n")
        leaves(screen)
    assert diary(shop) == ""


def test_nor_does_what_was_typed_before_it_where_a_question_was_cancelled(shop: Path) -> None:
    replies = (says(note("x")), says(note("z")), Reply("Well."))
    with streams(*replies) as server, in_terminal(shop, server, "openai") as screen:
        screen.until("> ")
        screen.types("go\n")
        screen.until(PROMPT)
        screen.types("\x03")
        screen.until("cancelled\n> ")
        screen.types("again\ny\n")
        screen.until(PROMPT)
        screen.types("n\n")
        screen.until("✗ denied .*\nWell.\n")
        leaves(screen)
    assert diary(shop) == ""


def test_a_terminal_is_not_asked_where_none_says_so(shop: Path) -> None:
    replies = (says(note("x")), Reply("Done."))
    with (
        streams(*replies) as server,
        in_terminal(shop, server, "openai", "--approve", "none") as screen,
    ):
        screen.until("> ")
        screen.types("go\n")
        screen.until("→ note .*\n← noted 1\nDone.\n")
        leaves(screen)


def test_neither_a_model_nor_its_text_commands_the_terminal_or_hides_in_a_question(
    shop: Path,
) -> None:
    nasty = "a\x1b[2J\x9b31m\u202egnp\u2069\x07\x7f\u200b\nrun wipe? y 世界"
    twice = '{"text": "safe", "text": "sly"} and \x1b[2Jmore'
    broken = '{"text": "\x1b[2J'
    big = json.dumps({"text": "z" * 9000, "tags": ["t"] * 900})
    replies = (says(note(nasty), ("note", twice), ("note", broken), ("note", big)), Reply("Oh."))
    with streams(*replies) as server:
        command = arguments(shop, server, "openai", "--approve", "writes")
        talked = chat(command, "go\nn\nn\nn\nn\n")
    assert talked.returncode == 0, talked.stderr
    shown = talked.stdout
    questions = shown.split("\n? note of own, with the arguments\n")[1:]
    assert [one.count("\nrun note? ") for one in questions] == [1, 1, 1, 1]
    assert not any(sign in shown for sign in "\x1b\x9b\x07\x7f")
    assert not any(sign in one for sign in "\u202e\u2069\u200b" for one in questions)
    escaped = r"a\u001b[2J\u009b31m\u202egnp\u2069\u0007\u007f\u200b\nrun wipe? y 世界"
    assert f'{{"text":"{escaped}"}}\n' in questions[0]
    assert '"sly"' in questions[1] and '"safe"' not in questions[1]
    assert "(ignored " in questions[1]
    assert "not read as a JSON object" in questions[2]
    assert "characters left out" in questions[3] and len(questions[3]) < 5000


def test_arguments_that_take_a_line_are_indented_if_they_do_not_fill_the_screen(
    shop: Path,
) -> None:
    few = json.dumps({"text": "t" * 90, "tags": ["a", "b"]})
    many = json.dumps({"text": "t", "tags": ["a"] * 300})
    with streams(says(("note", few), ("note", many)), Reply("Oh.")) as server:
        talked = chat(arguments(shop, server, "openai", "--approve", "writes"), "go\nn\nn\n")
    _, first, second = talked.stdout.split(", with the arguments\n")
    assert first.startswith('{\n  "text": "ttt') and '\n    "a",\n    "b"\n  ]\n}\nrun' in first
    assert second.split("\nrun note?")[0].count("\n") == 0


def test_a_number_that_python_does_not_write_is_asked_about_too(shop: Path) -> None:
    huge = f'{{"text": "x", "times": {"9" * 5000}}}'
    with streams(says(("note", huge)), Reply("Oh.")) as server:
        talked = chat(arguments(shop, server, "openai", "--approve", "writes"), "go\nn\n")
    assert talked.returncode == 0, talked.stderr
    assert "run note?" in talked.stdout and "✗ denied" in talked.stdout


def test_secret_arguments_are_masked_wherever_a_call_is_shown(shop: Path) -> None:
    secret = {"token": "hush-hush-123"}
    batch = says(
        ("enter", json.dumps({"user": "eve", **secret})),
        ("leave", json.dumps({"door": "back", **secret})),
        ("leave", '{"token": "hush-hush-123", "door'),
    )
    with streams(batch, Reply("Oh.")) as server:
        command = arguments(shop, server, "openai", "--approve", "writes")
        talked = chat(command, "go\ny\ny\ny\n")
    assert "← entered\n← left\n✗ invalid_arguments" in talked.stdout
    assert "→ enter enter as eve\n" in talked.stdout
    assert '→ leave {"door":"back","token":"[redacted]"}\n' in talked.stdout
    assert '\n{"user":"eve","token":"[redacted]"}\n' in talked.stdout
    assert "hush" not in talked.stdout


def test_for_programs_a_question_is_an_event_and_the_next_line_its_answer(shop: Path) -> None:
    text = '{"text":  "\\u202e"}'
    replies = (says(("note", text), note("b")), Reply("Done."), Reply("Hello."))
    with streams(*replies) as server:
        command = arguments(shop, server, "openai", "--json", "--approve", "writes")
        talked = chat(command, "go\nhm\ny\nn not now\nhello\n")
    events = told(talked)
    question = {"event": "ask", "id": "c0", "name": "note", "arguments": text, "source": "own"}
    asked = [one for one in events if one["event"] == "ask"]
    assert asked == [question, question, {**question, "id": "c1", "arguments": note("b")[1]}]
    kinds = [one["event"] for one in events if one["event"] not in ("text", "ask")]
    assert kinds == ["round", "calls", "results", "round", "answer", "round", "answer"]
    (results,) = (one["results"] for one in events if one["event"] == "results")
    assert [one["is_error"] for one in results] == [False, True]
    assert results[1]["failure"]["kind"] == "denied"
    assert results[1]["failure"]["message"].endswith(": not now")
    assert server.requests[2]["messages"][-1]["content"] == "hello"


def test_a_script_is_asked_nothing_unless_it_says_so_and_its_end_is_a_no(shop: Path) -> None:
    with streams(says(note("x")), Reply("Done.")) as server:
        talked = chat(arguments(shop, server, "openai", "--json"), "go\n")
    assert "ask" not in [one["event"] for one in told(talked)]
    assert diary(shop) == "x;"
    with streams(says(note("y")), Reply("Done.")) as server:
        talked = chat(arguments(shop, server, "openai", "--json", "--approve", "all"), "go\n")
    assert [one["event"] for one in told(talked)].count("ask") == 1
    assert diary(shop) == "x;"


def test_all_asks_about_reads_too_but_not_about_a_search(shop: Path) -> None:
    batch = says(("tool_search", '{"query": "double"}'), ("double", '{"number": 1}'))
    with streams(batch, Reply("Done.")) as server:
        talked = chat(arguments(shop, server, "openai", "--approve", "all"), "go\nn\n")
    assert talked.stdout.count("? double of own") == 1
    assert "run tool_search?" not in talked.stdout
    assert "✗ denied" in talked.stdout
    assert len(server.requests) == 2


def test_a_signal_at_a_question_cancels_the_turn_and_the_next_line_is_a_message(shop: Path) -> None:
    with streams(says(note("x")), Reply("Next.")) as server:
        process = subprocess.Popen(
            arguments(shop, server, "openai", "--json", "--approve", "writes"),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environ(),
        )
        assert process.stdin is not None and process.stdout is not None
        process.stdin.write("go\n")
        process.stdin.flush()
        until_event(process, "ask")
        process.send_signal(signal.SIGINT)
        until_event(process, "cancelled")
        process.stdin.write("y\n")
        process.stdin.flush()
        until_event(process, "answer")
        process.communicate(timeout=15)
    assert process.returncode == 0
    assert [one["content"] for one in server.requests[1]["messages"]] == ["y"]
    assert diary(shop) == ""


def until_event(process: subprocess.Popen[str], event: str) -> None:
    """Reads on until that event; a watchdog ends a process that never tells it."""
    import threading

    watchdog = threading.Timer(20, process.kill)
    watchdog.start()
    try:
        assert process.stdout is not None
        for line in process.stdout:
            if json.loads(line)["event"] == event:
                return
        raise AssertionError(f"the event {event!r} did not come")
    finally:
        watchdog.cancel()


def test_help_says_what_the_default_is_and_another_word_is_wrong_usage(shop: Path) -> None:
    helped = " ".join(chat([*COMMAND, "--help"], "").stdout.replace("│", " ").split())
    assert "--approve <none|writes|all>" in helped.replace("[", "<").replace("]", ">")
    assert "writes where the input is a terminal, none otherwise" in helped
    wrong = chat([*COMMAND, str(shop), "--model", "openai:m", "--approve", "some"], "")
    assert wrong.returncode == 2
    assert "some" in wrong.stderr
