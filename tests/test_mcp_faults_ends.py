"""How processes start and end: MC03, MC04, A9.5 of stdio, MS4, with the fault server."""

from __future__ import annotations

import logging
import shlex
import subprocess
import sys
import time
from pathlib import Path

import pytest

from servers.faulty import (
    LEGACY,
    STDIO,
    Cell,
    answered,
    cells,
    faulty,
    health,
    kind,
    serving,
)
from servers.support import BOUND, alive, hosting, source, until, with_token
from toolcrib.sources.mcp import McpServer
from toolcrib.testing.fault_server import command


@cells()
async def test_a_slow_start_and_a_flood_on_stderr_do_no_harm(cell: Cell):
    async with serving(cell, "slow_start=0.15", "stderr_flood=300000") as (_, host):
        assert str(await host.call("faulty__echo", text="fine")) == "fine"
        assert health(host).attempts == 1
        if cell[0] == "stdio":
            assert "last line of stderr" in health(host).stderr
            assert len(health(host).stderr) <= 64 * 1024


@cells(STDIO)
async def test_a_banner_on_stdout_is_skipped_and_kept(cell: Cell):
    async with serving(cell, "banner") as (_, host):
        assert str(await host.call("faulty__echo", text="fine")) == "fine"
        assert "Welcome to the fault server" in health(host).stderr


@cells(LEGACY)
async def test_a_silent_legacy_server_is_found_out(cell: Cell, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("mcp.client.session.DISCOVER_TIMEOUT_SECONDS", 0.2)
    async with serving((cell[0], "silent")) as (_, host):
        assert health(host).era == "2025-11-25"
        assert str(await host.call("faulty__echo", text="on")) == "on"


@cells(STDIO)
async def test_MC04_a_server_that_ignores_eof_and_sigterm_is_killed_in_time(cell: Cell):
    async with serving(cell, "stubborn", bounds={"stop_timeout": 0.1}) as (server, host):
        await host.call("faulty__echo", text="x")
        began = time.monotonic()
        await host.source.close()
        assert time.monotonic() - began < 2.0
        assert not any(map(alive, server.starts))


@cells(STDIO)
@pytest.mark.parametrize("where", ["same", "setsid"])
async def test_MC03_MC04_a_child_with_the_pipes_holds_neither_calls_nor_the_closing(
    cell: Cell, where: str
):
    async with serving(cell, f"child={where}", bounds={"stop_timeout": 0.1}) as (server, host):
        server.misbehave(f"child={where}", "crash_during*1")
        began = time.monotonic()
        assert kind(await host.call("faulty__act")) == "outcome_unknown"
        assert str(await answered(host, text="back")) == "back"
        await host.source.close()
        assert time.monotonic() - began < 4.0


@cells(STDIO)
async def test_MC03_a_launchers_server_ends_with_it(cell: Cell):
    async with faulty(cell) as server:
        own = server.declare()
        line = f"exec 3<&0; {shlex.join([own.command, *own.args])} <&3 & wait"
        launched = McpServer("faulty", "stdio", command="/bin/sh", args=("-c", line))
        async with hosting(source(launched)) as host:
            assert str(await host.call("faulty__echo", text="x")) == "x"
            (process,) = server.starts
        await until(lambda: not alive(process))


@cells(STDIO)
def test_MC03_a_program_that_is_terminated_leaves_no_server(cell: Cell, tmp_path: Path):
    own = command("--stdio", "--era", cell[1], "--home", str(tmp_path))
    with subprocess.Popen([sys.executable, "-c", OPENS, *own], stdout=subprocess.PIPE) as program:
        assert program.stdout is not None
        assert program.stdout.readline() == b"open\n"
        assert with_token(str(tmp_path))
        program.terminate()
    deadline = time.monotonic() + BOUND
    while with_token(str(tmp_path)):
        assert time.monotonic() < deadline


OPENS = """
import asyncio, sys
from toolcrib.sources.mcp import McpServer, McpSource
async def main():
    server = McpServer("x", "stdio", command=sys.argv[1], args=tuple(sys.argv[2:]))
    await McpSource([server]).open(lambda tools: print("open", flush=True))
    await asyncio.Event().wait()
asyncio.run(main())
"""


@cells(STDIO)
async def test_A9_5_T_A8e_the_environment_is_read_anew_at_each_connect(
    cell: Cell, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("OPENAI_API_KEY", "sentinel")
    async with serving(cell, env={"MINE": "yes"}) as (server, host):
        for zone in ("UTC", "Asia/Tokyo"):
            monkeypatch.setenv("TZ", zone)
            starts = len(server.starts)
            await server.restart()
            await until(lambda starts=starts: len(server.starts) == starts + 1)
            await answered(host, text="back")
            seen = [str(await host.call("faulty__env", name=name)) for name in VARIABLES]
            assert seen == [zone, "yes", ""]


VARIABLES = ["TZ", "MINE", "OPENAI_API_KEY"]


@cells()
async def test_MS4_six_deaths_in_mid_call_and_while_idle_leave_nothing(
    cell: Cell, caplog: pytest.LogCaptureFixture
):
    caplog.set_level(logging.ERROR)
    async with serving(cell, bounds={"max_backoff": 0.02}) as (server, host):
        for turn in range(6):
            if turn % 2:
                server.misbehave("crash_during*1")
                await host.call("faulty__act", key=str(turn))
            else:
                await server.restart()
            await until(lambda turn=turn: len(server.starts) == turn + 2)
            assert str(await answered(host, text=str(turn))) == str(turn)
        assert server.ledger == list("135")
