"""Vectors kept on disk, so that a program's next start need not make them again.

One SQLite file that several processes may use at once; a killed one leaves it whole. It is a cache:
whatever is wrong with it costs time, never a search. What is in memory is `matrix`.
"""

from __future__ import annotations

import contextlib
import hashlib
import logging
import os
import sqlite3
import threading
import zlib
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import TypeAlias

import numpy as np

from toolcrib.dense.encoder import Vectors
from toolcrib.errors import InvalidDefinition

__all__ = ["VectorCache", "mark_of"]

logger = logging.getLogger("toolcrib.dense.vectors")

MOST_VECTORS = 200_000
"""Vectors kept by default: of 384 dimensions, 170 MB."""
_PATIENCE = 5.0
"""Seconds to wait for another process's write."""
_AT_ONCE = 500
_SCHEMA = """
CREATE TABLE IF NOT EXISTS vectors (
    mark BLOB PRIMARY KEY, vector BLOB NOT NULL, used INTEGER NOT NULL) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS by_use ON vectors (used);
"""
Work: TypeAlias = Callable[[], dict[bytes, Vectors]]
_NEXT_USE = "SELECT coalesce(max(used), 0) + 1 FROM vectors"


def mark_of(encoder: str, text: str) -> bytes:
    """What a vector is filed under: 32 bytes for the encoder's name and the text."""
    return hashlib.sha256(f"{encoder}\0{text}".encode("utf-8", "surrogatepass")).digest()


class VectorCache:
    """Vectors by `mark_of`, in the file `path`; its folder is made when first needed.

    At most `most` vectors, those unused for longest dropped first. Stored as float16: good to three
    digits. From any thread. A file that is no cache (any more) is set aside as `….broken` with a
    warning and begun anew; with one that cannot be used at all, nothing is kept.
    """

    def __init__(self, path: Path, *, most: int = MOST_VECTORS) -> None:
        if most < 1:
            raise InvalidDefinition(f"a cache of {most} vectors keeps nothing")
        self.path = path
        self.most = most
        self._lock = threading.Lock()
        self._open: sqlite3.Connection | None = None
        self._file = (0, 0)
        self._closed = False
        self._warned = False

    def get(self, marks: Iterable[bytes]) -> dict[bytes, Vectors]:
        """The vectors that are kept of `marks`, each of one dimension."""
        wanted = list(dict.fromkeys(marks))
        found: dict[bytes, Vectors] = {}
        for start in range(0, len(wanted), _AT_ONCE):
            some = wanted[start : start + _AT_ONCE]
            found |= self._tried(partial(self._read, some))
        return found

    def put(self, vectors: Mapping[bytes, Vectors]) -> None:
        """Keeps `vectors` too, in place of those of the same marks."""
        if vectors:
            self._tried(partial(self._write, vectors))

    def close(self) -> None:
        """Closes the file; nothing is found or kept from then on. Safe twice."""
        with self._lock:
            self._closed = True
            self._drop_connection()

    def _tried(self, work: Work) -> dict[bytes, Vectors]:
        """What `work` gives, with a file begun anew in between if the file turns out broken."""
        with self._lock:
            for _ in range(2):
                if self._closed:
                    break
                try:
                    return work()
                except sqlite3.OperationalError as error:  # locked for too long, a full disk
                    self._warn("cannot be used now", error)
                    self._drop_connection()
                    break
                except sqlite3.DatabaseError as error:
                    self._set_aside(error)
                except OSError as error:
                    self._warn("cannot be used", error)
                    break
        return {}

    def _read(self, marks: list[bytes]) -> dict[bytes, Vectors]:
        connection = self._connection()
        places = ",".join("?" * len(marks))
        rows = connection.execute(
            f"SELECT mark, vector FROM vectors WHERE mark IN ({places})", marks
        )
        found = {mark: vector for mark, kept in rows if (vector := _unpacked(kept)) is not None}
        with contextlib.suppress(sqlite3.OperationalError), connection:  # read-only is no harm
            connection.execute(
                f"UPDATE vectors SET used = ({_NEXT_USE}) WHERE mark IN ({places})", marks
            )
        return found

    def _write(self, vectors: Mapping[bytes, Vectors]) -> dict[bytes, Vectors]:
        connection = self._connection()
        with connection:
            connection.execute("BEGIN IMMEDIATE")
            use: int = connection.execute(_NEXT_USE).fetchone()[0]
            connection.executemany(
                "INSERT OR REPLACE INTO vectors VALUES (?, ?, ?)",
                ((mark, _packed(vector), use) for mark, vector in vectors.items()),
            )
            count: int = connection.execute("SELECT count(*) FROM vectors").fetchone()[0]
            if count > self.most:
                connection.execute(
                    "DELETE FROM vectors WHERE mark IN"
                    " (SELECT mark FROM vectors ORDER BY used, mark LIMIT ?)",
                    (count - self.most,),
                )
        return {}

    def _connection(self) -> sqlite3.Connection:
        if self._open is None:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            connection = sqlite3.connect(self.path, timeout=_PATIENCE, check_same_thread=False)
            self._open = connection
            self._file = _identity(self.path)
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = NORMAL")
            connection.executescript(_SCHEMA)
        return self._open

    def _drop_connection(self) -> None:
        connection, self._open = self._open, None
        if connection is not None:
            connection.close()

    def _set_aside(self, error: sqlite3.DatabaseError) -> None:
        """Moves the file away, unless another process has done so and begun a new one."""
        self._drop_connection()
        if _identity(self.path) != self._file:
            return
        logger.warning("%s is broken (%s): set aside, and begun anew", self.path, error)
        for ending in ("", "-wal", "-shm"):
            try:
                os.replace(f"{self.path}{ending}", f"{self.path}.broken{ending}")
            except FileNotFoundError:
                pass
            except OSError as problem:
                self._warn("cannot be set aside", problem)

    def _warn(self, what: str, error: Exception) -> None:
        if not self._warned:
            self._warned = True
            logger.warning("%s %s, vectors are made without it: %s", self.path, what, error)


def _identity(path: Path) -> tuple[int, int]:
    try:
        found = path.stat()
    except OSError:
        return (0, 0)
    return (found.st_dev, found.st_ino)


def _packed(vector: Vectors) -> bytes:
    data = vector.astype(np.float16).tobytes()
    return zlib.crc32(data).to_bytes(4, "big") + data


def _unpacked(kept: object) -> Vectors | None:
    """The vector in `kept`; None where it is not what was written."""
    if not isinstance(kept, bytes) or len(kept) < 6 or len(kept) % 2:
        return None
    if zlib.crc32(kept[4:]).to_bytes(4, "big") != kept[:4]:
        return None
    return np.frombuffer(kept[4:], np.float16).astype(np.float32)
