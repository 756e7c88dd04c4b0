"""What one conversation has in view, said as simply as the rules A4-A7 and the decision table say
it: the model that `test_discovery_machine` plays a real session against. Slow and plain on purpose;
nothing of the library's own code is used."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

SEARCH = "tool_search"
RANK = {"always": 0, "direct": 1, "deferred": 2, "hidden": 3}


@dataclass
class Known:
    """A registered tool, as the model knows it."""

    name: str
    level: str
    guarded: bool
    text: str
    size: int
    tokens: int

    @property
    def can_be_found(self) -> bool:
        return self.level in ("direct", "deferred")


@dataclass
class Rules:
    """What was decided for a deployment, as effective values. `None`: no bound."""

    definitions: int
    bytes: int
    tokens: int | None
    pool_tools: int
    pool_bytes: int
    idle: int
    evict: str
    admitted: int | None


@dataclass
class Touch:
    """When a pooled tool was last used and touched, and its rank in that batch."""

    last: int
    seq: int
    rank: int


@dataclass
class Found:
    """A search, as it has to be answered once its batch has ended."""

    hits: list[str]
    refused: dict[str, str]
    evicted: list[str]


@dataclass
class Talk:
    """One conversation. `world` holds the tools that are registered now; others may share it."""

    world: dict[str, Known]
    rules: Rules
    has_scope: bool
    pool: dict[str, Touch] = field(default_factory=dict)
    rounds: int = 0
    touches: int = 0
    required: dict[str, int] = field(default_factory=dict)
    sent: tuple[str, ...] = ()
    decided: int = 0
    basis: tuple[int, int] | None = None
    held: set[str] = field(default_factory=set)
    held_since: int = 0
    admitted: int = 0

    def may_use(self, name: str) -> bool:
        return name in self.world and (self.has_scope or not self.world[name].guarded)

    def may_find(self, name: str) -> bool:
        return self.may_use(name) and self.world[name].can_be_found

    def _size(self, names: Iterable[str]) -> int:
        return sum(self.world[name].size for name in names if name in self.world)

    def _fits_pool(self, names: list[str]) -> bool:
        return len(names) <= self.rules.pool_tools and self._size(names) <= self.rules.pool_bytes

    def _age_of(self, name: str, pool: dict[str, Touch]) -> tuple[int, int, int]:
        """Smallest first to go: least lately used, deferred before direct, longest untouched."""
        tool = self.world.get(name)
        is_direct = tool is not None and tool.level == "direct"
        return pool[name].last, int(is_direct), pool[name].seq

    def _shrunk(self, pool: dict[str, Touch]) -> dict[str, Touch]:
        """What of `pool` is within its caps: definitions are measured as they are now (A6.8)."""
        left = dict(pool)
        while not self._fits_pool(list(left)):
            del left[min(left, key=lambda name: self._age_of(name, pool))]
        return left

    def call(self, name: str) -> None:
        """A tool ran (A6.7): found anew, but under `pressure` one in the pool is only touched."""
        self.take_in([name], at_once=name not in self.pool)

    def take_in(self, names: Iterable[str], *, at_once: bool = True) -> list[str]:
        """A batch, best first (A6.3, A6.4); who had to go for it, in the order of going. Under
        `pressure`, where an older one must go, others go too, down to half of the caps
        (`at_once`)."""
        batch = [n for n in dict.fromkeys(names) if n in self.world and self.world[n].can_be_found]
        before = dict(self.pool)
        stays = [n for n in self.pool if n not in batch]
        if self.rules.evict == "never-in-turn":
            self._take_in_beside(batch)
            return []
        new: list[str] = []
        for rank, name in enumerate(batch):
            if not self._fits_pool([*new, name]):
                continue  # it would not fit even if all others went
            while not self._fits_pool([*stays, *new, name]):
                stays.remove(min(stays, key=lambda name: self._age_of(name, before)))
            new.append(name)
            self.touches += 1
            self.pool[name] = Touch(self.rounds, self.touches, rank)
        if batch:
            self.pool = {n: t for n, t in self.pool.items() if n in stays or n in new}
        gone = [n for n in before if n not in self.pool]
        if set(gone) - set(batch) and at_once and self.rules.evict == "pressure":
            self._halve(batch)
            gone = [n for n in before if n not in self.pool]
        return sorted(gone, key=lambda name: self._age_of(name, before))

    def _halve(self, batch: list[str]) -> None:
        half_tools, half_bytes = self.rules.pool_tools // 2, self.rules.pool_bytes // 2
        for name in sorted(self.pool, key=lambda name: self._age_of(name, self.pool)):
            if len(self.pool) > half_tools or self._size(self.pool) > half_bytes:
                self.pool = {n: t for n, t in self.pool.items() if n != name or n in batch}

    def _take_in_beside(self, batch: list[str]) -> None:
        for rank, name in enumerate(batch):
            if name not in self.pool and not self._fits_pool([*self.pool, name]):
                continue
            self.touches += 1
            self.pool[name] = Touch(self.rounds, self.touches, rank)

    def accept(self) -> None:
        """A response was accepted (A6.5, A6.6)."""
        self.rounds += 1
        self.admitted = 0
        self._expire(self.rules.idle if self.rules.evict == "idle" else None)

    def turn(self) -> None:
        """A user turn begins."""
        if self.rules.evict != "never-in-turn":
            return
        self._expire(self.rules.idle)
        if self.held:
            self.decided, self.held_since = self.held_since, self.touches
            self.held, self.basis = set(), None

    def _expire(self, idle: int | None) -> None:
        self.pool = self._shrunk(
            {
                name: touch
                for name, touch in self.pool.items()
                if name in self.world and (idle is None or self.rounds - touch.last <= idle)
            }
        )

    def require(self, names: Iterable[str]) -> None:
        new = [name for name in names if name not in self.required]
        if new:
            self.touches += 1
            self.required |= dict.fromkeys(new, self.touches)

    def in_view(self, revision: int) -> tuple[str, ...]:
        """What the next round sends, in wire order (A7, and the decision table on order)."""
        if self.basis == (revision, self.rounds) and self.decided == self.touches:
            return self.sent  # nothing has happened since
        pool = self._shrunk(self.pool)
        always = [name for name, tool in self.world.items() if tool.level == "always"]
        names = {n for n in [*always, *self.required, *pool] if self.may_use(n)}
        taken = self._cut(sorted(names, key=lambda name: self._priority(name, pool)))
        stays = [name for name in self.sent if name in taken]
        come = [name for name in taken if name not in stays]
        first = sorted(name for name in come if self.world[name].level == "always")
        return (*stays, *first, *(name for name in come if name not in first))

    def _priority(self, name: str, pool: dict[str, Touch]) -> tuple[Any, ...]:
        touch = pool.get(name, Touch(-1, -1, 0))
        is_news = max(touch.seq, self.required.get(name, -1)) > self.decided
        return (
            0 if name in self.held else 1,
            0 if name in self.sent or is_news or not self.sent else 1,
            RANK[self.world[name].level],
            0 if name in self.required else 1,
            0 if name in pool else 1,
            -touch.last,
            touch.rank,
            -touch.seq,
            0 if name == SEARCH else 1,
            name,
        )

    def _cut(self, names: list[str]) -> list[str]:
        """First so many, then so many bytes and tokens, misfits skipped, the first in any case."""
        taken: list[str] = []
        for name in names[: self.rules.definitions]:
            fits = self._size([*taken, name]) <= self.rules.bytes
            if fits and self.rules.tokens is not None:
                spent = sum(self.world[one].tokens for one in [*taken, name])
                fits = spent <= self.rules.tokens or self.world[name].tokens == 0
            if fits or not taken:
                taken.append(name)
        return taken

    def send(self, revision: int) -> tuple[str, ...]:
        names = self.in_view(revision)
        self.sent, self.decided, self.basis = names, self.touches, (revision, self.rounds)
        if self.rules.evict == "never-in-turn":
            self.held |= set(names)
        return names

    def search(self, hits: list[str], failing: set[str]) -> Found:
        """Takes in what a search found, those that may come in (A5.8, `max_admitted`)."""
        refused = dict.fromkeys((name for name in hits if name in failing), "load_failed")
        new = [n for n in hits if n not in refused and n not in self.pool]
        most = self.rules.admitted
        room = len(new) if most is None else max(most - self.admitted, 0)
        refused |= dict.fromkeys(new[room:], "admission_budget")
        gone = self.take_in(name for name in hits if name not in refused)
        self.admitted += sum(name in self.pool for name in new)
        return Found(hits, refused, [name for name in gone if name not in hits])

    def answer(self, found: Found, revision: int) -> dict[str, Any]:
        """What a search has to say when its batch has ended (A5.9 to A5.11)."""
        view = self.in_view(revision)
        failed = [
            {
                "name": name,
                "reason": "visible_budget"
                if name in self.pool
                else found.refused.get(name, "over_budget"),
            }
            for name in found.hits
            if name not in view
        ]
        lists: dict[str, Any] = {
            "exposed": [name for name in found.hits if name in view],
            "failed": failed,
            "evicted": [name for name in found.evicted if name not in self.pool],
        }
        return {key: value for key, value in lists.items() if value}

    def state(self) -> dict[str, Any]:
        """The saved state, as its documented shape says (version 1)."""
        return {
            "version": 1,
            "rounds": self.rounds,
            "touches": self.touches,
            "tools": {n: [t.last, t.seq, t.rank] for n, t in self.pool.items()},
            "required": self.required,
            "sent": list(self.sent),
            "held": sorted(self.held),
            "held_since": self.held_since,
            "admitted": self.admitted,
        }
