"""From a query to tools that are there: ranked, loaded where they are lazy, described as they are.

Shared by all sessions of an assembly. What a session does with the hits is its own.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial

from toolcrib.catalog import Entry
from toolcrib.discovery.policy import Dynamic
from toolcrib.discovery.pool import is_discoverable
from toolcrib.discovery.search_tool import Hit
from toolcrib.frozen import NOTHING
from toolcrib.loading import load_all
from toolcrib.policy import may_use
from toolcrib.principal import Principal
from toolcrib.ranking.fields import document_of
from toolcrib.ranking.index import Index
from toolcrib.ranking.ranker import Closes, LearningRanker, Prepares, Ranker, searched_by
from toolcrib.registry import Change, Registry

__all__ = ["Lookup", "Ranked"]

logger = logging.getLogger("toolcrib.discovery")


@dataclass(frozen=True, slots=True)
class Ranked:
    """The hits of a search, best first, the names of those whose load failed, and misspelled words
    of the query → the words that were also searched."""

    hits: tuple[Hit, ...]
    failing: frozenset[str] = frozenset()
    corrected: Mapping[str, str] = field(default=NOTHING)


class Lookup:
    """Searches the tools of one registry. What ranks them is made by `make` when first needed, so
    that an assembly whose models never search builds no index; from then on it follows the
    registry, until `close`."""

    def __init__(self, registry: Registry, make: Callable[[], Ranker] | None = None) -> None:
        self._registry = registry
        self._make: Callable[[], Ranker] = make or Index
        self._ranker: Ranker | None = None
        self._unsubscribe: Callable[[], None] | None = None

    @property
    def ranker(self) -> Ranker:
        """What finds tools, over all of them, as they are now."""
        ranker = self._ranker
        if ranker is None:
            ranker = self._ranker = self._make()
            self._unsubscribe = self._registry.subscribe(partial(_follow, ranker))
        return ranker

    async def close(self) -> None:
        """Ends the ranker, if there is one that holds something; its fault is logged."""
        if self._unsubscribe is not None:
            self._unsubscribe()
        if isinstance(self._ranker, Closes):
            try:
                await asyncio.to_thread(self._ranker.close)
            except Exception:
                logger.exception("closing %r failed", self._ranker)

    async def ranked(
        self, query: str, limit: int, dynamic: Dynamic, principal: Principal
    ) -> Ranked:
        """At most `limit` tools for `query` that `principal` may find, and never more than the pool
        holds (rule A5.3).

        Lazy ones among them are loaded, and a load that takes longer than
        `discovery.load_timeout` counts as failed for this search; with `search_with_load`
        everything is loaded first, for the ranking to see (rule A5.4).
        """
        registry, patience = self._registry, dynamic.discovery.load_timeout

        def may_find(entry: Entry) -> bool:
            return is_discoverable(entry) and may_use(principal, entry.policy)

        if dynamic.search_with_load:
            await load_all(filter(may_find, registry.catalog.entries()), registry, patience)
        ranker = self.ranker
        if isinstance(ranker, Prepares):
            await ranker.prepare(query)
        catalog = registry.catalog

        def accept(name: str) -> bool:
            entry = catalog.get(name)
            return entry is not None and may_find(entry)

        searched = searched_by(ranker, query, min(limit, dynamic.pool_caps.max_tools), accept)
        found = [entry for hit in searched.hits if (entry := catalog.get(hit.name)) is not None]
        failing = await load_all(found, registry, patience)
        now = registry.catalog  # as the loads have left it
        hits = tuple(
            Hit(hit.name, entry.definition.description, hit.score)
            for hit in searched.hits
            if (entry := now.get(hit.name)) is not None and _may_be_told(entry, principal)
        )
        # a word may be known from a hit that is none any more
        told = searched.corrected if len(hits) == len(searched.hits) else NOTHING
        return Ranked(hits, failing, told)

    def teach(self, query: str, name: str) -> None:
        """Tells a ranker that learns that `query` led to a successful call of the tool `name`."""
        ranker = self.ranker
        if isinstance(ranker, LearningRanker):
            ranker.note(query, name)


def _may_be_told(entry: Entry, principal: Principal) -> bool:
    """Whether a hit stays one: its load may have shown that it is hidden, or not for everybody."""
    return entry.policy.exposure != "hidden" and may_use(principal, entry.policy)


def _follow(ranker: Ranker, change: Change) -> None:
    ranker.update(
        [
            document_of(entry.definition, entry.source)
            for entry in (*change.added, *change.replaced)
        ],
        [entry.name for entry in change.removed],
    )
