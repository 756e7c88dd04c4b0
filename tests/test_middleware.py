"""The chain round a call: what stands where, what a user's own middleware may do, deadlines, slots
and time-outs (A2, A12)."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest

from conftest import Plain, ended, outcome
from toolcrib import (
    Assembly,
    CallContext,
    InvalidDefinition,
    Policy,
    ToolCall,
    ToolResult,
    tool,
)
from toolcrib.middleware import (
    ResultLimitSettings,
    Settings,
    concurrency,
    recover,
    result_limit,
    standard,
    timeout,
)


def marking(name: str, log: list[str]) -> Any:
    async def mark(invocation: Any, call_next: Any) -> ToolResult:
        log.append(f"{name}:before")
        result = await call_next(invocation)
        log.append(f"{name}:after")
        return result  # type: ignore[no-any-return]

    return mark


async def test_A2_3_the_first_middleware_is_outermost() -> None:
    log: list[str] = []
    chain = [marking("outer", log), marking("inner", log)]
    async with Assembly([Plain("t")], middlewares=chain) as assembly:
        chain.clear()
        await assembly.call("t")
    assert log == ["outer:before", "inner:before", "inner:after", "outer:after"]


async def dry_run(invocation: Any, call_next: Any) -> ToolResult:
    if not invocation.tool.annotations.read_only:
        return invocation.answer(f"dry run: {invocation.name} was not called")  # type: ignore[no-any-return]
    return await call_next(invocation)  # type: ignore[no-any-return]


async def test_a_middleware_is_one_function_that_may_answer_itself() -> None:
    ran: list[str] = []

    @tool(effects="read")
    async def look() -> str:
        ran.append("look")
        return "seen"

    @tool(effects="destructive")
    async def drop() -> str:
        ran.append("drop")
        return "gone"

    async with Assembly([look, drop], middlewares=[dry_run]) as assembly:
        assert outcome(await assembly.call("look")) == "seen"
        result = await assembly.call("drop")
    assert (result.is_error, result.text) == (False, "dry run: drop was not called")
    assert result.call_id == "call-2"
    assert ran == ["look"]


async def test_a_middleware_sees_the_prepared_call_and_cannot_change_it() -> None:
    seen: list[Any] = []

    async def look(invocation: Any, call_next: Any) -> ToolResult:
        seen.append(invocation)
        with pytest.raises(TypeError):
            invocation.arguments["a"] = 99
        with pytest.raises(AttributeError):
            invocation.prepared = {"a": 99}
        return await call_next(invocation)  # type: ignore[no-any-return]

    @tool(timeout=7)
    async def add(a: int, b: int = 2) -> int:
        return a + b

    async with Assembly([add], middlewares=[look]) as assembly:
        session = assembly.session()
        assert outcome(await session.call("add", '{"a": 1}')) == "3"
    (invocation,) = seen
    assert invocation.name == "add"
    assert dict(invocation.arguments) == {"a": 1}
    assert invocation.policy.timeout == 7
    assert invocation.principal.id == "local"
    assert invocation.session is session
    assert invocation.tool.input_schema["required"] == ["a"]


async def test_refused_calls_never_reach_the_chain() -> None:
    log: list[str] = []

    @tool
    async def add(a: int) -> int:
        return a

    @tool(scopes={"x"})
    async def hidden() -> str:
        return ""

    async with Assembly([add, hidden], middlewares=[marking("m", log)]) as assembly:
        for name, arguments in (("add", "{}"), ("hidden", "{}"), ("nowhere", "{}"), ("add", "[")):
            assert (await assembly.call(name, arguments)).is_error
        counts = assembly.executor.counts
    assert log == []
    assert counts == {"invalid_arguments": 2, "not_found": 2}


async def test_A12_1_recover_contains_the_faults_of_middlewares_and_siblings_go_on() -> None:
    async def broken(invocation: Any, call_next: Any) -> ToolResult:
        if invocation.name == "bad":
            raise RuntimeError("a secret of the middleware")
        return await call_next(invocation)  # type: ignore[no-any-return]

    async with Assembly(
        [Plain("bad"), Plain("good", "fine")], middlewares=[recover, broken]
    ) as assembly:
        turn = assembly.session().turn()
        calls = [ToolCall("1", "good"), ToolCall("2", "bad"), ToolCall("3", "good")]
        results = await turn.round().execute(calls)
    assert [outcome(r) for r in results] == ["fine", "internal", "fine"]
    assert "secret" not in results[1].text
    assert "'bad'" in results[1].text


async def test_without_recover_a_middlewares_fault_is_raised_and_the_next_call_works() -> None:
    async def broken(invocation: Any, call_next: Any) -> ToolResult:
        raise LookupError("mine")

    async with Assembly([Plain("t")], middlewares=[broken]) as assembly:
        with pytest.raises(LookupError):
            await assembly.call("t")
        assert outcome(await assembly.call("nowhere")) == "not_found"


async def test_the_standard_order_is_recover_telemetry_result_limit_concurrency_timeout() -> None:
    full = standard(Settings(True, True, ResultLimitSettings(10), 1.0, 2))
    named = [getattr(m, "__qualname__", type(m).__name__).split(".")[0] for m in full]
    assert named == ["recover", "Telemetry", "result_limit", "concurrency", "timeout"]
    assert standard(Settings(result_part_budget_bytes=0)) == ()
    assert len(standard(Settings())) == 1, "parts are bounded even without result_limit (A12.5)"
    assert len(standard(Settings(timeout=0, concurrency=0, result_part_budget_bytes=0))) == 0
    assert len(standard(Settings(timeout=-1, concurrency=-1, result_part_budget_bytes=0))) == 0


def test_A12_7_a_limit_below_one_is_refused() -> None:
    for limit in (0, -1):
        with pytest.raises(InvalidDefinition):
            concurrency(limit)


# time-outs


async def test_A12_6_the_tools_own_time_out_beats_the_default() -> None:
    async def slow(ctx: object, arguments: str) -> str:
        await asyncio.sleep(0.08)
        return "done"

    policies = {"patient": Policy(timeout=5), "exempt": Policy(timeout=0), "hasty": Policy(timeout=0.02)}  # fmt: skip  # noqa: E501
    async with Assembly(
        [Plain(name, slow) for name in ("default", "patient", "exempt", "hasty")],
        middlewares=[timeout(0.04)],
        policies=policies,
    ) as assembly:
        names = ("default", "patient", "exempt", "hasty")
        results = await asyncio.gather(*(assembly.call(name) for name in names))
    assert [outcome(r) for r in results] == ["timeout", "done", "done", "timeout"]
    assert "after 0.04s" in results[0].text
    assert "after 0.02s" in results[3].text


@pytest.mark.parametrize("default", [0, -1.5])
async def test_A12_6_nothing_and_less_never_times_out(default: float) -> None:
    async with Assembly([Plain("t", "x")], middlewares=[timeout(default)]) as assembly:
        assert outcome(await assembly.call("t")) == "x"


async def test_a_call_with_a_deadline_passes_the_time_out_through() -> None:
    async def slow(ctx: object, arguments: str) -> str:
        await asyncio.sleep(0.06)
        return "done"

    async with Assembly([Plain("slow", slow)], middlewares=[timeout(0.02)]) as assembly:
        session = assembly.session()
        call = ToolCall("1", "slow")
        late = await session.execute(call, deadline=time.monotonic() + 5)
        assert outcome(late) == "done"
        assert outcome(await session.execute(call)) == "timeout"
        began = time.perf_counter()
        soon = await session.execute(call, deadline=time.monotonic() + 0.03)
        assert outcome(soon) == "timeout"
        assert time.perf_counter() - began < 0.06
        passed = await session.execute(call, deadline=time.monotonic() - 1)
        assert outcome(passed) == "timeout"
        assert "was not run" in passed.text


async def test_a_deadline_further_off_does_not_lift_the_tools_own_time_out() -> None:
    @tool(timeout=0.03)
    async def slow() -> str:
        await asyncio.sleep(0.3)
        return "done"

    async with Assembly([slow]) as assembly:
        result = await assembly.session().execute(
            ToolCall("1", "slow"), deadline=time.monotonic() + 10
        )
    assert outcome(result) == "timeout"


async def test_a_nested_call_inherits_the_deadline_and_never_outlives_its_parent() -> None:
    assembly: Assembly
    deadlines: list[float | None] = []

    @tool
    async def leaf(ctx: CallContext) -> str:
        deadlines.append(ctx.deadline)
        await asyncio.sleep(0)
        return "leaf"

    @tool
    async def parent(ctx: CallContext) -> str:
        deadlines.append(ctx.deadline)
        await asyncio.sleep(0)
        return (await assembly.call("leaf")).text

    @tool
    def sync_parent(ctx: CallContext) -> str:
        deadlines.append(ctx.deadline)
        return assembly.call_sync("leaf").text

    async with Assembly([leaf, parent, sync_parent]) as assembly:
        session, deadline = assembly.session(), time.monotonic() + 5
        for name in ("parent", "sync_parent"):
            result = await ended(session.execute(ToolCall("1", name), deadline=deadline))
            assert outcome(result) == "leaf"
        assert outcome(await assembly.call("leaf")) == "leaf"
    assert deadlines[:4] == [pytest.approx(deadline, abs=0.01)] * 4
    assert deadlines[4] is None, "a deadline ends with its call"


async def test_the_time_a_time_out_allows_a_parent_is_its_childrens_deadline() -> None:
    assembly: Assembly
    left: list[float] = []

    @tool
    async def leaf(ctx: CallContext) -> str:
        assert ctx.deadline is not None
        left.append(ctx.deadline - time.monotonic())
        return "leaf"

    @tool(timeout=3)
    async def parent() -> str:
        await asyncio.sleep(0)
        return (await assembly.call("leaf")).text

    async with Assembly([leaf, parent], middlewares=[timeout(60)]) as assembly:
        assert outcome(await ended(assembly.call("parent"))) == "leaf"
    assert 2 < left[0] <= 3


async def test_a_value_that_arrived_in_time_is_a_success() -> None:
    """T-A16: even when the loop was too busy to look before the limit."""

    async def busy(ctx: object, arguments: str) -> str:
        await asyncio.sleep(0)
        time.sleep(0.05)  # noqa: ASYNC251
        return "in time"

    async with Assembly([Plain("busy", busy)], middlewares=[timeout(0.03)]) as assembly:
        for _ in range(3):
            assert outcome(await ended(assembly.call("busy"))) == "in time"


async def test_a_tool_that_ends_well_while_being_cancelled_has_timed_out() -> None:
    async def late(ctx: object, arguments: str) -> str:
        try:
            await asyncio.sleep(5)
        except asyncio.CancelledError:
            return "too late"
        return "never"

    async with Assembly([Plain("late", late)], middlewares=[timeout(0.02)]) as assembly:
        result = await ended(assembly.call("late"))
    assert outcome(result) == "timeout"
    assert "still be running" not in result.text


async def test_many_calls_under_one_limit_end_each_at_its_own_time() -> None:
    async def slow(ctx: object, arguments: str) -> str:
        await asyncio.sleep(5)
        return ""

    async with Assembly([Plain("slow", slow), Plain("quick", "q")], middlewares=[timeout(0.05)]) as a:  # fmt: skip  # noqa: E501

        async def one(at: int) -> float:
            await asyncio.sleep(at * 0.004)
            began = time.perf_counter()
            assert outcome(await a.call("slow")) == "timeout"
            assert outcome(await a.call("quick")) == "q"
            return time.perf_counter() - began

        took = await ended(asyncio.gather(*(one(at) for at in range(20))))
    assert all(0.045 <= seconds <= 0.09 for seconds in took), took


def test_a_middleware_works_on_the_next_loop_too() -> None:
    async def nap(ctx: object, arguments: str) -> str:
        await asyncio.sleep(0.001)
        return "rested"

    async def hang(ctx: object, arguments: str) -> str:
        await asyncio.sleep(1)
        return "hung"

    chain = [timeout(0.1)]

    async def run(name: str) -> str:
        async with Assembly([Plain("nap", nap), Plain("hang", hang)], middlewares=chain) as one:
            return outcome(await one.call(name))

    assert asyncio.run(run("nap")) == "rested"
    assert asyncio.run(run("hang")) == "timeout"


# slots


class Gauge:
    """How many calls ran at once, at most."""

    def __init__(self) -> None:
        self.now = self.most = 0

    async def __call__(self, ctx: object, arguments: str) -> str:
        self.now += 1
        self.most = max(self.most, self.now)
        await asyncio.sleep(0.001)
        self.now -= 1
        return "ran"


async def test_A12_7_at_most_so_many_run_at_once_and_the_rest_wait() -> None:
    gauge = Gauge()
    async with Assembly([Plain("t", gauge)], middlewares=[concurrency(3)]) as assembly:
        results = await ended(asyncio.gather(*(assembly.call("t") for _ in range(40))))
    assert {outcome(r) for r in results} == {"ran"}
    assert gauge.most == 3


async def test_waiting_for_a_slot_does_not_count_as_the_tools_time() -> None:
    """T-A16."""

    async def nap(ctx: object, arguments: str) -> str:
        await asyncio.sleep(0.03)
        return "rested"

    chain = standard(Settings(timeout=0.1, concurrency=1))
    async with Assembly([Plain("nap", nap)], middlewares=chain) as assembly:
        results = await ended(asyncio.gather(*(assembly.call("nap") for _ in range(8))))
    assert {outcome(r) for r in results} == {"rested"}


async def test_a_call_whose_deadline_passes_while_it_waits_is_limited_and_leaks_no_slot() -> None:
    go = asyncio.Event()

    async def hold(ctx: object, arguments: str) -> str:
        await go.wait()
        return "held"

    async with Assembly([Plain("hold", hold)], middlewares=[concurrency(1)]) as assembly:
        first = asyncio.create_task(assembly.call("hold"))
        await asyncio.sleep(0)
        session = assembly.session()
        late = await ended(session.execute(ToolCall("1", "hold"), deadline=time.monotonic() + 0.02))
        assert outcome(late) == "limited"
        assert "slot" in late.text
        waiting = asyncio.create_task(assembly.call("hold"))
        await asyncio.sleep(0)
        waiting.cancel()
        await asyncio.wait((waiting,), timeout=1)
        assert waiting.cancelled()
        go.set()
        assert outcome(await ended(first)) == "held"
        assert outcome(await ended(assembly.call("hold"))) == "held"


async def test_a_failed_call_gives_its_slot_back() -> None:
    async def fail(ctx: object, arguments: str) -> str:
        raise RuntimeError

    async with Assembly(
        [Plain("fail", fail), Plain("ok", "fine")], middlewares=[concurrency(1)]
    ) as assembly:
        for _ in range(5):
            assert outcome(await ended(assembly.call("fail"))) == "internal"
        assert outcome(await ended(assembly.call("ok"))) == "fine"


@pytest.mark.parametrize("from_thread", [False, True])
async def test_a_nested_call_runs_on_its_parents_slot(from_thread: bool) -> None:
    assembly: Assembly

    @tool
    async def leaf(n: int) -> str:
        return "leaf" if not n else (await assembly.call("leaf", n=n - 1)).text

    @tool
    def branch() -> str:
        return assembly.call_sync("leaf", n=3).text

    async with Assembly([leaf, branch], middlewares=[concurrency(1)]) as assembly:
        work = assembly.call("branch") if from_thread else assembly.call("leaf", n=3)
        assert outcome(await ended(work)) == "leaf"


async def test_a_nested_call_runs_on_its_parents_slots_where_two_limits_stand() -> None:
    assembly: Assembly

    @tool
    async def leaf() -> str:
        return "leaf"

    @tool
    async def branch() -> str:
        return (await assembly.call("leaf")).text

    async with Assembly([leaf, branch], middlewares=[concurrency(1), concurrency(1)]) as assembly:
        assert outcome(await ended(assembly.call("branch"), 0.5)) == "leaf"


async def test_a_call_that_comes_back_by_another_assembly_does_not_wait_for_itself() -> None:
    one: Assembly
    two: Assembly

    @tool
    async def leaf() -> str:
        return "leaf"

    @tool
    async def there() -> str:
        return (await two.call("back")).text

    @tool
    async def back() -> str:
        return (await one.call("leaf")).text

    async with (
        Assembly([leaf, there], middlewares=[concurrency(1)]) as one,
        Assembly([back], middlewares=[concurrency(1)]) as two,
    ):
        assert outcome(await ended(one.call("there"), 0.5)) == "leaf"


def test_a_limit_works_on_the_next_loop_too() -> None:
    chain = [concurrency(1)]

    async def run() -> set[str]:
        async with Assembly([Plain("t", Gauge())], middlewares=chain) as assembly:
            return {
                outcome(result)
                for result in await asyncio.gather(*(assembly.call("t") for _ in range(3)))
            }

    assert asyncio.run(run()) == {"ran"}
    assert asyncio.run(run()) == {"ran"}


async def test_a_task_left_behind_by_a_call_does_not_pass_the_limit() -> None:
    assembly: Assembly
    gauge, left = Gauge(), list[asyncio.Task[Any]]()
    over = asyncio.Event()

    async def later() -> None:
        await over.wait()
        await asyncio.gather(*(assembly.call("leaf") for _ in range(4)))

    async def spawn(ctx: object, arguments: str) -> str:
        left.append(asyncio.create_task(later()))
        return ""

    async with Assembly(
        [Plain("leaf", gauge), Plain("spawn", spawn)], middlewares=[concurrency(1)]
    ) as assembly:
        await assembly.call("spawn")
        over.set()
        await ended(left[0])
    assert gauge.most == 1


async def test_error_texts_are_limited_too() -> None:
    async def fail(ctx: object, arguments: str) -> str:
        from toolcrib import ToolError

        raise ToolError("e" * 500)

    async with Assembly([Plain("fail", fail)], middlewares=[result_limit(100)]) as assembly:
        result = await assembly.call("fail")
    assert outcome(result) == "tool_error"
    assert sum(len(part.text) for part in result.content) == 100  # type: ignore[union-attr]
    assert result.text.startswith("eee")
    assert "truncated" in result.text
