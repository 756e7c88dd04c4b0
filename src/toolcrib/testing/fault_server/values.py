"""What a fault may be given after its `=`: judged where it is asked for, not where it acts."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final, NamedTuple

__all__ = ["CODE", "COUNT", "NAME", "NO_VALUE", "SECONDS", "STATUS", "VERSION", "Takes", "one_of"]


class Takes(NamedTuple):
    """`word` is what `--list` shows, `says` what a refusal says; `fits` judges a text."""

    word: str
    says: str
    fits: Callable[[str], object]


def one_of(*values: str) -> Takes:
    """One of these, the first where nobody says which."""
    return Takes("|".join(values), f"one of {', '.join(values)}", values.__contains__)


NO_VALUE: Final = Takes("", "no value", "".__eq__)
SECONDS: Final = Takes("SECONDS", "seconds", re.compile(r"[0-9]{1,6}(\.[0-9]{1,6})?").fullmatch)
COUNT: Final = Takes("N", "a whole number", re.compile(r"[0-9]{1,9}").fullmatch)
STATUS: Final = Takes("STATUS", "an HTTP status", re.compile(r"[2-5][0-9]{2}").fullmatch)
CODE: Final = Takes("CODE", "a JSON-RPC error code", re.compile(r"-?[0-9]{1,9}").fullmatch)
NAME: Final = Takes("NAME", "the name of a tool", str.strip)
VERSION: Final = Takes("VERSION", "a protocol version", str.strip)
