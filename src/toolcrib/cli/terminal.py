"""How anything gets onto a person's terminal, or as JSON onto standard output.

What a model, a tool or a server says never commands the terminal: `plain` leaves out what could,
`visible` shows it escaped, where nothing may be hidden. Everything goes to the real standard
output, whatever a tool makes of `sys.stdout`.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from typing import Any, Final

import orjson
from rich.console import Console
from rich.markup import escape
from rich.table import Table

__all__ = ["console", "plain", "print_json", "print_table", "short", "visible"]

_LEAST: Final = 30
"""Characters of a table's last column that are shown however narrow the terminal is."""
_CONTROL: Final[Mapping[int, None]] = {
    code: None for code in (*range(0x20), *range(0x7F, 0xA0)) if code not in (0x09, 0x0A)
}


def console() -> Console:
    return Console(file=sys.__stdout__, highlight=False, soft_wrap=True)


def plain(text: str) -> str:
    """`text` without control characters, except tabs and line ends."""
    return text.translate(_CONTROL)


def visible(text: str) -> str:
    """`text` on one line, with an escape for every character that prints nothing or turns the
    order of what does (control characters, marks of direction): nothing of it is hidden."""
    return "".join(c if c.isprintable() else json.dumps(c)[1:-1] for c in text)


def short(text: str, most: int) -> str:
    """`text` as one line of at most `most` characters."""
    line = " ".join(plain(text[: 8 * most]).split())
    return line if len(line) <= most and len(text) <= 8 * most else line[: most - 1] + "…"


def print_table(names: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Only the last column gives way where the terminal is narrow: names are there to be typed."""
    to = console()
    rows = [[plain(cell) for cell in row] for row in rows]
    columns = range(len(names) - 1)
    widths = [max(len(names[at]), *(len(row[at]) for row in rows)) for at in columns]
    fixed = sum(widths) + 2 * len(widths)
    room = max(_LEAST, to.width - fixed)
    table = Table(*names, box=None, pad_edge=False)
    for row in rows:
        table.add_row(*map(escape, row[:-1]), escape(short(row[-1], room)))
    to.width = fixed + room  # rich would rather cut a name than go beyond the terminal
    to.print(table)


def print_json(value: Any) -> None:
    text = orjson.dumps(value, default=str, option=orjson.OPT_INDENT_2).decode()
    print(text, file=sys.__stdout__)
