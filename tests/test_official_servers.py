"""The official MCP servers, all attached by one deployment file: listed, and each really called."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from toolcrib import Assembly
from toolcrib.deploy import load

HERE = Path(__file__).parent
FILE = HERE / "data" / "official_servers.yaml"
NODE_SERVERS = HERE.parent / ".npm" / "node_modules" / ".bin"
PATIENCE = 20.0

pytestmark = pytest.mark.asyncio(loop_scope="module")

LEAST = {
    "everything": {"echo", "get-sum", "get-tiny-image", "get-structured-content"},
    "filesystem": {"read_text_file", "write_file", "list_directory", "search_files"},
    "memory": {"create_entities", "create_relations", "read_graph", "search_nodes"},
    "thinking": {"sequentialthinking"},
    "git": {"git_status", "git_log", "git_commit", "git_diff_staged"},
    "time": {"get_current_time", "convert_time"},
    "fetch": {"fetch"},
    "fetch_public": {"fetch"},
}
"""The tools that each server is known to have, whatever else it offers."""

NEEDS_NODE = {"everything", "filesystem", "memory", "thinking"}


def there(server: str) -> bool:
    """Whether a server is installed; those of Python always are."""
    name = {"thinking": "sequential-thinking"}.get(server, server)
    return server not in NEEDS_NODE or (NODE_SERVERS / f"mcp-server-{name}").exists()


def needs(server: str) -> None:
    if not there(server):
        pytest.skip(f"no server {server!r} in .npm: make test installs it where there is npm")


PAGES = {
    "/robots.txt": "User-agent: *\nDisallow: /private\n",
    "/page": "The crib opens at seven.",
    "/private": "Nobody reads this.",
}


class Site(BaseHTTPRequestHandler):
    """A web site of two pages, of which robots.txt gives one to everybody."""

    def do_GET(self) -> None:
        page = PAGES.get(self.path)
        self.send_response(404 if page is None else 200)
        self.send_header("Content-Type", "text/plain")
        self.end_headers()
        self.wfile.write((page or "").encode())

    def log_message(self, format: str, *args: Any) -> None:
        """Says nothing: the log is the test's."""


@pytest.fixture(scope="module")
def site() -> Iterator[str]:
    """The address of the site, on loopback."""
    with ThreadingHTTPServer(("127.0.0.1", 0), Site) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def repository(where: Path) -> None:
    """A git repository of one commit."""
    author = ("-c", "user.name=Ada", "-c", "user.email=ada@example.org", "-c", "commit.gpgsign=no")
    commit = ("commit", "--quiet", "--allow-empty", "-m", "The first tool")
    subprocess.run(["git", "init", "--quiet", str(where)], check=True)
    subprocess.run(["git", "-C", str(where), *author, *commit], check=True)


@dataclass
class Attached:
    """The open assembly of every server, and the directory they were given."""

    tools: Assembly
    work: Path

    async def call(self, name: str, **arguments: Any) -> str:
        """The text of a call that succeeds."""
        result = await self.tools.call(name, arguments)
        assert result.failure is None, result
        return result.text

    async def refused(self, name: str, **arguments: Any) -> str:
        """What a failed call says."""
        result = await self.tools.call(name, arguments)
        assert result.failure is not None, result
        return str(result)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def attached(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Attached]:
    work = tmp_path_factory.mktemp("work").resolve()
    repository(work / "repo")
    node = str(all(map(there, NEEDS_NODE))).lower()
    deployment = load(FILE, {"PYTHON": sys.executable, "WORK": str(work), "NODE": node})
    async with deployment.build() as tools:
        await tools.wait_ready(PATIENCE)
        yield Attached(tools, work)


@pytest.mark.parametrize("server", LEAST)
async def test_every_tool_is_listed(attached: Attached, server: str) -> None:
    needs(server)
    listed = {one.name for one in attached.tools.catalog.definitions}
    assert {f"{server}__{tool}" for tool in LEAST[server]} <= listed


async def test_everything_adds(attached: Attached) -> None:
    needs("everything")
    assert "42" in await attached.call("everything__get-sum", a=40, b=2)


async def test_filesystem_writes_a_file_and_reads_it(attached: Attached) -> None:
    needs("filesystem")
    file = str(attached.work / "note.txt")
    await attached.call("filesystem__write_file", path=file, content="seven spanners")
    assert Path(file).read_text() == "seven spanners"
    assert "seven spanners" in await attached.call("filesystem__read_text_file", path=file)


async def test_filesystem_stays_in_its_directory(attached: Attached) -> None:
    needs("filesystem")
    outside = str(attached.work.parent / "outside.txt")
    assert "denied" in await attached.refused("filesystem__read_text_file", path=outside)


async def test_memory_remembers(attached: Attached) -> None:
    needs("memory")
    spanner = {"name": "spanner", "entityType": "tool", "observations": ["hangs on the left"]}
    await attached.call("memory__create_entities", entities=[spanner])
    assert "hangs on the left" in await attached.call("memory__read_graph")
    assert "hangs on the left" in (attached.work / "memory.jsonl").read_text()


async def test_sequential_thinking_counts_a_thought(attached: Attached) -> None:
    needs("thinking")
    thought = {"thought": "Left first.", "thoughtNumber": 1, "totalThoughts": 1}
    said = await attached.call("thinking__sequentialthinking", **thought, nextThoughtNeeded=False)
    assert json.loads(said)["thoughtHistoryLength"] == 1


async def test_git_reads_the_log(attached: Attached) -> None:
    log = await attached.call("git__git_log", repo_path=str(attached.work / "repo"))
    assert "The first tool" in log and "Ada" in log


async def test_time_converts(attached: Attached) -> None:
    zones = {"source_timezone": "Asia/Tokyo", "target_timezone": "Asia/Kolkata"}
    said = await attached.call("time__convert_time", **zones, time="12:00")
    assert "T08:30:00" in said


async def test_fetch_reads_a_page(attached: Attached, site: str) -> None:
    assert "opens at seven" in await attached.call("fetch__fetch", url=f"{site}/page")


async def test_fetch_heeds_robots_txt(attached: Attached, site: str) -> None:
    assert "robots.txt" in await attached.refused("fetch__fetch", url=f"{site}/private")


async def test_fetch_as_it_comes_refuses_loopback(attached: Attached, site: str) -> None:
    said = await attached.refused("fetch_public__fetch", url=f"{site}/page")
    assert "not a public address" in said
