"""What the host decides about a server's tools: which of them, under which names, in which words.

Pure: a listing and decisions in, decided names and texts out. All of it goes by the server's own
(remote) names. Not the prefix (`server.namespace`), nor exposure and scopes (`policy`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase

from toolcrib.errors import InvalidDefinition
from toolcrib.frozen import NOTHING
from toolcrib.sources.mcp.checks import mapping, texts

__all__ = ["AS_LISTED", "Overrides"]


@dataclass(frozen=True, slots=True)
class Overrides:
    """What is decided about the tools of one server; without any, all are offered as listed.

    `include` and `exclude` are patterns over remote names, as those of policies: `*`, `?`,
    `[seq]`, the whole name, case counts. `include` None offers every tool, an empty one none;
    `exclude` wins over it. `rename` gives a tool another name under the server's prefix,
    `descriptions` another description; one for a tool that is not listed waits until it is.
    Raises `InvalidDefinition`.
    """

    include: Sequence[str] | None = None
    exclude: Sequence[str] = ()
    rename: Mapping[str, str] = field(default=NOTHING)
    descriptions: Mapping[str, str] = field(default=NOTHING)

    def __post_init__(self) -> None:
        for name in ("include", "exclude"):
            if (patterns := getattr(self, name)) is not None:
                object.__setattr__(self, name, texts(f"tools: {name}", patterns))
        for name in ("rename", "descriptions"):
            object.__setattr__(self, name, mapping(f"tools: {name}", getattr(self, name)))
        if wrong := _fault(self):
            raise InvalidDefinition(f"tools: {wrong}")

    def takes(self, remote: str) -> bool:
        """Whether the server's tool `remote` is offered at all."""
        if any(fnmatchcase(remote, pattern) for pattern in self.exclude):
            return False
        return self.include is None or any(fnmatchcase(remote, one) for one in self.include)

    def name(self, remote: str) -> str:
        """What the tool is called under the prefix."""
        return self.rename.get(remote, remote)

    def taken(self, listed: Iterable[str]) -> Mapping[str, str]:
        """`{name: remote}` of the names that renamed tools of this list have. They are theirs: a
        tool the server itself calls so must not get the calls meant for them."""
        offered = {remote for remote in listed if self.takes(remote)}
        return {new: remote for remote, new in self.rename.items() if remote in offered}

    def idle(self, listed: Iterable[str]) -> tuple[str, ...]:
        """What has nothing to decide in this list, in words. No fault: lists change."""
        names = set(listed)
        patterns = (("include", self.include or ()), ("exclude", self.exclude))
        return (
            *(
                f"{key} {pattern!r} matches none of its tools"
                for key, those in patterns
                for pattern in those
                if not any(fnmatchcase(name, pattern) for name in names)
            ),
            *(
                f"{key} {remote!r} waits: it lists no such tool"
                for key, those in (("rename", self.rename), ("descriptions", self.descriptions))
                for remote in those
                if remote not in names
            ),
        )


def _fault(overrides: Overrides) -> str:
    """What is wrong with the decisions; empty when nothing is."""
    for key in ("include", "exclude", "rename", "descriptions"):
        if any(not one.strip() for one in getattr(overrides, key) or ()):
            return f"{key} holds a blank name or pattern"
    by_new: dict[str, str] = {}
    for remote, new in overrides.rename.items():
        if not new.strip():
            return f"rename {remote!r}: the new name is blank"
        if (other := by_new.setdefault(new, remote)) != remote:
            return f"rename: {other!r} and {remote!r} would both be {new!r}"
    return ""


AS_LISTED = Overrides()
