"""What the commands print: tables for people, JSON for programs. Decides nothing."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

from rich.console import Console
from rich.markup import escape

from toolcrib.catalog import Catalog
from toolcrib.cli.talk import Played, PlayedRound
from toolcrib.cli.terminal import console, plain, print_json, print_table, short
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
    "problems_json",
    "result_json",
    "result_text",
    "round_text",
]

_LINE, _RESULT, _PART = 160, 300, 120
"""Characters of a line, a result and a part that is no text."""
_TOKEN = 4


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
    to = console()
    total = sum(definition.wire_bytes for definition in catalog.definitions)
    to.print(
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
        console().print(f"nothing fits {escape(query)!r}")
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
            print(f"[{shown['type']}: {short(str(shown), _PART)}]", file=sys.__stdout__)


def result_json(result: ToolResult) -> None:
    print_json({**result.to_json(), "meta": dict(result.meta)})


def no_round(played: PlayedRound) -> None:
    """Says nothing while the conversation goes on: its JSON comes at the end."""


def round_text(played: PlayedRound) -> None:
    to = console()
    tools = "tool" if len(played.names) == 1 else "tools"
    to.print(
        f"[bold]round {played.number}[/bold]  {len(played.names)} {tools} in view,"
        f" {played.bytes:,} bytes (about {played.tokens:,} tokens)"
    )
    if played.new:
        to.print(f"  [green]new[/green]    {escape(', '.join(played.new))}")
    if played.say:
        to.print(f"  [cyan]says[/cyan]   {escape(short(played.say, _LINE))}")
    for call, result in played.calls:
        _call_text(to, call, result)
    to.print()


def _call_text(to: Console, call: ToolCall, result: ToolResult) -> None:
    arguments = short(call.arguments, _LINE)
    to.print(f"  [cyan]calls[/cyan]  {escape(plain(call.name))} {escape(arguments)}")
    word = f"[red]{result.failure.kind}[/red]" if result.failure else "[green]gets[/green]  "
    to.print(f"  {word} {escape(short(result.text, _RESULT))}")


def played_text(played: Played) -> None:
    rounds = len(played.rounds)
    full = played.listing_bytes * rounds
    share = 100 * played.sent_bytes / full if full else 0
    console().print(
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
    to = console()
    for warning in deployment.warnings:
        to.print(f"[yellow]warning[/yellow] {escape(str(warning))}")
    kinds = ", ".join(f"{one.name} ({one.kind})" for one in deployment.resources)
    to.print(f"{escape(deployment.file)}: fine. {escape(kinds)}")


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
