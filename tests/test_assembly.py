"""The whole of it: opening, closing, sources, calls from other threads."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Iterable, Mapping
from typing import Any

import pytest

from conftest import Closing, Plain, ended, names, outcome
from servers.support import until
from toolcrib import (
    Assembly,
    ConfigurationError,
    Conflict,
    InvalidArguments,
    InvalidDefinition,
    NotAvailable,
    NotReady,
    Policy,
    ToolDefinition,
    tool,
)
from toolcrib.sources import FunctionSource, mount


class Watched:
    """A source that writes down what is done to it."""

    def __init__(self, name: str, log: list[str], *tools: Any, fails: Exception | None = None):
        self.name = name
        self.log = log
        self.tools = tools
        self.fails = fails
        self.publish: Any = None
        self.ready: Exception | None = None

    async def open(self, publish: Any) -> None:
        self.log.append(f"open {self.name}")
        self.publish = publish
        if self.fails:
            raise self.fails
        publish(self.tools)

    async def wait_ready(self, timeout: float | None = None) -> None:
        if self.ready:
            raise self.ready

    async def close(self) -> None:
        self.log.append(f"close {self.name}")


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"policies": {"add": {"timeout": 3}}}, "the policy of 'add' is a Policy, not {'timeout'"),
        ({"policies": [Policy()]}, "by tool name or pattern"),
        ({"host": Watched("x", [])}, "can be asked nothing: give it elicit, sample or roots"),
    ],
)
def test_what_would_be_found_out_by_no_one_is_refused_when_it_is_given(
    given: dict[str, Any], says: str
) -> None:
    with pytest.raises(InvalidDefinition, match=says):
        Assembly([], **given)


def test_a_host_that_can_be_asked_nothing_is_refused_later_too() -> None:
    assembly = Assembly([])
    for give in (
        lambda: setattr(assembly, "host", "nobody"),
        lambda: assembly.session(host="nobody"),  # type: ignore[arg-type]
    ):
        with pytest.raises(InvalidDefinition, match="'nobody' can be asked nothing"):
            give()


@pytest.mark.parametrize(
    ("given", "says"),
    [({"timeout": "30s"}, "timeout '30s' is not a number"), ({"scopes": "read"}, "not one text")],
)
def test_a_policy_of_the_wrong_kinds_is_refused(given: dict[str, Any], says: str) -> None:
    with pytest.raises(InvalidDefinition, match=says):
        Policy(**given)


async def test_sources_open_and_close_the_last_first_and_tools_after_them() -> None:
    log: list[str] = []
    sources = [Watched("one", log, Closing("a", log)), Watched("two", log, Closing("b", log))]
    async with Assembly(sources) as assembly:
        assert names(assembly.catalog.definitions) == ["a", "b"]
        assert sorted(log) == ["open one", "open two"]
        log.clear()
    assert log == ["close two", "close one", "b", "a"]
    await assembly.close()
    assert len(log) == 4


async def test_a_source_that_fails_to_open_closes_everything_and_raises_its_error() -> None:
    log: list[str] = []
    wrong = ConfigurationError("no command")
    sources = [Watched("one", log, Closing("a", log)), Watched("two", log, fails=wrong)]
    with pytest.raises(ConfigurationError, match="no command"):
        async with Assembly(sources):
            pass
    assert {"close one", "close two", "a"} <= set(log)


async def test_two_sources_with_one_tool_name_are_a_conflict_naming_both() -> None:
    log: list[str] = []
    sources = [Watched("one", log, Plain("same")), Watched("two", log, Plain("same"))]
    with pytest.raises(Conflict, match=r"'same'.*'(one|two)'.*'(one|two)'"):
        async with Assembly(sources):
            pass
    assert {"close one", "close two"} <= set(log)


@pytest.mark.parametrize("name", ["twice", "toolcrib"])
def test_two_sources_with_one_name_are_a_conflict(name: str) -> None:
    with pytest.raises(Conflict, match=name):
        Assembly([Watched(name, []), Watched("twice", [])])


@pytest.mark.parametrize("item", [None, 5, "name", object()])
def test_A1_1_what_is_no_tool_source_or_function_is_refused(item: Any) -> None:
    with pytest.raises(InvalidDefinition):
        Assembly([item])


async def test_a_source_may_publish_at_any_time_and_from_any_thread() -> None:
    source = Watched("s", [])
    async with Assembly([source]) as assembly:
        await asyncio.to_thread(source.publish, [Plain("late", "came")])
        assert outcome(await assembly.call("late")) == "came"
        source.publish([])
        assert outcome(await assembly.call("late")) == "not_found"


class Slow(Watched):
    """One whose first attempt takes until it is told to go on."""

    goes_on: asyncio.Event

    async def open(self, publish: Any) -> None:
        await self.goes_on.wait()
        await super().open(publish)


async def test_a_slow_source_does_not_keep_open_waiting_and_publishes_later(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("toolcrib.opening.PATIENCE", 0.01)
    slow = Slow("slow", [], Plain("late", "came"))
    slow.goes_on = asyncio.Event()
    async with Assembly([slow, Plain("there")]) as assembly:
        assert names(assembly.catalog.definitions) == ["there"]
        came = asyncio.Event()
        assembly.registry.subscribe(lambda change: came.set())
        slow.goes_on.set()
        await ended(came.wait())
        assert outcome(await assembly.call("late")) == "came"


async def test_a_slow_source_that_gives_up_later_is_logged_and_the_rest_goes_on(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("toolcrib.opening.PATIENCE", 0.01)
    slow = Slow("slow", [], fails=OSError("no such host"))
    slow.goes_on = asyncio.Event()
    async with Assembly([slow, Plain("there", "still")]) as assembly:
        slow.goes_on.set()
        await until(lambda: "source 'slow' gave up: no such host" in caplog.text)
        assert outcome(await assembly.call("there")) == "still"


async def test_wait_ready_passes_when_every_source_is_ready() -> None:
    async with Assembly([Watched("s", []), FunctionSource([Plain("a")])]) as assembly:
        await ended(assembly.wait_ready(1))


@pytest.mark.parametrize("error", [NotReady("slow"), ConfigurationError("wrong")], ids=repr)
async def test_wait_ready_raises_what_a_source_raised(error: Exception) -> None:
    source = Watched("s", [])
    source.ready = error
    async with Assembly([source]) as assembly:
        with pytest.raises(type(error)):
            await assembly.wait_ready(1)


async def test_outside_of_open_and_close_nothing_can_be_called() -> None:
    assembly = Assembly([Plain("a")])
    with pytest.raises(NotAvailable):
        await assembly.call("a")
    with pytest.raises(NotAvailable):
        assembly.call_sync("a")
    async with assembly:
        assert not (await assembly.call("a")).is_error
        with pytest.raises(NotAvailable):
            await assembly.open()
    with pytest.raises(NotAvailable):
        await assembly.call("a")
    with pytest.raises(NotAvailable):
        assembly.call_sync("a")
    await assembly.close()


async def test_an_assembly_that_was_never_opened_can_be_closed() -> None:
    closed: list[str] = []
    assembly = Assembly([Closing("a", closed)])
    await ended(assembly.close())
    assert closed == []


async def test_a_tools_failing_close_is_logged_and_the_rest_is_closed(
    caplog: pytest.LogCaptureFixture,
) -> None:
    closed: list[str] = []

    class Failing(Plain):
        async def aclose(self) -> None:
            raise RuntimeError("cannot close")

    class FailingSource(Watched):
        async def close(self) -> None:
            raise RuntimeError("cannot close source")

    items = [Closing("a", closed), Failing("b"), Closing("c", closed), FailingSource("s", [])]
    with caplog.at_level(logging.ERROR):
        async with Assembly(items):
            pass
    assert closed == ["c", "a"]
    assert "cannot close source" in caplog.text
    assert "'b'" in caplog.text


async def test_a_tool_whose_close_never_ends_does_not_keep_the_program(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    import toolcrib.closing

    class Hung(Plain):
        async def aclose(self) -> None:
            await asyncio.Event().wait()

    monkeypatch.setattr(toolcrib.closing, "CLOSE_PATIENCE", 0.1)
    assembly = await Assembly([Hung("h")]).open()
    await ended(assembly.close(), 1)


async def test_call_takes_a_mapping_text_or_keywords_but_no_two_of_a_kind() -> None:
    @tool
    async def echo(name: str, arguments: int = 0, self: int = 0) -> str:
        return f"{name} {arguments} {self}"

    async with Assembly([echo]) as assembly:
        assert str(await assembly.call("echo", {"name": "a"})) == "a 0 0"
        assert str(await assembly.call("echo", {"name": "a"}, self_=1)) != ""
        assert str(await assembly.call("echo", '{"name": "b", "arguments": 2}')) == "b 2 0"
        assert str(await assembly.call("echo", name="c")) == "c 0 0"
        for wrong in (lambda: assembly.call("echo", "{}", name="x"),
                      lambda: assembly.call("echo", {"name": 1}, name="x")):  # fmt: skip
            with pytest.raises(InvalidArguments):
                await wrong()


# other threads


async def test_call_sync_from_many_threads() -> None:
    @tool
    async def double(n: int) -> int:
        await asyncio.sleep(0)
        return n * 2

    results: dict[int, str] = {}

    async with Assembly([double]) as assembly:

        def work(start: int) -> None:
            for n in range(start, start + 50):
                results[n] = assembly.call_sync("double", n=n).text

        threads = [threading.Thread(target=work, args=(k * 50,)) for k in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            await asyncio.to_thread(thread.join, 10)
            assert not thread.is_alive()
    assert results == {n: str(n * 2) for n in range(200)}


async def test_call_sync_on_its_own_loop_is_refused_instead_of_hanging() -> None:
    async with Assembly([Plain("a")]) as assembly:
        with pytest.raises(InvalidDefinition, match="await"):
            assembly.call_sync("a")


async def test_call_sync_from_another_loop_works() -> None:
    async with Assembly([Plain("a", "fine")]) as assembly:

        async def elsewhere() -> str:
            return assembly.call_sync("a").text

        assert await asyncio.to_thread(lambda: asyncio.run(elsewhere())) == "fine"


# anything remote in twenty lines


class Library:
    """Twenty lines mount anything remote."""

    name = "library"

    def __init__(self) -> None:
        self.calls: list[tuple[str, Mapping[str, Any]]] = []
        self.closed = 0

    def tools(self) -> Iterable[ToolDefinition]:
        schema = {"type": "object", "properties": {"title": {"type": "string"}}}
        return [
            ToolDefinition("find", "Find a book.", {**schema, "required": ["title"]}),
            ToolDefinition("shelf.list/all", "List everything."),
        ]

    async def call(self, name: str, arguments: Mapping[str, Any]) -> object:
        self.calls.append((name, arguments))
        return {"called": name, **arguments}

    async def aclose(self) -> None:
        self.closed += 1


async def test_a_remote_source_is_mounted_under_its_name() -> None:
    library = Library()
    async with Assembly([mount(library)]) as assembly:
        shown = names(assembly.catalog.definitions)
        assert "library__find" in shown
        assert all(name.startswith("library__") and "/" not in name for name in shown)
        for name in ("library__find", "library/find"):
            assert str(await assembly.call(name, title="x")) == '{"called":"find","title":"x"}'
        assert str(await assembly.call("library/shelf.list/all")) == '{"called":"shelf.list/all"}'
        refused = await assembly.call("library__find", titel="x")
        assert outcome(refused) == "invalid_arguments"
        assert "title" in refused.text
        assert "'library__find'" in refused.text
    assert [name for name, _ in library.calls] == ["find", "find", "shelf.list/all"]
    assert library.closed == 1


@pytest.mark.parametrize(
    ("prefix", "shown"),
    [("lib", "lib__find"), ("lib_", "lib_find"), ("", "find"), ("l__", "l__find")],
)
async def test_a_prefix_is_a_namespace(prefix: str, shown: str) -> None:
    async with Assembly([mount(Library(), prefix=prefix)]) as assembly:
        assert shown in names(assembly.catalog.definitions)
        assert outcome(await assembly.call("library/find", title="x")) != "not_found"


async def test_NM06_a_prefix_is_put_before_a_name_that_begins_with_it_too() -> None:
    class Git(Library):
        name = "git"

        def tools(self) -> Iterable[ToolDefinition]:
            return [ToolDefinition("git_status"), ToolDefinition("status")]

    async with Assembly([mount(Git())]) as assembly:
        assert names(assembly.catalog.definitions) == ["git__git_status", "git__status"]


async def test_NM01_NM05_long_and_odd_remote_names_stay_apart_and_reach_the_right_tool() -> None:
    wanted = [
        "synchronize_all_customer_records_across_regions_a",
        "synchronize_all_customer_records_across_regions_b",
        "get-user", "get.user", "build:dev", "build_dev", "build dev",
    ]  # fmt: skip

    class Remote(Library):
        name = "enterprise-database-management"
        order = 1

        def tools(self) -> Iterable[ToolDefinition]:
            return [ToolDefinition(name) for name in wanted[:: self.order]]

    shown: list[dict[str, str]] = []
    for order in (1, -1):
        remote = Remote()
        remote.order = order
        async with Assembly([mount(remote)]) as assembly:
            found = {}
            for definition in assembly.catalog.definitions:
                assert len(definition.name) <= 64
                await assembly.call(definition.name)
                found[definition.name] = remote.calls[-1][0]
            shown.append(found)
    assert shown[0] == shown[1]
    assert sorted(shown[0].values()) == sorted(wanted)


async def test_a_remote_failure_is_a_value_and_its_text_stays_in_the_log() -> None:
    class Down(Library):
        async def call(self, name: str, arguments: Mapping[str, Any]) -> object:
            raise ConnectionError("http://secret@host")

    async with Assembly([mount(Down())]) as assembly:
        result = await assembly.call("library__find", title="x")
    assert outcome(result) == "internal"
    assert "secret" not in result.text


async def test_a_remote_list_may_be_awaited() -> None:
    class Later(Library):
        async def tools(self) -> Iterable[ToolDefinition]:  # type: ignore[override]
            await asyncio.sleep(0)
            return [ToolDefinition("one")]

    async with Assembly([mount(Later())]) as assembly:
        assert names(assembly.catalog.definitions) == ["library__one"]
