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
_SHOWN = {"open": "open (paused)", "given_up": "given up"}
"""What of a state's name does not say by itself whether that is good or bad."""
_TAIL = 8
"""Lines of what a server that is not ready last said."""
_COLUMNS = ("server", "source", "state", "protocol", "tools", "bytes", "ready in", "tries", "since")


def rows_table(rows: Sequence[Row], stderr: bool) -> None:
    """The table, and below it, in full, why a server is not ready and the last lines it said on
    stderr; with `stderr`, everything kept of what each server said."""
    print_table(_COLUMNS, [_cells(row) for row in rows])
    to = console()
    for row in rows:
        said = plain(row.stderr).rstrip().splitlines()
        if not stderr:
            said = said[-_TAIL:] if row.state != "ready" else []
        if row.reason or said:
            to.print(f"\n[bold]{escape(plain(row.server))}:[/bold] {escape(plain(row.reason))}")
        for line in said:
            to.print(f"  | {escape(line)}")


def _cells(row: Row) -> tuple[str, ...]:
    return (
        plain(row.server),
        row.source,
        _SHOWN.get(row.state, row.state),
        row.era or _NONE,
        str(row.tools),
        f"{row.bytes:,}",
        _NONE if row.ready_in is None else f"{row.ready_in:.2f} s",
        str(row.attempts),
        _time(row.since).astimezone().strftime("%H:%M:%S"),
    )


def rows_json(rows: Sequence[Row]) -> None:
    """Every row with every key, whatever the server's state."""
    print_json([_object(row) for row in rows])


def _object(row: Row) -> dict[str, Any]:
    return {**asdict(row), "since": _time(row.since).isoformat(timespec="milliseconds")}


def _time(since: float) -> datetime:
    return datetime.fromtimestamp(since, UTC)
