"""Processes that a server started and that left its group: found by a mark in their environment.

Linux only, through /proc; elsewhere nothing is found and the group is all that is ended. Not found
either: who cleared the environment or changed the user. Never a process without the mark. A server
that uses toolcrib itself hands our mark on beside its own.
"""

from __future__ import annotations

import os
import select
import signal
import sys
from typing import Final

__all__ = ["MARK", "MAX_DEPTH", "end_marked", "handed_on", "marked"]

MARK: Final = "TOOLCRIB_SERVER_ID"
"""The environment variable: the marks of a process, the last made anew for each start."""

MAX_DEPTH: Final = 8
"""Servers within servers whose marks are handed on."""

MAX_SEEN: Final = 4_096
MAX_ENVIRONMENT: Final = 1 << 20
"""How many processes are looked at, and how many bytes of the environment of each."""

MAX_ROUNDS: Final = 4
"""Whoever starts processes while they are being ended is met again; not for ever."""

LEAST_ROUNDS: Final = 2
"""Who is just being replaced by another program has no environment to read for a moment."""

LAST_BREATH: Final = 50
"""Milliseconds a killed process has to be gone: nearly always it takes less than one."""


def handed_on(mark: str) -> str:
    """The value of the variable for a process that gets `mark`: after those that we have."""
    ours = os.environ.get(MARK, "").split("/")[1 - MAX_DEPTH :]
    return "/".join([one for one in ours if one] + [mark])


def marked(mark: str, root: int = 0) -> list[int]:
    """The processes that have `mark`, those younger than `root` first."""
    return [pid for pid in _pids(root) if _has(pid, mark)]


def end_marked(mark: str, root: int = 0) -> int:
    """SIGKILL to each of them, until there are no more. How many there were."""
    if not sys.platform.startswith("linux"):
        return 0
    ended = 0
    for turn in range(1, MAX_ROUNDS + 1):
        found = [pid for pid in marked(mark, root) if _kill(pid, mark)]
        ended += len(found)
        if not found and turn >= LEAST_ROUNDS:
            break
    return ended


def _pids(root: int) -> list[int]:
    try:
        pids = [int(name) for name in os.listdir("/proc") if name.isdigit()]
    except OSError:
        return []
    return sorted(pids, key=lambda pid: (pid < root, pid))[:MAX_SEEN]


def _has(pid: int, mark: str) -> bool:
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            variables = file.read(MAX_ENVIRONMENT).split(b"\0")
    except OSError:  # ended meanwhile, or another user's
        return False
    start = f"{MARK}=".encode()
    found = next((one[len(start) :] for one in variables if one.startswith(start)), b"")
    return mark.encode() in found.split(b"/")


def _kill(pid: int, mark: str) -> bool:
    """Ends the process `pid` if it is still the marked one: the number may be another's by now."""
    if not hasattr(os, "pidfd_open"):
        return False
    try:
        held = os.pidfd_open(pid)
    except OSError:
        return False
    try:
        if not _has(pid, mark):
            return False
        signal.pidfd_send_signal(held, signal.SIGKILL)
        end = select.poll()
        end.register(held, select.POLLIN)
        end.poll(LAST_BREATH)
    except OSError:
        return False
    finally:
        os.close(held)
    return True
