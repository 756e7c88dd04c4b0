"""One at a time: whoever changes the file of tokens, and whoever renews the tokens of one key.

Two that renew with the same refresh token at once lose both: servers take that for a theft.
"""

from __future__ import annotations

import fcntl
import os
import threading
import time
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Final
from weakref import WeakValueDictionary

import anyio

from toolcrib.errors import ConfigurationError
from toolcrib.sources.mcp.auth.stores.grant import TokenKey
from toolcrib.sources.mcp.auth.stores.private_files import private_directory

__all__ = ["LOGIN", "PATIENCE", "in_turn", "locked"]

PATIENCE: Final = 30.0
"""Seconds to wait for others that renew; then one that hangs is passed by."""

LOGIN: Final = 400.0
"""The same where they may be waiting for somebody to log in, who is not to be asked twice."""

HELD: Final = 10.0
"""Seconds that somebody may hold the lock of a file: writing it takes a few milliseconds. A thread
that waits in the kernel instead could not be ended, nor could its process."""

LOOK: Final = 0.02
"""Seconds between two looks at a lock that another has."""


@contextmanager
def locked(path: Path) -> Generator[None]:
    """Inside, no other process and no other thread is. Raises `ConfigurationError` where one does
    not leave."""
    descriptor = _opened(path)
    try:
        end = time.monotonic() + HELD
        while not _is_locked(descriptor):
            if time.monotonic() > end:
                raise ConfigurationError(f"{path}: another process holds it")
            time.sleep(LOOK)
        yield
    finally:
        os.close(descriptor)  # which lets go of the lock


class _Lock:
    """A lock that any thread may let go of, and that can be forgotten."""

    def __init__(self) -> None:
        self.lock = threading.Lock()


_locks: WeakValueDictionary[str, _Lock] = WeakValueDictionary()


@asynccontextmanager
async def in_turn(
    key: TokenKey, directory: Path | None, patience: float = PATIENCE
) -> AsyncGenerator[None]:
    """Inside, no other task of this process renews `key`; with a `directory` for the lock file, no
    other process either."""
    own = _locks.setdefault(key.text, _Lock())
    mine = await _soon(lambda: own.lock.acquire(blocking=False), patience)
    try:
        descriptor = None if directory is None else _openable(directory / f"{key.digest}.lock")
        try:
            if descriptor is not None:
                await _soon(lambda: _is_locked(descriptor), patience)
            yield
        finally:
            if descriptor is not None:
                os.close(descriptor)  # which lets go of its lock
    finally:
        if mine:
            own.lock.release()


async def _soon(acquired: Callable[[], bool], patience: float) -> bool:
    """Whether it was acquired in time. Looks again and again."""
    with anyio.move_on_after(patience):
        while not acquired():  # noqa: ASYNC110 (neither lock can be awaited)
            await anyio.sleep(LOOK)
        return True
    return False


def _opened(path: Path) -> int:
    private_directory(path.parent)
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)


def _openable(path: Path) -> int | None:
    try:
        return _opened(path)
    except (OSError, ConfigurationError):
        return None  # where nothing can be kept, nobody else keeps anything either


def _is_locked(descriptor: int) -> bool:
    """Whether this descriptor has the lock now. On a file system without locks it always has: what
    is lost is only that others wait."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return True
    return True
