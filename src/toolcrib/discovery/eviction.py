"""What each `Evict` policy does to a pool, and when: pure steps over those of `pool`.

Three moments: a search or call takes tools in, a round is accepted, a user turn begins.
"""

from __future__ import annotations

from collections.abc import Iterable

from toolcrib.catalog import Catalog
from toolcrib.discovery.policy import Dynamic
from toolcrib.discovery.pool import (
    Pool,
    admit,
    admit_beside,
    admit_in_bulk,
    age,
    expire,
    touch,
)

__all__ = ["after_call", "after_round", "at_turn", "taking_in"]

_NEVER_IDLE = 2**62
_STEPS = {"idle": admit, "pressure": admit_in_bulk, "never-in-turn": admit_beside}


def taking_in(
    pool: Pool, names: Iterable[str], catalog: Catalog, dynamic: Dynamic
) -> tuple[Pool, tuple[str, ...]]:
    """`names` taken into the pool, best first, and who was evicted for them."""
    return _STEPS[dynamic.discovery.evict](pool, names, catalog, dynamic.pool_caps)


def after_call(pool: Pool, name: str, catalog: Catalog, dynamic: Dynamic) -> Pool:
    """The pool once the tool `name` was called."""
    if name in pool.tools and dynamic.discovery.evict != "never-in-turn":
        return touch(pool, name, catalog, dynamic.pool_caps)
    return taking_in(pool, (name,), catalog, dynamic)[0]


def after_round(pool: Pool, catalog: Catalog, dynamic: Dynamic) -> Pool:
    """The pool one accepted round later."""
    discovery = dynamic.discovery
    idle_rounds = discovery.idle_rounds if discovery.evict == "idle" else _NEVER_IDLE
    return age(pool, idle_rounds, catalog, dynamic.pool_caps)


def at_turn(pool: Pool, catalog: Catalog, dynamic: Dynamic) -> Pool:
    """The pool as a user turn begins."""
    if dynamic.discovery.evict != "never-in-turn":
        return pool
    return expire(pool, dynamic.discovery.idle_rounds, catalog, dynamic.pool_caps)
