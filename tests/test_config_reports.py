"""Reports of group CF, what configurations of others got wrong: for our own deployment file, and
for the files of other clients read through it. CF03's reload is in `test_mcp_reload`."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from servers.support import RAW, hosting
from toolcrib.deploy import load, loads
from toolcrib.errors import ConfigurationError

SERVER = """
resources:
  mcp:
    kind: tool.Source
    impl: mcp
    settings: {{servers: [{server}]}}
"""
CLIENT = "resources: {mcp: {kind: tool.Source, impl: mcp, settings: {config: .mcp.json}}}\n"
STDIO = "name: s, transport: stdio"
TRICKY = 'a"b\nadmin: true #'


def settings_of(text: str, environ: dict[str, str], base: Path | None = None) -> Any:
    return loads(text, environ, file="f.yaml", base=base).resources[0].settings


def own(server: str, environ: dict[str, str] | None = None, base: Path | None = None) -> Any:
    """The server that our own file declares."""
    (found,) = settings_of(SERVER.format(server=server), environ or {}, base).servers
    return found


def refused(server: str, environ: dict[str, str] | None = None) -> str:
    with pytest.raises(ConfigurationError) as caught:
        own(server, environ)
    (fault,) = caught.value.problems
    return str(fault)


def theirs(folder: Path, server: Any, environ: dict[str, str] | None = None) -> Any:
    """The server that a client's file declares, or the reason why it is not available."""
    text = server if isinstance(server, str) else json.dumps(server)
    (folder / ".mcp.json").write_text(f'{{"mcpServers": {{"s": {text}}}}}')
    found = settings_of(CLIENT, environ or {}, folder)
    return found.servers[0] if found.servers else found.unavailable["s"]


def toolcrib(*arguments: str | Path, cwd: str | Path = "/") -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", "from toolcrib.cli import main; main()", *map(str, arguments)]
    environ = {**os.environ, "COLUMNS": "200"}
    return subprocess.run(
        command, capture_output=True, text=True, timeout=60, env=environ, cwd=cwd, check=False
    )


# -- CF03


def test_CF03_every_text_of_a_server_is_expanded_and_no_key() -> None:
    environ = {"X": "v"}
    stdio = own(
        f"{{{STDIO}, command: 'run-${{env:X}}', args: ['<${{env:X}}>'], cwd: '/${{env:X}}',"
        " env: {A: '${env:X}'}, prefix: '${env:X}'}",
        environ,
    )
    assert (stdio.command, stdio.args, stdio.cwd) == ("run-v", ("<v>",), "/v")
    assert (stdio.env, stdio.prefix) == ({"A": "v"}, "v")
    http = own(
        "{name: 'n-${env:X}', transport: http, url: 'https://${env:X}/', headers: {A: '${env:X}'},"
        " tools: {include: ['${env:X}*'], rename: {a: '${env:X}'}, descriptions: {a: '${env:X}'}}}",
        environ,
    )
    assert (http.name, http.url, http.headers) == ("n-v", "https://v/", {"A": "v"})
    assert (http.tools.include, http.tools.rename) == (("v*",), {"a": "v"})
    assert http.tools.descriptions == {"a": "v"}
    assert "a key holds no reference" in refused(
        f"{{{STDIO}, command: x, env: {{'${{env:X}}': b}}}}", environ
    )


def test_CF03_every_text_of_a_clients_server_is_expanded_and_no_key(tmp_path: Path) -> None:
    declared = {
        "command": "run-${X}",
        "args": ["<${X}>"],
        "cwd": "/${X}",
        "env": {"A": "${X}", "${X}": "b"},
    }
    stdio = theirs(tmp_path, declared, {"X": "v"})
    assert (stdio.command, stdio.args, stdio.cwd) == ("run-v", ("<v>",), "/v")
    assert stdio.env == {"A": "v", "${X}": "b"}
    http = theirs(tmp_path, {"url": "https://${X}/", "headers": {"A": "${X}"}}, {"X": "v"})
    assert (http.url, http.headers) == ("https://v/", {"A": "v"})


def test_CF03_a_changed_variable_or_file_counts_at_the_next_load(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ours, client = tmp_path / "f.yaml", tmp_path / ".mcp.json"
    ours.write_text(CLIENT)
    client.write_text('{"mcpServers": {"s": {"command": "x", "args": ["${CF03_X}"]}}}')
    seen: list[Any] = []
    for value in ("one", "two"):
        monkeypatch.setenv("CF03_X", value)
        found: Any = load(ours).resources[0].settings
        seen += found.servers[0].args
    client.write_text('{"mcpServers": {"t": {"command": "y"}}}')
    found = load(ours).resources[0].settings
    assert (seen, found.servers[0].name) == (["one", "two"], "t")


# -- CF04


@pytest.mark.parametrize("value", [TRICKY, "${Y}", "${env:Y}", "$${X}", "", "'", "\\", "{a: [b"])
def test_CF04_a_value_is_one_text_whatever_it_holds(tmp_path: Path, value: str) -> None:
    environ = {"X": value, "Y": "never"}
    args = "['${env:X}', ${env:X}, '<${env:X}>', '${env:NOPE:-d}', $X]"
    found = own(f"{{{STDIO}, command: x, args: {args}}}", environ)
    assert found.args == (value, value, f"<{value}>", "d", "$X")
    declared = {"command": "x", "args": ["${X}", "<${X}>", "${NOPE:-d}", "$X"]}
    assert theirs(tmp_path, declared, environ).args == (value, f"<{value}>", "d", "$X")


def test_CF04_a_reference_within_a_reference_is_refused_by_name_of_its_place(
    tmp_path: Path,
) -> None:
    fault = refused(f"{{{STDIO}, command: x, args: ['${{env:A:-${{env:B}}}}']}}", {"B": "b"})
    assert "args[0]: a reference within a reference" in fault
    reason = theirs(tmp_path, {"command": "x", "args": ["${A:-${B}}"]}, {"B": "b"})
    assert "mcpServers.s.args[0]: " in reason and "one within another reference" in reason


# -- CF05


async def test_CF05_a_placeholder_meant_for_the_child_reaches_it(tmp_path: Path) -> None:
    file = tmp_path / "f.yaml"
    args = f"['-S', '-I', '{RAW}', 'token=$${{CHILD_VAR}}']"
    server = f"{{{STDIO}, command: '{sys.executable}', args: {args}, env: {{A: '$${{CHILD}}'}}}}"
    file.write_text(SERVER.format(server=server))
    source = load(file).build("mcp").resource
    assert source.servers[0].args[-1] == "token=${CHILD_VAR}"
    async with hosting(source) as host:
        assert json.loads(str(await host.call("s__env")))["A"] == "${CHILD}"


async def test_CF05_what_is_no_reference_to_the_client_reaches_the_child(tmp_path: Path) -> None:
    """Claude Code has no escape: `$${X}` is a dollar and a value, as it is there."""
    declared = {
        "command": sys.executable,
        "args": ["-S", "-I", str(RAW)],
        "env": {"A": "$CHILD %CHILD% $(CHILD)", "B": "$${X}"},
    }
    (tmp_path / ".mcp.json").write_text(json.dumps({"mcpServers": {"s": declared}}))
    source = loads(CLIENT, {"X": "v"}, base=tmp_path).build("mcp").resource
    async with hosting(source) as host:
        environ = json.loads(str(await host.call("s__env")))
    assert (environ["A"], environ["B"]) == ("$CHILD %CHILD% $(CHILD)", "$v")


# -- CF07


def test_CF07_words_stay_words_and_quoted_booleans_never_turn_true() -> None:
    found = own(
        f"{{{STDIO}, command: on, args: [NO, off, y, n], env: {{y: allow, n: deny, on: NO}},"
        " resources: 'false'}"
    )
    assert (found.command, found.args) == ("on", ("NO", "off", "y", "n"))
    assert found.env == {"y": "allow", "n": "deny", "on": "NO"}
    assert found.resources is False
    assert "expected true or false" in refused(f"{{{STDIO}, command: x, required: yes}}")
    assert "name: expected a text, got nothing" in refused(
        "{name: null, transport: stdio, command: x}"
    )
    named = "{name: NO, transport: stdio, command: x, tools: {rename: {y: on, n: NO}}}"
    assert own(named).tools.rename == {"y": "on", "n": "NO"}


def test_CF07_so_in_the_file_of_a_client(tmp_path: Path) -> None:
    declared = {"command": "on", "args": ["NO", "true"], "env": {"y": "off"}}
    found = theirs(tmp_path, declared)
    assert (found.command, found.args, found.env) == ("on", ("NO", "true"), {"y": "off"})
    no_text, no_boolean = "expected a text, got true or false", "expected true or false, got a text"
    for wrong, reason in (
        ({"env": {"A": True}}, no_text),
        ({"args": [False]}, no_text),
        ({"disabled": "false"}, no_boolean),
    ):
        assert reason in theirs(tmp_path, {"command": "x", **wrong})


# -- CF08

NUMBERS = ("0755", "08080", "12:30", "1.10", "2026-01-02", "1_000", "1e3", "0x1F", "010")


def test_CF08_a_text_keeps_its_digits_and_a_number_is_decimal_or_refused() -> None:
    values = ", ".join(f"K{at}: {text}" for at, text in enumerate(NUMBERS))
    found = own(f"{{{STDIO}, command: x, args: [{', '.join(NUMBERS)}], env: {{{values}}}}}")
    assert found.args == NUMBERS
    assert tuple(found.env.values()) == NUMBERS
    for text in NUMBERS:
        fault = refused(f"{{{STDIO}, command: x, settings: {{open_after: {text}}}}}")
        assert "expected a whole number ≥ 1, written in decimal" in fault
    assert own(f"{{{STDIO}, command: x, settings: {{open_after: 10}}}}").settings.open_after == 10


def test_CF08_so_in_the_file_of_a_client(tmp_path: Path) -> None:
    found = theirs(tmp_path, {"command": "x", "args": list(NUMBERS)})
    assert found.args == NUMBERS
    assert "expected a text, got a number" in theirs(tmp_path, {"command": "x", "args": [1.10]})
    (tmp_path / ".mcp.json").write_text('{"servers": {"s": {"command": "x",\n"env": {"V": 1.10}}}}')
    found = settings_of(CLIENT, {}, tmp_path).servers[0]
    assert found.env == {"V": "1.10"}
    (tmp_path / ".mcp.json").write_text('{"servers": {"s": {"command": "x",\n"env": {"V": 0755}}}}')
    with pytest.raises(ConfigurationError, match=r"\.mcp\.json:2: not valid JSON"):
        settings_of(CLIENT, {}, tmp_path)


# -- CF10


def test_CF10_importing_creates_no_file_and_prints_no_secret(tmp_path: Path) -> None:
    """What is printed may be kept in a file that all can read. (Files of our own making, spilled
    results, are private from the start: test_spill.)"""
    secret = "hunter2hunter2"
    declared = {"command": "x", "args": ["--token", secret], "env": {"TOKEN": secret}}
    client = tmp_path / ".mcp.json"
    client.write_text(json.dumps({"mcpServers": {"s": declared}}))
    before = {one: one.stat().st_mtime_ns for one in tmp_path.rglob("*")}
    for more in ([], ["--json"]):
        found = toolcrib("import", client, *more, cwd=tmp_path)
        assert found.returncode == 0, found.stderr
        assert secret not in found.stdout + found.stderr
    assert {one: one.stat().st_mtime_ns for one in tmp_path.rglob("*")} == before


@pytest.mark.parametrize(
    "keys",
    [
        "transport: stdio, command: x, env: TOKEN=s3cret",
        "transport: http, url: 'http://h', headers: 'X-Key: s3cret'",
        "transport: http, url: 'http://h', auth: s3cret",
        "transport: http, url: 's3cret@h'",
    ],
)
def test_CF10_a_secret_in_the_wrong_form_is_not_shown(keys: str) -> None:
    assert "s3cret" not in refused(f"{{name: s, {keys}}}")


# -- CF11


def test_CF11_paths_are_relative_to_the_file_wherever_it_is_read_from(tmp_path: Path) -> None:
    folder = tmp_path / "a"
    (folder / "bin").mkdir(parents=True)
    (folder / "srv").mkdir()
    program = folder / "bin" / "run"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -S -I "{RAW}"\n')
    program.chmod(0o755)
    servers = "[{name: s, transport: stdio, command: ./bin/run, cwd: ./srv/}]"
    (folder / "f.yaml").write_text(
        "resources:\n  mcp:\n    kind: tool.Source\n    impl: mcp\n"
        f"    settings: {{config: .mcp.json, servers: {servers}}}\n"
    )
    declared = {"command": "./bin/run", "cwd": "srv"}
    (folder / ".mcp.json").write_text(json.dumps({"mcpServers": {"t": declared}}))
    found = toolcrib("sources", folder / "f.yaml", "--json", cwd="/")
    assert found.returncode == 0, found.stderr
    told = json.loads(found.stdout)
    assert [(one["server"], one["state"]) for one in told] == [("s", "ready"), ("t", "ready")]
    imported = toolcrib("import", os.path.relpath(folder / ".mcp.json", "/"), cwd="/")
    assert f"command: {program}" in imported.stdout
    assert f"cwd: {folder}/srv" in imported.stdout


def test_CF11_an_unknown_key_is_an_error_of_ours_with_a_suggestion_and_a_note_of_theirs(
    tmp_path: Path,
) -> None:
    fault = refused(f"{{{STDIO}, command: x, tools: {{includes: [a]}}}}")
    assert "tools.includes: unknown key 'includes', did you mean 'include'?" in fault
    assert "unknown key 'timeout'" in refused(f"{{{STDIO}, command: x, timeout: 5}}")
    assert "~ is not expanded: write ${env:HOME}" in refused(f"{{{STDIO}, command: x, cwd: ~/d}}")
    declared = {"command": "x", "cwd": "~/d/", "comand": "y"}
    assert theirs(tmp_path, declared, {"HOME": "/home/u"}).cwd == "/home/u/d/"
    noted = toolcrib("import", tmp_path / ".mcp.json").stdout
    assert "mcpServers.s.comand: 'comand' is left out: unknown here" in noted
