"""What the fault server of `toolcrib.testing` writes, byte for byte, without any client of ours."""

from __future__ import annotations

import asyncio
import http.client
import json
import subprocess
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Any, NamedTuple

import pytest
from mcp import Client, MCPError, StdioServerParameters

from servers.faulty import HTTP, STDIO, Cell, cells
from servers.support import BOUND
from toolcrib.testing import FaultServer

CALL = {"name": "act", "arguments": {"key": "k"}}
DONE = {"content": [{"type": "text", "text": "done"}]}


class Said(NamedTuple):
    """What came back: over stdio there is neither status nor kind. `cut` where it ended early."""

    body: bytes
    status: int = 0
    kind: str = ""
    cut: bool = False


def asked(method: str, params: Any, id: object = 7) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).encode()


async def over_stdio(server: FaultServer, message: bytes) -> Said:
    """All it writes until its input ends."""
    run = await asyncio.to_thread(
        subprocess.run, server.command, input=message + b"\n", capture_output=True, timeout=BOUND
    )
    return Said(run.stdout)


async def over_http(server: FaultServer, message: bytes) -> Said:
    return await asyncio.to_thread(_posted, server.url, message)


def _posted(url: str, message: bytes) -> Said:
    host = url.removeprefix("http://").removesuffix("/mcp")
    line = http.client.HTTPConnection(host, timeout=BOUND)
    line.request("POST", "/mcp", asked("initialize", {}))
    began = line.getresponse()
    began.read()
    session = {"Mcp-Session-Id": began.getheader("Mcp-Session-Id") or ""}
    line.request("POST", "/mcp", message, session)
    try:
        answer = line.getresponse()
    except (ConnectionError, http.client.HTTPException):
        return Said(b"", cut=True)
    kind = answer.getheader("Content-Type") or ""
    try:
        return Said(answer.read(), answer.status, kind)
    except http.client.IncompleteRead as broken:
        return Said(broken.partial, answer.status, kind, cut=True)
    finally:
        line.close()


async def said(cell: Cell, fault: str, message: bytes) -> tuple[Said, list[str]]:
    """What it says to one message under a fault, and what it did."""
    transport, era = cell
    async with FaultServer(fault, transport=transport, era=era) as server:  # type: ignore[arg-type]
        ask = over_http if transport == "http" else over_stdio
        return await ask(server, message), server.ledger


def messages(said: Said) -> list[Any]:
    """Lines, events, or the one body."""
    lines = said.body.splitlines()
    if said.kind == "text/event-stream":
        lines = [line.removeprefix(b"data: ") for line in lines if line.startswith(b"data: ")]
    return [json.loads(line) for line in lines]


def result(era: str) -> dict[str, Any]:
    return {"resultType": "complete", **DONE} if era == "modern" else DONE


@cells()
@pytest.mark.parametrize(
    ("fault", "done", "whole"),
    [("crash_before", [], 0.0), ("crash_during", ["k"], 0.0), ("crash_midway", ["k"], 0.5)],
)
async def test_a_crash_is_before_during_or_amid_the_answer(
    cell: Cell, fault: str, done: list[str], whole: float
) -> None:
    (whole_one, _), (part, ledger) = [
        await said(cell, one, asked("tools/call", CALL)) for one in ("crash_after=0", fault)
    ]
    assert messages(whole_one)[0]["result"] == result(cell[1])
    assert ledger == done
    assert whole_one.body.startswith(part.body)
    assert len(part.body) == int(len(whole_one.body) * whole)
    assert part.cut or cell[0] == "stdio"


@cells()
async def test_wrong_ids_are_the_ones_that_were_asked_for(cell: Cell) -> None:
    for value, id in (("other", 987654321), ("text", "7"), ("null", None), ("none", "absent")):
        answer, ledger = await said(cell, f"wrong_id={value}", asked("tools/call", CALL))
        (message,) = messages(answer)
        assert (message.get("id", "absent"), message["result"]) == (id, result(cell[1]))
        assert ledger == ["k"]


@cells()
async def test_twice_is_the_same_answer_twice_of_one_deed(cell: Cell) -> None:
    answer, ledger = await said(cell, "twice", asked("tools/call", CALL))
    first, second = messages(answer)
    assert first == second
    assert ledger == ["k"]


@cells()
@pytest.mark.parametrize(("value", "is_text"), [("text", True), ("bytes", False)])
async def test_garbage_comes_first_and_is_text_or_not(
    cell: Cell, value: str, is_text: bool
) -> None:
    answer, _ = await said(cell, f"garbage={value}", asked("tools/call", CALL))
    noise, _, rest = answer.body.partition(b"[1, 2")
    assert noise.removeprefix(b"data: ").startswith(b"Welcome!")
    assert (b"\xff\xfe" not in rest) == is_text
    last = [line for line in rest.splitlines() if line][-1]
    assert json.loads(last.removeprefix(b"data: "))["result"] == result(cell[1])


@cells(HTTP)
@pytest.mark.parametrize(
    ("fault", "status", "error"),
    [
        ("forget_session=404", 404, None),
        ("forget_session=400", 400, None),
        ("forget_session=503", 503, None),
        ("forget_session=-32600", 404, (None, -32600)),
        ("forget_session=200", 200, (7, -32600)),
        ("refuse=401", 401, None),
    ],
)
async def test_a_refusal_over_http_has_this_status_and_body(
    cell: Cell, fault: str, status: int, error: tuple[object, int] | None
) -> None:
    answer, ledger = await said(cell, fault, asked("tools/call", CALL))
    assert (answer.status, ledger) == (status, [])
    if error is None:
        assert answer.body == b""
    else:
        (message,) = messages(answer)
        assert (message["id"], message["error"]["code"]) == error


@cells()
async def test_duplicates_and_senseless_entries_are_two_faults(cell: Cell) -> None:
    listing = asked("tools/list", {})
    twice, junk = [
        messages((await said(cell, fault, listing))[0])[0]["result"]["tools"]
        for fault in ("duplicates", "senseless")
    ]
    names = [tool["name"] for tool in twice]
    assert sorted(names) == sorted([*set(names), *set(names)])
    assert [one for one in junk if not (isinstance(one, dict) and one.get("name"))] == junk[-5:-1]


@cells()
async def test_the_same_fault_says_the_same_bytes_every_time(cell: Cell) -> None:
    for fault in ("oversized=2000", "unreadable", "odd_names@any"):
        for message in (asked("tools/call", CALL), asked("tools/list", {})):
            first, second = [await said(cell, fault, message) for _ in range(2)]
            assert first == second


@cells()
async def test_what_is_no_message_is_answered_with_an_error_and_noted(cell: Cell) -> None:
    transport, era = cell
    async with FaultServer(transport=transport, era=era) as server:  # type: ignore[arg-type]
        ask = over_http if transport == "http" else over_stdio
        for junk, code in ((b"{nope", -32700), (b"[1]", -32600), (b"\xff", -32700)):
            answer = await ask(server, junk)
            assert messages(answer)[0]["error"]["code"] == code
            assert server.heard("")[-1]["sent"] == junk.decode(errors="replace")
        wrong = asked("tools/call", {"name": "big", "arguments": {"n": "x"}})
        assert messages(await ask(server, wrong))[0]["result"]["isError"] is True


@cells(STDIO)
async def test_after_hanging_up_it_hears_on_and_writes_nowhere(cell: Cell) -> None:
    call = asked("tools/call", CALL)
    async with FaultServer("hang_up*1", era=cell[1]) as server:  # type: ignore[arg-type]
        one = await asyncio.create_subprocess_exec(
            *server.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        assert one.stdin is not None and one.stdout is not None
        one.stdin.write(call + b"\n")
        assert await one.stdout.read() == b""
        one.stdin.write(call + b"\n" + call + b"\n")
        async with asyncio.timeout(BOUND):
            while len(server.ledger) < 3:
                await asyncio.sleep(0.002)
        assert one.returncode is None
        one.stdin.close()
    await one.wait()


@pytest.fixture(params=[*STDIO, *HTTP], ids="-".join)
async def faulty(request: pytest.FixtureRequest) -> AsyncIterator[FaultServer]:
    async with FaultServer(transport=request.param[0], era=request.param[1]) as server:
        yield server


def client(server: FaultServer) -> Client:
    """The SDK's own."""
    if server.transport == "http":
        return Client(server.url, read_timeout_seconds=BOUND)
    program, *args = server.command
    return Client(StdioServerParameters(command=program, args=args), read_timeout_seconds=BOUND)


async def test_a_bare_sdk_client_meets_the_server_and_its_faults(faulty: FaultServer) -> None:
    async with client(faulty) as peer:
        assert "echo" in [tool.name for tool in (await peer.list_tools()).tools]
        faulty.misbehave("error*1")
        with pytest.raises(MCPError):
            await peer.call_tool("act", {"key": "first"})
        await peer.call_tool("act", {"key": "second"})
    assert faulty.ledger == ["second"]


async def test_a_bare_sdk_client_loses_an_answer_and_the_ledger_knows(faulty: FaultServer) -> None:
    faulty.misbehave("crash_during*1")
    with suppress(MCPError, ExceptionGroup):
        async with client(faulty) as peer:
            await peer.call_tool("act", {"key": "once"})
            pytest.fail("the answer arrived")
    assert faulty.ledger == ["once"]
