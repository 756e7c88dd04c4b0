"""The fault server of `toolcrib.testing` itself: how it starts, what it is told, what it notes."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from servers.faulty import CELLS, Cell, cells, faulty, serving
from servers.support import BOUND, alive, until, with_token
from test_layers import GRAPH
from toolcrib.testing import FaultServer, check_source
from toolcrib.testing.fault_server import command
from toolcrib.testing.fault_server.acts import Asked, Die, Say
from toolcrib.testing.fault_server.home import Home
from toolcrib.testing.fault_server.protocol import Server
from toolcrib.testing.fault_server.table import TABLE, parsed

OWN = "toolcrib.testing.fault_server"


def spoken(command: list[str], *messages: dict[str, Any]) -> list[Any]:
    """What the server says to these messages over its pipes."""
    lines = "".join(json.dumps({"jsonrpc": "2.0", **message}) + "\n" for message in messages)
    run = subprocess.run(
        command, input=lines, capture_output=True, text=True, check=True, timeout=BOUND
    )
    return [json.loads(line) for line in run.stdout.splitlines()]


ECHO = {"name": "echo", "arguments": {"text": "hi"}}


@pytest.mark.parametrize("start", [command(), [sys.executable, "-m", OWN]], ids=["path", "module"])
def test_it_starts_as_a_script_and_as_a_module(start: list[str]) -> None:
    (answer,) = spoken([*start, "--stdio"], {"id": 1, "method": "tools/call", "params": ECHO})
    assert answer["result"]["content"] == [{"type": "text", "text": "hi"}]


def test_it_imports_nothing_of_the_library() -> None:
    reached = {t for name, targets in GRAPH.items() if name.startswith(OWN) for t in targets}
    assert {one for one in reached if not one.startswith(OWN)} == set()
    code = f"import runpy, sys; sys.argv = ['x', '--list']; runpy.run_path({command()[3]!r})"
    code = f"try:\n {code}\nfinally:\n print([m for m in sys.modules if m in {sorted(HEAVY)}])"
    run = subprocess.run(
        [*command()[:3], "-c", code], capture_output=True, text=True, timeout=BOUND, check=False
    )
    assert run.stdout.splitlines()[-1] == "[]"


HEAVY = {"asyncio", "pydantic", "dataclasses", "http.server", "toolcrib.registry", "toolcrib.tool"}


def test_every_fault_says_what_it_does_and_is_listed() -> None:
    assert all(one.says.endswith(".") for one in TABLE.values())
    listed = subprocess.run([*command(), "--list"], capture_output=True, text=True, check=True)
    assert all(f"\n  {name}" in listed.stdout for name in TABLE)


def test_a_fault_is_read_as_it_is_written() -> None:
    spec = parsed("error=-32601@resources/read*3")
    assert (spec.fault.name, spec.value, spec.method, spec.times) == (
        "error",
        "-32601",
        "resources/read",
        3,
    )
    assert parsed(str(spec)) == spec
    assert parsed("hang").method == "tools/call"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("explode", "no fault 'explode'"),
        ("hang*", "is not NAME"),
        ("hang*0", "is not NAME"),
        ("refuse=401", "http alone"),
        ("late=soon", "'late' takes seconds, not 'soon'"),
        ("hang=3", "'hang' takes no value, not '3'"),
        ("endless=often", "'endless' takes one of same, empty"),
        ("hang@tools/cal", "no method 'tools/cal'"),
    ],
)
def test_a_fault_that_is_none_is_refused(text: str, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        parsed(text, "stdio")
    refused = subprocess.run(
        [*command(), "--stdio", "--fault", text],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=BOUND,
    )
    assert refused.returncode == 2
    assert says in refused.stderr


def test_the_protocol_is_a_message_in_and_acts_out() -> None:
    home = Home()
    server = Server("legacy", home)
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": ECHO}
    (said,) = server.answer(call)
    assert isinstance(said, Say)
    home.set(["crash_during*1"])
    assert list(server.answer(call)) == [Die()]
    assert list(server.answer(call)) == [said]
    assert list(server.answer({"jsonrpc": "2.0", "id": 1, "result": {}})) == []


def test_a_fault_is_used_up_over_restarts(tmp_path: Any) -> None:
    asked = Asked("tools/call", 1, {})
    Home(str(tmp_path)).set(["hang*2", "late@ping"])
    for left in (1, 0):
        assert [str(one) for one in Home(str(tmp_path)).faults(asked)] == [
            f"hang@tools/call*{left + 1}"
        ]
    assert Home(str(tmp_path)).faults(asked) == []


KEYS = ["two\nlines", "\u2028", "ä", "\ud800", ""]


def test_the_ledger_holds_every_key_as_it_was_given(tmp_path: Path) -> None:
    home = Home(str(tmp_path))
    for key in KEYS:
        home.act(key)
    assert home.ledger() == KEYS


@cells()
async def test_it_can_be_told_by_a_tool_too(cell: Cell):
    async with serving(cell) as (server, host):
        assert str(await host.call("faulty__misbehave", fault="error*1")) == "as you wish"
        assert (await host.call("faulty__echo", text="x")).is_error
        assert str(await host.call("faulty__echo", text="x")) == "x"
        wrong = await host.call("faulty__misbehave", fault="explode")
        assert wrong.is_error
        assert "no fault 'explode'" in str(wrong)
        with pytest.raises(ValueError, match="explode"):
            server.misbehave("explode")


@cells()
async def test_it_passes_for_a_server_whose_source_keeps_its_contract(cell: Cell):
    from toolcrib.sources.mcp import McpSource

    async with faulty(cell) as server:
        await check_source(lambda: McpSource([server.declare()], name="mcp"))


async def test_over_http_it_keeps_its_address_over_restarts_and_stops_for_sure() -> None:
    async with FaultServer(transport="http") as server:
        url, home = server.url, server.home
        for _ in range(3):
            await server.restart()
        assert (server.url, len({*server.starts})) == (url, 4)
        await server.stop()
        await server.stop()
        assert with_token(home) == []
        await server.start()
        assert server.url == url
    await until(lambda: with_token(home) == [])
    assert not os.path.exists(home)


@pytest.mark.parametrize("end", [signal.SIGTERM, signal.SIGKILL])
def test_over_http_the_server_ends_with_the_process_that_holds_its_port(end: int) -> None:
    with subprocess.Popen([*command(), "--http", "0"], stdout=subprocess.PIPE, text=True) as one:
        assert one.stdout is not None
        _, child = one.stdout.readline(), json.loads(one.stdout.readline())["pid"]
        one.send_signal(end)
    deadline = time.monotonic() + BOUND
    while alive(child):
        assert time.monotonic() < deadline


@pytest.mark.parametrize("fault", ["stubborn", "child", "child=setsid", "hang_up*1"])
async def test_over_stdio_it_tells_what_a_client_left_and_leaves_nothing_itself(fault: str) -> None:
    async with FaultServer(fault) as server:
        careless = await asyncio.create_subprocess_exec(
            *server.command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL
        )
        assert careless.stdin is not None
        call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": ECHO}
        careless.stdin.write(json.dumps(call).encode() + b"\n")
        await until(lambda: server.heard("tools/call"))
        careless.stdin.close()
        if "child" in fault:
            await careless.wait()
        left, home = server.processes, server.home
        assert len(left) == 1
    await until(lambda: with_token(home) == [])
    await careless.wait()


async def test_a_program_that_only_names_the_command_is_none_of_its_processes() -> None:
    async with FaultServer() as server:
        code = "import sys; print(1, flush=True); sys.stdin.read()"
        start = [sys.executable, "-c", code, *server.command]
        agent = await asyncio.create_subprocess_exec(
            *start, stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        assert agent.stdin is not None and agent.stdout is not None
        await agent.stdout.readline()
        assert server.processes == []
        agent.stdin.close()
        await agent.wait()


def test_over_http_it_ends_with_whoever_started_it(tmp_path: Path) -> None:
    code = (
        "import asyncio; from toolcrib.testing import FaultServer\n"
        "async def main():\n"
        "  async with FaultServer(transport='http') as server:\n"
        "    print(*server.starts, flush=True); await asyncio.sleep(60)\n"
        "asyncio.run(main())"
    )
    start = [sys.executable, "-c", code]
    env = {**os.environ, "TMPDIR": str(tmp_path)}  # whoever is killed does not clear up
    with subprocess.Popen(start, stdout=subprocess.PIPE, text=True, env=env) as one:
        assert one.stdout is not None
        child = int(one.stdout.readline())
        one.send_signal(signal.SIGKILL)
    deadline = time.monotonic() + BOUND
    while alive(child):
        assert time.monotonic() < deadline


async def test_a_server_that_cannot_start_says_why() -> None:
    import socket

    with socket.create_server(("127.0.0.1", 0)) as taken:
        server = FaultServer(transport="http")
        server.url = f"http://127.0.0.1:{taken.getsockname()[1]}/mcp"
        with pytest.raises(RuntimeError, match="did not start"):
            await server.__aenter__()


async def test_what_it_cannot_do_is_refused_in_words() -> None:
    with pytest.raises(RuntimeError, match="async with"):
        _ = FaultServer().home
    for wrong in ({"transport": "sse"}, {"era": "2025-11-25"}):
        with pytest.raises(ValueError, match="use one of"):
            FaultServer(**wrong)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="stdio alone"):
        FaultServer("banner", transport="http")
    async with FaultServer() as idle:
        with pytest.raises(RuntimeError, match="no client has started it"):
            await idle.restart()
        with pytest.raises(RuntimeError, match="the client starts it"):
            await idle.start()
    with pytest.raises(RuntimeError, match="async with"):
        _ = idle.ledger  # its files are gone: an empty list would be a lie
    async with FaultServer(transport="http") as served:
        with pytest.raises(RuntimeError, match="runs already"):
            await served.start()
        with pytest.raises(RuntimeError, match="at its url"):
            _ = served.command


async def test_many_at_once_do_not_meet() -> None:
    async def one(cell: Cell) -> Iterable[str]:
        async with FaultServer(transport=cell[0], era=cell[1]) as server:  # type: ignore[arg-type]
            return [server.home, server.declare().url]

    told = await asyncio.gather(*(one(cell) for cell in CELLS))
    assert len({home for home, _ in told}) == len(CELLS)
