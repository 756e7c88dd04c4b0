"""Every measurement of the project in one run: `make bench`.

Needs for its two larger parts the shared benches (search quality, other frameworks), which are not
part of this repository: set TOOLCRIB_SHARED to the folder that holds `bench/`. Without it those
parts are left out, and said to be. Figures of a shared machine are ratios; see RESULTS.md.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parent
SETS = ["--split", "dev", "--dataset", "all", "--cap", "200"]
WORKLOADS = "dispatch,conc,rich,big,fail,unknown,sync,registry,timeout,import"
PEERS = ["floor", "pydantic_ai", "strands"]


def section(title: str) -> None:
    print(f"\n## {title}\n", flush=True)


def copy_of(bench: Path, into: Path) -> Path:
    """The harness in a place of our own: it writes beside itself."""
    target = into / bench.name
    shutil.copytree(bench, target, ignore=shutil.ignore_patterns(".venvs", ".emb", "results*.json"))
    for path in [target, *target.rglob("*")]:
        path.chmod(path.stat().st_mode | 0o200)
    return target


def search_quality(shared: Path, work: Path) -> None:
    harness = copy_of(shared / "bench" / "toolret", work)
    plug = str(HERE / "toolret" / "ours.py")
    for engine in ("ours", "lex_best"):
        command = [sys.executable, "eval.py", "--plug", plug, "--engine", engine, *SETS]
        subprocess.run(command, cwd=harness, check=True)
    latency = [sys.executable, "eval.py", "--plug", plug, "--engine", "ours", "--lat", "10000"]
    subprocess.run(latency, cwd=harness, check=True)


def peers(shared: Path, work: Path) -> None:
    harness = copy_of(shared / "bench" / "peerbench", work)
    for adapter in (HERE / "peerbench").glob("ours*.py"):
        shutil.copy(adapter, harness / "adapters")
    venvs = Path(os.environ.get("PB_VENVS", work / "venvs")).absolute()
    environ = {**os.environ, "PB_VENVS": str(venvs), "PB_PY_ours": sys.executable}
    environ["PB_PY_ours_chain"] = sys.executable
    subprocess.run(["bash", "setup.sh", *PEERS], cwd=harness, env=environ, check=True)
    names = ",".join([*PEERS, "floor_pydantic", "ours", "ours_chain"])
    command = [sys.executable, "run.py", "-n", "3", "-w", WORKLOADS, "-p", names]
    subprocess.run(command, cwd=harness, env=environ, check=True)


def main() -> None:
    section("Rounds")
    subprocess.run([sys.executable, str(HERE / "rounds.py")], check=True)
    where = os.environ.get("TOOLCRIB_SHARED", "")
    if not where or not (Path(where) / "bench").is_dir():
        print(
            "\nTOOLCRIB_SHARED names no folder with bench/: search quality and peers are left out."
        )
        return
    with tempfile.TemporaryDirectory() as work:
        section("Search quality")
        search_quality(Path(where), Path(work))
        section("Peers")
        peers(Path(where), Path(work))


if __name__ == "__main__":
    main()
