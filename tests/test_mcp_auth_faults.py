"""Authorization servers, stores and people that do what they should not (MC15, CF10, A9)."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import socket
import struct
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx2
import pytest

from servers.http_peer import peer
from servers.logins import (
    HINT,
    add,
    log_in,
    logged_in,
    machine,
    of_a_person,
    refuse_calls,
    said,
    web,
)
from servers.oauth import MACHINE, OAuthPeer, Seen, oauth_peer, redirected
from servers.support import BOUND, NO_WAIT, hosting, source, until
from toolcrib.errors import ConfigurationError, InvalidDefinition, NotAvailable
from toolcrib.sources.mcp import McpServer
from toolcrib.sources.mcp import login as login_module
from toolcrib.sources.mcp.auth import (
    AuthorizationCode,
    Bearer,
    ClientCredentials,
    FileStore,
    Grant,
    MemoryStore,
    TokenKey,
)
from toolcrib.sources.mcp.auth.oauth import exchange, renewal
from toolcrib.sources.mcp.auth.oauth import person as people
from toolcrib.sources.mcp.auth.oauth.provider import is_downgrade
from toolcrib.sources.mcp.auth.stores import locks
from toolcrib.sources.mcp.login import login, logout

KEY = TokenKey("http://server/mcp", "client", "read")
JSON = {"content-type": "application/json"}


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Nobody's own state is touched."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path / "state" / "toolcrib"


@pytest.fixture
def logs(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    caplog.set_level(logging.DEBUG)
    return caplog


@pytest.fixture
async def oauth() -> AsyncIterator[OAuthPeer]:
    async with oauth_peer() as one:
        yield one


def at(path: str, status: int, body: bytes = b"", **headers: str) -> Any:
    """Answers every request to paths that end so."""
    return lambda seen: (status, headers, body) if seen[1].endswith(path) else None


def with_metadata(oauth: OAuthPeer, **changed: Any) -> Any:
    """The metadata of the authorization server, with parts replaced."""
    metadata = {
        "issuer": oauth.issuer,
        "authorization_endpoint": f"{oauth.issuer}/authorize",
        "token_endpoint": f"{oauth.issuer}/token",
        "registration_endpoint": f"{oauth.issuer}/register",
        "code_challenge_methods_supported": ["S256"],
    }
    body = json.dumps({**metadata, **changed}).encode()
    return at("oauth-authorization-server", 200, body, **JSON)


def kept(server: McpServer) -> Grant:
    """The only grant in the memory of its declaration."""
    store: Any = server.auth.store  # type: ignore[union-attr]
    (grant,) = store._grants.values()
    return grant


@asynccontextmanager
async def stranger(answer: Any) -> AsyncIterator[int]:
    """A server of sockets: `answer` is called with each connection's writer."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await reader.readuntil(b"\r\n\r\n")
            await answer(writer)
            await reader.read()  # until the other side goes
        except OSError:
            pass  # the other side went
        finally:
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        yield server.sockets[0].getsockname()[1]


# --- tokens that cannot be sent, and providers that give none


@pytest.mark.parametrize("token", ["t0ken-s3cret\n", "t0ken\r\nX: s3cret", "t0ken-s3crét"])
def test_A9_5_a_token_that_no_header_can_hold_is_refused_without_it(token: str):
    with pytest.raises(InvalidDefinition, match="no header can hold") as caught:
        Bearer(token)
    assert "t0ken" not in str(caught.value)
    headers = {"Authorization": f"Bearer {token}"}
    with pytest.raises(InvalidDefinition, match="'Authorization' cannot be sent") as caught:
        McpServer("web", "http", url="http://h/mcp", headers=headers)
    assert "t0ken" not in str(caught.value)


@pytest.mark.parametrize("given", [None, 5, b"t0ken-s3cret", "", " ", "t0ken\ns3cret"])
async def test_A9_5_a_provider_that_gives_no_token_harms_nobody_and_is_told_of(
    given: Any, logs: pytest.LogCaptureFixture
):
    async with peer() as one:
        one.gate = lambda verb, headers, body: (401, {}, b"")
        declared = McpServer("web", "http", url=one.url, auth=Bearer(lambda: given))
        async with hosting(source(declared)) as host:
            assert "gave none that a header can hold" in host.health("web").reason
    assert "s3cret" not in said(logs)


async def test_a_token_as_a_command_prints_it_is_sent_without_its_line_break():
    async with peer() as one:
        declared = McpServer("web", "http", url=one.url, auth=Bearer(lambda: "t0ken\n"))
        async with hosting(source(declared)) as host:
            assert str(await host.call("web__act")) == "ok"
        assert one.requests[0][1]["authorization"] == "Bearer t0ken"


async def test_MC15_calls_refused_together_ask_a_provider_of_tokens_once():
    given = iter(["old-token", "new-token", "never-token"])
    valid = {"Bearer old-token"}
    async with peer() as one:
        one.gate = lambda verb, headers, body: (
            None if headers.get("authorization") in valid else (401, {}, b"")
        )

        async def token() -> str:
            await asyncio.sleep(0)
            return next(given)

        declared = McpServer("web", "http", url=one.url, auth=Bearer(token), liveness=0.0)
        async with hosting(source(declared)) as host:
            valid.clear()
            valid.add("Bearer new-token")
            results = await asyncio.gather(*(host.call("web__act") for _ in range(6)))
            assert [str(one) for one in results] == ["ok"] * 6
    assert next(given) == "never-token"


# --- what a token endpoint may answer


SOUND = {"access_token": "t0ken", "token_type": "bearer"}


@pytest.mark.parametrize(
    "body",
    [
        b"<html>s3cret</html>",
        b"{}",
        b"[" * 100_000,
        json.dumps(SOUND | {"access_token": "t0k-s3cret\n"}).encode(),
        json.dumps(SOUND | {"access_token": ""}).encode(),
        json.dumps(SOUND | {"expires_in": 10**400}).encode(),
        json.dumps(SOUND | {"expires_in": "s3cret"}).encode(),
    ],
)
async def test_MC15_an_answer_that_is_no_token_is_said_and_not_quoted(
    oauth: OAuthPeer, body: bytes, logs: pytest.LogCaptureFixture
):
    oauth.gate = at("/token", 200, body, **JSON)
    async with hosting(source(machine(oauth))) as host:
        assert "answered with what is no token" in host.health("web").reason
    assert "s3cret" not in said(logs)


@pytest.mark.parametrize(
    ("told", "expires"), [(None, False), (-5, False), (0, False), ("3600", True), (3600, True)]
)
async def test_a_token_says_how_long_it_lives_or_not(oauth: OAuthPeer, told: Any, expires: bool):
    server = machine(oauth)
    access = oauth.tokens._grant(MACHINE[0], [], with_refresh=False).access_token
    body = {**SOUND, "access_token": access, "expires_in": told}
    oauth.gate = at("/token", 200, json.dumps(body).encode(), **JSON)
    async with hosting(source(server)) as host:
        assert str(await add(host)) == "5"
    assert (kept(server).expires_at is not None) == expires


@pytest.mark.parametrize("status", [301, 302, 307, 308, 204])
async def test_MC15_a_redirect_of_the_token_endpoint_is_not_followed_and_not_quoted(
    oauth: OAuthPeer, status: int, logs: pytest.LogCaptureFixture
):
    got: list[str] = []

    async def answer(writer: asyncio.StreamWriter) -> None:
        got.append("a request")

    async with stranger(answer) as port:

        def gate(seen: Seen) -> Any:
            if seen[1] != "/token":
                return None
            echo = b"" if status == 204 else seen[2]["authorization"].encode()
            return status, {"location": f"http://127.0.0.1:{port}/token"}, echo

        oauth.gate = gate
        async with hosting(source(machine(oauth))) as host:
            assert f"authorization server answered HTTP {status}" in host.health("web").reason
    assert not got
    assert "Basic " not in said(logs)


REFUSALS = [
    (503, b""),
    (429, b""),
    (404, b"<html>"),
    (400, b"<html>"),
    (302, b""),
    (200, b"<html>"),
]


@pytest.mark.parametrize(("status", "body"), REFUSALS)
async def test_MC15_what_is_no_verdict_on_a_refresh_token_costs_it_nothing(
    oauth: OAuthPeer, status: int, body: bytes
):
    server = of_a_person(oauth)
    await log_in(server)
    async with hosting(source(server)) as host:
        oauth.tokens.revoke()
        oauth.gate = at("/token", status, body, location="http://127.0.0.1:9/")
        assert "its authorization server" in str(await add(host))
        assert "needs login" not in host.health("web").reason
        oauth.gate = lambda seen: None
        assert str(await host.again("web__add", a=2, b=3)) == "5"
    assert oauth.tokens.refreshed == 1


async def test_MC15_a_refused_refresh_token_is_not_sent_again_by_any_connection(oauth: OAuthPeer):
    async with logged_in(oauth) as host:
        oauth.tokens.revoke()
        oauth.tokens.refreshes = False
        assert HINT in str(await add(host))
        await until(lambda: host.health("web").attempts >= 4)
    assert oauth.count("/token", grant="refresh_token") == 1


async def test_MC15_a_token_that_is_nearly_over_is_sent_where_it_cannot_be_renewed(
    oauth: OAuthPeer,
):
    server = of_a_person(oauth)
    await log_in(server)
    store: Any = server.auth.store  # type: ignore[union-attr]
    (key,) = store._grants
    soon = replace(kept(server), expires_at=time.time() + 5, obtained_at=time.time() - 3600)
    await store.set(key, soon)
    oauth.gate = at("/token", 503)
    async with hosting(source(server)) as host:
        assert str(await add(host)) == "5"


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exchange, "TIMEOUT", 0.3)


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("kind", ["silent", "endless"])
async def test_MC15_an_answer_without_end_hangs_neither_a_call_nor_the_closing(
    oauth: OAuthPeer, kind: str
):
    async def answer(writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n")
        while kind == "endless" and not writer.is_closing():
            writer.write(b" ")
            await writer.drain()
            await asyncio.sleep(0.05)

    server = of_a_person(oauth)
    await log_in(server)
    async with stranger(answer) as port:
        moved(server, f"http://127.0.0.1:{port}/token")
        oauth.tokens.revoke()
        async with asyncio.timeout(BOUND), hosting(source(server)) as host:
            reason = host.health("web").reason
    assert reason == "its authorization server cannot be reached (TimeoutError)"


async def test_MC15_an_answer_larger_than_any_token_is_not_read_to_its_end(
    oauth: OAuthPeer, monkeypatch: pytest.MonkeyPatch
):
    sent = 0

    async def answer(writer: asyncio.StreamWriter) -> None:
        nonlocal sent
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000000\r\n\r\n")
        while not writer.is_closing():
            writer.write(b" " * 65536)
            sent += 65536
            await writer.drain()

    server = of_a_person(oauth)
    await log_in(server)
    async with stranger(answer) as port:
        moved(server, f"http://127.0.0.1:{port}/token")
        oauth.tokens.revoke()
        async with asyncio.timeout(BOUND), hosting(source(server)) as host:
            assert "sent more than" in host.health("web").reason
    assert sent < 100_000_000


def moved(server: McpServer, endpoint: str) -> None:
    """From now on, kept tokens are renewed at `endpoint`."""
    store: Any = server.auth.store  # type: ignore[union-attr]
    for key, grant in list(store._grants.items()):
        store._grants[key] = replace(grant, issuer={**grant.issuer, "token_endpoint": endpoint})


# --- where metadata may lead


def test_A9_5_secrets_do_not_leave_tls_for_another_machine():
    assert is_downgrade("https://h/mcp", "http://login.example/token")
    assert is_downgrade("https://h/mcp", "http://127.0.0.1.evil.example/token")
    assert not is_downgrade("https://h/mcp", "https://login.example/token")
    assert not is_downgrade("https://h/mcp", "http://127.0.0.1:8080/token")
    assert not is_downgrade("https://h/mcp", "http://[::1]:8080/token")
    assert not is_downgrade("http://mcp/mcp", "http://keycloak:8080/token")


async def test_A9_5_an_authorization_server_without_tls_is_not_asked():
    server = McpServer("web", "http", url="https://127.0.0.1:9/mcp", auth=AuthorizationCode())
    provider = people.person(server.url, AuthorizationCode())
    refused = httpx2.Request("GET", "http://login.example/.well-known/openid-configuration")
    with pytest.raises(Exception, match="without TLS"):
        provider.check(refused)


@pytest.mark.parametrize(("status", "said"), [(503, "answered HTTP 503"), (404, "no metadata")])
async def test_A9_5_a_secret_goes_to_no_one_else_where_the_authorization_server_has_no_metadata(
    oauth: OAuthPeer, status: int, said: str
):
    def gate(seen: Seen) -> Any:
        known = ("oauth-authorization-server", "openid-configuration")
        return (status, {}, b"") if seen[1].endswith(known) else None

    oauth.gate = gate
    auth = ClientCredentials(*MACHINE, store=MemoryStore())
    async with hosting(source(web(oauth, auth))) as host:
        assert said in host.health("web").reason
    assert oauth.count("/token") == 0


async def test_an_issuer_that_differs_from_its_metadata_is_refused(oauth: OAuthPeer):
    oauth.gate = with_metadata(oauth, issuer="http://127.0.0.1:9")
    with pytest.raises(NotAvailable, match="issuer mismatch"):
        await log_in(of_a_person(oauth))
    assert oauth.count("/authorize") == 0


@pytest.mark.parametrize("methods", [None, [], ["plain"]])
async def test_A9_an_authorization_server_that_checks_no_PKCE_is_not_used(
    oauth: OAuthPeer, methods: Any
):
    oauth.gate = with_metadata(oauth, code_challenge_methods_supported=methods)
    with pytest.raises(NotAvailable, match="PKCE"):
        await log_in(of_a_person(oauth))
    assert oauth.count("/authorize") == 0


async def test_an_authorization_endpoint_keeps_the_query_it_has(oauth: OAuthPeer):
    endpoint = f"{oauth.issuer}/authorize?tenant=one&state=theirs"
    oauth.gate = with_metadata(oauth, authorization_endpoint=endpoint)
    shown: list[str] = []

    async def show(url: str) -> None:
        shown.append(url)
        raise NotAvailable("enough")

    with pytest.raises(NotAvailable):
        await login(of_a_person(oauth), show)
    assert shown[0].startswith(f"{endpoint}&response_type=code&")


async def test_A9_5_a_redirect_of_the_server_to_another_takes_no_token_along(oauth: OAuthPeer):
    got: list[str] = []

    async def answer(writer: asyncio.StreamWriter) -> None:
        got.append("a request")

    async with stranger(answer) as port, logged_in(oauth) as host:
        oauth.gate = refuse_calls(307, location=f"http://127.0.0.1:{port}/mcp")
        assert (await add(host)).failure is not None
    assert not got


# --- what a person brings back


async def back(url: str) -> str:
    """Where the authorization server sends somebody who grants everything."""
    async with httpx2.AsyncClient(timeout=BOUND) as browser:
        return str((await browser.get(url)).headers["location"])


def of_the_program(oauth: OAuthPeer, person: Any) -> McpServer:
    return web(oauth, AuthorizationCode(person=person, redirect_port=8123, store=MemoryStore()))


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"iss": "http://127.0.0.1:9"}, "iss mismatch"),
        ({"iss": "http://127.0.0.1:9", "error": "hostile_words"}, "iss mismatch"),
        ({"error": "hostile words <b>"}, "it was not granted"),
        ({"state": "guessed"}, "belongs to another login"),
    ],
)
async def test_an_answer_of_somebody_else_is_refused_and_its_words_are_not_told(
    oauth: OAuthPeer, changed: dict[str, str], message: str
):
    async def person(url: str) -> str:
        return redirected(await back(url), **changed)

    mcp = source(of_the_program(oauth, person))
    with pytest.raises(ConfigurationError, match=message) as caught:
        await mcp.open(lambda tools: None)
    await mcp.close()
    assert "hostile" not in str(caught.value)
    assert oauth.count("/token") == 0


async def test_somebody_who_takes_longer_than_a_connection_may_is_asked_once(oauth: OAuthPeer):
    asked: list[str] = []

    async def person(url: str) -> str:
        asked.append(url)
        await asyncio.sleep(3)  # longer than it may take to connect
        return await back(url)

    async with hosting(source(of_the_program(oauth, person), connect_timeout=2)) as host:
        assert str(await add(host)) == "5"
    assert len(asked) == 1


@pytest.mark.parametrize("wrong", [TimeoutError("nobody"), None])
async def test_somebody_who_never_comes_is_asked_once(
    oauth: OAuthPeer, wrong: Any, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(people, "PATIENCE", 0.2)
    asked: list[str] = []

    async def person(url: str) -> str:
        asked.append(url)
        if wrong is not None:
            raise wrong
        await asyncio.Event().wait()
        raise AssertionError

    mcp = source(of_the_program(oauth, person))
    with pytest.raises(ConfigurationError, match="nobody logged in within"):
        await mcp.open(lambda tools: None)
    await mcp.close()
    assert len(asked) == 1


async def test_calls_refused_together_ask_somebody_once_however_long_it_takes(
    oauth: OAuthPeer, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(renewal, "PATIENCE", 0.05)
    asked: list[str] = []

    async def person(url: str) -> str:
        asked.append(url)
        if len(asked) > 1:
            await asyncio.sleep(0.5)
        return await back(url)

    async with hosting(source(of_the_program(oauth, person))) as host:
        assert str(await add(host)) == "5"
        oauth.tokens.revoke()
        oauth.tokens.refreshes = False
        results = await asyncio.gather(*(add(host) for _ in range(5)))
        assert [str(result) for result in results] == ["5"] * 5
    assert len(asked) == 2


async def test_a_login_survives_strangers_at_its_door_and_a_browser_that_leaves_at_once(
    oauth: OAuthPeer, logs: pytest.LogCaptureFixture
):
    tasks: list[asyncio.Task[None]] = []

    def knock(port: int, request: bytes, *, wait: bool = True) -> None:
        with socket.create_connection(("127.0.0.1", port), timeout=BOUND) as one:
            one.sendall(request)
            if wait:
                one.recv(100)
            else:
                one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))

    async def browsing(url: str) -> None:
        target = await back(url)
        port = int(target.split(":")[2].partition("/")[0])
        for line in (b"GET //[ HTTP/1.1", b"nonsense", b"GET /callback?state=%ff HTTP/1.1"):
            await asyncio.to_thread(knock, port, line + b"\r\n\r\n")
        await asyncio.to_thread(knock, port, b"G" * 100_000, wait=False)
        path = target.partition(str(port))[2].encode()
        await asyncio.to_thread(knock, port, b"GET " + path + b" HTTP/1.1\r\n\r\n")

    async def show(url: str) -> None:
        tasks.append(asyncio.create_task(browsing(url)))

    async with asyncio.timeout(BOUND):
        await login(of_a_person(oauth), show)
        await tasks[0]
    assert "Unhandled" not in said(logs)


async def test_a_second_login_at_once_takes_another_port_and_both_end(oauth: OAuthPeer):
    server = of_a_person(oauth)
    await log_in(server)
    await asyncio.gather(log_in(server), log_in(server))
    async with hosting(source(server)) as host:
        assert str(await add(host)) == "5"


async def test_a_declared_port_that_is_taken_is_said(oauth: OAuthPeer):
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        one.listen()
        port = one.getsockname()[1]
        server = web(oauth, AuthorizationCode(redirect_port=port, store=MemoryStore()))
        with pytest.raises(NotAvailable, match=f"port {port} of 127.0.0.1 is taken"):
            await log_in(server)


async def test_a_registration_that_is_over_is_not_used_for_a_login(oauth: OAuthPeer):
    server = of_a_person(oauth)
    await log_in(server)
    store: Any = server.auth.store  # type: ignore[union-attr]
    (key,) = store._grants
    grant = kept(server)
    client = {**grant.client, "client_secret": "old", "client_secret_expires_at": 1}
    await store.set(key, replace(grant, client=client))
    await log_in(server)
    assert oauth.count("/register") == 2


async def test_tokens_of_one_url_are_never_sent_to_another(oauth: OAuthPeer, home: Path):
    await log_in(web(oauth, AuthorizationCode()))
    async with peer() as other:
        other.gate = lambda verb, headers, body: (401, {}, b"")
        moved = McpServer("web", "http", url=other.url, auth=AuthorizationCode(), settings=NO_WAIT)
        async with hosting(source(moved)) as host:
            assert host.health("web").reason == HINT
        assert other.requests
        assert not any("authorization" in headers for _, headers, _ in other.requests)


async def test_a_client_that_does_not_know_the_secret_gets_no_token_of_one_that_does(
    oauth: OAuthPeer,
):
    def declared(secret: str) -> McpServer:
        return web(oauth, ClientCredentials(MACHINE[0], secret, oauth.issuer))

    async with hosting(source(declared(MACHINE[1]))) as host:
        assert str(await add(host)) == "5"
        async with hosting(source(declared(MACHINE[1]))) as again:
            assert str(await add(again)) == "5"
        async with hosting(source(declared("guessed-secret"))) as other:
            assert "invalid_client" in other.health("web").reason
    assert oauth.tokens.granted == 1


async def test_a_registration_that_is_forgotten_over_there_is_made_anew_at_the_next_login(
    oauth: OAuthPeer,
):
    server = of_a_person(oauth)
    await log_in(server)
    oauth.tokens.clients.clear()
    oauth.tokens.revoke()
    async with hosting(source(server)) as host:
        assert host.health("web").reason == HINT
    assert oauth.count("/token", grant="refresh_token") == 1
    await log_in(server)
    assert oauth.count("/register") == 2


async def test_MC15_a_scope_that_only_a_login_can_bring_is_said_once(
    oauth: OAuthPeer, logs: pytest.LogCaptureFixture
):
    challenge = {"WWW-Authenticate": 'Bearer error="insufficient_scope", scope="write"'}
    async with logged_in(oauth) as host:
        oauth.gate = refuse_calls(403, **challenge)
        for _ in range(2):
            result = await add(host)
            assert result.failure is not None and result.failure.kind == "denied"
        assert (oauth.calls(), oauth.tokens.refreshed, host.health("web").attempts) == (2, 0, 1)
    assert said(logs).count("wants scope 'write': add it to its auth, and log in again") == 1


async def test_a_login_at_a_server_that_never_answers_ends(monkeypatch: pytest.MonkeyPatch):
    async def answer(writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nX: ")
        while not writer.is_closing():
            writer.write(b"y")
            await writer.drain()
            await asyncio.sleep(0.05)

    monkeypatch.setattr(login_module, "TIMEOUT", 0.2)
    async with asyncio.timeout(BOUND), stranger(answer) as port:
        server = McpServer("web", "http", url=f"http://127.0.0.1:{port}/", auth=AuthorizationCode())
        with pytest.raises(NotAvailable, match="cannot be reached"):
            await log_in(server)


# --- where tokens are kept


async def test_CF10_a_full_disk_costs_neither_the_new_tokens_nor_the_next_ones(
    oauth: OAuthPeer, monkeypatch: pytest.MonkeyPatch, logs: pytest.LogCaptureFixture
):
    server = web(oauth, AuthorizationCode())
    await log_in(server)

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    async with hosting(source(server)) as host:
        monkeypatch.setattr(os, "fsync", full)
        for refreshed in (1, 2):
            oauth.tokens.revoke()
            assert str(await add(host)) == "5"
            assert oauth.tokens.refreshed == refreshed
    async with hosting(source(server)) as host:  # another connection knows it as well
        oauth.tokens.revoke()
        assert str(await add(host)) == "5"
    assert "tokens cannot be kept" in said(logs)
    assert not any(token in said(logs) for token in oauth.tokens.refresh)


async def test_CF10_a_login_that_cannot_be_kept_says_why(
    oauth: OAuthPeer, home: Path, monkeypatch: pytest.MonkeyPatch
):
    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(ConfigurationError, match=r"cannot be kept: .*No space left"):
        await log_in(web(oauth, AuthorizationCode()))


@pytest.mark.parametrize("expired", [False, True])
async def test_a_store_that_cannot_be_read_any_more_is_told_of_and_mended(
    oauth: OAuthPeer, home: Path, monkeypatch: pytest.MonkeyPatch, expired: bool
):
    server = web(oauth, AuthorizationCode())
    await log_in(server)
    file = home / "tokens.json"
    sound = file.read_text()
    async with hosting(source(server)) as host:
        file.write_text("{half")
        monkeypatch.setattr(Grant, "is_expired", lambda grant: expired)
        oauth.tokens.revoke()
        assert "holds no tokens of ours" in str(await add(host))
        await until(lambda: host.health("web").attempts > 1)
        assert "holds no tokens of ours" in host.health("web").reason
        file.write_text(sound)
        assert str(await host.again("web__add", a=2, b=3)) == "5"


@pytest.mark.parametrize("kind", ["directory", "pipe"])
async def test_CF10_what_is_no_file_in_the_place_of_the_tokens_hangs_nobody(home: Path, kind: str):
    home.mkdir(parents=True)
    path = home / "tokens.json"
    path.mkdir() if kind == "directory" else os.mkfifo(path)
    async with asyncio.timeout(BOUND):
        with pytest.raises(ConfigurationError, match="is no file"):
            await FileStore().get(KEY)


HOLDER = """
import fcntl, sys
file = open(sys.argv[1], "a")
fcntl.flock(file, fcntl.LOCK_EX)
print(1, flush=True)
sys.stdin.read()
"""


@contextmanager
def held(path: Path) -> Iterator[None]:
    """Another process that has the lock and does not let go of it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    pipes: Any = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen([sys.executable, "-c", HOLDER, str(path)], **pipes) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"1\n"
        yield
        assert process.stdin is not None
        process.stdin.close()


async def test_a_lock_that_another_process_does_not_give_back_hangs_nobody(
    home: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(locks, "HELD", 0.1)
    with held(home / "tokens.lock"):
        async with asyncio.timeout(BOUND):
            with pytest.raises(ConfigurationError, match="another process holds it"):
                await FileStore().set(KEY, Grant("one"))
    await FileStore().set(KEY, Grant("one"))


async def test_without_a_home_to_keep_tokens_in_a_server_says_so(
    oauth: OAuthPeer, monkeypatch: pytest.MonkeyPatch
):
    def nowhere() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("XDG_STATE_HOME")
    monkeypatch.setattr(Path, "home", nowhere)
    async with hosting(source(web(oauth, AuthorizationCode()))) as host:
        assert "set XDG_STATE_HOME" in host.health("web").reason


async def test_tokens_do_not_come_back_after_a_logout(
    oauth: OAuthPeer, monkeypatch: pytest.MonkeyPatch
):
    server = of_a_person(oauth)
    await log_in(server)
    async with hosting(source(server)) as host:
        assert await logout(server)
        monkeypatch.setattr(Grant, "is_expired", lambda grant: True)
        assert str(await add(host)) == "5"  # the server still takes what the connection has
        oauth.tokens.revoke()
        assert HINT in str(await add(host))
    assert not await logout(server)
    assert oauth.tokens.refreshed == 0


async def test_a_logout_waits_for_a_refresh_and_takes_what_it_brought(oauth: OAuthPeer):
    server = of_a_person(oauth)
    await log_in(server)
    asked = asyncio.Event()
    loop = asyncio.get_running_loop()

    def gate(seen: Seen) -> Any:
        if seen[1] == "/token":
            loop.call_soon_threadsafe(asked.set)
            time.sleep(0.2)  # in the server's own thread: the answer is on its way that long
        return None

    async with hosting(source(server)) as host:
        oauth.gate = gate
        oauth.tokens.revoke()
        call = asyncio.create_task(add(host))
        async with asyncio.timeout(BOUND):
            await asked.wait()
            assert await logout(server)
            await call
    assert not await logout(server)


def test_a_grant_with_whole_numbers_survives_its_json():
    grant = Grant("a", expires_at=1100, obtained_at=100)
    assert Grant.from_json(json.loads(json.dumps(grant.to_json()))) == grant
