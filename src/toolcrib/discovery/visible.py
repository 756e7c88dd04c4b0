"""Which tools the next round sends, and in which order: one pure function, used both to send them
and to promise them in a search's answer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from toolcrib.catalog import Catalog, Entry
from toolcrib.discovery.policy import SEARCH_TOOL, Budget, Dynamic
from toolcrib.discovery.pool import Pool, Pooled, fit
from toolcrib.frozen import NOTHING
from toolcrib.policy import EXPOSURES, may_use
from toolcrib.principal import Principal

__all__ = ["View", "visible"]

_RANK = {level: rank for rank, level in enumerate(EXPOSURES)}
_EMPTY_POOL = Pool()
_NOT_POOLED = Pooled(-1, -1)


@dataclass(frozen=True, slots=True)
class View:
    """What a session has in view: its pool, the tools its host requires (name → when), the names
    last sent in wire order, the touch up to which that was decided, and what it was decided on
    (the catalogue's revision and the pool's round). `held` are names that must not give way before
    the turn ends, held from the touch `held_since` on; `admitted` counts what searches took in
    since the last accepted round."""

    pool: Pool = _EMPTY_POOL
    required: Mapping[str, int] = field(default=NOTHING)
    sent: tuple[str, ...] = ()
    decided: int = 0
    basis: tuple[int, int] = (-1, -1)
    held: frozenset[str] = frozenset()
    held_since: int = 0
    admitted: int = 0

    def sending(self, names: tuple[str, ...], catalog: Catalog) -> View:
        """The view after `names` were sent; the same object if that is no news."""
        basis = (catalog.revision, self.pool.rounds)
        if (self.sent, self.decided, self.basis) == (names, self.pool.seq, basis):
            return self
        return replace(self, sent=names, decided=self.pool.seq, basis=basis)

    def with_pool(self, pool: Pool) -> View:
        """The view with another pool. Spelled out: `replace` costs five times as much, and every
        call of a pooled tool comes by."""
        return View(
            pool,
            self.required,
            self.sent,
            self.decided,
            self.basis,
            self.held,
            self.held_since,
            self.admitted,
        )

    def holding(self, names: tuple[str, ...]) -> View:
        """The view with `names` held too; the same object if they were."""
        held = self.held.union(names)
        return self if len(held) == len(self.held) else replace(self, held=held)

    def released(self, pool: Pool) -> View:
        """The view as the next turn begins with `pool`: nothing is held any more, and what found
        no place beside what was held is news; the same object if nothing was."""
        if not self.held:
            return self if pool is self.pool else replace(self, pool=pool)
        return replace(
            self,
            pool=pool,
            held=frozenset(),
            held_since=pool.seq,
            decided=self.held_since,
            basis=(-1, -1),
        )


def visible(
    catalog: Catalog, view: View, dynamic: Dynamic, principal: Principal
) -> tuple[str, ...]:
    """The names the next round sends, in wire order.

    Candidates are the always tools, the required ones and the pool. They are taken by priority
    (rule A7.2): exposure, required, pooled, last use, rank, touch, name; but what was sent last
    time and what was touched since come before the rest, so a tool in view yields only to an
    admission or a requirement, and one that is held to nothing. The first `max_tools` of them are
    considered; one that does not fit into the bytes, or the tokens where those are bounded, is
    skipped, the first is kept in any case (A7.3, A7.4).

    On the wire, what was sent last time keeps its place and the rest is appended: a provider's
    prompt cache keeps its prefix. The first time, the always tools come first, by name.
    """
    if (view.decided, view.basis) == (view.pool.seq, (catalog.revision, view.pool.rounds)):
        return view.sent  # asked again: nothing has happened since
    pool = fit(view.pool, catalog, dynamic.pool_caps)
    entries = _candidates(catalog, view, pool, principal)
    chosen = _within(_by_priority(entries, view, pool), dynamic.budget)
    kept = [name for name in view.sent if name in chosen]
    known = set(kept)
    come = [name for name in chosen if name not in known]
    always = sorted(name for name in come if _is_always(entries[name]))
    return (*kept, *always, *(name for name in come if not _is_always(entries[name])))


def _candidates(catalog: Catalog, view: View, pool: Pool, principal: Principal) -> dict[str, Entry]:
    found: dict[str, Entry] = {}
    for names in (catalog.always, view.required, pool.tools):
        for name in names:
            entry = catalog.get(name)
            if entry is not None and (entry.open_to_all or may_use(principal, entry.policy)):
                found[name] = entry
    return found


def _by_priority(entries: Mapping[str, Entry], view: View, pool: Pool) -> list[Entry]:
    sent = set(view.sent)
    tools, required = pool.tools, view.required

    def order(entry: Entry) -> tuple[object, ...]:
        name = entry.name
        pooled = tools.get(name, _NOT_POOLED)
        touched = max(pooled.seq, required.get(name, -1))
        return (
            name not in view.held,
            not (name in sent or touched > view.decided or not sent),
            _RANK[entry.policy.exposure or "deferred"],
            name not in required,
            pooled is _NOT_POOLED,
            -pooled.last_use,
            pooled.rank,
            -pooled.seq,
            name != SEARCH_TOOL,
            name,
        )

    return sorted(entries.values(), key=order)


def _within(entries: list[Entry], budget: Budget) -> dict[str, None]:
    chosen: dict[str, None] = {}
    caps = budget.caps
    left = caps.max_bytes
    tokens_left = budget.max_tokens
    for entry in entries[: caps.max_tools]:
        size = entry.definition.wire_bytes
        tokens = budget.tokens.of(entry.definition) if budget.max_tokens > 0 else 0
        if (size <= left and tokens <= max(tokens_left, 0)) or not chosen:
            chosen[entry.name] = None
            left -= size
            tokens_left -= tokens
    return chosen


def _is_always(entry: Entry) -> bool:
    return entry.policy.exposure == "always"
