"""Whole texts of results that were cut, for the model to read on: files, bounded in every way.

Off unless an assembly is given a store. Nothing is written while nothing is cut. A text belongs to
the caller and the conversation it was made for: its file's name is a hash of both with an id that
cannot be guessed, so for anybody else it does not exist, and nothing need be remembered.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import re
import secrets
import stat
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from toolcrib.content import ToolResult
from toolcrib.definition import UNCUT, Annotations
from toolcrib.errors import InvalidDefinition
from toolcrib.manifest import ManifestTool, define_tool
from toolcrib.policy import Policy
from toolcrib.tool import CallContext

__all__ = ["READ_TOOL", "Piece", "SpillStore", "read_tool"]

logger = logging.getLogger("toolcrib.spill")

READ_TOOL: Final = "read_tool_result"
DEFAULT_READ: Final = 16_000
MAX_READ: Final = 40_000
"""Bytes of one reading."""

_ID = re.compile(r"r[A-Za-z0-9_-]{22}\Z")
_FILE = re.compile(r"[0-9a-f]{64}\.txt\Z")


@dataclass(frozen=True, slots=True)
class Piece:
    """Part of a kept text: `text` begins at byte `offset`; `next_offset` is None at the end."""

    text: str
    offset: int
    next_offset: int | None
    total_bytes: int


class SpillStore:
    """Keeps whole texts in `directory`, which is made (0700) when the first is kept.

    A text over `max_result_bytes` is kept up to there, and says so. When all together would exceed
    `max_total_bytes` the oldest go; after `max_age` seconds each goes. Several processes may share
    a directory. Raises `InvalidDefinition` for a directory others may enter, and for bounds < 1.
    """

    def __init__(
        self,
        directory: str | os.PathLike[str],
        *,
        max_result_bytes: int = 8 * 1024 * 1024,
        max_total_bytes: int = 256 * 1024 * 1024,
        max_age: float = 3600.0,
    ) -> None:
        self.directory = Path(directory)
        if min(max_result_bytes, max_total_bytes, max_age) < 1:
            raise InvalidDefinition("the bounds of a spill store are numbers from 1")
        self.max_result_bytes = min(max_result_bytes, max_total_bytes)
        self.max_total_bytes = max_total_bytes
        self.max_age = max_age
        if self.directory.exists():
            self._check_directory()

    def _check_directory(self) -> None:
        mode = self.directory.stat().st_mode
        if not stat.S_ISDIR(mode) or mode & 0o077:
            raise InvalidDefinition(
                f"spill directory {str(self.directory)!r} must be a directory only its owner may"
                " enter (mode 700); name one that does not exist yet to have it made"
            )

    def keep(self, text: str, ctx: CallContext) -> str | None:
        """Keeps `text` for the caller and conversation of `ctx` and gives its id; None where it
        cannot be written, which is logged: the result is then only cut."""
        result_id = f"r{secrets.token_urlsafe(16)}"
        data = self._bounded(text)
        try:
            self.directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._check_directory()
            self.sweep(len(data))
            self._write(self.directory / _file_name(result_id, *_owner(ctx)), data)
        except (OSError, InvalidDefinition) as error:
            logger.error("a result of tool %r could not be kept: %s", ctx.name, error)
            return None
        return result_id

    def _bounded(self, text: str) -> bytes:
        data = text.encode("utf-8", "replace")
        if len(data) <= self.max_result_bytes:
            return data
        note = f"\n[the kept text ends here: {len(data)} bytes were too many]".encode()
        room = max(self.max_result_bytes - len(note), 0)
        kept = data[:room].decode("utf-8", "ignore").encode()  # never half a character
        return kept + note[: self.max_result_bytes - len(kept)]

    def _write(self, path: Path, data: bytes) -> None:
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0)
        with open(os.open(path, flags, 0o600), "wb") as file:  # 0600 from its first moment (CF10)
            try:
                file.write(data)
            except OSError:
                path.unlink(missing_ok=True)
                raise

    def read(
        self, result_id: str, ctx: CallContext, offset: int = 0, limit: int = DEFAULT_READ
    ) -> Piece | None:
        """`limit` bytes (at most 40,000) from `offset` of the text kept as `result_id`, at whole
        characters. None where there is none for this caller, whatever the reason."""
        if not _ID.match(result_id):
            return None
        self.sweep()
        principal, session = _owner(ctx)
        for owner in dict.fromkeys((session, "")):  # made in this conversation, or outside any
            path = self.directory / _file_name(result_id, principal, owner)
            try:
                with path.open("rb") as file:
                    total = os.fstat(file.fileno()).st_size
                    start = min(max(offset, 0), total)
                    file.seek(start)
                    data = file.read(min(max(limit, 4), MAX_READ))
            except FileNotFoundError:
                continue
            return _piece(data, start, total)
        return None

    def sweep(self, room: int = 0) -> None:
        """Removes what is too old, then the oldest until `room` bytes more would fit."""
        found = sorted(self._files())
        total = sum(size for _, _, size in found)
        oldest = time.time() - self.max_age
        for made, path, size in found:
            if made >= oldest and total + room <= self.max_total_bytes:
                break
            path.unlink(missing_ok=True)
            total -= size

    def _files(self) -> Iterator[tuple[float, Path, int]]:
        """Our own files only, with their times and sizes; whatever else is there stays."""
        if not self.directory.is_dir():
            return
        for entry in os.scandir(self.directory):
            if not _FILE.match(entry.name):
                continue
            try:
                info = entry.stat(follow_symlinks=False)
            except FileNotFoundError:  # another process has just removed it
                continue
            yield info.st_mtime, Path(entry.path), info.st_size

    def __repr__(self) -> str:
        return f"<SpillStore {str(self.directory)!r}>"


def _owner(ctx: CallContext) -> tuple[str, str]:
    who = ctx.principal
    session = "" if ctx.session is None else ctx.session.id
    return json.dumps([who.tenant, who.id]), session


def _file_name(result_id: str, principal: str, session: str) -> str:
    text = json.dumps([result_id, principal, session])
    return f"{hashlib.sha256(text.encode()).hexdigest()}.txt"


def _piece(data: bytes, start: int, total: int) -> Piece:
    """`data` read at `start`, less the parts of characters at both ends."""
    before = 0
    while before < min(len(data), 3) and data[before] & 0xC0 == 0x80:
        before += 1
    text = data[before:].decode("utf-8", "ignore")
    end = start + before + len(text.encode())
    if end == start and data:  # no character at all: not a text of ours, but reading must go on
        end = start + len(data)
    return Piece(text, start + before, end if end < total else None, total)


_SCHEMA: Final = {
    "type": "object",
    "properties": {
        "id": {"type": "string", "description": "The id the shortened result names"},
        "offset": {
            "type": "integer",
            "minimum": 0,
            "default": 0,
            "description": "First byte",
        },
        "limit": {
            "type": "integer",
            "minimum": 4,
            "maximum": MAX_READ,
            "default": DEFAULT_READ,
            "description": "Bytes at most",
        },
    },
    "required": ["id"],
    "additionalProperties": False,
}


def read_tool(store: SpillStore) -> ManifestTool[Any]:
    """The tool by which a model reads what `store` keeps for it; always in view."""

    def read(ctx: CallContext, arguments: dict[str, Any]) -> ToolResult:
        offset, limit = int(arguments.get("offset", 0)), int(arguments.get("limit", DEFAULT_READ))
        piece = store.read(arguments["id"], ctx, offset, limit)
        if piece is None:
            return ToolResult.failed(
                "not_found", "no result is kept under that id (any more): call the tool again"
            )
        end = piece.offset + len(piece.text.encode())
        rest = "the end" if piece.next_offset is None else f"next offset: {piece.next_offset}"
        said = f"[bytes {piece.offset} to {end} of {piece.total_bytes}; {rest}]"
        return ToolResult.ok(f"{piece.text}\n{said}", piece)

    return define_tool(
        READ_TOOL,
        description="Reads the whole text of an earlier tool result that was shown only in part.",
        input_schema=_SCHEMA,
        execute=read,
        kind="results",
        annotations=Annotations("Read a tool result", read_only=True, idempotent=True),
        policy=Policy(exposure="always"),
        format=UNCUT,
    )
