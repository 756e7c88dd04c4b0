"""What the bench scripts share: where the shared benches are, copies of them, Markdown tables."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Sequence
from pathlib import Path

MISSING = "TOOLCRIB_SHARED names no folder with bench/{0}: {1} left out."


def shared(bench: str) -> Path | None:
    """The folder of a shared bench (`toolret`, `peerbench`), None where there is none."""
    where = os.environ.get("TOOLCRIB_SHARED", "")
    folder = Path(where) / "bench" / bench
    return folder.absolute() if where and folder.is_dir() else None


def copy_of(bench: Path, into: Path) -> Path:
    """The bench in a place of our own: it writes beside itself."""
    target = into / bench.name
    shutil.copytree(bench, target, ignore=shutil.ignore_patterns(".venvs", ".emb", "results*.json"))
    for path in [target, *target.rglob("*")]:
        path.chmod(path.stat().st_mode | 0o200)
    return target


def table(headers: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A Markdown table."""
    lines = [headers, ["---"] * len(headers), *rows]
    return "\n".join("| " + " | ".join(map(str, line)) + " |" for line in lines)
