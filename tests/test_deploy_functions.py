"""`tool.Source/functions`: which objects become tools, and that reading a file imports nothing."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from toolcrib.deploy import Deployment, load
from toolcrib.errors import ConfigurationError

MODULE = '''
from toolcrib.function import tool
from toolcrib.manifest import define_tool
from {package}.other import borrowed

@tool
def add(a: int, b: int) -> int:
    """Add."""
    return a + b

twice = add
entry = define_tool("entry", description="By hand.", execute=lambda ctx, arguments: 1)

def plain(text: str) -> str:
    """Shout."""
    return text.upper()

class Thing:
    pass

limit = 3
'''
OTHER = '''
from toolcrib.function import tool

@tool
def borrowed() -> int:
    """Made elsewhere."""
    return 1
'''


@pytest.fixture
def package(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[str]:
    name = f"crib_{abs(hash(request.node.name)) % 10**8}"
    directory = tmp_path / name
    directory.mkdir()
    (directory / "__init__.py").write_text("")
    (directory / "own.py").write_text(MODULE.format(package=name))
    (directory / "other.py").write_text(OTHER)
    (directory / "bad.py").write_text("raise RuntimeError('out of order')")
    (directory / "leaves.py").write_text("raise SystemExit(3)")
    (directory / "dynamic.py").write_text("globals()['late'] = lambda: 1\n")
    (directory / "none.py").write_text("x = 1\n")
    (directory / "unfit.py").write_text("def unfit(x: 'Nowhere') -> int: return 1\n")
    yield name
    for module in [one for one in sys.modules if one.partition(".")[0] == name]:
        del sys.modules[module]


def deployment(directory: Path, settings: str, path: str = "path: ., ") -> Deployment:
    file = directory / "f.yaml"
    file.write_text(
        f"resources: {{s: {{kind: tool.Source, impl: functions, settings: {{{path}{settings}}}}}}}"
    )
    return load(file, {})


def names(directory: Path, settings: str) -> list[str]:
    return [
        one.definition.name for one in deployment(directory, settings).build("s").resource.tools
    ]


def fault_of(directory: Path, settings: str, path: str = "path: ., ") -> str:
    with pytest.raises(ConfigurationError) as caught:
        deployment(directory, settings, path).build("s")
    (problem,) = caught.value.problems
    assert (problem.line, problem.file) == (1, str(directory / "f.yaml"))
    return f"{problem.path}: {problem.message}"


def test_a_module_means_the_tools_made_in_it(tmp_path: Path, package: str) -> None:
    assert names(tmp_path, f"modules: [{package}.own]") == ["add", "entry"]


def test_single_tools_are_named_and_plain_functions_become_tools(
    tmp_path: Path, package: str
) -> None:
    settings = f"tools: ['{package}.own:plain', {package}.own.add, '{package}.other:borrowed']"
    assert names(tmp_path, settings) == ["plain", "add", "borrowed"]


def test_an_object_named_twice_is_one_tool(tmp_path: Path, package: str) -> None:
    settings = f"modules: [{package}.own], tools: ['{package}.own:add', '{package}.own:twice']"
    assert names(tmp_path, settings) == ["add", "entry"]


def test_reading_the_file_imports_nothing(tmp_path: Path, package: str) -> None:
    before = list(sys.path)
    deployment(tmp_path, f"modules: [{package}.own, {package}.bad], tools: ['{package}.own:add']")
    assert not [one for one in sys.modules if one.startswith(package)]
    assert sys.path == before


def test_the_directory_is_on_the_import_path_only_meanwhile(tmp_path: Path, package: str) -> None:
    before = list(sys.path)
    names(tmp_path, f"modules: [{package}.own]")
    assert sys.path == before
    assert "no module" in fault_of(tmp_path, "modules: [crib_nowhere]", path="")


@pytest.mark.parametrize(
    ("settings", "fault"),
    [
        ("", "settings: names no tools: list modules or tools"),
        ("modules: []", "settings: names no tools"),
        ("modules: [P.nope]", "settings.modules[0]: no module 'P.nope' on path or the import"),
        ("modules: ['P.own:add']", "modules[0]: expected the name of a module"),
        ("modules: [a b]", "modules[0]: expected the name of a module"),
        ("modules: [P.none]", "modules[0]: module 'P.none' makes no tools: decorate functions"),
        ("modules: [P.bad]", "modules[0]: importing 'P.bad' failed: RuntimeError: out of order"),
        ("modules: [P.leaves]", "modules[0]: importing 'P.leaves' failed: SystemExit: 3"),
        ("tools: ['P.own:ad']", "tools[0]: no 'ad' in module 'P.own', did you mean 'add'?"),
        ("tools: ['P.own:add.nope']", "tools[0]: no 'add.nope' in module 'P.own'"),
        ("tools: [add]", "tools[0]: expected an import path, such as package.module:name"),
        ("tools: ['P.own:limit']", "'P.own:limit' is neither a tool nor a function, but of type i"),
        ("tools: ['P.own:Thing']", "is neither a tool nor a function, but of type type"),
        ("tools: ['P.unfit:unfit']", "tools[0]: "),
    ],
)
def test_what_cannot_be_imported_is_said_at_its_place(
    settings: str, fault: str, tmp_path: Path, package: str
) -> None:
    found = fault_of(tmp_path, settings.replace("P.", f"{package}."))
    assert fault.replace("P.", f"{package}.") in found
    assert found.startswith("resources.s.settings")


def test_a_path_from_the_environment_is_not_shown(tmp_path: Path, package: str) -> None:
    file = tmp_path / "f.yaml"
    for value in ("hunter2", f"{package}.bad", f"{package}.none", f"{package}.nope"):
        file.write_text(
            "resources: {s: {kind: tool.Source, impl: functions,"
            " settings: {path: ., modules: [${env:M}]}}}"
        )
        with pytest.raises(ConfigurationError) as caught:
            load(file, {"M": value}).build("s")
        assert value not in str(caught.value)


def test_names_that_only_running_the_module_binds_are_left_to_the_build(
    tmp_path: Path, package: str
) -> None:
    deployment(tmp_path, f"tools: ['{package}.dynamic:late']")


def test_a_module_of_the_same_name_from_elsewhere_is_not_taken_for_it(tmp_path: Path) -> None:
    (tmp_path / "textwrap.py").write_text("def dedent(): ...\n")
    found = fault_of(tmp_path, "tools: ['textwrap:dedent']")
    assert "a module 'textwrap' is already imported from somewhere else: rename one" in found
