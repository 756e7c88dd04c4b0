"""Rules A4-A8, their traps and the reports TS08-TS10 that no other file names, through the public
way in: sessions, rounds, the loop, sources that come in any order."""

from __future__ import annotations

import asyncio
import json
import os
import random
import subprocess
import sys
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from conftest import Plain, Sized, ended, outcome
from conversing import SEARCH, asks, hits, only, reasons, search, searching, some, through_json
from servers.support import BOUND, raw, until
from servers.support import source as mcp_source
from toolcrib import (
    Assembly,
    Budget,
    CallContext,
    Denied,
    Discovery,
    Dynamic,
    Policy,
    Principal,
    Round,
    Session,
    Tool,
    ToolCall,
    ToolDefinition,
    ToolLimits,
    ToolResult,
    define_tool,
    tool,
)
from toolcrib.chain import CallNext, Invocation
from toolcrib.loop import (
    NO_RECOVERY,
    InvalidProviderResponse,
    Recovery,
    RoundBegan,
    ScriptedModel,
    UndefinedTool,
    run,
)
from toolcrib.providers import anthropic, openai
from toolcrib.providers.history import Answers, Assistant, Message, User
from toolcrib.ranking.fields import Document
from toolcrib.ranking.ranker import Hit
from toolcrib.sources.contract import Publish

# A4-A6


async def test_A4_4_a_direct_tool_goes_before_a_better_ranked_deferred_one_in_the_cut() -> None:
    dynamic = Dynamic(exposures={"near": "direct"}, budget=Budget(2), discovery=Discovery(9))
    async with Assembly(some("far", "near"), dynamic=dynamic) as tools:
        session = tools.session()
        found = session.discover("far", "near")
        assert found.exposed == ("near",)
        assert dict(found.failed) == {"far": "visible_budget"}
        assert set(session.turn().round().names) == only("near")


async def test_A4_4_otherwise_both_are_the_same_found_pooled_and_called() -> None:
    async with Assembly(
        some("near", "far"), dynamic=Dynamic(exposures={"near": "direct"})
    ) as tools:
        session = tools.session()
        assert set((await search(session, "common"))["exposed"]) == {"near", "far"}
        calls = [ToolCall("a", "near"), ToolCall("b", "far")]
        results = await session.turn().round().execute(calls)
        assert [outcome(result) for result in results] == ["near ran", "far ran"]


async def test_A5_5_a_search_looks_at_names_texts_parameters_values_tags_and_nowhere_else() -> None:
    schema = {
        "type": "object",
        "properties": {
            "orchard": {"type": "string", "description": "where plums ripen"},
            "kind": {"enum": ["quince", "medlar"]},
        },
    }
    definition = ToolDefinition("harvest", "Brings fruit home", schema, tags=("autumnal",))
    shown = Plain("harvest")
    shown.definition = definition
    other = Plain("lamp", "the word zeppelin is only in its answer", description="Light")
    async with Assembly([shown, other], dynamic=Dynamic()) as tools:
        session = tools.session()
        for word in ("harvest", "fruit", "orchard", "plums", "quince", "medlar", "autumnal"):
            assert hits(await search(session, word)) == ["harvest"], word
        for word in ("zeppelin", "string", SEARCH):
            assert hits(await search(session, word)) == [], word


async def test_A6_3_each_touch_is_counted_ranked_within_its_batch_and_dated() -> None:
    async with Assembly(some("a", "b", "c"), dynamic=Dynamic()) as tools:
        session = tools.session()

        def touches() -> dict[str, tuple[int, int, int]]:
            pool = session.view.pool.tools
            return {name: (t.last_use, t.seq, t.rank) for name, t in pool.items()}

        session.discover("b", "a")
        assert touches() == {"b": (0, 1, 0), "a": (0, 2, 1)}
        session.turn().round().accept()
        session.discover("a")
        assert touches()["a"] == (1, 3, 0), "a discovery of its own has rank 0"
        session.turn().round().accept()
        await session.call("b")
        assert touches() == {"b": (2, 4, 0), "a": (1, 3, 0)}


class ByName:
    """The least that ranks: names that the query is part of. Closing it fails."""

    def __init__(self) -> None:
        self.names: set[str] = set()
        self.is_closed = False

    def update(self, put: Iterable[Document] = (), drop: Iterable[str] = ()) -> None:
        self.names -= set(drop)
        self.names |= {one.key for one in put}

    def search(
        self, query: str, limit: int = 8, accept: Callable[[str], bool] | None = None
    ) -> list[Hit]:
        found = [name for name in sorted(self.names) if query in name]
        return [Hit(name, 1.0) for name in found if accept is None or accept(name)][:limit]

    def close(self) -> None:
        self.is_closed = True
        raise OSError("the disk is full")


async def test_a_ranker_of_ones_own_need_not_learn_and_its_failing_close_is_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    ranker = ByName()
    async with Assembly(some("first", "second"), dynamic=Dynamic(ranker=lambda: ranker)) as tools:
        session = tools.session()
        assert (await search(session, "eco"))["exposed"] == ["second"]
        assert outcome(await session.call("second")) == "second ran"
        tools.registry.add(Plain("recorder"))
        assert hits(await search(session, "rec")) == ["recorder"]
        tools.registry.remove("recorder")
        assert hits(await search(session, "rec")) == []
    assert ranker.is_closed
    assert "the disk is full" in caplog.text


# the traps


async def test_T_A1_what_finds_no_room_in_the_round_is_not_said_to_be_exposed() -> None:
    dynamic = Dynamic(budget=Budget(max_definitions=2), discovery=Discovery(max_tools=8))
    async with Assembly(some("a", "b"), dynamic=dynamic) as tools:
        session = tools.session()
        answer = await search(session, "common")
        assert answer["exposed"] == ["a"]
        assert reasons(answer) == {"b": "visible_budget"}
        assert set(session.turn().round().names) == only("a")


async def test_T_A2_one_that_does_not_fit_into_the_bytes_does_not_keep_smaller_ones_out() -> None:
    dynamic = Dynamic(budget=Budget(9, 1000), discovery=Discovery(9, 9000))
    tools_ = [Sized("aa", 100), Sized("bb", 2000), Sized("cc", 100)]
    async with Assembly(tools_, dynamic=dynamic) as tools:
        found = tools.session().discover("aa", "bb", "cc")
        assert found.exposed == ("aa", "cc")
        assert dict(found.failed) == {"bb": "visible_budget"}


@pytest.mark.parametrize("order", [("a", "b", "c"), ("c", "b", "a")])
async def test_T_A3_of_one_batch_the_best_ranked_are_sent(order: Sequence[str]) -> None:
    dynamic = Dynamic(budget=Budget(3), discovery=Discovery(9))
    async with Assembly(some("a", "b", "c"), dynamic=dynamic) as tools:
        session = tools.session()
        assert session.discover(*order).exposed == tuple(order[:2])
        assert session.turn().round().names == (SEARCH, *order[:2])


async def test_T_A4_T_A5_the_pool_follows_the_budget_and_a_models_limit_cannot_churn_it() -> None:
    names = [f"tool_{at:02}" for at in range(60)]
    async with Assembly(some(*names), dynamic=Dynamic(budget=Budget(40, 10**6))) as tools:
        session = tools.session()
        assert len(hits(await search(session, "common", 1_000_000))) == 40
        assert len(session.view.pool.tools) == 40


async def test_T_A8i_what_was_found_needs_no_second_step_and_what_was_not_is_told() -> None:
    dynamic = Dynamic(discovery=Discovery(max_bytes=300))
    async with Assembly([Sized("aa_one", 900), Sized("bb_two", 100)], dynamic=dynamic) as tools:
        session = tools.session()
        answer = await search(session, "aa_one bb_two")
        assert answer["exposed"] == ["bb_two"]
        assert reasons(answer) == {"aa_one": "over_budget"}
        (result,) = await session.turn().round().execute([ToolCall("c", "bb_two")])
        assert not result.is_error


async def test_T_A10_a_batch_too_large_in_bytes_loses_its_worst_not_its_best() -> None:
    dynamic = Dynamic(discovery=Discovery(max_bytes=500))
    async with Assembly([Sized(f"t{at}", 200) for at in range(4)], dynamic=dynamic) as tools:
        found = tools.session().discover("t3", "t2", "t1", "t0")
        assert found.exposed == ("t3", "t2")
        assert dict(found.failed) == {"t1": "over_budget", "t0": "over_budget"}


async def test_T_A19_numbers_that_became_floats_in_a_store_go_on_where_they_were() -> None:
    dynamic = Dynamic(discovery=Discovery(idle_rounds=1))
    async with Assembly(some("a"), dynamic=dynamic) as tools:
        session = tools.session()
        session.discover("a")
        session.turn().round().accept()
        state = through_json(session.state())
        assert isinstance(state["rounds"], float)
        resumed = tools.resume(state)
        resumed.turn().round().accept()
        assert resumed.turn().round().names == (SEARCH,), "the second idle round, not the first"
        assert json.dumps(resumed.state()["rounds"]) == "2"


# A8 undefined tools and recovery


class Ledger:
    """Tools that write down that they ran."""

    def __init__(self) -> None:
        self.ran: list[str] = []

    def tool(self, name: str) -> Plain:
        async def runs(ctx: CallContext, arguments: str) -> str:
            self.ran.append(name)
            return f"{name} ran"

        return Plain(name, runs, description=f"common {name}")


FINDS = asks((SEARCH, '{"query": "common"}'))


def asked() -> list[Message]:
    return [User.of("Do it.")]


def texts(messages: Sequence[Message]) -> str:
    return "\n".join(repr(message) for message in messages)


async def test_A8_1_the_error_carries_the_first_offender_and_is_not_tried_again() -> None:
    ledger = Ledger()
    model = ScriptedModel(asks(SEARCH, "first", "second"), "never asked for")
    async with Assembly([ledger.tool("first")], dynamic=Dynamic()) as tools:
        with pytest.raises(UndefinedTool) as raised:
            await run(tools.session(), model, asked())
    assert raised.value.call.name == "first"
    assert len(model.requests) == 1
    assert ledger.ran == []


async def test_A8_2_an_undefined_name_is_told_before_any_limit_and_counts_against_none() -> None:
    limits = ToolLimits(iterations=1, calls=1)
    async with Assembly(some("a"), dynamic=Dynamic(always=["a"]), limits=limits) as tools:
        turn = tools.session().turn()
        refused = await turn.round().execute([ToolCall("1", "a"), ToolCall("2", "nowhere")])
        assert [outcome(one) for one in refused] == ["cancelled", "undefined_tool"]
        assert (turn.used.calls, turn.used.iterations, turn.closed) == (0, 0, False)
        (done,) = await turn.round().execute([ToolCall("3", "a")])
        assert outcome(done) == "a ran"
        late = await turn.round().execute([ToolCall("4", "a"), ToolCall("5", "nowhere")])
        assert [outcome(one) for one in late] == ["cancelled", "undefined_tool"]


async def test_A8_2_where_no_tools_were_sent_a_call_is_an_invalid_response_whatever_it_names() -> (
    None
):
    model = ScriptedModel(asks("anything"), "never asked for")
    async with Assembly([]) as tools:
        with pytest.raises(InvalidProviderResponse):
            await run(tools.session(), model, asked(), recovery=Recovery(5))
    assert len(model.requests) == 1, "no recovery"


async def test_A8_3_recovery_is_off_unless_asked_for_and_then_twice_in_a_run() -> None:
    assert (NO_RECOVERY.most, Recovery().most) == (0, 2)
    async with Assembly(some("a"), dynamic=Dynamic()) as tools:
        for recovery, requests in ((NO_RECOVERY, 1), (Recovery(), 3), (Recovery(0), 1)):
            model = ScriptedModel(*[asks("a")] * 9)
            with pytest.raises(UndefinedTool):
                await run(tools.session(), model, asked(), recovery=recovery)
            assert len(model.requests) == requests


async def test_A8_4_of_a_rejected_response_nothing_stays_neither_text_nor_its_other_calls() -> None:
    ledger = Ledger()
    model = ScriptedModel(asks("here", "there", text="I will just"), "Then not.")
    messages = asked()
    dynamic = Dynamic(always=["here"])
    async with Assembly([ledger.tool("here"), ledger.tool("there")], dynamic=dynamic) as tools:
        session = tools.session()
        await run(session, model, messages, recovery=Recovery())
        assert session.view.pool.rounds == 1, "only the answer was accepted (A6.6)"
    assert messages == [*asked(), Assistant("Then not.")]
    assert ledger.ran == []
    second = model.requests[1][0]
    assert "I will just" not in texts(second)
    feedback = second[-1]
    assert isinstance(feedback, User)
    assert "'there'" in texts([feedback])
    assert SEARCH in texts([feedback])


async def test_A8_5_the_feedback_is_said_after_the_whole_transcript_once_and_never_kept() -> None:
    model = ScriptedModel(FINDS, asks("zz"), asks("yy"), asks("a"), "Done.")
    messages = asked()
    async with Assembly(some("a"), dynamic=Dynamic()) as tools:
        await run(tools.session(), model, messages, recovery=Recovery(2))
    requests = [list(request) for request, _ in model.requests]
    assert requests[1] == messages[:3], "nothing was rejected yet"
    for at, name in ((2, "'zz'"), (3, "'yy'")):
        assert requests[at][:-1] == messages[:3], "the whole transcript, as it stands"
        assert name in texts(requests[at][-1:])
    assert "'zz'" not in texts(requests[3]), "the newer feedback is in the place of the older"
    assert requests[4] == messages[:5], "taken: the feedback is gone"
    assert [type(message) for message in messages].count(User) == 1


async def test_A8_6_the_count_is_a_runs_own_and_at_its_end_the_error_itself_comes() -> None:
    async with Assembly(some("a"), dynamic=Dynamic()) as tools:
        session, messages = tools.session(), asked()
        for _ in range(3):
            model = ScriptedModel(asks("zz"), "No.")
            await run(session, model, messages, recovery=Recovery(1))
        before = list(messages)
        spent = ScriptedModel(asks("zz"), FINDS, asks("yy"), "never asked for")
        with pytest.raises(UndefinedTool, match="yy"):
            await run(session, spent, messages, recovery=Recovery(1))
        assert messages[: len(before)] == before
        assert len(messages) == len(before) + 2, "the step between them is whole and stays"


async def test_A8_7_a_rejected_call_leads_back_to_the_model_never_to_the_registered_tool() -> None:
    ledger, events = Ledger(), list[Any]()
    dynamic = Dynamic(exposures={"dark": "hidden"})
    model = ScriptedModel(asks("dark"), asks("dark"), "I cannot.")
    async with Assembly([ledger.tool("dark")], dynamic=dynamic) as tools:
        session = tools.session()
        said = await run(session, model, asked(), recovery=Recovery(), on_event=events.append)
        assert said.text == "I cannot."
        assert ledger.ran == []
        assert outcome(await tools.call("dark")) == "dark ran", "though it is there"
    assert [type(event).__name__ for event in events if not isinstance(event, RoundBegan)] == [
        "TextCame"
    ]
    assert [event.number for event in events if isinstance(event, RoundBegan)] == [1, 2, 3]


async def test_T_A8h_no_request_has_a_made_up_call_no_transcript_a_user_turn_or_half_a_text() -> (
    None
):
    ledger = Ledger()
    dynamic = Dynamic(exposures={"dark": "hidden"})
    streamed = asks("dark", text="Half a thou")
    model = ScriptedModel(streamed, FINDS, streamed, asks("open"), "Done.")
    messages = asked()
    async with Assembly([ledger.tool("dark"), ledger.tool("open")], dynamic=dynamic) as tools:
        await run(tools.session(), model, messages, recovery=Recovery())
    for request, _ in model.requests:
        for at, message in enumerate(request):
            if isinstance(message, Assistant) and message.calls:
                answers = request[at + 1]
                assert isinstance(answers, Answers)
                assert [r.call_id for r in answers.results] == [c.id for c in message.calls]
            assert not (isinstance(message, Assistant) and "dark" in texts([message]))
    assert "Half a thou" not in texts(messages)
    assert [type(message).__name__ for message in messages] == [
        "User", "Assistant", "Answers", "Assistant", "Answers", "Assistant",
    ]  # fmt: skip
    assert ledger.ran == ["open"]


# TS08: what is sent does not depend on who came first


class Later:
    """A source that publishes when it is told to, and again when it has reconnected."""

    def __init__(self, name: str, names: Sequence[str]) -> None:
        self.name = name
        self._names = names
        self.may_publish, self.has_published = asyncio.Event(), asyncio.Event()
        self._publish: Publish | None = None

    def tools(self, order: random.Random) -> list[Tool]:
        shuffled = list(self._names)
        order.shuffle(shuffled)
        return [
            Plain(
                f"{self.name}__{name}", description=f"common {name} of {self.name}", schema=SCHEMA
            )
            for name in shuffled
        ]

    async def open(self, publish: Publish) -> None:
        self._publish = publish

    def arrive(self, order: random.Random) -> None:
        assert self._publish is not None
        self._publish(self.tools(order))

    async def wait_ready(self, timeout: float | None = None) -> None: ...

    async def close(self) -> None: ...


SCHEMA = {"type": "object", "properties": {"z": {"type": "string"}, "a": {"type": "integer"}}}


def exported(sent: Round) -> str:
    """What providers would be sent, byte for byte."""
    rooms = [openai.tools(sent.definitions), openai.tools(sent.definitions, api="responses")]
    return json.dumps([*rooms, anthropic.tools(sent.definitions)])


def body(sent: Round) -> str:
    return json.dumps(anthropic.tools(sent.definitions))


@pytest.mark.parametrize(
    "dynamic",
    [None, Dynamic(default="always"), Dynamic()],
    ids=["static", "always", "deferred"],
)
async def test_TS08_whoever_connects_first_a_new_session_sends_the_same_bytes(
    dynamic: Dynamic | None,
) -> None:
    seen: set[str] = set()
    for seed in range(20):
        order = random.Random(seed)
        sources = [Later(name, ("one", "two", "three")) for name in ("red", "green", "blue")]
        async with Assembly(sources, dynamic=dynamic) as tools:
            arriving = list(sources)
            order.shuffle(arriving)
            for source in arriving:
                source.arrive(order)
            order.choice(sources).arrive(order)  # one reconnects
            session = tools.session()
            if dynamic is not None and dynamic.default == "deferred":
                await search(session, "common two", 5)
            seen.add(exported(session.turn().round()))
    assert len(seen) == 1


async def test_TS08_for_a_running_session_what_is_revealed_or_comes_later_only_appends() -> None:
    for seed in range(20):
        order = random.Random(seed)
        sources = [Later(name, ("one", "two", "three")) for name in ("red", "green", "blue")]
        async with Assembly(sources, dynamic=Dynamic(always=["*__one"])) as tools:
            arriving = list(sources)
            order.shuffle(arriving)
            session, before = tools.session(), "["
            turn = session.turn()
            for source in arriving:
                source.arrive(order)
                now = turn.round()
                assert body(now).startswith(before), "who comes later is appended"
                before = body(now)[:-1]
                word = order.choice(("two", "three"))
                await now.execute([searching(f"{source.name} {word}")])
                now = turn.round()
                assert body(now).startswith(before), "what was revealed is appended"
                before = body(now)[:-1]
            again = order.choice(sources)
            again.arrive(order)
            assert body(turn.round())[:-1] == before, "a reconnect with the same list is no news"


async def test_TS08_three_real_mcp_servers_in_any_order_and_one_that_dies_send_the_same_bytes() -> (
    None
):
    names = ["alpha", "bravo", "cocoa"]
    seen: set[str] = set()
    for seed in range(3):
        order = random.Random(seed)
        listed = [{"name": n, "description": n, "inputSchema": SCHEMA} for n in ("x", "y", "z")]
        order.shuffle(listed)
        servers = [
            raw(name, tools=json.dumps(listed), per_page=order.choice((2, 5, 50))) for name in names
        ]
        order.shuffle(servers)
        sources = [mcp_source(server, name=server.name) for server in servers]
        async with Assembly(sources, dynamic=Dynamic(default="always", budget=ROOMY)) as tools:
            await ended(tools.wait_ready(), 10)
            await until(partial(_have_listed, tools, names))
            running = tools.session()
            before = exported(running.turn().round())
            first = str(await ended(tools.call("bravo__pid"), 10))
            os.kill(int(first), 9)
            async with asyncio.timeout(BOUND):
                while (again := await tools.call("bravo__pid")).is_error or str(again) == first:
                    pass
            assert exported(running.turn().round()) == before
            assert exported(tools.session().turn().round()) == before
            seen.add(before)
    assert len(seen) == 1


def _have_listed(tools: Assembly, servers: Sequence[str]) -> bool:
    """Whether the last tool of each server is there; a list comes whole."""
    return all(f"{server}__{name}" in tools.catalog for server in servers for name in "xyz")


ROOMY = Budget(max_definitions=500, max_bytes=10**6)


# TS09: the bytes of schemas

TYPES = """
import enum, json
from dataclasses import dataclass
from typing import Any, Literal, TypedDict, Union
from toolcrib import Assembly, Dynamic, tool
from toolcrib.providers import anthropic, gemini, openai
import asyncio

class Colour(enum.Enum):
    RED = "red"
    GREEN = "green"
    BLUE = "blue"

class Place(TypedDict, total=False):
    zip: str
    city: str
    area: float

@dataclass
class Pair:
    right: int
    left: "set[str]"

KINDS = {"kilo", "alpha", "mike", "bravo", "zulu"}

@tool(tags=("b", "a"))
def first(zeta: set[str], alpha: Literal["b", "a", "c"], mid: dict[str, set[int]] = {}) -> None:
    "First."

@tool
def second(colour: Colour, where: Place, many: frozenset[Literal[3, 1, 2]]) -> dict[str, Any]:
    "Second."

@tool
def third(
    either: Union[int, str, list[Pair], None] = None, *, pair: Pair, other: bytes | float
) -> None:
    "Third."

fourth = tool(name="fourth")(lambda: None)

async def main():
    async with Assembly([third, first, fourth, second], dynamic=Dynamic(default="always")) as tools:
        sent = tools.session().turn().round().definitions
        print(json.dumps([
            [[d.name, d.schema_json, d.fingerprint] for d in sent],
            openai.tools(sent), openai.tools(sent, strict=True),
            openai.tools(sent, api="responses"),
            anthropic.tools(sent), gemini.tools(sent),
        ]))

asyncio.run(main())
"""


def test_TS09_schemas_and_exports_are_the_same_bytes_under_every_hash_seed() -> None:
    here = Path(__file__).parent
    running = [
        subprocess.Popen(
            [sys.executable, "-c", TYPES],
            env={**os.environ, "PYTHONHASHSEED": str(seed), "PYTHONPATH": str(here.parent / "src")},
            stdout=subprocess.PIPE,
            text=True,
        )
        for seed in range(6)
    ]
    outputs = {process.communicate(timeout=60)[0] for process in running}
    assert [process.returncode for process in running] == [0] * 6
    assert len(outputs) == 1
    (text,) = outputs
    schemas = {name: schema for name, schema, _ in json.loads(text)[0]}
    order = {
        "first": ["zeta", "alpha", "mid"],
        "second": ["colour", "where", "many"],
        "third": ["either", "pair", "other"],
    }
    for name, properties in order.items():
        assert list(json.loads(schemas[name])["properties"]) == properties
    assert schemas["first"].index('"b"') < schemas["first"].index('"a"')
    for earlier, later in (("red", "green"), ("green", "blue"), ("zip", "city"), ("city", "area")):
        assert schemas["second"].index(f'"{earlier}"') < schemas["second"].index(f'"{later}"')
    assert schemas["third"].index('"right"') < schemas["third"].index('"left"')


# TS10: calling a tool by name, without arguments


@tool
def health() -> str:
    """Says how it is."""
    return "well"


@tool
def greet(who: str, times: int = 1) -> str:
    """Greets."""
    return ", ".join([who] * times)


@tool
async def call_tool(ctx: CallContext, name: str, arguments: Any = "") -> Any:
    """A generic bridge: calls any tool of the conversation by its name."""
    assert isinstance(ctx.session, Session)
    return await ctx.session.call(name, arguments)


WAYS = ["assembly", "execute", "session", "bridge", "round"]


async def through(tools: Assembly, way: str, name: str, arguments: str | None) -> ToolResult:
    session = tools.session()
    call = ToolCall("c", name) if arguments is None else ToolCall("c", name, arguments)
    if way == "assembly":
        return await tools.call(name, arguments)
    if way == "execute":
        return await tools.execute(call)
    if way == "session":
        return await session.execute(call)
    if way == "round":
        (result,) = await session.turn().round().execute([call])
        return result
    asked_for = {"name": name} | ({} if arguments is None else {"arguments": arguments})
    return await session.call("call_tool", asked_for)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("arguments", ["", None, "{}", "null", "  "], ids=repr)
async def test_TS10_a_tool_without_parameters_runs_with_nothing_however_that_is_written(
    way: str, arguments: str | None
) -> None:
    async with Assembly([health, call_tool]) as tools:
        assert outcome(await ended(through(tools, way, "health", arguments))) == "well"


@pytest.mark.parametrize("way", WAYS)
async def test_TS10_json_text_is_checked_as_in_a_direct_call(way: str) -> None:
    async with Assembly([greet, call_tool]) as tools:
        done = await through(tools, way, "greet", '{"who": "Ada", "times": "2"}')
        assert outcome(done) == "Ada, Ada"
        for wrong in ("", '{"times": 2}', '{"who": "Ada", "many": 2}', '{"who": "Ada"'):
            direct = await tools.call("greet", wrong)
            bridged = await through(tools, way, "greet", wrong)
            assert outcome(direct) == "invalid_arguments"
            assert (outcome(bridged), bridged.text) == (outcome(direct), direct.text)


@pytest.mark.parametrize("way", WAYS)
async def test_TS10_policy_authorisation_and_middlewares_are_those_of_a_direct_call(
    way: str,
) -> None:
    seen: list[tuple[str, str]] = []

    async def audit(call: Invocation, proceed: CallNext) -> ToolResult:
        result = await proceed(call)
        seen.append((call.context.name, outcome(result)))
        return result

    async def never(principal: Principal, parsed: Any) -> None:
        raise Denied("not today")

    async def runs(ctx: CallContext, parsed: Any) -> str:
        return "ran"

    schema = {"type": "object", "properties": {}}
    denied = define_tool(
        "denied", description="", input_schema=schema, execute=runs, authorize=never
    )
    vault = Plain("vault", "gold")
    async with Assembly(
        [health, denied, vault, call_tool],
        middlewares=[audit],
        policies={"vault": Policy(scopes=frozenset({"keys"}))},
        principal=Principal("nobody"),
    ) as tools:
        for name, kind in (("health", "well"), ("denied", "denied"), ("vault", "not_found")):
            if way == "round" and name == "vault":
                kind = "undefined_tool"  # it is in no round of this principal
            result = await through(tools, way, name, "")
            assert outcome(result) == kind
        assert vault.got == []
        assert ("health", "well") in seen
        assert all(name != "vault" for name, _ in seen)
