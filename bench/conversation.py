"""What a conversation of 30 rounds over 527 real MCP tools costs in definitions.

    TOOLCRIB_SHARED=… python bench/conversation.py          # Markdown
    TOOLCRIB_SHARED=… python bench/conversation.py --csv    # for plot.py
    TOOLCRIB_SHARED=… python bench/conversation.py --into docs/discovery.md

A scripted model searches (with queries that a real one wrote, of the set `livemcp_agent`), calls
what was exposed and answers, through `toolcrib.loop.run` and a dynamic assembly with its default
budgets. Counted is the JSON of OpenAI's tools in every request, how much of it is byte for byte the
beginning of the request before (what a prompt cache keeps), and what two other clients would send:
every tool in every round, and the same tools as ours but sorted by name.
"""

from __future__ import annotations

import argparse
import asyncio
import csv
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any, get_args

from conversation_script import GAVE_UP, Request, as_json, converse
from harness import MISSING, shared, table

from toolcrib import Budget, Discovery, Dynamic
from toolcrib.definition import ToolDefinition
from toolcrib.discovery.policy import Evict
from toolcrib.providers import openai

BUDGETS = (Budget(), Budget(64, 32_768), Budget(128, 65_536))
"""The default, twice and four times that."""
EVICT: tuple[Evict, ...] = get_args(Evict)
CACHED = 0.1
"""What a cached byte costs, a byte that is not being 1."""


@dataclass(frozen=True)
class Sent:
    """Bytes of one request: its tools, those a cache kept of them, and the same of its messages."""

    tools: int
    kept: int
    messages: int
    messages_kept: int

    @property
    def cost(self) -> float:
        """What its tools cost, in bytes of full price."""
        return self.tools - self.kept + CACHED * self.kept

    @property
    def whole_cost(self) -> float:
        """What its tools and messages cost."""
        return self.cost + self.messages - self.messages_kept + CACHED * self.messages_kept


def _kept(before: bytes, now: bytes) -> int:
    """Bytes that `now` begins with as `before` did."""
    if now.startswith(before):
        return len(before)
    return next(
        (at for at, (was, byte) in enumerate(zip(before, now, strict=False)) if was != byte),
        len(now),
    )


def sent(requests: Sequence[Request], tools: Sequence[Sequence[ToolDefinition]]) -> list[Sent]:
    """What every request costs if it sends `tools`: messages stand behind the tools, so a cache
    keeps them only where the tools are the same."""
    found: list[Sent] = []
    before = said = b""
    for request, definitions in zip(requests, tools, strict=True):
        now = as_json(openai.tools(definitions))
        messages_kept = _kept(said, request.messages) if now == before else 0
        found.append(Sent(len(now), _kept(before, now), len(request.messages), messages_kept))
        before, said = now, request.messages
    return found


def clients(
    requests: Sequence[Request], everything: Sequence[ToolDefinition]
) -> dict[str, list[Sent]]:
    """The conversation as ours sends it, and as the two others would."""
    by_name = [sorted(r.definitions, key=lambda tool: tool.name) for r in requests]
    return {
        "toolcrib": sent(requests, [r.definitions for r in requests]),
        "the same, sorted by name": sent(requests, by_name),
        f"all {len(everything)} every round": sent(requests, [everything] * len(requests)),
    }


def rounds(requests: Sequence[Request], ways: dict[str, list[Sent]]) -> list[dict[str, Any]]:
    """One row for every round, for people and for plot.py."""
    ours, by_name, everything = ways.values()
    return [
        {
            "round": number,
            "does": request.did,
            "in view": len(request.definitions),
            "wire_bytes": sum(tool.wire_bytes for tool in request.definitions),
            "JSON bytes": one.tools,
            "prefix kept": one.kept,
            "new": one.tools - one.kept,
            "sorted: new": other.tools - other.kept,
            "all: bytes": every.tools,
            "all: new": every.tools - every.kept,
            "messages": one.messages,
        }
        for number, (request, one, other, every) in enumerate(
            zip(requests, ours, by_name, everything, strict=True), 1
        )
    ]


def totals(ways: dict[str, list[Sent]]) -> str:
    """What the whole conversation costs each client."""
    head = ["client", "bytes of tools", "of them cached", "new", "cost", "cost with messages"]
    lines: list[list[str]] = []
    for name, requests in ways.items():
        figures = (
            sum(s.tools for s in requests),
            sum(s.kept for s in requests),
            sum(s.tools - s.kept for s in requests),
            sum(s.cost for s in requests),
            sum(s.whole_cost for s in requests),
        )
        lines.append([name, *(f"{figure:,.0f}" for figure in figures)])
    return table(head, lines)


def break_even(ways: dict[str, list[Sent]]) -> str:
    """From which size of messages on sending everything would be cheaper."""
    ours, _, everything = ways.values()
    saved = sum(s.cost for s in everything) - sum(s.cost for s in ours)
    changed = sum(s.kept < s.tools for s in ours[1:])
    size = saved / changed / (1 - CACHED)
    return (
        f"The tools of {changed} requests differed from those before, so their messages were read"
        f" anew; that is dearer than sending everything once messages exceed {size:,.0f} bytes"
        " on average in those rounds."
    )


def policies(data: Path) -> str:
    """The same conversation with more room in view, and with each way of making room."""
    head = ["budget: tools / bytes", "evict", "gave up", "tools changed", "bytes of tools", "new"]
    lines: list[list[str]] = []
    for budget, evict in product(BUDGETS, EVICT):
        dynamic = Dynamic(budget=budget, discovery=Discovery(evict=evict))
        requests, _ = asyncio.run(converse(data, dynamic))
        one = sent(requests, [r.definitions for r in requests])
        figures = (
            sum(request.did == GAVE_UP for request in requests),
            sum(s.kept < s.tools for s in one[1:]),
            sum(s.tools for s in one),
            sum(s.tools - s.kept for s in one),
            sum(s.cost for s in one),
            sum(s.whole_cost for s in one),
        )
        room = f"{budget.max_definitions} / {budget.max_bytes:,}"
        lines.append([room, evict, *(f"{figure:,.0f}" for figure in figures)])
    return table([*head, "cost", "cost with messages"], lines)


def parts(data: Path) -> dict[str, str]:
    """What there is to read, by name."""
    requests, everything = asyncio.run(converse(data))
    ways = clients(requests, everything)
    rows = rounds(requests, ways)
    shown = [[f"{v:,}" if isinstance(v, int) else v for v in row.values()] for row in rows]
    return {
        "totals": totals(ways),
        "even": break_even(ways),
        "policies": policies(data),
        "rounds": table(list(rows[0]), shown),
    }


def write_csv(data: Path) -> None:
    """The rounds, for plot.py."""
    requests, everything = asyncio.run(converse(data))
    rows = rounds(requests, clients(requests, everything))
    writer = csv.DictWriter(sys.stdout, list(rows[0]))
    writer.writeheader()
    writer.writerows(rows)


def put_into(page: Path, texts: dict[str, str]) -> None:
    """Each text between its marks `<!-- name -->` and `<!-- /name -->` in `page`."""
    text = page.read_text()
    for name, new in texts.items():
        before, rest = text.split(f"<!-- {name} -->")
        _, after = rest.split(f"<!-- /{name} -->")
        text = f"{before}<!-- {name} -->\n{new}\n<!-- /{name} -->{after}"
    page.write_text(text)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--csv", action="store_true", help="the rounds as CSV")
    parser.add_argument("--into", type=Path, help="a page with marks, such as docs/discovery.md")
    chosen = parser.parse_args()
    bench = shared("toolret")
    if bench is None:
        print(MISSING.format("toolret", "the conversation is"))
    elif chosen.csv:
        write_csv(bench / "data")
    elif chosen.into:
        put_into(chosen.into, parts(bench / "data"))
    else:
        print(*parts(bench / "data").values(), sep="\n\n")


if __name__ == "__main__":
    main()
