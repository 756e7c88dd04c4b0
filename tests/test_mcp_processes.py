"""No process outlives its server: launchers, children, and those that left the group (MC03, MC04).

What leaves the group is found on Linux alone, and only with its environment as it was.
"""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from servers.support import (
    BOUND,
    NO_WAIT,
    RAW,
    Host,
    alive,
    children,
    descriptors,
    hosting,
    raw,
    source,
    until,
    with_token,
)
from toolcrib.sources.mcp import McpServer
from toolcrib.sources.mcp.wire.descendants import MARK, end_marked, handed_on, marked

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs /proc")


@pytest.fixture(autouse=True)
def no_child_is_left() -> Iterator[None]:
    before = children()
    yield
    assert children() <= before


def pids_in(path: Path) -> list[int]:
    return [int(line) for line in path.read_text().split()]


@pytest.mark.parametrize("era", ["legacy", "modern"])
async def test_MC04_a_grandchild_in_a_session_of_its_own_ends_with_the_source(
    era: str, tmp_path: Path
):
    pids = tmp_path / "pids"
    server = raw(era=era, child="setsid", pids=pids)
    async with hosting(source(server, stop_timeout=0.2)) as host:
        await host.call("raw__echo", text="x")
        (escaped,) = pids_in(pids)
        assert alive(escaped)
        assert os.getsid(escaped) != os.getsid(await host.pid())
    await until(lambda: not alive(escaped))


async def test_MC03_MC04_a_grandchild_ends_before_the_next_start_when_the_server_was_killed(
    tmp_path: Path,
):
    pids = tmp_path / "pids"
    async with hosting(source(raw(child="setsid", pids=pids), stop_timeout=0.2)) as host:
        for _ in range(3):
            await host.killed()
        *old, last = pids_in(pids)
        assert len(old) == 3
        assert not any(alive(pid) for pid in old)
        assert alive(last)
    await until(lambda: not alive(last))


async def test_MC03_a_launcher_that_starts_the_server_in_a_new_session_is_followed():
    token = uuid.uuid4().hex
    line = f"exec 3<&0; setsid {sys.executable} -S -I {RAW} token={token} stubborn=1 <&3 & wait"
    server = McpServer("raw", "stdio", command="/bin/sh", args=("-c", line), settings=NO_WAIT)
    async with hosting(source(server, stop_timeout=0.2)) as host:
        assert str(await host.call("raw__echo", text="x")) == "x"
        assert with_token(token)
    await until(lambda: not with_token(token))


async def test_the_mark_is_made_anew_for_each_start_and_neighbours_are_left_alone(tmp_path: Path):
    import json

    first, second = tmp_path / "first", tmp_path / "second"
    servers = raw("a", child="setsid", pids=first), raw("b", child="setsid", pids=second)
    async with hosting(source(*servers, stop_timeout=0.2)) as host:
        marks = [json.loads(str(await host.call(f"{name}__env")))[MARK] for name in "ab"]
        assert len({*marks}) == 2
        await host.killed("a")
        fresh = json.loads(str(await host.call("a__env")))[MARK]
        assert fresh not in marks
        assert alive(pids_in(second)[0])
    await until(lambda: not any(map(alive, pids_in(first) + pids_in(second))))


def test_only_the_marked_are_found_and_ended():
    ours, other = uuid.uuid4().hex, uuid.uuid4().hex
    line = ["/bin/sleep", "60"]
    begun = [
        subprocess.Popen(line, env={MARK: mark}, start_new_session=True) for mark in (ours, other)
    ]
    begun.append(subprocess.Popen(line, env={"X": f"{MARK}={ours}"}))  # a value is no name
    try:
        for process in begun:
            deadline = time.monotonic() + BOUND
            while b"sleep" not in Path(f"/proc/{process.pid}/cmdline").read_bytes():
                assert time.monotonic() < deadline
        assert marked(ours) == [begun[0].pid]
        assert end_marked(ours, begun[0].pid) == 1
        assert begun[0].wait(BOUND) == -signal.SIGKILL
        assert [process.poll() for process in begun[1:]] == [None, None]
        assert end_marked(ours) == 0
    finally:
        for process in begun:
            process.kill()
            process.wait(BOUND)


def test_the_mark_of_a_server_within_a_server_holds_both(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv(MARK, raising=False)
    assert handed_on("a") == "a"
    monkeypatch.setenv(MARK, "a")
    assert handed_on("b") == "a/b"
    monkeypatch.setenv(MARK, "/".join("abcdefghijkl"))
    assert handed_on("z") == "f/g/h/i/j/k/l/z"
    inner = subprocess.Popen(["/bin/sleep", "60"], env={MARK: "outer/inner"})
    try:
        assert end_marked("out") == 0
        assert end_marked("outer") == 1
    finally:
        inner.kill()
        inner.wait(BOUND)


async def test_six_deaths_with_escaping_children_leave_no_process_and_no_descriptor(
    tmp_path: Path,
):
    pids = tmp_path / "pids"
    async with hosting(source(raw(child="setsid", pids=pids), stop_timeout=0.2)) as host:
        await host.call("raw__echo", text="warm")
        before = descriptors()
        for _ in range(6):
            await host.killed()
        assert descriptors() <= before
        assert len([pid for pid in pids_in(pids) if alive(pid)]) == 1
    await until(lambda: not any(map(alive, pids_in(pids))))


def test_MC03_a_loop_that_ends_without_closing_ends_the_escaped_too(tmp_path: Path):
    pids = tmp_path / "pids"

    async def forgetful() -> None:
        mcp = source(raw(child="setsid", pids=pids))
        await mcp.open(Host(mcp).publish)

    asyncio.run(forgetful())
    deadline = time.monotonic() + BOUND
    while any(map(alive, pids_in(pids))):
        assert time.monotonic() < deadline
        time.sleep(0.002)
