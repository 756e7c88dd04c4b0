"""Resources: kinds, impls, dependencies, and what a host adds of its own."""

from __future__ import annotations

from pathlib import Path

import pytest

from toolcrib.deploy import Dependency, Given, ResourceTypes, load, loads, record, standard_types
from toolcrib.deploy.scalars import integer
from toolcrib.errors import ConfigurationError, Conflict, InvalidDefinition
from toolcrib.registry import Registry
from toolcrib.sources import FunctionSource

DATA = Path(__file__).parent / "data"


def faults(text: str, types: ResourceTypes | None = None) -> list[str]:
    with pytest.raises(ConfigurationError) as caught:
        loads(text, {}, types=types, file="f.yaml")
    return [str(problem) for problem in caught.value.problems]


def test_must_show_2_five_faults_are_five_messages_in_one_go() -> None:
    file = DATA / "five_faults.yaml"
    with pytest.raises(ConfigurationError) as caught:
        load(file, {})
    assert str(caught.value).replace(f"{file}", "five_faults.yaml").splitlines() == [
        "five_faults.yaml:7: resources.servers.settings.servers[0]:"
        " missing required key 'command': transport stdio needs it",
        "five_faults.yaml:9: resources.servers.settings.servers[0].env.TOKEN: the environment"
        " variable 'GIT_TOKEN' is not set: set it, or give a default with ${env:GIT_TOKEN:-…}",
        "five_faults.yaml:14: resources.tools.deps.tool[1]:"
        " no resource 'workshp' in this file, did you mean 'workshop'?",
        "five_faults.yaml:17: resources.tools.settings.dynamic.buget:"
        " unknown key 'buget', did you mean 'budget'? known: default, exposures, budget,"
        " discovery, search, search_with_load, selected_retention, recent_window",
        "five_faults.yaml:21: resources.tools.settings.middlewares.timeout:"
        " duplicate key 'timeout': it is already on line 19",
    ]


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("resource: {}", "f.yaml:1: missing required key 'resources'"),
        ("resources: []", "f.yaml:1: resources: expected a mapping, got a list"),
        ("resources: {a: b}", "f.yaml:1: resources.a: expected a mapping, got 'b'"),
        ("resources: {'': {kind: tool.Registry, impl: memory}}", "a blank name"),
        ("resources: {a: {impl: memory}}", "resources.a: missing required key 'kind'"),
        ("resources: {a: {kind: tool.Registry}}", "resources.a: missing required key 'impl'"),
        (
            "resources: {a: {kind: tool.Sorce, impl: mcp}}",
            "resources.a.kind: unknown kind 'tool.Sorce', did you mean 'tool.Source'? known:",
        ),
        (
            "resources: {a: {kind: tool.Registry, impl: redis}}",
            "resources.a.impl: unknown impl 'redis' of this kind; known: memory",
        ),
        ("resources: {a: {kind: tool.Registry, impl: memory, dep: {}}}", "did you mean 'deps'?"),
        (
            "resources: {a: {kind: tool.Registry, impl: memory, settings: {x: 1}}}",
            "resources.a.settings.x: unknown key 'x': none is known here",
        ),
        (
            "resources: {a: {kind: tool.Registry, impl: memory, deps: {tool: b}}}",
            "resources.a.deps.tool: unknown dependency 'tool': none is known here",
        ),
    ],
)
def test_A3_4_what_is_wrong_with_a_resource_is_said_at_its_place(text: str, fault: str) -> None:
    assert any(fault in one for one in faults(text)), faults(text)


@pytest.mark.parametrize(
    "text",
    [
        "resources: {a: {kind: knowledge.Catalog, impl: files}}",
        "resources: {a: {kind: sandbox, impl: bubblewrap}}",
        "resources: {a: {kind: receipts.Store, impl: sqlite}}",
        "resources: {a: {kind: tool.Source, impl: openapi}}",
        "resources: {}\nknowledge: {}",
    ],
)
def test_parts_of_later_versions_are_refused_by_name(text: str) -> None:
    (fault,) = faults(text)
    assert fault.endswith("is not available in this version")


SOURCES = """
resources:
  one: {kind: tool.Source, impl: functions, settings: {tools: ["textwrap:dedent"]}}
  two: {kind: tool.Source, impl: functions, settings: {tools: ["textwrap:indent"]}}
  own: {kind: tool.Registry, impl: memory}
  tools: {kind: tool.Assembly, impl: memory, deps: %s}
"""


def test_A3_3_dependencies_are_ordered_by_their_sorted_keys() -> None:
    (tools,) = loads(SOURCES % "{tool.bb: one, tool: two, registry: own}", {}).resources[-1:]
    assert dict(tools.deps) == {"tool": ("two", "one"), "registry": ("own",)}


@pytest.mark.parametrize(
    ("deps", "fault"),
    [
        ("{}", "tools.deps: missing dependency 'tool': the name of a tool.Source"),
        ("{tool: []}", "tools.deps.tool: an empty list: name at least one tool.Source"),
        ("{tool: own}", "tools.deps.tool: resource 'own' is a tool.Registry, expected a tool.Sou"),
        ("{tool: three}", "tools.deps.tool: no resource 'three' in this file"),
        ("{tool: [one, one]}", "tools.deps.tool[1]: resource 'one' is named twice"),
        ("{tool: one, tool.b: one}", "tools.deps.'tool.b': resource 'one' is named twice"),
        ("{tool: one, registry: [own]}", "tools.deps.registry: expected a text, got a list"),
        ("{tool: one, registry: two}", "expected a tool.Registry"),
        ("{tool: one, tols: two}", "unknown dependency 'tols', did you mean 'tool'? known: tool,"),
    ],
)
def test_A3_3_wrong_dependencies_are_refused(deps: str, fault: str) -> None:
    (found,) = faults(SOURCES % deps)
    assert fault in found
    assert found.startswith("f.yaml:6: resources.tools.deps")


def test_an_assembly_without_deps_is_told_what_it_needs() -> None:
    (fault,) = faults("resources:\n  tools: {kind: tool.Assembly, impl: memory}")
    assert fault == (
        "f.yaml:2: resources.tools.deps: missing dependency 'tool': the name of a tool.Source"
    )


def _linked() -> ResourceTypes:
    types = standard_types()
    types.register(
        "tool.Source",
        "linked",
        lambda given: FunctionSource([], name=given.name),
        settings=record(dict, {"n": integer()}),
        deps=[Dependency("next", "tool.Source", many=True)],
    )
    return types


def test_cycles_are_named() -> None:
    text = "resources:\n" + "".join(
        f"  {a}: {{kind: tool.Source, impl: linked, deps: {{next: {b}}}}}\n"
        for a, b in ("ab", "bc", "ca")
    )
    (fault,) = faults(text, _linked())
    assert "resources depend on each other in a circle: " in fault
    circle = fault.rpartition(": ")[2].split(" → ")
    assert circle[0] == circle[-1] and set(circle) == {"a", "b", "c"}
    assert "".join(circle) in "abcabca"


def test_a_resource_that_needs_itself_is_a_cycle_too() -> None:
    text = "resources:\n  a: {kind: tool.Source, impl: linked, deps: {next: a}}"
    assert faults(text, _linked()) == [
        "f.yaml:2: resources.a.deps.next: resources depend on each other in a circle: a → a"
    ]


def test_a_long_chain_of_resources_is_no_problem() -> None:
    text = "resources:\n" + "".join(
        f"  r{n}: {{kind: tool.Source, impl: linked, deps: {{next: r{n + 1}}}}}\n"
        for n in range(1500)
    )
    text += "  r1500: {kind: tool.Source, impl: linked}\n"
    built = loads(text, {}, types=_linked()).build("r0")
    assert list(built.made)[:2] == ["r1500", "r1499"]


def test_a_host_registers_types_of_its_own() -> None:
    types = standard_types()

    def build(given: Given) -> FunctionSource:
        return FunctionSource([], name=f"{given.name}-{given.settings['n']}")

    types.register("tool.Source", "sim", build, settings=record(dict, {"n": integer()}))
    text = "resources: {s: {kind: tool.Source, impl: sim, settings: {n: 3}}}"
    assert loads(text, {}, types=types).build("s").resource.name == "s-3"
    with pytest.raises(Conflict, match=r"'sim' of kind 'tool\.Source'"):
        types.register("tool.Source", "sim", build)
    assert faults(text)[0].startswith("f.yaml:1: resources.s.impl: unknown impl 'sim'")


def test_a_host_hands_in_resources_of_its_own() -> None:
    mine = FunctionSource([], name="mine")
    text = "resources: {tools: {kind: tool.Assembly, impl: memory, deps: {tool: mine}}}"
    deployment = loads(text, {}, given={"mine": mine})
    assert deployment.build().assembly.sources == (mine,)
    with pytest.raises(ConfigurationError, match="no resource 'mine'"):
        loads(text, {})
    with pytest.raises(ConfigurationError, match=r"is a tool\.Registry, expected a tool\.Source"):
        loads(text, {}, given={"mine": Registry()})
    with pytest.raises(ConfigurationError, match="tools: the host hands in a resource of this"):
        loads(text, {}, given={"mine": mine, "tools": mine})
    with pytest.raises(InvalidDefinition, match="type int is no resource"):
        loads(text, {}, given={"mine": 1})
