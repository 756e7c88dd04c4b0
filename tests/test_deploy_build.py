"""What is made of a deployment: in which order, what becomes of it when something fails."""

from __future__ import annotations

import asyncio
import logging
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest

from toolcrib.content import ToolResult
from toolcrib.deploy import Given, ResourceTypes, load, loads, standard_types
from toolcrib.errors import ConfigurationError, Conflict, InvalidDefinition, NotFound
from toolcrib.function import tool
from toolcrib.registry import Registry
from toolcrib.sources import FunctionSource, Publish
from toolcrib.sources.mcp import McpSource
from toolcrib.tool import CallContext, Tool

GUIDE = Path(__file__).parent / "data" / "guide_a"
RAW = Path(__file__).parent / "servers" / "raw.py"


@tool
def lamp(on: bool) -> str:
    """Switch the lamp."""
    return "on" if on else "off"


def sim(name: str = "sim") -> FunctionSource:
    return FunctionSource([lamp], name=name)


def with_sim() -> ResourceTypes:
    types = standard_types()
    types.register("tool.Source", "sim", lambda given: sim(given.name))
    return types


# -- guide A, as printed ------------------------------------------------------------------------


async def test_guide_A_tool_sources_feed_an_assembly() -> None:
    deployment = load(GUIDE / "sources_feed_an_assembly.yaml", {}, types=with_sim())
    async with deployment.build() as tools:
        assert str(await tools.call("lamp", on=True)) == "on"
        assert [one.name for one in tools.session().turn().round().definitions] == ["lamp"]


async def test_guide_A_dynamic_injection() -> None:
    deployment = load(GUIDE / "dynamic.yaml", {}, given={"sim": sim()})
    async with deployment.build() as tools:
        turn = tools.session().turn()
        assert [one.name for one in turn.round().definitions] == ["tool_search"]
        assert tools.dynamic is not None
        assert tools.dynamic.budget.max_definitions == 32
        assert tools.dynamic.pool_caps.max_bytes == 16384


def test_guide_A_mcp_servers() -> None:
    text = (GUIDE / "mcp_servers.yaml").read_text()
    built = loads(text, {"MCP_TOKEN": 'a"b: true #'}).build("sim")
    source = built.resource
    assert isinstance(source, McpSource)
    filesystem, remote = source.servers
    assert filesystem.env == {"TOKEN": 'a"b: true #'}
    assert filesystem.args == ("-y", "@modelcontextprotocol/server-filesystem")
    assert (filesystem.prefix, filesystem.resources, filesystem.required) == ("fs", True, True)
    assert filesystem.liveness == 30.0
    assert remote.headers == {"Authorization": 'Bearer a"b: true #'}
    assert (remote.url, remote.http_timeout) == ("https://mcp.example.com/mcp", 30.0)


async def test_guide_A_mcp_servers_with_a_command_that_exists() -> None:
    text = (GUIDE / "mcp_servers.yaml").read_text()
    text = text.replace("npx", sys.executable)
    text = text.replace('["-y", "@modelcontextprotocol/server-filesystem"]', f'["{RAW}"]')
    built = loads(text, {"MCP_TOKEN": "a: #b"}).build("sim")
    published: dict[str, Tool] = {}

    def publish(tools: Iterable[Tool]) -> None:
        published.update((one.definition.name, one) for one in tools)

    opening = asyncio.create_task(built.resource.open(publish))
    try:
        await built.resource.wait_ready(10)  # the required one; the other cannot be reached
        assert "fs__echo" in published
        assert "fs__list_resources" in published
        result = await published["fs__env"].execute(CallContext("fs__env"), "{}")
        assert "a: #b" in str(result)
    finally:
        opening.cancel()
        await built.close()


def test_guide_A_mcp_servers_need_their_token() -> None:
    with pytest.raises(ConfigurationError) as caught:
        load(GUIDE / "mcp_servers.yaml", {})
    assert [problem.line for problem in caught.value.problems] == [11, 19]


async def test_guide_A_the_middleware_chain() -> None:
    deployment = load(GUIDE / "middleware_chain.yaml", {}, given={"sim": sim()})
    async with deployment.build() as tools:
        result = await tools.call("lamp", on=False)
        assert isinstance(result, ToolResult)
        assert str(result) == "off"


# -- which ---------------------------------------------------------------------------------------

TWO = """
resources:
  a: {kind: tool.Source, impl: sim}
  b: {kind: tool.Source, impl: sim}
  first: {kind: tool.Assembly, impl: memory, deps: {tool: a}}
  second: {kind: tool.Assembly, impl: middleware, deps: {tool: b}}
"""


def test_the_only_assembly_is_built_else_the_one_that_is_named() -> None:
    deployment = loads(TWO, {}, types=with_sim(), file="f.yaml")
    assert deployment.assemblies == ("first", "second")
    assert list(deployment.build("second").made) == ["b", "second"]
    with pytest.raises(NotFound, match=r"f\.yaml has several assemblies, name one: first, second"):
        deployment.build()
    with pytest.raises(NotFound, match=r"no resource 'frist' in f\.yaml, did you mean 'first'"):
        deployment.build("frist")
    with pytest.raises(NotFound, match=r"has no tool\.Assembly"):
        loads("resources: {}\n", {}).build()
    with pytest.raises(NotFound, match=r"'a' is a tool\.Source, not a tool\.Assembly"):
        _ = deployment.build("a").assembly


async def test_sources_and_registry_come_from_the_dependencies_in_order() -> None:
    text = """
resources:
  zz: {kind: tool.Source, impl: sim}
  aa: {kind: tool.Source, impl: sim}
  own: {kind: tool.Registry, impl: memory}
  tools: {kind: tool.Assembly, impl: memory, deps: {tool: zz, tool.b: aa, registry: own}}
"""
    built = loads(text, {}, types=with_sim()).build()
    assert [source.name for source in built.assembly.sources] == ["zz", "aa"]
    assert built.assembly.registry is built.made["own"]
    assert isinstance(built.made["own"], Registry)
    assert list(built.made) == ["own", "zz", "aa", "tools"]
    await built.close()


# -- what fails ----------------------------------------------------------------------------------


class Recorder(FunctionSource):
    """A source that notes when it is opened and closed."""

    def __init__(self, name: str, log: list[str], fails: str = "") -> None:
        super().__init__([], name=name)
        self.log = log
        self.fails = fails

    async def open(self, publish: Publish) -> None:
        self.log.append(f"open {self.name}")
        if self.fails == "open":
            raise ConfigurationError("refused for good")
        await super().open(publish)

    async def close(self) -> None:
        self.log.append(f"close {self.name}")
        if self.fails == "close":
            raise RuntimeError("stuck")


def recording(log: list[str]) -> ResourceTypes:
    types = standard_types()

    def fail(given: Given) -> object:
        log.append(f"make {given.name}")
        raise InvalidDefinition("cannot be made")

    types.register("tool.Source", "rec", lambda given: Recorder(given.name, log))
    types.register("tool.Source", "shut", lambda given: Recorder(given.name, log, "open"))
    types.register("tool.Source", "stuck", lambda given: Recorder(given.name, log, "close"))
    types.register("tool.Source", "fail", fail)
    return types


def three(last: str) -> str:
    return f"""
resources:
  a: {{kind: tool.Source, impl: rec}}
  b: {{kind: tool.Source, impl: rec}}
  c: {{kind: tool.Source, impl: {last}}}
  tools: {{kind: tool.Assembly, impl: memory, deps: {{tool: [a, b, c]}}}}
"""


def first_seen(log: list[str], word: str) -> list[str]:
    """What `word` happened to, each once: closing twice is allowed."""
    return list(dict.fromkeys(line[len(word) + 1 :] for line in log if line.startswith(word)))


def test_checking_starts_nothing_and_making_opens_nothing() -> None:
    log: list[str] = []
    deployment = loads(three("rec"), {}, types=recording(log))
    assert log == []
    deployment.build()
    assert log == []


def test_what_cannot_be_made_has_a_line_and_the_rest_is_closed_in_reverse() -> None:
    log: list[str] = []
    deployment = loads(three("fail"), {}, types=recording(log), file="f.yaml")
    with pytest.raises(ConfigurationError, match=r"^f\.yaml:5: resources\.c: cannot be made$"):
        deployment.build()
    assert log == ["make c", "close b", "close a"]


async def test_within_a_running_loop_that_closing_happens_too() -> None:
    log: list[str] = []
    with pytest.raises(ConfigurationError):
        loads(three("fail"), {}, types=recording(log)).build()
    await asyncio.wait(asyncio.all_tasks() - {asyncio.current_task()}, timeout=5)
    assert log == ["make c", "close b", "close a"]


async def test_a_source_that_is_refused_closes_everything_in_reverse() -> None:
    log: list[str] = []
    built = loads(three("shut"), {}, types=recording(log)).build()
    with pytest.raises(ConfigurationError, match="refused for good"):
        await built.open()
    assert first_seen(log, "close") == ["c", "b", "a"]


async def test_closing_goes_on_past_a_failure_and_raises_it(
    caplog: pytest.LogCaptureFixture,
) -> None:
    log: list[str] = []
    built = loads(three("stuck"), {}, types=recording(log)).build()
    await built.open()
    with caplog.at_level(logging.ERROR), pytest.raises(RuntimeError, match="stuck"):
        await built.close()
    assert first_seen(log, "close") == ["c", "b", "a"]
    assert "closing resource 'c' failed" in caplog.text


def test_a_name_the_assembly_refuses_has_a_line() -> None:
    text = TWO.replace("a:", "program:").replace("tool: a", "tool: toolcrib")
    text = text.replace("program:", "toolcrib:")
    with pytest.raises(ConfigurationError, match=r"f\.yaml:5: resources\.first: two sources"):
        loads(text, {}, types=with_sim(), file="f.yaml").build("first")


async def test_A3_6_a_tool_named_tool_search_is_a_conflict() -> None:
    @tool(name="tool_search")
    def mine() -> int:
        return 1

    source = FunctionSource([mine], name="sim")
    deployment = load(GUIDE / "dynamic.yaml", {}, given={"sim": source})
    with pytest.raises(Conflict, match="tool_search"):
        await deployment.build().open()


def test_a_text_is_a_deployment_too() -> None:
    assert load(TWO, {}, types=with_sim()).file == "<text>"
