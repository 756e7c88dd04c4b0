"""The frozen read view of one registry revision, and the entries it is made of."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property

from toolcrib.definition import ToolDefinition
from toolcrib.errors import NotFound
from toolcrib.lazy import LazyTool
from toolcrib.names import NearNames
from toolcrib.policy import NO_POLICY, Policies, Policy
from toolcrib.tool import Tool

__all__ = ["Catalog", "Entry"]


class Entry:
    """One registered tool: what it is, who published it, which policy is in force.

    It also counts the calls in flight, on the loop that runs them, so that a withdrawn tool is
    closed only when nobody uses it any more.
    """

    __slots__ = (
        "definition",
        "in_flight",
        "name",
        "on_idle",
        "open_to_all",
        "original",
        "owner",
        "policy",
        "real",
        "source",
        "tool",
        "withdrawn",
    )

    def __init__(self, tool: Tool, owner: str, policies: Policies) -> None:
        self.tool = tool
        self.real: Tool = (tool.loaded or tool) if isinstance(tool, LazyTool) else tool
        """What is executed: the tool itself, or what a lazy one has become."""
        self.definition: ToolDefinition = tool.definition
        self.name = self.definition.name
        self.owner = owner
        self.source: str = getattr(self.real, "source", "") or owner
        self.original: str = getattr(self.real, "original", self.name)
        own = getattr(tool, "policy", NO_POLICY)
        self.policy: Policy = policies.of(self.name, own if isinstance(own, Policy) else NO_POLICY)
        self.open_to_all = not self.policy.scopes
        self.withdrawn = False
        self.in_flight = 0
        self.on_idle: Callable[[], None] | None = None

    def ended(self) -> None:
        """One call less in flight."""
        self.in_flight -= 1
        if not self.in_flight and self.on_idle is not None:
            on_idle, self.on_idle = self.on_idle, None
            on_idle()

    def __repr__(self) -> str:
        return f"<Entry {self.name!r} of {self.owner!r}>"


class Catalog:
    """The tools of one revision. Never changes; a later change of the registry makes a new one."""

    def __init__(
        self, revision: int, entries: Mapping[str, Entry], always: tuple[str, ...] = ()
    ) -> None:
        self.revision = revision
        self._entries = entries
        self.always = always
        """Names of the tools whose exposure is `always`, sorted: a round need not look for them."""

    def get(self, name: str) -> Entry | None:
        """The entry of that exact name."""
        return self._entries.get(name)

    def find(self, name: str) -> Entry | None:
        """The entry of that name, or of `source/tool` with the source's own name for the tool
        (split at the first slash, rule B3)."""
        found = self._entries.get(name)
        if found is None and "/" in name:
            source, _, original = name.partition("/")
            return self._by_origin.get((source, original))
        return found

    @cached_property
    def _by_origin(self) -> dict[tuple[str, str], Entry]:
        return {(entry.source, entry.original): entry for entry in self._entries.values()}

    def nearest(self, name: str, accept: Callable[[Entry], bool], most: int = 3) -> list[str]:
        """At most `most` names like `name` among the entries that `accept` takes, best first."""
        return self._near.closest(name, lambda known: accept(self._entries[known]), most)

    @cached_property
    def _near(self) -> NearNames:
        return NearNames(self._entries)

    @cached_property
    def definitions(self) -> tuple[ToolDefinition, ...]:
        """Every definition, sorted by name."""
        return tuple(entry.definition for entry in self)

    @cached_property
    def _sorted(self) -> tuple[Entry, ...]:
        return tuple(self._entries[name] for name in sorted(self._entries))

    def select(self, names: Iterable[str]) -> tuple[ToolDefinition, ...]:
        """The definitions of `names`, in that order. Raises `NotFound` naming the unknown ones."""
        wanted = tuple(names)
        if unknown := [name for name in wanted if name not in self._entries]:
            raise NotFound(f"no tools {', '.join(map(repr, unknown))} in revision {self.revision}")
        return tuple(self._entries[name].definition for name in wanted)

    def entries(self) -> Iterable[Entry]:
        """The entries in the order of their registration."""
        return self._entries.values()

    def by_name(self) -> dict[str, Entry]:
        """A copy of the entries by name, in the order of their registration."""
        return dict(self._entries)

    def __iter__(self) -> Iterator[Entry]:
        """The entries, sorted by name."""
        return iter(self._sorted)

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, name: object) -> bool:
        return name in self._entries

    def __repr__(self) -> str:
        return f"<Catalog revision {self.revision}, {len(self)} tools>"
