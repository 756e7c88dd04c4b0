"""Lazy tools, budgets, resuming and replaying under what nobody plans for: cancellation, removal
and replacement in the middle, tools that turn out to be others than they said, thousands of
sessions."""

from __future__ import annotations

import asyncio
import gc
import json
import threading
import tracemalloc
import weakref
from typing import Any

import pytest

from conftest import Closing, Plain, Sized, ended, outcome
from conversing import SEARCH, Loads, reasons, search, searching, some, told
from servers.support import BOUND, until
from toolcrib import (
    Assembly,
    Budget,
    CallContext,
    Denied,
    Discovery,
    Dynamic,
    InvalidArguments,
    InvalidDefinition,
    LazyTool,
    Policy,
    Principal,
    Session,
    Tool,
    ToolCall,
    ToolLimits,
)
from toolcrib.loop import Recovery, ScriptedModel, run
from toolcrib.providers.history import Answers, Assistant, Message, User
from toolcrib.replay import replayed

ADMIN = frozenset({"admin"})


def with_policy(tool: Plain, **said: Any) -> Plain:
    tool.policy = Policy(**said)  # type: ignore[attr-defined]
    return tool


def lazy(tool: Plain, description: str = "common later") -> LazyTool:
    return LazyTool(tool.definition.name, description, load=Loads(tool))


# what a session sends after it was resumed


async def test_A5_11_TS06_resumed_between_a_search_and_the_next_round_the_promise_is_kept() -> None:
    dynamic = Dynamic(budget=Budget(max_definitions=2), discovery=Discovery(max_tools=5))
    async with Assembly(some("first", "second"), dynamic=dynamic) as tools:
        session = tools.session()
        await search(session, "first", 1)
        assert (await search(session, "second", 1))["exposed"] == ["second"]
        resumed = tools.resume(json.loads(json.dumps(session.state())))
        assert session.turn().round().names == (SEARCH, "second")
        assert resumed.turn().round().names == (SEARCH, "second")


# transcripts


async def test_TS06_a_batch_of_searches_beyond_the_turns_limit_has_aged_the_pool_in_a_replay() -> (
    None
):
    dynamic = Dynamic(discovery=Discovery(idle_rounds=1))
    limits = ToolLimits(searches=1)
    async with Assembly(some("first", "second"), dynamic=dynamic, limits=limits) as tools:
        session = tools.session()
        turn, messages = session.turn(), list[Message]()
        for at in range(4):
            calls = (searching("first", 1, f"s{at}"),)
            results = await turn.round().execute(calls)
            messages += [Assistant(calls=calls), Answers(tuple(results))]
        assert session.view.pool.rounds == 4
        assert tools.resume_from(messages).state() == session.state()


async def test_TS06_two_searches_of_one_batch_under_max_admitted_replay_to_the_same_state() -> None:
    tools_ = [Sized("aa_big", 900), Sized("bb_small", 100)]
    dynamic = Dynamic(discovery=Discovery(max_bytes=300, max_admitted=1))
    async with Assembly(tools_, dynamic=dynamic) as tools:
        session = tools.session()
        calls = (searching("aa_big bb_small", 2, "one"), searching("bb_small", 1, "two"))
        results = await session.turn().round().execute(calls)
        assert [hit["name"] for hit in told(results[0])["hits"]] == ["aa_big", "bb_small"]
        assert session.view.admitted == 1
        messages: list[Message] = [Assistant(calls=calls), Answers(tuple(results))]
        assert tools.resume_from(messages).state() == session.state()


async def test_T_C2_a_call_id_used_twice_in_a_batch_replays_to_the_same_state() -> None:
    async with Assembly(some("first", "second"), dynamic=Dynamic()) as tools:
        session = tools.session()
        calls = (searching("first", 1), searching("second", 1))
        results = await session.turn().round().execute(calls)
        messages: list[Message] = [Assistant(calls=calls), Answers(tuple(results))]
        assert tools.resume_from(messages).state() == session.state()


async def test_T_A9_a_call_whose_load_failed_replays_as_one_that_never_ran() -> None:
    async def fails() -> Any:
        raise OSError("down")

    tools_ = [LazyTool("later", "common", load=fails)]
    async with Assembly(tools_, dynamic=Dynamic()) as tools:
        session = tools.session()
        session.require("later")
        begin = session.view
        call = ToolCall("c", "later")
        (result,) = await session.turn().round().execute([call])
        assert outcome(result) == "not_available"
        assert not session.view.pool.tools, "it never ran"
        messages: list[Message] = [Assistant(calls=(call,)), Answers((result,))]
        assert tools.dynamic is not None
        view = replayed(messages, tools.catalog, tools.dynamic, session.principal, begin)
        assert set(view.pool.tools) == set(session.view.pool.tools)


@pytest.mark.parametrize("error", [InvalidArguments("who?"), Denied("not today")], ids=repr)
async def test_A3_2_a_call_that_ran_and_failed_replays_as_a_use_whatever_it_raised(
    error: Exception,
) -> None:
    async def fails(ctx: CallContext, arguments: str) -> str:
        raise error

    tool = Plain("strict", fails, description="common")
    async with Assembly([tool, *some("other")], dynamic=Dynamic()) as tools:
        session, messages = tools.session(), list[Message]()
        turn = session.turn()
        for calls in ((searching("common"),), (ToolCall("c", "strict"),)):
            results = await turn.round().execute(calls)
            messages += [Assistant(calls=calls), Answers(tuple(results))]
        assert session.view.pool.tools["strict"].last_use == 2, "it ran"
        assert tools.resume_from(messages).state() == session.state()


@pytest.mark.parametrize(
    "wrong",
    [{"tools": {"first": [9, 1, 0]}}, {"tools": {"first": [0, 9, 0]}}, {"held_since": 9}],
    ids=str,
)
async def test_T_A19_a_state_with_uses_and_touches_later_than_its_own_count_is_refused(
    wrong: dict[str, Any],
) -> None:
    async with Assembly(some("first"), dynamic=Dynamic()) as tools:
        session = tools.session()
        session.discover("first")
        with pytest.raises(InvalidDefinition):
            tools.resume({**session.state(), **wrong})


async def test_A5_9_a_query_of_a_megabyte_does_not_push_the_hits_out_of_the_answer() -> None:
    async with Assembly(some("first", "second"), dynamic=Dynamic()) as tools:
        session, messages = tools.session(), list[Message]()
        calls = (searching("common " * 150_000),)
        results = await session.turn().round().execute(calls)
        assert "first" in results[0].text
        messages += [Assistant(calls=calls), Answers(tuple(results))]
        assert told(results[0])["exposed"] == ["first", "second"]
        assert tools.resume_from(messages).state() == session.state()


# lazy tools that turn out to be others


async def test_A4_3_a_lazy_tool_that_turns_out_to_need_a_scope_does_not_run_without_it() -> None:
    real = with_policy(Plain("vault", "gold"), scopes=ADMIN)
    async with Assembly([lazy(real)], principal=Principal("nobody")) as tools:
        first = await tools.call("vault")
        assert outcome(await tools.call("vault")) == "not_found", "as later calls say"
        assert (outcome(first), real.got) == ("not_found", [])


@pytest.mark.parametrize("said", [{"scopes": ADMIN}, {"exposure": "hidden"}], ids=str)
async def test_A4_2_a_lazy_tool_that_turns_out_hidden_or_forbidden_is_no_hit(said: Any) -> None:
    real = with_policy(Plain("vault", description="Where the gold lies"), **said)
    async with Assembly([lazy(real)], dynamic=Dynamic(), principal=Principal("x")) as tools:
        session = tools.session()
        answer = await search(session, "later")
        assert "vault" not in session.turn().round().names
        assert answer["hits"] == [], "its real description is nobody's business here"


async def test_A5_8_a_lazy_tool_that_turns_out_always_is_exposed_and_not_pooled() -> None:
    real = with_policy(Plain("clock", "noon"), exposure="always")
    async with Assembly([lazy(real), *some("other")], dynamic=Dynamic()) as tools:
        one, two = tools.session(), tools.session()
        assert (await search(one, "later"))["exposed"] == ["clock"]
        assert not one.view.pool.tools
        for session, names in ((one, (SEARCH, "clock")), (two, ("clock", SEARCH))):
            now = session.turn().round()
            assert now.names == names, "appended where a round was sent before"
            (result,) = await now.execute([ToolCall("c", "clock")])
            assert outcome(result) == "noon"


# removal, replacement and closing in the middle


async def test_A1_4_a_removed_lazy_tool_is_not_run_by_a_round_that_knew_its_placeholder() -> None:
    closed: list[str] = []
    real = Closing("later", closed, "ran")
    async with Assembly([lazy(real)]) as tools:
        now = tools.session().turn().round()
        (first,) = await now.execute([ToolCall("a", "later")])
        assert outcome(first) == "ran"
        tools.registry.remove("later")
        await tools.registry.closer.drain()
        assert closed == ["later"]
        (second,) = await now.execute([ToolCall("b", "later")])
        assert outcome(second) == "not_available"
        assert len(real.got) == 1, "a closed tool does not run"


@pytest.mark.parametrize("what", ["remove", "replace"])
async def test_A5_8_a_lazy_tool_withdrawn_while_its_load_runs_is_not_exposed_as_it_was(
    what: str,
) -> None:
    held = Loads(Plain("later", "old one"), held=True)
    tools_: list[Tool] = [LazyTool("later", "common later", load=held), *some("other")]
    async with Assembly([], dynamic=Dynamic()) as tools:
        for tool in tools_:
            tools.registry.add(tool)
        session = tools.session()
        running = asyncio.create_task(search(session, "common"))
        await ended(held.begun.wait())
        if what == "remove":
            tools.registry.remove("later")
        else:
            tools.registry.replace(Plain("later", "new one", description="another"))
        answer = await ended(running)
        now = session.turn().round()
        assert answer["exposed"] == ["other"]
        assert set(now.names) == {SEARCH, "other"}
        assert "later" not in session.view.pool.tools
        again = await search(session, "later")
        assert again.get("exposed", []) == ([] if what == "remove" else ["later"])
        if what == "replace":
            assert str(await session.call("later")) == "new one"
        assert not held.is_done


async def test_C20_a_search_cancelled_while_it_loads_changes_nothing_and_the_load_goes_on() -> None:
    held = Loads(Plain("later", "ran", description="common now"), held=True)
    tools_: list[Tool] = [LazyTool("later", "common later", load=held), *some("other")]
    async with Assembly(tools_, dynamic=Dynamic(discovery=Discovery(max_admitted=1))) as tools:
        session = tools.session()
        turn = session.turn()
        now = turn.round()
        running = asyncio.create_task(now.execute([searching("common")]))
        await ended(held.begun.wait())
        before = session.state()
        running.cancel()
        await asyncio.wait((running,), timeout=5)
        assert running.cancelled()
        assert session.state() == before
        assert (before["rounds"], before["tools"], before["admitted"]) == (1, {}, 0)
        held.goes_on.set()
        assert "later" in (await search(session, "later"))["exposed"]
        assert turn.round().report().used.searches == 1


async def test_C20_a_search_cancelled_with_a_load_failed_already_loses_no_exception() -> None:
    there = set[asyncio.Task[Any]]()

    async def fails() -> Any:
        there.update(asyncio.all_tasks())
        raise OSError("down")

    lost: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: lost.append(context))
    held = Loads(None, held=True)
    tools_ = [LazyTool("one", "common", load=fails), LazyTool("two", "common", load=held)]
    async with Assembly(tools_, dynamic=Dynamic()) as tools:
        running = asyncio.create_task(search(tools.session(), "common"))
        async with asyncio.timeout(BOUND):  # `ended` would be one more task
            await held.begun.wait()
        await until(lambda: sum(task.done() for task in there) == 2)  # the load, and who waited
        there.clear()
        running.cancel()
        await asyncio.wait((running,), timeout=5)
        del running
        gc.collect()
        assert lost == []


async def test_A1_5_closing_while_a_search_loads_ends_the_search_and_leaves_nothing() -> None:
    held = Loads(Plain("later"), held=True)
    tools = Assembly([LazyTool("later", "common", load=held)], dynamic=Dynamic())
    await tools.open()
    session = tools.session()
    running = asyncio.create_task(search(session, "common"))
    await ended(held.begun.wait())
    await ended(tools.close())
    answer = await ended(running)
    assert answer.get("exposed", []) == []
    assert not session.view.pool.tools
    left = asyncio.all_tasks() - {asyncio.current_task()}
    assert not left


class ClosingLater(Plain):
    """Has an async close; the one below has another kind, which fails."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.closed = threading.Event()

    async def aclose(self) -> None:
        self.closed.set()


class FailingToClose(Plain):
    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.closed = threading.Event()

    def close(self) -> None:
        self.closed.set()
        raise OSError("it is stuck")


@pytest.mark.parametrize("kind", [ClosingLater, FailingToClose])
async def test_A1_5_what_a_thread_loads_after_the_withdrawal_is_closed(
    kind: type[ClosingLater] | type[FailingToClose], caplog: pytest.LogCaptureFixture
) -> None:
    begun, goes_on = asyncio.Event(), threading.Event()
    loop, late = asyncio.get_running_loop(), kind("later")

    def load() -> Any:
        loop.call_soon_threadsafe(begun.set)
        goes_on.wait(5)
        return late

    async with Assembly([LazyTool("later", load=load)]) as tools:
        running = asyncio.create_task(tools.call("later"))
        await ended(begun.wait())
        tools.registry.remove("later")
        assert outcome(await ended(running)) == "not_available"
        goes_on.set()
        assert await ended(asyncio.to_thread(late.closed.wait, 5))
        if kind is FailingToClose:
            await until(lambda: "which came too late, failed" in caplog.text)


async def test_A5_8_a_load_that_a_search_has_no_patience_for_goes_on_all_the_same() -> None:
    dynamic = Dynamic(discovery=Discovery(load_timeout=0))
    loads = Loads(Plain("later", "ran"), held=True)
    later = LazyTool("later", "common later", load=loads)
    async with Assembly([later], dynamic=dynamic) as tools:
        session = tools.session()
        assert reasons(await search(session, "later")) == {"later": "load_failed"}
        loads.goes_on.set()
        await ended(later.load())
        assert (await search(session, "later"))["exposed"] == ["later"]
        assert loads.count == 1


async def test_A5_4_loads_that_hang_do_not_keep_the_others_from_being_loaded() -> None:
    stuck = [LazyTool(f"stuck_{at}", "never", load=Loads(None, held=True)) for at in range(16)]
    good = lazy(Plain("good", description="Painting of fences"), "nothing yet")
    dynamic = Dynamic(search_with_load=True, discovery=Discovery(load_timeout=0.02))
    async with Assembly([*stuck, good], dynamic=dynamic) as tools:
        session = tools.session()
        async with asyncio.timeout(BOUND):
            while "exposed" not in (answer := await search(session, "painting fences")):
                pass
        assert answer["exposed"] == ["good"]


# hidden is hidden


async def test_A4_2_a_pooled_tool_that_became_hidden_leaves_the_view() -> None:
    async with Assembly([], dynamic=Dynamic()) as tools:
        tools.registry.add(Plain("dark"))
        session = tools.session()
        session.discover("dark")
        assert "dark" in session.turn().round().names
        tools.registry.replace(with_policy(Plain("dark"), exposure="hidden"))
        assert "dark" not in session.turn().round().names


async def test_A4_2_a_saved_state_brings_no_hidden_tool_into_view() -> None:
    async with Assembly(some("dark"), dynamic=Dynamic()) as before:
        session = before.session()
        session.discover("dark")
        state = session.state()
    async with Assembly(some("dark"), dynamic=Dynamic(exposures={"dark": "hidden"})) as after:
        assert after.resume(state).turn().round().names == (SEARCH,)


async def test_A4_2_a_saved_state_brings_no_forbidden_tool_into_view() -> None:
    async with Assembly(some("vault"), dynamic=Dynamic()) as before:
        session = before.session()
        session.discover("vault")
        session.require("vault")
        state = session.state()
    async with Assembly(
        some("vault"),
        dynamic=Dynamic(),
        policies={"vault": Policy(scopes=ADMIN)},
        principal=Principal("nobody"),
    ) as after:
        assert after.resume(state).turn().round().names == (SEARCH,)


# leaving


async def test_A6_4_under_pressure_nobody_leaves_for_a_tool_that_does_not_come_in() -> None:
    dynamic = Dynamic(discovery=Discovery(max_tools=4, max_bytes=1000, evict="pressure"))
    async with Assembly([], dynamic=dynamic) as tools:
        for name in ("first", "second", "third", "grows"):
            tools.registry.add(Sized(name, 100))
        session = tools.session()
        session.discover("first", "second", "third", "grows")
        tools.registry.replace(Sized("grows", 2000))
        assert dict(session.discover("grows").failed) == {"grows": "over_budget"}
        assert set(session.view.pool.tools) == {"first", "second", "third"}


# reports


async def test_a_report_names_as_waiting_only_what_would_be_sent_if_there_were_room() -> None:
    async with Assembly(some("first", "second"), dynamic=Dynamic()) as tools:
        session = tools.session()
        session.discover("first", "second")
        tools.registry.remove("first")
        report = session.turn().round().report()
        assert (report.added, report.waiting) == ((SEARCH, "second"), ())


# the loop


async def test_A8_4_where_nothing_can_be_searched_the_feedback_does_not_say_so() -> None:
    calling = Assistant(calls=(ToolCall("c", "unknown"),))
    model = ScriptedModel(calling, "Then not.")
    async with Assembly(some("first")) as tools:
        await run(tools.session(), model, [User.of("Do it.")], recovery=Recovery())
    feedback = model.requests[1][0][-1]
    assert isinstance(feedback, User)
    assert "'unknown'" in str(feedback.content)
    assert SEARCH not in str(feedback.content)


# many of them, for long


@pytest.mark.parametrize("count", [200, pytest.param(10_000, marks=pytest.mark.soak)])
async def test_a_session_that_found_and_sent_five_tools_costs_at_most_5_KB(
    count: int, capsys: pytest.CaptureFixture[str]
) -> None:
    dynamic = Dynamic(discovery=Discovery(max_tools=8))
    names = [f"tool_{at}" for at in range(40)]
    async with Assembly(some(*names), dynamic=dynamic) as tools:
        call = searching("common", 5)

        async def one() -> Session:
            session = tools.session()
            now = session.turn().round()
            await session.execute(call, catalog=now.catalog)
            assert len(session.turn().round().names) == 6
            return session

        kept = [await one() for _ in range(50)]  # what is made once for all of them
        gc.collect()
        tracemalloc.start()
        before, _ = tracemalloc.get_traced_memory()
        kept = [await one() for _ in range(count)]
        gc.collect()
        after, _ = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        each = (after - before) / len(kept)
        with capsys.disabled():
            print(f"\n{each:.0f} bytes for each of {count} sessions that sent 5 tools they found")
        assert each <= 5 * 1024


async def test_a_session_keeps_no_old_catalogue_alive_over_a_thousand_revisions() -> None:
    async with Assembly(some("first", "second"), dynamic=Dynamic()) as tools:
        session = tools.session()
        turn = session.turn()
        old: list[weakref.ref[Any]] = []
        for at in range(1000):
            tools.registry.add(Plain(f"other_{at % 7}_{at}", description="common"))
            if at >= 7:
                tools.registry.remove(f"other_{(at - 7) % 7}_{at - 7}")
            if at % 50 == 0:
                await turn.round().execute([searching("common", 3)])
            turn.round()
            old.append(weakref.ref(tools.catalog))
        gc.collect()
        alive = sum(one() is not None for one in old)
        assert alive <= 2, f"{alive} of {len(old)} catalogues are alive"


async def test_a_replaced_tool_is_kept_by_nobody() -> None:
    async with Assembly([], dynamic=Dynamic()) as tools:
        session = tools.session()
        tools.registry.add(Plain("tool_one", "ran"))
        await session.call("tool_one")
        before = tools.catalog.get("tool_one")
        assert before is not None
        kept = weakref.ref(before.tool)
        del before
        tools.registry.replace(Plain("tool_one", "ran anew"))
        session.turn().round()
        gc.collect()
        assert kept() is None
