"""The rounds of `conversation.py --csv` as a picture; needs matplotlib, and nothing of toolcrib.

python bench/conversation.py --csv > rounds.csv
python bench/plot.py rounds.csv docs/conversation.png
"""

from __future__ import annotations

import csv
import itertools
import sys
from pathlib import Path
from typing import Any

OURS, KEPT, ALL = "#1f6f8b", "#b9d7e0", "#c44536"


def _rows(path: Path) -> list[dict[str, Any]]:
    with path.open() as lines:
        return [
            {key: value if key == "does" else int(value) for key, value in row.items()}
            for row in csv.DictReader(lines)
        ]


def _kilobytes(rows: list[dict[str, Any]], key: str) -> list[float]:
    return [row[key] / 1000 for row in rows]


def _each_round(axes: Any, rows: list[dict[str, Any]]) -> None:
    """What a round sends: kept by the cache, and new."""
    at = [row["round"] for row in rows]
    kept = _kilobytes(rows, "prefix kept")
    axes.bar(at, kept, color=KEPT, label="as in the round before")
    axes.bar(at, _kilobytes(rows, "new"), bottom=kept, color=OURS, label="new")
    searches = [row["round"] for row in rows if row["does"] == "search"]
    axes.set_xticks(searches, ["s"] * len(searches), fontsize=8)
    axes.set_ylim(top=1.3 * max(_kilobytes(rows, "JSON bytes")))
    every = rows[0]["all: bytes"] / 1000
    axes.set_title(f"Definitions sent in each round (all tools: {every:.0f} kB)", fontsize=10)
    axes.set_xlabel("round (s: the model searches)")
    axes.set_ylabel("kB of tools JSON")
    axes.legend(fontsize=8, loc="upper right", ncols=2)


def _together(axes: Any, rows: list[dict[str, Any]], cached: float = 0.1) -> None:
    """What all rounds so far have cost, a cached byte at a tenth."""
    at = [row["round"] for row in rows]
    for prefix, total, color, label in (
        ("new", "JSON bytes", OURS, "toolcrib"),
        ("all: new", "all: bytes", ALL, "every tool in every round"),
    ):
        costs = (row[prefix] + cached * (row[total] - row[prefix]) for row in rows)
        axes.plot(at, [c / 1000 for c in itertools.accumulate(costs)], color=color, label=label)
    axes.set_title("Cost so far, with a prompt cache", fontsize=10)
    axes.set_xlabel("round")
    axes.set_ylabel("kB at full price")
    axes.set_ylim(bottom=0)
    axes.legend(fontsize=8, loc="upper left")


def main() -> None:
    try:
        import matplotlib
    except ImportError:
        print("matplotlib is not installed: no picture.")
        return
    matplotlib.use("Agg")
    from matplotlib import pyplot

    rows = _rows(Path(sys.argv[1]))
    figure, (left, right) = pyplot.subplots(1, 2, figsize=(9, 3.4), layout="constrained")
    _each_round(left, rows)
    _together(right, rows)
    for axes in (left, right):
        axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(sys.argv[2], dpi=110)


if __name__ == "__main__":
    main()
