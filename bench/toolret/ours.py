"""toolcrib's own search index as an engine of bench/toolret's eval.py.

    python eval.py --plug /path/to/ours.py --engine ours --split dev --dataset all --cap 200

`--engine ours_plain` is the same without numpy.

eval.py runs this file with its table of engines `E` in sight. Its tools have unique ids but
clashing names, so documents are filed under their ids.
"""

from collections.abc import Callable
from typing import Any

from toolcrib.definition import ToolDefinition
from toolcrib.ranking.engine import Engine
from toolcrib.ranking.engines import fastest
from toolcrib.ranking.fields import document_of
from toolcrib.ranking.index import Index
from toolcrib.ranking.scan import Scan


class Ours:
    """An engine: tools are dicts of id, name, description, input_schema and perhaps server."""

    def __init__(self, engine: Callable[[], Engine] = fastest) -> None:
        self.index = Index(engine())

    def add(self, tools: list[dict[str, Any]]) -> None:
        for tool in tools:
            definition = ToolDefinition(tool["name"], tool["description"], tool["input_schema"])
            self.index.put(document_of(definition, tool.get("server") or "", key=tool["id"]))
        self.index.search("now everything queued is applied")

    def search(self, query: str, k: int) -> list[str]:
        return [hit.name for hit in self.index.search(query, k)]


E["ours_plain"] = (Ours, {"engine": Scan})  # type: ignore[name-defined]  # noqa: F821
E["ours"] = (Ours, {})  # type: ignore[name-defined]  # noqa: F821  # eval.py puts it in sight
