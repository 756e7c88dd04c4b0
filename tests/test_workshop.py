"""The example of `make run`, against real MCP servers of this machine."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
WORKSHOP = ROOT / "examples" / "workshop.yaml"


def toolcrib(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", "from toolcrib.cli import main; main()", *map(str, arguments)]
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environ = {**os.environ, "PATH": path}
    return subprocess.run(
        command, capture_output=True, text=True, timeout=120, env=environ, cwd=ROOT, check=False
    )


def test_the_workshop_finds_its_tools_calls_them_and_reads_real_output() -> None:
    played = toolcrib("run", WORKSHOP, "--json")
    assert played.returncode == 0, played.stderr
    told = json.loads(played.stdout)
    first, second, third, fourth, last = told["rounds"]
    assert first["visible"]["names"] == ["tool_search"]
    assert "git__git_log" in second["visible"]["new"]
    assert "Commit history" in second["calls"][0]["result"]["content"][0]["text"]
    assert {"word_count", "time__get_current_time"} <= set(fourth["visible"]["new"])
    words = json.loads(fourth["calls"][0]["result"]["content"][0]["text"])
    assert words["words"] > 10
    assert "Asia/Tokyo" in fourth["calls"][1]["result"]["content"][0]["text"]
    assert third["visible"]["names"] == fourth["visible"]["names"][: len(third["visible"]["names"])]
    assert last["calls"] == []
    assert told["tools"] == 27
    assert told["sent_bytes"] < told["full_listing_bytes"] / 2


def test_B3_a_tool_of_an_mcp_server_is_found_as_source_slash_tool() -> None:
    called = toolcrib("call", WORKSHOP, "git/git_status", json.dumps({"repo_path": str(ROOT)}))
    assert called.returncode == 0, called.stderr
    assert "Repository status" in called.stdout
