"""HTTP servers that do worse than fail: what one of their answers may cost, and whom."""

from __future__ import annotations

import asyncio
import gzip
import logging
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from servers.http_peer import JSON, Answer, Peer, peer, refusal, reply
from servers.support import hosting, source, until
from toolcrib.content import ToolResult
from toolcrib.policy import Policies, Policy
from toolcrib.sources.mcp import McpServer
from toolcrib.sources.mcp.auth import Bearer
from toolcrib.sources.mcp.settings import ServerSettings
from toolcrib.sources.mcp.wire import endpoint

Writes = Callable[[asyncio.StreamWriter], Awaitable[bool]]

ERAS = pytest.mark.parametrize("modern", [False, True], ids=["legacy", "modern"])


def declared(one: Peer, url: str = "", **settings: Any) -> McpServer:
    bounds = ServerSettings(**{"reconnect_wait": 0.0, "call_timeout": 5.0, **settings})
    return McpServer("peer", "http", url=url or one.url, liveness=0.0, settings=bounds)


def kind(result: ToolResult) -> str:
    return result.failure.kind if result.failure else "ok"


def head(*lines: str) -> bytes:
    return "\r\n".join(["HTTP/1.1 200 OK", *lines, "", ""]).encode()


async def endless(writer: asyncio.StreamWriter) -> bool:
    """A body that goes on for as long as it is read."""
    writer.write(head("Content-Type: application/json", "Transfer-Encoding: chunked"))
    while not writer.is_closing():
        writer.write(b"10000\r\n" + b" " * 0x10000 + b"\r\n")
        await writer.drain()
    return False


def packed(coding: str, body: bytes) -> Writes:
    async def write(writer: asyncio.StreamWriter) -> bool:
        said = ["Content-Type: application/json", f"Content-Encoding: {coding}"]
        writer.write(head(*said, f"Content-Length: {len(body)}") + body)
        return True

    return write


MIB = 1 << 20


@ERAS
@pytest.mark.parametrize(
    "answer",
    [
        endless,
        packed("gzip", gzip.compress(b" " * 4 * MIB)),
        packed("gzip, gzip", gzip.compress(gzip.compress(b" " * 4 * MIB))),
        packed("gzip", b"this was never packed"),
    ],
    ids=["endless", "bomb", "bomb in a bomb", "torn"],
)
async def test_an_answer_without_measure_fails_its_own_call(
    answer: Writes, modern: bool, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(endpoint, "MAX_LINE", MIB)
    async with peer(modern=modern) as one, hosting(source(declared(one))) as host:
        one.on_call = lambda body: (200, JSON, answer)
        assert kind(await host.call("peer__act")) == "invalid_output"
        one.on_call = None
        assert kind(await host.call("peer__act")) == "ok"
        assert host.health("peer").attempts == 1


@ERAS
async def test_a_packed_answer_of_a_decent_size_is_unpacked(modern: bool):
    async with peer(modern=modern) as one, hosting(source(declared(one))) as host:

        def on_call(body: dict[str, Any]) -> Answer:
            said = b'{"jsonrpc":"2.0","id":%d,"result":{"content":[],"resultType":"complete"}}'
            return 200, {}, packed("gzip", gzip.compress(said % body["id"]))

        one.on_call = on_call
        assert kind(await host.call("peer__act")) == "ok"


BROKEN: dict[str, Answer] = {
    "cut": (200, JSON, None),
    "a page": (200, {"Content-Type": "text/html"}, b"<h1>Welcome</h1>"),
    "accepted": (202, {}, b""),
    "nothing": (204, {}, b""),
}


@ERAS
@pytest.mark.parametrize("answer", BROKEN.values(), ids=BROKEN)
async def test_MC02_a_broken_answer_is_an_unknown_outcome_of_its_call_and_of_no_other(
    answer: Answer, modern: bool
):
    async with (
        peer(modern=modern) as one,
        hosting(source(declared(one, reconnect_wait=5.0))) as host,
    ):
        let_go = asyncio.Event()

        async def late(writer: asyncio.StreamWriter) -> bool:
            await let_go.wait()
            body = b'{"jsonrpc":"2.0","id":%d,"result":{"content":[],"resultType":"complete"}}'
            body %= waiting["id"]
            said = f"Content-Length: {len(body)}"
            writer.write(head("Content-Type: application/json", said) + body)
            return True

        waiting: dict[str, Any] = {}

        def on_call(body: dict[str, Any]) -> Answer:
            if waiting:
                return answer
            waiting.update(body)
            return 200, JSON, late

        one.on_call = on_call
        other = asyncio.create_task(host.call("peer__act"))
        await until(one.calls)
        assert kind(await host.call("peer__act")) == "outcome_unknown"
        assert one.calls() == 2  # never sent once more
        let_go.set()
        assert kind(await other) == "ok"
        assert host.health("peer").attempts == 1


@ERAS
async def test_MC02_what_may_be_repeated_is_repeated_on_the_connection_that_survived(modern: bool):
    async with peer(modern=modern) as one, hosting(source(declared(one))) as host:
        host.registry.govern(Policies({"peer__act": Policy(idempotent=True)}))

        def on_call(body: dict[str, Any]) -> Answer:
            one.on_call = None
            return BROKEN["cut"]

        one.on_call = on_call
        assert kind(await host.call("peer__act")) == "ok"
        assert one.calls() == 2
        assert host.health("peer").attempts == 1


@ERAS
async def test_after_a_broken_answer_nothing_is_sent_until_a_probe_is_answered(modern: bool):
    async with peer(modern=modern) as one, hosting(source(declared(one))) as host:
        probe = "server/discover" if modern else "ping"
        one.on_call = lambda body: BROKEN["cut"]
        one.gate = lambda verb, said, body: (0, {}, None) if body.get("method") == probe else None
        assert kind(await host.call("peer__act")) == "outcome_unknown"
        assert kind(await host.call("peer__act")) == "not_available"
        assert one.calls() == 1


@ERAS
async def test_a_connection_that_is_refused_costs_its_call_and_then_the_server_is_probed(
    modern: bool,
):
    async with peer(modern=modern) as one:
        port = one.port
        host_of_it = hosting(source(declared(one)))
        host = await host_of_it.__aenter__()
    assert kind(await host.call("peer__act")) in ("not_available", "outcome_unknown")
    await until(lambda: host.health("peer").state != "ready")
    async with peer(port, modern=modern):
        await host.ready("peer")
        await host_of_it.__aexit__(None, None, None)


@ERAS
async def test_more_slow_calls_than_a_pool_has_connections_run_side_by_side(modern: bool):
    async with peer(modern=modern) as one:
        server = McpServer("peer", "http", url=one.url, liveness=0.0, http_timeout=0.5)
        async with hosting(source(server)) as host:
            one.on_call = lambda body: (0, {}, None)
            calls = [asyncio.create_task(host.call("peer__act")) for _ in range(120)]
            await until(lambda: one.calls() == len(calls))
            assert not any(call.done() for call in calls)
            for call in calls:
                call.cancel()
            await asyncio.wait(calls)
            one.on_call = None
            assert kind(await host.call("peer__act")) == "ok"


async def again_at_once(writer: asyncio.StreamWriter) -> bool:
    """An event stream that tells to be opened again without a pause, and ends."""
    writer.write(head("Content-Type: text/event-stream", "Connection: close"))
    writer.write(b"id: 1\nretry: 0\ndata:\n\n")
    return False


async def one_event(writer: asyncio.StreamWriter) -> bool:
    """An event stream that could be resumed, and ends."""
    writer.write(head("Content-Type: text/event-stream", "Connection: close"))
    writer.write(b"id: 1\nretry: 1\ndata:\n\n")
    return False


async def hangs_up(writer: asyncio.StreamWriter) -> bool:
    """No answer at all."""
    return False


@pytest.mark.parametrize("status", [307, 400, 401, 403, 404, 405, 429, 500, 503])
async def test_MC02_a_refused_resumption_says_nothing_of_the_call_that_was_taken(status: int):
    async with peer() as one, hosting(source(declared(one, reconnect_wait=5.0))) as host:

        def gate(verb: str, headers: dict[str, str], body: dict[str, Any]) -> Answer | None:
            if verb == "GET":
                return (status if "last-event-id" in headers else 405), {}, b""
            return (200, {}, one_event) if body.get("method") == "tools/call" else None

        one.gate = gate
        assert kind(await host.call("peer__act")) == "outcome_unknown"
        assert one.calls() == 1
        assert any("last-event-id" in headers for _, headers, _ in one.requests)


@ERAS
async def test_MC02_what_is_sent_again_with_a_new_token_and_lost_is_not_what_was_refused(
    modern: bool,
):
    tokens = iter(["old", "new", "newer"])
    async with peer(modern=modern) as one:
        server = McpServer(
            "peer",
            "http",
            url=one.url,
            liveness=0.0,
            auth=Bearer(lambda: next(tokens)),
            settings=ServerSettings(reconnect_wait=5.0),
        )

        def gate(verb: str, headers: dict[str, str], body: dict[str, Any]) -> Answer | None:
            if body.get("method") != "tools/call":
                return None
            is_old = headers["authorization"] == "Bearer old"
            return (401, {}, b"") if is_old else (200, {}, hangs_up)

        one.gate = gate
        async with hosting(source(server)) as host:
            assert kind(await host.call("peer__act")) == "outcome_unknown"
            assert one.calls() == 2


async def test_MC02_what_was_told_as_not_sent_is_not_sent_while_its_connection_is_left():
    tokens = iter(["old", "new", "newer"])
    refused, leaving = asyncio.Event(), asyncio.Event()

    async def refuses(writer: asyncio.StreamWriter) -> bool:
        """The rest of the refusal comes when the connection is left."""
        writer.write(b"HTTP/1.1 401 X\r\nContent-Length: 1\r\n\r\n")
        refused.set()
        await leaving.wait()
        writer.write(b"x")
        return True

    async def parts_slowly(writer: asyncio.StreamWriter) -> bool:
        leaving.set()
        await asyncio.sleep(0.3)  # time for what should not come
        return False

    async with peer() as one:
        server = McpServer(
            "peer",
            "http",
            url=one.url,
            liveness=0.0,
            auth=Bearer(lambda: next(tokens)),
            settings=ServerSettings(reconnect_wait=5.0),
        )

        def gate(verb: str, headers: dict[str, str], body: dict[str, Any]) -> Answer | None:
            if verb == "DELETE":
                return 200, {}, parts_slowly
            if body.get("method") != "tools/call" or leaving.is_set():
                return None
            return (404, {}, b"") if refused.is_set() else (401, {}, refuses)

        one.gate = gate
        async with hosting(source(server)) as host:
            call = asyncio.create_task(host.call("peer__act"))
            await refused.wait()
            assert kind(await host.call("peer__act")) == "ok"
            assert kind(await call) == "ok"
            assert one.calls() == 4  # each was refused once, and sent again once


async def test_A10_3_the_refusal_of_a_stream_or_of_a_farewell_gives_no_server_up():
    async with peer() as one:

        def gate(verb: str, headers: dict[str, str], body: dict[str, Any]) -> Answer | None:
            if verb in ("GET", "DELETE"):
                return 403, {}, b""
            if body.get("method") == "tools/list":
                return 200, JSON, refusal(body["id"], -32000, "not yet")
            return None

        one.gate = gate
        async with hosting(source(declared(one))) as host:
            assert host.health("peer").state == "degraded"
            one.gate = None
            await host.ready("peer")


async def test_a_call_that_may_be_repeated_waits_for_the_probe_after_its_own_loss():
    async with peer() as one, hosting(source(declared(one, reconnect_wait=5.0))) as host:
        host.registry.govern(Policies({"peer__act": Policy(idempotent=True)}))
        let_go = asyncio.Event()

        async def late(writer: asyncio.StreamWriter) -> bool:
            await let_go.wait()
            return False

        answers: list[Any] = [late, hangs_up]

        def on_call(body: dict[str, Any]) -> Answer:
            done = reply(body["id"], {"content": []})
            return 200, JSON, answers.pop(0) if answers else done

        one.on_call = on_call
        slow = asyncio.create_task(host.call("peer__act"))
        await until(one.calls)
        assert kind(await host.call("peer__act")) == "ok"  # lost, and a probe answered since
        let_go.set()
        assert kind(await slow) == "ok"
        assert one.calls() == 4
        assert host.health("peer").attempts == 1


def opened(one: Peer) -> int:
    return sum(verb == "GET" for verb, _, _ in one.requests)


async def test_MC10_streams_that_end_at_once_are_not_opened_again_in_a_loop():
    async with peer() as one:

        def gate(verb: str, headers: dict[str, str], body: dict[str, Any]) -> Answer | None:
            is_stream = verb == "GET" or body.get("method") == "tools/call"
            return (200, {}, again_at_once) if is_stream else None

        one.gate = gate
        async with hosting(source(declared(one, call_timeout=1.0))) as host:
            assert kind(await host.call("peer__act")) == "timeout"
            assert 4 < opened(one) < 30  # two streams, each ever more slowly


async def test_MC10_an_answer_that_is_put_off_for_ever_is_an_unknown_outcome(
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setattr(endpoint, "MAX_RESUMED", 4)
    monkeypatch.setattr(endpoint, "LONGEST_PAUSE", 0.01)
    async with peer() as one:

        def gate(verb: str, headers: dict[str, str], body: dict[str, Any]) -> Answer | None:
            if verb == "GET" and "last-event-id" not in headers:
                return 405, {}, b""
            is_stream = verb == "GET" or body.get("method") == "tools/call"
            return (200, {}, again_at_once) if is_stream else None

        one.gate = gate
        async with hosting(source(declared(one, call_timeout=60.0))) as host:
            assert kind(await host.call("peer__act")) == "outcome_unknown"
            assert one.calls() == 1


@ERAS
async def test_RS15_what_is_secret_in_a_url_is_sent_and_in_no_log(
    modern: bool, caplog: pytest.LogCaptureFixture
):
    caplog.set_level(logging.DEBUG)
    async with peer(modern=modern) as one:
        url = one.url.replace("//", "//somebody:hidden-password@") + "?key=hidden-query"
        targets: list[bytes] = []
        one.on_target = targets.append
        async with hosting(source(declared(one, url))) as host:
            assert kind(await host.call("peer__act")) == "ok"
            one.gate = lambda verb, headers, body: (500, {}, b"")
            assert kind(await host.call("peer__act")) == "outcome_unknown"
            await until(lambda: host.health("peer").state != "ready")
            one.gate = None
        assert {target.partition(b"?")[2] for target in targets} == {b"key=hidden-query"}
        assert all("authorization" in headers for _, headers, _ in one.requests)
    assert "HTTP Request: POST http://127.0.0.1" in caplog.text
    assert "hidden" not in caplog.text


@ERAS
async def test_a_redirect_elsewhere_is_not_followed(modern: bool):
    async with peer(modern=modern) as elsewhere, peer(modern=modern) as one:
        async with hosting(source(declared(one))) as host:
            one.on_call = lambda body: (307, {"Location": elsewhere.url}, b"")
            assert kind(await host.call("peer__act")) != "ok"
        assert elsewhere.requests == []
