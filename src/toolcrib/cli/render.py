"""What the commands print: tables for people, JSON for programs. Decides nothing."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import orjson
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from toolcrib.catalog import Catalog
from toolcrib.cli.talk import Played, PlayedRound
from toolcrib.content import ToolCall, ToolResult
from toolcrib.deploy import Deployment
from toolcrib.errors import Problem
from toolcrib.ranking.ranker import Hit

__all__ = [
    "catalog_json",
    "catalog_table",
    "checked_json",
    "checked_text",
    "hits_json",
    "hits_table",
    "no_round",
    "played_json",
    "played_text",
    "print_json",
    "print_table",
    "problems_json",
    "result_json",
    "result_text",
    "round_text",
]

_LINE = 160
_LEAST = 30
"""Characters of a description that are shown however narrow the terminal is."""
_TOKEN = 4


def _console() -> Console:
    return Console(file=sys.__stdout__, highlight=False, soft_wrap=True)


def print_table(names: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Only the last column gives way where the terminal is narrow: names are there to be typed."""
    console = _console()
    columns = range(len(names) - 1)
    widths = [max(len(names[at]), *(len(row[at]) for row in rows)) for at in columns]
    fixed = sum(widths) + 2 * len(widths)
    room = max(_LEAST, console.width - fixed)
    table = Table(*names, box=None, pad_edge=False)
    for row in rows:
        table.add_row(*map(escape, row[:-1]), escape(_short(row[-1], room)))
    console.width = fixed + room  # rich would rather cut a name than go beyond the terminal
    console.print(table)


def print_json(value: Any) -> None:
    """On the real standard output, whatever a tool makes of `sys.stdout`."""
    text = orjson.dumps(value, default=str, option=orjson.OPT_INDENT_2).decode()
    print(text, file=sys.__stdout__)


def _short(text: str, most: int = _LINE) -> str:
    line = " ".join(text.split())
    return line if len(line) <= most else line[: most - 1] + "…"


def catalog_table(catalog: Catalog) -> None:
    rows = [
        (
            entry.name,
            entry.source,
            entry.policy.exposure or "always",
            str(entry.definition.wire_bytes),
            entry.definition.description,
        )
        for entry in catalog
    ]
    print_table(("tool", "source", "exposure", "bytes", "description"), rows)
    console = _console()
    total = sum(definition.wire_bytes for definition in catalog.definitions)
    console.print(
        f"\n{len(catalog)} tools, {total:,} bytes of definitions (about {total // _TOKEN:,} tokens)"
    )


def catalog_json(catalog: Catalog) -> None:
    print_json(
        [
            {
                "name": entry.name,
                "source": entry.source,
                "exposure": entry.policy.exposure or "always",
                "description": entry.definition.description,
                "input_schema": entry.definition.input_schema,
                "wire_bytes": entry.definition.wire_bytes,
                "fingerprint": entry.definition.fingerprint,
            }
            for entry in catalog
        ]
    )


def hits_table(query: str, hits: Sequence[Hit], catalog: Catalog) -> None:
    if not hits:
        _console().print(f"nothing fits {escape(query)!r}")
        return
    rows = [(f"{hit.score:.2f}", hit.name, _described(catalog, hit.name)) for hit in hits]
    print_table(("score", "tool", "description"), rows)


def hits_json(query: str, hits: Sequence[Hit], catalog: Catalog) -> None:
    found = [
        {"name": h.name, "score": round(h.score, 4), "description": _described(catalog, h.name)}
        for h in hits
    ]
    print_json({"query": query, "hits": found})


def _described(catalog: Catalog, name: str) -> str:
    entry = catalog.get(name)
    return entry.definition.description if entry is not None else ""


def result_text(result: ToolResult) -> None:
    if result.failure is not None:
        print(f"{result.failure.kind}: {result.text}", file=sys.stderr)
        return
    print(result.text, file=sys.__stdout__)
    for part in result.content:
        shown = part.to_json()
        if shown["type"] not in ("text", "data"):
            print(f"[{shown['type']}: {_short(str(shown), 120)}]", file=sys.__stdout__)


def result_json(result: ToolResult) -> None:
    print_json({**result.to_json(), "meta": dict(result.meta)})


def no_round(played: PlayedRound) -> None:
    """Says nothing while the conversation goes on: its JSON comes at the end."""


def round_text(played: PlayedRound) -> None:
    console = _console()
    tools = "tool" if len(played.names) == 1 else "tools"
    console.print(
        f"[bold]round {played.number}[/bold]  {len(played.names)} {tools} in view,"
        f" {played.bytes:,} bytes (about {played.tokens:,} tokens)"
    )
    if played.new:
        console.print(f"  [green]new[/green]    {escape(', '.join(played.new))}")
    if played.say:
        console.print(f"  [cyan]says[/cyan]   {escape(_short(played.say))}")
    for call, result in played.calls:
        _call_text(console, call, result)
    console.print()


def _call_text(console: Console, call: ToolCall, result: ToolResult) -> None:
    console.print(f"  [cyan]calls[/cyan]  {escape(call.name)} {escape(_short(call.arguments))}")
    word = f"[red]{result.failure.kind}[/red]" if result.failure else "[green]gets[/green]  "
    console.print(f"  {word} {escape(_short(result.text, 300))}")


def played_text(played: Played) -> None:
    rounds = len(played.rounds)
    full = played.listing_bytes * rounds
    share = 100 * played.sent_bytes / full if full else 0
    _console().print(
        f"{rounds} rounds sent {played.sent_bytes:,} bytes of definitions; listing all"
        f" {played.tools} tools every time would have cost {full:,} bytes ({share:.0f} %)."
    )


def played_json(played: Played) -> None:
    print_json(
        {
            "rounds": [_round_json(one) for one in played.rounds],
            "sent_bytes": played.sent_bytes,
            "full_listing_bytes": played.listing_bytes * len(played.rounds),
            "tools": played.tools,
        }
    )


def _round_json(one: PlayedRound) -> dict[str, Any]:
    calls = [
        {"name": call.name, "arguments": call.arguments, "result": result.to_json()}
        for call, result in one.calls
    ]
    visible = {"names": one.names, "new": one.new, "bytes": one.bytes, "tokens": one.tokens}
    return {"round": one.number, "say": one.say, "visible": visible, "calls": calls}


def checked_text(deployment: Deployment) -> None:
    console = _console()
    for warning in deployment.warnings:
        console.print(f"[yellow]warning[/yellow] {escape(str(warning))}")
    kinds = ", ".join(f"{one.name} ({one.kind})" for one in deployment.resources)
    console.print(f"{escape(deployment.file)}: fine. {escape(kinds)}")


def checked_json(deployment: Deployment) -> None:
    resources = [{"name": one.name, "kind": one.kind} for one in deployment.resources]
    print_json(
        {"problems": [], "warnings": list(map(str, deployment.warnings)), "resources": resources}
    )


def problems_json(problems: Sequence[Problem]) -> None:
    found = [
        {"file": one.file, "line": one.line, "path": one.path, "message": one.message}
        for one in problems
    ]
    print_json({"problems": found, "warnings": [], "resources": []})
