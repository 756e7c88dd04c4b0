"""What `toolcrib sources` prints. What servers say never commands the terminal."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

from rich.markup import escape

from toolcrib.cli.rows import Row
from toolcrib.cli.terminal import console, plain, print_json, print_table

__all__ = ["rows_json", "rows_table"]

_NONE = "-"
_COLUMNS = ("server", "source", "state", "protocol", "tools", "bytes", "ready in", "tries", "since")


def rows_table(rows: Sequence[Row], stderr: bool) -> None:
    """The table, and below it, in full, why a server is not ready and what it said."""
    print_table(_COLUMNS, [_cells(row) for row in rows])
    to = console()
    for row in rows:
        if row.reason:
            to.print(f"\n[bold]{escape(plain(row.server))}[/bold] {escape(plain(row.reason))}")
    for row in rows if stderr else ():
        if row.stderr:
            to.print(f"\n[bold]{escape(plain(row.server))}[/bold] last said on stderr:")
            to.print(escape(plain(row.stderr)).rstrip())


def _cells(row: Row) -> tuple[str, ...]:
    return (
        plain(row.server),
        row.source,
        row.state,
        row.era or _NONE,
        str(row.tools),
        f"{row.bytes:,}",
        _NONE if row.ready_in is None else f"{row.ready_in:.2f} s",
        str(row.attempts),
        _time(row.since).astimezone().strftime("%H:%M:%S"),
    )


def rows_json(rows: Sequence[Row], stderr: bool) -> None:
    print_json([_object(row, stderr) for row in rows])


def _object(row: Row, stderr: bool) -> dict[str, Any]:
    found = {**asdict(row), "since": _time(row.since).isoformat(timespec="milliseconds")}
    if not stderr:
        del found["stderr"]
    return found


def _time(since: float) -> datetime:
    return datetime.fromtimestamp(since, UTC)
