"""The walk of one call: resolve, may-use, parse, authorise, run, finish; names, and who may know
them (A2, DESIGN 4)."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from conftest import Plain, ended, outcome
from toolcrib import (
    Assembly,
    CallContext,
    InvalidDefinition,
    Policy,
    Principal,
    Registry,
    ToolCall,
    ToolError,
    ToolLimits,
    ToolResult,
    define_tool,
    tool,
)
from toolcrib.executor import Executor
from toolcrib.policy import Policies


@tool
async def add(a: int, b: int) -> int:
    """Add two whole numbers."""
    return a + b


async def test_hello_world() -> None:
    async with Assembly([add]) as tools:
        result = await tools.call("add", a=2, b=3)
    assert (str(result), result.value, result.is_error) == ("5", 5, False)


async def test_A2_1_the_call_id_is_echoed_by_every_result() -> None:
    async with Assembly([add]) as tools:
        for name, arguments in (("add", '{"a":1,"b":2}'), ("add", "{}"), ("nowhere", "{}")):
            result = await tools.execute(ToolCall("id-7", name, arguments))
            assert result.call_id == "id-7"


async def test_a_result_with_another_call_id_is_given_the_right_one() -> None:
    shared = ToolResult.ok("x")
    async with Assembly([Plain("t", shared)]) as tools:
        results = await asyncio.gather(*(tools.execute(ToolCall(i, "t")) for i in "abc"))
    assert [r.call_id for r in results] == ["a", "b", "c"]
    assert shared.call_id == ""


async def test_A2_2_results_of_a_batch_are_in_input_order_and_run_at_once() -> None:
    turnstile = asyncio.Barrier(5)

    async def wait(ctx: Any, arguments: str) -> str:
        await turnstile.wait()
        return str(ctx.call_id)

    async with Assembly([Plain("t", wait)]) as tools:
        turn = tools.session().turn(ToolLimits(parallel=5))
        calls = [ToolCall(str(at), "t") for at in range(5)]
        results = await ended(turn.round().execute(calls))
    assert [r.text for r in results] == ["0", "1", "2", "3", "4"]


async def test_no_more_than_parallel_run_at_once_and_a_cancelled_batch_stops() -> None:
    """CC07."""
    now = most = started = 0
    half = asyncio.Event()

    async def work(ctx: Any, arguments: str) -> str:
        nonlocal now, most, started
        started += 1
        now += 1
        most = max(most, now)
        try:
            if started >= 500:
                half.set()
                await asyncio.Event().wait()
            await asyncio.sleep(0)
        finally:
            now -= 1
        return "ran"

    async with Assembly([Plain("t", work)]) as tools:
        turn = tools.session().turn(ToolLimits(calls=1000, parallel=8))
        batch = asyncio.create_task(
            turn.round().execute([ToolCall(str(n), "t") for n in range(1000)])
        )
        await ended(half.wait(), 10)
        batch.cancel()
        await asyncio.wait((batch,), timeout=2)
        assert batch.cancelled()
        await asyncio.sleep(0)
        assert most == 8
        assert now == 0
        assert started < 520


async def test_counts_say_how_calls_ended() -> None:
    async with Assembly([add]) as tools:
        await tools.call("add", a=1, b=2)
        await tools.call("add", a=1)
        await tools.call("nowhere")
        assert tools.executor.counts == {"ok": 1, "invalid_arguments": 1, "not_found": 1}


# names


async def test_source_slash_tool_is_the_same_tool_and_is_split_at_the_first_slash() -> None:
    class Odd(Plain):
        original = "deep/er"

    async with Assembly([add]) as tools:
        tools.registry.add(Odd("odd_name", "odd"), "remote")
        assert outcome(await tools.call("program/add", a=1, b=1)) == "2"
        assert outcome(await tools.call("remote/deep/er")) == "odd"
        assert outcome(await tools.call("odd_name")) == "odd"
        for wrong in (
            "remote/odd",
            "nowhere/add",
            "/add",
            "program/",
            "program/add/",
            "remote/odd_name",
        ):
            assert outcome(await tools.call(wrong)) == "not_found"
        current = tools.session().turn().round()
        assert not any("/" in name for name in current.names), "never sent to a model"
        (result,) = await current.execute([ToolCall("1", "program/add", '{"a":1,"b":1}')])
        assert outcome(result) == "undefined_tool"


async def test_an_unknown_name_is_answered_with_its_nearest_neighbours() -> None:
    async with Assembly([Plain(n) for n in ("git_status", "git_stash", "read_file")]) as tools:
        result = await tools.call("git_statu")
        assert outcome(result) == "not_found"
        assert result.text.index("'git_status'") < result.text.index("'git_stash'")
        assert "read_file" not in result.text
        assert "did you mean 'git_status'" in (await tools.call("GIT-STATUS")).text
        assert "mean" not in (await tools.call("zzzzzz")).text


@pytest.mark.parametrize("slip", ["raed"])
async def test_a_slip_in_a_short_name_finds_its_neighbour_too(slip: str) -> None:
    async with Assembly([Plain("read")]) as tools:
        assert "'read'" in (await tools.call(slip)).text


# who may know of a tool


def report(at: object, *scopes: str) -> Any:
    async def run() -> str:
        return "ran"

    return tool(name=f"report_{at}", scopes=scopes)(run)


async def test_a_forbidden_tool_answers_exactly_like_an_unknown_one() -> None:
    ran: list[str] = []

    @tool(scopes={"billing"})
    async def refund(order: str) -> str:
        ran.append(order)
        return "paid"

    async with Assembly([add, refund]) as tools, Assembly([add]) as without:
        for name in ("refund", "program/refund", "refun", "refunds"):
            for arguments in ("{}", '{"order": "1"}', "not json"):
                call = ToolCall("1", name, arguments)
                assert await tools.execute(call) == await without.execute(call)
        for session, other in ((tools.session(), without.session()),):
            assert session.turn().round().names == other.turn().round().names
            call = ToolCall("1", "refund", '{"order": "1"}')
            ours = await session.turn().round().execute([call])
            assert ours == await other.turn().round().execute([call])
        assert ran == []
        ana = Principal.of("ana", "billing", "more")
        assert (
            outcome(await tools.execute(ToolCall("1", "refund", '{"order": "7"}'), principal=ana))
            == "paid"
        )
        assert "refund" in tools.session(principal=ana).turn().round().names
        assert "'refund'" in (await tools.execute(ToolCall("1", "refun"), principal=ana)).text
    assert ran == ["7"]


async def test_forbidden_tools_do_not_show_in_the_suggestions_of_others() -> None:
    allowed = report("monthly_x")
    secret = [report(f"month_{at}", "audit") for at in range(10)]
    async with Assembly([allowed, *secret]) as tools, Assembly([allowed]) as without:
        call = ToolCall("1", "report_month_3")
        assert await tools.execute(call) == await without.execute(call)


async def test_every_scope_must_be_granted_and_a_record_beats_the_decorator() -> None:
    policies = {"report_*": Policy(scopes=frozenset({"x"}))}
    async with Assembly([report("a", "y"), report("b")], policies=policies) as tools:
        for principal, expected in (
            (Principal.of("p"), "not_found"),
            (Principal.of("p", "y"), "not_found"),
            (Principal.of("p", "x"), "ran"),
        ):
            found = await tools.execute(ToolCall("1", "report_a"), principal=principal)
            assert outcome(found) == expected
    async with Assembly([report("a", "x", "y")]) as tools:
        half = await tools.execute(ToolCall("1", "report_a"), principal=Principal.of("p", "x"))
        assert outcome(half) == "not_found"


def test_policies_exact_beats_pattern_beats_author_beats_default_field_by_field() -> None:
    policies = Policies(
        {
            "fs__read": Policy(timeout=1),
            "fs__*": Policy(timeout=2, exposure="direct"),
            "*": Policy(timeout=3, scopes=frozenset({"s"})),
        },
        default=Policy(exposure="deferred"),
    )
    own = Policy("always", 9, frozenset({"own"}))
    assert policies.of("fs__read", own) == Policy("direct", 1, frozenset({"s"}))
    assert policies.of("fs__write", own) == Policy("direct", 2, frozenset({"s"}))
    assert policies.of("other", own) == Policy("always", 3, frozenset({"s"}))
    assert Policies(default=Policy("hidden")).of("x", Policy(timeout=0)) == Policy("hidden", 0)
    assert Policies({"x": Policy(timeout=0)}).of("x", Policy(timeout=5)).timeout == 0
    with pytest.raises(InvalidDefinition):
        Policies({" ": Policy()})
    for wrong in ({"exposure": "maybe"}, {"timeout": -1}, {"timeout": float("nan")}):
        with pytest.raises(InvalidDefinition):
            Policy(**wrong)  # type: ignore[arg-type]


def test_a_principals_attributes_stay_out_of_its_repr() -> None:
    principal = Principal("ana", attributes={"email": "ana@example.org"})
    assert "example" not in repr(principal)


# the context of a call


async def test_the_context_says_who_calls_what_and_in_which_session() -> None:
    seen: list[CallContext] = []

    @tool
    async def look(ctx: CallContext) -> str:
        seen.append(ctx)
        return ""

    async with Assembly([look]) as tools:
        session = tools.session(principal=Principal.of("ana"), id="conversation")
        await session.execute(ToolCall("c-1", "look"))
        await tools.call("look")
    first, second = seen
    assert (first.name, first.call_id, first.principal.id) == ("look", "c-1", "ana")
    assert first.session is not None
    assert first.session.id == "conversation"
    assert (second.session, second.principal.id, second.deadline) == (None, "local", None)


@pytest.mark.parametrize("threaded", [False, True])
async def test_progress_reaches_the_host(threaded: bool) -> None:
    async def asynchronous(ctx: CallContext) -> str:
        ctx.progress(1, 3, "one")
        ctx.progress(2)
        return ""

    def synchronous(ctx: CallContext) -> str:
        ctx.progress(1, 3, "one")
        ctx.progress(2)
        return ""

    told: list[Any] = []
    work = tool(name="work")(synchronous if threaded else asynchronous)
    async with Assembly([work]) as tools:
        await tools.session().execute(ToolCall("c", "work"), on_progress=told.append)
        assert not (await tools.call("work")).is_error
    assert [(p.call_id, p.current, p.total, p.message) for p in told] == [
        ("c", 1, 3, "one"),
        ("c", 2, None, ""),
    ]


async def test_a_hosts_broken_progress_handler_does_not_fail_the_tool() -> None:
    @tool
    async def work(ctx: CallContext) -> str:
        ctx.progress(1)
        return "done"

    def broken(progress: object) -> None:
        raise RuntimeError("the host's own")

    async with Assembly([work]) as tools:
        result = await tools.session().execute(ToolCall("c", "work"), on_progress=broken)
    assert outcome(result) == "done"


async def test_an_executor_works_on_a_bare_registry() -> None:
    registry = Registry()
    registry.add(Plain("t", "fine"))
    executor = Executor(registry)
    assert outcome(await executor.execute(ToolCall("1", "t"))) == "fine"
    old = registry.catalog
    registry.remove("t")
    assert outcome(await executor.execute(ToolCall("1", "t"), catalog=old)) == "not_available"
    assert outcome(await executor.execute(ToolCall("1", "t"))) == "not_found"
    executor.close()


async def test_a_changed_tool_is_what_runs_not_the_one_composed_before() -> None:
    async with Assembly([]) as tools:
        for version in ("one", "two", "three"):
            tools.registry.publish("s", [Plain("t", version)])
            assert outcome(await tools.call("t")) == version
        tools.registry.remove("t")
        tools.registry.add(Plain("t", "four"))
        assert outcome(await tools.call("t")) == "four"


async def test_a_plain_tool_gets_its_arguments_as_the_text_of_an_object() -> None:
    plain = Plain("t", schema={"type": "object", "properties": {"n": {"type": "integer"}}})
    async with Assembly([plain]) as tools:
        for sent in ('{"n": 1}', "", "null", '"{\\"n\\": 2}"', '{"n": "3"}', '{"n": 4} thanks'):
            assert not (await tools.call("t", sent)).is_error
    assert plain.got == ['{"n": 1}', "{}", "{}", '{"n":2}', '{"n":3}', '{"n":4}']


async def test_what_a_stage_says_before_the_chain_is_bounded_too() -> None:
    def parse(arguments: Any) -> Any:
        raise ToolError("x" * 200_000)

    async def execute(ctx: CallContext, arguments: Any) -> str:
        return "ran"

    made = define_tool("t", description="d", parse=parse, execute=execute)
    async with Assembly([made]) as tools:
        result = await tools.call("t")
    assert outcome(result) == "tool_error"
    assert len(result.text.encode()) <= 50_000
