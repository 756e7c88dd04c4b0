"""The empty mapping that nobody can fill: the default of mapping fields in frozen values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, NoReturn

__all__ = ["NOTHING"]


class _Nothing(Mapping[str, Any]):
    """Hashable, which is what lets it be a default of a dataclass field on Python 3.11."""

    __slots__ = ()

    def __getitem__(self, key: str) -> NoReturn:
        raise KeyError(key)

    def __iter__(self) -> Iterator[str]:
        return iter(())

    def __len__(self) -> int:
        return 0

    def __hash__(self) -> int:
        return 0

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Mapping) and not other

    def __repr__(self) -> str:
        return "{}"


NOTHING: Final[Mapping[str, Any]] = _Nothing()
