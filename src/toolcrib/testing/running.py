"""Which processes of a fault server run. Linux and macOS."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator

__all__ = ["running"]


def running(home: str) -> list[int]:
    """The processes started by `fault_server.command` with this home, and children that carry the
    same arguments. Another program that only mentions such a command line is none of them."""
    return [pid for pid, line in _lines() if _is_ours(line, home)]


def _is_ours(line: str, home: str) -> bool:
    program, _, arguments = line.partition(" -S -I ")
    return f"--home {home} " in f"{arguments} " and (
        program == sys.executable or " " not in program
    )


def _lines() -> Iterator[tuple[int, str]]:
    """Each process that runs, and its command line."""
    if not os.path.isdir("/proc/self"):
        told = subprocess.run(
            ["ps", "-axww", "-o", "pid=,command="], capture_output=True, text=True, check=True
        )
        for line in told.stdout.splitlines():
            pid, _, command = line.strip().partition(" ")
            yield int(pid), command.strip()
        return
    for entry in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{entry}/cmdline", "rb") as file:
                yield int(entry), file.read().replace(b"\0", b" ").decode(errors="replace").strip()
        except OSError:
            continue  # it ended meanwhile
