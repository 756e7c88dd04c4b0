"""The rooms of ARCHITECTURE.md against the imports of the code."""

from __future__ import annotations

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "toolcrib"


def rooms() -> list[str]:
    text = (ROOT / "ARCHITECTURE.md").read_text()
    block = text.split("```text", 1)[1].split("```", 1)[0]
    return [line.split()[0] for line in block.splitlines() if line.strip()]


def module_name(path: Path) -> str:
    parts = path.relative_to(SOURCE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {module_name(path): path for path in sorted(SOURCE.rglob("*.py"))}


def imports_of(name: str, path: Path) -> set[str]:
    """Every module of toolcrib that `path` imports, wherever in the file it does."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{name}: relative imports hide where they point"
            base = node.module or ""
            inner = {f"{base}.{alias.name}" for alias in node.names}
            found.update(inner if inner <= MODULES.keys() else {base, *inner})
        elif isinstance(node, ast.Call) and "import_module" in ast.dump(node.func):
            arguments = [a.value for a in node.args if isinstance(a, ast.Constant)]
            found.update(str(value) for value in arguments)
    return {each for each in found if each in MODULES and each != name}


GRAPH = {name: imports_of(name, path) for name, path in MODULES.items()}


def room_of(module: str) -> str:
    parts = module.split(".")
    return parts[1] if len(parts) > 1 else ""


def test_every_module_has_its_room_in_the_picture() -> None:
    assert {room_of(m) for m in MODULES} - {""} == set(rooms())


def test_imports_point_down_only() -> None:
    order = {room: at for at, room in enumerate(rooms())}
    order[""] = order["assembly"] - 0.5  # the package itself: above what it re-exports
    upward = [
        f"{module} → {target}"
        for module, targets in GRAPH.items()
        for target in targets
        if room_of(module) != room_of(target) and order[room_of(target)] <= order[room_of(module)]
    ]
    assert upward == []


def test_the_rooms_of_sources_mcp_import_only_those_after_them() -> None:
    named = re.search(r" mcp \(server → ([\w ·]+)\)", (ROOT / "ARCHITECTURE.md").read_text())
    assert named is not None
    order = {f"toolcrib.sources.mcp.{room}": at for at, room in enumerate(named[1].split(" · "))}

    def room(module: str) -> str:
        return ".".join(module.split(".")[:4])

    packages = {room(m) for m in MODULES if len(m.split(".")) > 4}
    assert {one for one in packages if one.startswith("toolcrib.sources.mcp.")} == order.keys()
    upward = [
        f"{module} → {target}"
        for module, targets in GRAPH.items()
        for target in targets
        if {room(module), room(target)} <= order.keys()
        and order[room(target)] < order[room(module)]
    ]
    assert upward == []


def test_no_module_imports_itself_by_way_of_others() -> None:
    graph = {name: set(targets) for name, targets in GRAPH.items()}
    while free := [name for name, targets in graph.items() if not targets & graph.keys()]:
        for name in free:
            del graph[name]
    assert sorted(graph) == [], "an import cycle lies among these modules"


def test_the_package_is_imported_without_its_optional_and_heavy_parts() -> None:
    import subprocess
    import sys

    heavy = (
        "mcp",
        "openai",
        "opentelemetry",
        "ruamel",
        "typer",
        "rich",
        "griffe",
        "jsonschema_rs",
        "numpy",
    )
    code = f"import sys, toolcrib; print([m for m in {heavy!r} if m in sys.modules])"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"


def test_the_picture_lists_each_room_once() -> None:
    listed = rooms()
    assert len(listed) == len(set(listed))
    assert all(re.fullmatch(r"[a-z_]+", room) for room in listed)
