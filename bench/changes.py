"""What one change costs our index when it is applied: run by `search.py`, in the toolret bench.

    cd …/toolret && python …/bench/changes.py 1000 10000

`Index.update` only queues; the next search applies. So one change is measured as `update` and a
search for a word that no tool knows, which applies what is queued and finds nothing, less the same
search with nothing queued. The document (`document_of`: the texts of a definition) is made
beforehand and measured by itself. What a change leaves for the next real query to do is measured
apart, too: the same query asked again, with and without a change before it.
"""

from __future__ import annotations

import importlib
import statistics
import sys
import time
from collections.abc import Callable, Iterable
from typing import Any

from harness import table

from toolcrib.definition import ToolDefinition
from toolcrib.ranking.fields import Document, document_of
from toolcrib.ranking.index import Index

CHANGES = 500
QUERIES = 60
UNKNOWN = "qqxzz"


def _document(tool: dict[str, Any]) -> Document:
    definition = ToolDefinition(tool["name"], tool["description"], tool["input_schema"])
    return document_of(definition, tool.get("server") or "", key=tool["id"])


def _cpu(work: Callable[[], object]) -> float:
    """Microseconds of CPU for one `work()`."""
    began = time.process_time_ns()
    work()
    return (time.process_time_ns() - began) / 1000


def _each(index: Index, changes: Iterable[Callable[[], object]]) -> list[float]:
    """Microseconds of every change, less the search that applies it."""
    floor = statistics.median(_cpu(lambda: index.search(UNKNOWN)) for _ in range(1000))
    times: list[float] = []
    for change in changes:
        times.append(_cpu(lambda change=change: (change(), index.search(UNKNOWN))) - floor)
    return times


def _shown(times: list[float]) -> str:
    """median / mean / worst: a mean far above the median is work that is put off."""
    return f"{statistics.median(times):.0f} / {statistics.mean(times):.0f} / {max(times):.0f}"


def _asked(index: Index, queries: list[str], before: Callable[[], object]) -> float:
    """The median query, asked again, after `before` (whose own cost is not counted)."""
    times: list[float] = []
    for query in queries:
        index.search(query)
        before()
        index.search(UNKNOWN)
        times.append(_cpu(lambda query=query: index.search(query)))
    return statistics.median(times)


def measure(size: int, toolret: Any) -> list[object]:
    """One row: add, replace and remove at `size` tools, and a query after a change."""
    tools = toolret.big(size + CHANGES)
    asked = toolret.load_queries("merged", "dev")
    queries = [query["query"] for query in asked[:: len(asked) // QUERIES]]
    documents = [_document(tool) for tool in tools]
    rest, new = documents[:size], documents[size:]
    index = Index()
    index.update(rest)
    index.search(UNKNOWN)
    made = statistics.median(_cpu(lambda tool=tool: _document(tool)) for tool in tools[:CHANGES])
    added = _each(index, [lambda d=d: index.update([d]) for d in new])
    replaced = _each(index, [lambda d=d: index.update([d]) for d in new])
    removed = _each(index, [lambda d=d: index.update(drop=[d.key]) for d in new])
    again = _asked(index, queries, lambda: None)
    spare = iter(new)
    after = _asked(index, queries, lambda: index.update([next(spare)]))
    shown = [f"{size:,}", f"{made:.0f}", *map(_shown, (added, replaced, removed))]
    return [*shown, f"{again:.0f} / {after:.0f}"]


def main() -> None:
    sys.path.insert(0, ".")
    toolret = importlib.import_module("eval")
    head = [
        "tools",
        "document µs",
        "add µs",
        "replace µs",
        "remove µs",
        "query µs: again / changed",
    ]
    print("### One change of our index (CPU; median / mean / worst)\n")
    print(table(head, [measure(int(size), toolret) for size in sys.argv[1:]]))


if __name__ == "__main__":
    main()
