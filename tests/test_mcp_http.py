"""MCP servers over HTTP: a scripted peer in the same loop, and a server of the SDK (MC groups)."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from servers.http_peer import JSON, Answer, Peer, peer, refusal, reply
from servers.support import BOUND, HERE, NO_WAIT, Host, hosting, source, until
from toolcrib.content import ToolResult
from toolcrib.errors import ConfigurationError
from toolcrib.sources.mcp import McpServer, McpSource, ServerSettings

WAITS = ServerSettings(reconnect_wait=5.0)


def remote(url: str, **declared: Any) -> McpSource:
    declared = {"liveness": 0.0, "settings": NO_WAIT, **declared}
    return source(McpServer("web", "http", url=url, **declared))


def kind(result: ToolResult) -> str:
    return result.failure.kind if result.failure else "ok"


@asynccontextmanager
async def scripted(*, modern: bool = False, **declared: Any) -> AsyncIterator[tuple[Peer, Host]]:
    async with peer(modern=modern) as one, hosting(remote(one.url, **declared)) as host:
        yield one, host


async def test_A9_5_headers_go_with_every_request_and_nowhere_else(
    caplog: pytest.LogCaptureFixture,
):
    caplog.set_level(logging.DEBUG, "toolcrib")
    headers = {"Authorization": "Bearer t0ken-secret"}
    async with scripted(headers=headers) as (one, host):
        assert str(await host.call("web__act")) == "ok"
        assert all(h["authorization"] == "Bearer t0ken-secret" for _, h, _ in one.requests)
    assert one.requests[-1][0] == "DELETE"  # the session is ended, not left to expire
    ours = [r.getMessage() for r in caplog.records if r.name.startswith("toolcrib")]
    assert not any("t0ken" in line for line in ours)


@pytest.mark.parametrize("status", [401, 403])
async def test_A10_3_a_refused_credential_fails_the_opening(status: int):
    async with peer() as one:
        one.gate = lambda verb, headers, body: (status, {}, b"")
        mcp = remote(one.url)
        with pytest.raises(ConfigurationError, match=f"'web': it answered HTTP {status}"):
            await mcp.open(lambda tools: None)
        assert mcp.health()[0].state == "given_up"
        await mcp.close()


async def test_A10_3_words_of_rejection_without_its_code_are_only_words():
    async with peer() as one:
        words = "unauthorized forbidden invalid request unsupported protocol version"
        one.gate = lambda verb, headers, body: (200, JSON, refusal(body.get("id"), -32603, words))
        async with hosting(remote(one.url)) as host:
            assert host.health("web").state == "degraded"
            one.gate = None
            await host.ready("web")


async def test_A10_3_a_refused_connection_is_tried_again_until_it_is_there():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
    async with hosting(remote(f"http://127.0.0.1:{port}/mcp")) as host:
        assert "refuses" in host.health("web").reason
        async with peer(port):
            await host.ready("web")
            assert str(await host.call("web__act")) == "ok"


async def test_MC01_MC02_an_answer_that_is_cut_is_an_unknown_outcome_once():
    async with scripted() as (one, host):
        one.on_call = lambda body: (200, JSON, None)
        assert kind(await host.call("web__act")) == "outcome_unknown"
        assert one.calls() == 1
        one.on_call = None
        assert str(await host.again("web__act")) == "ok"
        assert host.health("web").attempts == 1


async def test_MC01_an_event_stream_that_ends_without_an_event_ends_the_call():
    async with scripted() as (one, host):
        one.on_call = lambda body: (200, {"Content-Type": "text/event-stream"}, b"")
        assert kind(await host.call("web__act")) == "outcome_unknown"
        assert one.calls() == 1


PAGE = (200, {"Content-Type": "text/html"}, b"<form>Who are you?</form>")


@pytest.mark.parametrize("modern", [False, True])
@pytest.mark.parametrize("answer", [(202, {}, b""), PAGE, (200, {}, b"")])
async def test_MC01_MC02_a_success_without_an_answer_is_an_unknown_outcome_once(
    answer: Answer, modern: bool
):
    async with scripted(modern=modern, settings=WAITS) as (one, host):
        one.on_call = lambda body: answer
        result = await host.call("web__act")
        assert kind(result) == "outcome_unknown"
        assert "took the request and gave no answer" in str(result)
        assert one.calls() == 1
        one.on_call = None
        assert str(await host.again("web__act")) == "ok"


@pytest.mark.parametrize("modern", [False, True])
async def test_MC02_a_redirect_to_elsewhere_is_not_followed_and_nothing_was_done(modern: bool):
    async with scripted(modern=modern) as (one, host), peer() as other:
        one.on_call = lambda body: (307, {"Location": other.url}, b"")
        result = await host.call("web__act")
        assert kind(result) == "not_available"
        assert "HTTP 307" in str(result)
        assert other.requests == []
        one.on_call = None
        assert str(await host.call("web__act")) == "ok"
        assert host.health("web").attempts == 1


async def test_a_call_to_a_server_that_is_gone_was_not_sent():
    async with hosting_peer_that_goes() as host:
        result = await host.call("web__act")
        assert kind(result) == "not_available"
        assert "'web'" in str(result)
        await until(lambda: host.health("web").state in ("degraded", "open"))


@asynccontextmanager
async def hosting_peer_that_goes() -> AsyncIterator[Host]:
    one = peer()
    there = await one.__aenter__()
    async with hosting(remote(there.url)) as host:
        await one.__aexit__(None, None, None)
        yield host


@pytest.mark.parametrize(
    "forgotten",
    [
        lambda body: (404, {}, b"gone"),
        lambda body: (404, JSON, refusal(None, -32600, "Session not found")),
        lambda body: (200, JSON, refusal(body["id"], -32600, "Session not found")),
    ],
)
async def test_MC08_a_forgotten_session_is_begun_again(forgotten: Any):
    async with scripted() as (one, host):
        one.on_call = forgotten
        assert kind(await host.call("web__act")) == "not_available"  # refused, so not executed
        one.on_call = None
        assert str(await host.again("web__act")) == "ok"
        assert len(one.sessions) == 2
        fresh = [h for _, h, b in one.requests if b.get("method") == "initialize"]
        assert all("mcp-session-id" not in headers for headers in fresh)


@pytest.mark.parametrize("status", [400, 503])
async def test_MC08_other_ways_to_say_it_are_looked_into(status: int):
    async with scripted() as (one, host):
        one.sessions.clear()

        def gate(verb: str, headers: dict[str, str], body: dict[str, Any]) -> Any:
            known = headers.get("mcp-session-id") in one.sessions
            fresh = body.get("method") in ("initialize", "server/discover")
            return None if known or fresh else (status, {}, b"")

        one.gate = gate
        result = await host.call("web__act")
        assert kind(result) == ("not_available" if status == 400 else "outcome_unknown")
        await until(lambda: host.health("web").attempts == 2)
        assert str(await host.again("web__act")) == "ok"


async def test_MC15_401_in_mid_life_ends_at_once_and_gives_up():
    async with scripted() as (one, host):
        one.gate = lambda verb, headers, body: (401, {}, b"")
        assert kind(await host.call("web__act")) == "not_available"
        await until(lambda: host.health("web").state == "given_up")
        assert "401" in host.health("web").reason
        after = len(one.requests)
        assert kind(await host.call("web__act")) == "not_available"
        assert len(one.requests) == after


async def test_MC15_403_for_one_call_leaves_the_connection():
    async with scripted() as (one, host):
        one.on_call = lambda body: (403, {}, b"")
        result = await host.call("web__act")
        assert kind(result) == "denied"
        assert "'web'" in str(result)
        one.on_call = None
        assert str(await host.call("web__act")) == "ok"
        assert host.health("web").attempts == 1


async def test_RS15_an_error_that_repeats_a_declared_secret_reaches_nobody_whole():
    async with scripted(headers={"Authorization": "Bearer t0ken-secret"}) as (one, host):
        said = "bad token t0ken-secret"
        one.on_call = lambda body: (200, JSON, refusal(body["id"], -32602, said))
        assert str(await host.call("web__act")) == "bad token ***"


async def test_a_large_event_passes():
    async with scripted() as (one, host):
        import json

        def large(body: dict[str, Any]) -> Any:
            text = "x" * 1_500_000  # beyond the SDK's own limit of 1 MiB
            message = reply(body["id"], {"content": [{"type": "text", "text": text}]})
            event = f"event: message\ndata: {json.dumps(message)}\n\n".encode()
            return 200, {"Content-Type": "text/event-stream"}, event

        one.on_call = large
        result = await host.call("web__act")
        assert result.meta["truncation"].original_bytes == 1_500_000  # cut later, by its format


async def test_A10_6_a_ping_that_gets_no_answer_replaces_the_connection():
    async with scripted(liveness=0.05) as (one, host):
        one.sessions.clear()
        await until(lambda: len(one.sessions) == 1)
        await host.ready("web")
        assert str(await host.again("web__act")) == "ok"


# -- a server of the SDK


@asynccontextmanager
async def sdk_server(port: int) -> AsyncIterator[asyncio.subprocess.Process]:
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        str(HERE / "sdk_http.py"),
        str(port),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.DEVNULL,
        env={**os.environ},
    )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.send_signal(signal.SIGKILL)
        await process.wait()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


async def test_MC01_a_modern_server_of_the_sdk_dies_and_comes_back():
    port = free_port()
    mcp = remote(f"http://127.0.0.1:{port}/mcp", liveness=5.0, resources=True)
    async with hosting(mcp) as host:
        async with sdk_server(port):
            await host.ready("web")
            assert host.health("web").era == "2026-07-28"
            assert str(await host.call("web__add", a=2, b=3)) == "5"
            await host.call("web__grow")
            await until(lambda: "web__beta" in host.names)  # MC13, as the SDK's own server tells it
            failed = await host.call("web__fail")
            assert kind(failed) == "tool_error"
            listed = await host.call("web__list_resources")
            assert listed.value[0]["uri"] == "memo://one"
            read = await host.call("web__read_resource", uri="memo://one")
            assert read.value[0]["text"] == "remember"
            assert kind(await host.call("web__read_resource", uri=" ")) == "invalid_arguments"
            call = asyncio.create_task(host.call("web__hang"))
            await host.call("web__add", a=1, b=1)
        # killed: the open stream tells at once, long before any probe
        assert kind(await call) == "outcome_unknown"
        await until(lambda: host.health("web").state in ("degraded", "open"))
        assert kind(await host.call("web__add", a=1, b=1)) == "not_available"
        async with sdk_server(port):
            assert str(await host.again("web__add", a=4, b=5)) == "9"


async def test_cancelling_a_call_reaches_the_server():
    async with scripted() as (one, host):
        one.on_call = lambda body: (0, {}, None)
        call = asyncio.create_task(host.call("web__act"))
        await until(lambda: one.calls() == 1)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        await until(lambda: one.requests[-1][2].get("method") == "notifications/cancelled")
        one.on_call = None
        assert str(await host.call("web__act")) == "ok"
        assert host.health("web").attempts == 1


async def test_cancelling_a_call_leaves_a_modern_link_alive():
    port = free_port()
    async with sdk_server(port), hosting(remote(f"http://127.0.0.1:{port}/mcp")) as host:
        await host.ready("web")
        call = asyncio.create_task(host.call("web__hang"))
        await host.call("web__add", a=1, b=1)
        async with asyncio.timeout(BOUND):
            call.cancel()
            with pytest.raises(asyncio.CancelledError):
                await call
        assert str(await host.call("web__add", a=2, b=2)) == "4"
        assert host.health("web").state == "ready"
