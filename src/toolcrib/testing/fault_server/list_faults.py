"""Faults of what is listed: twice, without an end, changed, hostile."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from toolcrib.testing.fault_server.acts import Acts, Asked, Message, Say
from toolcrib.testing.fault_server.faults import fault
from toolcrib.testing.fault_server.values import NAME, Takes, one_of

__all__: list[str] = []

LIST = "tools/list"
ANY = {"type": "object"}
EVIL = "^(a+)+$"
SIZE = Takes("N", "a whole number > 0", re.compile(r"[1-9][0-9]{0,8}").fullmatch)


def _changed(acts: Acts, change: Callable[[Message], Message]) -> Acts:
    """`acts` with each result changed."""
    for act in acts:
        if isinstance(act, Say) and "result" in act.message:
            act = Say({**act.message, "result": change(act.message["result"])})
        yield act


def _with_tools(acts: Acts, change: Callable[[list[Any]], list[Any]]) -> Acts:
    """`acts` with each list of tools changed; a fault may be asked for with any message."""

    def with_tools(result: Message) -> Message:
        return {**result, "tools": change(result["tools"])} if "tools" in result else result

    return _changed(acts, with_tools)


@fault(method=LIST)
def duplicates(asked: Asked, acts: Acts, value: str) -> Acts:
    """Lists each tool a second time, in other words."""
    return _with_tools(
        acts, lambda tools: [*tools, *({**t, "description": "second"} for t in tools)]
    )


@fault(method=LIST)
def senseless(asked: Asked, acts: Acts, value: str) -> Acts:
    """Lists entries that are no tools: null, a number, some without a name."""
    entries = [None, 7, {}, {"name": ""}, {"name": 3}]
    return _with_tools(acts, lambda tools: [*tools, *entries])


@fault(method=LIST, takes=one_of("same", "empty", "pair", "distinct"), value="same")
def endless(asked: Asked, acts: Acts, value: str) -> Acts:
    """A list that never ends, by its cursors: `same`, `empty`, `pair` (A, B, A, B), `distinct`."""
    cursor = asked.params.get("cursor")
    following = {"same": "8", "empty": "", "pair": "B" if cursor == "A" else "A"}
    if value == "distinct":
        following["distinct"] = f"page {int((cursor or 'page 0').split()[1]) + 1}"
    return _changed(acts, lambda result: {**result, "nextCursor": following[value]})


@fault(method=LIST, takes=SIZE, value="10")
def pages(asked: Asked, acts: Acts, value: str) -> Acts:
    """Lists 45 more tools, in pages of N, with cursors that mean nothing to anybody else."""
    cursor, size = asked.params.get("cursor") or "ÄÖ==0", int(value)
    at = int(cursor.removeprefix("ÄÖ=="))

    def page(result: Message) -> Message:
        if "tools" not in result:
            return result
        tools = result["tools"] + [_tool(f"t{number}") for number in range(45)]
        more = {"nextCursor": f"ÄÖ=={at + size}"} if at + size < len(tools) else {}
        return {**result, "tools": tools[at : at + size], **more}

    return _changed(acts, page)


@fault(method=LIST, takes=NAME, value="beta")
def extra_tool(asked: Asked, acts: Acts, value: str) -> Acts:
    """Lists one more tool, NAME."""
    return _with_tools(acts, lambda tools: [*tools, _tool(value)])


@fault(method=LIST, takes=NAME, value="echo")
def lost_tool(asked: Asked, acts: Acts, value: str) -> Acts:
    """No longer lists the tool NAME."""
    return _with_tools(acts, lambda tools: [tool for tool in tools if tool["name"] != value])


@fault(method=LIST)
def changed_definition(asked: Asked, acts: Acts, value: str) -> Acts:
    """Lists `echo` with another description and another parameter."""
    schema = {"type": "object", "properties": {"words": {"type": "string"}}}

    def change(tools: list[Any]) -> list[Any]:
        new = {"description": "Says something else.", "inputSchema": schema}
        return [{**tool, **new} if tool["name"] == "echo" else tool for tool in tools]

    return _with_tools(acts, change)


@fault(method=LIST, takes=one_of("both", "bad", "loose"), value="both")
def bad_schema(asked: Asked, acts: Acts, value: str) -> Acts:
    """Lists `bad`, whose input schema no validator takes, `loose`, whose input schema is the number
    5, or `both`."""
    schema = {"type": "object", "properties": {"a": {"type": "no such type"}}}
    listed: list[Message] = [
        {"name": "bad", "inputSchema": schema},
        {"name": "loose", "inputSchema": 5},
    ]
    chosen = [tool for tool in listed if value in ("both", tool["name"])]
    return _with_tools(acts, lambda tools: [*tools, *chosen])


@fault(method=LIST)
def hostile_output_schema(asked: Asked, acts: Acts, value: str) -> Acts:
    """Gives `give` an output schema whose pattern takes a validator for ever; a call that gives
    `{"structuredContent": {"s": "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!"}}` sets it off."""
    schema = {"type": "object", "properties": {"s": {"type": "string", "pattern": EVIL}}}

    def change(tools: list[Any]) -> list[Any]:
        return [{**t, "outputSchema": schema} if t["name"] == "give" else t for t in tools]

    return _with_tools(acts, change)


@fault(method=LIST)
def odd_names(asked: Asked, acts: Acts, value: str) -> Acts:
    """Lists tools whose names no model may call: with dots, slashes, spaces, and very long ones."""
    names = ["a.b/c d", "a.b/c_d", "ünï", "n" * 200, "n" * 199 + "m"]
    return _with_tools(acts, lambda tools: [*tools, *map(_tool, names)])


@fault(method=LIST)
def titles(asked: Asked, acts: Acts, value: str) -> Acts:
    """Lists `titled`, `untitled` and `bare`, with and without titles, descriptions and hints."""
    hints = {"title": "Title", "readOnlyHint": True, "destructiveHint": "maybe"}
    some = [
        {"name": "titled", "description": "Words.", "annotations": hints, "inputSchema": ANY},
        {"name": "untitled", "description": "Words.", "inputSchema": ANY},
        {"name": "bare", "annotations": {"title": "Only"}, "inputSchema": ANY},
    ]
    return _with_tools(acts, lambda tools: [*tools, *some])


def _tool(name: str) -> Message:
    return {"name": name, "description": f"Named {name}.", "inputSchema": ANY}
