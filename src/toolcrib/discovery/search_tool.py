"""`tool_search` as a tool like any other, and the shape of what it answers (rules A5).

What it finds and promises is the session's: it only asks.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Protocol, TypeAlias, runtime_checkable

from toolcrib.content import DataPart, ToolResult
from toolcrib.definition import Annotations
from toolcrib.discovery.policy import SEARCH_TOOL
from toolcrib.errors import InvalidArguments, NotAvailable
from toolcrib.frozen import NOTHING
from toolcrib.manifest import ManifestTool, define_tool
from toolcrib.policy import Policy
from toolcrib.tool import CallContext

__all__ = ["DEFAULT_LIMIT", "Found", "Hit", "Reason", "Searcher", "found_result", "search_tool"]

DEFAULT_LIMIT = 8
MAX_HIT_DESCRIPTION = 200
"""Characters of a hit's description: the whole definition follows in the next round."""

Reason: TypeAlias = Literal[
    "load_failed",
    "over_budget",
    "admission_budget",
    "visible_budget",
    "not_discoverable",
    "unknown",
]
"""Why a hit is not exposed: a lazy tool that could not be loaded · no room in the pool · the
searches of this round took in as many as they may · in the pool, but no room in the round · always
or hidden · no such tool."""


@dataclass(frozen=True, slots=True)
class Hit:
    """One tool that a search found; a higher `score` fits better."""

    name: str
    description: str
    score: float


@dataclass(frozen=True, slots=True)
class Found:
    """What a search found and what became of it. `exposed` are exactly the hits that the next
    round sends; `refused` the reasons that were settled by the search itself, `offered` what it
    offered to the pool, best first. `corrected`: misspelled words of the query → the words that
    were also searched."""

    query: str
    hits: tuple[Hit, ...]
    exposed: tuple[str, ...] = ()
    failed: tuple[tuple[str, Reason], ...] = ()
    evicted: tuple[str, ...] = ()
    refused: Mapping[str, Reason] = field(default=NOTHING)
    offered: tuple[str, ...] = ()
    corrected: Mapping[str, str] = field(default=NOTHING)

    def settled(self, visible: Collection[str], pooled: Collection[str]) -> Found:
        """The same search, as things stand now."""
        failed: list[tuple[str, Reason]] = []
        for hit in self.hits:
            if hit.name in visible:
                continue
            if hit.name in pooled:
                failed.append((hit.name, "visible_budget"))
            else:
                failed.append((hit.name, self.refused.get(hit.name, "over_budget")))
        exposed = tuple(hit.name for hit in self.hits if hit.name in visible)
        evicted = tuple(name for name in self.evicted if name not in pooled)
        return replace(self, exposed=exposed, failed=tuple(failed), evicted=evicted)

    def to_json(self) -> dict[str, Any]:
        """What the model gets: {query, hits, did_you_mean?, exposed?, failed?, evicted?} (rule
        A5.9)."""
        hits = [
            {"name": h.name, "description": _short(h.description), "score": round(h.score, 3)}
            for h in self.hits
        ]
        lists: dict[str, Any] = {
            "did_you_mean": dict(self.corrected),
            "exposed": list(self.exposed),
            "failed": [{"name": name, "reason": reason} for name, reason in self.failed],
            "evicted": list(self.evicted),
        }
        return {"query": self.query, "hits": hits, **{k: v for k, v in lists.items() if v}}


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= MAX_HIT_DESCRIPTION else line[: MAX_HIT_DESCRIPTION - 1] + "…"


def found_result(found: Found) -> ToolResult:
    """A search's answer as a result: one data part; `.value` is the `Found` itself, and the meta
    says what was `offered` to the pool, for whoever reads the transcript again."""
    meta = {"offered": list(found.offered)}
    return ToolResult((DataPart(found.to_json()),), None, found, meta=meta)


@runtime_checkable
class Searcher(Protocol):
    """A session that can search: what `tool_search` needs of the conversation it is called in."""

    async def search(self, query: str, limit: int) -> Found: ...


_DESCRIPTION = (
    "Find tools for a task. Most tools are not listed until you search for them: describe what you"
    " want to do, or name the tool. Tools listed under 'exposed' can be called from your next"
    " message on; search again if none fits."
)
_SCHEMA = {
    "type": "object",
    "properties": {
        "query": {"type": "string", "description": "The task in a few words, or a tool's name"},
        "limit": {
            "type": "integer",
            "description": "How many tools at most",
            "default": DEFAULT_LIMIT,
        },
    },
    "required": ["query"],
    "additionalProperties": False,
}


def search_tool() -> ManifestTool[Any]:
    """The tool itself; always exposed."""
    return define_tool(
        SEARCH_TOOL,
        description=_DESCRIPTION,
        input_schema=_SCHEMA,
        execute=_execute,
        kind="discovery",
        annotations=Annotations("Search tools", read_only=True, destructive=False, idempotent=True),
        policy=Policy(exposure="always"),
    )


async def _execute(ctx: CallContext, arguments: dict[str, Any]) -> ToolResult:
    query = arguments["query"].strip()
    if not query:
        raise InvalidArguments("query is blank: say in a few words what you want to do")
    if not isinstance(ctx.session, Searcher):
        raise NotAvailable(f"{SEARCH_TOOL} works only within a session")
    limit = int(arguments.get("limit") or DEFAULT_LIMIT)  # 2.0 is an integer to JSON Schema
    return found_result(await ctx.session.search(query, limit if limit > 0 else DEFAULT_LIMIT))
