"""A call under a time limit runs in a task of its own, and nothing in it can tell that its first
step ran at once: each scenario here is played as an ordinary task and as a tool, and must look the
same."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import subprocess
import sys
import textwrap
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest

from conftest import Plain, ended, outcome
from toolcrib import Assembly
from toolcrib.middleware import timeout

Log = list[Any]
Scenario = Callable[[Log], Awaitable[object]]

var: contextvars.ContextVar[str] = contextvars.ContextVar("var", default="unset")


async def _as_task(scenario: Scenario, log: Log) -> object:
    return await asyncio.create_task(scenario(log))  # type: ignore[arg-type]


@contextlib.asynccontextmanager
async def ready(*tools: Plain) -> AsyncIterator[Assembly]:
    """An assembly with a time limit that has served a call already: the quick path is in use."""
    async with Assembly([*tools, Plain("warm")], middlewares=[timeout(3)]) as assembly:
        for _ in range(2):
            await assembly.call("warm")
            await asyncio.sleep(0)
        yield assembly


async def _as_tool(scenario: Scenario, log: Log) -> object:
    given: list[object] = []

    async def answer(ctx: object, arguments: str) -> str:
        given.append(await scenario(log))
        return "done"

    async with ready(Plain("play", answer)) as assembly:
        result = await ended(assembly.call("play"))
    assert outcome(result) == "done", result
    return given[0]


async def same_task_throughout(log: Log) -> None:
    first = asyncio.current_task()
    await asyncio.sleep(0)
    log.append(asyncio.current_task() is first)
    await asyncio.sleep(0.001)
    log.append(asyncio.current_task() is first)
    async with asyncio.timeout(1):
        await asyncio.sleep(0)
        log.append(asyncio.current_task() is first)
    log.append(first in asyncio.all_tasks())


async def own_context(log: Log) -> None:
    log.append(var.get())
    token = var.set("mine")
    await asyncio.sleep(0)
    log.append(var.get())

    async def child() -> None:
        log.append(var.get())
        var.set("child's")

    await asyncio.create_task(child())
    log.append(var.get())
    await asyncio.sleep(0.001)
    var.reset(token)
    log.append(var.get())


async def a_timeout_in_the_first_step(log: Log) -> None:
    try:
        async with asyncio.timeout(0.005):
            await asyncio.sleep(10)
    except TimeoutError:
        log.append("timed out")
    log.append(asyncio.current_task().cancelling())  # type: ignore[union-attr]
    await asyncio.sleep(0)
    log.append("went on")


async def a_timeout_of_nothing(log: Log) -> None:
    try:
        async with asyncio.timeout(0):
            await asyncio.sleep(10)
    except TimeoutError:
        log.append("timed out")
    await asyncio.sleep(0)


async def a_timeout_later(log: Log) -> None:
    await asyncio.sleep(0)
    try:
        async with asyncio.timeout(0.005):
            await asyncio.Event().wait()
    except TimeoutError:
        log.append("timed out")


async def wait_for_in_the_first_step(log: Log) -> None:
    with contextlib.suppress(TimeoutError):
        await asyncio.wait_for(asyncio.Event().wait(), 0.005)
        log.append("no")
    log.append(await asyncio.wait_for(asyncio.sleep(0, "slept"), 1))


async def a_task_group(log: Log) -> None:
    async def child(number: int) -> None:
        await asyncio.sleep(0)
        log.append(number)

    async with asyncio.TaskGroup() as group:
        for number in range(3):
            group.create_task(child(number))
    log.append("all")


async def a_task_group_that_fails(log: Log) -> None:
    async def fail() -> None:
        raise KeyError("child")

    async def wait() -> None:
        try:
            await asyncio.sleep(10)
        except asyncio.CancelledError:
            log.append("sibling cancelled")
            raise

    try:
        async with asyncio.TaskGroup() as group:
            group.create_task(wait())
            await asyncio.sleep(0)
            group.create_task(fail())
            await asyncio.sleep(10)
    except* KeyError as group_error:
        log.append(len(group_error.exceptions))
    log.append(asyncio.current_task().cancelling())  # type: ignore[union-attr]
    await asyncio.sleep(0)


async def a_task_group_that_fails_at_once(log: Log) -> None:
    async def fail() -> None:
        raise KeyError("child")

    try:
        async with asyncio.TaskGroup() as group:
            group.create_task(fail())
    except* KeyError:
        log.append("failed")
    await asyncio.sleep(0)
    log.append("went on")


async def cancels_itself_and_catches_it(log: Log) -> None:
    task = asyncio.current_task()
    assert task is not None
    task.cancel("why")
    log.append(task.cancelling())
    try:
        await asyncio.sleep(10)
    except asyncio.CancelledError as error:
        log.append(str(error))
        task.uncancel()
    log.append(task.cancelling())
    await asyncio.sleep(0)
    log.append("went on")


async def cancels_itself_later_and_catches_it(log: Log) -> None:
    await asyncio.sleep(0)
    await cancels_itself_and_catches_it(log)


async def exceptions_pass_both_ways(log: Log) -> None:
    failed = asyncio.get_running_loop().create_future()
    failed.set_exception(ValueError("set before"))
    with contextlib.suppress(ValueError):
        await failed
        log.append("no")
    later = asyncio.get_running_loop().create_future()
    asyncio.get_running_loop().call_soon(later.set_exception, LookupError("set later"))
    try:
        await later
    except LookupError as error:
        log.append(str(error))


async def results_that_are_there_already(log: Log) -> None:
    done = asyncio.get_running_loop().create_future()
    done.set_result(1)
    log.append(await done)
    log.append(await asyncio.gather(asyncio.sleep(0, 2), asyncio.sleep(0.001, 3)))


async def locks_queues_and_conditions(log: Log) -> None:
    lock, queue, condition = asyncio.Lock(), asyncio.Queue[int](1), asyncio.Condition()
    await lock.acquire()

    async def other() -> None:
        async with lock:
            for number in range(3):
                await queue.put(number)
        async with condition:
            condition.notify_all()

    task = asyncio.create_task(other())
    await asyncio.sleep(0)
    lock.release()
    log.extend([await queue.get() for _ in range(3)])
    async with condition:
        if not task.done():
            await asyncio.wait_for(condition.wait(), 1)
    await task


async def async_generators_and_finally(log: Log) -> None:
    @contextlib.asynccontextmanager
    async def scope() -> AsyncIterator[str]:
        log.append("in")
        try:
            await asyncio.sleep(0)
            yield "value"
        finally:
            await asyncio.sleep(0)
            log.append("out")

    async def count() -> AsyncIterator[int]:
        for number in range(3):
            await asyncio.sleep(0)
            yield number

    async with scope() as value:
        log.append(value)
        async for number in count():
            log.append(number)


async def threads_and_executors(log: Log) -> None:
    var.set("seen in the thread")
    log.append(await asyncio.to_thread(var.get))
    log.append(await asyncio.get_running_loop().run_in_executor(None, lambda: "executor"))


async def shields_what_it_waits_for(log: Log) -> None:
    inner = asyncio.create_task(asyncio.sleep(0.005, "inner"))
    try:
        async with asyncio.timeout(0.001):
            await asyncio.shield(inner)
    except TimeoutError:
        log.append("timed out")
    log.append(await inner)


async def _gathers_a_child(log: Log, limit: float) -> None:
    ended_as = asyncio.get_running_loop().create_future()

    async def child() -> None:
        try:
            await asyncio.sleep(0.05)
            ended_as.set_result("ran on")
        except asyncio.CancelledError:
            ended_as.set_result("cancelled")
            raise

    children = asyncio.ensure_future(child())
    await asyncio.sleep(0) if limit else None
    try:
        async with asyncio.timeout(limit):
            await asyncio.gather(children)
    except TimeoutError:
        log.append("timed out")
    if not children.cancelled() or ended_as.done():
        log.append(await asyncio.wait_for(ended_as, 1))
    else:
        log.append("cancelled")


async def what_it_waits_for_is_cancelled_too(log: Log) -> None:
    await _gathers_a_child(log, 0.005)


async def what_it_waits_for_in_its_first_step_is_cancelled_too(log: Log) -> None:
    await _gathers_a_child(log, 0)


SCENARIOS: list[Any] = [
    same_task_throughout,
    own_context,
    a_timeout_in_the_first_step,
    a_timeout_of_nothing,
    a_timeout_later,
    wait_for_in_the_first_step,
    a_task_group,
    a_task_group_that_fails,
    a_task_group_that_fails_at_once,
    cancels_itself_and_catches_it,
    cancels_itself_later_and_catches_it,
    exceptions_pass_both_ways,
    results_that_are_there_already,
    locks_queues_and_conditions,
    async_generators_and_finally,
    threads_and_executors,
    shields_what_it_waits_for,
    what_it_waits_for_is_cancelled_too,
    what_it_waits_for_in_its_first_step_is_cancelled_too,
]


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda s: s.__name__)
async def test_inside_a_call_asyncio_behaves_as_in_a_task_of_its_own(scenario: Scenario) -> None:
    var.set("the caller's")
    expected: Log = []
    found: Log = []
    await _as_task(scenario, expected)
    await _as_tool(scenario, found)
    assert expected, "the scenario shows nothing"
    assert found == expected
    assert var.get() == "the caller's"


async def test_a_call_sees_its_callers_context_and_changes_nothing_in_it() -> None:
    seen: list[str] = []

    async def answer(ctx: object, arguments: str) -> str:
        seen.append(var.get())
        var.set("the tool's")
        if len(seen) % 2:
            await asyncio.sleep(0)
        seen.append(var.get())
        return ""

    async with ready(Plain("look", answer)) as assembly:
        for at in range(4):
            var.set(f"caller {at}")
            await assembly.call("look")
            assert var.get() == f"caller {at}"
    assert seen == [text for at in range(4) for text in (f"caller {at}", "the tool's")]


async def test_many_calls_at_once_keep_their_contexts_tasks_and_results_apart() -> None:
    tasks: set[object] = set()

    async def answer(ctx: Any, arguments: str) -> str:
        var.set(ctx.call_id)
        tasks.add(asyncio.current_task())
        for step in range(3):
            await asyncio.sleep(0.001 * (step % 2))
            assert var.get() == ctx.call_id
        return str(ctx.call_id)

    async with ready(Plain("many", answer)) as assembly:
        results = await ended(asyncio.gather(*(assembly.call("many") for _ in range(200))))
    assert [result.text for result in results] == [result.call_id for result in results]
    assert len({result.call_id for result in results}) == 200
    assert len(tasks) == 200


async def test_the_callers_task_is_current_again_after_a_call_whatever_came_of_it() -> None:
    async def fail(ctx: object, arguments: str) -> str:
        raise RuntimeError

    async def wait(ctx: object, arguments: str) -> str:
        await asyncio.sleep(0)
        return ""

    async with ready(Plain("fail", fail), Plain("wait", wait), Plain("quick")) as assembly:
        me = asyncio.current_task()
        for name in ("quick", "fail", "wait", "quick"):
            await assembly.call(name)
            assert asyncio.current_task() is me
            assert me is not None
            assert me.cancelling() == 0


@pytest.mark.parametrize("waits", [False, True])
async def test_keyboard_interrupt_and_memory_error_leave_a_call_and_the_next_one_works(
    waits: bool,
) -> None:
    async def exhaust(ctx: object, arguments: str) -> str:
        if waits:
            await asyncio.sleep(0)
        raise MemoryError

    async with ready(Plain("exhaust", exhaust)) as assembly:
        with pytest.raises(MemoryError):
            await assembly.call("exhaust")
        assert outcome(await ended(assembly.call("warm"))) == ""


async def test_a_cancelled_caller_ends_its_call_and_waits_for_its_cleanup() -> None:
    begun, log = asyncio.Event(), list[str]()

    async def answer(ctx: object, arguments: str) -> str:
        begun.set()
        try:
            await asyncio.sleep(60)
        finally:
            await asyncio.sleep(0)
            log.append("cleaned up")
        return ""

    async with ready(Plain("long", answer)) as assembly:
        caller = asyncio.create_task(assembly.call("long"))
        await ended(begun.wait())
        caller.cancel()
        await asyncio.wait((caller,), timeout=2)
        assert caller.cancelled()
        assert log == ["cleaned up"]
        assert outcome(await ended(assembly.call("warm"))) == ""


async def test_a_caller_cancelled_before_its_call_waited_cancels_it() -> None:
    log: list[str] = []

    async def answer(ctx: object, arguments: str) -> str:
        asyncio.get_running_loop().call_soon(caller.cancel)
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            log.append("cancelled")
            raise
        return ""

    async with ready(Plain("long", answer)) as assembly:
        caller = asyncio.create_task(assembly.call("long"))
        await asyncio.wait((caller,), timeout=2)
        assert caller.cancelled()
        assert log == ["cancelled"]


@pytest.mark.parametrize("depth", [1, 2, 5])
async def test_a_call_nested_in_the_first_step_of_another_ends(depth: int) -> None:
    assembly: Assembly

    async def answer(ctx: object, arguments: str) -> str:
        below = int(arguments.partition(":")[2].strip(" }"))
        if not below:
            await asyncio.sleep(0.001)
            return "bottom"
        return (await assembly.call("nest", n=below - 1)).text

    nest = Plain(
        "nest", answer, schema={"type": "object", "properties": {"n": {"type": "integer"}}}
    )
    async with ready(nest) as assembly:
        assert outcome(await ended(assembly.call("nest", n=depth), 1.5)) == "bottom"


async def test_nested_calls_at_once_end() -> None:
    assembly: Assembly

    async def leaf(ctx: object, arguments: str) -> str:
        await asyncio.sleep(0.001)
        return "leaf"

    async def fan(ctx: object, arguments: str) -> str:
        results = await asyncio.gather(*(assembly.call("leaf") for _ in range(5)))
        first = await assembly.call("leaf")
        return ",".join(r.text for r in [*results, first])

    async def chain(ctx: object, arguments: str) -> str:
        return (await assembly.call("fan")).text

    async with ready(Plain("leaf", leaf), Plain("fan", fan), Plain("chain", chain)) as assembly:
        assert outcome(await ended(assembly.call("chain"), 1.5)) == ",".join(["leaf"] * 6)


async def test_a_nested_call_that_need_not_wait_ends() -> None:
    assembly: Assembly

    async def outer(ctx: object, arguments: str) -> str:
        first = (await assembly.call("warm")).is_error
        await asyncio.sleep(0)
        return f"{first} {(await assembly.call('warm')).is_error}"

    async with ready(Plain("outer", outer)) as assembly:
        assert outcome(await ended(assembly.call("outer"))) == "False False"


async def test_a_finished_calls_task_is_not_the_task_of_a_later_call() -> None:
    tasks: list[asyncio.Task[Any]] = []

    async def quick(ctx: object, arguments: str) -> str:
        tasks.append(asyncio.current_task())  # type: ignore[arg-type]
        return ""

    async def slow(ctx: object, arguments: str) -> str:
        tasks.append(asyncio.current_task())  # type: ignore[arg-type]
        await asyncio.sleep(0)
        return ""

    async with ready(Plain("quick", quick), Plain("slow", slow)) as assembly:
        await assembly.call("quick")
        await assembly.call("slow")
    assert tasks[0] is not tasks[1]


async def test_two_assemblies_on_one_loop_do_not_disturb_each_other() -> None:
    async def wait(ctx: object, arguments: str) -> str:
        await asyncio.sleep(0.001)
        return "waited"

    async with ready(Plain("wait", wait)) as one:
        async with ready(Plain("wait", wait)) as two:
            both = await ended(asyncio.gather(one.call("wait"), two.call("wait")))
            running = asyncio.create_task(one.call("wait"))
            await asyncio.sleep(0)
        assert [outcome(result) for result in (*both, await ended(running))] == ["waited"] * 3
        assert outcome(await ended(one.call("wait"))) == "waited"


async def test_after_close_no_task_is_left() -> None:
    before = asyncio.all_tasks()
    async with ready(Plain("quick")) as assembly:
        await assembly.call("quick")
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert asyncio.all_tasks() == before


SCRIPT = textwrap.dedent(
    """
    import asyncio, gc, warnings
    from toolcrib import Assembly, tool
    from toolcrib.middleware import timeout

    @tool
    async def quick() -> int:
        return asyncio.current_task().cancelling()

    @tool
    async def waits() -> str:
        me = asyncio.current_task()
        async with asyncio.timeout(1), asyncio.TaskGroup() as group:
            group.create_task(asyncio.sleep(0))
        await asyncio.sleep(0)
        return str(asyncio.current_task() is me)

    @tool
    async def late() -> None:
        await asyncio.sleep(60)

    @tool
    async def fails() -> None:
        await asyncio.sleep(0)
        raise RuntimeError("secret")

    @tool
    async def cancels() -> None:
        asyncio.current_task().cancel()
        await asyncio.sleep(1)

    async def main() -> None:
        kinds = []
        async with Assembly([quick, waits, late, fails, cancels], middlewares=[timeout(0.05)]) as t:
            for name in ("quick", "quick", "waits", "waits", "late", "fails", "cancels", "quick"):
                result = await t.call(name)
                kinds.append(result.failure.kind if result.failure else result.text)
            kinds += [r.text for r in await asyncio.gather(*(t.call("waits") for _ in range(20)))]
        print(*kinds)

    for _ in range(2):
        asyncio.run(main())
    gc.collect()
    """
)


@pytest.mark.parametrize("flags", [["-X", "dev"], ["-W", "error"], ["-O"]], ids=" ".join)
def test_nothing_is_complained_about_in_any_mode_of_python(flags: list[str]) -> None:
    run = subprocess.run(
        [sys.executable, *flags, "-c", SCRIPT],
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    line = "0 0 True True timeout internal cancelled 0 " + " ".join(["True"] * 20)
    assert run.stdout.splitlines() == [line, line], run.stderr
    complaints = [
        text
        for text in run.stderr.splitlines()
        if "Warning" in text or "was destroyed" in text or "never retrieved" in text
    ]
    assert complaints == []
    assert run.returncode == 0
