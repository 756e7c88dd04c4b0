"""One at a time: tokens of one key are renewed by one task of one process, the others wait.

Two that renew with the same refresh token at once lose both: servers take that for a theft.
"""

from __future__ import annotations

import os
import threading
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final
from weakref import WeakValueDictionary

import anyio

from toolcrib.errors import ConfigurationError
from toolcrib.sources.mcp.auth.grant import TokenKey
from toolcrib.sources.mcp.auth.private_files import LOCKING, is_locked, open_lock

__all__ = ["LOGIN", "PATIENCE", "in_turn"]

PATIENCE: Final = 30.0
"""Seconds to wait for the others; then one that hangs is passed by."""

LOGIN: Final = 400.0
"""The same where they may be waiting for somebody to log in, who is not to be asked twice."""


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
        descriptor = None if directory is None else _opened(directory, key)
        try:
            if descriptor is not None:
                await _soon(lambda: is_locked(descriptor), patience)
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
            await anyio.sleep(LOCKING)
        return True
    return False


def _opened(directory: Path, key: TokenKey) -> int | None:
    try:
        return open_lock(directory / f"{key.digest}.lock")
    except (OSError, ConfigurationError):
        return None  # where nothing can be kept, nobody else keeps anything either
