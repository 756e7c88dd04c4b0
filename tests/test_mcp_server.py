"""What a user declares of MCP servers (rules A9)."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from toolcrib.errors import ConfigurationError, InvalidDefinition
from toolcrib.sources import mcp
from toolcrib.sources.mcp import McpServer, McpSource, Overrides, ServerSettings

WRONG: list[tuple[dict[str, Any], str]] = [
    ({"name": " ", "transport": "stdio", "command": "x"}, "name"),
    ({"name": "a", "transport": ""}, "transport"),
    ({"name": "a", "transport": "sse"}, "stdio or http"),
    ({"name": "a", "transport": "stdio"}, "needs a command"),
    ({"name": "a", "transport": "stdio", "command": "x", "url": "http://h"}, "no url"),
    ({"name": "a", "transport": "stdio", "command": "x", "headers": {"K": "v"}}, "no headers"),
    ({"name": "a", "transport": "stdio", "command": "x\0"}, "NUL"),
    ({"name": "a", "transport": "stdio", "command": "x", "env": {"A=B": "c"}}, "'A=B' cannot be"),
    ({"name": "a", "transport": "stdio", "command": "x", "env": {"": "c"}}, "cannot be the name"),
    ({"name": "a", "transport": "http"}, "needs a url"),
    ({"name": "a", "transport": "http", "url": "http://h", "command": "x"}, "no command"),
    ({"name": "a", "transport": "http", "url": "http://h", "args": ("x",)}, "no args"),
    ({"name": "a", "transport": "http", "url": "http://h", "env": {"K": "v"}}, "no env"),
    ({"name": "a", "transport": "http", "url": "ftp://h"}, "http"),
    ({"name": "a", "transport": "http", "url": "http://"}, "http"),
    ({"name": "a", "transport": "http", "url": "http://h", "http_timeout": 0}, "http_timeout"),
    ({"name": "a", "transport": "http", "url": "http://h", "http_timeout": -1.0}, "http_timeout"),
]


@pytest.mark.parametrize(("given", "said"), WRONG)
def test_A9_1_a_wrong_declaration_is_refused_in_clear_words(given: dict[str, Any], said: str):
    with pytest.raises(InvalidDefinition, match=said):
        McpServer(**given)


def server(**given: Any) -> McpServer:
    return McpServer("a", "stdio", **{"command": "x", **given})


def source(*given: Any, **settings: Any) -> McpSource:
    return McpSource(*given, **settings)


def named(name: Any) -> McpServer:
    return McpServer(name, "stdio", command="x")


stdio: Callable[..., McpSource] = mcp.stdio
http: Callable[..., McpSource] = mcp.http
bounds: Callable[..., ServerSettings] = ServerSettings
overrides: Callable[..., Overrides] = Overrides

OF_ANOTHER_KIND: list[tuple[Callable[[], object], str]] = [
    (lambda: named(3), "name of an MCP server must be a text, not of type int"),
    (lambda: server(args="--foo"), "server 'a': args must be a list of texts, not one text: put"),
    (lambda: server(args=3), "server 'a': args must be a list of texts, not of type int"),
    (lambda: server(args=["-n", 3]), r"server 'a': args\[1\] must be a text, not of type int"),
    (lambda: server(env={"A": 3}), r"server 'a': env\['A'\] must be a text, not of type int"),
    (lambda: server(env={3: "A"}), "server 'a': each name in env must be a text"),
    (lambda: server(env=["A=3"]), "server 'a': env must be a mapping of texts to texts"),
    (lambda: server(cwd=Path("here")), "server 'a': cwd must be a text, not of type .*Path"),
    (lambda: server(prefix=3), "server 'a': prefix must be a text"),
    (
        lambda: server(liveness="30s"),
        r"server 'a': liveness must be a number ≥ 0 \(times are in seconds\)",
    ),
    (lambda: stdio("a", ["cmd"]), "server 'a': command must be a text, not of type list"),
    (lambda: stdio("a", "cmd", ["-n"]), r"server 'a': args\[0\] must be a text, not of type list"),
    (lambda: stdio("a", "cmd", env={"A": 3}), r"server 'a': env\['A'\] must be a text"),
    (lambda: stdio("a", "cmd", env="A=3"), "server 'a': env must be a mapping"),
    (lambda: http("a", None), "server 'a': url must be a text, not of type NoneType"),
    (lambda: http("a", "http://h", headers={"A": 3}), r"server 'a': headers\['A'\] must be a text"),
    (
        lambda: http("a", "http://h", http_timeout="30s"),
        "server 'a': http_timeout must be a number",
    ),
    (
        lambda: bounds(call_timeout="30s"),
        r"call_timeout must be a number > 0 \(times are in seconds\), not",
    ),
    (lambda: bounds(call_timeout=None), "call_timeout must be a number > 0"),
    (lambda: bounds(open_after=2.5), "open_after 2.5 is not a whole number ≥ 1"),
    (lambda: overrides(include=3), "tools: include must be a list of texts"),
    (lambda: overrides(exclude=[3]), r"tools: exclude\[0\] must be a text"),
    (lambda: overrides(rename=["a"]), "tools: rename must be a mapping"),
    (
        lambda: source([mcp.stdio("b", "x")]),
        "source 'mcp' takes a list of McpServer, not McpSource",
    ),
    (lambda: source(server()), "source 'mcp' takes a list of McpServer, not McpServer"),
    (lambda: source("abc"), "source 'mcp' takes a list of McpServer, not str"),
    (lambda: source([server()], name=3), "name of an MCP source must be a text"),
    (lambda: source([server()], list_timeout="30s"), "list_timeout must be a number > 0"),
]


@pytest.mark.parametrize(("declare", "said"), OF_ANOTHER_KIND)
def test_A9_1_what_is_of_another_kind_than_declared_is_refused_in_clear_words(
    declare: Callable[[], object], said: str
) -> None:
    with pytest.raises(InvalidDefinition, match=said):
        declare()


def test_what_is_refused_for_its_kind_is_not_shown() -> None:
    for given in ({"args": "s3cret!"}, {"args": [b"s3cret!"]}, {"env": {"A": b"s3cret!"}}):
        with pytest.raises(InvalidDefinition) as refused:
            server(**given)
        assert "s3cret" not in str(refused.value)


@pytest.mark.parametrize("seconds", [-5.0, float("nan"), float("inf")])
def test_A9_2_liveness_is_positive_or_off(seconds: float):
    with pytest.raises(InvalidDefinition, match="liveness"):
        McpServer("a", "stdio", command="x", liveness=seconds)
    with pytest.raises(InvalidDefinition, match="liveness"):
        McpSource([McpServer("a", "stdio", command="x")], liveness=seconds)
    assert McpServer("a", "stdio", command="x", liveness=0.0).liveness == 0.0


@pytest.mark.parametrize(
    ("prefix", "namespace"), [(None, "files__"), ("fs", "fs__"), ("fs_", "fs_"), ("", "")]
)
def test_A11_1_prefix(prefix: str | None, namespace: str):
    assert McpServer("files", "stdio", command="x", prefix=prefix).namespace == namespace


def test_secrets_stay_out_of_repr():
    stdio = McpServer("a", "stdio", command="x", args=("--key=s3cret!",), env={"K": "s3cret!"})
    http = McpServer("a", "http", url="https://u:s3cret!@h/?k=s3cret!", headers={"A": "s3cret!"})
    assert "s3cret" not in repr(stdio) + repr(http)


def test_RS15_declared_values_are_masked_whole_and_in_part():
    http = McpServer(
        "a", "http", url="https://h/?k=queryval1", headers={"A": "Bearer abc-123456", "B": "no"}
    )
    said = http.masked("token abc-123456 for https://h/?k=queryval1 says no")
    assert "abc-123456" not in said
    assert "queryval1" not in said
    assert said.endswith("says no")


def test_a_server_is_frozen():
    server = McpServer("a", "stdio", command="x", args=["y"])  # type: ignore[arg-type]
    assert server.args == ("y",)
    with pytest.raises(dataclasses.FrozenInstanceError):
        server.name = "b"  # type: ignore[misc]


def test_A9_1_names_are_unique_and_there_is_at_least_one():
    one = McpServer("a", "stdio", command="x")
    with pytest.raises(InvalidDefinition, match="'a'"):
        McpSource([one, one])
    with pytest.raises(InvalidDefinition, match="no server"):
        McpSource([])
    with pytest.raises(InvalidDefinition, match=r"first_backoff 0\.0 is not a number > 0"):
        McpSource([one], first_backoff=0.0)


def test_T_A21_servers_are_sorted_by_name():
    servers = [McpServer(name, "stdio", command="x") for name in "cab"]
    assert [server.name for server in McpSource(servers).servers] == ["a", "b", "c"]


def test_A9_4_stdio_and_http_expand_references_once(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("TOKEN", "${env:OTHER}")
    a = mcp.stdio("a", "x", "--t=${env:TOKEN}", env={"T": "${env:TOKEN}"}).servers[0]
    b = mcp.http("b", "http://h/${env:TOKEN}", headers={"A": "Bearer ${env:TOKEN}"}).servers[0]
    assert (a.args, dict(a.env)) == (("--t=${env:OTHER}",), {"T": "${env:OTHER}"})
    assert (b.url, dict(b.headers)) == ("http://h/${env:OTHER}", {"A": "Bearer ${env:OTHER}"})
    assert McpServer("c", "stdio", command="x", args=("${env:TOKEN}",)).args == ("${env:TOKEN}",)


def test_A9_4_an_unset_variable_is_a_configuration_error(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("NOT_SET_HERE", raising=False)
    with pytest.raises(ConfigurationError, match="NOT_SET_HERE"):
        mcp.http("a", "http://h", headers={"A": "${env:NOT_SET_HERE}"})


def test_the_short_way_names_the_source_after_its_server():
    assert mcp.stdio("fs", "x").name == "fs"
    assert mcp.stdio("fs", "x", prefix="", resources=True, required=True).servers[0].required


async def test_servers_that_cannot_be_configured_are_told_in_health_and_nothing_else() -> None:
    with_one = McpSource(
        [McpServer("b", "stdio", command="x")], unavailable={"c": "no TOKEN", "a": "sse"}
    )
    assert [(one.name, one.state, one.reason) for one in with_one.health()] == [
        ("a", "given_up", "sse"),
        ("b", "connecting", ""),
        ("c", "given_up", "no TOKEN"),
    ]
    alone = McpSource([], unavailable={"a": "sse"})
    published: list[object] = []
    await alone.open(published.append)
    await alone.wait_ready(0.0)
    await alone.close()
    assert [one.state for one in alone.health()] == ["given_up"]
    with pytest.raises(InvalidDefinition, match="two servers are named 'b'"):
        McpSource([McpServer("b", "stdio", command="x")], unavailable={"b": "why"})
