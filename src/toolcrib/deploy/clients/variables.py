"""Names of environment variables for the values of a file that may not be printed."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable

__all__ = ["Variables"]

_SHORTEST = 8


class Variables:
    """Names for the secrets of one file: each value one name, no name for two values."""

    def __init__(self, taken: Iterable[str] = ()) -> None:
        self._by_name: dict[str, str | None] = dict.fromkeys(taken)

    def name(self, secret: str, *wishes: str) -> str:
        """The first wish that is free, or has this very value already; then with a number."""
        names = [_variable(wish) for wish in wishes]
        numbered = (f"{names[-1]}_{number}" for number in itertools.count(2))
        wanted = itertools.chain(names, numbered)
        return next(one for one in wanted if self._by_name.setdefault(one, secret) == secret)

    def has_part_in(self, text: str) -> bool:
        """Whether one of the values is in `text`: what is a secret in one place is one in all.
        Short values and paths do not count, they are in ordinary texts."""
        return any(
            len(value) >= _SHORTEST and "/" not in value and value in text
            for value in self._by_name.values()
            if value is not None
        )


def _variable(wish: str) -> str:
    name = re.sub(r"[^A-Za-z0-9]+", "_", wish).strip("_").upper() or "SECRET"
    return name if not name[0].isdigit() else f"_{name}"
