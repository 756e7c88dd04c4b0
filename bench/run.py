"""Every measurement of the project in one run: `make bench`.

Most of it needs the shared benches (search quality, other frameworks, real tools), which are not
part of this repository: set TOOLCRIB_SHARED to the folder that holds `bench/`. Without it those
parts are left out, and said to be. TOOLRET_PY (see search.py) adds the peers of the search;
PB_PEERS=openai_agents,google_adk,langchain_core adds frameworks; PB_VENVS keeps their
environments. Figures of a shared machine are ratios; see RESULTS.md.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from harness import MISSING, copy_of, shared

HERE = Path(__file__).parent
WORKLOADS = "dispatch,conc,rich,big,fail,unknown,sync,registry,timeout,loop,import"
PEERS = ["floor", "pydantic_ai", "strands"]
SCRIPTS = {
    "Rounds": "rounds.py",
    "MCP over stdio": "mcp_echo.py",
    "Search": "search.py",
    "A conversation over 527 real tools": "conversation.py",
}


def section(title: str) -> None:
    print(f"\n## {title}\n", flush=True)


def peers() -> None:
    """Other frameworks and ours through the same tool work."""
    bench = shared("peerbench")
    if bench is None:
        print(MISSING.format("peerbench", "other frameworks are"))
        return
    others = [*PEERS, *filter(None, os.environ.get("PB_PEERS", "").split(","))]
    ours = [path.stem for path in sorted((HERE / "peerbench").glob("ours*.py"))]
    with tempfile.TemporaryDirectory() as work:
        harness = copy_of(bench, Path(work))
        for name in ours:
            shutil.copy(HERE / "peerbench" / f"{name}.py", harness / "adapters")
        venvs = Path(os.environ.get("PB_VENVS", Path(work) / "venvs")).absolute()
        environ = {**os.environ, "PB_VENVS": str(venvs)}
        environ |= {f"PB_PY_{name}": sys.executable for name in ours}
        subprocess.run(["bash", "setup.sh", *others], cwd=harness, env=environ, check=True)
        names = ",".join([*others, "floor_pydantic", *ours])
        command = [sys.executable, "run.py", "-n", "3", "-w", WORKLOADS, "-p", names]
        subprocess.run(command, cwd=harness, env=environ, check=True)


def main() -> None:
    for title, script in SCRIPTS.items():
        section(title)
        subprocess.run([sys.executable, str(HERE / script)], check=True)
    section("Peers")
    peers()


if __name__ == "__main__":
    main()
