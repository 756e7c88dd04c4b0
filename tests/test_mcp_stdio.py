"""MCP servers over stdio, as real processes: the raw server by flag, and one of the SDK."""

from __future__ import annotations

import asyncio
import gc
import json
import logging
import os
import signal
import subprocess
import sys
import time
import uuid
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from servers.support import (
    BOUND,
    RAW,
    Host,
    alive,
    children,
    descriptors,
    hosting,
    raw,
    source,
    until,
    with_token,
)
from toolcrib.content import DataPart, ImagePart, TextPart
from toolcrib.errors import ConfigurationError, NotAvailable, NotReady
from toolcrib.function import tool
from toolcrib.sources.contract import Source
from toolcrib.sources.mcp import McpServer
from toolcrib.sources.mcp.wire.process import ServerProcess

ERAS = ["legacy", "modern"]


@pytest.fixture(autouse=True)
def no_child_is_left() -> Iterator[None]:
    before = children()
    yield
    assert children() <= before


def kill(process: int) -> None:
    os.kill(process, signal.SIGKILL)


# -- what comes through


@pytest.mark.parametrize("era", ERAS)
async def test_A10_8_a_server_is_published_called_and_closed(era: str):
    mcp = source(raw(era=era))
    assert isinstance(mcp, Source)
    async with hosting(mcp) as host:
        assert "raw__echo" in host.names
        assert str(await host.call("raw__echo", text="hello \u2028 😀")) == "hello \u2028 😀"
        health = host.health()
        assert (health.state, health.attempts, health.tools) == ("ready", 1, len(host.names))
        assert health.era == ("2026-07-28" if era == "modern" else "2025-11-25")
        process = await host.pid()
    assert not alive(process)
    assert host.health().state == "closed"


@pytest.mark.parametrize("era", ERAS)
async def test_RS05_RS06_errors_and_values_come_through(era: str):
    async with hosting(source(raw(era=era))) as host:
        failed = await host.call("raw__fail")
        assert failed.failure
        assert (failed.failure.kind, str(failed)) == ("tool_error", "no such row")
        both = await host.call("raw__fail_structured")
        assert both.failure
        assert (str(both), both.value) == ("db down", {"answer": 42})
        fine = await host.call("raw__both")
        assert (str(fine), fine.value) == ("forty-two", {"answer": 42})
        refused = await host.call("raw__error")
        assert refused.failure
        assert (refused.failure.kind, str(refused)) == ("tool_error", "no such thing")


@pytest.mark.parametrize("era", ERAS)
async def test_A11_6_MC20_content_comes_through_typed_and_whole(era: str):
    async with hosting(source(raw(era=era))) as host:
        assert (await host.call("raw__image")).content == (
            ImagePart(b"\x89PNG-bytes", "image/png"),
        )
        mixed = await host.call("raw__mixed")
        assert mixed.content == (
            DataPart({"type": "hologram", "x": 1}),
            TextPart("\u2028ok\x85"),
        )
        assert str(await host.call("raw__sloppy")) == "[1,2]"
        big = await host.call("raw__big", n=3_000_000)
        assert big.meta["truncation"].original_bytes == 3_000_000  # cut later, by its format


async def test_an_answer_that_cannot_be_read_fails_that_call_at_once():
    async with hosting(source()) as host:
        result = await host.call("raw__unreadable")
        assert result.failure
        assert result.failure.kind == "invalid_output"
        assert str(await host.call("raw__echo", text="on")) == "on"


async def test_a_server_that_wants_to_ask_a_person_is_refused_politely():
    async with hosting(source(raw(era="modern"))) as host:
        result = await host.call("raw__ask")
        assert result.failure
        assert result.failure.kind == "tool_error"
        assert "nobody is there to ask" in str(result)


@pytest.mark.parametrize("era", ERAS)
async def test_progress_goes_to_the_call_context(era: str):
    seen: list[Any] = []
    async with hosting(source(raw(era=era))) as host:
        assert str(await host.call("raw__progress", on_progress=seen.append)) == "finished"
        await until(lambda: len(seen) == 2)
    assert [(p.current, p.total, p.message) for p in seen] == [(1, 2, "step 1"), (2, 2, "step 2")]


@pytest.mark.parametrize("era", ERAS)
async def test_cancelling_a_call_reaches_the_server_and_leaves_the_link_alive(era: str):
    async with hosting(source(raw(era=era))) as host:
        process = await host.pid()
        begun = asyncio.Event()
        call = asyncio.create_task(host.call("raw__hang", on_progress=lambda p: begun.set()))
        async with asyncio.timeout(BOUND):
            await begun.wait()
            call.cancel()
            with pytest.raises(asyncio.CancelledError):
                await call
        notes = json.loads(str(await host.call("raw__notes")))
        assert [n["method"] for n in notes][-1] == "notifications/cancelled"
        assert await host.pid() == process
        assert host.health().attempts == 1


async def test_calls_run_side_by_side_in_their_own_tasks():
    async with hosting(source()) as host:
        results = await asyncio.gather(*(host.call("raw__echo", text=str(i)) for i in range(50)))
        assert [str(result) for result in results] == [str(i) for i in range(50)]


@pytest.mark.parametrize("number", [2**53 + 1, 1917043659912705297, 10**60 + 1, -(10**30)])
async def test_AR14_integers_of_any_size_stay_exact_both_ways(number: int):
    async with hosting(source()) as host:
        assert (await host.call("raw__number", n=number)).value == {"n": number}


# -- what is listed


async def test_MC12_T_A11_all_pages_are_read():
    more = json.dumps([{"name": f"t{i}"} for i in range(45)])
    async with hosting(source(raw(tools=more, per_page=10))) as host:
        assert {f"raw__t{i}" for i in range(45)} <= set(host.names)


@pytest.mark.parametrize("cursor", ["same", "empty", "pair"])
async def test_MC11_an_endless_listing_ends_with_a_warning_and_no_duplicates(
    cursor: str, caplog: pytest.LogCaptureFixture
):
    async with hosting(source(raw(cursor=cursor))) as host:
        assert host.names.count("raw__echo") == 1
        assert host.health().state == "ready"
    assert any("does not come to an end" in record.message for record in caplog.records)


async def test_a_bad_schema_is_rejected_with_reason_and_logged_once(
    caplog: pytest.LogCaptureFixture,
):
    bad = {"name": "bad", "inputSchema": {"type": "object", "properties": {"a": {"type": "no"}}}}
    async with hosting(source(raw(tools=json.dumps([bad])))) as host:
        assert "raw__bad" not in host.names
        assert "raw__echo" in host.names
        assert [(r.server, r.tool) for r in host.source.rejected] == [("raw", "bad")]
        await host.killed()
    assert sum("'bad' is left out" in record.message for record in caplog.records) == 1


async def test_T_A12_a_republished_list_keeps_what_did_not_change(tmp_path: Path):
    listing = tmp_path / "tools.json"
    listing.write_text(json.dumps([{"name": "a"}, {"name": "b"}, {"name": "gone"}]))
    async with hosting(source(raw(tools=f"@{listing}"))) as host:
        a, b, echo = (host.tool(f"raw__{name}") for name in ("a", "b", "echo"))
        revision = host.registry.catalog.revision
        listing.write_text(json.dumps([{"name": "a", "description": "new"}, {"name": "b"}]))
        await host.killed()
        assert host.tool("raw__b") is b
        assert host.tool("raw__echo") is echo
        assert host.tool("raw__a") is not a
        assert host.tool("raw__a").definition.description == "new"
        assert "raw__gone" not in host.names
        assert host.registry.catalog.revision == revision + 1
        await host.killed()
        assert host.registry.catalog.revision == revision + 1  # nothing changed, no revision


async def test_A10_9_a_listing_that_fails_keeps_what_was_published(tmp_path: Path):
    starts = tmp_path / "starts"
    async with hosting(source(raw(starts=starts, tools="@" + str(tmp_path / "t")))) as host:
        assert host.health().state == "degraded"  # no such file: the server dies while listing
        (tmp_path / "t").write_text('[{"name": "x"}]')
        await host.ready()
        assert "raw__x" in host.names
        (tmp_path / "t").unlink()
        kill(await host.pid())
        before = len(starts.read_text().splitlines())
        await until(lambda: len(starts.read_text().splitlines()) > before + 1)
        assert "raw__x" in host.names


async def test_T_A21_two_servers_share_a_source_and_neither_waits_for_the_other():
    servers = [raw("b"), raw("a", declared={"prefix": ""}), McpServer("c", "stdio", command="/no")]
    async with hosting(source(*servers)) as host:
        assert {"b__echo", "echo"} <= set(host.names)
        *sound, down = (h.state for h in host.source.health())
        assert sound == ["ready", "ready"]
        assert down in ("degraded", "open")
        assert str(await host.call("echo", text="a")) == "a"
        await host.killed("b")
        assert str(await host.call("echo", text="still")) == "still"  # A10.8: others unaffected
        found = host.registry.catalog.find("a/echo")
        assert found is not None


async def test_A1_2_a_conflict_fails_the_opening_and_names_both():
    mcp = source(raw(declared={"prefix": ""}))
    host = Host(mcp)

    @tool
    def echo() -> str:
        """Mine."""
        return ""

    host.registry.add(echo, "mine")
    try:
        with pytest.raises(ConfigurationError, match=r"'raw'.*'echo'.*'mine'"):
            await mcp.open(host.publish)
        assert host.health().state == "given_up"
        assert host.names == ["echo"]
    finally:
        await mcp.close()
        host.executor.close()


# -- dying and coming back (issue 2, must-show 4)


@pytest.mark.parametrize("era", ERAS)
async def test_MC02_killed_in_mid_call_the_outcome_is_unknown_and_nothing_is_repeated(
    era: str, tmp_path: Path
):
    ledger = tmp_path / "ledger"
    async with hosting(source(raw(era=era, ledger=ledger))) as host:
        result = await host.call("raw__act_and_die")
        assert result.failure
        assert result.failure.kind == "outcome_unknown"
        assert "'raw'" in str(result)
        await host.ready()
        assert str(await host.again("raw__echo", text="back")) == "back"
    assert ledger.read_text() == "act_and_die\n"


@pytest.mark.parametrize("era", ERAS)
async def test_MC01_sigkill_in_mid_call_ends_every_waiting_call_at_once(era: str):
    async with hosting(source(raw(era=era))) as host:
        process = await host.pid()
        begun = asyncio.Event()
        calls = [
            asyncio.create_task(host.call("raw__hang", on_progress=lambda p: begun.set()))
            for _ in range(3)
        ]
        async with asyncio.timeout(BOUND):
            await begun.wait()
        await host.call("raw__echo", text="all three were sent before this")
        killed = time.monotonic()
        kill(process)
        results = await asyncio.gather(*calls)
        assert time.monotonic() - killed < 1.0
        assert [r.failure.kind for r in results if r.failure] == ["outcome_unknown"] * 3
        assert await host.pid() != process


@pytest.mark.parametrize("era", ERAS)
async def test_A10_8_sigkill_while_idle_is_noticed_and_mended_without_a_call(era: str):
    quiet = {"declared": {"liveness": 0.0}}  # no probe: only the closure itself tells
    async with hosting(source(raw(era=era, **quiet))) as host:
        process = await host.pid()
        await host.killed()
        assert await host.pid() != process


async def test_A10_8_between_death_and_return_calls_are_not_available():
    mcp = source(first_backoff=60.0, max_backoff=60.0)
    async with hosting(mcp) as host:
        kill(await host.pid())
        await until(lambda: host.health().state == "degraded")
        result = await host.call("raw__echo", text="x")
        assert result.failure
        assert result.failure.kind == "not_available"
        assert "'raw'" in str(result)
        await until(lambda: "SIGKILL" in host.health().reason)
        assert "raw__echo" in host.names


async def test_MS4_fifty_deaths_leave_no_process_and_no_descriptor(tmp_path: Path):
    token = uuid.uuid4().hex
    async with hosting(source(raw(token=token))) as host:
        await host.call("raw__echo", text="warm")
        before, tasks = descriptors(), len(asyncio.all_tasks())
        for cycle in range(50):
            process = await host.pid()
            if cycle % 2:
                begun = asyncio.Event()
                call = asyncio.create_task(
                    host.call("raw__hang", on_progress=lambda p, begun=begun: begun.set())
                )
                async with asyncio.timeout(BOUND):
                    await begun.wait()
                kill(process)
                result = await call
                assert result.failure
                assert result.failure.kind == "outcome_unknown"
            else:
                kill(process)
            await until(lambda cycle=cycle: host.health().attempts == cycle + 2)
            assert str(await host.again("raw__echo", text=str(cycle))) == str(cycle)
            assert not alive(process)
        await host.ready()
        after = descriptors()
        print(f"\n50 cycles: descriptors {before} -> {after}, ours {len(with_token(token))}")
        assert after <= before
        assert len(with_token(token)) == 1
        assert len(asyncio.all_tasks()) <= tasks
        assert host.health().attempts == 51
    assert with_token(token) == []


async def test_MS4_a_server_of_the_sdk_killed_in_mid_call_and_while_idle():
    server = McpServer(
        "time", "stdio", command=sys.executable, args=("-m", "mcp_server_time"), liveness=0.0
    )
    async with hosting(source(server)) as host:
        result = await host.call("time__get_current_time", timezone="UTC")
        assert result.value["timezone"] == "UTC"
        before = descriptors()
        (process,) = children()
        os.kill(process, signal.SIGSTOP)  # so that the call is surely under way when it dies
        call = asyncio.create_task(host.call("time__get_current_time", timezone="UTC"))
        done, _ = await asyncio.wait((call,), timeout=0.05)
        assert not done
        kill(process)
        result = await call
        assert result.failure
        assert result.failure.kind == "outcome_unknown"
        assert not (await host.again("time__get_current_time", timezone="UTC")).is_error
        (process,) = children()
        kill(process)
        await until(lambda: host.health("time").attempts == 3)
        await host.ready("time")
        failed = await host.call("time__get_current_time", timezone="Nowhere")
        assert failed.failure
        assert failed.failure.kind == "tool_error"
        assert descriptors() <= before


async def test_a_server_that_closes_its_input_is_replaced():
    async with hosting(source(stop_timeout=0.1)) as host:
        assert str(await host.call("raw__deaf")) == "goodbye"
        kinds = set()
        while host.health().attempts == 1:  # each call ends; the bound of `call` sees to that
            result = await host.call("raw__echo", text="x")
            kinds.add(result.failure.kind if result.failure else "ok")
        assert kinds <= {"not_available", "outcome_unknown"}
        assert str(await host.again("raw__echo", text="back")) == "back"


async def test_MC09_under_many_callers_and_kills_every_call_ends_as_one_of_three():
    names = [f"s{i}" for i in range(4)]
    kinds: Counter[str] = Counter()
    stop = asyncio.Event()

    async def caller(number: int) -> None:
        while not stop.is_set():
            result = await host.call(f"{names[number % 4]}__echo", text=str(number))
            kinds[result.failure.kind if result.failure else "ok"] += 1
            if result.failure:
                await asyncio.sleep(0.005)
            else:
                assert str(result) == str(number)

    servers = [raw(name, era=ERAS[i % 2]) for i, name in enumerate(names)]
    async with hosting(source(*servers)) as host:
        before = descriptors()
        async with asyncio.TaskGroup() as tasks:
            for number in range(16):
                tasks.create_task(caller(number))
            for turn in range(40):
                await host.killed(names[turn % 4])
            stop.set()
        assert set(kinds) <= {"ok", "not_available", "outcome_unknown"}
        assert kinds["ok"] > kinds["outcome_unknown"]
        assert descriptors() <= before
        assert len(children()) == len(names)


async def test_a_message_beyond_the_limit_ends_the_connection_and_not_the_memory(
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setattr("toolcrib.sources.mcp.wire.process.MAX_LINE", 300_000)
    async with hosting(source(first_backoff=60.0, max_backoff=60.0)) as host:
        big = await host.call("raw__big", n=200_000)
        assert big.meta["truncation"].original_bytes == 200_000
        result = await host.call("raw__big", n=3_000_000)
        assert result.failure
        assert result.failure.kind == "outcome_unknown"
        await until(lambda: "more than 300000 bytes" in host.health().reason)


# -- starting


async def test_A10_3_a_command_that_is_missing_is_tried_again_not_raised():
    async with hosting(source(McpServer("x", "stdio", command="no-such-command"))) as host:
        health = host.health("x")
        assert health.state == "degraded"
        assert "no-such-command" in health.reason
        await until(lambda: host.health("x").attempts >= 3)


async def test_A10_3_a_server_that_exits_at_start_says_why():
    server = McpServer("x", "stdio", command="/bin/sh", args=("-c", "echo no license >&2; exit 7"))
    async with hosting(source(server)) as host:
        health = host.health("x")
        assert health.reason == "its process exited with status 7"
        assert health.stderr == "no license\n"


async def test_A10_3_an_unsupported_protocol_version_fails_the_opening():
    mcp = source(raw(version="1999-01-01"))
    host = Host(mcp)
    with pytest.raises(ConfigurationError, match=r"'raw'.*1999-01-01"):
        await mcp.open(host.publish)
    assert host.health().state == "given_up"
    await mcp.close()


async def test_A10_1_T_A8d_a_hung_server_is_bounded_and_closing_does_not_wait_for_it():
    mcp = source(raw(start="hang"), connect_timeout=60.0)
    host = Host(mcp)
    opening = asyncio.create_task(mcp.open(host.publish))
    await until(lambda: len(children()) == 1)
    async with asyncio.timeout(BOUND):
        await mcp.close()
        await opening
    assert host.health().state == "closed"


async def test_a_list_that_never_comes_is_a_failed_attempt():
    async with hosting(source(raw(list="hang"), list_timeout=0.1)) as host:
        assert host.health().state == "degraded"
        assert "in time" in host.health().reason


async def test_a_silent_legacy_server_costs_the_probe_once(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("mcp.client.session.DISCOVER_TIMEOUT_SECONDS", 0.3)
    async with hosting(source(raw(era="silent"))) as host:
        assert host.health().era == "2025-11-25"
        began = time.monotonic()
        await host.killed()
        assert time.monotonic() - began < 0.3


async def test_T_A8e_SB06_the_environment_is_an_allow_list_plus_what_was_declared(
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setenv("OPENAI_API_KEY", "sentinel")
    monkeypatch.setenv("LANG", "C.UTF-8")
    async with hosting(source(raw(declared={"env": {"MINE": "yes"}}))) as host:
        seen = json.loads(str(await host.call("raw__env")))
        assert (seen["MINE"], seen["LANG"]) == ("yes", "C.UTF-8")
        assert "PATH" in seen
        assert "OPENAI_API_KEY" not in seen


async def test_garbage_on_stdout_and_a_flood_on_stderr_do_no_harm(
    caplog: pytest.LogCaptureFixture,
):
    caplog.set_level(logging.INFO)
    async with hosting(source(raw(banner=1, stderr=1_000_000))) as host:
        assert str(await host.call("raw__echo", text="fine")) == "fine"
        kill(await host.pid())
        await until(lambda: host.health().stderr)
        kept = host.health().stderr
        assert len(kept) <= 64 * 1024
        assert "last line of stderr" in kept
        assert "first line of stderr" not in kept
        assert "Welcome to the raw server" in kept
    assert not any("stderr" in record.message for record in caplog.records)


async def test_wait_ready_waits_for_the_required_alone(tmp_path: Path):
    listing = tmp_path / "tools.json"
    slow = raw("slow", declared={"required": True}, tools=f"@{listing}")
    async with hosting(source(slow, raw("other"))) as host:
        with pytest.raises(NotReady, match="'slow'"):
            await host.source.wait_ready(0.05)
        listing.write_text("[]")
        await host.source.wait_ready(BOUND)
        assert host.health("slow").state == "ready"
    with pytest.raises(NotAvailable):
        await host.source.open(host.publish)


async def test_A10_4_wait_ready_without_required_servers_returns_at_once():
    async with hosting(source(McpServer("x", "stdio", command="/no"))) as host:
        await host.source.wait_ready(0.0)


async def test_A10_4_wait_ready_says_what_was_given_up():
    mcp = source(raw(version="1999", declared={"required": True}))
    host = Host(mcp)
    with pytest.raises(ConfigurationError):
        await mcp.open(host.publish)
    with pytest.raises(ConfigurationError, match="1999"):
        await mcp.wait_ready(BOUND)
    await mcp.close()


async def test_A10_4_closing_wakes_who_waits():
    mcp = source(McpServer("x", "stdio", command="/no", required=True))
    host = Host(mcp)
    await mcp.open(host.publish)
    waiting = asyncio.create_task(mcp.wait_ready())
    await asyncio.sleep(0)
    await mcp.close()
    async with asyncio.timeout(BOUND):
        with pytest.raises(NotAvailable):
            await waiting


# -- ending


async def test_MC04_a_server_that_ignores_eof_and_sigterm_is_killed():
    async with hosting(source(raw(stubborn=1), stop_timeout=0.1)) as host:
        process = await host.pid()
        began = time.monotonic()
        await host.source.close()
        assert time.monotonic() - began < 2.0
        assert not alive(process)


async def test_MC03_sigterm_comes_before_sigkill(tmp_path: Path):
    noted = tmp_path / "noted"
    async with hosting(source(raw(polite=noted), stop_timeout=0.3)) as host:
        await host.call("raw__echo", text="x")
    assert noted.read_text() == "terminated\n"


async def test_T_A8f_a_closing_that_meets_a_starting_process_ends_it(
    monkeypatch: pytest.MonkeyPatch,
):
    original, started, go = ServerProcess.start, asyncio.Event(), asyncio.Event()

    async def slow(server: McpServer) -> ServerProcess:
        process = await original(server)
        started.set()
        await go.wait()
        return process

    monkeypatch.setattr(ServerProcess, "start", slow)
    mcp = source()
    opening = asyncio.create_task(mcp.open(Host(mcp).publish))
    async with asyncio.timeout(BOUND):
        await started.wait()
        closing = asyncio.create_task(mcp.close())
        await asyncio.sleep(0)
        go.set()
        await asyncio.gather(opening, closing)
    assert mcp.health()[0].state == "closed"


async def test_MC03_the_children_of_a_launcher_end_with_it():
    token = uuid.uuid4().hex
    line = f"exec 3<&0; {sys.executable} -S -I {RAW} token={token} <&3 & wait"
    server = McpServer("raw", "stdio", command="/bin/sh", args=("-c", line))
    async with hosting(source(server)) as host:
        assert len(with_token(token)) == 2
        await host.call("raw__echo", text="x")
        (launcher,) = children()
        kill(launcher)  # the real server lives on, with the pipes
        await until(lambda: host.health().attempts == 2)
        await host.ready()
        assert len(with_token(token)) == 2
    await until(lambda: not with_token(token))


async def test_MC03_a_forgotten_child_of_the_server_is_ended_too(tmp_path: Path):
    pids = tmp_path / "pids"
    async with hosting(source(raw(child="same", pids=pids), stop_timeout=0.2)) as host:
        await host.call("raw__echo", text="x")
        child = int(pids.read_text())
        assert alive(child)
    await until(lambda: not alive(child))


async def test_MC04_a_child_that_keeps_the_pipes_cannot_hold_a_call_or_the_closing(tmp_path: Path):
    pids = tmp_path / "pids"
    try:
        async with hosting(source(raw(child="setsid", pids=pids), stop_timeout=0.2)) as host:
            process = await host.pid()
            begun = asyncio.Event()
            call = asyncio.create_task(host.call("raw__hang", on_progress=lambda p: begun.set()))
            async with asyncio.timeout(BOUND):
                await begun.wait()
            kill(process)
            result = await call
            assert result.failure
            assert result.failure.kind == "outcome_unknown"
            assert await host.pid() != process
    finally:
        escaped = [int(child) for child in pids.read_text().split()]
        left = [child for child in escaped if alive(child)]
        for child in left:
            kill(child)
    assert len(escaped) == 2
    assert left == []


async def test_A10_5_closing_in_mid_call_ends_the_call():
    async with hosting(source()) as host:
        begun = asyncio.Event()
        call = asyncio.create_task(host.call("raw__hang", on_progress=lambda p: begun.set()))
        async with asyncio.timeout(BOUND):
            await begun.wait()
            await host.source.close()
            result = await call
        assert result.failure
        assert result.failure.kind == "outcome_unknown"
        later = await host.call("raw__echo", text="x")
        assert later.failure
        assert later.failure.kind == "not_available"
        await host.source.close()


def test_a_loop_that_ends_without_closing_leaves_no_process():
    token = uuid.uuid4().hex

    async def forgetful() -> None:
        mcp = source(raw(token=token))
        await mcp.open(Host(mcp).publish)
        assert len(with_token(token)) == 1

    asyncio.run(forgetful())
    gc.collect()
    assert with_token(token) == []


async def test_A10_6_a_legacy_server_that_stops_answering_pings_is_replaced(tmp_path: Path):
    starts = tmp_path / "starts"
    server = raw(ping="hang", starts=starts, declared={"liveness": 0.05})
    async with hosting(source(server, stop_timeout=0.2)) as host:
        await until(lambda: len(starts.read_text().splitlines()) >= 3)
        assert host.health().attempts >= 2


async def test_a_busy_legacy_server_keeps_its_connection():
    server = raw(declared={"liveness": 0.05})
    async with hosting(source(server)) as host:
        assert str(await host.call("raw__block", seconds=0.4)) == "awake"
        assert host.health().attempts == 1


async def test_a_server_that_dies_after_listing_does_not_spin(tmp_path: Path):
    starts = tmp_path / "starts"
    mcp = source(raw(die="list", starts=starts), first_backoff=0.05, max_backoff=60.0)
    async with hosting(mcp):
        began = time.monotonic()
        await until(lambda: len(starts.read_text().splitlines()) == 4)
        assert time.monotonic() - began >= 0.05 + 0.1 + 0.2


async def test_resources_bridge_lists_and_loses_to_the_servers_own_tools():
    more = json.dumps([{"name": "read_resource", "description": "own"}])
    async with hosting(source(raw(tools=more, declared={"resources": True}))) as host:
        assert "raw__list_resources" in host.names
        assert host.tool("raw__read_resource").definition.description == "own"


async def test_a_hostile_output_schema_cannot_stop_the_loop(tmp_path: Path):
    schema = {"type": "object", "properties": {"s": {"type": "string", "pattern": "^(a+)+$"}}}
    echo = {"name": "both", "inputSchema": {"type": "object"}, "outputSchema": schema}
    evil = {"structuredContent": {"s": "a" * 40 + "!"}, "content": []}
    async with hosting(source(raw(tools=json.dumps([echo]), both=json.dumps(evil)))) as host:
        assert host.tool("raw__both").definition.output_schema == schema
        began = time.monotonic()
        assert (await host.call("raw__both")).value == evil["structuredContent"]
        assert time.monotonic() - began < 1.0


async def test_A1_2_two_servers_of_one_source_that_want_one_name():
    mcp = source(raw("a", declared={"prefix": ""}), raw("b", declared={"prefix": ""}))
    host = Host(mcp)
    with pytest.raises(ConfigurationError, match=r"server '[ab]'.*server '[ab]'"):
        await mcp.open(host.publish)
    sound = next(health.name for health in mcp.health() if health.state == "ready")
    kill(int((await host.call("pid")).value["pid"]))
    await until(lambda: host.health(sound).attempts == 2)
    await host.ready(sound)  # what the other one wanted does not stand in its way
    await mcp.close()


def test_importing_toolcrib_does_not_import_the_sdk():
    code = "import sys, toolcrib, toolcrib.sources; sys.exit('mcp' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], env={**os.environ}, check=False, timeout=30)
    assert done.returncode == 0


async def test_CC10_servers_opened_in_one_task_are_closed_in_another_in_any_order() -> None:
    from toolcrib.sources import mcp

    before = asyncio.all_tasks()
    one, two = (mcp.stdio(name, sys.executable, "-S", str(RAW)) for name in ("one", "two"))
    published: list[object] = []

    async def opens() -> None:
        await one.open(published.append)
        await two.open(published.append)

    await asyncio.create_task(opens())
    await asyncio.create_task(one.close())
    assert [health.state for health in two.health()] == ["ready"]
    await asyncio.create_task(two.close())
    assert len(published) == 2
    assert {task for task in asyncio.all_tasks() - before if not task.done()} == set()
