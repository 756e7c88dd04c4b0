"""Running a synchronous function in a process of its own, which can really be stopped.

A thread cannot be ended from outside; a process can, with everything it started. The price is a
fresh interpreter per call (about 0.2 s), importable functions, and arguments and results that can
be pickled. Knows nothing of calls and limits: cancelling the wait is what kills.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import multiprocessing
import os
import signal
import sys
from collections.abc import Callable, Mapping
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from typing import Any

from toolcrib.errors import ToolError

__all__ = ["ProcessDied", "run_isolated"]

_SPAWN = multiprocessing.get_context("spawn")  # a fork would copy our threads' locks as they are


class ProcessDied(Exception):
    """The process ended without an answer: killed, out of memory, or gone by `os._exit`."""


async def run_isolated(
    function: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> Any:
    """What `function` returns, in a process of its own group. When cancelled, the group is killed.

    A `ToolError` passes with its text; of any other exception the text does, as `RuntimeError`.
    Raises `ProcessDied` when the process ends without an answer.
    """
    loop = asyncio.get_running_loop()
    receiver, sender = _SPAWN.Pipe(duplex=False)
    work = (function.__module__, function.__qualname__, args, dict(kwargs))
    process = _SPAWN.Process(target=_answer, args=(sender, work), daemon=True)
    starting = loop.run_in_executor(None, process.start)
    try:
        await asyncio.shield(starting)
        sender.close()
        await _readable(loop, receiver)
        return _unpacked(await loop.run_in_executor(None, _received, receiver))
    finally:
        if starting.done():
            _kill(process)
        else:  # cancelled while it was being started: it shall not live on unseen
            starting.add_done_callback(lambda _: _kill(process))
        receiver.close()
        sender.close()


async def _readable(loop: asyncio.AbstractEventLoop, receiver: Connection) -> None:
    """Until there is an answer, or the process is gone and the pipe with it."""
    ready: asyncio.Future[None] = loop.create_future()

    def wake() -> None:
        if not ready.done():
            ready.set_result(None)

    loop.add_reader(receiver.fileno(), wake)
    try:
        await ready
    finally:
        loop.remove_reader(receiver.fileno())


def _received(receiver: Connection) -> tuple[str, Any]:
    try:
        answer: tuple[str, Any] = receiver.recv()
    except EOFError:
        raise ProcessDied("the process ended without an answer") from None
    return answer


def _unpacked(answer: tuple[str, Any]) -> Any:
    kind, value = answer
    if kind == "value":
        return value
    if kind == "said":
        raise ToolError(value)
    raise RuntimeError(value)


def _kill(process: BaseProcess) -> None:
    if process.pid is None:
        return
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    if process.is_alive():  # before it had a group of its own
        process.kill()
    process.join(1)


def _answer(sender: Connection, work: tuple[str, str, tuple[Any, ...], dict[str, Any]]) -> None:
    """In the new process."""
    os.setsid()
    sys.stdin = open(os.devnull)  # noqa: SIM115 for as long as the process lives
    module, where, args, kwargs = work
    try:
        sender.send(("value", _found(module, where)(*args, **kwargs)))
    except ToolError as error:
        sender.send(("said", str(error)))
    except BaseException as error:
        sender.send(("failed", f"{type(error).__name__}: {error}"))
    sender.close()


def _found(module: str, where: str) -> Callable[..., Any]:
    found: Any = importlib.import_module(module)
    for step in where.split("."):
        found = getattr(found, step)
    function: Callable[..., Any] = getattr(found, "function", found)  # what @tool has wrapped
    return function
