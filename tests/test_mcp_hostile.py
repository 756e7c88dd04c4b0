"""Servers that flood, hang and crowd: what they may cost, and whom."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from servers.faulty import CELLS, Cell, cells, serving
from servers.http_peer import peer
from servers.support import BOUND, Host, hosting, raw, source, until, with_token
from toolcrib.content import ToolResult
from toolcrib.sources.mcp import McpServer, member
from toolcrib.sources.mcp.link import starting
from toolcrib.sources.mcp.wire import dispatcher
from toolcrib.sources.mcp.wire.process import ServerProcess

FLOOD = """
import json, os, sys
def send(m):
    data = memoryview((json.dumps({"jsonrpc": "2.0", **m}) + "\\n").encode())
    while data:
        data = data[os.write(1, data):]
PINGS = [json.dumps({"jsonrpc": "2.0", "id": n, "method": "ping"}) for n in range(200)]
for line in sys.stdin:
    m = json.loads(line)
    id, method = m.get("id"), m.get("method")
    if method == "initialize":
        send({"id": id, "result": {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}},
              "serverInfo": {"name": "flood", "version": "1"}}})
    elif method == "tools/list":
        send({"id": id, "result": {"tools": [{"name": "act", "inputSchema": {"type": "object"}}]}})
    elif method == "tools/call":
        flood = "".join(one + "\\n" for one in PINGS).encode()
        for _ in range(40):
            data = memoryview(flood)
            while data:
                data = data[os.write(1, data):]
        send({"id": id, "result": {"content": []}})
    elif id is not None:
        send({"id": id, "error": {"code": -32601, "message": "no"}})
"""


def flooding() -> McpServer:
    args = ("-S", "-I", "-c", FLOOD)
    return McpServer("flood", "stdio", command=sys.executable, args=args, liveness=0.0)


def kind(result: ToolResult) -> str:
    return result.failure.kind if result.failure else "ok"


async def test_a_server_that_asks_and_never_reads_costs_a_bounded_number_of_tasks(
    caplog: pytest.LogCaptureFixture,
):
    async with hosting(source(flooding())) as host:
        before = len(asyncio.all_tasks())
        call = asyncio.create_task(host.call("flood__act"))
        most = 0
        async with asyncio.timeout(BOUND):
            while not call.done():
                most = max(most, len(asyncio.all_tasks()) - before)
                await asyncio.sleep(0)
        assert kind(await call) == "ok"  # 8,000 questions later
        assert most < 2 * dispatcher.MAX_ASKING
    assert caplog.text.count("does not read the answers") == 1


async def test_a_flood_of_lines_leaves_others_their_turn():
    process = ServerProcess()
    process.pipe_data_received(1, b"no message\n" * 1000)
    turns = 0

    async def other() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    beside = asyncio.create_task(other())
    for _ in range(1000):
        await process.read_line()
    beside.cancel()
    assert turns > 10


@cells(CELLS)
async def test_a_server_that_hangs_is_found_when_a_call_of_it_is_given_up(
    cell: Cell, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(member, "SILENCE", 0.1)
    async with serving(cell, liveness=0.3, settings={"call_timeout": 0.2}) as (server, host):
        pids = with_token(server.home)
        for pid in pids:
            os.kill(pid, signal.SIGSTOP)
        try:
            assert kind(await host.call("faulty__echo")) in ("timeout", "not_available")
            await until(lambda: host.health("faulty").state != "ready")
        finally:
            for pid in pids:
                os.kill(pid, signal.SIGCONT)


async def test_so_many_processes_start_at_once_and_no_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(starting, "AT_ONCE", 3)
    notes = [tmp_path / str(n) for n in range(9)]
    servers = [raw(f"raw{n}", start="hang", starts=notes[n]) for n in range(9)]
    mcp = source(*servers, connect_timeout=60.0)
    opening = asyncio.create_task(mcp.open(Host(mcp).publish))
    await until(lambda: sum(note.exists() for note in notes) == 3)
    await asyncio.sleep(0.1)  # time enough for all the others, if they were not held back
    assert sum(note.exists() for note in notes) == 3
    await mcp.close()
    await opening


async def test_one_that_never_gets_ready_gives_up_its_turn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(starting, "AT_ONCE", 1)
    monkeypatch.setattr(starting, "YIELDS_AFTER", 0.1)
    hung, sound = raw("a", start="hang"), raw("b")
    mcp = source(hung, sound, connect_timeout=60.0)
    opening = asyncio.create_task(mcp.open(Host(mcp).publish))
    await until(lambda: {h.name: h.state for h in mcp.health()}["b"] == "ready")
    await mcp.close()
    await opening


async def test_a_hundred_servers_are_ready_within_a_bound():
    mcp = source(*(raw(f"s{n}") for n in range(100)))
    host = Host(mcp)
    began = time.monotonic()
    await mcp.open(host.publish)
    assert {one.state for one in mcp.health()} == {"ready"}
    assert {one.attempts for one in mcp.health()} == {1}
    assert time.monotonic() - began < 60.0
    await mcp.close()


async def test_looking_at_thousands_of_schemas_leaves_others_their_turn():
    def tool(n: int) -> dict[str, Any]:
        properties = {f"p{k}": {"type": "string", "enum": ["a", str(n)]} for k in range(8)}
        return {"name": f"t{n}", "inputSchema": {"type": "object", "properties": properties}}

    async with peer() as one:
        one.tools = [tool(n) for n in range(1500)]
        server = McpServer("peer", "http", url=one.url, liveness=0.0)
        mcp = source(server)
        host = Host(mcp)
        opening = asyncio.create_task(mcp.open(host.publish))
        await until(lambda: one.count("tools/list") == 1)
        turns = 0
        while not opening.done():
            turns += 1
            await asyncio.sleep(0.001)
        assert len(host.names) == 1500
        assert turns > 20
        await mcp.close()


async def test_MC13_a_listing_that_a_forgotten_session_refuses_is_not_asked_for_in_vain():
    async with peer() as one:
        server = McpServer("peer", "http", url=one.url, liveness=0.0)
        async with hosting(source(server)) as host:
            await until(lambda: "GET" in one.streams)
            one.sessions.clear()
            one.tools = [*one.tools, {"name": "beta", "inputSchema": {"type": "object"}}]
            one.tell("notifications/tools/list_changed")
            await until(lambda: "peer__beta" in host.names)
