"""One conversation of one principal: what it has in view, and the turns it takes.

State of a conversation lives here and nowhere else; what is visible is decided by
`discovery.visible`, what a call does by `executor`.
"""

from __future__ import annotations

import itertools
import uuid
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from toolcrib.arguments import encode
from toolcrib.catalog import Catalog, Entry
from toolcrib.content import ToolCall, ToolResult
from toolcrib.discovery.policy import Dynamic
from toolcrib.discovery.pool import admit, age, is_discoverable
from toolcrib.discovery.ranker import LearningRanker, Ranker, searched_by
from toolcrib.discovery.search_tool import Found, Hit, Reason
from toolcrib.discovery.visible import View, visible
from toolcrib.errors import NotAvailable
from toolcrib.executor import Executor
from toolcrib.limits import ToolLimits
from toolcrib.policy import may_use
from toolcrib.principal import Principal
from toolcrib.registry import Registry
from toolcrib.tool import ProgressHandler
from toolcrib.turn import Turn

__all__ = ["Session"]


class Session:
    """A conversation. Made by `Assembly.session()`; used on the assembly's loop.

    With `dynamic`, it starts with the always tools and grows by what is searched and used; without,
    every tool its principal may use is in every round (except hidden ones).
    """

    def __init__(
        self,
        registry: Registry,
        executor: Executor,
        *,
        principal: Principal,
        dynamic: Dynamic | None = None,
        ranker: Callable[[], Ranker],
        limits: ToolLimits = ToolLimits(),
        id: str = "",
    ) -> None:
        self.id = id or uuid.uuid4().hex
        self.principal = principal
        self.limits = limits
        self.dynamic = dynamic
        self.executor = executor
        self._registry = registry
        self._ranker = ranker
        self._view = View()
        self._call_ids = itertools.count(1)
        self._static: tuple[Catalog | None, tuple[str, ...]] = (None, ())
        self._led: dict[str, str] = {}  # tools in the pool → the query that led to them, until used

    @property
    def view(self) -> View:
        """What the conversation has in view: a frozen value."""
        return self._view

    @property
    def catalog(self) -> Catalog:
        """The current catalogue of the assembly, not of this session."""
        return self._registry.catalog

    def turn(self, limits: ToolLimits | None = None) -> Turn:
        """A new user turn, with its own count of iterations and calls."""
        return Turn(self, limits or self.limits)

    def require(self, *names: str) -> None:
        """Keeps tools in view for the rest of the conversation, hidden ones too; names that are not
        there (yet) wait (rule A4.5)."""
        new = [name for name in names if name not in self._view.required]
        if new:
            pool = replace(self._view.pool, seq=self._view.pool.seq + 1)
            required = {**self._view.required, **dict.fromkeys(new, pool.seq)}
            self._view = replace(self._view, pool=pool, required=required)
            self._static = (None, ())

    async def call(
        self, name: str, /, arguments: Mapping[str, Any] | str | None = None, **kwargs: Any
    ) -> ToolResult:
        """Calls any tool the principal may use by its exact name, in view or not, as the host; it
        comes into view as if it had been found. `arguments`: a mapping, or JSON text as a model
        writes it; keywords are arguments too. Raises as `Assembly.call` does."""
        call_id = f"{self.id[:8]}-{next(self._call_ids)}"
        return await self.execute(ToolCall(call_id, name, encode(arguments, kwargs)))

    async def execute(
        self,
        call: ToolCall,
        *,
        catalog: Catalog | None = None,
        deadline: float | None = None,
        on_progress: ProgressHandler | None = None,
    ) -> ToolResult:
        """One call of this conversation, without a round's check."""
        result = await self.executor.execute(
            call,
            principal=self.principal,
            session=self,
            catalog=catalog,
            deadline=deadline,
            on_progress=on_progress,
            on_executed=self._executed if self.dynamic is not None else None,
        )
        if call.name in self._led and not result.is_error:
            self._teach(call.name)
        return result

    def search(self, query: str, limit: int) -> Found:
        """Finds at most `limit` discoverable tools for `query` and takes them into the pool, best
        first. Raises `NotAvailable` where the assembly is not dynamic."""
        dynamic, catalog = self._dynamic(), self._registry.catalog

        def accept(name: str) -> bool:
            entry = catalog.get(name)
            return entry is not None and is_discoverable(entry) and self._may_use(entry)

        most = min(limit, dynamic.pool_caps.max_tools)
        searched = searched_by(self._ranker(), query, most, accept)
        hits = tuple(Hit(h.name, _described(catalog, h.name), h.score) for h in searched.hits)
        found = replace(self._discover(query, hits, catalog), corrected=searched.corrected)
        led = {**self._led, **dict.fromkeys(found.exposed, query)}
        self._led = {name: led[name] for name in led if name in self._view.pool.tools}
        return found

    def discover(self, *names: str) -> Found:
        """Takes tools into the pool by name, best first, as a search would; says why not for those
        that are not discoverable or not there."""
        catalog = self._registry.catalog
        hits: list[Hit] = []
        refused: list[tuple[str, Reason]] = []
        for name in dict.fromkeys(names):
            entry = catalog.get(name)
            if entry is None or not self._may_use(entry):
                refused.append((name, "unknown"))
            elif not is_discoverable(entry):
                refused.append((name, "not_discoverable"))
            else:
                hits.append(Hit(name, entry.definition.description, 0.0))
        found = self._discover("", tuple(hits), catalog)
        return replace(found, failed=(*found.failed, *refused))

    def _discover(self, query: str, hits: tuple[Hit, ...], catalog: Catalog) -> Found:
        caps = self._dynamic().pool_caps
        pool, evicted = admit(self._view.pool, [h.name for h in hits], catalog, caps)
        self._view = replace(self._view, pool=pool)
        gone = tuple(name for name in evicted if name not in {h.name for h in hits})
        return self.settled(Found(query, hits, evicted=gone), catalog)

    def settled(self, found: Found, catalog: Catalog | None = None) -> Found:
        """A search's answer as the pool stands now: `exposed` is what the next round sends."""
        names = self._visible(catalog or self._registry.catalog)
        return found.settled(frozenset(names), self._view.pool.tools)

    def send(self, catalog: Catalog) -> tuple[str, ...]:
        """The names a round that begins now sends; fixes their wire order. Ages nothing."""
        names = self._visible(catalog)
        self._view = self._view.sending(names, catalog)
        return names

    def accepted(self) -> None:
        """A response to what was sent is valid: the pool ages by one round."""
        if self.dynamic is not None:
            idle, caps = self.dynamic.discovery.idle_rounds, self.dynamic.pool_caps
            pool = age(self._view.pool, idle, self._registry.catalog, caps)
            self._view = replace(self._view, pool=pool)

    def _executed(self, name: str) -> None:
        dynamic = self._dynamic()
        pool, _ = admit(self._view.pool, (name,), self._registry.catalog, dynamic.pool_caps)
        if pool is not self._view.pool:
            self._view = replace(self._view, pool=pool)

    def _teach(self, name: str) -> None:
        query, ranker = self._led.pop(name), self._ranker()
        if isinstance(ranker, LearningRanker):
            ranker.note(query, name)

    def _visible(self, catalog: Catalog) -> tuple[str, ...]:
        if self.dynamic is None:
            return self._everything(catalog)
        caps = self.dynamic.pool_caps
        return visible(catalog, self._view, self.dynamic.budget.caps, caps, self.principal)

    def _everything(self, catalog: Catalog) -> tuple[str, ...]:
        """All tools, what was sent before first: O(catalogue), but once per revision only."""
        seen, names = self._static
        if seen is not catalog:
            may = [e.name for e in catalog if self._may_use(e) and self._is_shown(e)]
            known = set(may)
            before = [name for name in self._view.sent if name in known]
            sent = set(before)
            names = (*before, *(name for name in may if name not in sent))
            self._static = (catalog, names)
        return names

    def _is_shown(self, entry: Entry) -> bool:
        return entry.policy.exposure != "hidden" or entry.name in self._view.required

    def _may_use(self, entry: Entry) -> bool:
        return may_use(self.principal, entry.policy)

    def _dynamic(self) -> Dynamic:
        if self.dynamic is None:
            raise NotAvailable("this session is static: every tool is in view, there is no search")
        return self.dynamic

    def __repr__(self) -> str:
        return (
            f"<Session {self.id[:8]} of {self.principal.id!r}, {len(self._view.sent)} tools sent>"
        )


def _described(catalog: Catalog, name: str) -> str:
    entry = catalog.get(name)
    return entry.definition.description if entry is not None else ""
