"""Faults of the process: its start, its noise, its end, its children."""

from __future__ import annotations

import os
import signal
import sys

from toolcrib.testing.fault_server.acts import Acts, Asked, Block, Raw, Stay
from toolcrib.testing.fault_server.answer_faults import NOISE, noise
from toolcrib.testing.fault_server.faults import fault
from toolcrib.testing.fault_server.values import COUNT, SECONDS, one_of

__all__: list[str] = []


@fault(method="start", takes=SECONDS, value="1")
def slow_start(asked: Asked, acts: Acts, value: str) -> Acts:
    """Does nothing for its first SECONDS."""
    yield from acts
    yield Block(float(value))


@fault(method="start", takes=NOISE, value="bytes", only="stdio")
def banner(asked: Asked, acts: Acts, value: str) -> Acts:
    """Writes a banner to stdout before anything else: like `garbage`, `text` or `bytes` too."""
    yield from acts
    yield Raw(noise("Welcome to the fault server!", value))


@fault(method="start", takes=COUNT, value="1000000")
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


@fault(method="start", takes=one_of("same", "setsid"), value="same", only="stdio")
def child(asked: Asked, acts: Acts, value: str) -> Acts:
    """Starts a child that inherits its pipes and sleeps a minute, in the `same` session or after
    `setsid`."""
    yield from acts
    if os.fork() == 0:
        if value == "setsid":
            os.setsid()
        # Its command line names the server's home too: whoever counts what is left finds it.
        code = "import time; time.sleep(60)"
        os.execv(sys.executable, [sys.executable, "-S", "-I", "-c", code, *sys.argv[1:]])


@fault()
def steals_stdin(asked: Asked, acts: Acts, value: str) -> Acts:
    """Has a child read the standard input during the call: over stdio, the client's messages."""
    import subprocess

    reader = [sys.executable, "-S", "-I", "-c", "input()", *sys.argv[1:]]
    subprocess.run(reader, check=False, timeout=60)
    yield from acts
