"""Random conversations against a naive model of the discovery pool, written from the rules A5-A7
and the decision table alone."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from conftest import Plain
from toolcrib import (
    Assembly,
    Budget,
    Discovery,
    Dynamic,
    Session,
    ToolCall,
    ToolDefinition,
    ToolLimits,
    ToolResult,
)
from toolcrib.turn import Round

WORDS = ["alpha", "bravo", "carol", "delta", "early", "foxes", "gamma", "hotel"]
LEVELS = ["always", "direct", "direct", "deferred", "deferred", "deferred", "hidden"]


@dataclass
class Spec:
    """One tool of a made-up catalogue."""

    name: str
    level: str
    size: int


@dataclass
class Model:
    """The pool by rules A6.2-A6.5 and the decision table, as simply as it can be said."""

    specs: dict[str, Spec]
    max_tools: int
    max_bytes: int
    idle: int
    turn: int = 0
    seq: int = 0
    entries: dict[str, tuple[int, int, int]] = field(default_factory=dict)

    def size(self, names: list[str]) -> int:
        return sum(self.specs[name].size for name in names)

    def fits(self, names: list[str]) -> bool:
        return len(names) <= self.max_tools and self.size(names) <= self.max_bytes

    def victim(self, among: list[str]) -> str:
        def age(name: str) -> tuple[int, int, int]:
            last, seq, _ = self.entries[name]
            return last, 0 if self.specs[name].level == "deferred" else 1, seq

        return min(among, key=age)

    def admit(self, batch: list[str]) -> None:
        batch = [n for n in batch if self.specs[n].level in ("direct", "deferred")]
        older = [name for name in self.entries if name not in batch]
        new: list[str] = []
        for rank, name in enumerate(batch):
            if not self.fits([*new, name]):
                continue
            new.append(name)
            while not self.fits(older + new):
                older.remove(self.victim(older))
            self.seq += 1
            self.entries[name] = (self.turn, self.seq, rank)
        self.entries = {n: e for n, e in self.entries.items() if n in older or n in new}

    def advance(self) -> None:
        self.turn += 1
        self.entries = {n: e for n, e in self.entries.items() if self.turn - e[0] <= self.idle}


sizes = st.integers(90, 900)
catalogues = st.lists(st.tuples(st.sampled_from(LEVELS), sizes), min_size=3, max_size=8).map(
    lambda pairs: [
        Spec(f"{word}_tool", level, size) for word, (level, size) in zip(WORDS, pairs, strict=False)
    ]
)
words = st.sampled_from([*WORDS, "common", "common", "common"])
searches = st.tuples(
    st.just("search"),
    st.lists(words, min_size=1, max_size=3).map(" ".join),
    st.one_of(st.none(), st.integers(-1, 10), st.just(1_000_000)),
)
calls = st.tuples(st.just("call"), st.integers(0, 40), st.none())
batches = st.lists(st.one_of(searches, searches, calls), max_size=4)
hosts = st.one_of(
    st.tuples(st.just("require"), st.integers(0, 7)),
    st.tuples(st.just("discover"), st.integers(0, 7)),
    st.tuples(st.just("host call"), st.integers(0, 7)),
)
histories = st.lists(st.tuples(st.lists(hosts, max_size=1), batches), min_size=1, max_size=9)
settings_of = st.fixed_dictionaries(
    {
        "definitions": st.integers(1, 6),
        "bytes": st.integers(700, 3000),
        "pool_tools": st.one_of(st.none(), st.integers(1, 5)),
        "pool_bytes": st.one_of(st.none(), st.integers(200, 2000)),
        "idle": st.integers(0, 3),
    }
)


def tools_of(specs: list[Spec]) -> list[Plain]:
    made: list[Plain] = []
    for spec in specs:
        tool = Plain(spec.name)
        said = f"common {spec.name.partition('_')[0]} "
        bare = ToolDefinition(spec.name, said).wire_bytes
        tool.definition = ToolDefinition(spec.name, said + "." * (spec.size - bare))
        assert tool.definition.wire_bytes == max(spec.size, bare)
        spec.size = tool.definition.wire_bytes
        made.append(tool)
    return made


def dynamic_of(specs: list[Spec], caps: dict[str, Any]) -> Dynamic:
    return Dynamic(
        exposures={spec.name: spec.level for spec in specs},  # type: ignore[misc]
        budget=Budget(caps["definitions"], caps["bytes"]),
        discovery=Discovery(caps["pool_tools"], caps["pool_bytes"], caps["idle"]),
    )


def batch_of(sent: Round, asked: list[tuple[str, Any, Any]]) -> list[ToolCall]:
    made: list[ToolCall] = []
    for at, (what, argument, limit) in enumerate(asked):
        if what == "search" and "tool_search" in sent.names:
            more = "" if limit is None else f', "limit": {limit}'
            made.append(ToolCall(f"c{at}", "tool_search", f'{{"query": "{argument}"{more}}}'))
        elif what == "call" and sent.names:
            name = sent.names[argument % len(sent.names)]
            if name != "tool_search":
                made.append(ToolCall(f"c{at}", name))
    return made


def told(result: ToolResult) -> dict[str, Any]:
    assert result.failure is None, result
    (part,) = result.content
    value: dict[str, Any] = part.to_json()["value"]
    return value


def check_wire(before: Round | None, now: Round, budget: dict[str, Any]) -> None:
    assert len(set(now.names)) == len(now.names)
    assert len(now.names) <= budget["definitions"]
    assert now.bytes <= budget["bytes"] or len(now.names) == 1
    if before is not None:
        kept = tuple(name for name in before.names if name in now.names)
        assert now.names[: len(kept)] == kept, "what stays keeps its place, the rest is appended"


async def host_step(session: Session, model: Model, what: str, at: int) -> None:
    name = list(model.specs)[at % len(model.specs)]
    if what == "require":
        session.require(name)
    elif what == "discover":
        session.discover(name)
        model.admit([name])
    else:
        assert not (await session.call(name)).is_error
        model.admit([name])


async def play(
    specs: list[Spec],
    caps: dict[str, Any],
    history: list[tuple[list[tuple[str, int]], list[tuple[str, Any, Any]]]],
    parallel: int,
) -> None:
    tools, dynamic = tools_of(specs), dynamic_of(specs, caps)
    limits = ToolLimits(iterations=100, calls=1000, parallel=parallel)
    async with Assembly(tools, dynamic=dynamic, limits=limits) as assembly:
        session, by_name = assembly.session(), {spec.name: spec for spec in specs}
        pool = dynamic.pool_caps
        model = Model(by_name, pool.max_tools, pool.max_bytes, caps["idle"])
        before: Round | None = None
        required: set[str] = set()
        promised: list[dict[str, Any]] = []
        touched: set[str] = set()
        turn = session.turn()
        for host, asked in history:
            if not promised:  # a host that changes what is in view changes what was promised
                for what, at in host:
                    await host_step(session, model, what, at)
                    touched.add(list(by_name)[at % len(by_name)])
                    if what == "require":
                        required.add(list(by_name)[at % len(by_name)])
            now = turn.round()
            check_wire(before, now, caps)
            for answer in promised:
                check_promise(answer, now, model)
            for name in now.names:
                level = by_name[name].level if name in by_name else "always"
                assert level == "always" or name in required or name in model.entries
            if before is not None:
                may = {n for n, s in by_name.items() if s.level == "always"} | {"tool_search"}
                may |= required | set(model.entries)
                lost = [n for n in before.names if n not in now.names and n in may]
                assert not lost or touched, f"{lost} yielded to nothing"
            calls = batch_of(now, asked)
            model.advance()
            results = await now.execute(calls)
            now.accept(calls)
            touched = set()
            promised = []
            for call, result in zip(calls, results, strict=True):
                if call.name == "tool_search":
                    answer = told(result)
                    hits = [hit["name"] for hit in answer["hits"]]
                    assert len(hits) <= pool.max_tools
                    assert all(by_name[n].level in ("direct", "deferred") for n in hits)
                    model.admit(hits)
                    touched |= set(hits)
                    promised.append(answer)
                else:
                    model.admit([call.name])
                    touched.add(call.name)
            check_pool(session, model)
            before = now


def check_promise(answer: dict[str, Any], now: Round, model: Model) -> None:
    hits = [hit["name"] for hit in answer["hits"]]
    exposed = answer.get("exposed", [])
    failed = {one["name"]: one["reason"] for one in answer.get("failed", [])}
    assert exposed == [name for name in hits if name in now.names]
    assert set(exposed).isdisjoint(failed)
    assert set(exposed) | set(failed) == set(hits)
    for name, reason in failed.items():
        assert reason == ("visible_budget" if name in model.entries else "over_budget")


def check_pool(session: Session, model: Model) -> None:
    pool = session.view.pool
    assert set(pool.tools) == set(model.entries)
    assert {n: (t.last_use, t.rank) for n, t in pool.tools.items()} == {
        n: (last, rank) for n, (last, _, rank) in model.entries.items()
    }
    by_seq = sorted(pool.tools, key=lambda name: pool.tools[name].seq)
    assert by_seq == sorted(model.entries, key=lambda name: model.entries[name][1])
    assert model.fits(list(pool.tools))


@settings(max_examples=250)
@given(catalogues, settings_of, histories, st.sampled_from([1, 8]))
def test_A5_11_what_a_search_exposes_is_what_the_next_round_sends_and_the_pool_is_the_models(
    specs: list[Spec],
    caps: dict[str, Any],
    history: list[Any],
    parallel: int,
) -> None:
    asyncio.run(play(specs, caps, history, parallel))


changes = st.one_of(
    st.tuples(st.just("remove"), st.integers(0, 7), st.none()),
    st.tuples(st.just("back"), st.integers(0, 7), sizes),
    st.tuples(st.just("grow"), st.integers(0, 7), st.integers(90, 2500)),
)
moving = st.lists(st.tuples(st.lists(changes, max_size=2), batches), min_size=1, max_size=9)


async def play_moving(specs: list[Spec], caps: dict[str, Any], history: list[Any]) -> None:
    tools, dynamic = tools_of(specs), dynamic_of(specs, caps)
    async with Assembly([], dynamic=dynamic) as assembly:
        registry = assembly.registry
        for tool in tools:
            registry.add(tool)
        session, pool = assembly.session(), dynamic.pool_caps
        by_name = {spec.name: spec for spec in specs}
        before: Round | None = None
        turn = session.turn()
        for changed, asked in history:
            for what, at, size in changed:
                spec = specs[at % len(specs)]
                if what == "remove":
                    registry.remove(spec.name)
                    continue
                again = Spec(spec.name, spec.level, size)
                (tool,) = tools_of([again])
                if spec.name not in registry.catalog:
                    registry.add(tool)
                elif what == "grow":
                    registry.replace(tool)
            now = turn.round()
            check_wire(before, now, caps)
            assert all(name in registry.catalog for name in now.names)
            assert [d.name for d in now.definitions] == list(now.names)
            pooled = [
                d.wire_bytes
                for d in now.definitions
                if d.name in by_name and by_name[d.name].level in ("direct", "deferred")
            ]
            assert sum(pooled) <= pool.max_bytes
            assert len(pooled) <= pool.max_tools
            calls = batch_of(now, asked)
            results = await now.execute(calls)
            assert [result.is_error for result in results] == [False] * len(calls)
            before = now


@settings(max_examples=120)
@given(catalogues, settings_of, moving)
def test_a_round_keeps_its_budget_and_order_while_the_catalogue_changes(
    specs: list[Spec], caps: dict[str, Any], history: list[Any]
) -> None:
    asyncio.run(play_moving(specs, caps, history))


Step = Callable[[Session], Awaitable[object]]


async def test_the_models_own_examples_hold() -> None:
    """The model is worth nothing if it does not know the guide's own examples (rule A6.4)."""

    def model(max_tools: int, max_bytes: int, **levels: tuple[str, int]) -> Model:
        specs = {n: Spec(n, level, size) for n, (level, size) in levels.items()}
        return Model(specs, max_tools, max_bytes, 1)

    four = model(2, 9999, **dict.fromkeys("abcde", ("deferred", 1)))  # type: ignore[arg-type]
    four.admit(list("abcd"))
    assert list(four.entries) == ["a", "b"]
    four.admit(["e"])
    assert set(four.entries) == {"b", "e"}
    one = model(1, 9999, keep=("direct", 1), drop=("deferred", 1))
    one.admit(["keep", "drop"])
    assert list(one.entries) == ["keep"]
    big = model(9, 1024, big=("deferred", 4096), a=("deferred", 10))
    big.admit(["big", "a"])
    assert list(big.entries) == ["a"]
    big.advance()
    assert list(big.entries) == ["a"]
    big.advance()
    assert not big.entries
