"""Run in processes of their own by test_concurrency.py."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from pathlib import Path

from toolcrib import ToolError, tool


@tool(isolation="process")
def where(label: str = "x") -> str:
    """Says which process it runs in."""
    return f"{label} {os.getpid()}"


@tool(isolation="process", timeout=0.7)
def starts_children_and_hangs(pids: str) -> str:
    """Starts two children, writes down all three process ids and hangs."""
    children = [subprocess.Popen(["sleep", "300"]) for _ in range(2)]
    text = " ".join(map(str, [os.getpid(), *(child.pid for child in children)]))
    partial = Path(pids + ".part")
    partial.write_text(text)
    partial.rename(pids)
    while True:
        time.sleep(60)


@tool(isolation="process")
def dies() -> str:
    """Is killed in the middle."""
    os.kill(os.getpid(), signal.SIGKILL)
    return "not reached"


@tool(isolation="process")
def says_no() -> str:
    """Refuses."""
    raise ToolError("not today")


@tool(isolation="process")
def breaks() -> str:
    """Fails in a way the model must not read."""
    raise RuntimeError("password is hunter2")


@tool(isolation="process")
def leaves() -> str:
    """Calls exit."""
    raise SystemExit(3)
