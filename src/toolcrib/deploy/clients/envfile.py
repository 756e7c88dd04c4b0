"""The `envFile` of VS Code: lines of `NAME=value`.

Blank lines and those that begin with `#` mean nothing, `export ` may stand before a name. A value
in single quotes is taken as it is, in double quotes with `\\n`, `\\"` and `\\\\`; any other ends
before ` #` and without blanks around it. Nothing is expanded.
"""

from __future__ import annotations

import re

__all__ = ["MAX_BYTES", "EnvFileFault", "read_env_file"]

MAX_BYTES = 64 * 1024

_NAME = re.compile(r"\s*(?:export\s+)?([A-Za-z_][A-Za-z0-9_.-]*)\s*=\s*")
_QUOTED = re.compile(r"""(?:'([^']*)'|"((?:[^"\\]|\\.)*)")\s*(?:\#.*)?\Z""")
_NOTE = re.compile(r"(?:\A|\s)\#")
_ESCAPE = re.compile(r"\\(.)")
_ESCAPED = {"n": "\n", "r": "\r", "t": "\t"}


class EnvFileFault(Exception):
    """A line that is none of `NAME=value`; its text is never shown."""

    def __init__(self, line: int) -> None:
        super().__init__("not of the form NAME=value")
        self.line = line


def read_env_file(text: str) -> dict[str, str]:
    """The variables of the file, the last of each name. Raises `EnvFileFault`."""
    found: dict[str, str] = {}
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        name = _NAME.match(line)
        value = _value(line[name.end() :]) if name is not None else None
        if name is None or value is None:
            raise EnvFileFault(number)
        found[name[1]] = value
    return found


def _value(text: str) -> str | None:
    """What is written behind the `=`; None where a quote does not end, or not the line."""
    if text[:1] not in ("'", '"'):
        note = _NOTE.search(text)
        return (text if note is None else text[: note.start()]).rstrip()
    quoted = _QUOTED.match(text)
    if quoted is None:
        return None
    single, double = quoted.groups()
    if single is not None:
        return str(single)
    return _ESCAPE.sub(lambda escape: _ESCAPED.get(escape[1], escape[1]), double)
