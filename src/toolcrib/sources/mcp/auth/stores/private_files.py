"""Files that only their owner may read, from the first moment (report CF10).

A file is made with its rights and then renamed into place: no chmod afterwards, no moment in
between, and nobody ever reads half of one.
"""

from __future__ import annotations

import logging
import os
import secrets
import stat
from contextlib import suppress
from pathlib import Path

from toolcrib.errors import ConfigurationError

__all__ = [
    "private_directory",
    "read_private",
    "state_directory",
    "write_private",
]

logger = logging.getLogger("toolcrib.mcp")

_OTHERS = stat.S_IRWXG | stat.S_IRWXO
_FLAGS = os.O_CLOEXEC | os.O_NOFOLLOW


def state_directory() -> Path:
    """`$XDG_STATE_HOME/toolcrib`, by default `~/.local/state/toolcrib`; perhaps not there yet.
    Raises `ConfigurationError`."""
    given = os.environ.get("XDG_STATE_HOME", "")
    # A relative one is to be ignored, says the standard.
    if os.path.isabs(given):
        return Path(given) / "toolcrib"
    try:
        return Path.home() / ".local" / "state" / "toolcrib"
    except RuntimeError:
        raise ConfigurationError("nowhere to keep tokens: set XDG_STATE_HOME, or HOME") from None


def private_directory(path: Path) -> None:
    """Makes `path` with 0700; takes the rights of others away from one that has them."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with suppress(FileExistsError):
        path.mkdir(mode=0o700)
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | _FLAGS)
    try:
        _narrow(descriptor, path)
    finally:
        os.close(descriptor)


def read_private(path: Path) -> bytes | None:
    """What is in the file, None where there is none. One that others may read is narrowed first,
    with a warning; one of another owner is refused. Raises `ConfigurationError`."""
    try:
        # A pipe in its place would wait for a writer.
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | _FLAGS)
        try:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise ConfigurationError(f"{path}: is no file: move it away")
            _narrow(descriptor, path)
            with open(descriptor, "rb", closefd=False) as file:
                return file.read()
        finally:
            os.close(descriptor)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise ConfigurationError(f"{path}: {error.strerror}") from error


def write_private(path: Path, data: bytes) -> None:
    """Puts `data` in the place of whatever `path` holds, all of it or nothing."""
    fresh = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _FLAGS, 0o600)
    try:
        with open(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(descriptor)
        os.replace(fresh, path)
    except BaseException:
        with suppress(OSError):
            fresh.unlink()
        raise


def _narrow(descriptor: int, path: Path) -> None:
    found = os.fstat(descriptor)
    if found.st_uid != os.geteuid():
        raise ConfigurationError(f"{path}: belongs to somebody else: it is not used")
    if rights := stat.S_IMODE(found.st_mode) & _OTHERS:
        os.fchmod(descriptor, stat.S_IMODE(found.st_mode) & ~_OTHERS)
        logger.warning("%s could be read by others (%03o): that is over now", path, rights)
