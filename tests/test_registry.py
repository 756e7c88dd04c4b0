"""The one directory of tools: names, owners, revisions, and closing what was withdrawn (A1)."""

from __future__ import annotations

import asyncio
import logging
import threading
from typing import Any

import pytest

from conftest import Closing, Plain, ended, names, outcome
from toolcrib import (
    Assembly,
    Conflict,
    InvalidDefinition,
    NotAvailable,
    NotFound,
    Policy,
    Registry,
    ToolDefinition,
)
from toolcrib.policy import Policies
from toolcrib.registry import Change


def listed(registry: Registry) -> list[str]:
    return names(registry.catalog.definitions)


def test_A1_1_a_blank_name_is_refused() -> None:
    for blank in ("", "   ", "\n"):
        with pytest.raises(InvalidDefinition):
            ToolDefinition(blank)


@pytest.mark.parametrize("name", ["a b", "a.b", "a/b", "ä", "x" * 65, "a\n"])
def test_a_name_no_model_can_call_is_refused(name: str) -> None:
    registry = Registry()
    with pytest.raises(InvalidDefinition, match="64"):
        registry.add(Plain(name))
    assert len(registry.catalog) == 0
    registry.add(Plain("x" * 64))


def test_A1_2_a_taken_name_is_a_conflict_that_names_both_owners_and_changes_nothing() -> None:
    registry = Registry()
    first = Plain("dup")
    registry.add(first, "here")
    before = registry.catalog
    for taken in (lambda: registry.add(Plain("dup"), "there"),
                  lambda: registry.publish("there", [Plain("new"), Plain("dup")])):  # fmt: skip
        with pytest.raises(Conflict) as raised:
            taken()
        assert "'dup'" in str(raised.value)
        assert "'here'" in str(raised.value)
        assert "'there'" in str(raised.value)
    assert registry.catalog is before
    entry = registry.catalog.get("dup")
    assert entry is not None
    assert entry.tool is first
    with pytest.raises(Conflict):
        registry.add(Plain("dup"), "here")
    with pytest.raises(Conflict):
        registry.publish("twice", [Plain("one"), Plain("one")])


def test_replace_keeps_the_position_and_asks_for_the_same_owner() -> None:
    registry = Registry()
    for name in ("c", "a", "b"):
        registry.add(Plain(name), "s")
    new = Plain("a", "new")
    registry.replace(new, "s")
    assert [entry.name for entry in registry.catalog.entries()] == ["c", "a", "b"]
    entry = registry.catalog.get("a")
    assert entry is not None
    assert entry.tool is new
    with pytest.raises(NotFound):
        registry.replace(Plain("missing"), "s")
    with pytest.raises(Conflict):
        registry.replace(Plain("b"), "other")
    assert not registry.replace(new, "s"), "the same object again changes nothing"


def test_A1_4_remove_ignores_unknown_names_and_closes_what_it_removed() -> None:
    registry, closed = Registry(), list[str]()
    registry.add(Closing("gone", closed))
    registry.add(Closing("kept", closed))
    registry.remove("gone")
    registry.remove("missing")
    registry.remove("gone")
    assert closed == ["gone"]
    assert listed(registry) == ["kept"]


def test_A1_5_close_closes_in_reverse_once_and_ends_every_change() -> None:
    registry, closed = Registry(), list[str]()
    for name in ("b", "a", "c"):
        registry.add(Closing(name, closed))
    registry.close()
    registry.close()
    registry.remove("a")
    assert closed == ["c", "a", "b"]
    assert listed(registry) == []
    with pytest.raises(NotAvailable):
        registry.add(Plain("late"))
    with pytest.raises(NotAvailable):
        registry.publish("s", [Plain("late")])
    assert len(registry.catalog) == 0


def test_a_tool_whose_close_fails_is_logged_and_the_others_are_closed(
    caplog: pytest.LogCaptureFixture,
) -> None:
    registry, closed = Registry(), list[str]()

    class Failing(Plain):
        def close(self) -> None:
            raise RuntimeError("cannot close")

    registry.add(Closing("a", closed))
    registry.add(Failing("b"))
    registry.add(Closing("c", closed))
    with caplog.at_level(logging.ERROR):
        registry.close()
    assert closed == ["c", "a"]
    assert "'b'" in caplog.text


def test_A1_6_listings_are_sorted_and_a_catalog_never_changes() -> None:
    registry = Registry()
    for name in ("zeta", "Alpha", "beta"):
        registry.add(Plain(name))
    old = registry.catalog
    assert names(old.definitions) == ["Alpha", "beta", "zeta"]
    assert [entry.name for entry in old] == ["Alpha", "beta", "zeta"]
    registry.remove("beta")
    registry.add(Plain("new"))
    assert names(old.definitions) == ["Alpha", "beta", "zeta"]
    assert "beta" in old
    assert "beta" not in registry.catalog
    assert registry.catalog.revision == old.revision + 2


def test_select_gives_the_order_asked_for_and_names_what_is_unknown() -> None:
    registry = Registry()
    for name in ("a", "b", "c"):
        registry.add(Plain(name))
    assert names(registry.catalog.select(["c", "a"])) == ["c", "a"]
    assert registry.catalog.select([]) == ()
    with pytest.raises(NotFound, match="'nope'"):
        registry.catalog.select(["a", "nope"])


def test_publish_makes_a_sources_whole_list_in_one_revision() -> None:
    registry, closed = Registry(), list[str]()
    kept, old, gone = Closing("kept", closed), Closing("changed", closed), Closing("gone", closed)
    registry.add(Plain("other"), "elsewhere")
    registry.publish("s", [kept, old, gone])
    revision = registry.catalog.revision
    new = Closing("changed", closed)
    change = registry.publish("s", [kept, new, Closing("added", closed)])
    assert registry.catalog.revision == revision + 1
    assert [e.name for e in change.added] == ["added"]
    assert [e.name for e in change.replaced] == ["changed"]
    assert [e.name for e in change.removed] == ["gone"]
    assert sorted(closed) == ["changed", "gone"]
    assert listed(registry) == ["added", "changed", "kept", "other"]
    assert not registry.publish("s", [kept, new, *_of(registry, "added")])
    registry.publish("s", [])
    assert listed(registry) == ["other"], "another source's tools stay (T-A13)"


def _of(registry: Registry, name: str) -> list[Any]:
    entry = registry.catalog.get(name)
    assert entry is not None
    return [entry.tool]


def test_a_changed_definition_is_replaced_not_kept_by_its_name() -> None:
    """T-A12."""
    registry = Registry()
    registry.publish("s", [Plain("a", description="old")])
    registry.publish("s", [Plain("a", description="new")])
    assert registry.catalog.definitions[0].description == "new"


def test_listeners_see_everything_once_in_order_and_until_they_stop(
    caplog: pytest.LogCaptureFixture,
) -> None:
    registry, seen = Registry(), list[tuple[int, list[str], list[str], list[str]]]()
    registry.add(Plain("a"))

    def listen(change: Change) -> None:
        seen.append(
            (
                change.catalog.revision,
                [e.name for e in change.added],
                [e.name for e in change.replaced],
                [e.name for e in change.removed],
            )
        )

    def fail(change: Change) -> None:
        if change.removed:
            raise RuntimeError("listener")

    registry.subscribe(fail)
    stop = registry.subscribe(listen)
    registry.add(Plain("b"))
    registry.replace(Plain("a"))
    with caplog.at_level(logging.ERROR):
        registry.remove("b")
    assert "listener" in caplog.text
    stop()
    registry.add(Plain("c"))
    assert seen == [
        (1, ["a"], [], []),
        (2, ["b"], [], []),
        (3, [], ["a"], []),
        (4, [], [], ["b"]),
    ]


def test_policies_are_put_in_force_once_and_for_the_tools_already_there() -> None:
    registry = Registry()
    registry.add(Plain("a"))
    registry.govern(Policies({"a": Policy(timeout=3), "b*": Policy(exposure="always")}))
    registry.add(Plain("bb"))
    assert registry.catalog.get("a").policy.timeout == 3  # type: ignore[union-attr]
    assert registry.catalog.always == ("bb",)
    with pytest.raises(Conflict):
        registry.govern(Policies())
    with pytest.raises(Conflict):
        Assembly(registry=registry)


async def test_a_tool_in_use_is_closed_when_its_last_call_ended_and_once() -> None:
    closed, begun, go = list[str](), asyncio.Semaphore(0), asyncio.Event()

    async def busy(ctx: object, arguments: str) -> str:
        begun.release()
        await go.wait()
        assert closed == [], "closed while in use"
        return "done"

    async with Assembly([]) as assembly:
        assembly.registry.add(Closing("busy", closed, busy))
        old = assembly.catalog
        running = [asyncio.create_task(assembly.call("busy")) for _ in range(3)]
        for _ in range(3):
            await ended(begun.acquire())
        assembly.registry.remove("busy")
        assert outcome(await assembly.call("busy")) == "not_found"
        late = await assembly.executor.execute(_call("busy"), catalog=old)
        assert outcome(late) == "not_available"
        assert "'busy'" in late.text
        assert closed == []
        go.set()
        assert [outcome(r) for r in await ended(asyncio.gather(*running))] == ["done"] * 3
    assert closed == ["busy"]


def _call(name: str) -> Any:
    from toolcrib import ToolCall

    return ToolCall("1", name)


async def test_a_tool_removed_from_another_thread_is_closed_on_the_loop() -> None:
    where: list[object] = []

    class Watching(Plain):
        async def aclose(self) -> None:
            where.append(asyncio.get_running_loop())

    async with Assembly([]) as assembly:
        assembly.registry.add(Watching("w"))
        await asyncio.to_thread(assembly.registry.remove, "w")
    assert where == [asyncio.get_running_loop()]


async def test_the_same_name_may_come_back_while_the_old_tool_is_still_in_use() -> None:
    closed, begun, go = list[str](), asyncio.Event(), asyncio.Event()

    async def old(ctx: object, arguments: str) -> str:
        begun.set()
        await go.wait()
        return "old"

    async with Assembly([]) as assembly:
        assembly.registry.add(Closing("t", closed, old))
        running = asyncio.create_task(assembly.call("t"))
        await ended(begun.wait())
        assembly.registry.replace(Plain("t", "new"))
        assert outcome(await assembly.call("t")) == "new"
        assert closed == []
        go.set()
        assert outcome(await ended(running)) == "old"
    assert closed == ["t"]


async def test_a_round_that_began_earlier_keeps_its_list_and_its_withdrawn_tools_say_so() -> None:
    from toolcrib import ToolCall

    async with Assembly([]) as assembly:
        assembly.registry.add(Plain("a", "first"))
        current = assembly.session().turn().round()
        assembly.registry.replace(Plain("a", "second"))
        (withdrawn,) = await current.execute([ToolCall("1", "a")])
        assert outcome(withdrawn) == "not_available"
        (fresh,) = await assembly.session().turn().round().execute([ToolCall("1", "a")])
        assert outcome(fresh) == "second"


def test_A1_6_eight_threads_add_and_remove_fifty_times() -> None:
    registry, errors = Registry(), list[BaseException]()

    def work(number: int) -> None:
        try:
            for at in range(50):
                registry.add(Plain(f"t_{number}_{at}"))
                registry.remove(f"t_{number}_{at}")
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
        assert not thread.is_alive()
    assert errors == []
    assert len(registry.catalog) == 0
    assert registry.catalog.revision == 800
