"""The one mutable directory of tools: who published what, revision by revision.

Writers take a lock and swap an immutable `Catalog`; readers take the current one and never wait.
Knows nothing of models, rounds or searches: those listen to `Change`.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from toolcrib.catalog import Catalog, Entry
from toolcrib.closing import Closer
from toolcrib.errors import Conflict, InvalidDefinition, NotAvailable, NotFound
from toolcrib.names import is_exposed_name
from toolcrib.policy import Policies
from toolcrib.tool import Tool

__all__ = ["Change", "Listener", "Registry"]

logger = logging.getLogger("toolcrib.registry")


@dataclass(frozen=True, slots=True)
class Change:
    """What one revision changed. `replaced` holds the new entries; all in the order given."""

    catalog: Catalog
    added: tuple[Entry, ...] = ()
    replaced: tuple[Entry, ...] = ()
    removed: tuple[Entry, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.added or self.replaced or self.removed)


Listener = Callable[[Change], None]
"""Called for every change in revision order, in the thread that made it and under the registry's
lock: queue what it says and return."""


class Registry:
    """Every tool of a process by name. All methods may be called from any thread.

    `policies` decides the record in force for each tool when it is registered.
    """

    def __init__(self, policies: Policies | None = None) -> None:
        self._policies = policies or Policies()
        self._governed = policies is not None
        self._lock = threading.Lock()
        self._catalog = Catalog(0, {})
        self._listeners: tuple[Listener, ...] = ()
        self._closed = False
        self.closer = Closer()

    @property
    def catalog(self) -> Catalog:
        """The current revision. Reading it never waits."""
        return self._catalog

    @property
    def policies(self) -> Policies:
        """The records in force."""
        return self._policies

    def govern(self, policies: Policies) -> None:
        """Puts `policies` in force, for the tools already here too. Raises `Conflict` if others
        were put in force before: two assemblies do not share one registry."""
        with self._lock:
            if self._governed:
                raise Conflict("this registry already has policies: give each assembly its own")
            self._governed = True
            self._policies = policies
            entries = tuple(Entry(e.tool, e.owner, policies) for e in self._catalog.entries())
            self._swap(replaced=entries)

    def add(self, tool: Tool, owner: str = "") -> Change:
        """Registers one tool. Raises `Conflict` if the name is taken, whoever asks (rule A1.2),
        `InvalidDefinition` for a name models cannot call, `NotAvailable` after close."""
        entry = self._entry(tool, owner)
        with self._lock:
            self._check_free(entry)
            return self._swap(added=(entry,))

    def replace(self, tool: Tool, owner: str = "") -> Change:
        """Puts `tool` in the place of its namesake of the same owner and closes that one. Raises
        `NotFound` where there is none, `Conflict` where it belongs to another owner."""
        entry = self._entry(tool, owner)
        with self._lock:
            before = self._catalog.get(entry.name)
            if before is None:
                raise NotFound(f"no tool {entry.name!r} to replace: use add()")
            if before.owner != owner:
                raise Conflict(_taken(entry, before))
            if before.tool is tool:
                return Change(self._catalog)
            change = self._swap(replaced=(entry,))
        self.closer.retire((before,))
        return change

    def refresh(self, tool: Tool) -> Change:
        """Takes the definition and policy of a tool that is registered here anew: a lazy one has
        become what it stood for. Place and owner stay, nothing is closed. Changes nothing where the
        tool is no longer here, or says what it said before."""
        with self._lock:
            before = self._catalog.get(tool.definition.name)
            is_news = before is not None and before.definition is not tool.definition
            if before is None or before.tool is not tool or not is_news:
                return Change(self._catalog)
            return self._swap(replaced=(self._entry(tool, before.owner),))

    def remove(self, name: str) -> Change:
        """Withdraws the tool of that name, whoever owns it; unknown names are ignored. Calls that
        begin later answer `not_available`; it is closed when those in flight have ended."""
        with self._lock:
            entry = self._catalog.get(name)
            change = self._swap(removed=(entry,)) if entry is not None else Change(self._catalog)
        self.closer.retire(change.removed)
        return change

    def publish(self, owner: str, tools: Iterable[Tool]) -> Change:
        """Makes `tools` the whole list of `owner`, in one revision: the rest of what it had is
        withdrawn, a tool that is the same object stays untouched, another one of the same name
        replaces it in place. Any conflict raises `Conflict` and changes nothing."""
        entries: dict[str, Entry] = {}
        for tool in tools:
            entry = self._entry(tool, owner)
            if entry.name in entries:
                raise Conflict(_taken(entry, entries[entry.name]))
            entries[entry.name] = entry
        with self._lock:
            had = {e.name: e for e in self._catalog.entries() if e.owner == owner}
            added = tuple(entry for name, entry in entries.items() if name not in had)
            for entry in added:
                self._check_free(entry)
            both = [(had[name], entry) for name, entry in entries.items() if name in had]
            replaced = [(old, new) for old, new in both if old.tool is not new.tool]
            removed = tuple(entry for name, entry in had.items() if name not in entries)
            change = self._swap(added, tuple(new for _, new in replaced), removed)
        self.closer.retire([*removed, *(old for old, _ in replaced)])
        return change

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        """Has `listener` called for every later change, after one call with everything there is
        now as `added`. Returns what ends it."""
        with self._lock:
            listener(Change(self._catalog, added=tuple(self._catalog)))
            self._listeners = (*self._listeners, listener)

        def unsubscribe() -> None:
            with self._lock:
                self._listeners = tuple(one for one in self._listeners if one is not listener)

        return unsubscribe

    def close(self) -> None:
        """Withdraws everything, the last registered first; later changes raise `NotAvailable`."""
        with self._lock:
            if self._closed:
                return
            entries = tuple(self._catalog.entries())
            if entries:
                self._swap(removed=entries)
            self._closed = True
        self.closer.retire(reversed(entries))

    def _entry(self, tool: Tool, owner: str) -> Entry:
        entry = Entry(tool, owner, self._policies)
        if not is_exposed_name(entry.name):
            raise InvalidDefinition(
                f"{entry.name!r} is no name a model can call: use 1 to 64 of A-Z a-z 0-9 _ -"
            )
        return entry

    def _check_free(self, entry: Entry) -> None:
        other = self._catalog.get(entry.name)
        if other is not None:
            raise Conflict(_taken(entry, other))

    def _swap(
        self,
        added: tuple[Entry, ...] = (),
        replaced: tuple[Entry, ...] = (),
        removed: tuple[Entry, ...] = (),
    ) -> Change:
        if self._closed:
            raise NotAvailable("the registry is closed")
        before = self._catalog
        if not (added or replaced or removed):
            return Change(before)
        entries = before.by_name()
        for entry in removed:
            del entries[entry.name]
        for entry in (*replaced, *added):
            entries[entry.name] = entry
        self._catalog = Catalog(
            before.revision + 1, entries, _always(before, added, replaced, removed)
        )
        change = Change(self._catalog, added, replaced, removed)
        for listener in self._listeners:
            try:
                listener(change)
            except Exception:  # one listener's fault is not the publisher's
                logger.exception("a listener failed at revision %d", self._catalog.revision)
        return change


def _always(
    before: Catalog,
    added: tuple[Entry, ...],
    replaced: tuple[Entry, ...],
    removed: tuple[Entry, ...],
) -> tuple[str, ...]:
    gone = {entry.name for entry in (*removed, *replaced)}
    come = [entry.name for entry in (*added, *replaced) if entry.policy.exposure == "always"]
    if not come and gone.isdisjoint(before.always):
        return before.always
    return tuple(sorted([name for name in before.always if name not in gone] + come))


def _taken(entry: Entry, other: Entry) -> str:
    return (
        f"tool name {entry.name!r} of {entry.owner or 'the program'!r} is already taken by"
        f" {other.owner or 'the program'!r}: give one of the sources a prefix, or rename one tool"
    )
