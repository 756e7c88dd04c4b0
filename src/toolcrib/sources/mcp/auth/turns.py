"""One at a time: tokens of one key are renewed by one task of one process, the others wait.

Two that renew with the same refresh token at once lose both: servers take that for a theft.
"""

from __future__ import annotations

import fcntl
import os
import threading
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final
from weakref import WeakValueDictionary

import anyio

from toolcrib.sources.mcp.auth.grant import TokenKey
from toolcrib.sources.mcp.auth.private_files import private_directory

__all__ = ["in_turn"]

PATIENCE: Final = 30.0
"""Seconds to wait for the others; then one that hangs is passed by."""

LOOK: Final = 0.02


class _Lock:
    """A lock that any thread may let go of, and that can be forgotten."""

    def __init__(self) -> None:
        self.lock = threading.Lock()


_locks: WeakValueDictionary[str, _Lock] = WeakValueDictionary()


@asynccontextmanager
async def in_turn(key: TokenKey, directory: Path | None) -> AsyncGenerator[None]:
    """Inside, no other task of this process renews `key`; with a `directory` for the lock file, no
    other process either."""
    own = _locks.setdefault(key.text, _Lock())
    mine = await _soon(lambda: own.lock.acquire(blocking=False))
    try:
        descriptor = None if directory is None else _opened(directory, key)
        try:
            if descriptor is not None:
                await _soon(lambda: _flocked(descriptor))
            yield
        finally:
            if descriptor is not None:
                os.close(descriptor)  # which lets go of its lock
    finally:
        if mine:
            own.lock.release()


async def _soon(acquired: Callable[[], bool]) -> bool:
    """Whether it was acquired in time. Looks again and again."""
    with anyio.move_on_after(PATIENCE):
        while not acquired():  # noqa: ASYNC110 (neither lock can be awaited)
            await anyio.sleep(LOOK)
        return True
    return False


def _opened(directory: Path, key: TokenKey) -> int | None:
    try:
        private_directory(directory)
        path = directory / f"{key.digest}.lock"
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    except OSError:
        return None  # where nothing can be kept, nobody else keeps anything either


def _flocked(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
