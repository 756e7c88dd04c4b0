"""The command line as a person or a script uses it: real processes, real exit codes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from servers.support import with_token
from toolcrib.cli.app import Format
from toolcrib.deploy.clients import DIALECTS

DATA = Path(__file__).parent / "data"

TOOLS = '''
import sys
from toolcrib import ToolError, tool

@tool(effects="read")
def double(number: int) -> int:
    """Double a whole number."""
    print("a tool may print")
    return 2 * number

@tool(scopes={"vault"})
def open_vault() -> str:
    """Open the vault of the bank."""
    return "open"

@tool
def refuse() -> str:
    """Always refuse."""
    raise ToolError("not today")
'''

FILE = """
resources:
  own:
    kind: tool.Source
    impl: functions
    settings: {path: ., modules: [cli_tools]}
  tools:
    kind: tool.Assembly
    impl: middleware
    deps: {tool: own}
    settings: {dynamic: {default: deferred}}
"""

SCRIPT = """
rounds:
  - say: I need to double something.
    calls:
      - {id: found, tool: tool_search, arguments: {query: double a number, limit: 1}}
  - calls:
      - {id: four, tool: "{{found.exposed.0}}", arguments: {number: 2}}
  - calls:
      - {tool: double, arguments: {number: "{{four}}"}}
  - say: Eight.
"""


@pytest.fixture
def deployment(tmp_path: Path) -> Path:
    (tmp_path / "cli_tools.py").write_text(TOOLS)
    (tmp_path / "shop.run.yaml").write_text(SCRIPT.replace('"{{found.exposed.0}}"', "double"))
    file = tmp_path / "shop.yaml"
    file.write_text(FILE)
    return file


def toolcrib(
    *arguments: str | Path, env: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", "from toolcrib.cli import main; main()", *map(str, arguments)]
    environ = {**os.environ, "COLUMNS": "120", **(env or {})}
    return subprocess.run(
        command, capture_output=True, text=True, timeout=60, env=environ, check=False
    )


def test_it_is_a_module_too(deployment: Path) -> None:
    command = [sys.executable, "-m", "toolcrib", "call", str(deployment), "double", '{"number": 4}']
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout) == (0, "8\n")
    command[-2:] = ["refuse"]
    assert subprocess.run(command, capture_output=True, timeout=60, check=False).returncode == 1


def test_list_names_every_tool_with_source_exposure_and_bytes(deployment: Path) -> None:
    found = toolcrib("list", deployment)
    assert found.returncode == 0, found.stderr
    assert "double" in found.stdout and "deferred" in found.stdout and "own" in found.stdout
    listed = json.loads(toolcrib("list", deployment, "--json").stdout)
    assert {one["name"] for one in listed} == {"double", "open_vault", "refuse", "tool_search"}
    assert all(one["wire_bytes"] > 32 for one in listed)


def test_list_names_the_policies_that_are_about_none_of_the_tools(deployment: Path) -> None:
    policies = "policies: {dubble: {timeout: 3s}, 'bank__*': {timeout: 3s}, 'dou*': {timeout: 3s}}"
    deployment.write_text(FILE.replace("settings: {dynamic", f"settings: {{{policies}, dynamic"))
    done = toolcrib("list", str(deployment))
    assert done.returncode == 0
    assert done.stderr.splitlines() == [
        "the policy of 'dubble' is about none of these tools",
        "the policy of 'bank__*' is about none of these tools",
    ]


def test_search_prints_the_best_first(deployment: Path) -> None:
    found = json.loads(toolcrib("search", deployment, "double a number", "--json").stdout)
    assert found["hits"][0]["name"] == "double"
    assert "double" in toolcrib("search", deployment, "double").stdout


def test_however_narrow_the_terminal_names_are_whole(deployment: Path) -> None:
    for command in (["list", deployment], ["search", deployment, "vault"]):
        assert "open_vault" in toolcrib(*command, env={"COLUMNS": "20"}).stdout


def test_call_prints_the_result_alone_and_what_a_tool_prints_goes_to_stderr(
    deployment: Path,
) -> None:
    called = toolcrib("call", deployment, "double", '{"number": 21}')
    assert (called.returncode, called.stdout) == (0, "42\n")
    assert "a tool may print" in called.stderr


def test_a_failed_call_exits_with_1_and_says_why_on_stderr(deployment: Path) -> None:
    called = toolcrib("call", deployment, "refuse")
    assert (called.returncode, called.stdout) == (1, "")
    assert "not today" in called.stderr
    wrong = toolcrib("call", deployment, "double", '{"numbr": 1}')
    assert wrong.returncode == 1
    assert "did you mean 'number'" in wrong.stderr
    parsed = json.loads(toolcrib("call", deployment, "refuse", "--json").stdout)
    assert parsed["failure"]["kind"] == "tool_error"


def test_a_scope_is_granted_on_the_command_line_or_the_tool_does_not_exist(
    deployment: Path,
) -> None:
    without = toolcrib("call", deployment, "open_vault")
    assert without.returncode == 1
    assert "there is no tool 'open_vault'" in without.stderr
    assert toolcrib("call", deployment, "open_vault", "--scope", "vault").stdout == "open\n"


def test_run_plays_the_script_through_a_session(deployment: Path) -> None:
    played = toolcrib("run", deployment)
    assert played.returncode == 0, played.stderr
    assert "round 1  1 tool in view" in played.stdout
    assert "listing all 4 tools every time would have cost" in played.stdout
    told = json.loads(toolcrib("run", deployment, "--json").stdout)
    assert [one["visible"]["names"] for one in told["rounds"]] == [
        ["tool_search"],
        ["tool_search", "double"],
        ["tool_search", "double"],
        ["tool_search", "double"],
    ]
    assert told["rounds"][2]["calls"][0]["result"]["content"] == [{"type": "text", "text": "8"}]
    assert told["sent_bytes"] < told["full_listing_bytes"]


def test_run_exits_with_1_when_a_call_of_the_script_failed(deployment: Path) -> None:
    script = deployment.with_name("bad.yaml")
    script.write_text("rounds: [{calls: [{tool: double, arguments: {number: 1}}]}]")
    played = toolcrib("run", deployment, "--script", script)
    assert played.returncode == 1
    assert "undefined_tool" in played.stdout


def test_a_fault_in_the_script_is_told_with_its_line(deployment: Path) -> None:
    script = deployment.with_name("bad.yaml")
    script.write_text("rounds:\n  - cals: []\n")
    played = toolcrib("run", deployment, "--script", script)
    assert played.returncode == 3
    assert "bad.yaml:2: rounds[0].cals: unknown key 'cals', did you mean 'calls'?" in played.stderr


def test_check_tells_five_faults_at_once_and_starts_nothing() -> None:
    checked = toolcrib("check", DATA / "five_faults.yaml")
    lines = checked.stderr.splitlines()
    assert checked.returncode == 3
    assert len(lines) == 5
    assert all(
        f"five_faults.yaml:{at}: " in line
        for at, line in zip((7, 9, 14, 17, 21), lines, strict=True)
    )
    told = json.loads(toolcrib("check", DATA / "five_faults.yaml", "--json").stdout)
    assert [one["line"] for one in told["problems"]] == [7, 9, 14, 17, 21]


def test_check_says_that_a_good_file_is_fine(deployment: Path) -> None:
    checked = toolcrib("check", deployment)
    assert checked.returncode == 0
    assert "fine" in checked.stdout


@pytest.mark.parametrize(
    "arguments", [["nonsense"], ["call"], ["search", "x.yaml"], ["list", "--jsn", "x"]]
)
def test_wrong_usage_exits_with_2(arguments: list[str]) -> None:
    assert toolcrib(*arguments).returncode == 2


def test_several_assemblies_need_a_name_and_an_unknown_one_exits_with_2(tmp_path: Path) -> None:
    (tmp_path / "cli_tools.py").write_text(TOOLS)
    file = tmp_path / "two.yaml"
    second = FILE.split("  tools:")[1].replace("tool: own", "tool: own")
    file.write_text(f"{FILE}  more:{second}")
    assert toolcrib("list", file).returncode == 2
    assert toolcrib("list", file, "--assembly", "mor").returncode == 2
    assert toolcrib("list", file, "--assembly", "more").returncode == 0


def test_a_missing_file_exits_with_3(tmp_path: Path) -> None:
    missing = toolcrib("list", tmp_path / "none.yaml")
    assert missing.returncode == 3
    assert "cannot be read" in missing.stderr


# -- servers, and the files of other clients

RAW = Path(__file__).parent / "servers" / "raw.py"
SERVERS = f"""
resources:
  mcp:
    kind: tool.Source
    impl: mcp
    settings:
      config: .mcp.json
      servers:
        - name: good
          transport: stdio
          command: {sys.executable}
          args: [-S, -I, {RAW}, stderr=1]
          env: {{TOKEN: "${{env:CLI_SECRET}}"}}
  own:
    kind: tool.Source
    impl: functions
    settings: {{tools: ["textwrap:dedent"]}}
"""
CLIENT = {
    "mcpServers": {
        "broken": {"command": "./no-such-program"},
        "unset": {"command": "x", "env": {"A": "${CLI_NOT_SET}"}},
    }
}
SECRET = {"CLI_SECRET": "hunter2hunter2"}


@pytest.fixture
def servers(tmp_path: Path) -> Path:
    (tmp_path / ".mcp.json").write_text(json.dumps(CLIENT))
    file = tmp_path / "servers.yaml"
    file.write_text(SERVERS)
    return file


def test_sources_shows_every_server_and_exits_with_1_where_one_is_not_ready(
    servers: Path,
) -> None:
    found = toolcrib("sources", servers, "--json", env=SECRET)
    assert found.returncode == 1, found.stderr
    told = {one["server"]: one for one in json.loads(found.stdout)}
    assert {name: one["state"] for name, one in told.items()} == {
        "good": "ready",
        "broken": "degraded",
        "unset": "given_up",
        "own": "ready",
    }
    good = told["good"]
    assert (good["source"], good["era"], good["attempts"]) == ("mcp", "2025-11-25", 1)
    assert good["tools"] > 10 and good["bytes"] > 1000 and good["ready_in"] > 0
    assert good["since"].endswith("+00:00")
    assert "no-such-program" in told["broken"]["reason"]
    assert "'CLI_NOT_SET' is not set" in told["unset"]["reason"]
    assert (told["own"]["tools"], told["own"]["era"]) == (1, "")


def test_sources_exits_with_0_where_all_are_ready(servers: Path) -> None:
    servers.write_text(SERVERS.replace("      config: .mcp.json\n", ""))
    found = toolcrib("sources", servers, env=SECRET)
    assert found.returncode == 0, found.stderr
    assert "good" in found.stdout and "2025-11-25" in found.stdout
    assert "last line of stderr" not in found.stdout
    assert SECRET["CLI_SECRET"] not in found.stdout + found.stderr


def test_sources_tells_the_whole_reason_however_narrow_the_terminal_is(servers: Path) -> None:
    found = toolcrib("sources", servers, env={**SECRET, "COLUMNS": "40"})
    assert "unset " in found.stdout and "'CLI_NOT_SET' is not set" in found.stdout


def test_sources_shows_what_a_server_last_said_where_it_is_asked_to(servers: Path) -> None:
    assert "  | last line of stderr" in toolcrib("sources", servers, "--stderr", env=SECRET).stdout


KEYS = [
    *("source", "server", "state", "era", "tools", "bytes"),
    *("ready_in", "attempts", "reason", "since", "stderr"),
]


def test_sources_tells_a_script_the_same_keys_of_every_server(servers: Path) -> None:
    told = json.loads(toolcrib("sources", servers, "--json", env=SECRET).stdout)
    assert [list(one) for one in told] == [KEYS] * 4
    assert "last line of stderr" in told[1]["stderr"]


NIGHT = f"""
resources:
  mcp:
    kind: tool.Source
    impl: mcp
    settings:
      config: .mcp.json
      servers:
        - name: good
          transport: stdio
          command: {sys.executable}
          args: [-S, -I, {RAW}, stderr=1]
        - {{name: hangs, transport: stdio, command: sleep, args: ["1234.5"]}}
        - {{name: refused, transport: http, url: "http://127.0.0.1:9/mcp"}}
        - name: crashes
          transport: stdio
          command: sh
          args: [-c, 'for n in 1 2 3 4 5 6 7 8 9; do echo "[b]line $n" >&2; done; exit 3']
"""


def test_sources_says_of_every_server_that_is_down_what_is_wrong_with_it(servers: Path) -> None:
    servers.write_text(NIGHT)
    began = time.monotonic()
    found = toolcrib("sources", servers, "--wait", "3")
    assert time.monotonic() - began < 20
    assert found.returncode == 1
    said = " ".join(found.stdout.split())
    assert "hangs: no answer yet, after 3 s (--wait waits longer)" in said
    assert "refused: its address refuses the connection or cannot be reached" in said
    assert "unset: " in said and "'CLI_NOT_SET' is not set" in said
    assert "crashes: its process exited with status 3 | [b]line 2 | [b]line 3" in said
    assert "[b]line 1" not in said and "[b]line 9" in said
    assert "last line of stderr" not in said  # of the server that is ready
    assert with_token("1234.5") == []


def test_sources_waits_no_longer_than_it_is_told(servers: Path) -> None:
    servers.write_text(
        SERVERS.replace("stderr=1", "start=hang").replace("      config: .mcp.json\n", "")
    )
    found = toolcrib("sources", servers, "--json", "--wait", "0.2", env=SECRET)
    assert found.returncode == 1
    states = {one["server"]: one["state"] for one in json.loads(found.stdout)}
    assert states == {"good": "connecting", "own": "ready"}


def test_sources_tells_a_source_that_cannot_be_built_like_any_command(servers: Path) -> None:
    servers.write_text(SERVERS.replace("textwrap:dedent", "textwrap:no_such_function"))
    found = toolcrib("sources", servers, env=SECRET)
    assert found.returncode == 3
    assert "no_such_function" in found.stderr


def test_import_prints_a_deployment_file_that_works(servers: Path) -> None:
    client = servers.with_name(".mcp.json")
    declared = {"command": sys.executable, "args": ["-S", "-I", str(RAW)], "timeout": 5}
    client.write_text(json.dumps({"mcpServers": {"raw": declared, "old": {"type": "sse"}}}))
    printed = toolcrib("import", client)
    assert printed.returncode == 0, printed.stderr
    assert "# left out: 'old'" in printed.stdout and "'timeout' is left out" in printed.stdout
    servers.write_text(printed.stdout)
    assert toolcrib("call", servers, "raw__echo", '{"text": "hi"}').stdout == "hi\n"
    told = json.loads(toolcrib("import", client, "--json").stdout)
    assert told["deployment"] == printed.stdout
    assert (told["format"], told["servers"]) == ("claude", ["raw"])
    assert [(one["server"], one["is_fault"]) for one in told["left_out"]] == [("old", True)]


def test_import_reads_the_file_as_the_client_it_is_told(servers: Path) -> None:
    client = servers.with_name("some.json")
    client.write_text('{"mcpServers": {"a": {"command": "x", "args": ["${env:A}"]}}}')
    assert "(cursor)" in toolcrib("import", client).stdout
    refused = toolcrib("import", client, "--format", "claude")
    assert refused.returncode == 3
    assert "Claude Code knows ${NAME} and ${NAME:-default}" in refused.stderr
    assert toolcrib("import", client, "--format", "emacs").returncode == 2
    assert toolcrib("import", servers.with_name("none.json")).returncode == 3


def test_the_formats_of_the_command_are_those_that_are_read() -> None:
    assert set(Format) == {"auto", *DIALECTS}


def test_the_example_with_another_clients_file_is_fine_and_can_be_imported() -> None:
    examples = Path(__file__).parents[1] / "examples"
    checked = toolcrib("check", examples / "client.yaml")
    assert checked.returncode == 0, checked.stderr
    assert checked.stdout.count("server 'tracker' of that file is not available") == 1
    assert checked.stderr == ""  # a warning is told once
    imported = toolcrib("import", examples / "client.mcp.json")
    assert imported.returncode == 0
    assert "Bearer ${env:TRACKER_TOKEN}" in imported.stdout


@pytest.mark.parametrize("key", ["mcpServers", "servers"])
def test_another_clients_file_given_as_ours_is_told_apart(tmp_path: Path, key: str) -> None:
    file = tmp_path / ".mcp.json"
    file.write_text(json.dumps({key: {"a": {"command": "x"}}}))
    checked = toolcrib("check", file)
    assert checked.returncode == 3
    (line,) = checked.stderr.splitlines()
    assert line.startswith(f"{file}:1: this is a file of another MCP client: `toolcrib import`")
