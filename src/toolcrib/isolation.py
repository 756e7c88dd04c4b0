"""Running a synchronous function in a process of its own, which can really be stopped.

A thread cannot be ended from outside; a process can, with everything it started. The price is a
fresh interpreter per call (about 0.2 s), importable functions, and arguments and results that can
be pickled. Knows nothing of calls and limits: cancelling the wait is what kills.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import os
import pickle
import signal
import sys
from collections.abc import Callable, Mapping
from typing import Any

from toolcrib.errors import ToolError

__all__ = ["ProcessDied", "run_isolated"]

MAX_ANSWER = 256 * 1024 * 1024
"""Bytes of a pickled answer; a process that sends more is taken for broken."""

_CODE = "from toolcrib.isolation import answer; answer({})"
_STDERR = 2  # where the process's output goes too: standard output is the host's own


class ProcessDied(Exception):
    """The process ended without an answer: killed, out of memory, or gone by `os._exit`."""


async def run_isolated(
    function: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> Any:
    """What `function` returns, in a process of its own group. When cancelled, the group is killed.

    A `ToolError` passes with its text; of any other exception the text does, as `RuntimeError`.
    Raises `ProcessDied` when the process ends without an answer.
    """
    where = (function.__module__, function.__qualname__, sys.path)
    order = pickle.dumps(where) + pickle.dumps((args, dict(kwargs)))
    receiving, sending = os.pipe()
    try:
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-c",
            _CODE.format(sending),
            stdin=asyncio.subprocess.PIPE,
            stdout=_STDERR,
            pass_fds=(sending,),
            start_new_session=True,
        )
    except BaseException:
        os.close(receiving)
        raise
    finally:
        os.close(sending)
    try:
        return _unpacked(await _exchanged(process, order, receiving))
    finally:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        await process.wait()


async def _exchanged(process: asyncio.subprocess.Process, order: bytes, receiving: int) -> bytes:
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader(limit=MAX_ANSWER)
    pipe = os.fdopen(receiving, "rb", buffering=0)
    transport, _ = await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), pipe)
    try:
        if process.stdin is not None:
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # it says so by dying
                process.stdin.write(order)
                await process.stdin.drain()
            process.stdin.close()
        return await reader.read()
    finally:
        transport.close()


def _unpacked(answer: bytes) -> Any:
    if not answer:
        raise ProcessDied("the process ended without an answer")
    kind, value = pickle.loads(answer)
    if kind == "value":
        return value
    if kind == "said":
        raise ToolError(value)
    raise RuntimeError(value)


def answer(sending: int) -> None:
    """In the new process: runs what standard input orders and sends back what came of it."""
    orders = sys.stdin.buffer
    try:
        module, where, path = pickle.load(orders)
        sys.path[:] = path
        function = _found(module, where)
        args, kwargs = pickle.load(orders)
        sys.stdin = open(os.devnull)  # noqa: SIM115 for as long as the process lives
        told = pickle.dumps(("value", function(*args, **kwargs)))
    except ToolError as error:
        told = pickle.dumps(("said", str(error)))
    except BaseException as error:
        told = pickle.dumps(("failed", f"{type(error).__name__}: {error}"))
    with os.fdopen(sending, "wb") as channel:
        channel.write(told)


def _found(module: str, where: str) -> Callable[..., Any]:
    found: Any = importlib.import_module(module)
    for step in where.split("."):
        found = getattr(found, step)
    function: Callable[..., Any] = getattr(found, "function", found)  # what @tool has wrapped
    return function
