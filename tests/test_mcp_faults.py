"""MC01, MC02, MC09, MC20, MC21: calls, over stdio and HTTP and in both eras, with the fault server.

Which tests cover which cells of each id (… stands for test_mcp_faults):

    MC01 crash_*, hang, hang_up, late  all            MC11 endless                 all  …_lists
    MC01 empty_stream                  http           MC12 pages                   all  …_lists
    MC02 ledger, idempotent            all            MC13 extra, lost, changed    all  …_lists
    MC03 launcher, child, SIGTERM      stdio  …_ends  MC15 401, 403 without auth   http …_http
    MC04 stubborn, child               stdio  …_ends  MC20 separators              all
    MC08 forget_session         http, legacy  …_http  MC21 steals_stdin            stdio
    MC09 two callers, two drops        all            A9.2 …_life    A9.5 …_ends, …_http
    MC10 resume                 http, legacy  …_http  A10  …_life    A11  …_results, …_lists

A9.1, A9.3 and A9.4 are about declarations and need no server (test_mcp_server,
test_deploy_settings); MC15 with a credential that can be renewed is in test_mcp_auth.
"""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest

from servers.faulty import (
    HTTP,
    MODERN,
    STDIO,
    Cell,
    cells,
    health,
    kind,
    ready,
    serving,
)
from servers.support import until
from toolcrib.policy import Policies, Policy

DEATHS = [("crash_before", 0), ("crash_during", 1), ("crash_midway", 1)]
SHORT = {"call_timeout": 0.12}


@cells()
@pytest.mark.parametrize(("fault", "done"), DEATHS)
async def test_MC01_MC02_a_death_in_mid_call_is_an_unknown_outcome_and_nothing_is_repeated(
    cell: Cell, fault: str, done: int
):
    async with serving(cell) as (faulty, host):
        faulty.misbehave(f"{fault}*1")
        began = time.monotonic()
        result = await host.call("faulty__act", key="once")
        assert time.monotonic() - began < 2.0
        assert kind(result) == "outcome_unknown"
        assert "'faulty'" in str(result)
        assert str(await host.again("faulty__act", key="back")) == "done"
        assert faulty.ledger == ["once"] * done + ["back"]
        assert len(faulty.starts) == 2


@cells()
async def test_MC01_a_death_after_the_answer_takes_nothing_from_it(cell: Cell):
    async with serving(cell) as (faulty, host):
        faulty.misbehave("crash_after*1")
        assert str(await host.call("faulty__act", key="a")) == "done"
        await until(lambda: len(faulty.starts) == 2)
        result = await host.again("faulty__act", key="b")
        # It may have been sent into the pipe of the dying; it was never done twice.
        assert kind(result) in ("ok", "outcome_unknown")
        assert faulty.ledger.count("b") <= 1


@cells()
async def test_MC01_a_connection_that_is_closed_in_place_of_the_answer(cell: Cell):
    async with serving(cell, bounds={"stop_timeout": 0.1}) as (faulty, host):
        faulty.misbehave("hang_up*1")
        assert kind(await host.call("faulty__act", key="x")) == "outcome_unknown"
        assert str(await host.again("faulty__echo", text="back")) == "back"
        assert faulty.ledger == ["x"]


@cells(HTTP)
async def test_MC01_an_event_stream_that_ends_without_an_event(cell: Cell):
    async with serving(cell) as (faulty, host):
        faulty.misbehave("empty_stream*1")
        assert kind(await host.call("faulty__act", key="x")) == "outcome_unknown"
        assert str(await host.again("faulty__echo", text="back")) == "back"
        assert faulty.ledger == ["x"]


@cells()
async def test_MC01_a_call_that_is_never_answered_ends_and_the_session_survives(cell: Cell):
    async with serving(cell, settings=SHORT) as (faulty, host):
        faulty.misbehave("hang*1")
        result = await host.call("faulty__act", key="x")
        assert kind(result) == "timeout"
        assert "'faulty'" in str(result)
        assert str(await host.call("faulty__echo", text="on")) == "on"
        assert (health(host).attempts, faulty.ledger) == (1, ["x"])
        if cell != ("http", "modern"):  # there, closing the stream is what says it
            await until(lambda: faulty.heard("notifications/cancelled"))


@cells()
async def test_MC01_calls_overtake_one_that_is_late(cell: Cell):
    async with serving(cell) as (faulty, host):
        faulty.misbehave("late=0.2*1")
        slow = asyncio.create_task(host.call("faulty__echo", text="slow"))
        await until(lambda: faulty.heard("tools/call"))
        assert str(await host.call("faulty__echo", text="fast")) == "fast"
        assert not slow.done()
        assert str(await slow) == "slow"


@cells()
async def test_MC02_a_lost_answer_is_asked_for_once_more_only_where_a_policy_allows_it(cell: Cell):
    async with serving(cell) as (faulty, host):
        host.registry.govern(Policies({"faulty__act": Policy(idempotent=True)}))
        faulty.misbehave("crash_during*1")
        assert str(await host.call("faulty__act", key="k")) == "done"
        assert faulty.ledger == ["k", "k"]
        keys = [
            e["params"]["_meta"]["toolcrib/idempotency_key"] for e in faulty.heard("tools/call")
        ]
        assert len(keys) == 2
        assert len({*keys}) == 1


@cells()
async def test_MC09_two_callers_are_served_over_two_drops(cell: Cell):
    async with serving(cell, settings={"reconnect_wait": 5.0}) as (faulty, host):
        host.registry.govern(Policies({"faulty__echo": Policy(idempotent=True)}))
        for drop in range(2):
            await faulty.restart()
            words = [f"{drop} a", f"{drop} b"]
            results = await asyncio.gather(*(host.call("faulty__echo", text=w) for w in words))
            assert [str(result) for result in results] == words
            await ready(host)
        assert len(faulty.starts) == 3
        assert health(host).attempts <= 3


@cells()
async def test_MC20_lines_are_split_at_LF_alone_and_the_text_is_whole(cell: Cell):
    text = "a\u2028b\u2029c\u0085d\u000ce\rf\u001cg\u0000h😀"
    async with serving(cell) as (_, host):
        assert str(await host.call("faulty__echo", text=text)) == text
        given = {"content": [{"type": "text", "text": text}], "structuredContent": {"t": text}}
        result = await host.call("faulty__give", result=given)
        assert (str(result), result.value) == (text, {"t": text})


@cells(STDIO)
async def test_MC21_a_child_that_reads_the_servers_input_costs_a_call_and_no_session(cell: Cell):
    async with serving(cell, settings={"call_timeout": 0.5}) as (faulty, host):
        faulty.misbehave("steals_stdin*1")
        assert kind(await host.call("faulty__echo", text="stolen")) == "timeout"
        kinds = []
        while "ok" not in kinds:  # what the child has read is lost, and it reads what comes first
            assert len(kinds) < 5
            kinds.append(kind(await host.again("faulty__echo", text="on")))
        assert set(kinds) <= {"ok", "timeout"}
        assert health(host).attempts == 1


# -- answers that are none, or too much


@cells()
async def test_an_answer_under_a_wrong_id_is_nobodys(cell: Cell):
    async with serving(cell, settings=SHORT) as (server, host):
        for id in ("other", "text", "null", "none"):
            server.misbehave(f"wrong_id={id}*1")
            wrong = await host.call("faulty__echo", text="wrong")
            assert kind(wrong) in ("timeout", "invalid_output") or str(wrong) == "wrong"
            assert str(await host.call("faulty__echo", text="right")) == "right"
        assert health(host).attempts == 1


@cells()
async def test_a_second_answer_to_one_call_harms_nobody(cell: Cell):
    async with serving(cell, "twice") as (_, host):
        results = [await host.call("faulty__echo", text=str(i)) for i in range(5)]
        assert [str(result) for result in results] == list("01234")
        assert health(host).attempts == 1


@cells()
async def test_garbage_is_skipped_on_stdout_and_fails_its_own_call_over_http(cell: Cell):
    async with serving(cell) as (faulty, host):
        faulty.misbehave("garbage*1")
        result = await host.call("faulty__echo", text="x")
        assert kind(result) == ("ok" if cell[0] == "stdio" else "invalid_output")
        assert str(await host.call("faulty__echo", text="on")) == "on"
        assert health(host).attempts == 1


@cells()
async def test_an_answer_that_cannot_be_read_fails_its_own_call_at_once(cell: Cell):
    async with serving(cell) as (faulty, host):
        faulty.misbehave("unreadable*1")
        assert kind(await host.call("faulty__echo", text="x")) == "invalid_output"
        assert str(await host.call("faulty__echo", text="on")) == "on"
        assert health(host).attempts == 1


@cells()
async def test_an_answer_of_five_million_characters_is_taken_and_cut(cell: Cell):
    async with serving(cell, "oversized=5000000*1") as (_, host):
        result = await host.call("faulty__echo", text="x")
        assert result.meta["truncation"].original_bytes == 5_000_000
        assert str(await host.call("faulty__echo", text="on")) == "on"


@cells(MODERN)
async def test_a_server_that_wants_to_ask_a_person_finds_nobody(cell: Cell):
    async with serving(cell, "input_required") as (_, host):
        assert kind(await host.call("faulty__echo", text="x")) not in ("ok", "outcome_unknown")


@cells()
async def test_a_hostile_output_schema_cannot_stop_the_loop(cell: Cell):
    async with serving(cell, "hostile_output_schema") as (_, host):
        assert host.tool("faulty__give").definition.output_schema
        evil: dict[str, Any] = {"structuredContent": {"s": "a" * 40 + "!"}, "content": []}
        began = time.monotonic()
        assert (await host.call("faulty__give", result=evil)).value == evil["structuredContent"]
        assert time.monotonic() - began < 1.0


@cells()
async def test_progress_and_logs_of_a_call_come_with_it(
    cell: Cell, caplog: pytest.LogCaptureFixture
):
    seen: list[Any] = []
    caplog.set_level("INFO", "toolcrib.tool")
    async with serving(cell) as (_, host):
        result = await host.call("faulty__progress", n=3, on_progress=seen.append)
        assert str(result) == "finished"
        assert [(p.current, p.total, p.message) for p in seen] == [
            (step, 3, f"step {step}") for step in (1, 2, 3)
        ]
        await host.call("faulty__log", text="said", level="warning")
    assert "said" in [r.getMessage() for r in caplog.records if r.name.startswith("toolcrib.tool")]
