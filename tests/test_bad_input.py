"""Whatever a model sends and whatever a tool does, a call ends in a value that says what to do, and
the process goes on: each fault sync and async, by `call`, in a round and from another thread."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import json
import logging
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest

from conftest import ended, outcome
from toolcrib import Assembly, CallContext, ToolCall, ToolError, ToolResult, tool
from toolcrib.middleware import Settings, standard

SECRET = "sk-secret-4711"
LIMIT = 0.1
release = threading.Event()


@pytest.fixture(autouse=True)
def _let_threads_go() -> Any:
    release.clear()
    yield
    release.set()


class Unwritable:
    def __repr__(self) -> str:
        return SECRET


class Mute(Exception):
    def __str__(self) -> str:
        raise RuntimeError(SECRET)

    __repr__ = __str__


def _pairs() -> dict[str, tuple[Callable[[], Any], Callable[[], Awaitable[Any]]]]:
    """Each fault as a sync function and as an async one."""

    def raises() -> str:
        raise RuntimeError(SECRET)

    def raises_mute() -> str:
        raise Mute

    def chains() -> str:
        try:
            raise KeyError(SECRET)
        except KeyError as error:
            raise RuntimeError("outer " + SECRET) from error

    def speaks() -> str:
        raise ToolError("the row 7 does not exist: list the rows first")

    def unwritable() -> Any:
        return {"a": Unwritable()}

    def returns_a_class() -> Any:
        return dict

    def returns_an_error() -> Any:
        return ValueError(SECRET)

    def prints() -> str:
        print("noise on stdout")
        sys.stderr.write("noise on stderr\n")
        return "printed"

    def exits() -> str:
        sys.exit(3)

    def exits_with_text() -> str:
        raise SystemExit(SECRET)

    def cancels() -> str:
        raise asyncio.CancelledError(SECRET)

    def stops() -> str:
        raise StopIteration(SECRET)

    def generator_exit() -> str:
        raise ExceptionGroup(SECRET, [ValueError(SECRET)])

    def deep() -> Any:
        value: list[Any] = []
        for _ in range(100_000):
            value = [value]
        return value

    made: dict[str, tuple[Callable[[], Any], Callable[[], Awaitable[Any]]]] = {}
    for function in (
        raises, raises_mute, chains, speaks, unwritable, returns_a_class, returns_an_error,
        prints, exits, exits_with_text, cancels, stops, generator_exit, deep,
    ):  # fmt: skip

        def asynchronous(function: Callable[[], Any] = function) -> Callable[[], Awaitable[Any]]:
            async def run() -> Any:
                await asyncio.sleep(0)
                return function()

            return run

        made[function.__name__] = (function, asynchronous())
    return made


EXPECTED = {
    "raises": ("internal", "internal error (reference "),
    "raises_mute": ("internal", "internal error (reference "),
    "chains": ("internal", "internal error (reference "),
    "speaks": ("tool_error", "list the rows first"),
    "unwritable": ("invalid_output", "cannot be written as JSON"),
    "returns_a_class": ("invalid_output", "cannot be written as JSON"),
    "returns_an_error": ("invalid_output", "cannot be written as JSON"),
    "prints": (None, "printed"),
    "exits": ("internal", "internal error (reference "),
    "exits_with_text": ("internal", "internal error (reference "),
    "cancels": ("cancelled", "cancelled itself"),
    "stops": ("internal", "internal error (reference "),
    "generator_exit": ("internal", "internal error (reference "),
    "deep": ("invalid_output", "cannot be written as JSON"),
}

Call = Callable[[Assembly, str, str], Awaitable[ToolResult]]


async def by_call(assembly: Assembly, name: str, arguments: str = "{}") -> ToolResult:
    return await assembly.call(name, arguments)


async def in_a_round(assembly: Assembly, name: str, arguments: str = "{}") -> ToolResult:
    """Among siblings, which must not notice."""
    calls = [ToolCall("s1", "fine"), ToolCall("c", name, arguments), ToolCall("s2", "fine")]
    async with assembly.session().turn() as turn:
        results = await turn.round().execute(calls)
    assert [r.call_id for r in results] == ["s1", "c", "s2"]
    assert [outcome(r) for r in (results[0], results[2])] == ["fine", "fine"]
    return results[1]


async def alone_in_a_round(assembly: Assembly, name: str, arguments: str = "{}") -> ToolResult:
    async with assembly.session().turn() as turn:
        (result,) = await turn.round().execute([ToolCall("c", name, arguments)])
    return result


async def from_a_thread(assembly: Assembly, name: str, arguments: str = "{}") -> ToolResult:
    return await asyncio.to_thread(assembly.call_sync, name, arguments)


WAYS = [by_call, in_a_round, alone_in_a_round, from_a_thread]
CHAINS = {
    "no middleware": (),
    "the five": standard(Settings(True, True, None, 5.0, 8)),
}


@contextlib.asynccontextmanager
async def workshop(chain: str, *tools: Any) -> AsyncIterator[Assembly]:
    @tool
    async def fine() -> str:
        return "fine"

    made = standard(Settings(True, True, None, 5.0, 8)) if CHAINS[chain] else ()
    async with Assembly([fine, *tools], middlewares=made) as assembly:
        for _ in range(2):
            await assembly.call("fine")
            await asyncio.sleep(0)
        yield assembly


def check(result: ToolResult, kind: str | None, says: str) -> None:
    assert (result.failure.kind if result.failure else None) == kind, result
    assert says in result.text
    assert SECRET not in result.text
    assert SECRET not in repr(result)
    assert json.loads(json.dumps(result.to_json()))["is_error"] == (kind is not None)


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
@pytest.mark.parametrize("chain", CHAINS)
@pytest.mark.parametrize("kind_of_function", ["sync", "async"])
async def test_whatever_a_tool_does_is_a_value(
    way: Call, chain: str, kind_of_function: str, caplog: pytest.LogCaptureFixture
) -> None:
    tools = []
    for name, (sync, asynchronous) in _pairs().items():
        tools.append(tool(name=name)(sync if kind_of_function == "sync" else asynchronous))
    async with workshop(chain, *tools) as assembly:
        for name, (kind, says) in EXPECTED.items():
            check(await ended(way(assembly, name, "{}")), kind, says)
            assert outcome(await assembly.call("fine")) == "fine"
    assert "reference" not in caplog.text


@tool
async def cancels_its_task_and_waits() -> str:
    asyncio.current_task().cancel()  # type: ignore[union-attr]
    await asyncio.sleep(30)
    return "not reached"


@tool
async def cancels_its_task_and_waits_later() -> str:
    await asyncio.sleep(0)
    return await cancels_its_task_and_waits()  # type: ignore[no-any-return]


@tool
async def cancels_its_task_and_returns() -> str:
    asyncio.current_task().cancel()  # type: ignore[union-attr]
    return "done"


@tool
async def cancels_its_task_and_returns_later() -> str:
    await asyncio.sleep(0)
    return await cancels_its_task_and_returns()  # type: ignore[no-any-return]


CANCELLERS = [
    cancels_its_task_and_waits,
    cancels_its_task_and_waits_later,
    cancels_its_task_and_returns,
    cancels_its_task_and_returns_later,
]


def _cancel_cases() -> list[Any]:
    return [
        pytest.param(chain, way, canceller, id=f"{chain}-{way.__name__}-{canceller.original}")
        for chain in CHAINS
        for way in WAYS
        for canceller in CANCELLERS
        if (chain, way) != ("no middleware", by_call)  # no task of its own there: see below
    ]


async def test_without_a_time_out_a_tool_runs_in_its_callers_task() -> None:
    """So cancelling that task is cancelling the caller: nothing can tell the two apart."""
    async with workshop("no middleware", cancels_its_task_and_waits) as assembly:
        caller = asyncio.create_task(assembly.call("cancels_its_task_and_waits"))
        await asyncio.wait((caller,), timeout=2)
        assert caller.cancelled()
        assert outcome(await assembly.call("fine")) == "fine"


@pytest.mark.parametrize(("chain", "way", "canceller"), _cancel_cases())
async def test_a_tool_that_cancels_its_own_task_cancels_nothing_else(
    chain: str, way: Call, canceller: Any
) -> None:
    async with workshop(chain, canceller) as assembly:
        result = await ended(way(assembly, canceller.original, "{}"))
        assert outcome(result) in ("cancelled", "done")
        if "waits" in canceller.original:
            check(result, "cancelled", "cancelled itself")
        assert outcome(await assembly.call("fine")) == "fine"


@pytest.mark.parametrize("chain", CHAINS)
async def test_in_a_queue_of_calls_only_the_one_that_cancelled_itself_is_cancelled(
    chain: str,
) -> None:
    from toolcrib import ToolLimits

    calls = [
        ToolCall(str(at), name)
        for at, name in enumerate(
            ["cancels_its_task_and_returns", "naps", "cancels_its_task_and_waits", "naps", "naps"]
        )
    ]

    @tool
    async def naps() -> str:
        await asyncio.sleep(0)
        return "rested"

    async with workshop(chain, naps, *CANCELLERS) as assembly:
        turn = assembly.session().turn(ToolLimits(parallel=1))
        results = await ended(turn.round().execute(calls))
    assert outcome(results[0]) in ("done", "cancelled")
    assert [outcome(r) for r in results[1:]] == ["rested", "cancelled", "rested", "rested"]


# time


async def _never() -> str:
    await asyncio.Event().wait()
    return "never"


async def _stubborn() -> str:
    """Ignores every cancellation until the test lets it go."""
    while not release.is_set():
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.sleep(0.02)
    return "stubborn"


async def _slow_cleanup() -> str:
    try:
        await asyncio.Event().wait()
    finally:
        while not release.is_set():
            await asyncio.sleep(0.02)
    return "never"


def _sync_never() -> str:
    release.wait(20)
    return "never"


NEVER = {
    "async_never": (_never, False),
    "async_stubborn": (_stubborn, True),
    "async_slow_cleanup": (_slow_cleanup, True),
    "sync_never": (_sync_never, True),
}


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
@pytest.mark.parametrize("name", NEVER)
@pytest.mark.parametrize("by", ["middleware", "policy"])
async def test_what_never_returns_times_out_on_time(
    way: Call, name: str, by: str, record_property: Callable[[str, object], None]
) -> None:
    function, left_behind = NEVER[name]

    @tool
    async def fine() -> str:
        return "fine"

    timed = tool(name=name, timeout=LIMIT if by == "policy" else None)(function)
    chain = standard(Settings(timeout=LIMIT if by == "middleware" else 5.0))
    async with Assembly([fine, timed], middlewares=chain) as assembly:
        await assembly.call("fine")
        took = []
        for _ in range(2):
            began = time.perf_counter()
            result = await ended(way(assembly, name, "{}"))
            took.append(time.perf_counter() - began)
            check(result, "timeout", f"{name!r} timed out after 0.1s")
            assert ("may still be running" in result.text) == left_behind
        grace = 0.05 if left_behind and name.startswith("async") else 0.0
        record_property("seconds", min(took))
        assert LIMIT <= min(took) <= LIMIT + grace + 0.03, took
        assert outcome(await ended(assembly.call("fine"))) == "fine"
        release.set()
        await asyncio.sleep(0.05)  # the stragglers see it, so that the loop can end


async def test_many_sync_calls_that_never_return_leave_room_for_the_next_and_for_closing() -> None:
    """CC02: 50 abandoned threads do not use up the pool."""

    @tool
    def fine() -> str:
        return "fine"

    async with Assembly([fine, tool(name="stuck", timeout=LIMIT)(_sync_never)]) as assembly:
        stuck = await ended(asyncio.gather(*(assembly.call("stuck") for _ in range(50))))
        assert {outcome(result) for result in stuck} == {"timeout"}
        assert outcome(await ended(assembly.call("fine"), 1)) == "fine"
        closing = time.perf_counter()
    assert time.perf_counter() - closing < 1


async def test_a_sync_tool_does_not_stop_the_loop() -> None:
    """CC01."""
    ticks = 0
    enough = asyncio.Event()

    async def tick() -> None:
        nonlocal ticks
        while ticks < 20:
            await asyncio.sleep(0)
            ticks += 1
        enough.set()
        release.set()

    async with Assembly([tool(name="slow")(_sync_never)]) as assembly:
        ticking = asyncio.create_task(tick())
        results = await ended(asyncio.gather(assembly.call("slow"), assembly.call("slow")))
        await ticking
    assert enough.is_set()
    assert [outcome(result) for result in results] == ["never", "never"]


async def test_as_many_sync_calls_as_there_are_threads_really_run_at_once() -> None:
    for _ in range(15):
        all_in = threading.Barrier(32)

        def meet(all_in: threading.Barrier = all_in) -> str:
            all_in.wait(2)
            return "met"

        at_once = tool(name="meet", timeout=0.4)(functools.partial(meet, all_in))
        async with Assembly([at_once]) as assembly:
            results = await ended(asyncio.gather(*(assembly.call("meet") for _ in range(32))))
        all_in.abort()
        assert {outcome(result) for result in results} == {"met"}


async def test_sync_tools_that_call_sync_tools_do_not_wait_for_each_other_for_ever() -> None:
    assembly: Assembly
    all_in = threading.Barrier(32)

    @tool
    def leaf() -> str:
        return "leaf"

    @tool(timeout=1)
    def branch() -> str:
        all_in.wait(5)
        return assembly.call_sync("leaf").text

    async with Assembly([leaf, branch]) as assembly:
        results = await ended(asyncio.gather(*(assembly.call("branch") for _ in range(32))))
    assert {outcome(result) for result in results} == {"leaf"}


async def test_a_sync_tool_that_calls_itself_without_end_runs_into_a_bound() -> None:
    assembly: Assembly
    most = 0

    @tool(timeout=5)
    def again(left: int) -> str:
        nonlocal most
        most = max(most, threading.active_count())
        return assembly.call_sync("again", left=left - 1).text if left else "the end"

    async with Assembly([again]) as assembly:
        await ended(assembly.call("again", left=400), 10)
    assert most <= 32 + 256 + 8


async def test_sync_and_async_tools_may_call_each_other() -> None:
    assembly: Assembly

    @tool
    def leaf(n: int) -> int:
        return n + 1

    @tool
    async def middle(n: int) -> int:
        return int((await assembly.call("leaf", n=n)).text) + 1

    @tool
    def top(n: int) -> int:
        return int(assembly.call_sync("middle", n=n).text) + 1

    async with Assembly([leaf, middle, top]) as assembly:
        assert outcome(await ended(assembly.call("top", n=0))) == "3"


# what a model sends


@tool
def read(topic: str, limit: int = 3) -> str:
    """Read about a topic."""
    return f"{topic}/{limit}"


@tool
async def look(topic: str, limit: int = 3) -> str:
    """Look at a topic."""
    return f"{topic}/{limit}"


BAD = [
    ("not json", ["not JSON"]),
    ('{"topic": "a"', ["cut off"]),
    ("{'topic': 'a'}", ["not JSON"]),
    ('{"topic": "a"} {"topic": "b"}', ["exactly one object"]),
    ("[1, 2]", ["object", "array"]),
    ("42", ["object", "integer"]),
    ('"hello"', ["object", "string"]),
    ("true", ["object", "boolean"]),
    ("{}", ["topic", "required"]),
    ("", ["topic"]),
    ("null", ["topic"]),
    ('{"topic": 5}', ["topic", "string"]),
    ('{"topic": null}', ["topic", "string", "null"]),
    ('{"topic": ["' + SECRET + '"]}', ["topic", "string", "array"]),
    ('{"topic": "a", "limit": "' + SECRET + '"}', ["limit", "integer"]),
    ('{"topic": "a", "limit": 1.5}', ["limit", "integer"]),
    ('{"topic": "a", "limit": true}', ["limit", "integer", "boolean"]),
    ('{"topic": "a", "limit": NaN}', ["NaN"]),
    ('{"topic": "a", "limit": 1e999}', ["limit"]),
    ('{"topik": "' + SECRET + '"}', ["'topik'", "did you mean 'topic'", "Accepted: topic"]),
    ('{"topic": "a", "path": "' + SECRET + '"}', ["'path'", "topic (required), limit"]),
    ('{"topic": "\\ud83d"}', ["JSON"]),
    ("\ud83d", ["surrogate"]),
    ('{"topic": ' + "[" * 100_000, ["JSON"]),
    ('{"topic": "a", "limit": ' + "9" * 10_000 + "}", ["JSON"]),
]


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
@pytest.mark.parametrize("chain", CHAINS)
async def test_what_a_model_sends_wrong_is_told_back_and_nothing_runs(
    way: Call, chain: str
) -> None:
    async with workshop(chain, read, look) as assembly:
        for name in ("read", "look"):
            for arguments, says in BAD:
                result = await ended(way(assembly, name, arguments))
                assert outcome(result) == "invalid_arguments", (arguments[:50], result)
                for words in says:
                    assert words in result.text, arguments[:50]
                assert SECRET not in result.text
                assert len(result.text) < 2000
        assert outcome(await assembly.call("read", topic="a")) == "a/3"


@pytest.mark.parametrize(
    "arguments", ['{"topic": "a",}', '{"topic": "a", "limit": 1, }', '{"topic": ["a",]}']
)
async def test_a_trailing_comma_is_told_back_or_recovered(arguments: str) -> None:
    async with Assembly([read]) as assembly:
        result = await assembly.call("read", arguments)
    assert outcome(result) in ("invalid_arguments", "a/3", "a/1")


async def test_an_unknown_tool_says_which_are_near_and_empty_names_are_unknown_too() -> None:
    async with Assembly([read]) as assembly:
        result = await assembly.call("reed")
        assert outcome(result) == "not_found"
        assert "did you mean 'read'?" in result.text
        for name in ("", " ", "/", "x" * 10_000, "program/", "/read", "\ud83d", "a\nb"):
            result = await assembly.call(name)
            assert outcome(result) == "not_found"
            assert len(result.text) < 300


async def test_the_log_holds_what_the_model_must_not_see(caplog: pytest.LogCaptureFixture) -> None:
    @tool
    def raises() -> str:
        raise RuntimeError("the reason")

    async with Assembly([raises]) as assembly:
        with caplog.at_level(logging.ERROR):
            result = await assembly.call("raises")
    assert result.failure is not None
    assert result.failure.reference in result.text
    assert len(result.failure.reference) >= 8
    (record,) = [r for r in caplog.records if result.failure.reference in r.getMessage()]
    assert record.exc_info is not None
    assert str(record.exc_info[1]) == "the reason"


HOSTILE = textwrap.dedent(
    """
    import asyncio, os, signal, sys, threading
    from toolcrib import Assembly, ToolCall, tool
    from toolcrib.middleware import Settings, standard

    @tool
    def exits() -> str: sys.exit(3)
    @tool
    async def exits_async() -> str: sys.exit(3)
    @tool
    async def exits_later() -> str:
        await asyncio.sleep(0)
        sys.exit(3)
    @tool
    def interrupts() -> str: raise KeyboardInterrupt
    @tool
    def recurses() -> str: return recurses()
    @tool
    async def cancels() -> str:
        asyncio.current_task().cancel()
        await asyncio.sleep(1)
    @tool
    async def fine() -> str: return "fine"

    NAMES = ["exits", "exits_async", "exits_later", "interrupts", "recurses", "cancels", "fine"]

    async def main():
        tools = [exits, exits_async, exits_later, interrupts, recurses, cancels, fine]
        async with Assembly(tools, middlewares=standard(Settings(timeout=5.0))) as t:
            kinds = []
            for name in NAMES:
                r = await t.call(name)
                kinds.append(r.failure.kind if r.failure else r.text)
            async with t.session().turn() as turn:
                rs = await turn.round().execute([ToolCall(n, n) for n in NAMES])
            kinds += [r.failure.kind if r.failure else r.text for r in rs]
            for name in NAMES:
                r = await asyncio.to_thread(t.call_sync, name)
                kinds.append(r.failure.kind if r.failure else r.text)
            print(*kinds)
    asyncio.run(main())
    print("alive")
    """
)

CTRL_C = textwrap.dedent(
    """
    import asyncio, os, signal
    from toolcrib import Assembly, tool
    from toolcrib.middleware import Settings, standard

    @tool
    async def waits() -> str:
        asyncio.get_running_loop().call_later(0.05, os.kill, os.getpid(), signal.SIGINT)
        await asyncio.sleep(30)

    async def main():
        async with Assembly([waits], middlewares=standard(Settings(True, timeout=20.0))) as t:
            print(await t.call("waits"))
    try:
        asyncio.run(main())
    except KeyboardInterrupt:
        print("stopped by ctrl-c")
    """
)


def _run(script: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", _LISTENS + script],
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )


_LISTENS = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)\n"
"""A shell running the tests in the background has them ignore Ctrl-C; their children shall not."""


def test_a_tool_cannot_end_the_process() -> None:
    run = _run(HOSTILE)
    one = "internal internal internal internal internal cancelled fine"
    assert run.stdout.splitlines() == [" ".join([one] * 3), "alive"], run.stderr
    assert run.returncode == 0


def test_ctrl_c_still_stops_the_program() -> None:
    run = _run(CTRL_C)
    assert run.stdout.splitlines() == ["stopped by ctrl-c"], run.stderr


async def test_a_cancelled_caller_is_cancelled_and_its_tool_with_it() -> None:
    """What a tool made up itself is a value; what was really asked for passes (RS16)."""
    for chain in CHAINS:
        begun, log = asyncio.Event(), list[str]()

        async def waits(begun: asyncio.Event = begun, log: list[str] = log) -> str:
            begun.set()
            try:
                await asyncio.sleep(30)
            except asyncio.CancelledError:
                log.append("told")
                raise
            return ""

        async def waiting() -> str:
            return await waits()

        async with workshop(chain, tool(name="waits")(waiting)) as assembly:
            for way in (by_call, in_a_round, alone_in_a_round):
                caller = asyncio.create_task(way(assembly, "waits"))  # type: ignore[arg-type]
                await ended(begun.wait())
                begun.clear()
                caller.cancel()
                await asyncio.wait((caller,), timeout=2)
                assert caller.cancelled()
            assert log == ["told"] * 3


@pytest.mark.parametrize("limit", [5.0, None])
async def test_a_thread_learns_that_its_call_was_cancelled(limit: float | None) -> None:
    begun, over, seen = threading.Event(), threading.Event(), list[bool]()

    @tool(timeout=limit)
    def polls(ctx: CallContext) -> str:
        begun.set()
        until = time.monotonic() + 1
        while not ctx.cancellation.requested and time.monotonic() < until:
            time.sleep(0.002)
        seen.append(ctx.cancellation.requested)
        over.set()
        return ""

    async with Assembly([polls]) as assembly:
        caller = asyncio.create_task(assembly.call("polls"))
        assert await asyncio.to_thread(begun.wait, 2)
        caller.cancel()
        await asyncio.wait((caller,), timeout=2)
        assert await asyncio.to_thread(over.wait, 3)
    assert seen == [True]


@pytest.mark.parametrize("stage", ["parse", "authorize"])
async def test_no_stage_of_a_tool_ends_the_process(stage: str) -> None:
    from toolcrib import define_tool

    def leaves(*_: object) -> object:
        raise SystemExit(3)

    async def execute(ctx: CallContext, arguments: Any) -> str:
        return "ran"

    made = define_tool("t", description="", execute=execute, **{stage: leaves})  # type: ignore[arg-type]
    async with Assembly([made]) as assembly:
        try:
            result = await assembly.call("t")
        except SystemExit:
            pytest.fail("SystemExit left the call")
    assert outcome(result) == "internal"
