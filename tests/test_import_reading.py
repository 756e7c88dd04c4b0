"""Files of other MCP clients, read for use: whose rules apply, and what one fault costs."""

from __future__ import annotations

import json
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conftest import floor
from servers.support import BOUND, RAW, hosting
from toolcrib.deploy import Deployment, loads
from toolcrib.deploy.clients import DIALECTS, imported, read_client_file, usable
from toolcrib.deploy.clients.dialect import Dialect, Ref, parts
from toolcrib.deploy.clients.envfile import EnvFileFault, read_env_file
from toolcrib.deploy.clients.jsonc import MAX_DEPTH, JsoncFault, Value, parse
from toolcrib.errors import ConfigurationError
from toolcrib.sources.mcp import McpServer, McpSource

PLACES = {"claude": ".mcp.json", "vscode": ".vscode/mcp.json", "cursor": ".cursor/mcp.json"}


def written(folder: Path, dialect: str, servers: Any, **more: Any) -> Path:
    """A file of that client, where that client would look for it."""
    file = folder / PLACES[dialect]
    file.parent.mkdir(exist_ok=True)
    key = "servers" if dialect == "vscode" else "mcpServers"
    text = servers if isinstance(servers, str) else json.dumps(servers)
    file.write_text(f'{{"{key}": {text}, {json.dumps(more)[1:-1] or ""}}}')
    return file


def used(
    file: Path, environ: dict[str, str] | None = None, inputs: dict[str, str] | None = None
) -> tuple[dict[str, McpServer], dict[str, str]]:
    environ = {"HOME": "/home/u", **(environ or {})}
    servers, unavailable = usable(read_client_file(file), environ, inputs or {})
    return {one.name: one for one in servers}, unavailable


def one(folder: Path, dialect: str, server: Any, **kwargs: Any) -> McpServer:
    found, unavailable = used(written(folder, dialect, {"s": server}), **kwargs)
    assert unavailable == {}
    return found["s"]


def reason(folder: Path, dialect: str, server: Any, **kwargs: Any) -> str:
    """Why that one server is not available, while its neighbour is."""
    text = server if isinstance(server, str) else json.dumps(server)
    servers = f'{{"s": {text}, "good": {{"command": "run"}}}}'
    found, unavailable = used(written(folder, dialect, servers), **kwargs)
    assert list(found) == ["good"]
    return unavailable["s"]


# -- whose file it is ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "content", "dialect"),
    [
        (".mcp.json", {"mcpServers": {}}, "claude"),
        ("claude_desktop_config.json", {"mcpServers": {}}, "claude"),
        (".vscode/mcp.json", {"servers": {}}, "vscode"),
        (".vscode/mcp.json", {"mcpServers": {}}, "vscode"),
        (".cursor/mcp.json", {"mcpServers": {}}, "cursor"),
        ("any.json", {"servers": {}}, "vscode"),
        ("any.json", {"mcpServers": {"a": {"command": "${env:X}"}}}, "cursor"),
        ("any.json", {"mcpServers": {"a": {"command": "${X}"}}}, "claude"),
    ],
)
def test_the_client_is_known_by_key_place_name_and_references(
    tmp_path: Path, name: str, content: Any, dialect: str
) -> None:
    file = tmp_path / name
    file.parent.mkdir(exist_ok=True)
    file.write_text(json.dumps(content))
    assert read_client_file(file).dialect == dialect
    assert read_client_file(file, "cursor").dialect == "cursor"


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("", "f.json: the file is empty"),
        (b"\xef\xbb\xbf \n", "f.json: the file is empty"),
        ("// only this", "f.json:1: not valid JSON: expected a value, got the end of the file"),
        ('{"a": {"command": "x"}}', 'put {"mcpServers": …} around the servers'),
        ('{"projects": {"/p": {"mcpServers": {}}}}', "what single projects have"),
        ('{"context_servers": {}}', "the files of Zed (context_servers) are not read"),
        ('{"mcp": {"servers": {}, "servers": {}}}', "f.json:1: has 'servers' twice"),
        ('{"mcp": {"inputs": []}, "settings": 1}', "f.json: has no object 'mcpServers'"),
        ("{}".encode("utf-16"), "f.json:1: not UTF-8 text: save it as UTF-8"),
        ('{"mcpServers": {\n"a": {]}}', "f.json:2: not valid JSON: expected a key"),
        ('{"mcpServers": {}} x', "f.json:1: not valid JSON: expected the end of the file"),
        ("[]", "f.json: has no object 'mcpServers' or 'servers'"),
        ('{"mcpServers": {}, "mcpServers": {}}', "f.json:1: has 'mcpServers' twice"),
        ('{"mcpServers": []}', "f.json: has no object 'mcpServers' or 'servers'"),
        (b"\xff\n", "f.json:1: not UTF-8 text"),
        (None, "f.json: cannot be read: No such file or directory"),
    ],
)
def test_a_file_that_is_no_configuration_is_refused_as_a_whole(
    tmp_path: Path, content: str | bytes | None, said: str
) -> None:
    file = tmp_path / "f.json"
    if content is not None:
        file.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(ConfigurationError) as caught:
        read_client_file(file)
    assert said in str(caught.value)


# -- JSON as editors write it -------------------------------------------------------------------


def test_comments_and_trailing_commas_are_accepted_and_lines_are_known() -> None:
    value = parse(
        '// first\n{ /* two\nlines */ "a": [1, "x // no comment", ], // end\n "b": {"c": null,},\n}'
    )
    assert value.entries is not None
    assert [(e.key, e.line) for e in value.entries] == [("a", 3), ("b", 4)]
    items = value.entries[0].value.items
    assert items is not None
    assert [item.data for item in items] == ["1", "x // no comment"]


def test_a_key_given_twice_is_kept_twice() -> None:
    value = parse('{"a": 1, "a": 2}')
    assert value.entries is not None
    assert [entry.value.data for entry in value.entries] == ["1", "2"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"a": }', "expected a value"),
        ('{"a" 1}', "expected a : after the key"),
        ("{a: 1}", 'expected a key in "double quotes"'),
        ("{'a': 1}", "unexpected"),
        ('["a" "b"]', "expected a , or the ]"),
        ("[,]", "expected a value"),
        ("NaN", 'needs "double quotes"'),
        ("012", 'needs "double quotes"'),
        ('"a\nb"', "a text without its end"),
        ('"\\ud800"', "wrong escape"),
        ('"\\x"', "wrong escape"),
        ("/* open", "a comment without its end"),
        ("[" * (MAX_DEPTH + 2), "nested deeper"),
    ],
)
def test_what_is_no_json_is_said_with_its_line(text: str, said: str) -> None:
    with pytest.raises(JsoncFault, match=r"^(not valid JSON|nested)") as caught:
        parse("\n" + text)
    assert said in str(caught.value)
    assert caught.value.line >= 2


@pytest.mark.parametrize(
    "text",
    ['{"a": s3cret}', "{s3cret: 1}", '{"a" s3cret}', '{"a": 1 s3cret}', "[] s3cret", "'s3cret'"],
)
def test_a_text_that_lacks_its_quotes_is_not_shown(text: str) -> None:
    with pytest.raises(JsoncFault) as caught:
        parse(text)
    assert "s3cret" not in str(caught.value)


def as_python(value: Value) -> Any:
    if value.entries is not None:
        return {entry.key: as_python(entry.value) for entry in value.entries}
    if value.items is not None:
        return [as_python(item) for item in value.items]
    return json.loads(str(value.data)) if value.kind == "a number" else value.data


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@given(JSON, st.sampled_from([None, 1]))
def test_whatever_is_json_is_read_as_json_reads_it(value: Any, indent: int | None) -> None:
    assert as_python(parse(json.dumps(value, indent=indent))) == value


@given(st.text('{}[]:,"/*\\\n a1', max_size=30))
def test_any_text_is_a_value_or_a_fault(text: str) -> None:
    line = 1
    try:
        parse(text)
    except JsoncFault as fault:
        line = fault.line
    assert 1 <= line <= text.count("\n") + 1


# -- references, by the rules of each client ----------------------------------------------------


@pytest.mark.parametrize(
    ("dialect", "text", "found"),
    [
        ("claude", "${X}", (Ref("env", "X"),)),
        ("claude", "a${X:-d e}b", ("a", Ref("env", "X", "d e"), "b")),
        ("claude", "${X:-}", (Ref("env", "X", ""),)),
        ("claude", "$X ${X", ("$X ", Ref("fault", "…"), "X")),
        ("claude", "$${X}", ("$", Ref("env", "X"))),
        ("claude", "${env:X}", (Ref("fault", "…"),)),
        ("claude", "${A:-${B}}", (Ref("fault", "…"), "A:-", Ref("env", "B"), "}")),
        ("vscode", "${env:X}", (Ref("env", "X"),)),
        ("vscode", "${env:X:-d}", (Ref("fault", "…"),)),
        ("vscode", "${X}", (Ref("fault", "…"),)),
        ("vscode", "${input:a b}", (Ref("input", "a b"),)),
        ("vscode", "${command:x}", (Ref("fault", "…"),)),
        ("vscode", "${workspaceFolder}${/}x", (Ref("workspace"), Ref("separator"), "x")),
        ("cursor", "${userHome}/${workspaceFolderBasename}", (Ref("home"), "/", Ref("folder"))),
        ("cursor", "${input:a}", (Ref("fault", "…"),)),
        ("cursor", "", ()),
    ],
)
def test_each_client_has_its_own_references(
    dialect: Dialect, text: str, found: tuple[Any, ...]
) -> None:
    seen = parts(text, dialect)
    assert (
        tuple(Ref("fault", "…") if isinstance(p, Ref) and p.kind == "fault" else p for p in seen)
        == found
    )


def test_a_reference_of_another_client_is_told_in_the_words_of_this_one(tmp_path: Path) -> None:
    said = reason(tmp_path, "vscode", {"command": "x", "args": ["${API_KEY}"]})
    assert said.endswith(
        "servers.s.args[0]: unknown reference ${API_KEY}: VS Code writes ${env:API_KEY}"
    )
    said = reason(tmp_path, "claude", {"command": "x", "env": {"A": "${env:API_KEY}"}})
    assert "mcpServers.s.env.A: unknown reference ${env:API_KEY}: Claude Code knows" in said
    said = reason(tmp_path, "cursor", {"command": "x", "args": ["${env:K:-s3cret}"]})
    assert "Cursor knows no defaults" in said and "s3cret" not in said
    said = reason(tmp_path, "vscode", {"command": "x", "args": ["${fileBasename}"]})
    assert said.endswith("${fileBasename}: VS Code has it, if at all, only while it runs")


@pytest.mark.parametrize("inner", ["K:s3cret", "K-s3cret", "K:=s3cret", "K s3cret", "env:K-s3cret"])
def test_a_default_in_the_words_of_another_program_is_not_shown(tmp_path: Path, inner: str) -> None:
    for dialect in DIALECTS:
        said = reason(tmp_path, dialect, {"command": "x", "args": [f"${{{inner}}}"]})
        assert "unknown reference ${" in said and "s3cret" not in said


FIELDS: dict[str, Any] = {
    "command": "run-REF",
    "args": ["REF", "<REF>"],
    "env": {"A": "REF", "REF": "key"},
    "cwd": "/REF",
}


@pytest.mark.parametrize(("dialect", "ref"), [("claude", "${X}"), ("cursor", "${env:X}")])
def test_values_of_every_field_are_expanded_once_and_keys_are_not(
    tmp_path: Path, dialect: str, ref: str
) -> None:
    server = json.loads(json.dumps(FIELDS).replace("REF", ref))
    found = one(tmp_path, dialect, server, environ={"X": "${X}${env:X}"})
    value = "${X}${env:X}"
    assert found.command == f"run-{value}"
    assert found.args == (value, f"<{value}>")
    assert found.env == {"A": value, ref: "key"}
    assert found.cwd == f"/{value}"
    web = {"url": f"https://{ref}/m", "headers": {"A": f"Bearer {ref}", ref: "key"}}
    found = one(tmp_path, dialect, web, environ={"X": "h"})
    assert (found.transport, found.url) == ("http", "https://h/m")
    assert found.headers == {"A": "Bearer h", ref: "key"}


@pytest.mark.parametrize("dialect", DIALECTS)
def test_CF05_a_variable_of_the_servers_own_is_left_for_it_to_put_in(
    tmp_path: Path, dialect: Dialect
) -> None:
    """As the README of mcp-remote has it: the client knows no such variable, its child does."""
    args = ["--header", "Authorization:${AUTH} ${AUTH}"]
    server = {"command": "npx", "args": args, "env": {"AUTH": "Bearer s3cret"}}
    assert one(tmp_path, dialect, server).args == tuple(args)
    assert one(tmp_path, dialect, server, environ={"AUTH": "of ours"}).args == tuple(args)


def test_CF05_a_variable_that_is_only_handed_on_is_ours_to_put_in(tmp_path: Path) -> None:
    server = {"command": "x", "args": ["${AUTH}"], "env": {"AUTH": "${AUTH}"}}
    assert one(tmp_path, "claude", server, environ={"AUTH": "a"}).args == ("a",)
    assert "'AUTH' is not set" in reason(tmp_path, "claude", server)
    other = {"command": "${AUTH}", "args": ["${AUTH:-d}"], "env": {"AUTH": "b"}}
    found = one(tmp_path, "claude", other, environ={"AUTH": "a"})
    assert (found.command, found.args) == ("a", ("a",))


def test_claudes_default_counts_only_where_the_variable_is_not_set(tmp_path: Path) -> None:
    server = {"command": "x", "args": ["${X:-d}"]}
    assert one(tmp_path, "claude", server).args == ("d",)
    assert one(tmp_path, "claude", server, environ={"X": ""}).args == ("",)


def test_the_places_of_editors_are_those_of_the_file(tmp_path: Path) -> None:
    args = ["${workspaceFolder}", "${workspaceFolderBasename}", "${userHome}", "${pathSeparator}"]
    for dialect in ("vscode", "cursor"):
        found = one(tmp_path, dialect, {"command": "x", "args": args})
        assert found.args == (str(tmp_path), tmp_path.name, "/home/u", "/")
        assert found.cwd == str(tmp_path)


@pytest.mark.parametrize(
    ("dialect", "ref"),
    [("claude", "${NOPE}"), ("cursor", "${env:NOPE}"), ("vscode", "${env:NOPE}")],
)
def test_an_unset_variable_costs_that_one_server_and_is_named(
    tmp_path: Path, dialect: str, ref: str
) -> None:
    said = reason(tmp_path, dialect, {"command": "x", "env": {"TOKEN": ref}})
    assert said.startswith(f"{tmp_path / PLACES[dialect]}:1: ")
    assert "the environment variable 'NOPE' is not set" in said


INPUTS = [
    {"id": "key", "type": "promptString", "password": True, "default": "s3cret"},
    {"id": "mode", "type": "pickString", "options": ["a", "b"], "default": "a"},
    {"id": "bare", "type": "promptString"},
    "nonsense",
]


def test_an_input_is_given_has_a_default_or_makes_its_server_unavailable(tmp_path: Path) -> None:
    file = written(
        tmp_path,
        "vscode",
        {
            "given": {"command": "x", "args": ["${input:key}"]},
            "default": {"command": "x", "args": ["${input:mode}"]},
            "asked": {"command": "x", "args": ["${input:bare}"]},
            "unknown": {"command": "x", "args": ["${input:nope}"]},
        },
        inputs=INPUTS,
    )
    found, unavailable = used(file, inputs={"key": "k"})
    assert {name: one.args for name, one in found.items()} == {
        "given": ("k",),
        "default": ("a",),
    }
    assert "the input 'bare' would have to be asked for" in unavailable["asked"]
    assert "'nope'" in unavailable["unknown"]
    assert "'key'" in used(file)[1]["given"]


# -- servers ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("server", "transport"),
    [
        ({"command": "x"}, "stdio"),
        ({"type": "stdio", "command": "x"}, "stdio"),
        ({"url": "http://h"}, "http"),
        ({"type": "http", "url": "http://h"}, "http"),
        ({"type": "streamable-http", "url": "http://h"}, "http"),
        ({"transport": "http", "url": "http://h"}, "http"),
        ({"transportType": "stdio", "command": "x"}, "stdio"),
        ({"type": "local", "command": "x"}, "stdio"),
        ({"type": "streamableHttp", "url": "http://h", "command": "", "args": []}, "http"),
        ({"serverUrl": "http://h"}, "http"),
        ({"httpUrl": "http://h", "command": ""}, "http"),
        ({"command": "x", "url": ""}, "stdio"),
        ({"type": "http", "transport": "http", "url": "http://h", "serverUrl": "http://h"}, "http"),
    ],
)
def test_the_transport_is_named_or_follows_from_the_keys(
    tmp_path: Path, server: Any, transport: str
) -> None:
    assert one(tmp_path, "claude", server).transport == transport


@pytest.mark.parametrize(
    ("server", "said"),
    [
        ({"type": "sse", "url": "http://h"}, "the transport sse is deprecated and not supported"),
        ({"type": "ws", "url": "ws://h"}, "the transport 'ws' is not supported"),
        ({}, "missing 'url', which transport http needs (it has neither command nor url)"),
        ({"type": "stdio"}, "missing 'command', which transport stdio needs"),
        ({"command": "x", "url": "http://h"}, "url: it has both a command and a url"),
        ({"url": "http://h", "serverUrl": "http://i"}, "serverUrl: it is 'url' by another name"),
        (
            {"command": "x", "disabledTools": "a"},
            "disabledTools: expected a list of names, got a text",
        ),
        ({"command": "x", "includeTools": [1]}, "includeTools: expected a list of names"),
        ({"url": "unix:///run/x"}, "its url is not an http:// or https:// address"),
        ({"command": 7}, "command: expected a text, got a number"),
        ({"command": ""}, "command: it is empty"),
        ({"command": "x", "args": "-v"}, "args: expected a list, got a text"),
        (
            {"command": "x", "args": [1]},
            'args[0]: expected a text, got a number: put it in "quotes"',
        ),
        ({"command": "x", "args": [None]}, "args[0]: expected a text, got null"),
        ({"command": "x", "env": []}, "env: expected an object, got a list"),
        ({"command": "x", "env": {"A=": "b"}}, "this cannot be a name here"),
        ({"command": "x", "env": {"A": "b\0"}}, "a NUL character cannot be handed on"),
        ({"command": "x", "disabled": "yes"}, "disabled: expected true or false, got a text"),
        ({"command": "x", "sandboxEnabled": True}, "it is to run in a sandbox"),
        ({"command": "x", "cwd": "~other"}, "another user"),
        ([], "expected an object, got a list"),
        ('{"command": "x", "command": "y"}', "command: duplicate key: it is already on line 1"),
        (
            '{"command": "x", "env": {"A": "1",\n "A": "2"}}',
            ":2: mcpServers.s.env.A: duplicate key",
        ),
    ],
)
def test_a_fault_costs_that_one_server_and_is_said_at_its_place(
    tmp_path: Path, server: Any, said: str
) -> None:
    found = reason(tmp_path, "claude", server)
    assert said in found
    assert found.startswith(f"{tmp_path}/.mcp.json:")
    assert "mcpServers.s" in found


def test_servers_that_share_a_name_are_all_left_out(tmp_path: Path) -> None:
    text = '{"a": {"command": "x"},\n"a": {"command": "y"}, "b": {"command": "z"}}'
    found, unavailable = used(written(tmp_path, "claude", text))
    assert list(found) == ["b"]
    assert ":1: mcpServers.a: several servers have this name (lines 1, 2)" in unavailable["a"]


def test_a_disabled_server_is_left_out_silently(tmp_path: Path) -> None:
    servers = {"off": {"type": "sse", "disabled": True}, "on": {"command": "x", "disabled": False}}
    found, unavailable = used(written(tmp_path, "claude", servers))
    assert (list(found), unavailable) == (["on"], {})


@pytest.mark.parametrize("off", [{"disabled": True}, {"enabled": False}, {"isActive": False}])
def test_a_server_that_is_switched_off_in_any_client_is_not_started(
    tmp_path: Path, off: dict[str, bool]
) -> None:
    on = {key: not value for key, value in off.items()}
    servers = {"off": {"command": "x", **off}, "on": {"command": "x", **on}}
    assert list(used(written(tmp_path, "claude", servers))[0]) == ["on"]


def test_tools_that_are_switched_off_in_the_client_are_not_offered_here(tmp_path: Path) -> None:
    def tools(**keys: Any) -> tuple[Any, Any]:
        found = one(tmp_path, "claude", {"command": "x", **keys}).tools
        return found.include, found.exclude

    assert tools(disabledTools=["rm", "a[1]"]) == (None, ("rm", "a[[]1]"))
    assert tools(includeTools=["a"], excludeTools=["b"]) == (("a",), ("b",))
    assert tools(tools=["a"]) == (("a",), ())
    assert tools(tools=["*"]) == tools(tools={"a": {"name": "b"}}) == tools() == (None, ())
    assert tools(tools=[]) == ((), ())


@pytest.mark.parametrize("key", ["command", "url"])
def test_null_is_the_same_as_no_key(tmp_path: Path, key: str) -> None:
    keys = (
        "type",
        "command",
        "args",
        "env",
        "envFile",
        "cwd",
        "url",
        "headers",
        "disabled",
        "tools",
    )
    server = {**dict.fromkeys(keys), key: "http://h"}
    found = one(tmp_path, "claude", server)
    assert (found.transport, found.env) == ("stdio" if key == "command" else "http", {})


def test_what_belongs_to_the_other_transport_is_left_out_with_a_word(tmp_path: Path) -> None:
    web: dict[str, Any] = {"type": "http", "url": "http://h", "env": {"A": "b"}, "args": []}
    read = read_client_file(written(tmp_path, "cursor", {"s": web}))
    assert [note.partition("s.env: ")[2] for note in read.servers[0].notes] == [
        "'env' is left out: transport http takes none"
    ]
    assert used(written(tmp_path, "cursor", {"s": web}))[0]["s"].env == {}


def test_what_may_keep_a_server_from_working_is_a_warning(tmp_path: Path) -> None:
    servers = {
        "sse": {"url": "http://h/sse?key=s3cret"},
        "login": {"url": "http://h/mcp", "headersHelper": "/bin/token", "timeout": 5},
        "windows": {"command": "cmd", "args": ["/c", "npx"]},
        "line": {"command": "npx -y s3cret"},
        "fine": {"command": "C:\\Program Files\\npx.cmd"},
        "path": {"command": "/opt/my tools/run"},
    }
    written(tmp_path, "claude", servers)
    warnings = [str(one) for one in deployed("{config: .mcp.json}", tmp_path).warnings]
    assert len(warnings) == 4
    assert "mcpServers.line.command: a whole command line: put its first word" in warnings[3]
    assert "mcpServers.sse.url: its address ends in /sse" in warnings[0]
    assert "mcpServers.login.headersHelper: 'headersHelper' is left out: logging in" in warnings[1]
    assert "mcpServers.windows.command: a Windows wrapper" in warnings[2]
    assert "s3cret" not in "".join(warnings)


def test_keys_that_only_the_client_knows_are_ignored_when_it_is_used(tmp_path: Path) -> None:
    server: dict[str, Any] = {
        "command": "x",
        "alwaysAllow": ["a"],
        "timeout": 5,
        "gallery": True,
        "dev": {},
    }
    assert one(tmp_path, "cursor", server).command == "x"


def test_vs_code_takes_numbers_as_values_of_variables_and_null_for_none(tmp_path: Path) -> None:
    server = {"command": "x", "env": {"PORT": 8080, "V": 1.50, "NONE": None}}
    text = json.dumps(server).replace("1.5", "1.50")
    file = written(tmp_path, "vscode", f'{{"s": {text}}}')
    assert used(file)[0]["s"].env == {"PORT": "8080", "V": "1.50"}


def test_CF11_relative_paths_and_the_home_directory(tmp_path: Path) -> None:
    def paths(**keys: str) -> tuple[str, str]:
        found = one(tmp_path, "vscode", {"command": "run", **keys})
        return found.command, found.cwd

    base = str(tmp_path)
    assert paths() == ("run", base)
    assert paths(command="./bin/run") == (f"{base}/bin/run", base)
    assert paths(command="~/bin/run", cwd="~") == ("/home/u/bin/run", "/home/u")
    assert paths(command="/bin/run", cwd="../data/") == ("/bin/run", f"{base}/../data/")


# -- envFile ------------------------------------------------------------------------------------


def test_an_env_file_is_read_and_what_the_server_says_itself_wins(tmp_path: Path) -> None:
    (tmp_path / "my.env").write_text(
        '# comment\n\nA=1\nexport B = two words # note\nC=\'a # b\'\nD="x\\ny \\"q\\""\nE=\nF=a#b\n'
    )
    server = {"command": "x", "envFile": "${workspaceFolder}/my.env", "env": {"A": "mine"}}
    found = one(tmp_path, "vscode", server)
    assert found.env == {
        "A": "mine",
        "B": "two words",
        "C": "a # b",
        "D": 'x\ny "q"',
        "E": "",
        "F": "a#b",
    }
    relative = one(tmp_path, "vscode", {"command": "x", "envFile": "my.env"})
    assert relative.env["A"] == "1"


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (None, "cannot be read: No such file"),
        ("A=1\nno assignment of s3cret\n", "my.env:2: not of the form NAME=value"),
        ("A='open\n", "my.env:1: not of the form"),
        ("A=" + "x" * 70_000, "larger than 64 KiB"),
    ],
)
def test_an_env_file_that_cannot_be_used_costs_its_server(
    tmp_path: Path, content: str | None, said: str
) -> None:
    if content is not None:
        (tmp_path / "my.env").write_text(content)
    found = reason(tmp_path, "vscode", {"command": "x", "envFile": "my.env"})
    assert said in found
    assert "s3cret" not in found


@given(st.text(min_size=1, max_size=40))
def test_any_env_file_is_read_or_refused_with_a_line(text: str) -> None:
    line = 1
    try:
        read_env_file(text)
    except EnvFileFault as fault:
        line = fault.line
    assert 1 <= line <= len(text.splitlines())


# -- in a deployment file -----------------------------------------------------------------------

SOURCE = """
resources:
  mcp:
    kind: tool.Source
    impl: mcp
    settings: {settings}
"""


def deployed(settings: str, base: Path, environ: dict[str, str] | None = None) -> Deployment:
    text = SOURCE.format(settings=settings)
    return loads(text, {"HOME": "/home/u", **(environ or {})}, file="f.yaml", base=base)


def settings_of(deployment: Deployment) -> Any:
    return deployment.resources[0].settings


def refused(settings: str, base: Path) -> list[str]:
    with pytest.raises(ConfigurationError) as caught:
        deployed(settings, base)
    return [str(problem) for problem in caught.value.problems]


async def test_a_server_that_cannot_be_configured_is_listed_and_the_rest_works(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    good = {"command": sys.executable, "args": ["-S", "-I", str(RAW)]}
    written(tmp_path, "claude", {"raw": good, "zero": {"command": "x", "args": ["${NOPE}"]}})
    source = deployed("{config: .mcp.json}", tmp_path).build("mcp").resource
    assert isinstance(source, McpSource)
    async with hosting(source) as host:
        assert str(await host.call("raw__echo", text="hi")) == "hi"
        assert [(one.name, one.state) for one in source.health()] == [
            ("raw", "ready"),
            ("zero", "given_up"),
        ]
        assert "'NOPE' is not set" in host.health("zero").reason
        assert "server 'zero' of that file is not available: " in caplog.text
        await source.wait_ready(BOUND)


class OnlySse(BaseHTTPRequestHandler):
    """What an SSE server of 2024 answers: a stream to GET, nothing else at that address."""

    def do_POST(self) -> None:
        self.send_response(405 if self.path == "/sse" else 404)
        self.end_headers()

    def log_message(self, format: str, *args: Any) -> None:
        """Tells nobody."""


@pytest.mark.parametrize("path", ["/sse", "/other"])
async def test_a_server_that_speaks_only_sse_is_told_so(tmp_path: Path, path: str) -> None:
    with ThreadingHTTPServer(("127.0.0.1", 0), OnlySse) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}{path}"
        written(tmp_path, "claude", {"s": {"url": url}})
        async with hosting(deployed("{config: .mcp.json}", tmp_path).build("mcp").resource) as host:
            assert "is this its Streamable HTTP address? (SSE is not" in host.health("s").reason
        server.shutdown()


async def test_a_source_of_which_no_server_can_be_configured_lives(tmp_path: Path) -> None:
    written(tmp_path, "claude", {"zero": {"type": "sse", "url": "http://h"}})
    source = deployed("{config: .mcp.json}", tmp_path).build("mcp").resource
    async with hosting(source) as host:
        assert host.names == []
        assert host.health("zero").state == "given_up"


def test_where_a_file_has_servers_for_two_clients_each_gets_its_own(tmp_path: Path) -> None:
    file = tmp_path / "both.json"
    file.write_text('{"servers": {"a": {"command": "x"}}, "mcpServers": {"b": {"command": "x"}}}')
    assert [one.name for one in read_client_file(file).servers] == ["a"]
    assert [one.name for one in read_client_file(file, "vscode").servers] == ["a"]
    assert [one.name for one in read_client_file(file, "claude").servers] == ["b"]


@pytest.mark.parametrize("steps", [("mcp",), ("settings", "mcp")])
def test_the_settings_of_vs_code_hold_servers_too(tmp_path: Path, steps: tuple[str, ...]) -> None:
    inputs = [{"id": "k", "type": "promptString", "default": "d"}]
    servers = {"a": {"command": "x", "args": ["${input:k}"]}, "bad": {"type": "sse"}}
    content: dict[str, Any] = {"servers": servers, "inputs": inputs, "other": 1}
    for step in reversed(steps):
        content = {"editor.fontSize": 13, step: content}
    file = tmp_path / "settings.json"
    file.write_text(json.dumps(content))
    found, unavailable = used(file)
    assert found["a"].args == ("d",)
    assert f"settings.json:1: {'.'.join(steps)}.servers.bad: " in unavailable["bad"]
    assert [note.partition(":1: ")[2] for note in read_client_file(file).notes] == [
        "other: 'other' is left out: unknown here"
    ]


def test_servers_of_single_projects_are_noted_and_left_out(tmp_path: Path) -> None:
    file = tmp_path / ".claude.json"
    servers = {"mcpServers": {"b": {"command": "y"}, "c": {"command": "z"}}}
    projects: dict[str, Any] = {
        "/home/me/p": servers,
        "/q": {"mcpServers": {}},
        "/r": {"history": []},
    }
    file.write_text(json.dumps({"mcpServers": {"a": {"command": "x"}}, "projects": projects}))
    read = read_client_file(file)
    assert [one.name for one in read.servers] == ["a"]
    assert [note.partition(":1: ")[2] for note in read.notes] == [
        "projects.'/home/me/p': servers of that project alone: 2 left out"
    ]


def test_a_hostile_file_is_judged_in_time(tmp_path: Path) -> None:
    long = "a" * 300_000
    (tmp_path / "my.env").write_text("A=" + "b " * 30_000 + "c")
    for text in (long, "=" * 300_000, f"{long}:", "://" * 100_000, " " * 300_000, "${" * 100_000):
        server = {"command": "x", "args": [text], "envFile": "my.env"}
        file = written(tmp_path, "vscode", {"s": server, "t": {"command": "x"}})
        began = time.process_time()
        used(file)
        imported(read_client_file(file), {})
        assert time.process_time() - began < 60 * floor()


def test_a_server_of_the_files_own_stands_before_one_of_that_name(tmp_path: Path) -> None:
    written(tmp_path, "claude", {"a": {"command": "theirs"}, "b": {"command": "x"}})
    own = "servers: [{name: a, transport: stdio, command: ours}]"
    deployment = deployed(f"{{config: .mcp.json, {own}}}", tmp_path)
    found = {one.name: one.command for one in settings_of(deployment).servers}
    assert found == {"a": "ours", "b": "x"}
    (warning,) = map(str, deployment.warnings)
    assert warning == (
        "f.yaml:6: resources.mcp.settings.config: server 'a' of that file is not used: 'servers'"
        " has one of that name"
    )


def test_inputs_and_the_format_are_given_next_to_the_file(tmp_path: Path) -> None:
    written(tmp_path, "vscode", {"a": {"command": "x", "args": ["${input:key}"]}})
    settings = "{config: .vscode/mcp.json, format: vscode, inputs: {key: 'k-${env:K}'}}"
    found = settings_of(deployed(settings, tmp_path, {"K": "${env:K}"}))
    assert found.servers[0].args == ("k-${env:K}",)
    assert found.unavailable == {}


def test_what_is_wrong_with_the_settings_is_said_at_its_place(tmp_path: Path) -> None:
    at = "f.yaml:6: resources.mcp.settings"
    assert refused("{}", tmp_path) == [
        f"{at}: missing required key 'servers' (or 'config', the file of another MCP client)"
    ]
    server = "servers: [{name: a, transport: stdio, command: x}]"
    (fault,) = refused(f"{{{server}, inputs: {{}}}}", tmp_path)
    assert fault.startswith(f"{at}.inputs: 'inputs' is about the file in 'config'")
    (fault,) = refused("{config: .mcp.json, format: emacs}", tmp_path)
    assert "format: expected one of auto, claude, vscode, cursor" in fault
    (fault,) = refused("{config: none.json}", tmp_path)
    assert fault == f"{tmp_path}/none.json: cannot be read: No such file or directory"
    written(tmp_path, "claude", {"a": {"command": "x", "disabled": True}})
    assert refused("{config: .mcp.json}", tmp_path) == [
        f"{at}.config: that file has no MCP server that is switched on"
    ]


def test_no_value_of_the_file_or_the_environment_is_shown(tmp_path: Path) -> None:
    secret = "hunter2hunter2"
    good = {"command": "x", "args": [secret, "${S}"], "env": {"A": secret}, "cwd": "/x"}
    bad = {"command": "x", "args": [secret, "${S}", "${NOPE}"], "env": {"A": f"${{S:-{secret}}}"}}
    written(tmp_path, "claude", {"good": good, "bad": bad, "url": {"url": f"ftp://{secret}"}})
    deployment = deployed("{config: .mcp.json}", tmp_path, {"S": secret})
    settings = settings_of(deployment)
    assert sorted(settings.unavailable) == ["bad", "url"]
    assert secret not in repr(deployment) + repr(settings) + repr(
        read_client_file(tmp_path / ".mcp.json")
    )
