"""Calls of remote tools: their time, their one repetition, what is heard meanwhile, cancelling
(A10.7, A10.8, MC01, MC02, MC08, MC15)."""

from __future__ import annotations

import asyncio
import json
import logging
import time
import uuid
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from servers.http_peer import JSON, STREAM, Peer, peer, refusal
from servers.support import BOUND, NO_WAIT, Host, children, hosting, raw, source, until
from toolcrib.content import ToolCall, ToolResult
from toolcrib.errors import NotAvailable
from toolcrib.policy import NO_POLICY, Policies, Policy
from toolcrib.sources.mcp import McpServer
from toolcrib.sources.mcp.calls.clock import Clock, limit
from toolcrib.sources.mcp.calls.hearing import MAX_CHARS, MAX_LOGS
from toolcrib.sources.mcp.calls.repeats import KEY, patience
from toolcrib.sources.mcp.failures import AnswerLost
from toolcrib.sources.mcp.settings import ServerSettings

ERAS = ["legacy", "modern"]
WAITS = ServerSettings(reconnect_wait=5.0)
SAFE = Policy(idempotent=True)


@pytest.fixture(autouse=True)
def nothing_is_left() -> Iterator[None]:
    before = children()
    yield
    assert children() <= before


def kind(result: ToolResult) -> str:
    return result.failure.kind if result.failure else "ok"


def declared(**settings: Any) -> dict[str, Any]:
    return {"settings": ServerSettings(**{"reconnect_wait": 0.0, **settings})}


# -- decisions


def test_a_call_is_over_at_its_total_and_progress_extends_only_the_idle_bound():
    assert limit(now=10.0, end=20.0, idle=None) == 20.0
    assert limit(now=10.0, end=20.0, idle=3.0) == 13.0
    assert limit(now=19.0, end=20.0, idle=3.0) == 20.0


def test_MC02_only_what_was_not_sent_or_is_declared_harmless_goes_again():
    settings = ServerSettings(reconnect_wait=2.0)
    assert patience(NotAvailable("x"), NO_POLICY, settings, left=100.0) == 2.0
    assert patience(NotAvailable("x"), NO_POLICY, settings, left=0.5) == 0.5
    assert patience(AnswerLost("x"), NO_POLICY, settings, left=100.0) == 0.0
    assert patience(AnswerLost("x"), Policy(idempotent=False), settings, left=100.0) == 0.0
    assert patience(AnswerLost("x"), SAFE, settings, left=100.0) == 100.0


def test_a_policy_record_says_idempotent_field_by_field():
    records = Policies({"fs__*": Policy(idempotent=False), "*": Policy(idempotent=True)})
    assert records.of("fs__write").idempotent is False
    assert records.of("other").idempotent is True
    assert Policy(timeout=3).over(SAFE) == Policy(timeout=3, idempotent=True)


# -- time


async def test_a_call_without_an_answer_ends_at_its_total_and_the_server_is_told():
    async with hosting(source(raw(declared=declared(call_timeout=0.2)))) as host:
        began = time.monotonic()
        result = await host.call("raw__hang")
        assert time.monotonic() - began < 2.0
        assert kind(result) == "timeout"
        assert "'raw'" in str(result)
        assert "0.2 s" in str(result)
        async with asyncio.timeout(BOUND):
            while await noted(host) != "notifications/cancelled":
                pass
        assert host.health().attempts == 1


async def noted(host: Host) -> str:
    """The last notification that the server got."""
    notes = json.loads((await host.executor.execute(ToolCall("n", "raw__notes", "{}"))).text)
    return str(notes[-1]["method"])


@pytest.mark.parametrize("era", ERAS)
async def test_progress_extends_the_idle_bound(era: str):
    async with hosting(source(raw(era=era, declared=declared(idle_timeout=0.4)))) as host:
        began = time.monotonic()
        assert str(await host.call("raw__drip", n=10, every=0.06)) == "dripped"
        assert time.monotonic() - began > 0.4
        silent = await host.call("raw__hang")
        assert kind(silent) == "timeout"
        assert "no progress for 0.4 s" in str(silent)


async def test_progress_never_extends_a_call_beyond_its_total():
    settings = declared(idle_timeout=0.2, call_timeout=0.3)
    async with hosting(source(raw(declared=settings), stop_timeout=0.2)) as host:
        began = time.monotonic()
        result = await host.call("raw__drip", n=40, every=0.02)
        assert kind(result) == "timeout"
        assert time.monotonic() - began < 0.7


async def test_a_clock_that_ran_out_takes_no_more_signs_of_life():
    clock = Clock(time.monotonic() + 0.01, 0.01)
    with pytest.raises(TimeoutError):
        async with clock:
            await asyncio.Event().wait()
    clock.alive()


# -- again, or not


@pytest.mark.parametrize("era", ERAS)
async def test_a_call_that_was_not_sent_goes_to_the_new_connection(era: str, tmp_path: Path):
    ledger = tmp_path / "ledger"
    server = raw(era=era, ledger=ledger, declared={"settings": WAITS})
    async with hosting(source(server)) as host:
        await host.call("raw__act_and_die")
        assert str(await host.call("raw__act")) == "done"  # whether or not its death is seen by now
        assert host.health().attempts == 2
    assert ledger.read_text() == "act_and_die\nact\n"


@pytest.mark.parametrize("status", [404, 400])
async def test_MC08_a_call_that_was_refused_for_its_session_is_sent_once_more(status: int):
    async with peer() as one:
        server = McpServer("web", "http", url=one.url, liveness=0.0, settings=WAITS)
        async with hosting(source(server)) as host:
            one.sessions.clear()

            def gate(verb: str, headers: dict[str, str], body: dict[str, Any]) -> Any:
                fresh = body.get("method") in ("initialize", "server/discover")
                known = headers.get("mcp-session-id") in one.sessions
                return None if known or fresh else (status, {}, b"")

            one.gate = gate
            assert str(await host.call("web__act")) == "ok"
            assert (one.calls(), one.count("initialize")) == (2, 2)
            one.on_call = lambda body: (200, JSON, refusal(body["id"], -32600, "Session not found"))
            assert kind(await host.call("web__act")) == "not_available"
            assert one.calls() == 4  # once more, and no oftener


async def test_a_call_with_a_deadline_never_waits_beyond_it():
    settings = {"settings": ServerSettings(reconnect_wait=60.0)}
    mcp = source(raw(declared=settings), first_backoff=60.0, max_backoff=60.0)
    async with hosting(mcp) as host:
        await host.call("raw__act_and_die")
        await until(lambda: host.health().state == "degraded")
        began = time.monotonic()
        call = ToolCall("1", "raw__act", "{}")
        result = await host.executor.execute(call, deadline=began + 0.1)
        assert kind(result) in ("not_available", "timeout")
        assert time.monotonic() - began < 1.0


async def test_closing_ends_the_waiting_for_a_connection():
    settings = {"settings": ServerSettings(reconnect_wait=60.0)}
    mcp = source(raw(declared=settings), first_backoff=60.0, max_backoff=60.0)
    async with hosting(mcp) as host:
        await host.call("raw__act_and_die")
        await until(lambda: host.health().state == "degraded")
        waiting = asyncio.create_task(host.call("raw__act"))
        await asyncio.sleep(0)
        await mcp.close()
        assert kind(await waiting) == "not_available"


@pytest.mark.parametrize("era", ERAS)
async def test_a_lost_answer_is_asked_for_once_more_where_the_policy_says_it_is_harmless(
    era: str, tmp_path: Path
):
    ledger = tmp_path / "ledger"
    async with hosting(source(raw(era=era, ledger=ledger))) as host:
        host.registry.govern(Policies({"raw__idem": SAFE}))
        assert str(await host.call("raw__idem")) == "done at last"
        first, second = ledger.read_text().split()
        assert first == second
        assert uuid.UUID(first)
        assert host.health().attempts == 2


async def test_MC02_a_lost_answer_is_unknown_without_policy_and_after_the_second_time(
    tmp_path: Path,
):
    ledger = tmp_path / "ledger"
    hint = {"name": "once", "annotations": {"idempotentHint": True, "readOnlyHint": True}}
    server = raw(ledger=ledger, tools=json.dumps([{**hint, "inputSchema": {"type": "object"}}]))
    async with hosting(source(server)) as host:
        assert host.tool("raw__once").definition.annotations.idempotent is True
        assert kind(await host.call("raw__once")) == "outcome_unknown"
        assert ledger.read_text() == "no key\n"  # a server's claim is only a claim
        await until(lambda: host.health().attempts == 2 and host.health().state == "ready")
        host.registry.govern(Policies({"raw__once": SAFE}))
        assert kind(await host.call("raw__once")) == "outcome_unknown"
        assert len(ledger.read_text().splitlines()) == 3


async def test_a_lost_answer_stays_unknown_when_no_connection_comes_in_time(tmp_path: Path):
    mcp = source(raw(ledger=tmp_path / "ledger"), first_backoff=60.0, max_backoff=60.0)
    async with hosting(mcp) as host:
        host.registry.govern(Policies({"raw__once": SAFE}))
        began = time.monotonic()
        call = ToolCall("1", "raw__once", "{}")
        result = await host.executor.execute(call, deadline=began + 0.2)
        assert kind(result) in ("outcome_unknown", "timeout")
        assert time.monotonic() - began < 1.0


async def test_a_key_goes_only_with_what_may_be_sent_twice():
    async with hosting(source()) as host:
        assert KEY not in json.loads(str(await host.call("raw__meta")))
        host.registry.govern(Policies({"raw__meta": SAFE}))
        keys = [json.loads(str(await host.call("raw__meta")))[KEY] for _ in range(2)]
        assert len({*keys}) == 2


# -- cancelling


@asynccontextmanager
async def scripted(modern: bool, **settings: Any) -> AsyncIterator[tuple[Peer, Host]]:
    async with peer(modern=modern) as one:
        given = ServerSettings(**{"reconnect_wait": 0.0, **settings})
        web = McpServer("web", "http", url=one.url, liveness=0.0, settings=given)
        async with hosting(source(web)) as host:
            yield one, host


def hung_up(one: Peer) -> list[Any]:
    return [body for body in one.hung_up if body.get("method") == "tools/call"]


@pytest.mark.parametrize("answer", [0, STREAM])
async def test_cancelling_over_modern_http_closes_the_stream_of_the_call(answer: int):
    async with scripted(modern=True) as (one, host):
        one.on_call = lambda body: (answer, {}, [])
        call = asyncio.create_task(host.call("web__act"))
        await until(lambda: one.calls() == 1)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        await until(lambda: hung_up(one))
        assert one.count("notifications/cancelled") == 0  # closing says it, in this era
        one.on_call = None
        assert str(await host.call("web__act")) == "ok"
        assert host.health("web").attempts == 1


@pytest.mark.parametrize("modern", [False, True])
async def test_a_call_that_ran_out_of_time_is_cancelled_over_http_too(modern: bool):
    async with scripted(modern, call_timeout=0.1) as (one, host):
        one.on_call = lambda body: (0, {}, None)
        assert kind(await host.call("web__act")) == "timeout"
        if modern:
            await until(lambda: hung_up(one))
        else:
            await until(lambda: one.count("notifications/cancelled") == 1)


async def test_a_server_that_takes_no_cancellation_does_not_keep_the_caller():
    async with scripted(modern=False) as (one, host):

        def gate(verb: str, headers: Any, body: dict[str, Any]) -> Any:
            hangs = body.get("method") in ("tools/call", "notifications/cancelled")
            return (0, {}, None) if hangs else None

        one.gate = gate
        call = asyncio.create_task(host.call("web__act"))
        await until(lambda: one.calls() == 1)
        began = time.monotonic()
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        assert time.monotonic() - began < 1.0


# -- what is heard meanwhile


@pytest.mark.parametrize("era", ERAS)
async def test_log_messages_go_to_the_logger_of_the_call(
    era: str, caplog: pytest.LogCaptureFixture
):
    caplog.set_level(logging.DEBUG, "toolcrib.tool")
    async with hosting(source(raw(era=era))) as host:
        assert str(await host.call("raw__log")) == "logged"
    records = [r for r in caplog.records if r.name == "toolcrib.tool.raw__log"]
    assert [(r.levelno, r.getMessage()) for r in records] == [
        (logging.DEBUG, "debug said"),
        (logging.INFO, "notice said"),
        (logging.WARNING, "warning said"),
        (logging.CRITICAL, "emergency said"),
        (logging.INFO, "strange said"),
        (logging.INFO, '{"rows": 3}'),
    ]
    assert all(r.call_id for r in records)  # type: ignore[attr-defined]


async def test_a_modern_server_is_asked_for_the_log_level_that_was_set():
    async with hosting(source(raw(era="modern", declared=declared(log_level="error")))) as host:
        meta = json.loads(str(await host.call("raw__meta")))
        assert meta["io.modelcontextprotocol/logLevel"] == "error"
        assert type(meta["progressToken"]) is int


async def test_what_one_call_may_tell_is_bounded_in_number_and_size(
    caplog: pytest.LogCaptureFixture,
):
    caplog.set_level(logging.INFO, "toolcrib.tool")
    seen: list[Any] = []
    async with hosting(source()) as host:
        n = MAX_LOGS + 50
        assert str(await host.call("raw__chatter", on_progress=seen.append, n=n)) == "said"
    assert [p.current for p in seen] == [*range(n)]
    assert {len(p.message) for p in seen} == {MAX_CHARS}
    records = [r for r in caplog.records if r.name == "toolcrib.tool.raw__chatter"]
    assert len(records) == MAX_LOGS + 1
    assert "too much" in records[-1].getMessage()
    assert max(len(r.getMessage()) for r in records) == MAX_CHARS


async def test_log_messages_over_http_go_to_the_call_on_whose_stream_they_come(
    caplog: pytest.LogCaptureFixture,
):
    caplog.set_level(logging.INFO, "toolcrib.tool")

    def answers(body: dict[str, Any]) -> Any:
        word = body["params"]["arguments"]["word"]
        said = {"level": "info", "data": word}
        log = {"jsonrpc": "2.0", "method": "notifications/message", "params": said}
        done = {"content": [{"type": "text", "text": word}], "resultType": "complete"}
        answer = {"jsonrpc": "2.0", "id": body["id"], "result": done}
        lines = "".join(f"data: {json.dumps(one)}\n\n" for one in (log, answer))
        return 200, {"Content-Type": "text/event-stream"}, lines.encode()

    async with scripted(modern=True) as (one, host):
        one.on_call = answers
        words = [f"word {i}" for i in range(8)]
        calls = [ToolCall(word, "web__act", json.dumps({"word": word})) for word in words]
        await asyncio.gather(*(host.executor.execute(call) for call in calls))
    records = [r for r in caplog.records if r.name == "toolcrib.tool.web__act"]
    told = sorted((r.call_id, r.getMessage()) for r in records)  # type: ignore[attr-defined]
    assert told == [(word, word) for word in words]


async def test_RS15_what_a_server_says_meanwhile_is_masked(caplog: pytest.LogCaptureFixture):
    caplog.set_level(logging.INFO, "toolcrib")
    server = raw(declared={"env": {"KEY": "emergency"}, "settings": NO_WAIT})
    async with hosting(source(server)) as host:
        await host.call("raw__log")
    assert not any("emergency" in r.getMessage() for r in caplog.records)
