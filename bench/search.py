"""Search: how good, how fast, and what a change costs; beside other engines.

    TOOLCRIB_SHARED=… python bench/search.py                         # ours, the reference lex_best
    TOOLCRIB_SHARED=… TOOLRET_PY=… python bench/search.py            # and the peers' latencies
    TOOLCRIB_SHARED=… TOOLRET_PY=… python bench/search.py --record   # measures the peers' quality
    … python bench/search.py --part quality --engines ours           # a part

Runs the shared bench `toolret`. TOOLRET_PY is a Python that has the peers' packages:
numpy psutil PyStemmer bm25s tantivy fastmcp haystack-ai toolregistry pydantic-ai. How good a peer
is does not change from run to run: that is measured once and read from `toolret/peers.json`. Times
are CPU, to be read as ratios within one run.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from harness import MISSING, copy_of, shared, table

HERE = Path(__file__).parent
OWN = ("ours", "lex_best")
PEERS = (
    "bm25s_split_stem",
    "fts5_w_porter_split_stop",
    "tantivy_name3_stem_split",
    "fastmcp_bm25",
    "haystack",
    "toolregistry",
    "pydantic_ai",
)
CORPORA = (("own", 200), ("mergedcore", 60), ("merged", 60))
"""Each set's own tools, all sets together (12,509 tools), those with distractors (32,509); and at
most so many queries a set."""
FIGURES = (
    ("nDCG@10", "ndcg@10"),
    ("recall@1", "r@1"),
    ("recall@5", "r@5"),
    ("recall@10", "r@10"),
    ("all@10", "all@10"),
)
SIZES = (1_000, 10_000, 100_000)

RECORD = HERE / "toolret" / "peers.json"

PATIENCE = {"quality": 400.0, "latency": 150.0}
"""Seconds for one engine on one corpus, and at one size."""
QUICK = 6.0
"""A latency that takes less is measured three times."""
LARGEST = 25.0
"""An engine that needs more seconds for mergedcore is not taken to merged."""
SLOW_QUERY = 40.0
"""An engine over so many ms of CPU a query is not taken to the next size."""


@dataclass(frozen=True)
class Failed:
    """Why there is no figure."""

    why: str


Row: TypeAlias = dict[str, Any]
Scores: TypeAlias = list[float] | str
"""The `FIGURES` of an engine on one corpus, or why there are none."""
Recorded: TypeAlias = dict[str, dict[str, Scores]]
"""By engine and corpus."""


@dataclass(frozen=True)
class Toolret:
    """A copy of the shared bench, and the Python of the peers (blank: there are none)."""

    folder: Path
    peers: str

    def run(self, engine: str, *arguments: str, patience: float) -> Row | Failed:
        """The line of JSON that eval.py writes, with the seconds it `took`."""
        python = sys.executable if engine in OWN else self.peers
        with tempfile.TemporaryDirectory() as place:
            out = Path(place) / "out.jsonl"
            command = [python, "eval.py", "--engine", engine, "--split", "dev", "--json", str(out)]
            if engine == "ours":
                command += ["--plug", str(HERE / "toolret" / "ours.py")]
            began = time.monotonic()
            try:
                done = subprocess.run(
                    [*command, *arguments],
                    cwd=self.folder,
                    capture_output=True,
                    text=True,
                    timeout=patience,
                )
            except subprocess.TimeoutExpired:
                return Failed(f"over {patience:.0f} s")
            took = time.monotonic() - began
            print(f"{engine} {' '.join(arguments)}: {took:.0f} s", file=sys.stderr, flush=True)
            if done.returncode != 0:
                return Failed(f"failed: {(done.stderr.strip().splitlines() or ['?'])[-1][:80]}")
            return {**json.loads(out.read_text()), "took": took}


def quality(bench: Toolret, engines: Sequence[str], recorded: Recorded) -> str:
    """nDCG and recall of every engine on every corpus; what is `recorded` is not measured."""
    found = {**recorded, **_measured(bench, [e for e in engines if e not in recorded])}
    parts: list[str] = []
    for corpus, cap in CORPORA:
        rows = [_quality_row(engine, found[engine][corpus]) for engine in engines]
        rows.sort(key=lambda row: (row[1][0] != "–", row[1]), reverse=True)
        table_ = table(["engine", *(title for title, _ in FIGURES)], rows)
        parts.append(f"### {corpus}, at most {cap} queries a set\n\n{table_}\n")
    return "\n".join(parts)


def _measured(bench: Toolret, engines: Sequence[str]) -> Recorded:
    with ThreadPoolExecutor(max_workers=2) as pool:  # scores, not times: two at once
        found = pool.map(lambda engine: _on_corpora(bench, engine), engines)
        return dict(zip(engines, found, strict=True))


def _on_corpora(bench: Toolret, engine: str) -> dict[str, Scores]:
    scores: dict[str, Scores] = {}
    why = ""
    for corpus, cap in CORPORA:
        if why:
            scores[corpus] = why
            continue
        wanted = ("--dataset", "all", "--corpus", corpus, "--cap", str(cap))
        found = bench.run(engine, *wanted, patience=PATIENCE["quality"])
        if isinstance(found, Failed):
            why = scores[corpus] = found.why
            continue
        macro = found["rows"]["MACRO"]
        scores[corpus] = [round(macro[key], 6) for _, key in FIGURES]
        if corpus == "mergedcore" and found["took"] > LARGEST:
            why = f"left out: {found['took']:.0f} s for mergedcore"
    return scores


def _quality_row(engine: str, scores: Scores) -> list[str]:
    if isinstance(scores, str):
        return [engine, f"– ({scores})", *[""] * (len(FIGURES) - 1)]
    return [engine, *(f"{score:.3f}" for score in scores)]


def record(bench: Toolret) -> None:
    """Measures how good the peers are and writes it down."""
    lines = (f'"{name}": {json.dumps(one)}' for name, one in _measured(bench, PEERS).items())
    RECORD.write_text("{\n" + ",\n".join(lines) + "\n}\n")


def recorded() -> Recorded:
    """What was written down of the peers."""
    found: Recorded = json.loads(RECORD.read_text())
    return found


def latency(bench: Toolret, engines: Sequence[str]) -> str:
    """CPU of a query, build and memory of every engine at every size, in ratio to the fastest."""
    parts: list[str] = []
    given_up: dict[str, str] = {}
    for size in SIZES:
        found = _at_size(bench, [e for e in engines if e not in given_up], size)
        parts.append(f"### {size:,} tools\n\n{_latency_table(found, given_up)}\n")
        for engine, row in found.items():
            if isinstance(row, Failed):
                given_up[engine] = f"{row.why} at {size:,} tools"
            elif row["cpu_p50"] > SLOW_QUERY:
                given_up[engine] = f"left out: {row['cpu_p50']:.0f} ms at {size:,} tools"
    return "\n".join(parts)


def _at_size(bench: Toolret, engines: Sequence[str], size: int) -> dict[str, Row | Failed]:
    """The medians of three interleaved runs; of one where that is slow."""
    runs: dict[str, list[Row | Failed]] = {engine: [] for engine in engines}
    for _ in range(3):
        for engine, so_far in runs.items():
            if not so_far or (isinstance(so_far[0], dict) and so_far[0]["took"] < QUICK):
                so_far.append(_timed(bench, engine, size))
    return {engine: _median(some) for engine, some in runs.items()}


def _timed(bench: Toolret, engine: str, size: int) -> Row | Failed:
    asked = 150 if size < SIZES[-1] else 60
    return bench.run(engine, "--lat", str(size), "--nq", str(asked), patience=PATIENCE["latency"])


def _median(runs: Sequence[Row | Failed]) -> Row | Failed:
    rows = [run for run in runs if isinstance(run, dict)]
    if not rows:
        return runs[0]
    keys = ("cpu_p50", "cpu_p95", "build_s", "mem_mb")
    return {key: statistics.median(row[key] for row in rows) for key in keys}


def _latency_table(found: dict[str, Row | Failed], given_up: dict[str, str]) -> str:
    rows = {engine: row for engine, row in found.items() if isinstance(row, dict)}
    fastest = min((row["cpu_p50"] for name, row in rows.items() if name != "ours"), default=None)
    lines = [
        [
            engine,
            f"{row['cpu_p50']:.2f}",
            f"{row['cpu_p95']:.2f}",
            f"{row['cpu_p50'] / fastest:.1f}" if fastest else "–",
            f"{row['build_s']:.2f}",
            f"{row['mem_mb']:.0f}",
        ]
        for engine, row in sorted(rows.items(), key=lambda item: item[1]["cpu_p50"])
    ]
    missing = {e: row.why for e, row in found.items() if isinstance(row, Failed)} | given_up
    lines += [[engine, f"– ({why})", "", "", "", ""] for engine, why in missing.items()]
    head = ["engine", "CPU p50 ms", "CPU p95 ms", "× fastest other", "build CPU s", "memory MB"]
    return table(head, lines)


def changes(bench: Toolret) -> str:
    """What adding, replacing and removing one tool costs our index; see `changes.py`."""
    command = [sys.executable, str(HERE / "changes.py"), *map(str, SIZES)]
    done = subprocess.run(command, cwd=bench.folder, stdout=subprocess.PIPE, text=True, check=True)
    return done.stdout


def report(folder: Path, parts: Iterable[str], engines: Sequence[str] = ()) -> None:
    """Prints the parts (`quality`, `latency`, `changes`) as Markdown."""
    bench = Toolret(folder, os.environ.get("TOOLRET_PY", ""))
    timed = engines or (*OWN, *(PEERS if bench.peers else ()))
    if not bench.peers:
        print(
            "TOOLRET_PY names no Python with the peers' packages: their latencies are left out.\n"
        )
    made = {
        "quality": lambda: quality(bench, engines or (*OWN, *PEERS), recorded()),
        "latency": lambda: latency(bench, timed),
        "changes": lambda: changes(bench),
    }
    for part in parts:
        print(made[part](), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--part", default="quality,latency,changes")
    parser.add_argument("--engines", default="", help="instead of all of them: a,b,c")
    parser.add_argument("--record", action="store_true", help="measure how good the peers are")
    chosen = parser.parse_args()
    source = shared("toolret")
    if source is None:
        print(MISSING.format("toolret", "search is"))
        return
    with tempfile.TemporaryDirectory() as work:
        folder = copy_of(source, Path(work))
        if chosen.record:
            record(Toolret(folder, os.environ["TOOLRET_PY"]))
        names = tuple(name for name in chosen.engines.split(",") if name)
        report(folder, chosen.part.split(","), names)


if __name__ == "__main__":
    main()
