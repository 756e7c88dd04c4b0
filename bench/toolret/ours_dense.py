"""toolcrib's hybrid search (lexical + MiniLM) as an engine of bench/toolret's eval.py.

    python eval.py --plug …/ours_dense.py --engine ours_dense --split dev --dataset all --cap 200

Needs the extra `dense` and the weights. TOOLRET_VECTORS names a file that keeps the vectors between
runs.
"""

import os
from pathlib import Path
from typing import Any

from toolcrib.definition import ToolDefinition
from toolcrib.dense.hybrid import Hybrid
from toolcrib.dense.vectors import VectorCache
from toolcrib.encoders.minilm import MiniLM
from toolcrib.ranking.fields import document_of
from toolcrib.ranking.index import Index

ENCODER = MiniLM()
FILE = os.environ.get("TOOLRET_VECTORS")
CACHE = VectorCache(Path(FILE)) if FILE else None


class OursDense:
    """An engine: tools are dicts of id, name, description, input_schema and perhaps server."""

    def __init__(self) -> None:
        self.ranker = Hybrid(Index(), ENCODER, cache=CACHE)

    def add(self, tools: list[dict[str, Any]]) -> None:
        self.ranker.update(
            document_of(
                ToolDefinition(tool["name"], tool["description"], tool["input_schema"]),
                tool.get("server") or "",
                key=tool["id"],
            )
            for tool in tools
        )
        self.ranker.search("now everything queued is applied")
        assert self.ranker.wait_encoded()

    def search(self, query: str, k: int) -> list[str]:
        return [hit.name for hit in self.ranker.search(query, k)]


E["ours_dense"] = (OursDense, {})  # type: ignore[name-defined]  # noqa: F821  # eval.py puts it in sight
