"""docs/mcp.md: every example on it is run as it stands, and what it lists is what there is."""

from __future__ import annotations

import ast
import asyncio
import dataclasses
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from servers.support import BOUND, until
from test_official_servers import repository
from toolcrib.sources.mcp import McpServer, ServerSettings
from toolcrib.testing import FaultServer
from toolcrib.testing.fault_server.table import TABLE

HERE = Path(__file__).parent
PAGE = (HERE.parent / "docs" / "mcp.md").read_text()
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
TOKEN = "a-token-of-tickets"
PATIENCE = 6 * BOUND
"""For programs that import the SDK and start servers which do."""


def block(language: str, holding: str) -> str:
    """The one example in `language` that holds this."""
    (found,) = [text for kind, text in BLOCKS if kind == language and holding in text]
    return found


@pytest.fixture
async def tickets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[FaultServer]:
    """Where the examples work: a repository, the file, and a server that is `tickets`."""
    repository(tmp_path)
    (tmp_path / "crib.yaml").write_text(block("yaml", "# crib.yaml"))
    shutil.copy(HERE / "servers" / "sdk_asking.py", tmp_path / "trips.py")
    monkeypatch.chdir(tmp_path)
    programs = Path(sys.executable).parent
    monkeypatch.setenv("PATH", f"{programs}{os.pathsep}{os.environ['PATH']}")
    async with FaultServer(transport="http", era="modern") as server:
        monkeypatch.setenv("TICKETS_URL", server.url)
        monkeypatch.setenv("TICKETS_TOKEN", TOKEN)
        yield server


async def played(text: str, *given: Callable[[], object]) -> None:
    """An example, as if it stood in an async function that knows these."""
    code = compile(text, "docs/mcp.md", "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    async with asyncio.timeout(PATIENCE):
        await eval(code, {"__name__": "docs", **{one.__name__: one for one in given}})


def test_every_example_is_run_by_a_test_of_this_file() -> None:
    run = ["# crib.yaml", "toolcrib check", "mcp.stdio(  ", 'built.made["', "built.reload("]
    run += ["class Host", "test_a"]
    assert [next(one for one in run if one in text) for _, text in BLOCKS] == run


def commanded(*arguments: str) -> subprocess.CompletedProcess[str]:
    start = [sys.executable, "-c", "from toolcrib.cli import main; main()", *arguments]
    return subprocess.run(start, capture_output=True, text=True, timeout=PATIENCE, check=False)


async def test_the_commands_work_on_the_file(tickets: FaultServer) -> None:
    lines = re.findall(r"^\$ toolcrib (.*?)(?:  +#.*)?$", block("console", "$"), re.MULTILINE)
    assert len(lines) == 4
    said = {}
    for line in lines:
        run = await asyncio.to_thread(commanded, *shlex.split(line))
        assert run.returncode == 0, (line, run.stderr)
        assert "is about none of these tools" not in run.stderr
        said[line.split()[0]] = run.stdout
    assert "The first tool" in said["call"]
    assert "git__git_reset" not in said["list"]
    assert {"git__history", "tickets__list_resources"} <= {*said["list"].split()}
    assert {entry["authorization"] for entry in tickets.heard("tools/list")} == {f"Bearer {TOKEN}"}


async def test_the_sources_in_python_work(
    tickets: FaultServer, capsys: pytest.CaptureFixture[str]
) -> None:
    await played(block("python", "mcp.stdio(  "))
    said = capsys.readouterr().out
    assert "The first tool" in said
    assert "remember" in said


async def test_health_is_told_as_it_says(
    tickets: FaultServer, capsys: pytest.CaptureFixture[str]
) -> None:
    await played(block("python", 'built.made["'))
    said = capsys.readouterr().out
    assert {"git ready ", "tickets ready ", "git closed closed by us"} <= {*said.split("\n")}
    assert "Health(name='git', state='ready'" in said


async def test_CF03_a_changed_token_goes_to_the_server_that_has_it(
    tickets: FaultServer, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    text = block("python", "built.reload(").replace("...", "changed()", 1) + "    await again()"

    def changed() -> None:
        monkeypatch.setenv("TICKETS_TOKEN", "another-token")

    async def again() -> None:
        await until(lambda: len(tickets.heard("server/discover")) == 2)

    await played(text, changed, again)
    assert capsys.readouterr().out == "('servers',)\n"
    shown = [entry["authorization"] for entry in tickets.heard("server/discover")]
    assert shown == [f"Bearer {TOKEN}", "Bearer another-token"]


async def test_the_host_is_asked_and_progress_is_told(
    tickets: FaultServer, capsys: pytest.CaptureFixture[str]
) -> None:
    await played(block("python", "class Host"))
    said = capsys.readouterr().out
    assert "3 nights in Delft" in said
    assert said.count("Progress(call_id='1'") == 3


def test_the_fixture_works_in_a_suite_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "test_agent.py").write_text(block("python", "# test_agent.py"))
    start = [sys.executable, "-m", "pytest", "-q", "-o", "asyncio_mode=auto", "test_agent.py"]
    run = subprocess.run(
        start, cwd=tmp_path, capture_output=True, text=True, timeout=PATIENCE, check=False
    )
    assert "2 passed" in run.stdout, run.stdout


def test_it_names_every_field_of_a_server_and_every_fault() -> None:
    words = {*re.findall(r"[a-z_]+", PAGE)}
    fields = {field.name for field in dataclasses.fields(McpServer)}
    assert fields - words == set()
    assert "`ServerSettings`" in PAGE and dataclasses.is_dataclass(ServerSettings)
    table = PAGE[PAGE.index("| to test | faults |") :]
    named = {*re.findall(r"`([a-z_]+)`", table)}
    assert {*TABLE} - named == set()
    assert named - {*TABLE} == set()
