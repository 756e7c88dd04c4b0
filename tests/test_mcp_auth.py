"""Credentials of MCP servers against a real authorization server on loopback (MC15, CF10, A9)."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import signal
import socket
import stat
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import httpx2
import pytest
from mcp.shared.auth import OAuthClientInformationFull

from servers.http_peer import peer
from servers.logins import (
    HINT,
    add,
    browse,
    log_in,
    logged_in,
    machine,
    of_a_person,
    refuse_calls,
    said,
    web,
)
from servers.oauth import MACHINE, OAuthPeer, Seen, method_of, oauth_peer, redirected
from servers.support import BOUND, NO_WAIT, hosting, source, until
from toolcrib.deploy import loads
from toolcrib.errors import ConfigurationError, InvalidDefinition, NotAvailable
from toolcrib.sources.mcp import McpServer
from toolcrib.sources.mcp.auth import (
    AuthorizationCode,
    Bearer,
    ClientCredentials,
    FileStore,
    Grant,
    MemoryStore,
    TokenKey,
)
from toolcrib.sources.mcp.auth.oauth.account import default_store
from toolcrib.sources.mcp.auth.oauth.challenge import (
    is_challenge,
    is_worth_renewing,
    wanted_scopes,
)
from toolcrib.sources.mcp.login import login, logout

KEY = TokenKey("http://server/mcp", "client", "read")


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


# --- what is declared


@pytest.mark.parametrize(
    "auth",
    [
        Bearer("t0ken-s3cret"),
        ClientCredentials("me", "t0ken-s3cret"),
        ClientCredentials("me", private_key="t0ken-s3cret", method="private_key_jwt"),
        AuthorizationCode("me", "t0ken-s3cret"),
    ],
)
def test_RS15_no_repr_of_a_declaration_shows_its_secret(auth: Any):
    server = McpServer("web", "http", url="http://h/mcp", auth=auth)
    assert "s3cret" not in f"{auth!r} {server!r}"
    assert "s3cret" not in server.masked("the server says: bad t0ken-s3cret")


def test_RS15_no_repr_of_a_grant_shows_a_token():
    grant = Grant("t0ken-s3cret", "s3cret-too", client={"client_secret": "s3cret-three"})
    assert "s3cret" not in repr(grant)


@pytest.mark.parametrize(
    ("kind", "values", "message"),
    [
        (Bearer, {"token": " "}, "blank"),
        (ClientCredentials, {"client_id": ""}, "need a client_id"),
        (ClientCredentials, {"client_id": "a"}, "needs a client_secret"),
        (ClientCredentials, {"client_id": "a", "method": "private_key_jwt"}, "a private_key"),
        (ClientCredentials, {"client_id": "a", "client_secret": "b", "method": "x"}, "unknown"),
        (ClientCredentials, {"client_id": "a", "client_secret": "b", "issuer": "x"}, "issuer"),
        (AuthorizationCode, {"client_secret": "b"}, "without its client_id"),
        (AuthorizationCode, {"client_metadata_url": "http://h/x"}, "https"),
        (AuthorizationCode, {"redirect_port": 70000}, "is no port"),
        (AuthorizationCode, {"person": browse}, "redirect_port"),
    ],
)
def test_A9_a_declaration_that_cannot_be_right_is_refused(kind: Any, values: Any, message: str):
    with pytest.raises(InvalidDefinition, match=message):
        kind(**values)


def test_A9_auth_excludes_stdio_and_an_authorization_header():
    with pytest.raises(InvalidDefinition, match="takes no auth"):
        McpServer("s", "stdio", command="x", auth=Bearer("token"))
    headers = {"authorization": "Bearer x"}
    with pytest.raises(InvalidDefinition, match="both auth and an Authorization header"):
        McpServer("s", "http", url="http://h/", headers=headers, auth=Bearer("token"))


FILE = """
resources:
  remote:
    kind: tool.Source
    impl: mcp
    settings:
      servers:
        - {{name: web, transport: http, url: "{url}", auth: {auth}}}
"""


@pytest.mark.parametrize(
    ("auth", "made"),
    [
        ("{type: bearer, token: fixed}", Bearer("fixed")),
        (
            "{type: client_credentials, client_id: a, client_secret: '${env:S}', scope: x}",
            ClientCredentials("a", "s3cret", scope="x"),
        ),
        (
            "{type: authorization_code, redirect_port: 8123, scope: 'a b'}",
            AuthorizationCode(redirect_port=8123, scope="a b"),
        ),
    ],
)
def test_a_file_declares_each_type_of_auth(auth: str, made: Any):
    deployment = loads(FILE.format(url="http://h/mcp", auth=auth), {"S": "s3cret"})
    assert deployment.resources[0].settings.servers[0].auth == made


@pytest.mark.parametrize(
    ("auth", "message"),
    [
        ("{token: x}", "missing required key 'type'"),
        ("{type: basic}", "expected one of bearer, client_credentials, authorization_code"),
        ("{type: bearer}", "missing required key 'token'"),
        ("{type: bearer, token: '${env:T}'}", "'T' is not set"),
        ("{type: bearer, token: x, scope: y}", "unknown key 'scope'"),
        ("{type: authorization_code, client_secret: '${env:S}'}", "without its client_id"),
    ],
)
def test_a_file_with_a_wrong_auth_says_what_is_wrong_and_no_value(auth: str, message: str):
    with pytest.raises(ConfigurationError, match=message) as caught:
        loads(FILE.format(url="http://h/mcp", auth=auth), {"S": "s3cret"})
    assert "s3cret" not in str(caught.value)


# --- pure decisions


def answer(status: int, header: str = "") -> httpx2.Response:
    return httpx2.Response(status, headers={"WWW-Authenticate": header} if header else {})


def test_MC15_only_a_401_or_a_missing_scope_is_a_reason_to_renew():
    assert is_challenge(answer(401))
    assert is_challenge(answer(403, 'Bearer error="insufficient_scope"'))
    assert not is_challenge(answer(403))
    assert not is_challenge(answer(500))


def test_MC15_a_scope_is_asked_for_once():
    challenge = answer(403, 'Bearer error="insufficient_scope", scope="read write"')
    assert wanted_scopes(challenge, "read") == {"write"}
    assert not wanted_scopes(challenge, "read write")
    assert not wanted_scopes(answer(403), "read")


def test_MC15_a_token_that_was_refused_as_soon_as_it_was_issued_is_not_renewed_at_once():
    assert is_worth_renewing(None, now=100.0)
    assert not is_worth_renewing(99.0, now=100.0)
    assert is_worth_renewing(1.0, now=100.0)


def test_a_token_is_renewed_shortly_before_its_end_and_a_short_one_not_at_once():
    grant = Grant("a", expires_at=1100.0, obtained_at=100.0)
    assert not grant.is_expired(now=1080.0)
    assert grant.is_expired(now=1095.0)
    assert not Grant("a", expires_at=105.0, obtained_at=100.0).is_expired(now=104.0)
    assert not Grant("a").is_expired(now=1e12)


def test_a_grant_survives_its_json_and_nothing_else_passes_for_one():
    grant = Grant("a", "r", 5.0, 1.0, "s", {"client_id": "c"}, {"issuer": "i"}, {"resource": "u"})
    assert Grant.from_json(json.loads(json.dumps(grant.to_json()))) == grant
    assert Grant.from_json({"access_token": "a"}) == Grant("a")
    for wrong in (None, [], {}, {"access_token": 1}, {"access_token": "a", "client": "c"}):
        assert Grant.from_json(wrong) is None


# --- where tokens are kept


def rights(path: Path) -> int:
    return stat.S_IMODE(path.lstat().st_mode)


@pytest.fixture
def open_umask() -> Iterator[None]:
    before = os.umask(0)
    yield
    os.umask(before)


@pytest.mark.usefixtures("open_umask")
async def test_CF10_the_file_of_tokens_is_never_readable_by_others(
    home: Path, monkeypatch: pytest.MonkeyPatch
):
    seen: list[int] = []

    def look(real: Any) -> Any:
        def looking(*args: Any, **more: Any) -> Any:
            seen.extend(rights(one) for one in home.iterdir())
            done = real(*args, **more)
            seen.extend(rights(one) for one in home.iterdir())
            return done

        return looking

    for name in ("fsync", "replace", "close"):
        monkeypatch.setattr(os, name, look(getattr(os, name)))
    store = FileStore()
    await store.set(KEY, Grant("one"))
    await store.set(KEY, Grant("two"))
    assert set(seen) == {0o600} and rights(home) == 0o700
    assert await store.get(KEY) == Grant("two")
    assert {one.name for one in home.iterdir()} == {"tokens.json", "tokens.lock"}


async def test_CF10_a_file_others_could_read_is_narrowed_with_a_warning(
    home: Path, logs: pytest.LogCaptureFixture
):
    store = FileStore()
    await store.set(KEY, Grant("one-token"))
    store.path.chmod(0o644)
    home.chmod(0o755)
    assert await store.get(KEY) == Grant("one-token")
    assert rights(store.path) == 0o600
    await store.set(KEY, Grant("two-token"))
    assert rights(home) == 0o700
    assert "could be read by others (044)" in said(logs) and "token" not in said(logs).replace(
        "tokens.json", ""
    )


async def test_CF10_a_link_in_the_place_of_the_file_is_refused(home: Path, tmp_path: Path):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.write_text("{}")
    home.mkdir(parents=True)
    (home / "tokens.json").symlink_to(elsewhere)
    with pytest.raises(ConfigurationError, match=r"tokens\.json"):
        await FileStore().get(KEY)


async def test_CF10_a_file_of_somebody_else_is_refused(home: Path, monkeypatch: pytest.MonkeyPatch):
    await FileStore().set(KEY, Grant("one"))
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    with pytest.raises(ConfigurationError, match="belongs to somebody else"):
        await FileStore().get(KEY)


async def test_a_file_of_tokens_that_is_not_understood_is_not_overwritten(home: Path):
    home.mkdir(parents=True)
    (home / "tokens.json").write_text("{half")
    with pytest.raises(ConfigurationError, match="holds no tokens of ours"):
        await FileStore().set(KEY, Grant("one"))
    assert (home / "tokens.json").read_text() == "{half"


async def test_a_write_that_fails_leaves_the_old_tokens_and_no_other_file(
    home: Path, monkeypatch: pytest.MonkeyPatch
):
    store = FileStore()
    await store.set(KEY, Grant("one"))

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(ConfigurationError, match="cannot be kept"):
        await store.set(KEY, Grant("two"))
    assert await store.get(KEY) == Grant("one")
    assert {one.name for one in home.iterdir()} == {"tokens.json", "tokens.lock"}


async def test_tokens_are_kept_by_server_client_and_scope_and_forgotten_once():
    store = FileStore()
    others = [
        TokenKey("http://other/mcp", "client", "read"),
        TokenKey("http://server/mcp", "", "read"),
        TokenKey("http://server/mcp", "client", ""),
    ]
    await store.set(KEY, Grant("one"))
    assert [await store.get(other) for other in others] == [None] * 3
    assert (await store.forget(KEY), await store.forget(KEY)) == (True, False)
    assert await store.get(KEY) is None


WRITER = """
import asyncio, sys
from toolcrib.sources.mcp.auth import FileStore, Grant, TokenKey

async def main():
    store = FileStore()
    for number in range(30):
        key = TokenKey("http://server/mcp", f"{sys.argv[1]}-{number}")
        await store.set(key, Grant("x" * 500))

asyncio.run(main())
"""


async def test_two_processes_that_write_at_once_lose_nothing(home: Path):
    writers = [
        await asyncio.create_subprocess_exec(sys.executable, "-c", WRITER, name) for name in "ab"
    ]
    async with asyncio.timeout(6 * BOUND):
        while any(writer.returncode is None for writer in writers):
            if (home / "tokens.json").exists():
                json.loads((home / "tokens.json").read_text())  # valid at any time
            await asyncio.sleep(0.01)
    assert [writer.returncode for writer in writers] == [0, 0]
    assert len(json.loads((home / "tokens.json").read_text())["grants"]) == 60


class FakeKeyring:
    priority = 5

    def __init__(self) -> None:
        self.held: dict[tuple[str, str], str] = {}

    def get_password(self, service: str, username: str) -> str | None:
        return self.held.get((service, username))

    def set_password(self, service: str, username: str, password: str) -> None:
        self.held[service, username] = password

    def delete_password(self, service: str, username: str) -> None:
        del self.held[service, username]


def install(monkeypatch: pytest.MonkeyPatch, backend: Any) -> None:
    package = ModuleType("keyring")
    package.get_keyring = lambda: backend  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "keyring", package)


async def test_a_real_keyring_keeps_the_tokens_and_no_file_is_made(
    home: Path, monkeypatch: pytest.MonkeyPatch
):
    install(monkeypatch, keyring := FakeKeyring())
    store = default_store()
    await store.set(KEY, Grant("one", "two"))
    assert await default_store().get(KEY) == Grant("one", "two")
    assert [service for service, _ in keyring.held] == ["toolcrib"]
    assert not home.exists()
    assert (await store.forget(KEY), await store.forget(KEY)) == (True, False)


class Plaintext(FakeKeyring):
    """Of a package that keeps it in a file."""

    __module__ = "keyrings.alt.file"


IN_A_ROW = SimpleNamespace(priority=10, backends=[Plaintext(), FakeKeyring()])


@pytest.mark.parametrize("backend", [SimpleNamespace(priority=0), None, Plaintext(), IN_A_ROW])
def test_a_keyring_that_is_none_leaves_the_file(monkeypatch: pytest.MonkeyPatch, backend: Any):
    install(monkeypatch, backend)
    assert isinstance(default_store(), FileStore)


async def test_a_keyring_that_fails_says_so_without_its_words(monkeypatch: pytest.MonkeyPatch):
    keyring = FakeKeyring()

    def locked(*given: str) -> None:
        raise RuntimeError("s3cret")

    keyring.set_password = locked  # type: ignore[method-assign]
    install(monkeypatch, keyring)
    with pytest.raises(ConfigurationError, match=r"keyring of the system failed: RuntimeError$"):
        await default_store().set(KEY, Grant("one"))


# --- clients that ask for themselves


async def test_client_credentials_connect_and_call(oauth: OAuthPeer):
    async with hosting(source(machine(oauth))) as host:
        assert str(await add(host)) == "5"
    assert oauth.count("/token", grant="client_credentials") == 1
    assert oauth.count("/register") == 0


async def test_MC15_a_wrong_client_secret_is_said_at_once_and_never_told(
    oauth: OAuthPeer, logs: pytest.LogCaptureFixture
):
    async with hosting(source(machine(oauth, "wrong-s3cret"))) as host:
        health = host.health("web")
        assert health.state in ("degraded", "open")
        assert "refused the token: invalid_client" in health.reason
    assert "wrong-s3cret" not in said(logs) + repr(health)


async def test_the_secret_goes_to_no_other_issuer_and_nothing_is_logged_but_our_line(
    oauth: OAuthPeer, logs: pytest.LogCaptureFixture
):
    auth = ClientCredentials(*MACHINE, "https://elsewhere.example", store=MemoryStore())
    async with hosting(source(web(oauth, auth))) as host:
        assert "issuer" in host.health("web").reason
    assert oauth.count("/token") == 0
    assert "OAuth flow error" not in said(logs)  # the SDK's, with a traceback that quotes answers


async def test_a_key_that_is_none_is_said_without_it(oauth: OAuthPeer):
    key = "-----BEGIN s3cret-----"
    auth = ClientCredentials(
        "me", issuer=oauth.issuer, private_key=key, method="private_key_jwt", store=MemoryStore()
    )
    async with hosting(source(web(oauth, auth))) as host:
        assert "the authorization failed (InvalidKeyError)" in host.health("web").reason


async def test_an_expired_client_token_is_replaced_and_the_call_goes_on(oauth: OAuthPeer):
    async with hosting(source(machine(oauth))) as host:
        oauth.tokens.revoke()
        assert str(await add(host)) == "5"
        assert host.health("web").attempts == 1
    assert oauth.count("/token") == 2


# --- tokens of a person


async def test_a_source_without_tokens_needs_a_login_and_goes_on_after_it(oauth: OAuthPeer):
    server = of_a_person(oauth)
    async with hosting(source(server)) as host:
        assert host.health("web").reason == HINT
        assert host.health("web").state in ("degraded", "open")
        await log_in(server)
        await host.ready("web")
        assert str(await add(host)) == "5"
    assert await logout(server)
    assert not await logout(server)


async def test_an_expired_token_is_refreshed_before_it_is_sent(oauth: OAuthPeer):
    oauth.tokens.lifetime = 1
    server = of_a_person(oauth)
    await log_in(server)
    oauth.tokens.lifetime = 3600
    oauth.tokens.revoke()
    async with hosting(source(server)) as host:
        assert str(await add(host)) == "5"
    assert oauth.tokens.refreshed == 1
    mcp = [headers for _, path, headers, _ in oauth.seen if path == "/mcp"]
    assert all("authorization" in headers for headers in mcp[1:])  # the first was the login's


async def test_MC15_401_with_an_empty_body_is_one_refresh_and_one_retry(oauth: OAuthPeer):
    async with logged_in(oauth) as host:
        oauth.gate = refuse_calls(401, 3)
        results = [str(await add(host)) for _ in range(4)]
        assert results == ["5"] * 4
        assert (oauth.calls(), oauth.tokens.refreshed) == (5, 1)
        assert host.health("web").attempts == 1


async def test_MC15_always_401_is_one_refresh_and_one_retry_and_then_the_hint(oauth: OAuthPeer):
    async with logged_in(oauth) as host:
        oauth.gate = lambda seen: (401, {}, b"") if method_of(seen) else None
        began = time.monotonic()
        result = await add(host)
        assert result.failure is not None and result.failure.kind == "not_available"
        assert HINT in str(result)
        assert time.monotonic() - began < BOUND / 2
        assert (oauth.calls(), oauth.tokens.refreshed) == (2, 1)
        await until(lambda: host.health("web").attempts >= 4)
        assert host.health("web").reason == HINT
        assert oauth.tokens.refreshed == 1  # every attempt after it is only a question


async def test_MC15_a_refused_refresh_is_the_hint_at_once(oauth: OAuthPeer):
    async with logged_in(oauth) as host:
        oauth.tokens.revoke()
        oauth.tokens.refreshes = False
        result = await add(host)
        assert HINT in str(result)
        assert oauth.count("/token", grant="refresh_token") == 1
        assert HINT in str(await add(host))


async def test_MC15_a_refusal_whose_body_does_not_end_hangs_nobody():
    async with peer() as one:
        one.gate = lambda verb, headers, body: (401, {}, None)
        auth = AuthorizationCode(store=MemoryStore())
        declared = McpServer("web", "http", url=one.url, auth=auth)
        async with hosting(source(declared)) as host:
            assert "not even that to its end" in host.health("web").reason


async def test_MC15_a_403_causes_no_refresh_and_keeps_the_token(oauth: OAuthPeer):
    async with logged_in(oauth) as host:
        oauth.gate = refuse_calls(403, 1, 2)
        for _ in range(2):
            result = await add(host)
            assert result.failure is not None and result.failure.kind == "denied"
        assert str(await add(host)) == "5"
        assert (oauth.calls(), oauth.tokens.refreshed, host.health("web").attempts) == (3, 0, 1)


async def test_MC15_a_403_for_a_scope_is_asked_for_once_by_whoever_can(oauth: OAuthPeer):
    challenge = {"WWW-Authenticate": 'Bearer error="insufficient_scope", scope="write"'}
    async with hosting(source(machine(oauth))) as host:
        oauth.gate = refuse_calls(403, **challenge)
        for _ in range(3):
            result = await add(host)
            assert result.failure is not None and result.failure.kind == "denied"
        assert (oauth.calls(), oauth.count("/token")) == (4, 2)


async def test_MC15_an_authorization_server_that_is_down_costs_no_token(oauth: OAuthPeer):
    server = of_a_person(oauth)
    await log_in(server)
    async with hosting(source(server)) as host:
        oauth.tokens.revoke()
        oauth.gate = lambda seen: (503, {}, b"") if seen[1] == "/token" else None
        assert "authorization server answered HTTP 503" in str(await add(host))
        oauth.gate = lambda seen: None
        assert str(await host.again("web__add", a=2, b=3)) == "5"
    assert oauth.tokens.refreshed == 1


async def test_MC15_calls_refused_together_are_refreshed_once(oauth: OAuthPeer):
    async with logged_in(oauth) as host:
        oauth.tokens.revoke()
        results = await asyncio.gather(*(add(host) for _ in range(8)))
        assert [str(one) for one in results] == ["5"] * 8
        assert oauth.tokens.refreshed == 1


async def test_two_sources_with_one_refresh_token_refresh_once(oauth: OAuthPeer):
    server = of_a_person(oauth)
    await log_in(server)
    async with hosting(source(server)) as one, hosting(source(server)) as other:
        oauth.tokens.revoke()
        results = await asyncio.gather(add(one), add(other))
        assert [str(result) for result in results] == ["5", "5"]
    assert oauth.tokens.refreshed == 1


async def test_a_slow_call_holds_up_no_other(oauth: OAuthPeer):
    async with logged_in(oauth) as host:
        slow = asyncio.create_task(host.call("web__slow"))
        await until(lambda: oauth.calls() == 1)
        assert str(await add(host)) == "5"
        assert not slow.done()
        assert str(await slow) == "slow"


async def test_MC15_no_token_is_in_logs_health_or_results(
    oauth: OAuthPeer, logs: pytest.LogCaptureFixture
):
    async with logged_in(oauth) as host:
        token = next(iter(oauth.tokens.access))
        rpc = {"code": -32602, "message": f"bad {token}"}

        def echo(seen: Seen) -> Any:
            if method_of(seen) != "tools/call":
                return None
            body = {"jsonrpc": "2.0", "id": json.loads(seen[3])["id"], "error": rpc}
            return 200, {"content-type": "application/json"}, json.dumps(body).encode()

        oauth.gate = echo
        echoed = await add(host)
        assert "bad ***" in str(echoed)
        oauth.gate = lambda seen: None
        oauth.tokens.revoke()
        await add(host)
        oauth.tokens.revoke()
        oauth.tokens.refreshes = False
        failed = await add(host)
        await until(lambda: host.health("web").attempts > 1)
        told = "\n".join((said(logs), repr(host.health("web")), str(failed), str(failed.meta)))
    without_echo = told.replace(json.dumps(rpc), "")
    # The browser of this test logs the addresses it visits, codes included; no one else does.
    secrets = [one for one in oauth.tokens.issued if not one.startswith("code-")]
    leaked = [one for one in secrets if one in without_echo]
    assert leaked == []


# --- bearer tokens of somebody else


async def test_MC15_a_token_provider_is_asked_again_once_when_its_token_is_refused():
    given = iter(["old-token", "new-token", "never-token"])
    async with peer() as one:
        valid = {"Bearer old-token"}
        one.gate = lambda verb, headers, body: (
            None if headers.get("authorization") in valid else (401, {}, b"")
        )
        declared = McpServer(
            "web", "http", url=one.url, auth=Bearer(lambda: next(given)), liveness=0.0
        )
        async with hosting(source(declared)) as host:
            assert str(await host.call("web__act")) == "ok"
            valid.clear()
            valid.add("Bearer new-token")
            assert str(await host.call("web__act")) == "ok"
        assert next(given) == "never-token"


async def test_MC15_a_provider_that_repeats_a_refused_token_is_told_of_at_once(
    logs: pytest.LogCaptureFixture,
):
    async def token() -> str:
        return "t0ken-s3cret"

    async with peer() as one:
        one.gate = lambda verb, headers, body: (401, {}, b"")
        auth = Bearer(token)
        declared = McpServer("web", "http", url=one.url, auth=auth, settings=NO_WAIT)
        async with hosting(source(declared)) as host:
            assert host.health("web").reason == "its bearer token is refused: a new one is needed"
            assert "is refused" in str(await host.call("web__act")) or not host.names
    assert "s3cret" not in said(logs)


async def test_MC15_a_provider_that_fails_is_named_without_its_words(
    logs: pytest.LogCaptureFixture,
):
    def token() -> str:
        raise RuntimeError("the vault says s3cret")

    async with peer() as one:
        one.gate = lambda verb, headers, body: (401, {}, b"")
        declared = McpServer("web", "http", url=one.url, auth=Bearer(token))
        async with hosting(source(declared)) as host:
            assert host.health("web").reason == "its provider of tokens failed: RuntimeError"
    assert "s3cret" not in said(logs) and f"RuntimeError at {__file__}:" in said(logs)


async def test_A10_3_a_fixed_token_that_is_refused_fails_the_opening():
    async with peer() as one:
        one.gate = lambda verb, headers, body: (401, {}, b"")
        mcp = source(McpServer("web", "http", url=one.url, auth=Bearer("fixed-token")))
        with pytest.raises(ConfigurationError, match="it answered HTTP 401"):
            await mcp.open(lambda tools: None)
        await mcp.close()


async def test_a_token_from_the_environment_is_read_at_each_connect():
    environ = {"T": "first-token"}
    async with peer() as one:
        auth = "{type: bearer, token: '${env:T}'}"
        deployment = loads(FILE.format(url=one.url, auth=auth), environ)
        settings = deployment.resources[0].settings
        for token in ("first-token", "second-token"):
            environ["T"] = token
            before = len(one.requests)
            async with hosting(source(*settings.servers)) as host:
                assert str(await host.call("web__act")) == "ok"
            said = {headers.get("authorization") for _, headers, _ in one.requests[before:]}
            assert said == {f"Bearer {token}"}


# --- the login of a person


async def test_a_login_with_the_wrong_state_is_refused_and_the_right_one_still_counts(
    oauth: OAuthPeer,
):
    server = of_a_person(oauth)
    pages: list[int] = []

    async def browsing(url: str) -> None:
        async with httpx2.AsyncClient(timeout=BOUND) as browser:
            back = (await browser.get(url)).headers["location"]
            for target in (
                redirected(back, state="guessed"),
                back.replace("/callback", "/other"),
                back,
            ):
                pages.append((await browser.get(target)).status_code)

    tasks: list[asyncio.Task[None]] = []

    async def show(url: str) -> None:
        tasks.append(asyncio.create_task(browsing(url)))

    async with asyncio.timeout(BOUND):
        await login(server, show)
        await tasks[0]
    assert pages == [400, 404, 200]


async def test_a_login_that_is_not_granted_says_so_and_keeps_nothing(oauth: OAuthPeer):
    oauth.tokens.denies = True
    server = of_a_person(oauth)
    with pytest.raises(NotAvailable, match="it was not granted: access_denied"):
        await log_in(server)
    assert not await logout(server)


@pytest.mark.parametrize("method", ["client_secret_basic", "client_secret_post"])
async def test_a_client_that_is_registered_already_logs_in_and_refreshes(
    oauth: OAuthPeer, method: str
):
    oauth.tokens.clients["known"] = OAuthClientInformationFull(
        client_id="known",
        client_secret="known-s3cret",
        redirect_uris=[f"http://127.0.0.1:{(port := free_port())}/callback"],
        token_endpoint_auth_method=method,
        scope="",
    )
    oauth.gate = only_method(oauth, method)
    auth = AuthorizationCode("known", "known-s3cret", redirect_port=port, store=MemoryStore())
    server = web(oauth, auth)
    await log_in(server)
    oauth.tokens.revoke()
    async with hosting(source(server)) as host:
        assert str(await add(host)) == "5"
    assert (oauth.tokens.refreshed, oauth.count("/register")) == (1, 0)


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def only_method(oauth: OAuthPeer, method: str) -> Any:
    """The metadata of an authorization server that takes one method of authentication."""
    metadata = {
        "issuer": oauth.issuer,
        "authorization_endpoint": f"{oauth.issuer}/authorize",
        "token_endpoint": f"{oauth.issuer}/token",
        "token_endpoint_auth_methods_supported": [method],
        "code_challenge_methods_supported": ["S256"],
    }
    said = (200, {"content-type": "application/json"}, json.dumps(metadata).encode())
    return lambda seen: said if seen[1].endswith("oauth-authorization-server") else None


async def test_a_person_of_the_program_is_asked_once_and_not_again_when_it_came_to_nothing(
    oauth: OAuthPeer,
):
    oauth.tokens.denies = True
    asked: list[str] = []

    async def person(url: str) -> str:
        asked.append(url)
        async with httpx2.AsyncClient(timeout=BOUND) as browser:
            return (await browser.get(url)).headers["location"]

    auth = AuthorizationCode(person=person, redirect_port=8123, store=MemoryStore())
    mcp = source(web(oauth, auth))
    with pytest.raises(ConfigurationError, match="it was not granted: access_denied"):
        await mcp.open(lambda tools: None)
    await mcp.close()
    assert len(asked) == 1
    oauth.tokens.denies = False
    async with hosting(source(web(oauth, auth))) as host:
        assert str(await add(host)) == "5"


async def test_a_second_login_does_not_register_again(oauth: OAuthPeer):
    server = of_a_person(oauth)
    await log_in(server)
    await log_in(server)
    assert oauth.count("/register") == 1


async def test_a_login_at_a_server_without_that_auth_says_so(oauth: OAuthPeer):
    with pytest.raises(NotAvailable, match="no auth of type authorization_code"):
        await log_in(web(oauth, Bearer("token")))


async def test_a_login_that_is_cancelled_leaves_nothing(oauth: OAuthPeer, home: Path):
    server = web(oauth, AuthorizationCode())
    shown = asyncio.Event()

    async def show(url: str) -> None:
        shown.set()

    task = asyncio.create_task(login(server, show))
    async with asyncio.timeout(BOUND):
        await shown.wait()
        task.cancel()
        await asyncio.wait([task])
    assert task.cancelled()
    assert not home.exists()


# --- the commands


def written(tmp_path: Path, oauth: OAuthPeer, auth: str = "{type: authorization_code}") -> Path:
    file = tmp_path / "tools.yaml"
    file.write_text(FILE.format(url=oauth.url, auth=auth))
    return file


@asynccontextmanager
async def command(*words: object) -> AsyncIterator[asyncio.subprocess.Process]:
    code = "import sys; from toolcrib.cli import main; sys.exit(main())"
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", code, *map(str, words), stdout=pipe, stderr=pipe
    )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


async def address(process: asyncio.subprocess.Process) -> str:
    """The address that the command prints for a person."""
    assert process.stdout is not None
    while line := await process.stdout.readline():
        if line.startswith(b"http"):
            return line.decode().strip()
    raise AssertionError("no address was printed")


async def finished(*words: object) -> tuple[int | None, str, str]:
    async with command(*words) as process, asyncio.timeout(4 * BOUND):
        out, err = await process.communicate()
        return process.returncode, out.decode(), err.decode()


async def test_login_and_logout_as_a_person_does_them(oauth: OAuthPeer, tmp_path: Path, home: Path):
    file = written(tmp_path, oauth)
    async with command("login", file, "web", "--no-browser") as process, asyncio.timeout(4 * BOUND):
        page = await browse(await address(process))
        assert page.status_code == 200
        out, err = await process.communicate()
    assert (process.returncode, err) == (0, b"")
    assert out.decode().split("\n")[-2] == "logged in to 'web': 2 tools"
    assert rights(home / "tokens.json") == 0o600
    assert not any(token.encode() in out for token in oauth.tokens.issued)
    code, out_, _ = await finished("sources", file)
    assert code == 0 and "ready" in out_
    assert (await finished("logout", file, "web"))[:2] == (
        0,
        "the tokens for 'web' are forgotten\n",
    )
    code, out_, err_ = await finished("sources", file)
    assert code == 1 and "needs login" in out_ + err_


async def test_a_login_that_is_interrupted_leaves_nothing(
    oauth: OAuthPeer, tmp_path: Path, home: Path
):
    file = written(tmp_path, oauth)
    async with command("login", file, "web", "--no-browser") as process, asyncio.timeout(4 * BOUND):
        await address(process)
        process.send_signal(signal.SIGINT)
        _, err = await process.communicate()
    assert process.returncode == 130
    assert b"Traceback" not in err
    assert not home.exists()


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (("wep",), 2, "did you mean 'web'?"),
        (("web", "--source", "other"), 2, "no MCP server 'web'"),
        (("web",), 1, "takes no login"),
    ],
)
async def test_a_login_that_cannot_begin_says_why(
    oauth: OAuthPeer, tmp_path: Path, words: tuple[str, ...], code: int, message: str
):
    file = written(tmp_path, oauth, "{type: bearer, token: x}")
    found, _, err = await finished("login", file, *words)
    assert found == code
    assert message in err and "Traceback" not in err


REFRESHER = """
import asyncio, sys
from toolcrib.sources.mcp import McpServer, McpSource
from toolcrib.sources.mcp.auth import AuthorizationCode

async def main():
    source = McpSource([McpServer("web", "http", url=sys.argv[1], auth=AuthorizationCode())])
    await source.open(lambda tools: None)
    print(source.health()[0].state)
    await source.close()

asyncio.run(main())
"""


async def test_two_processes_that_refresh_at_once_refresh_once(oauth: OAuthPeer, home: Path):
    server = web(oauth, AuthorizationCode())
    await log_in(server)
    oauth.tokens.revoke()
    made = json.loads((home / "tokens.json").read_text())
    for grant in made["grants"].values():
        grant["expires_at"] = 1.0
    (home / "tokens.json").write_text(json.dumps(made))
    pipe = asyncio.subprocess.PIPE
    processes = [
        await asyncio.create_subprocess_exec(
            sys.executable, "-c", REFRESHER, oauth.url, stdout=pipe
        )
        for _ in range(2)
    ]
    async with asyncio.timeout(4 * BOUND):
        outs = [(await process.communicate())[0] for process in processes]
    assert outs == [b"ready\n", b"ready\n"]
    assert oauth.tokens.refreshed == 1
    assert len(json.loads((home / "tokens.json").read_text())["grants"]) == 1
