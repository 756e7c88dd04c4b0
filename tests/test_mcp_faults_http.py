"""What only HTTP has: MC08 (forgotten sessions), MC10 (resuming), MC15 without auth, A9.5."""

from __future__ import annotations

import logging
import time

import pytest

from servers.faulty import HTTP, Cell, cells, faulty, health, kind, ready, serving
from servers.support import BOUND, source, until
from toolcrib.errors import ConfigurationError

LEGACY_HTTP = [cell for cell in HTTP if cell[1] == "legacy"]
WAITS = {"reconnect_wait": 5.0}
TOKEN = {"Authorization": "Bearer t0ken-secret"}


@cells(LEGACY_HTTP)
@pytest.mark.parametrize("way", ["404", "-32600", "200", "400"])
async def test_MC08_a_forgotten_session_is_begun_anew_and_the_call_sent_once_more(
    cell: Cell, way: str
):
    async with serving(cell, settings=WAITS) as (server, host):
        for word in "ab":
            assert str(await host.call("faulty__echo", text=word)) == word
        server.misbehave(f"forget_session={way}*1")
        assert str(await host.call("faulty__act", key="k")) == "done"
        assert server.ledger == ["k"]
        fresh = server.heard("initialize")
        assert [entry["session"] for entry in fresh] == [None, None]
        assert health(host).attempts == 2


@cells(LEGACY_HTTP)
async def test_MC08_after_a_503_the_outcome_is_unknown_and_the_session_begun_anew(cell: Cell):
    async with serving(cell, settings=WAITS) as (server, host):
        server.misbehave("forget_session=503*1")
        assert kind(await host.call("faulty__act", key="k")) == "outcome_unknown"
        await until(lambda: health(host).attempts == 2)
        assert str(await host.again("faulty__echo", text="back")) == "back"
        assert server.ledger == []


@cells(LEGACY_HTTP)
@pytest.mark.parametrize("way", ["404", "-32600", "200", "400", "503"])
async def test_MC08_a_server_that_forgets_at_every_call_is_never_called_in_a_loop(
    cell: Cell, way: str
):
    bounds = {"first_backoff": 0.01, "max_backoff": 0.05}
    async with serving(cell, f"forget_session={way}", settings=WAITS, bounds=bounds) as both:
        server, host = both
        for call in range(1, 3):
            result = await host.call("faulty__act", key="k")
            assert kind(result) in ("not_available", "outcome_unknown")
            assert len(server.heard("tools/call")) <= 2 * call
        server.misbehave()
        result = await host.again("faulty__echo", text="back")
        if kind(result) == "outcome_unknown":  # sent just as the forgotten session was left
            result = await host.again("faulty__echo", text="back")
        assert str(result) == "back"


@cells(LEGACY_HTTP)
@pytest.mark.parametrize("drops", [0, 1, 2])
async def test_MC10_every_resumption_sends_the_cursor_and_the_call_is_done_once(
    cell: Cell, drops: int
):
    async with serving(cell) as (server, host):
        server.misbehave(f"resume={drops}*1")
        assert str(await host.call("faulty__act", key="k")) == "done"
        assert [e["last"] for e in server.heard("GET") if e["last"]] == ["e1"] * (drops + 1)
        assert server.ledger == ["k"]


@cells(LEGACY_HTTP)
async def test_MC10_a_stream_that_never_brings_anything_ends_with_its_call(cell: Cell):
    async with serving(cell, settings={"call_timeout": 0.2}) as (server, host):
        server.misbehave("resume=1000000*1")
        assert kind(await host.call("faulty__act", key="k")) == "timeout"
        asked = len(server.heard("GET"))
        assert str(await host.call("faulty__slow", seconds=0.15)) == "awake"
        assert len(server.heard("GET")) <= asked + 1


@cells(HTTP)
async def test_MC15_a_401_without_id_ends_the_call_at_once_and_then_the_server_is_given_up(
    cell: Cell,
):
    async with serving(cell, settings=WAITS, headers=TOKEN) as (server, host):
        for word in "ab":
            assert str(await host.call("faulty__echo", text=word)) == word
        server.misbehave("refuse=401@any")
        began = time.monotonic()
        assert kind(await host.call("faulty__act", key="k")) == "not_available"
        assert time.monotonic() - began < 2.0
        await until(lambda: health(host).state == "given_up")
        assert "401" in health(host).reason
        after = len(server.journal)
        assert kind(await host.call("faulty__act", key="k")) == "not_available"
        assert len(server.journal) == after
        assert server.ledger == []


@cells(HTTP)
async def test_MC15_one_401_costs_one_call_and_throws_no_good_token_away(cell: Cell):
    async with serving(cell, headers=TOKEN) as (server, host):
        server.misbehave("refuse=401*1")
        assert kind(await host.call("faulty__act", key="k")) == "not_available"
        assert str(await host.again("faulty__act", key="l")) == "done"
        assert server.ledger == ["l"]
        assert {entry["authorization"] for entry in server.journal[1:]} == {"Bearer t0ken-secret"}


@cells(HTTP)
async def test_MC15_a_403_is_that_calls_alone_and_nothing_is_refreshed(cell: Cell):
    async with serving(cell, headers=TOKEN) as (server, host):
        server.misbehave("refuse=403")
        for _ in range(3):
            result = await host.call("faulty__act", key="k")
            assert kind(result) == "denied"
            assert "'faulty'" in str(result)
        server.misbehave()
        assert str(await host.call("faulty__echo", text="on")) == "on"
        assert health(host).attempts == 1
        assert len(server.heard("tools/call")) == 4


@cells(HTTP)
@pytest.mark.parametrize("status", [401, 403])
async def test_A10_3_MC15_a_refused_credential_fails_the_opening(cell: Cell, status: int):
    async with faulty(cell, f"refuse={status}@any") as server:
        mcp = source(server.declare(headers=TOKEN))
        with pytest.raises(ConfigurationError, match=f"'faulty': it answered HTTP {status}"):
            await mcp.open(lambda tools: None)
        assert mcp.health()[0].state == "given_up"
        await mcp.close()


@cells(HTTP)
async def test_A9_5_headers_go_with_every_request_and_into_no_log(
    cell: Cell, caplog: pytest.LogCaptureFixture
):
    caplog.set_level(logging.DEBUG, "toolcrib")
    async with serving(cell, headers=TOKEN) as (server, host):
        await host.call("faulty__echo", text="x")
        server.misbehave("refuse=401*1", "error=-32602*1")
        said = [str(await host.call("faulty__echo", text="x")) for _ in range(2)]
        await ready(host)
        told = [*said, repr(server.declare(headers=TOKEN)), health(host).reason]
    assert not any("t0ken" in text for text in told)
    ours = [r.getMessage() for r in caplog.records if r.name.startswith("toolcrib")]
    assert not any("t0ken" in line for line in ours)


@cells(HTTP)
async def test_A9_5_the_time_out_of_http_does_not_end_an_answer_that_takes_longer(cell: Cell):
    async with serving(cell, http_timeout=0.1) as (_, host):
        assert str(await host.call("faulty__slow", seconds=0.3)) == "awake"


@cells(LEGACY_HTTP)
async def test_T_A8_each_session_is_ended_once(cell: Cell):
    async with serving(cell, settings=WAITS) as (server, host):
        for _ in range(4):
            server.misbehave("forget_session*1")
            assert str(await host.call("faulty__echo", text="x")) == "x"
        await host.source.close()
        ended = [entry["session"] for entry in server.heard("DELETE")]
        assert len(ended) == len({*ended}) == 5


@cells(HTTP)
async def test_A10_3_a_host_that_refuses_is_tried_again_until_it_is_there(cell: Cell):
    async with faulty(cell) as server:
        await server.stop()
        mcp = source(server.declare(liveness=0.0, required=True))
        published: list[object] = []
        await mcp.open(published.append)
        assert "refuses" in mcp.health()[0].reason
        await server.start()
        await mcp.wait_ready(BOUND)
        assert published
        await mcp.close()
