"""The discovery pool of one session as a frozen value, and the pure steps it takes.

It holds the tools a session found or used lately. What of it a round sends is `visible`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from toolcrib.catalog import Catalog, Entry
from toolcrib.discovery.policy import Caps
from toolcrib.frozen import NOTHING

__all__ = [
    "Pool",
    "Pooled",
    "admit",
    "admit_beside",
    "admit_in_bulk",
    "age",
    "expire",
    "fit",
    "is_discoverable",
    "touch",
]


@dataclass(frozen=True, slots=True)
class Pooled:
    """One tool in the pool: the round it was last used in, when it was last touched (`seq`, over
    all tools), and its rank in the search that touched it (0: best, or not a search)."""

    last_use: int
    seq: int
    rank: int = 0


@dataclass(frozen=True, slots=True)
class Pool:
    """The tools by name, the number of accepted rounds so far, and of touches."""

    tools: Mapping[str, Pooled] = field(default=NOTHING)
    rounds: int = 0
    seq: int = 0


def is_discoverable(entry: Entry) -> bool:
    """Whether a tool can be found and pooled: direct and deferred ones (rule A4.2)."""
    return entry.policy.exposure in ("direct", "deferred")


def admit(
    pool: Pool, names: Iterable[str], catalog: Catalog, caps: Caps
) -> tuple[Pool, tuple[str, ...]]:
    """Takes `names` in, best first, as one batch; also says who was evicted, in order.

    Older tools make room by recency: least lately used first, deferred before direct, then the
    longest untouched. A name that would not fit even then is left out, a smaller later one may
    still fit; one that is in the pool already is taken in anew. Names that are not discoverable
    are ignored (rules A6.3, A6.4).
    """
    batch = _discoverable(names, catalog)
    if not batch:
        return pool, ()
    older = _by_recency({n: t for n, t in pool.tools.items() if n not in batch}, catalog)
    sizes = {name: _bytes(catalog, name) for name in (*older, *batch)}
    kept = dict(pool.tools)
    for name in batch:
        kept.pop(name, None)
    taken: dict[str, Pooled] = {}
    seq, used = pool.seq, sum(sizes[name] for name in older)
    batch_bytes = 0
    for rank, name in enumerate(batch):
        size = sizes[name]
        if len(taken) >= caps.max_tools or batch_bytes + size > caps.max_bytes:
            continue
        while (
            len(kept) + len(taken) >= caps.max_tools or used + batch_bytes + size > caps.max_bytes
        ):
            gone = older.pop(0)
            used -= sizes[gone]
            del kept[gone]
        seq += 1
        batch_bytes += size
        taken[name] = Pooled(pool.rounds, seq, rank)
    now = replace(pool, tools={**kept, **taken}, seq=seq)
    return now, tuple(n for n in _by_recency(pool.tools, catalog) if n not in now.tools)


def touch(pool: Pool, name: str, catalog: Catalog, caps: Caps) -> Pool:
    """`admit` of one tool that was called: at a fraction of its cost where the tool is pooled and
    the pool fits, as it nearly always does."""
    entry = catalog.get(name)
    is_simple = name in pool.tools and entry is not None and is_discoverable(entry)
    if not is_simple or fit(pool, catalog, caps) is not pool:
        return admit(pool, (name,), catalog, caps)[0]
    tools, seq = dict(pool.tools), pool.seq + 1
    del tools[name]  # the touched stand last
    tools[name] = Pooled(pool.rounds, seq)
    return Pool(tools, pool.rounds, seq)


def admit_in_bulk(
    pool: Pool, names: Iterable[str], catalog: Catalog, caps: Caps
) -> tuple[Pool, tuple[str, ...]]:
    """As `admit`, but where anybody must leave, more do, until what is older takes half of the caps
    at most: a provider's prompt cache loses its prefix once for many admissions, not for each."""
    admitted, evicted = admit(pool, names, catalog, caps)
    if not evicted:
        return admitted, evicted
    tools, batch = dict(admitted.tools), set(names)
    used = sum(_bytes(catalog, name) for name in tools)
    for name in _by_recency(tools, catalog):
        if used <= caps.max_bytes // 2 and len(tools) <= caps.max_tools // 2:
            break
        if name not in batch:
            used -= _bytes(catalog, name)
            del tools[name]
    gone = tuple(name for name in _by_recency(pool.tools, catalog) if name not in tools)
    return replace(admitted, tools=tools), gone


def admit_beside(
    pool: Pool, names: Iterable[str], catalog: Catalog, caps: Caps
) -> tuple[Pool, tuple[str, ...]]:
    """As `admit`, but nobody makes room: what does not fit beside the rest is left out."""
    tools, seq = dict(pool.tools), pool.seq
    used = sum(_bytes(catalog, name) for name in tools)
    batch = _discoverable(names, catalog)
    for rank, name in enumerate(batch):
        if name not in tools:
            size = _bytes(catalog, name)
            if len(tools) >= caps.max_tools or used + size > caps.max_bytes:
                continue
            used += size
        seq += 1
        tools[name] = Pooled(pool.rounds, seq, rank)
    return (replace(pool, tools=tools, seq=seq) if batch else pool), ()


def _discoverable(names: Iterable[str], catalog: Catalog) -> list[str]:
    return list(dict.fromkeys(n for n in names if (e := catalog.get(n)) and is_discoverable(e)))


def age(pool: Pool, idle_rounds: int, catalog: Catalog, caps: Caps) -> Pool:
    """One accepted round later: without the tools unused for more than `idle_rounds` rounds and
    those that are gone, within the caps again (rule A6.5)."""
    return expire(replace(pool, rounds=pool.rounds + 1), idle_rounds, catalog, caps)


def expire(pool: Pool, idle_rounds: int, catalog: Catalog, caps: Caps) -> Pool:
    """Without the tools unused for more than `idle_rounds` rounds and those that are gone, within
    the caps; the same object if that changes nothing."""
    stay = {
        name: tool
        for name, tool in pool.tools.items()
        if pool.rounds - tool.last_use <= idle_rounds and name in catalog
    }
    same = len(stay) == len(pool.tools)
    return fit(pool if same else replace(pool, tools=stay), catalog, caps)


def fit(pool: Pool, catalog: Catalog, caps: Caps) -> Pool:
    """The pool within its caps, the least lately used left out; the same object if it fits.

    Needed because definitions are measured as they are now, and may have grown.
    """
    sizes = {name: _bytes(catalog, name) for name in pool.tools}
    count, used = len(sizes), sum(sizes.values())
    if count <= caps.max_tools and used <= caps.max_bytes:
        return pool
    gone: set[str] = set()
    for name in _by_recency(pool.tools, catalog):
        if count <= caps.max_tools and used <= caps.max_bytes:
            break
        gone.add(name)
        count -= 1
        used -= sizes[name]
    return replace(pool, tools={n: t for n, t in pool.tools.items() if n not in gone})


def _by_recency(tools: Mapping[str, Pooled], catalog: Catalog) -> list[str]:
    """The names, first to be evicted first."""

    def order(name: str) -> tuple[int, bool, int]:
        entry = catalog.get(name)
        return (
            tools[name].last_use,
            entry is not None and entry.policy.exposure == "direct",
            tools[name].seq,
        )

    return sorted(tools, key=order)


def _bytes(catalog: Catalog, name: str) -> int:
    entry = catalog.get(name)
    return entry.definition.wire_bytes if entry is not None else 0
