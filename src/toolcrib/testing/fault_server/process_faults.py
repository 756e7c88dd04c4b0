"""Faults of the process: its start, its noise, its end, its children."""

from __future__ import annotations

import os
import signal
import sys

from toolcrib.testing.fault_server.acts import Acts, Asked, Block, Raw, Stay
from toolcrib.testing.fault_server.faults import fault

__all__: list[str] = []


@fault(method="start", value="1")
def slow_start(asked: Asked, acts: Acts, value: str) -> Acts:
    """Does nothing for its first SECONDS."""
    yield from acts
    yield Block(float(value))


@fault(method="start", only="stdio")
def banner(asked: Asked, acts: Acts, value: str) -> Acts:
    """Writes a banner to stdout first."""
    yield from acts
    yield Raw(b"Welcome to the fault server!\n\n{not json}\n[1, 2\n\xff\xfe\n")


@fault(method="start", value="1000000")
def stderr_flood(asked: Asked, acts: Acts, value: str) -> Acts:
    """Writes N bytes to stderr."""
    yield from acts
    os.write(2, b"first line of stderr\n")
    for _ in range(int(value) // 1024):
        os.write(2, b"e" * 1023 + b"\n")
    os.write(2, b"last line of stderr\n")


@fault(method="start", only="stdio")
def stubborn(asked: Asked, acts: Acts, value: str) -> Acts:
    """Ignores SIGTERM and the end of its input."""
    yield from acts
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    yield Stay()


@fault(method="start", value="same", only="stdio")
def child(asked: Asked, acts: Acts, value: str) -> Acts:
    """Starts a sleeping child that inherits its pipes; `setsid`: in a session of its own."""
    yield from acts
    if os.fork() == 0:
        if value == "setsid":
            os.setsid()
        os.execv("/bin/sleep", ["sleep", "60"])


@fault()
def steals_stdin(asked: Asked, acts: Acts, value: str) -> Acts:
    """Has a child read the standard input during the call: over stdio, the client's messages."""
    import subprocess

    subprocess.run([sys.executable, "-S", "-I", "-c", "input()"], check=False, timeout=60)
    yield from acts
