"""One conversation of one principal: what it has in view, and the turns it takes.

State of a conversation lives here and nowhere else; what is visible is decided by
`discovery.visible`, what a call does by `executor`.
"""

from __future__ import annotations

import itertools
import uuid
from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from toolcrib.arguments import encode
from toolcrib.catalog import Catalog, Entry
from toolcrib.content import ToolCall, ToolResult
from toolcrib.discovery.eviction import after_call, after_round, at_turn, taking_in
from toolcrib.discovery.lookup import Lookup
from toolcrib.discovery.policy import Dynamic
from toolcrib.discovery.pool import is_discoverable
from toolcrib.discovery.saved import saved
from toolcrib.discovery.search_tool import Found, Hit, Reason
from toolcrib.discovery.visible import View, visible
from toolcrib.errors import NotAvailable
from toolcrib.executor import Executor
from toolcrib.host import Host
from toolcrib.limits import ToolLimits
from toolcrib.policy import may_use
from toolcrib.principal import Principal
from toolcrib.registry import Registry
from toolcrib.report import Sent
from toolcrib.tool import ProgressHandler
from toolcrib.turn import Turn

__all__ = ["Session"]


MAX_LED = 300
"""Characters of a query that a session remembers, to teach a ranker that learns."""


class Session:
    """A conversation. Made by `Assembly.session()`; used on the assembly's loop.

    With `dynamic`, it starts with the always tools and grows by what is searched and used; without,
    every tool its principal may use is in every round (except hidden ones). `host` is who its tools
    may ask.
    """

    def __init__(
        self,
        registry: Registry,
        executor: Executor,
        *,
        principal: Principal,
        dynamic: Dynamic | None = None,
        lookup: Lookup,
        limits: ToolLimits = ToolLimits(),
        view: View = View(),
        id: str = "",
        host: Host | None = None,
    ) -> None:
        self.id = id or uuid.uuid4().hex
        self.principal = principal
        self.host = host
        self.limits = limits
        self.dynamic = dynamic
        self.executor = executor
        self._registry = registry
        self._lookup = lookup
        self._view = view
        self._call_ids = itertools.count(1)
        self._static: tuple[int, tuple[str, ...]] = (-1, ())
        self._sent = Sent((), (), dynamic=dynamic)
        self._sent_view: View | None = None
        self._led: dict[str, str] = {}  # tools in the pool → the query that led to them, until used

    @property
    def view(self) -> View:
        """What the conversation has in view: a frozen value."""
        return self._view

    def state(self) -> dict[str, Any]:
        """What the conversation has in view, as a JSON object for `Assembly.resume`: names and
        counts, no definitions, no secrets. Limits of a turn under way are not in it."""
        return saved(self._view)

    @property
    def catalog(self) -> Catalog:
        """The current catalogue of the assembly, not of this session."""
        return self._registry.catalog

    def turn(self, limits: ToolLimits | None = None) -> Turn:
        """A new user turn, with its own count of iterations and calls. Where the pool is kept as
        it is within a turn (`never-in-turn`), what is idle leaves now."""
        if self.dynamic is not None:
            pool = at_turn(self._view.pool, self._registry.catalog, self.dynamic)
            self._view = self._view.released(pool)
        return Turn(self, limits or self.limits)

    def require(self, *names: str) -> None:
        """Keeps tools in view for the rest of the conversation, hidden ones too; names that are not
        there (yet) wait (rule A4.5)."""
        new = [name for name in names if name not in self._view.required]
        if new:
            pool = replace(self._view.pool, seq=self._view.pool.seq + 1)
            required = {**self._view.required, **dict.fromkeys(new, pool.seq)}
            self._view = replace(self._view, pool=pool, required=required)
            self._static = (-1, ())

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
        """One call of this conversation, without a round's check. The meta of a failure holds
        `executed: False` where the tool never began."""
        ran: list[str] = []
        result = await self.executor.execute(
            call,
            principal=self.principal,
            session=self,
            catalog=catalog,
            deadline=deadline,
            on_progress=on_progress,
            on_executed=partial(self._executed, ran) if self.dynamic is not None else None,
        )
        if result.failure is None:
            if call.name in self._led:
                self._lookup.teach(self._led.pop(call.name), call.name)
        elif self.dynamic is not None and not ran:
            return result.with_meta(executed=False)
        return result

    async def search(self, query: str, limit: int) -> Found:
        """Finds at most `limit` discoverable tools for `query` and takes them into the pool, best
        first; lazy ones among them are loaded. Raises `NotAvailable` where the assembly is not
        dynamic."""
        dynamic = self._dynamic()
        ranked = await self._lookup.ranked(query, limit, dynamic, self.principal)
        before, refused = self._view.pool.tools, dict[str, Reason]()
        most, admitted = dynamic.discovery.max_admitted, self._view.admitted
        new = [h.name for h in ranked.hits if h.name not in before and h.name not in ranked.failing]
        if most:
            refused |= dict.fromkeys(new[max(most - admitted, 0) :], "admission_budget")
        refused |= dict.fromkeys(ranked.failing, "load_failed")
        found = self._discover(query, ranked.hits, refused)
        found = replace(found, corrected=ranked.corrected)
        came = sum(1 for name in new if name in self._view.pool.tools)
        self._view = replace(self._view, admitted=admitted + came)
        led = {**self._led, **dict.fromkeys(found.exposed, query[:MAX_LED])}
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
        found = self._discover("", tuple(hits), {})
        return replace(found, failed=(*found.failed, *refused))

    def _discover(self, query: str, hits: tuple[Hit, ...], refused: Mapping[str, Reason]) -> Found:
        catalog = self._registry.catalog
        names = [hit.name for hit in hits if hit.name not in refused]
        pool, evicted = taking_in(self._view.pool, names, catalog, self._dynamic())
        self._view = replace(self._view, pool=pool)
        gone = tuple(name for name in evicted if name not in {h.name for h in hits})
        return self.settled(
            Found(query, hits, evicted=gone, refused=refused, offered=tuple(names)), catalog
        )

    def settled(self, found: Found, catalog: Catalog | None = None) -> Found:
        """A search's answer as the pool stands now: `exposed` is what the next round sends."""
        names = self._visible(catalog or self._registry.catalog)
        return found.settled(frozenset(names), self._view.pool.tools)

    def send(self, catalog: Catalog) -> Sent:
        """What a round that begins now sends; fixes its wire order. Ages nothing."""
        names = self._visible(catalog)
        before, view = self._sent, self._view.sending(names, catalog)
        if self.dynamic is not None and self.dynamic.discovery.evict == "never-in-turn":
            view = view.holding(names)
        is_same = view is self._sent_view and before.names == names
        definitions = before.definitions if is_same else catalog.select(names)
        self._view = self._sent_view = view
        pooled = before.pooled if is_same else self._usable(view.pool.tools, catalog)
        self._sent = Sent(
            names, definitions, before.definitions, pooled, view.admitted, self.dynamic
        )
        return self._sent

    def _usable(self, names: Iterable[str], catalog: Catalog) -> tuple[str, ...]:
        return tuple(n for n in names if (e := catalog.get(n)) is not None and self._may_find(e))

    def accepted(self) -> None:
        """A response to what was sent is valid: the pool ages by one round."""
        if self.dynamic is not None:
            pool = after_round(self._view.pool, self._registry.catalog, self.dynamic)
            self._view = replace(self._view, pool=pool, admitted=0)

    def _executed(self, ran: list[str], name: str) -> None:
        ran.append(name)
        pool = after_call(self._view.pool, name, self._registry.catalog, self._dynamic())
        if pool is not self._view.pool:
            self._view = self._view.with_pool(pool)

    def _visible(self, catalog: Catalog) -> tuple[str, ...]:
        if self.dynamic is None:
            return self._everything(catalog)
        return visible(catalog, self._view, self.dynamic, self.principal)

    def _everything(self, catalog: Catalog) -> tuple[str, ...]:
        """All tools, what was sent before first: O(catalogue), but once per revision only."""
        seen, names = self._static
        if seen != catalog.revision:
            may = [e.name for e in catalog if self._may_use(e) and self._is_shown(e)]
            known = set(may)
            before = [name for name in self._view.sent if name in known]
            sent = set(before)
            names = (*before, *(name for name in may if name not in sent))
            self._static = (catalog.revision, names)
        return names

    def _is_shown(self, entry: Entry) -> bool:
        return entry.policy.exposure != "hidden" or entry.name in self._view.required

    def _may_use(self, entry: Entry) -> bool:
        return may_use(self.principal, entry.policy)

    def _may_find(self, entry: Entry) -> bool:
        return is_discoverable(entry) and self._may_use(entry)

    def _dynamic(self) -> Dynamic:
        if self.dynamic is None:
            raise NotAvailable("this session is static: every tool is in view, there is no search")
        return self.dynamic

    def __repr__(self) -> str:
        return (
            f"<Session {self.id[:8]} of {self.principal.id!r}, {len(self._view.sent)} tools sent>"
        )
