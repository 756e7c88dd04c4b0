"""The numbered rules of dynamic discovery (A4-A7) as guide A prints them, traps T-A1 to T-A10
corrected, each played through a session."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from conftest import Plain, Sized, names, outcome, sized
from conversing import SEARCH, hits, only, reasons, searching, some, told
from toolcrib import (
    Assembly,
    Budget,
    Conflict,
    Discovery,
    Dynamic,
    InvalidDefinition,
    NotAvailable,
    Policy,
    Principal,
    Session,
    ToolCall,
    ToolDefinition,
    tool,
)
from toolcrib.middleware import result_limit


async def searched(session: Session, query: str, limit: int | None = None) -> dict[str, Any]:
    """What a search answers that the host itself calls, outside of any round."""
    return told(await session.call(SEARCH, searching(query, limit).arguments))


def sent(session: Session) -> tuple[str, ...]:
    return session.turn().round().names


# A4 exposure


async def test_A4_1_each_level_and_the_default_is_deferred() -> None:
    exposures = {"on": "always", "near": "direct", "dark": "hidden"}
    async with Assembly(
        some("on", "near", "far", "dark"),
        dynamic=Dynamic(exposures=exposures),  # type: ignore[arg-type]
    ) as assembly:
        session = assembly.session()
        assert sent(session) == ("on", SEARCH)
        answer = await searched(session, "common words")
        assert set(hits(answer)) == {"near", "far"}
        assert set(sent(session)) == only("on", "near", "far")


@pytest.mark.parametrize(
    "wrong",
    [
        {"exposures": {"a": "sometimes"}},
        {"default": "sometimes"},
        {"exposures": {"": "always"}},
        {"exposures": {"  ": "always"}},
    ],
    ids=str,
)
def test_A4_1_an_unknown_level_or_a_blank_name_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidDefinition):
        Dynamic(**wrong)


async def test_A4_1_exposures_for_names_that_are_not_there_are_accepted() -> None:
    async with Assembly([], dynamic=Dynamic(always=["not_yet"])) as assembly:
        session = assembly.session()
        assert sent(session) == (SEARCH,)
        assembly.registry.add(Plain("not_yet"))
        assert set(sent(session)) == only("not_yet")


@pytest.mark.parametrize("level", ["direct", "deferred", "hidden"])
def test_A3_5_tool_search_stays_always(level: Any) -> None:
    with pytest.raises(InvalidDefinition, match="tool_search"):
        Dynamic(exposures={SEARCH: level})


@pytest.mark.parametrize(
    ("exposures", "policies"),
    [
        ({"tool_*": "deferred"}, {}),
        ({"*": "hidden"}, {}),
        ({}, {"*": Policy(exposure="deferred")}),
    ],
    ids=["pattern", "everything", "record for everything"],
)
async def test_A3_5_tool_search_stays_always_whatever_pattern_matches_it(
    exposures: Any, policies: Any
) -> None:
    dynamic = Dynamic(exposures=exposures)
    async with Assembly(some("a"), dynamic=dynamic, policies=policies) as assembly:
        assert sent(assembly.session()) == (SEARCH,)


async def test_A3_5_a_record_that_hides_tool_search_by_name_is_refused() -> None:
    policies = {SEARCH: Policy(exposure="hidden")}
    with pytest.raises(InvalidDefinition, match=SEARCH):
        async with Assembly(some("a"), dynamic=Dynamic(), policies=policies):
            pass


async def test_A3_6_a_tool_of_ones_own_named_tool_search_is_a_conflict() -> None:
    with pytest.raises(Conflict, match=SEARCH):
        async with Assembly(some(SEARCH), dynamic=Dynamic()):
            pass


async def test_A4_2_hidden_tools_are_seen_only_where_required_and_never_found() -> None:
    async with Assembly(some("dark"), dynamic=Dynamic(exposures={"dark": "hidden"})) as assembly:
        session = assembly.session()
        assert hits(await searched(session, "dark")) == []
        found = session.discover("dark", SEARCH, "nowhere")
        assert dict(found.failed) == {
            "dark": "not_discoverable",
            SEARCH: "not_discoverable",
            "nowhere": "unknown",
        }
        assert sent(session) == (SEARCH,)
        session.require("dark")
        assert set(sent(session)) == only("dark")


async def test_A4_3_a_tool_that_is_not_visible_is_still_callable_by_the_host() -> None:
    async with Assembly(
        some("far", "dark"), dynamic=Dynamic(exposures={"dark": "hidden"})
    ) as assembly:
        session = assembly.session()
        for name in ("far", "dark"):
            assert not (await assembly.call(name)).is_error
            assert not (await session.call(name)).is_error
        assert set(sent(session)) == only("far")  # a host's call pools it (A6.7), never a hidden


async def test_A4_5_require_is_idempotent_lasting_and_patient() -> None:
    async with Assembly(some("a"), dynamic=Dynamic(discovery=Discovery(idle_rounds=0))) as assembly:
        session = assembly.session()
        session.require("a", "a", "later")
        session.require("a")
        for _ in range(4):
            current = session.turn().round()
            assert set(current.names) == only("a")
            current.accept()
        assembly.registry.add(Plain("later"))
        assert set(sent(session)) == only("a", "later")


# A5 tool_search


async def test_A5_1_tool_search_takes_a_query_and_a_limit_that_is_8_unless_said() -> None:
    async with Assembly([], dynamic=Dynamic()) as assembly:
        (definition,) = assembly.session().turn().round().definitions
    schema = definition.input_schema
    assert set(schema["properties"]) == {"query", "limit"}
    assert schema["required"] == ["query"]
    assert schema["properties"]["query"]["type"] == "string"
    assert schema["properties"]["limit"]["type"] == "integer"
    assert schema["properties"]["limit"]["default"] == 8


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ("{", "cut off"),
        ("[]", "object"),
        ("{}", "query"),
        ('{"query": ""}', "query"),
        ('{"query": "  "}', "query"),
        ('{"query": 7}', "query"),
        ('{"query": "a", "select": ["b"]}', "select"),
        ('{"query": "a", "limit": "many"}', "limit"),
        ('{"query": "a", "limit": true}', "limit"),
    ],
)
async def test_A5_2_bad_arguments_are_refused_and_say_which(arguments: str, says: str) -> None:
    async with Assembly(some("a"), dynamic=Dynamic()) as assembly:
        result = await assembly.session().call(SEARCH, arguments)
    assert outcome(result) == "invalid_arguments"
    assert says in result.text


async def test_A5_2_without_a_session_it_is_not_available() -> None:
    async with Assembly(some("a"), dynamic=Dynamic()) as assembly:
        assert outcome(await assembly.call(SEARCH, query="a")) == "not_available"


async def test_A5_2_a_static_assembly_has_no_search() -> None:
    async with Assembly(some("a")) as assembly:
        session = assembly.session()
        assert outcome(await session.call(SEARCH, query="a")) == "not_found"
        with pytest.raises(NotAvailable):
            await session.search("a", 8)
        assert sent(session) == ("a",)


async def test_A5_3_the_limit_is_8_by_default_and_capped_at_the_pools_tools() -> None:
    twenty = some(*(f"tool_{at:02}" for at in range(20)))
    async with Assembly(twenty, dynamic=Dynamic()) as assembly:
        session = assembly.session()
        for limit in (None, 0, -3):
            assert hits(await searched(session, "common", limit)) == [
                f"tool_{at:02}" for at in range(8)
            ]
        assert len(hits(await searched(session, "common", 3))) == 3
    four = Dynamic(discovery=Discovery(max_tools=2))
    async with Assembly(some("a1", "b1", "c1", "d1"), dynamic=four) as assembly:
        session = assembly.session()
        assert len(hits(await searched(session, "common", 1_000_000))) == 2
        assert len(hits(await searched(session, "common", 1))) == 1


@pytest.mark.parametrize(("limit", "found"), [("1.0", 1), ("2e0", 2), ("1e1", 3)])
async def test_A5_3_a_whole_limit_written_as_a_float_is_a_limit(limit: str, found: int) -> None:
    async with Assembly(some("a", "b", "c"), dynamic=Dynamic()) as assembly:
        result = await assembly.session().call(SEARCH, f'{{"query": "common", "limit": {limit}}}')
    assert len(hits(told(result))) == found


async def test_A5_6_an_exact_name_ranks_first_and_the_search_never_finds_itself() -> None:
    async with Assembly(
        some("rename", "rename_branch", "tool_searcher"), dynamic=Dynamic()
    ) as assembly:
        session = assembly.session()
        assert hits(await searched(session, "rename"))[0] == "rename"
        assert SEARCH not in hits(await searched(session, SEARCH))


async def test_A5_9_empty_lists_are_left_out_and_the_answer_is_data() -> None:
    async with Assembly(some("a1"), dynamic=Dynamic()) as assembly:
        session = assembly.session()
        assert await searched(session, "nothing like it") == {
            "query": "nothing like it",
            "hits": [],
        }
        answer = await searched(session, "a1")
        assert set(answer) == {"query", "hits", "exposed"}
        (hit,) = answer["hits"]
        assert set(hit) == {"name", "description", "score"}
        assert answer["exposed"] == ["a1"]


async def test_A5_10_over_budget_visible_budget_and_evicted_are_told_apart() -> None:
    dynamic = Dynamic(
        budget=Budget(max_definitions=2), discovery=Discovery(max_tools=2, max_bytes=9999)
    )
    tools = [*some("a1", "b1", "c1"), Sized("large", 10_000)]
    async with Assembly(tools, dynamic=dynamic) as assembly:
        session = assembly.session()
        answer = await searched(session, "a1 b1")
        assert (answer["exposed"], reasons(answer)) == (["a1"], {"b1": "visible_budget"})
        later = await searched(session, "c1")
        assert (later["exposed"], later["evicted"]) == (["c1"], ["a1"])
        answer = await searched(session, "large")
        assert reasons(answer) == {"large": "over_budget"}
        assert "exposed" not in answer and "evicted" not in answer


SIZES_558 = {"generate_video": 2724, "b_hit": 2439} | {
    "c_hit": 985, "d_hit": 985, "e_hit": 985, "f_hit": 984, "g_hit": 1450, "h_hit": 773,
}  # fmt: skip


async def test_A5_11_what_is_exposed_is_in_the_next_round_to_the_byte_of_report_558() -> None:
    tools = [Sized(name, size) for name, size in SIZES_558.items()]
    async with Assembly(
        [], dynamic=Dynamic(exposures={"always_*": "always"}, budget=Budget(max_bytes=16 * 1024))
    ) as assembly:
        registry = assembly.registry
        (search,) = assembly.catalog.definitions
        for at in range(13):
            registry.add(Sized(f"always_{at:02}", 700))
        registry.add(Sized("always_13", 11_260 - 13 * 700 - search.wire_bytes))
        for one in tools:
            registry.add(one)
        session = assembly.session()
        first = session.turn().round()
        assert len(first.names) == 15
        assert first.bytes == 11_260
        found = session.discover(*SIZES_558)
        after = session.turn().round()
        assert set(found.exposed) == set(after.names) - set(first.names)
        assert "generate_video" in found.exposed
        dropped = dict(found.failed)
        assert set(dropped) == set(SIZES_558) - set(found.exposed)
        assert set(dropped.values()) == {"visible_budget"}
        assert after.bytes <= 16 * 1024
        assert after.names[:15] == first.names


async def test_A5_11_of_two_hits_with_room_for_one_the_better_is_exposed() -> None:
    async with Assembly([], dynamic=Dynamic()) as probe:
        search = probe.catalog.definitions[0].wire_bytes
    tools = [Sized("aaa_hit", 700), Sized("bbb_hit", 700)]
    dynamic = Dynamic(budget=Budget(max_bytes=search + 1399), discovery=Discovery(max_bytes=9999))
    for better, worse in (("aaa_hit", "bbb_hit"), ("bbb_hit", "aaa_hit")):
        async with Assembly(tools, dynamic=dynamic) as assembly:
            session = assembly.session()
            found = session.discover(better, worse)
            assert found.exposed == (better,)
            assert dict(found.failed) == {worse: "visible_budget"}
            assert set(sent(session)) == only(better)


async def test_A5_12_a_hit_that_is_pooled_already_is_exposed_and_touched_again() -> None:
    async with Assembly(
        some("a1"), dynamic=Dynamic(discovery=Discovery(idle_rounds=1))
    ) as assembly:
        session = assembly.session()
        for _ in range(4):
            assert (await searched(session, "a1"))["exposed"] == ["a1"]
            session.turn().round().accept()
        assert set(sent(session)) == only("a1")


async def test_A5_11_two_searches_and_a_call_in_one_batch_are_told_as_the_batch_left_the_pool() -> (
    None
):
    async with Assembly(
        some("a1", "b1", "c1"), dynamic=Dynamic(discovery=Discovery(max_tools=2))
    ) as assembly:
        session = assembly.session()
        current = session.turn().round()
        results = await current.execute([searching(name, 1, name) for name in ("a1", "b1", "c1")])
        first, second, third = map(told, results)
        assert "exposed" not in first
        assert reasons(first) == {"a1": "over_budget"}
        assert second["exposed"] == ["b1"]
        assert third["exposed"] == ["c1"]
        assert set(sent(session)) == only("b1", "c1")


async def test_A5_9_what_the_batch_brought_back_is_not_told_as_evicted() -> None:
    async with Assembly(
        some("a1", "b1", "c1"), dynamic=Dynamic(discovery=Discovery(max_tools=2))
    ) as assembly:
        session = assembly.session()
        session.discover("a1")
        session.discover("b1")
        calls = [searching("c1", 1, "1"), searching("a1", 1, "2")]
        first, second = map(told, await session.turn().round().execute(calls))
        assert (first["exposed"], second["exposed"]) == (["c1"], ["a1"])
        assert set(sent(session)) == only("c1", "a1")
        assert "evicted" not in first, "for c1 a1 had to go, but it came back"
        assert second["evicted"] == ["b1"]


async def test_a_search_that_a_limit_has_cut_stays_cut() -> None:
    async with Assembly(
        some("a1"), dynamic=Dynamic(), middlewares=[result_limit(50, part_budget_bytes=10)]
    ) as assembly:
        session = assembly.session()
        (result,) = await session.turn().round().execute([searching("a1")])
        assert "a1" not in result.text
        assert "truncated" in result.text


# A6 the pool


def test_A6_1_the_pools_caps_follow_the_effective_budget() -> None:
    plain = Dynamic()
    assert (plain.pool_caps.max_tools, plain.pool_caps.max_bytes) == (32, 16384)
    raised = Dynamic(budget=Budget(100, 50_000))
    assert (raised.pool_caps.max_tools, raised.pool_caps.max_bytes) == (100, 50_000)
    own = Dynamic(budget=Budget(100, 50_000), discovery=Discovery(7, 0))
    assert (own.pool_caps.max_tools, own.pool_caps.max_bytes) == (7, 50_000)
    nothing = Dynamic(budget=Budget(0, -1), discovery=Discovery(-1, -1))
    assert (nothing.pool_caps.max_tools, nothing.pool_caps.max_bytes) == (32, 16384)
    assert plain.discovery.idle_rounds == 10


def test_A6_2_the_bytes_of_a_definition_are_those_of_its_utf8_text_plus_32() -> None:
    definition = ToolDefinition("né", "dé", {"type": "object", "properties": {"ü": {}}})
    schema = '{"type":"object","properties":{"ü":{}}}'
    assert definition.wire_bytes == 3 + 3 + len(schema.encode()) + 32
    assert sized("x", 500).wire_bytes == 500


def pooled(session: Session) -> set[str]:
    return set(session.view.pool.tools)


async def session_of(assembly: Assembly, admitted: Sequence[str]) -> tuple[Session, dict[str, str]]:
    session = assembly.session()
    found = session.discover(*admitted)
    return session, dict(found.failed)


async def test_A6_4_of_a_batch_larger_than_the_pool_the_best_stay() -> None:
    dynamic = Dynamic(discovery=Discovery(max_tools=2))
    async with Assembly(some("a", "b", "c", "d", "e"), dynamic=dynamic) as assembly:
        session, refused = await session_of(assembly, ["a", "b", "c", "d"])
        assert pooled(session) == {"a", "b"}
        assert refused == {"c": "over_budget", "d": "over_budget"}
        found = session.discover("e")
        assert found.exposed == ("e",)
        assert found.evicted == ("a",), "the longest untouched goes"


async def test_A6_4_in_one_slot_the_better_ranked_stays_whatever_its_level() -> None:
    for levels in ({"keep": "direct"}, {"drop": "direct"}):
        dynamic = Dynamic(exposures=levels, discovery=Discovery(max_tools=1))  # type: ignore[arg-type]
        async with Assembly(some("keep", "drop"), dynamic=dynamic) as assembly:
            session, refused = await session_of(assembly, ["keep", "drop"])
            assert pooled(session) == {"keep"}
            assert refused == {"drop": "over_budget"}


async def test_A6_4_one_that_can_never_fit_is_left_out_and_evicts_nobody() -> None:
    dynamic = Dynamic(discovery=Discovery(max_bytes=1024))
    tools = [Sized("big", 4096), Sized("a", 100), Sized("old", 500)]
    async with Assembly(tools, dynamic=dynamic) as assembly:
        session = assembly.session()
        session.discover("old")
        found = session.discover("big", "a")
        assert found.exposed == ("a",)
        assert dict(found.failed) == {"big": "over_budget"}
        assert found.evicted == ()
        assert pooled(session) == {"a", "old"}


async def test_A6_4_older_tools_make_room_least_used_first_then_deferred_before_direct() -> None:
    dynamic = Dynamic(exposures={"near": "direct"}, discovery=Discovery(max_tools=3))
    async with Assembly(some("near", "far", "used", "x", "y", "z"), dynamic=dynamic) as assembly:
        session = assembly.session()
        session.discover("near")
        session.discover("far")
        session.turn().round().accept()
        await session.call("used")
        assert session.discover("x").evicted == ("far",)
        assert session.discover("y").evicted == ("near",)
        assert session.discover("z").evicted == ("used",)


@pytest.mark.parametrize("idle", [0, 1, 2])
async def test_A6_5_a_tool_stays_so_many_rounds_without_being_used(idle: int) -> None:
    dynamic = Dynamic(discovery=Discovery(idle_rounds=idle))
    async with Assembly(some("a"), dynamic=dynamic) as assembly:
        session = assembly.session()
        session.discover("a")
        for _ in range(idle):
            session.turn().round().accept()
            assert "a" in sent(session)
        session.turn().round().accept()
        assert "a" not in sent(session)


async def test_A6_5_a_use_counts_anew_as_in_the_guides_example_of_one_idle_round() -> None:
    async with Assembly(some("a"), dynamic=Dynamic(discovery=Discovery(idle_rounds=1))) as assembly:
        session = assembly.session()
        session.discover("a")
        session.turn().round().accept()
        assert "a" in sent(session)
        await session.call("a")
        session.turn().round().accept()
        assert "a" in sent(session)
        session.turn().round().accept()
        assert "a" not in sent(session)


async def test_A6_6_only_an_accepted_response_ages_the_pool_and_only_once() -> None:
    async with Assembly(some("a"), dynamic=Dynamic(discovery=Discovery(idle_rounds=1))) as assembly:
        session = assembly.session()
        session.discover("a")
        for _ in range(5):
            current = session.turn().round()
            assert not current.accept([ToolCall("1", "nowhere")]).accepted
            refused = await current.execute([ToolCall("1", "nowhere")])
            assert outcome(refused[0]) == "undefined_tool"
            assert "a" in current.names
        current = session.turn().round()
        for _ in range(5):
            assert current.accept().accepted
        assert "a" in sent(session)
        session.turn().round().accept()
        assert "a" not in sent(session)


async def test_A6_7_a_call_pools_direct_and_deferred_tools_only() -> None:
    exposures = {"on": "always", "dark": "hidden", "near": "direct"}
    async with Assembly(
        some("on", "dark", "near", "far"),
        dynamic=Dynamic(exposures=exposures),  # type: ignore[arg-type]
    ) as assembly:
        session = assembly.session()
        for name in ("on", "dark", "near", "far", "nowhere", SEARCH):
            await session.call(name, {"query": "zzz"} if name == SEARCH else None)
        assert pooled(session) == {"near", "far"}


async def test_A3_2_a_call_that_was_never_executed_pools_nothing_one_that_failed_does() -> None:
    async def veto(invocation: Any, call_next: Any) -> Any:
        if invocation.name == "vetoed":
            return invocation.answer("no")
        return await call_next(invocation)

    async def fail(ctx: Any, arguments: str) -> str:
        raise RuntimeError

    async with Assembly(
        [*some("vetoed"), Plain("fails", fail)], dynamic=Dynamic(), middlewares=[veto]
    ) as assembly:
        session = assembly.session()
        await session.call("vetoed")
        await session.call("fails")
        await session.call("fails", "not json")
        assert pooled(session) == {"fails"}


async def test_A6_8_a_definition_that_grew_is_measured_as_it_is_now() -> None:
    dynamic = Dynamic(discovery=Discovery(max_bytes=1000))
    async with Assembly([], dynamic=dynamic) as assembly:
        registry = assembly.registry
        for name in ("a", "b"):
            registry.add(Sized(name, 400))
        session = assembly.session()
        session.discover("a")
        session.discover("b")
        registry.replace(Sized("b", 900))
        view = session.view
        assert set(sent(session)) == only("b")
        assert session.view.pool is view.pool, "reading evicts nobody"
        registry.replace(Sized("b", 400))
        assert set(sent(session)) == only("a", "b")


async def test_A6_8_a_removed_tool_disappears_at_once() -> None:
    async with Assembly([], dynamic=Dynamic()) as assembly:
        for one in some("a", "b"):
            assembly.registry.add(one)
        session = assembly.session()
        session.discover("a", "b")
        assembly.registry.remove("a")
        assert set(sent(session)) == only("b")


async def test_A6_9_sessions_do_not_see_each_others_pool() -> None:
    async with Assembly(some("a"), dynamic=Dynamic()) as assembly:
        one, two = assembly.session(), assembly.session()
        one.discover("a")
        assert "a" in sent(one)
        assert "a" not in sent(two)
        assert one.id != two.id


# A7 the budget of a round


def test_A7_1_a_budget_is_32_definitions_of_16_KiB_unless_said() -> None:
    caps = Budget().caps
    assert (caps.max_tools, caps.max_bytes) == (32, 16384)
    assert Budget(0, -5).caps == caps


async def test_A7_2_with_room_for_one_only_tool_search_is_sent() -> None:
    dynamic = Dynamic(default="always", budget=Budget(max_definitions=1))
    async with Assembly(some("a", "b", "z"), dynamic=dynamic) as assembly:
        assert sent(assembly.session()) == (SEARCH,)


async def test_A7_2_of_two_discoveries_the_later_goes_first() -> None:
    async with Assembly(
        some("a", "b"), dynamic=Dynamic(budget=Budget(max_definitions=2))
    ) as assembly:
        session = assembly.session()
        session.discover("a")
        session.discover("b")
        assert set(sent(session)) == only("b")


async def walked(budget: int, *sizes: tuple[str, int], always: bool = True) -> set[str]:
    """What a round sends of tools of these sizes, tool_search left out of the count."""
    async with Assembly([], dynamic=Dynamic()) as probe:
        search = probe.catalog.definitions[0].wire_bytes
    dynamic = Dynamic(
        default="always" if always else "deferred",
        budget=Budget(max_bytes=budget + search),
        discovery=Discovery(max_bytes=99_999),
    )
    async with Assembly([Sized(n, s) for n, s in sizes], dynamic=dynamic) as assembly:
        session = assembly.session()
        if not always:
            session.discover(*(n for n, _ in sizes))
        return set(sent(session)) - {SEARCH}


async def test_A7_3_one_that_does_not_fit_is_skipped_and_later_ones_may_fit() -> None:
    assert await walked(1000, ("first", 100), ("huge", 5000), ("second", 100)) == {
        "first",
        "second",
    }
    assert await walked(1000, ("first", 100), ("huge", 5000), ("second", 100), always=False) == {
        "first",
        "second",
    }
    assert await walked(700, ("better", 600), ("worse", 600), always=False) == {"better"}


async def test_A7_3_the_first_is_kept_even_if_it_alone_is_too_large() -> None:
    async with Assembly([], dynamic=Dynamic(budget=Budget(max_bytes=10))) as assembly:
        assert sent(assembly.session()) == (SEARCH,)


async def test_A7_4_an_oversized_tool_still_uses_one_of_the_places() -> None:
    dynamic = Dynamic(
        budget=Budget(max_definitions=3, max_bytes=2000), discovery=Discovery(max_bytes=99_999)
    )
    tools = [Sized("a_big", 5000), Sized("b_small", 100), Sized("c_small", 100)]
    async with Assembly(tools, dynamic=dynamic) as assembly:
        session = assembly.session()
        session.discover("a_big", "b_small", "c_small")
        assert set(sent(session)) == only("b_small")


async def test_A7_5_a_pool_larger_than_the_budget_keeps_what_is_not_sent() -> None:
    dynamic = Dynamic(budget=Budget(max_definitions=2), discovery=Discovery(max_tools=5))
    async with Assembly(some("a", "b"), dynamic=dynamic) as assembly:
        session = assembly.session()
        session.discover("a")
        session.discover("b")
        assert "a" not in sent(session)
        await session.call("a")
        assert set(sent(session)) == only("a")
        assert pooled(session) == {"a", "b"}


# the order on the wire


async def test_the_wire_begins_with_the_always_tools_by_name_and_only_grows_at_its_end() -> None:
    async with Assembly(
        some("zeta", "beta", "far1", "far2"), dynamic=Dynamic(always=["zeta", "beta"])
    ) as assembly:
        session = assembly.session()
        assert sent(session) == ("beta", SEARCH, "zeta")
        session.discover("far2")
        assert sent(session) == ("beta", SEARCH, "zeta", "far2")
        session.discover("far1")
        assembly.registry.replace(Plain("zeta"), "program")
        assert sent(session) == ("beta", SEARCH, "zeta", "far2", "far1")


async def test_a_tool_that_returns_goes_last() -> None:
    async with Assembly(some("a", "b"), dynamic=Dynamic(discovery=Discovery(max_tools=2))) as one:
        session = one.session()
        session.discover("a")
        assert sent(session) == (SEARCH, "a")
        session.discover("b")
        assert sent(session) == (SEARCH, "a", "b")
        one.registry.remove("a")
        assert sent(session) == (SEARCH, "b")
        one.registry.add(Plain("a"))
        assert sent(session) == (SEARCH, "b", "a")


async def test_a_visible_tool_does_not_yield_to_one_that_was_only_waiting() -> None:
    dynamic = Dynamic(budget=Budget(max_definitions=2))
    async with Assembly(some("a", "b"), dynamic=dynamic) as assembly:
        session = assembly.session()
        session.discover("a", "b")
        for _ in range(3):
            current = session.turn().round()
            assert set(current.names) == only("a")
            current.accept()


async def test_a_round_is_pure_asked_twice_it_is_the_same() -> None:
    async with Assembly([], dynamic=Dynamic()) as probe:
        search = probe.catalog.definitions[0].wire_bytes
    dynamic = Dynamic(
        exposures={"near": "direct"},
        budget=Budget(max_definitions=2, max_bytes=search + 100),
        discovery=Discovery(max_bytes=9999, idle_rounds=0),
    )
    tools = [Sized("near", 100), Sized("waiting", 100), Sized("large", 101)]
    async with Assembly(tools, dynamic=dynamic) as assembly:
        session = assembly.session()
        session.require("waiting")
        session.discover("near")
        first = session.turn().round()
        assert first.names == (SEARCH, "near")
        first.accept()
        session.discover("large")
        once = sent(session)
        assert sent(session) == once


# what a principal may not use


async def test_a_forbidden_tool_is_in_no_search_no_discovery_and_no_round() -> None:
    @tool(scopes={"billing"})
    async def refund_order() -> str:
        """Pay money back."""
        return "paid"

    async with Assembly([refund_order, *some("far")], dynamic=Dynamic()) as assembly:
        stranger = assembly.session()
        stranger.require("refund_order")
        assert hits(await searched(stranger, "refund_order pay money back")) == []
        assert dict(stranger.discover("refund_order").failed) == {"refund_order": "unknown"}
        assert dict(stranger.discover("nowhere").failed) == {"nowhere": "unknown"}
        assert sent(stranger) == (SEARCH,)
        ana = assembly.session(principal=Principal.of("ana", "billing"))
        assert hits(await searched(ana, "refund_order")) == ["refund_order"]
        assert "refund_order" in sent(ana)


async def test_tools_published_meanwhile_are_searchable_at_once() -> None:
    async with Assembly([], dynamic=Dynamic(always=["on_*"])) as assembly:
        session = assembly.session()
        assert hits(await searched(session, "later")) == []
        assembly.registry.publish("s", some("later_one", "on_later"))
        assert hits(await searched(session, "later")) == ["later_one"]
        assert set(sent(session)) == only("on_later", "later_one")
        assembly.registry.publish("s", some("on_later"))
        assert hits(await searched(session, "later")) == []
        assert set(sent(session)) == only("on_later")


async def test_the_definitions_of_a_round_are_what_its_names_say() -> None:
    async with Assembly(some("a", "b"), dynamic=Dynamic()) as assembly:
        session = assembly.session()
        session.discover("b", "a")
        current = session.turn().round()
        assert tuple(names(current.definitions)) == current.names
        assert current.bytes == sum(d.wire_bytes for d in current.definitions)
