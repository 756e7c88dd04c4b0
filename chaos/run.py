"""`make chaos`: 20 servers killed at random 500 times under 50 concurrent callers.

Half of the servers are processes of the source's own, half are reached over HTTP; half speak each
protocol era. Every call must end in bounded time with a result or a typed failure, no side effect
may happen twice, calls that no kill hit must succeed, all servers must be ready again and answer at
the end, and nothing may be left: descriptors, processes, memory. Prints the figures and exits with
1 if one is wrong.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import random
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from toolcrib import Assembly
from toolcrib.sources import mcp

STDIO, HTTP = (str(Path(__file__).parent / f"ledger_{how}.py") for how in ("server", "http"))
CALL_BOUND = 40.0
"""Seconds any call may take: connecting again included, nothing here should come near it."""
READY_BOUND = 120.0
POOLED = 6.0
"""Seconds after which the next request of a pool of HTTP connections closes those that lay idle."""
PACE = 0.2
"""Seconds between two kills: each server dies about every four seconds."""
TYPED = {"not_available", "outcome_unknown", "timeout", "cancelled", "limited"}


@dataclass
class Server:
    """One server as the killer sees it."""

    name: str
    starts: Path
    killed: list[float] = field(default_factory=list)

    def kill(self) -> bool:
        """SIGKILL to the process that runs now; False where none does."""
        lines = self.starts.read_text().split() if self.starts.exists() else []
        try:
            os.kill(int(lines[-1]), signal.SIGKILL)
        except (IndexError, ProcessLookupError):
            return False
        self.killed.append(time.monotonic())
        return True


@dataclass
class Tally:
    """What became of the calls."""

    kinds: Counter[str] = field(default_factory=Counter)
    slowest: float = 0.0
    unharmed: int = 0
    unharmed_ok: int = 0
    wrong: list[str] = field(default_factory=list)
    acted: dict[str, str] = field(default_factory=dict)


class Chaos:
    """The callers, the killer, and what they saw."""

    def __init__(self, assembly: Assembly, source: mcp.McpSource, servers: list[Server]) -> None:
        self.assembly = assembly
        self.source = source
        self.servers = servers
        self.tally = Tally()
        self.over = asyncio.Event()

    def since_ready(self, server: Server) -> float:
        """Since when the server is ready, as `time.monotonic()`; infinity where it is not."""
        health = next(one for one in self.source.health() if one.name == server.name)
        if health.state != "ready":
            return float("inf")
        return time.monotonic() - (time.time() - health.since)

    async def call(self, number: int, dice: random.Random) -> None:
        server, tool = dice.choice(self.servers), dice.choice(("act", "echo"))
        key = f"{server.name}-{number}"
        began = time.monotonic()
        ready = self.since_ready(server)
        is_fresh = not server.killed or ready > server.killed[-1]
        try:
            async with asyncio.timeout(CALL_BOUND):
                result = await self.assembly.call(f"{server.name}__{tool}", {"key": key})
        except TimeoutError:
            self.tally.wrong.append(f"{key}: no end within {CALL_BOUND:g} s")
            return
        ended = time.monotonic()
        kind = "ok" if result.failure is None else result.failure.kind
        self.tally.kinds[kind] += 1
        self.tally.slowest = max(self.tally.slowest, ended - began)
        if kind != "ok" and kind not in TYPED:
            self.tally.wrong.append(f"{key}: {kind}: {result.text[:200]}")
        if ready < began and is_fresh and not any(began <= at <= ended for at in server.killed):
            self.tally.unharmed += 1
            self.tally.unharmed_ok += kind == "ok"
        if tool == "act":
            self.tally.acted[key] = kind

    async def caller(self, which: int) -> None:
        dice, number = random.Random(which), 0
        while not self.over.is_set():
            await self.call(which * 1_000_000 + number, dice)
            number += 1
            await asyncio.sleep(0.02)

    async def killer(self, kills: int) -> None:
        dice, done = random.Random(0), 0
        while done < kills:
            await asyncio.sleep(PACE)
            ready = [one for one in self.servers if self.since_ready(one) < float("inf")]
            if ready:
                done += dice.choice(ready).kill()
        self.over.set()

    async def all_ready(self) -> float:
        """Seconds until every server is ready (again); more than the bound where one is not."""
        began = time.monotonic()
        while any(self.since_ready(one) == float("inf") for one in self.servers):
            if time.monotonic() - began > READY_BOUND:
                break
            await asyncio.sleep(0.05)
        return time.monotonic() - began


def footprint() -> tuple[int, int]:
    """Descriptors, and resident memory in kB."""
    status = Path("/proc/self/status").read_text()
    rss = next(line for line in status.splitlines() if line.startswith("VmRSS"))
    return len(os.listdir("/proc/self/fd")), int(rss.split()[1])


async def answering(assembly: Assembly, servers: list[Server]) -> int:
    """How many servers answer a call, a legacy one over HTTP perhaps at the second: that its old
    session is gone only a call finds out."""
    found = 0
    for one in servers:
        for _ in range(2):
            result = await assembly.call(f"{one.name}__echo", {"key": "still there?"})
            if result.failure is None:
                found += 1
                break
    return found


def running(servers: list[Server]) -> int:
    """How many processes of the servers are alive."""
    pids = {
        int(pid) for one in servers if one.starts.exists() for pid in one.starts.read_text().split()
    }
    return sum(1 for pid in pids if Path(f"/proc/{pid}/cmdline").exists() and is_ours(pid))


def is_ours(pid: int) -> bool:
    try:
        return b"chaos/ledger_" in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False


@asynccontextmanager
async def over_http(*arguments: str) -> AsyncGenerator[str]:
    """A server that somebody else keeps running; its url."""
    pipe = asyncio.subprocess.PIPE
    command = (sys.executable, "-S", "-I", HTTP, *arguments)
    process = await asyncio.create_subprocess_exec(*command, stdin=pipe, stdout=pipe)
    assert process.stdin and process.stdout
    try:
        yield f"http://127.0.0.1:{int(await process.stdout.readline())}/mcp"
    finally:
        process.stdin.close()
        await process.wait()


async def declared(
    folder: Path, count: int, stack: AsyncExitStack
) -> tuple[mcp.McpSource, list[Server]]:
    servers: list[Server] = []
    declared_: list[mcp.McpServer] = []
    for at in range(count):
        transport, era = ("stdio", "http")[at // 2 % 2], ("legacy", "modern")[at % 2]
        server = Server(f"s{at:02}", folder / f"s{at:02}.starts")
        args = (str(folder / "ledger"), str(server.starts), era)
        if transport == "http":
            url = await stack.enter_async_context(over_http(*args))
            declared_.append(mcp.McpServer(server.name, "http", url=url))
        else:
            args = ("-S", "-I", STDIO, *args)
            declared_.append(mcp.McpServer(server.name, "stdio", command=sys.executable, args=args))
        servers.append(server)
    return mcp.McpSource(declared_, name="chaos", first_backoff=0.1, max_backoff=1.0), servers


async def play(folder: Path, kills: int, callers: int, count: int) -> list[str]:
    async with AsyncExitStack() as stack:
        source, servers = await declared(folder, count, stack)
        assembly = await stack.enter_async_context(Assembly([source]))
        chaos = Chaos(assembly, source, servers)
        await chaos.all_ready()
        for one in servers:  # what is built at first use is built before the figures begin
            await assembly.call(f"{one.name}__echo", {"key": "warm"})
        before = footprint()
        began = time.monotonic()
        tasks = [asyncio.create_task(chaos.caller(which)) for which in range(callers)]
        await chaos.killer(kills)
        await asyncio.wait(tasks, timeout=CALL_BOUND)
        lasted = time.monotonic() - began
        ready_after = await chaos.all_ready()
        await asyncio.sleep(POOLED)
        answers = await answering(assembly, servers)
        after = footprint()
        alive = running(servers)
    return told(
        chaos.tally,
        folder,
        (before, after),
        (lasted, ready_after),
        (alive, count, running(servers), answers),
    )


def told(
    tally: Tally,
    folder: Path,
    footprints: tuple[tuple[int, int], tuple[int, int]],
    times: tuple[float, float],
    alive: tuple[int, int, int, int],
) -> list[str]:
    """Prints the figures; what of them is wrong."""
    ledger = Counter((folder / "ledger").read_text().split())
    twice = [key for key, times_ in ledger.items() if times_ > 1]
    lost = [key for key, kind in tally.acted.items() if kind == "ok" and not ledger[key]]
    undone = [k for k, kind in tally.acted.items() if kind == "not_available" and ledger[k]]
    share = tally.unharmed_ok / max(tally.unharmed, 1)
    (fds, rss), (fds_after, rss_after) = footprints
    print(f"calls           {sum(tally.kinds.values()):,} in {times[0]:.0f} s: {dict(tally.kinds)}")
    print(f"slowest call    {tally.slowest:.2f} s")
    print(f"not hit         {tally.unharmed:,}, of them {100 * share:.2f} % succeeded")
    print(
        f"side effects    {sum(ledger.values()):,}, twice: {len(twice)},"
        f" said done and lost: {len(lost)}, said not available and done: {len(undone)}"
    )
    print(f"all ready       {times[1]:.1f} s after the last kill")
    print(f"descriptors     {fds} → {fds_after}")
    print(f"resident        {rss:,} → {rss_after:,} kB")
    print(f"answering       {alive[3]} of {alive[1]} servers")
    print(f"processes       {alive[0]} of {alive[1]} servers, {alive[2]} after close")
    wrong = list(tally.wrong)
    wrong += [f"a side effect happened twice: {key}" for key in twice]
    wrong += [f"said to be done, and was not: {key}" for key in lost]
    wrong += [f"said not to be available, and was done: {key}" for key in undone]
    checks = {
        "under 95 % of the calls that nothing hit succeeded": share >= 0.95,
        "not every server is ready again": times[1] < READY_BOUND,
        "not every server answers again": alive[3] == alive[1],
        "descriptors were left open": fds_after <= fds + 3,
        "memory grew by more than 30 %": rss_after <= rss * 1.3,
        "a server runs twice, or not at all": alive[0] == alive[1],
        "a process was left behind": alive[2] == 0,
    }
    return wrong + [what for what, holds in checks.items() if not holds]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--kills", type=int, default=500)
    parser.add_argument("--callers", type=int, default=50)
    parser.add_argument("--servers", type=int, default=20)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        wrong = asyncio.run(play(Path(folder), asked.kills, asked.callers, asked.servers))
    for one in wrong[:20]:
        print("WRONG", one)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
