"""`toolcrib import`: another client's file as a deployment file, less its secrets."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from toolcrib.deploy import loads
from toolcrib.deploy.clients import Imported, imported, read_client_file, usable
from toolcrib.errors import ConfigurationError
from toolcrib.sources.mcp import McpServer
from toolcrib.sources.mcp.auth.declared import is_sendable

SECRETS = ("ghp_0123456789abcdef", "hunter2hunter2", "sk-ant-12345678", "pw-of-db", "QUERYKEY1")


def written(folder: Path, content: Any, name: str = ".mcp.json") -> Path:
    file = folder / name
    file.parent.mkdir(exist_ok=True)
    file.write_text(json.dumps(content) if not isinstance(content, str) else content)
    return file


def of(file: Path) -> Imported:
    return imported(read_client_file(file), {"HOME": "/home/u"})


def read_back(text: str, environ: Mapping[str, str]) -> dict[str, McpServer]:
    """The servers of the deployment file `text`."""
    deployment = loads(text, environ, base=Path("/elsewhere"))
    assert deployment.assemblies == ("tools",)
    found: Any = deployment.resources[0].settings
    return {one.name: one for one in found.servers}


def server(folder: Path, declared: Any, environ: Mapping[str, str]) -> McpServer:
    text = of(written(folder, {"mcpServers": {"s": declared}})).text
    return read_back(text, {"HOME": "/home/u", **environ})["s"]


def variables(text: str) -> set[str]:
    return set(re.findall(r"\$\{env:(\w+)", text.partition("resources:")[2]))


FULL = {
    "mcpServers": {
        "github": {
            "command": "npx",
            "args": [
                "-y",
                "@modelcontextprotocol/server-github@2025.4.8",
                "--token",
                SECRETS[0],
                f"--api-key={SECRETS[2]}",
                "--header",
                f"Authorization: Bearer {SECRETS[1]}",
                f"postgresql://app:{SECRETS[3]}@db.example.com/main",
            ],
            "env": {
                "GITHUB_TOKEN": SECRETS[0],
                "LOG_LEVEL": "debug",
                "PORT": "8080",
                "OTHER": "${OTHER_TOKEN}",
                "MODE": "${MODE:-fast}",
                "RISKY": f"${{RISKY:-{SECRETS[2]}}}",
            },
            "alwaysAllow": ["x"],
        },
        "web": {
            "type": "http",
            "url": f"https://mcp.example.com/mcp?key={SECRETS[4]}&v=1",
            "headers": {
                "Authorization": f"Bearer {SECRETS[1]}",
                "X-Api-Key": "Bearer ${WEB_TOKEN}",
                "Accept": "application/json",
            },
        },
        "docker": {"command": "docker", "args": ["run", "-e", f"PW={SECRETS[3]}", "-e", "DEBUG=1"]},
        "old": {"type": "sse", "url": "https://example.com/sse"},
        "off": {"command": "x", "disabled": True},
    }
}


def test_no_secret_of_the_file_is_printed_and_every_one_has_its_variable(tmp_path: Path) -> None:
    found = of(written(tmp_path, FULL))
    everything = repr(found) + found.text + "".join(found.notes)
    assert not [secret for secret in SECRETS if secret in everything]
    assert variables(found.text) == {
        "GITHUB_TOKEN",
        "GITHUB_API_KEY",
        "GITHUB_AUTHORIZATION",
        "GITHUB_USER",
        "OTHER_TOKEN",
        "MODE",
        "RISKY",
        "WEB_KEY",
        "WEB_AUTHORIZATION",
        "WEB_TOKEN",
        "DOCKER_PW",
    }
    assert "LOG_LEVEL: debug" in found.text
    assert '"8080"' in found.text


def test_with_the_variables_set_the_file_means_what_it_meant(tmp_path: Path) -> None:
    environ = {
        "HOME": "/home/u",
        "GITHUB_TOKEN": SECRETS[0],
        "GITHUB_API_KEY": SECRETS[2],
        "GITHUB_AUTHORIZATION": SECRETS[1],
        "GITHUB_USER": f"app:{SECRETS[3]}",
        "OTHER_TOKEN": "o",
        "RISKY": "r",
        "WEB_KEY": SECRETS[4],
        "WEB_AUTHORIZATION": SECRETS[1],
        "WEB_TOKEN": "w",
        "DOCKER_PW": SECRETS[3],
    }
    file = written(tmp_path, FULL)
    meant, unavailable = usable(read_client_file(file), environ, {})
    assert list(unavailable) == ["old"]
    assert read_back(of(file).text, environ) == {one.name: one for one in meant}


def test_what_was_left_out_and_changed_is_said_in_comments(tmp_path: Path) -> None:
    found = of(written(tmp_path, FULL))
    head = found.text.partition("resources:")[0].splitlines()
    assert all(line.startswith("# ") for line in head)
    comments = "\n".join(head)
    assert f"from {tmp_path}/.mcp.json (claude)" in comments
    assert "A server sees PATH, HOME and the like, and its own env" in comments
    assert "left out: 'old':" in comments and "sse is deprecated" in comments
    assert "left out: 'off': disabled in its client" in comments
    assert "'alwaysAllow' is left out: approvals are not taken over" in comments
    assert "# its value stood in the file: set the variable" in found.text
    assert "# its default is left out, it may be a secret" in found.text
    assert found.servers == ("github", "web", "docker")


VSCODE = """{
  // what people are asked for
  "inputs": [
    {"id": "api-key", "type": "promptString", "description": "The key of X", "password": true},
    {"id": "mode", "type": "pickString", "options": ["a"], "default": "a"},
  ],
  "servers": {
    "x": {
      "command": "${workspaceFolder}/bin/x",
      "args": ["--home", "${userHome}/x", "--mode=${input:mode}"],
      "envFile": "${workspaceFolder}/.env",
      "env": {"KEY": "${input:api-key}", "HOST": "${env:HOST}", "PORT": 8080},
      "gallery": true,
    },
  },
  "sandbox": {},
}"""


def test_a_file_of_vs_code_with_inputs_places_and_an_env_file(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text(f"DB_PASSWORD={SECRETS[1]}\nKEY=overruled\n")
    found = of(written(tmp_path, VSCODE, ".vscode/mcp.json"))
    assert SECRETS[1] not in found.text
    assert "(vscode)" in found.text
    assert 'DB_PASSWORD: "${env:DB_PASSWORD}"  # from its envFile: set the variable' in found.text
    assert 'KEY: "${env:API_KEY}"  # was asked for (The key of X): set the variable' in found.text
    assert "'sandbox' is left out" in found.text and "'gallery' is left out" in found.text
    environ = {"HOME": "/home/u", "API_KEY": "k", "HOST": "h", "DB_PASSWORD": "p"}
    one = read_back(found.text, environ)["x"]
    assert (one.command, one.cwd) == (f"{tmp_path}/bin/x", str(tmp_path))
    assert one.args == ("--home", "/home/u/x", "--mode=a")
    assert one.env == {"DB_PASSWORD": "p", "KEY": "k", "HOST": "h", "PORT": "8080"}


def test_an_env_file_that_is_missing_is_noted(tmp_path: Path) -> None:
    content = {"servers": {"x": {"command": "x", "envFile": "none.env"}}}
    found = of(written(tmp_path, content, ".vscode/mcp.json"))
    assert found.servers == ("x",)
    assert any("none.env: cannot be read" in note for note in found.notes)


def test_a_windows_wrapper_is_noted(tmp_path: Path) -> None:
    content = {"mcpServers": {"x": {"command": "cmd", "args": ["/c", "npx", "-y", "pkg"]}}}
    (note,) = of(written(tmp_path, content)).notes
    assert "mcpServers.x.command: a Windows wrapper (cmd /c …)" in note


def test_a_variable_that_is_set_everywhere_keeps_the_value_of_the_file(tmp_path: Path) -> None:
    declared = {
        "command": "x",
        "args": ["--shell", "ghp_0123456789abcdef"],
        "env": {"PATH": "/opt/homebrew/bin:/usr/bin", "TZ": "sk-ant-12345678", "LANG": "${LANG}"},
    }
    text = of(written(tmp_path, {"mcpServers": {"s": declared}})).text
    assert not [secret for secret in SECRETS if secret in text]
    environ = {"PATH": "/bin", "TZ": "UTC", "LANG": "C", "S_TZ": "tz", "S_ARG_2": "shell"}
    found = read_back(text, environ)["s"]
    assert found.env == {"PATH": "/opt/homebrew/bin:/usr/bin", "TZ": "tz", "LANG": "C"}
    assert found.args == ("--shell", "shell")


def test_variables_are_told_apart_by_value(tmp_path: Path) -> None:
    servers = {
        "a": {"command": "x", "env": {"TOKEN": "same-secret"}},
        "b": {"command": "x", "env": {"TOKEN": "same-secret"}},
        "c": {"command": "x", "env": {"TOKEN": "another-one"}},
        "d": {"command": "x", "env": {"KEY": "${D_TOKEN}", "TOKEN": "third"}},
    }
    text = of(written(tmp_path, {"mcpServers": servers})).text
    environ = {"TOKEN": "1", "C_TOKEN": "2", "D_TOKEN": "3", "D_TOKEN_2": "4"}
    found = read_back(text, environ)
    assert [found[name].env["TOKEN"] for name in "abcd"] == ["1", "1", "2", "4"]


def test_CF05_what_is_left_for_the_server_to_put_in_is_written_as_a_literal(
    tmp_path: Path,
) -> None:
    args = ["--token", "${AUTH}", "--header", "Authorization:${AUTH}", "$${AUTH}"]
    declared = {"command": "x", "args": args, "env": {"AUTH": f"Bearer {SECRETS[1]}"}}
    found = server(tmp_path, declared, {"AUTH": "of ours"})
    assert found.args == tuple(args)
    assert found.env == {"AUTH": "of ours"}


def test_which_tools_are_offered_is_taken_over(tmp_path: Path) -> None:
    declared = {"command": "x", "includeTools": ["a", "no", "b: c"], "disabledTools": ["a[1]"]}
    tools = server(tmp_path, declared, {}).tools
    assert (tools.include, tools.exclude) == (("a", "no", "b: c"), ("a[[]1]",))
    assert server(tmp_path, {"command": "x", "tools": []}, {}).tools.include == ()


def test_a_dollar_before_a_reference_has_no_words_of_ours(tmp_path: Path) -> None:
    servers = {"a": {"command": "x", "args": ["$${X}"]}, "b": {"command": "x", "args": ["$X"]}}
    found = of(written(tmp_path, {"mcpServers": servers}))
    assert found.servers == ("b",)
    assert "a $ right before a reference" in found.left_out[0].reason
    assert read_back(found.text, {})["b"].args == ("$X",)


def test_a_file_of_which_nothing_is_left_is_refused_with_every_reason(tmp_path: Path) -> None:
    servers = {"a": {"type": "sse", "url": "http://h"}, "b": {"command": "x", "disabled": True}}
    with pytest.raises(ConfigurationError) as caught:
        of(written(tmp_path, {"mcpServers": servers}))
    first, *others = map(str, caught.value.problems)
    assert first.endswith(".mcp.json: no MCP server that could be imported")
    assert len(others) == 2


@pytest.mark.parametrize(
    "argument",
    [
        "-y",
        "@scope/server-sequential-thinking@1.2.3",
        "/Users/joe/Library/Application Support/x",
        "https://mcp.example.com/v1/mcp",
        "git+https://github.com/acme/tools.git@v2.1.0",
        "--port=8080",
        "8080:80",
        "KEY: ",
        "host:path",
        "--directory",
        "mcp-server-git",
        "",
        "null",
        "yes",
        "- x: y # z",
        "{a: [b]}",
        "\u2028\x7f\ufeff\t'\"\\",
        "😀",
    ],
)
def test_what_is_no_secret_stays_as_it_is(tmp_path: Path, argument: str) -> None:
    assert server(tmp_path, {"command": "x", "args": [argument]}, {}).args == (argument,)


@pytest.mark.parametrize(
    "arguments",
    [
        ["--password", "tiny"],
        ["--auth-token=tiny"],
        ["API_SECRET=tiny"],
        ["--header", "X-Api-Key: tiny"],
        ["-e", "ANYTHING=tiny"],
        ["-u", "joe:tiny"],
        ["-p", "tiny"],
        ["Server=db;User=joe;Password=tiny;Encrypt=yes"],
        ['{"apiKey": "tiny", "mode": "fast"}'],
        ["mysql://root:tiny@localhost/x"],
        ["https://h/mcp?k=tiny"],
        ["https://h/api/s/ZDk4NzY1NDMyMWFiY2RlZg/mcp"],
        ["7f9c24e8b1a04d6f93c5"],
        ["AbCdEfGhIjKlMnOpQrStUvWx"],
        ["github_pat_abcdef"],
        ["eyJhbGciOi.eyJzdWIiOi"],
    ],
)
def test_what_may_be_a_secret_becomes_a_variable(tmp_path: Path, arguments: list[str]) -> None:
    text = of(written(tmp_path, {"mcpServers": {"s": {"command": "x", "args": arguments}}})).text
    assert variables(text)
    body = text.partition("resources:")[2]
    secret = re.compile("tiny|ZDk4|7f9c|AbCd|github_pat|eyJ")
    assert not secret.search(body)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
@given(st.text("abcXYZ019-_.+=!", min_size=8, max_size=40))
def test_a_value_that_is_a_secret_by_its_place_is_printed_nowhere(
    tmp_path: Path, secret: str
) -> None:
    secret = f"q{secret}q"  # not part of any word of the file
    stdio = {"command": "x", "args": ["run", secret, f"<{secret}>"], "env": {"ANY": secret}}
    http = {"url": f"https://h/?any={secret}", "headers": {"X-Any": secret}}
    flags = {"command": "x", "args": ["--token", secret, f"--api-key={secret}"]}
    servers = {"a": stdio, "b": http, "c": flags}
    found = of(written(tmp_path, {"mcpServers": servers}))
    assert secret not in found.text + repr(found.notes)


WILD = st.text(st.characters(exclude_characters="\0\1\2", exclude_categories=["Cs"]), max_size=12)
REFS = st.sampled_from(["${A}", "${B:-d}", '${C:-it\'s "x" #1: y}', "$", "#", ": "])
TEXT = st.lists(WILD | REFS, min_size=1, max_size=3).map("".join)


class Anything(dict[str, str]):
    """An environment in which every variable is set, to its own name."""

    def __contains__(self, name: object) -> bool:
        return True

    def get(self, name: str, default: Any = None) -> Any:
        return f"<{name}>" if name != "HOME" else "/home/u"


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
@given(
    name=WILD.filter(str.strip),
    args=st.lists(TEXT, max_size=3),
    env=st.dictionaries(WILD.filter(lambda k: k and "=" not in k), TEXT, max_size=2),
)
def test_whatever_is_imported_can_be_loaded(
    tmp_path: Path, name: str, args: list[str], env: dict[str, str]
) -> None:
    file = written(tmp_path, {"mcpServers": {name: {"command": "x", "args": args, "env": env}}})
    read = read_client_file(file)
    try:
        text = imported(read, {}).text
    except ConfigurationError:
        return  # a reference that Claude Code does not know, or one we have no words for
    found = read_back(text, Anything())[name]
    assert len(found.args) == len(args)
    assert found.env.keys() == env.keys()
    for given_text, arrived in zip(args, found.args, strict=True):
        if "$" not in given_text and not re.search("<[A-Z0-9_]+>", arrived):
            assert arrived == given_text


# -- imported and read back, a file means what it meant --------------------------------------------

VALUES = {"HOME": "/home/u", "A": "a b", "B": "${A}'\"\\", "EMPTY": ""}
"""What is set where the client's file and ours are read. More may have to be set for ours."""
OWN_REFS = {
    "claude": ["${A}", "${B}", "${EMPTY}", "${NOPE:-d e}", "${NIL:-}", "${A:-https://h:1/}"],
    "vscode": ["${env:A}", "${env:B}", "${env:EMPTY}", "${input:k}", "${input:mode}"],
    "cursor": ["${env:A}", "${env:B}", "${env:EMPTY}"],
}
PLACES = ["${workspaceFolder}", "${workspaceFolderBasename}", "${userHome}", "${/}"]
FILES = {"claude": ".mcp.json", "vscode": ".vscode/mcp.json", "cursor": ".cursor/mcp.json"}
GIVEN = {"k": "of the input"}
INPUTS = [{"id": "k", "password": True}, {"id": "mode", "default": "fast: 1"}]
SECRETISH = st.sampled_from([*SECRETS, "--token", "API_KEY=x1", "u:p@h", "?k=v", "Bearer x"])


@st.composite
def client_files(draw: st.DrawFn) -> tuple[str, dict[str, Any]]:
    """A client's name and the content of a file of it."""
    dialect = draw(st.sampled_from(sorted(FILES)))
    refs = OWN_REFS[dialect] + ([] if dialect == "claude" else PLACES)
    wild = WILD.filter(lambda one: "{" not in one)
    piece = wild | st.sampled_from([*refs, *REMARKABLE]) | SECRETISH
    text = st.lists(piece, max_size=3).map("".join).filter(lambda one: MARK not in one)
    full = [ref for ref in refs if "EMPTY" not in ref and "NIL" not in ref]
    word = st.text(st.characters(min_codepoint=32, max_codepoint=126), max_size=12)
    sent = st.lists(word.filter(lambda one: "{" not in one) | st.sampled_from(full), max_size=3)
    header = sent.map("".join).filter(lambda one: not one or is_sendable(one))
    name = WILD.filter(lambda one: one.strip() and "=" not in one and "{" not in one)
    names = st.lists(WILD, max_size=2)
    start = st.sampled_from(["/opt/", "./", "../", "~/", "~", "x/"])
    rest = st.lists(wild | st.sampled_from(refs), max_size=2).map("".join)
    path = st.just("x") | st.tuples(start, rest).map("".join)
    stdio = st.fixed_dictionaries(
        {"command": path},
        optional={
            "args": st.lists(text, max_size=3),
            "env": st.dictionaries(name, text, max_size=2),
            "cwd": path,
            "disabledTools": names,
        },
    )
    http = st.fixed_dictionaries(
        {"url": st.tuples(st.sampled_from(["https://h/", "http://h:8/"]), text).map("".join)},
        optional={"headers": st.dictionaries(name, header, max_size=2), "includeTools": names},
    )
    servers = draw(st.dictionaries(name, stdio | http, min_size=1, max_size=3))
    if dialect == "vscode":
        return dialect, {"servers": servers, "inputs": INPUTS}
    return dialect, {"mcpServers": servers}


MARK = "~|~"
REMARKABLE = ["$", "#", ": ", "- ", "{", "[", "'", '"', "null", "yes", "0755", "\n", "\\"]


def texts_of(one: McpServer) -> list[str]:
    return [one.command, one.cwd, one.url, *one.args, *one.env.values(), *one.headers.values()]


def missing(text: str, meant: Mapping[str, McpServer], known: Iterable[str]) -> dict[str, str]:
    """The values of the variables in `text` for which it means what was meant: the solution of one
    equation over all its texts. `known` are the client's own."""
    pattern: list[str] = []
    seen: set[str] = set()
    found = read_back(text, Marks({name: VALUES[name] for name in known}))
    for name in meant:
        for at, part in enumerate("\0".join((*texts_of(found[name]), "")).split(MARK)):
            if at % 2 == 0:
                pattern.append(re.escape(part))
            else:
                pattern.append(f"(?P={part})" if part in seen else f"(?P<{part}>[^\0]*?)")
                seen.add(part)
    whole = "".join(text + "\0" for one in meant.values() for text in texts_of(one))
    solved = re.fullmatch("".join(pattern), whole, re.DOTALL)
    assert solved is not None
    return solved.groupdict()


class Filled(dict[str, str]):
    """Variables, and something for those that are neither set nor have a default."""

    def get(self, name: str, default: Any = None) -> Any:
        return super().get(name, "?" if default is None else default)


class Marks(dict[str, str]):
    """Every other variable is set too, to a mark that no text of a file holds."""

    def get(self, name: str, default: Any = None) -> Any:
        return super().get(name, f"{MARK}{name}{MARK}")


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=100)
@example(("cursor", {"mcpServers": {"a": {"command": "./${userHome}", "cwd": "~/"}}}))
@example(("claude", {"mcpServers": {"a": {"command": "~", "args": ["${A}$"], "cwd": "./"}}}))
@given(client_files())
def test_imported_and_read_back_a_file_means_what_it_meant(
    tmp_path: Path, file: tuple[str, dict[str, Any]]
) -> None:
    dialect, content = file
    read = read_client_file(written(tmp_path, content, FILES[dialect]))
    servers, unavailable = usable(read, VALUES, GIVEN)
    meant = {one.name: one for one in servers}
    try:
        done = imported(read, VALUES)
    except ConfigurationError:
        return  # none of its servers has words of ours
    unset = [name for name in done.servers if "is not set" in unavailable.get(name, "")]
    assert {*done.servers} <= {*meant, *unset}
    lost = [one.reason for one in done.left_out if one.name in meant]
    assert all("a $ right before" in why or "another user" in why for why in lost)
    kept = {name: meant[name] for name in done.servers if name in meant}
    known = {
        "HOME",
        *(name for name in VALUES if re.search(rf"\$\{{(env:)?{name}\b", str(content))),
    }
    found = read_back(done.text, Filled(VALUES | missing(done.text, kept, known)))
    assert {name: found[name] for name in kept} == kept
