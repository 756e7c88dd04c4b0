"""Long random histories of several sessions of one assembly, each compared after every step with
the naive model of `naive_discovery`.

A history is settings and a list of plain operations, made from a seed; a failing one is cut down to
the operations that matter and printed, so it can be played again with `play`. One operation with
all comparisons after it counts as one step.
"""

from __future__ import annotations

import asyncio
import json
import logging
import random
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple, cast

import pytest

from conversing import through_json, told
from naive_discovery import SEARCH, Known, Rules, Talk
from toolcrib import (
    Assembly,
    Budget,
    CallContext,
    Discovery,
    Dynamic,
    LazyTool,
    Policy,
    Principal,
    Round,
    Session,
    Tool,
    ToolCall,
    ToolDefinition,
    ToolLimits,
    ToolResult,
    Turn,
    define_tool,
)
from toolcrib.discovery.policy import Evict
from toolcrib.policy import Exposure
from toolcrib.providers.history import Answers, Assistant, Message, User
from toolcrib.replay import replayed

WORDS = ("alpha", "bravo", "cocoa", "delta", "ember", "fjord", "gamma", "hotel")
NAMES = tuple(f"{word}_tool" for word in WORDS)
LEVELS = ("always", "direct", "direct", "deferred", "deferred", "deferred", "hidden")
QUERIES = (*WORDS, "common", "common", "common", "alpha cocoa gamma", "common hotel", "unfound")
LIMITS = (None, None, 1, 2, 3, 8, 0, -1, -(10**9), 1_000_000, 10**15)
UNDEFINED = ("nothing_of_that_name", "tool_searches", *NAMES)
PEOPLE = (
    Principal("one", scopes=frozenset({"secrets"})),
    Principal("two"),
    Principal("three", scopes=frozenset({"secrets", "more"})),
)


class Op(NamedTuple):
    """One step: what, on which session, and numbers that say the rest (modulo what there is)."""

    what: str
    who: int
    numbers: tuple[int, ...] = ()


@dataclass(frozen=True)
class Setup:
    """Everything a history begins with."""

    levels: tuple[str, ...]
    sizes: tuple[int, ...]
    kinds: tuple[str, ...]
    guarded: tuple[bool, ...]
    definitions: int
    bytes: int
    tokens: int
    counts_own: bool
    pool_tools: int | None
    pool_bytes: int | None
    idle: int
    evict: str
    admitted: int
    with_load: bool
    limits: tuple[int, int, int, int]
    sessions: int


def setup_of(source: random.Random, is_still: bool) -> Setup:
    pick = source.choice
    kinds = ("plain",) if is_still else ("plain", "plain", "plain", "lazy", "fails", "later", "odd")
    return Setup(
        levels=tuple(pick(LEVELS) for _ in NAMES),
        sizes=tuple(
            source.choice((source.randint(90, 400), source.randint(90, 900))) for _ in NAMES
        ),
        kinds=tuple(pick(kinds) for _ in NAMES),
        guarded=tuple(source.random() < 0.2 for _ in NAMES),
        definitions=pick((0, 1, 2, 3, 4, 5, 6, 9)),
        bytes=pick((0, 0, 700, 1200, 1600, 2000, 2600, 3500, 9000)),
        tokens=pick((0, 0, 0, 0, 120, 250, 400, 700)),
        counts_own=pick((True, False)),
        pool_tools=pick((None, None, 0, 1, 2, 2, 3, 4)),
        pool_bytes=pick((None, None, -1, 250, 600, 1000, 1800, 4000)),
        idle=pick((0, 1, 1, 2, 3, 6)),
        evict=pick(("idle", "idle", "pressure", "never-in-turn")),
        admitted=pick((0, 0, 0, 0, 1, 2, 3)),
        with_load=pick((False, False, True)),
        limits=(pick((4, 30, 99)), pick((9, 60, 999)), pick((2, 5, 0, 0, 0)), pick((1, 8))),
        sessions=pick((1, 2, 2, 3)),
    )


BUSY = (
    *("round", 40), *("look", 8), *("text", 8), *("again", 4), *("same round", 4), *("turn", 8),
    *("require", 3), *("discover", 6), *("host", 6), *("add", 4), *("remove", 3), *("grow", 4),
    *("resume", 4), *("quiet", 3), *("press", 3),
)  # fmt: skip
STILL = ("round", 60, "look", 6, "text", 10, "again", 5, "turn", 10)
ITEMS = ("search", "search", "search", "call", "call", "call", "call", "bad")


def ops_of(source: random.Random, setup: Setup, length: int, is_still: bool) -> list[Op]:
    weighted = STILL if is_still else BUSY
    kinds, weights = weighted[::2], cast("tuple[int, ...]", weighted[1::2])
    return [
        Op(
            str(what),
            source.randrange(setup.sessions),
            tuple(source.randrange(10_000) for _ in range(1 + 3 * source.randrange(4))),
        )
        for what in source.choices(kinds, weights, k=length)
    ]


def own_tokens(definition: ToolDefinition) -> int:
    """A counter unlike the built-in estimate; some definitions cost nothing."""
    return len(definition.description) // 3 - 30 if len(definition.description) > 90 else 0


def wire_size(definition: ToolDefinition) -> int:
    """By rule A6.2."""
    schema = json.dumps(definition.input_schema, separators=(",", ":"), ensure_ascii=False)
    texts = (definition.name, definition.description, schema)
    return sum(len(text.encode()) for text in texts) + 32


class Failing(Exception):
    """What a tool raises here."""


@dataclass
class Shelf:
    """One tool name of the history: what it is now, and how its loads go."""

    at: int
    kind: str
    size: int
    is_loaded: bool = True
    loads: int = 0
    expected_loads: int = 0
    runs: int = 0
    expected_runs: int = 0

    def text(self, *, loaded: bool) -> str:
        said = f"{'common' if loaded else 'shell'} {WORDS[self.at]} "
        bare = len(NAMES[self.at]) + len('{"type":"object","properties":{}}') + 32
        return said + "." * max(self.size - bare - len(said), 0)

    def tool(self) -> Tool:
        async def execute(ctx: CallContext, arguments: dict[str, Any]) -> str:
            self.runs += 1
            if self.at % 4 == 3:
                raise Failing("as it always does")
            return "done"

        schema = {"type": "object", "properties": {}}
        return define_tool(
            NAMES[self.at],
            description=self.text(loaded=True),
            input_schema=schema,
            execute=execute,
        )

    def lazy(self) -> LazyTool:
        async def load() -> Any:
            self.loads += 1
            return self._loaded_at(self.loads)

        return LazyTool(NAMES[self.at], self.text(loaded=False), load=load)

    def _loaded_at(self, attempt: int) -> Any:
        if not self.loads_at(attempt):
            if self.kind == "odd":
                return None
            raise Failing("no such thing today")
        return self.tool()

    def loads_at(self, attempt: int) -> bool:
        """Whether that attempt to load it succeeds: at once, never, or from the third on."""
        return self.kind == "lazy" or (self.kind == "later" and attempt >= 3)


@dataclass
class Side:
    """One session, its model, and what a test needs to remember of both."""

    session: Session
    model: Talk
    principal: Principal
    turn: Turn
    limits: ToolLimits
    used: Counter[str] = field(default_factory=Counter)
    closed: bool = False
    round: Round | None = None
    round_accepted: bool = False
    turn_sent: Round | None = None
    before: tuple[ToolDefinition, ...] = ()
    messages: list[Message] = field(default_factory=list)
    is_replayable: bool = True
    last: dict[str, Any] = field(default_factory=dict)


class Machine:
    """A real assembly and its models, and the steps they take together."""

    def __init__(self, setup: Setup) -> None:
        self.setup = setup
        self.calls = 0
        self.seen: Counter[str] = Counter()
        self.shelves = [Shelf(at, setup.kinds[at], setup.sizes[at]) for at in range(len(NAMES))]
        self.world: dict[str, Known] = {}
        self.budget = Budget(
            setup.definitions,
            setup.bytes,
            setup.tokens,
            **({"counter": own_tokens} if setup.counts_own else {}),
        )
        definitions, size = setup.definitions or 32, setup.bytes or 16384
        self.rules = Rules(
            definitions,
            size,
            setup.tokens or None,
            setup.pool_tools or definitions,
            setup.pool_bytes if (setup.pool_bytes or 0) > 0 else size,  # type: ignore[arg-type]
            setup.idle,
            setup.evict,
            setup.admitted or None,
        )
        self.dynamic = Dynamic(
            exposures={
                name: cast("Exposure", level)
                for name, level in zip(NAMES, setup.levels, strict=True)
            },
            budget=self.budget,
            discovery=Discovery(
                setup.pool_tools,
                setup.pool_bytes,
                setup.idle,
                cast("Evict", setup.evict),
                setup.admitted,
            ),
            search_with_load=setup.with_load,
        )
        secret = Policy(scopes=frozenset({"secrets"}))
        self.assembly = Assembly(
            dynamic=self.dynamic,
            policies={n: secret for n, is_it in zip(NAMES, setup.guarded, strict=True) if is_it},
        )
        self.sides: list[Side] = []

    async def open(self) -> None:
        await self.assembly.open()
        self._know(SEARCH, "always", False, "")
        for shelf in self.shelves:
            if shelf.at % 5 != 4:  # some come later
                self._put(shelf, shelf.size)
        iterations, calls, searches, parallel = self.setup.limits
        is_waiting = any(shelf.kind != "plain" for shelf in self.shelves)
        limits = ToolLimits(iterations, calls, 1 if is_waiting else parallel, searches)
        for at in range(self.setup.sessions):
            session = self.assembly.session(principal=PEOPLE[at])
            model = Talk(self.world, self.rules, "secrets" in PEOPLE[at].scopes)
            side = Side(session, model, PEOPLE[at], session.turn(limits), limits)
            model.turn()
            self.sides.append(side)

    # the catalogue

    def _know(self, name: str, level: str, guarded: bool, text: str) -> None:
        entry = self.assembly.catalog.get(name)
        assert entry is not None
        size = wire_size(entry.definition)
        assert entry.definition.wire_bytes == size
        tokens = own_tokens(entry.definition) if self.setup.counts_own else size // 4
        self.world[name] = Known(name, level, guarded, text, size, tokens)

    def _put(self, shelf: Shelf, size: int) -> None:
        shelf.size, shelf.loads, shelf.expected_loads = size, 0, 0
        shelf.is_loaded = shelf.kind == "plain"
        tool: Tool = shelf.tool() if shelf.is_loaded else shelf.lazy()
        name = NAMES[shelf.at]
        registry = self.assembly.registry
        if name in registry.catalog:
            registry.replace(tool)
        else:
            registry.add(tool)
        self._known_again(shelf)

    def _known_again(self, shelf: Shelf) -> None:
        text = f"{'common' if shelf.is_loaded else 'shell'} {WORDS[shelf.at]} tool"
        setup = self.setup
        self._know(NAMES[shelf.at], setup.levels[shelf.at], setup.guarded[shelf.at], text)

    def _attempt(self, shelf: Shelf) -> bool:
        """The model's part of making sure that a tool is loaded."""
        if not shelf.is_loaded:
            shelf.expected_loads += 1
            shelf.is_loaded = shelf.loads_at(shelf.expected_loads)
            if shelf.is_loaded:
                self._catalogue_changed()
        return shelf.is_loaded

    def _refresh_known(self) -> None:
        for shelf in self.shelves:
            if NAMES[shelf.at] in self.world:
                self._known_again(shelf)

    @property
    def revision(self) -> int:
        return self.assembly.catalog.revision

    # the steps

    async def step(self, op: Op) -> None:
        side = self.sides[op.who % len(self.sides)]
        number = op.numbers[0]
        await getattr(self, "_do_" + op.what.replace(" ", "_"))(side, number, op.numbers[1:])
        self.seen[op.what] += 1
        self.check(side)

    async def _do_round(self, side: Side, number: int, items: tuple[int, ...]) -> None:
        now = self._round(side)
        calls = self._batch(now, items, with_undefined=number % 12 == 0)
        await self._execute(side, now, calls)

    async def _do_same_round(self, side: Side, number: int, items: tuple[int, ...]) -> None:
        now = side.round
        if now is None or now.turn is not side.turn or now.catalog is not self.assembly.catalog:
            return
        side.is_replayable = False
        await self._execute(side, now, self._batch(now, items, with_undefined=number % 5 == 0))

    async def _do_look(self, side: Side, number: int, items: tuple[int, ...]) -> None:
        if self.setup.evict == "never-in-turn":
            side.is_replayable = False  # a round that the transcript does not show holds tools
        now = self._round(side)
        again = side.turn.round()
        assert (again.names, again.definitions) == (now.names, now.definitions), "asked twice"
        verdict = now.check([ToolCall("x", UNDEFINED[number % len(UNDEFINED)])])
        assert verdict.accepted == (UNDEFINED[number % len(UNDEFINED)] in now.names)
        side.before = again.definitions

    async def _do_text(self, side: Side, number: int, items: tuple[int, ...]) -> None:
        now = self._round(side)
        assert now.accept().accepted
        self._accepted(side)
        side.messages.append(Assistant("So it is."))
        self._check_replayed(side, always=number % 8 == 0)

    async def _do_again(self, side: Side, number: int, items: tuple[int, ...]) -> None:
        if side.round is not None:
            if not side.round_accepted:
                side.is_replayable = False
            assert side.round.accept().accepted
            self._accepted(side)

    async def _do_turn(self, side: Side, number: int, items: tuple[int, ...]) -> None:
        side.turn, side.closed, side.used = side.session.turn(side.limits), False, Counter()
        side.model.turn()
        side.messages.append(User.of("And now?"))

    async def _do_quiet(self, side: Side, number: int, items: tuple[int, ...]) -> None:
        """A user turn in which nothing is used, and the beginning of the next."""
        await self._do_turn(side, number, items)
        for _ in range(1 + number % 4):
            await self._do_text(side, 1, items)
        await self._do_look(side, number, items)
        await self._do_turn(side, number, items)

    async def _do_require(self, side: Side, number: int, items: tuple[int, ...]) -> None:
        names = [NAMES[n % len(NAMES)] for n in (number, *items[:1])]
        if number % 7 == 0:
            names.append("not_here_yet")
        side.session.require(*names)
        side.model.require(dict.fromkeys(names))
        side.is_replayable = False

    async def _do_discover(self, side: Side, number: int, items: tuple[int, ...]) -> None:
        pool = (*NAMES, *NAMES, SEARCH, "nowhere")
        names = list(dict.fromkeys(pool[n % len(pool)] for n in (number, *items)))
        model, side.is_replayable = side.model, False
        found = side.session.discover(*names)
        hits = [name for name in names if model.may_find(name)]
        evicted = model.take_in(hits)
        view = model.in_view(self.revision)
        assert [hit.name for hit in found.hits] == hits
        assert found.exposed == tuple(name for name in hits if name in view)
        assert dict(found.failed) == {
            name: ("not_discoverable" if model.may_use(name) else "unknown")
            if name not in hits
            else ("visible_budget" if name in model.pool else "over_budget")
            for name in names
            if name not in found.exposed
        }
        assert list(found.evicted) == [n for n in evicted if n not in hits]

    async def _do_host(self, side: Side, number: int, items: tuple[int, ...]) -> None:
        name, side.is_replayable = NAMES[number % len(NAMES)], False
        result = await side.session.call(name)
        self._expect_call(side, name, result, is_bad=False)

    async def _do_add(self, side: Side, number: int, items: tuple[int, ...]) -> None:
        away = [shelf for shelf in self.shelves if NAMES[shelf.at] not in self.world]
        if away:
            shelf = away[number % len(away)]
            kinds = ("plain", shelf.kind, self.setup.kinds[shelf.at])
            shelf.kind = kinds[number % len(kinds)]
            self._put(shelf, 90 + number % 800)
            self._catalogue_changed()

    async def _do_grow(self, side: Side, number: int, items: tuple[int, ...]) -> None:
        here = [shelf for shelf in self.shelves if NAMES[shelf.at] in self.world]
        if here:
            self._put(here[number % len(here)], 90 + (number * 7) % 1900)
            self._catalogue_changed()

    async def _do_press(self, side: Side, number: int, items: tuple[int, ...]) -> None:
        """What is in the pool grows, and is used before anything has made room."""
        pooled = [shelf for shelf in self.shelves if NAMES[shelf.at] in side.model.pool]
        pooled = [shelf for shelf in pooled if NAMES[shelf.at] in self.world]
        if pooled:
            self._put(pooled[number % len(pooled)], 90 + (number * 7) % 1900)
            self._catalogue_changed()
            await self._do_host(side, pooled[(number // 8) % len(pooled)].at, items)

    async def _do_remove(self, side: Side, number: int, items: tuple[int, ...]) -> None:
        name = NAMES[number % len(NAMES)]
        self.assembly.registry.remove(name)
        if self.world.pop(name, None) is not None:
            self._catalogue_changed()

    def _catalogue_changed(self) -> None:
        for side in self.sides:
            side.is_replayable = False

    async def _do_resume(self, side: Side, number: int, items: tuple[int, ...]) -> None:
        state = through_json(side.session.state())
        side.session = self.assembly.resume(state, principal=side.principal)
        side.is_replayable = False
        side.before, side.round = (), None
        side.turn = side.session.turn(side.limits)
        side.model.turn()
        side.closed, side.used = False, Counter()

    # a round and what it does

    def _round(self, side: Side) -> Round:
        before, model = side.model.sent, side.model
        sent = model.send(self.revision)
        now = side.turn.round()
        assert now.names == sent
        assert tuple(definition.name for definition in now.definitions) == sent
        for definition in now.definitions:
            entry = self.assembly.catalog.get(definition.name)
            assert entry is not None and entry.definition is definition
        self._check_rules(side, before, now)
        self._check_report(side, now)
        first = side.turn_sent
        if first is None or first.turn is not now.turn:
            side.turn_sent = now
        elif self.setup.evict == "never-in-turn" and first.catalog is now.catalog:
            assert now.names[: len(before)] == before, "a turn's prefix stays"
        side.before = now.definitions
        side.round, side.round_accepted = now, False
        return now

    def _check_rules(self, side: Side, before: tuple[str, ...], now: Round) -> None:
        """What must hold whatever the model says."""
        rules, world = self.rules, self.world
        kept = tuple(name for name in before if name in now.names)
        assert now.names[: len(kept)] == kept, "what stays keeps its place, the rest is appended"
        assert len(set(now.names)) == len(now.names) <= rules.definitions
        assert now.bytes == sum(map(wire_size, now.definitions))
        assert now.bytes <= rules.bytes or len(now.names) == 1 or rules.tokens is not None
        first, *others = [world[name].size for name in now.names] or [0]
        assert now.bytes <= rules.bytes or not others or max(first, *others) > rules.bytes
        for name in now.names:
            assert side.model.may_use(name), "nothing forbidden"
            level = world[name].level
            assert level != "hidden" or name in side.model.required, "nothing hidden"
            assert level == "always" or name in {*side.model.required, *side.model.pool}
        pooled = [n for n in now.names if n in side.model.pool and n not in side.model.required]
        pooled = [n for n in pooled if world[n].level != "always"]
        assert len(pooled) <= rules.pool_tools
        assert sum(world[name].size for name in pooled) <= rules.pool_bytes

    def _check_report(self, side: Side, now: Round) -> None:
        """The figures of a round, from what it sends and what the one before sent."""
        old = {definition.name: definition for definition in side.before}
        texts = [(d.name, d.description, json.dumps(d.input_schema)) for d in now.definitions]
        old_texts = [(d.name, d.description, json.dumps(d.input_schema)) for d in side.before]
        prefix = 0
        while texts[prefix : prefix + 1] and texts[prefix] == dict(enumerate(old_texts)).get(
            prefix
        ):
            prefix += 1
        report, rules, model = now.report(), self.rules, side.model
        sizes = [wire_size(definition) for definition in now.definitions]
        assert (report.definitions, report.bytes) == (len(sizes), sum(sizes))
        assert (report.prefix_definitions, report.prefix_bytes) == (prefix, sum(sizes[:prefix]))
        counted = [self.world[name].tokens for name in now.names]
        assert report.tokens == now.tokens == sum(counted)
        assert report.tokens_are == ("counted" if self.setup.counts_own else "an estimate")
        assert report.added == tuple(name for name in now.names if name not in old)
        assert set(report.dropped) == set(old) - set(now.names)
        changed = [t for t in texts if t[0] in old and t not in old_texts]
        assert report.changed == tuple(name for name, _, _ in changed)
        waiting = {name for name in model.pool if name not in now.names}
        waiting = {name for name in waiting if model.may_use(name)}
        assert set(report.waiting) == waiting
        assert (report.admitted, report.max_admitted) == (model.admitted, rules.admitted)
        assert (report.max_definitions, report.max_bytes) == (rules.definitions, rules.bytes)
        assert report.max_tokens == rules.tokens
        used = report.used
        assert side.used == Counter(
            iterations=used.iterations, calls=used.calls, searches=used.searches
        )
        assert report.limits == side.limits
        assert json.loads(json.dumps(report.to_json()))["prefix_bytes"] == report.prefix_bytes

    def _accepted(self, side: Side) -> None:
        if not side.round_accepted:
            side.round_accepted = True
            side.model.accept()
            pool = side.session.view.pool.tools
            sizes = [self.world[name].size for name in pool]
            assert len(sizes) <= self.rules.pool_tools
            assert sum(sizes) <= self.rules.pool_bytes

    def _batch(self, now: Round, items: tuple[int, ...], with_undefined: bool) -> list[ToolCall]:
        made: list[ToolCall] = []
        for what, one, two in zip(items[::3], items[1::3], items[2::3], strict=True):
            self.calls += 1
            call_id, kind = f"c{self.calls}", ITEMS[what % len(ITEMS)]
            if kind == "search":
                if SEARCH in now.names:
                    made.append(ToolCall(call_id, SEARCH, arguments_of(one, two)))
            elif now.names:
                name = now.names[one % len(now.names)]
                if name != SEARCH:
                    made.append(ToolCall(call_id, name, "[1, 2]" if kind == "bad" else "{}"))
        if with_undefined and made:
            self.calls += 1
            unknown = [name for name in UNDEFINED if name not in now.names]
            at = self.calls % (len(made) + 1)
            made.insert(at, ToolCall(f"c{self.calls}", unknown[self.calls % len(unknown)]))
        return made

    async def _execute(self, side: Side, now: Round, calls: list[ToolCall]) -> None:
        results = await now.execute(calls)
        assert [result.call_id for result in results] == [call.id for call in calls]
        if calls:
            side.messages += [Assistant("", tuple(calls)), Answers(tuple(results))]
        else:
            side.messages.append(Assistant("Nothing to call."))
        kinds = [result.failure.kind if result.failure else "" for result in results]
        undefined = [call.name not in now.names for call in calls]
        if any(undefined):
            self.seen["undefined"] += 1
            wanted = ["undefined_tool" if one else "cancelled" for one in undefined]
            assert kinds == wanted, "nothing runs"
            return
        iterations, count = side.used["iterations"], side.used["calls"]
        if calls:
            limits = side.limits
            over = iterations + 1 > limits.iterations or count + len(calls) > limits.calls
            if side.closed or over:
                self.seen["over"] += 1
                side.closed = True
                assert side.turn.closed
                assert kinds == ["limited"] * len(calls)
                return
            side.used.update(iterations=1, calls=len(calls))
        self._accepted(side)
        searches: list[tuple[Any, ToolResult]] = []
        for call, result in zip(calls, results, strict=True):
            if call.name != SEARCH:
                self._expect_call(side, call.name, result, is_bad=call.arguments == "[1, 2]")
            elif side.used["searches"] >= side.limits.searches:
                assert result.failure is not None and result.failure.kind == "limited"
                self.seen["search limited"] += 1
            else:
                side.used["searches"] += 1
                searches.append((self._expect_search(side, call, result), result))
        self._refresh_known()
        for found, result in searches:
            answer = told(result)
            assert answer.pop("query") == json.loads(result_query(calls, result))["query"]
            answer.pop("hits")
            assert answer == side.model.answer(found, self.revision)
            self.seen.update(one["reason"] for one in answer.get("failed", []))
            self.seen["exposed"] += len(answer.get("exposed", []))
            self.seen["evicted"] += len(answer.get("evicted", []))
        self._check_replayed(side, always=False)

    def _expect_search(self, side: Side, call: ToolCall, result: ToolResult) -> Any:
        """What the model does for a search, and what must be true of the hits themselves."""
        arguments, model = json.loads(call.arguments), side.model
        failing: set[str] = set()
        here = [shelf for shelf in self.shelves if NAMES[shelf.at] in self.world]
        if self.setup.with_load:
            for shelf in here:
                if model.may_find(NAMES[shelf.at]):
                    self._attempt(shelf)
        texts = {
            NAMES[shelf.at]: {"common" if shelf.is_loaded else "shell", WORDS[shelf.at], "tool"}
            for shelf in here
        }
        hits = [hit["name"] for hit in told(result)["hits"]]
        assert len(set(hits)) == len(hits)
        assert all(model.may_find(name) for name in hits), "nothing forbidden, nothing hidden"
        limit = arguments.get("limit") or 8
        most = min(limit if limit > 0 else 8, self.rules.pool_tools)
        assert len(hits) <= most
        asked = set(arguments["query"].split())
        match = {name for name, words in texts.items() if model.may_find(name) and words & asked}
        assert len(hits) >= min(most, len(match))
        assert len(hits) == most or match <= set(hits)
        exact = f"{arguments['query']}_tool"
        assert not hits or not model.may_find(exact) or hits[0] == exact
        for shelf in here:
            if NAMES[shelf.at] in hits and not self._attempt(shelf):
                failing.add(NAMES[shelf.at])
        self._refresh_known()
        return model.search(hits, failing)

    def _expect_call(self, side: Side, name: str, result: ToolResult, *, is_bad: bool) -> None:
        kind = result.failure.kind if result.failure is not None else ""
        shelf = self.shelves[NAMES.index(name)]
        if not side.model.may_use(name):
            assert kind == "not_found"
            return
        if not self._attempt(shelf):
            assert kind == "not_available"
            self.seen["call not loaded"] += 1
            return
        self._refresh_known()
        if is_bad:
            assert kind == "invalid_arguments"
            return
        assert bool(kind) == (shelf.at % 4 == 3), result
        shelf.expected_runs += 1
        side.model.call(name)

    # after every step

    def check(self, acting: Side) -> None:
        for shelf in self.shelves:
            assert (shelf.runs, shelf.loads) == (shelf.expected_runs, shelf.expected_loads)
        for side in self.sides:
            state = side.session.state()
            if side is acting:
                wanted = side.model.state()
                assert {key: state[key] for key in wanted} == wanted
                side.last = json.loads(json.dumps(state))
            elif side.last:
                assert state == side.last, "no session touches another"

    def _check_replayed(self, side: Side, *, always: bool) -> None:
        if not side.is_replayable or not (always or self.calls % 6 == 0):
            return
        self.seen["replayed"] += 1
        view = replayed(side.messages, self.assembly.catalog, self.dynamic, side.principal)
        assert view == side.session.view


def arguments_of(one: int, two: int) -> str:
    limit = LIMITS[two % len(LIMITS)]
    more = {} if limit is None else {"limit": limit}
    return json.dumps({"query": QUERIES[one % len(QUERIES)], **more})


def result_query(calls: list[ToolCall], result: ToolResult) -> str:
    return next(call.arguments for call in calls if call.id == result.call_id)


async def play(setup: Setup, ops: list[Op], seen: Counter[str] | None = None) -> int:
    """Plays a history; the number of its steps. Raises where the session is not the model's."""
    machine = Machine(setup)
    await machine.open()
    try:
        for op in ops:
            await machine.step(op)
    finally:
        await machine.assembly.close()
    if seen is not None:
        seen.update(machine.seen)
    return len(ops)


def fault_of(runner: asyncio.Runner, setup: Setup, ops: list[Op]) -> str:
    try:
        runner.run(play(setup, ops))
    except Exception as error:
        return type(error).__name__
    return ""


def smallest(runner: asyncio.Runner, setup: Setup, ops: list[Op], within: float = 10.0) -> list[Op]:
    """The operations without those that do not matter to the fault."""
    kind, until, size = fault_of(runner, setup, ops), time.monotonic() + within, len(ops) // 2
    while size and kind:
        for start in range(len(ops) - size, -1, -size):
            if time.monotonic() > until:
                return ops
            fewer = ops[:start] + ops[start + size :]
            if fault_of(runner, setup, fewer) == kind:
                ops = fewer
        size //= 2
    return ops


def histories(first: int, steps: int) -> tuple[int, Counter[str]]:
    """Plays histories from the seed `first` on until `steps` steps are done."""
    done, seen, seed = 0, Counter[str](), first
    with asyncio.Runner() as runner:
        while done < steps:
            source = random.Random(seed)
            is_still = seed % 3 == 0
            setup = setup_of(source, is_still)
            ops = ops_of(source, setup, source.choice((10, 40, 80, 160)), is_still)
            try:
                done += runner.run(play(setup, ops, seen))
            except Exception:
                few = smallest(runner, setup, ops)
                print(f"seed {seed}: {len(ops)} operations, these are enough:\n{setup}\n{few}")
                runner.run(play(setup, few))
                raise
            seed += 1
    return done, seen


OFTEN = (
    *("round", "look", "text", "again", "same round", "turn", "require", "discover", "host"),
    *("add", "remove", "grow", "press", "resume", "quiet"),
    *("undefined", "over", "search limited", "replayed"),
    *("exposed", "evicted", "visible_budget", "over_budget", "admission_budget", "load_failed"),
    "call not loaded",
)
"""What a run must have come by many times to mean anything."""


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    """Loads that fail are logged, thousands of times here."""
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


@pytest.mark.parametrize("first", [0, 1_000_000])
def test_A4_to_A7_sessions_are_the_models_after_every_step_of_random_histories(
    first: int, capsys: pytest.CaptureFixture[str]
) -> None:
    done, seen = histories(first, 11_000)
    assert done >= 11_000
    assert {what: seen[what] for what in OFTEN if seen[what] < 40} == {}
    with capsys.disabled():
        print(f"\n{done} steps: {dict(seen)}")


def test_a_history_that_once_told_of_a_tool_that_had_left_the_pool_as_waiting() -> None:
    assert histories(30_000_277, 160)[0] >= 160


@pytest.mark.soak
@pytest.mark.parametrize("first", [10_000_000 * at for at in range(1, 11)])
def test_A4_to_A7_sessions_are_the_models_over_half_a_million_steps(
    first: int, capsys: pytest.CaptureFixture[str]
) -> None:
    done, seen = histories(first, 50_000)
    assert done >= 50_000
    with capsys.disabled():
        print(f"\n{done} steps: {dict(seen)}")


def talk(tools: int, size: int, **levels: tuple[str, int]) -> Talk:
    world = {n: Known(n, level, False, "", bytes_, 0) for n, (level, bytes_) in levels.items()}
    return Talk(world, Rules(32, 16_384, None, tools, size, 1, "idle", None), has_scope=True)


def test_A6_4_the_model_knows_the_guides_own_examples() -> None:
    """It is worth nothing otherwise."""
    four = talk(2, 9_999, **dict.fromkeys("abcde", ("deferred", 1)))
    four.take_in("abcd")
    assert list(four.pool) == ["a", "b"]
    four.take_in(["e"])
    assert set(four.pool) == {"b", "e"}
    one = talk(1, 9_999, keep=("direct", 1), drop=("deferred", 1))
    one.take_in(["keep", "drop"])
    assert list(one.pool) == ["keep"]
    big = talk(9, 1_024, big=("deferred", 4_096), a=("deferred", 10))
    big.take_in(["big", "a"])
    assert list(big.pool) == ["a"]
    big.accept()
    assert list(big.pool) == ["a"], "one round without use is none too many"
    big.accept()
    assert not big.pool
