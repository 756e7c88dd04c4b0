"""Anthropic's messages (A0–A21)."""

from __future__ import annotations

import json
import re
import struct
from typing import Any

import jsonschema_rs

from checkers.common import decoded, is_true_to, need, nodes, only, refuse, typed, types

TOOL = (
    "name input_schema description cache_control defer_loading strict input_examples"
    " eager_input_streaming allowed_callers type"
)
BLOCKS = {"text", "image", "document", "search_result", "tool_reference", "browser_state"}
SEARCHES = {f"tool_search_tool_{kind}" for kind in ("regex", "bm25")}
STRICT_FORMATS = {
    "date-time",
    "time",
    "date",
    "duration",
    "email",
    "hostname",
    "uri",
    "ipv4",
    "ipv6",
    "uuid",
}
BOUNDS = {
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "multipleOf",
    "minLength",
    "maxLength",
}


def check(request: dict[str, Any]) -> None:
    typed(request.get("max_tokens"), int, "A20", "max_tokens")
    messages = typed(request.get("messages"), list, "A0", "messages")
    names = _tools(request.get("tools"))
    _choice(request.get("tool_choice"), names, request.get("thinking"))
    _cache_marks(request)
    _messages(messages, names)
    need(len(json.dumps(request)) <= 32 * 1024 * 1024, "A17", "request over 32 MB")


def _tools(tools: Any) -> list[str]:
    if tools is None:
        return []
    names: list[str] = []
    strict: list[dict[str, Any]] = []
    for tool in typed(tools, list, "A0", "tools"):
        typed(tool, dict, "A0", "tool")
        kind = tool.get("type") or "custom"
        if kind == "custom":
            _tool(tool)
            if tool.get("strict"):
                strict.append(tool["input_schema"])
        else:
            bare = re.sub(r"_\d{8}$", "", str(kind))
            need(bare in SEARCHES, "A1", f"type {kind!r}")
            need(tool.get("name") == bare, "A9", f"{kind} named {tool.get('name')!r}")
            need(not tool.get("defer_loading"), "A7", "the search tool is never deferred")
        names.append(tool["name"])
        if tool.get("defer_loading"):
            need(not tool.get("cache_control"), "A8", "defer_loading and cache_control")
    need(len(set(names)) == len(names), "A3", "Tool names must be unique.")
    if tools:
        some = any(not tool.get("defer_loading") for tool in tools)
        need(some, "A7", "At least one tool must have defer_loading=false")
    _strict(strict)
    return names


def _tool(tool: dict[str, Any]) -> None:
    need("function" not in tool and "parameters" not in tool, "A1", "OpenAI's shape")
    only(tool, TOOL, "A1", "tool: Extra inputs are not permitted")
    name = typed(tool.get("name"), str, "A1", "name")
    need(bool(re.fullmatch(r"[a-zA-Z0-9_-]{1,128}", name)), "A2", name)
    if "description" in tool:
        typed(tool["description"], str, "A0", "description")
    schema = typed(tool.get("input_schema"), dict, "A1", "input_schema")
    need(schema.get("type") == "object", "A4", "type object")
    banned = {"oneOf", "allOf", "anyOf"} & set(schema)
    need(not banned, "A4", f"does not support {banned} at the top level")
    try:
        jsonschema_rs.meta.validate(
            {**schema, "$schema": "https://json-schema.org/draft/2020-12/schema"}
        )
    except (jsonschema_rs.ValidationError, ValueError) as error:
        refuse("A4", f"not valid 2020-12: {str(error)[:200]}")
    for key in schema.get("properties") or {}:
        legal = re.fullmatch(r"[a-zA-Z0-9_.-]{1,64}", key)
        need(bool(legal), "A5", f"Property keys should match pattern: {key!r}")


def _strict(schemas: list[dict[str, Any]]) -> None:
    need(len(schemas) <= 20, "A6", f"{len(schemas)} strict tools")
    optional = unions = 0
    for root in schemas:
        for path, node in nodes(root):
            if node is False and path.endswith("/additionalProperties"):
                continue
            need(isinstance(node, dict), "A6", f"boolean schema at {path}")
            if "object" in types(node):
                need(node.get("additionalProperties") is False, "A6", f"open object at {path}")
                optional += len(set(node.get("properties") or ()) - set(node.get("required") or ()))
            unions += "anyOf" in node or len(types(node)) > 1
            need(not BOUNDS & set(node), "A6", f"bounds at {path}")
            need(node.get("minItems", 0) in (0, 1), "A6", "minItems")
            need(node.get("format", "date") in STRICT_FORMATS, "A6", f"format at {path}")
            need(not _is_recursive(root, node, ()), "A6", "recursion")
    need(optional <= 24, "A6", f"{optional} optional parameters")
    need(unions <= 16, "A6", f"{unions} unions")


def _is_recursive(root: Any, node: Any, within: tuple[str, ...]) -> bool:
    for _, inner in nodes(node):
        ref = inner.get("$ref") if isinstance(inner, dict) else None
        if isinstance(ref, str):
            if ref in within:
                return True
            found: Any = root
            for step in ref.split("/")[1:]:
                found = found.get(step, {}) if isinstance(found, dict) else {}
            if _is_recursive(root, found, (*within, ref)):
                return True
    return False


def _choice(choice: Any, names: list[str], thinking: Any) -> None:
    if choice is None:
        return
    typed(choice, dict, "A19", "tool_choice")
    kind = choice.get("type")
    need(kind in ("auto", "any", "tool", "none"), "A19", f"choice {kind!r}")
    if kind == "tool":
        need(choice.get("name") in names, "A19", f"unknown name {choice.get('name')!r}")
    if isinstance(thinking, dict) and thinking.get("type") == "enabled":
        need(kind not in ("any", "tool"), "A19", "forced choice with extended thinking")


def _cache_marks(request: dict[str, Any]) -> None:
    marks = 0
    waiting: list[Any] = [request.get("tools"), request.get("system"), request.get("messages")]
    while waiting:
        each = waiting.pop()
        if isinstance(each, dict):
            mark = each.get("cache_control")
            if mark is not None:
                marks += 1
                need(mark.get("type") == "ephemeral", "A18", "type of cache_control")
                need(mark.get("ttl", "5m") in ("5m", "1h"), "A18", "ttl")
                empty = each.get("type") == "text" and not each.get("text")
                need(not empty, "A18", "cannot be set for empty text blocks")
                need(each.get("type") != "thinking", "A18", "cache_control on thinking")
            waiting += [v for k, v in each.items() if k not in ("input_schema", "input")]
        elif isinstance(each, list):
            waiting += each
    need(marks <= 4, "A18", f"A maximum of 4 blocks with cache_control, found {marks}")


def _blocks(message: Any) -> list[dict[str, Any]]:
    content = message.get("content")
    if isinstance(content, str):
        need(bool(content), "A15", "text content must be non-empty")
        return [{"type": "text", "text": content}]
    blocks = typed(content, list, "A0", "content")
    need(bool(blocks), "A15", "empty content")
    for block in blocks:
        typed(block, dict, "A0", "block")
    return blocks


def _messages(messages: list[Any], names: list[str]) -> None:
    need(bool(messages), "A20", "no messages")
    turns: list[tuple[str, list[dict[str, Any]]]] = []
    roles: list[str] = []
    for message in messages:
        typed(message, dict, "A0", "message")
        only(message, "role content", "A1", "message")
        role = message.get("role")
        need(role in ("user", "assistant", "system"), "A20", f"role {role!r}")
        roles.append(role)
        if role == "system":
            _changes(message, names)
            continue
        blocks = _blocks(message)
        if turns and turns[-1][0] == role:
            turns[-1][1].extend(blocks)
        else:
            turns.append((role, list(blocks)))
    for at, role in enumerate(roles):
        if role == "system":
            after = at + 1 == len(roles) or roles[at + 1] == "assistant"
            need(at > 0 and roles[at - 1] == "user" and after, "A20", "place of a system message")
    _turns(turns, names)


def _changes(message: dict[str, Any], names: list[str]) -> None:
    content = message.get("content")
    for block in content if isinstance(content, list) else ():
        if block.get("type") in ("tool_addition", "tool_removal"):
            tool = block.get("tool") or {}
            name = tool.get("tool_name") or tool.get("name") or block.get("tool_name")
            need(name in names, "A21", f"tool_reference_unresolved: {name!r}")


def _turns(turns: list[tuple[str, list[dict[str, Any]]]], names: list[str]) -> None:
    used: set[str] = set()
    images = _images(turns)
    waiting: set[str] = set()
    for role, blocks in turns:
        if role == "assistant":
            need(not waiting, "A13", f"tool_use ids without tool_result: {waiting}")
            waiting = _assistant(blocks, used)
        else:
            _user(blocks, waiting, names)
            waiting = set()
        for block in blocks:
            _content(block, len(images))
    need(not waiting, "A13", f"tool_use ids were found without tool_result blocks: {waiting}")


def _assistant(blocks: list[dict[str, Any]], used: set[str]) -> set[str]:
    ids: set[str] = set()
    servers: set[str] = set()
    for block in blocks:
        kind = block.get("type")
        if kind == "tool_use":
            call_id = typed(block.get("id"), str, "A12", "id")
            need(
                bool(re.fullmatch(r"[a-zA-Z0-9_-]+", call_id)), "A12", "String should match pattern"
            )
            need(call_id not in used, "A12", "tool_use ids must be unique")
            typed(block.get("input"), dict, "A12", "input")
            typed(block.get("name"), str, "A12", "name")
            used.add(call_id)
            ids.add(call_id)
        elif kind == "server_tool_use":
            servers.add(block.get("id", ""))
        elif kind == "tool_search_tool_result":
            need(block.get("tool_use_id") in servers, "A11", "result without its use")
        else:
            need(kind != "tool_result", "A13", "tool_result in an assistant turn")
            need(not ids or kind in ("thinking", "redacted_thinking"), "A14", "after tool_use")
    return ids


def _user(blocks: list[dict[str, Any]], waiting: set[str], names: list[str]) -> None:
    answered: list[str] = []
    other = False
    for block in blocks:
        need(block.get("type") != "tool_use", "A13", "tool_use in a user turn")
        if block.get("type") != "tool_result":
            other = True
            continue
        need(not other, "A14", "tool_result after other content")
        use = typed(block.get("tool_use_id"), str, "A0", "tool_use_id")
        need(use in waiting, "A13", f"unexpected tool_use_id {use!r}")
        answered.append(use)
        _result(block, names)
    need(sorted(answered) == sorted(waiting), "A13", f"answered {answered} of {sorted(waiting)}")


def _result(block: dict[str, Any], names: list[str]) -> None:
    only(
        block, "type tool_use_id content is_error cache_control toolset_name", "A15", "tool_result"
    )
    content = block.get("content")
    if "content" not in block:
        return
    if isinstance(content, str):
        need(bool(content), "A15", "empty text")
        kinds = {"text"}
    else:
        need(bool(typed(content, list, "A15", "content")), "A15", "empty list")
        kinds = {typed(b, dict, "A15", "block").get("type") for b in content}
        need(kinds <= BLOCKS, "A15", f"{kinds - BLOCKS}")
        for inner in content:
            if inner["type"] == "tool_reference":
                need(inner.get("tool_name") in names, "A10", f"unknown {inner.get('tool_name')!r}")
    if block.get("is_error"):
        need(kinds <= {"text"}, "A16", "all content must be type 'text' if 'is_error' is true")


def _content(block: dict[str, Any], images: int) -> None:
    kind = block.get("type")
    if kind == "text":
        need(bool(typed(block.get("text"), str, "A0", "text")), "A15", "must be non-empty")
    elif kind == "image":
        _image(block, images)
    elif kind == "tool_result" and isinstance(block.get("content"), list):
        for inner in block["content"]:
            _content(inner, images)
    elif kind not in BLOCKS | {
        "tool_use",
        "tool_result",
        "thinking",
        "redacted_thinking",
        "server_tool_use",
        "tool_search_tool_result",
    }:
        refuse("A15", f"block {kind!r}")


def _images(turns: list[tuple[str, list[dict[str, Any]]]]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for _, blocks in turns:
        for block in blocks:
            inner = block.get("content") if block.get("type") == "tool_result" else None
            for each in [block, *(inner if isinstance(inner, list) else ())]:
                if each.get("type") == "image":
                    found.append(each)
    need(len(found) <= 600, "A17", f"{len(found)} images")
    return found


def _image(block: dict[str, Any], images: int) -> None:
    source = typed(block.get("source"), dict, "A17", "source")
    if source.get("type") in ("url", "file"):
        return
    need(source.get("type") == "base64", "A17", f"source {source.get('type')!r}")
    kind = source.get("media_type")
    allowed = ("image/png", "image/jpeg", "image/gif", "image/webp")
    need(kind in allowed, "A17", f"media type {kind!r}")
    data = decoded(source.get("data"), "A17")
    need(is_true_to(str(kind), data), "A17", "media type mismatch")
    need(len(source["data"]) <= 10 * 1024 * 1024, "A17", "over 10 MB")
    if kind == "image/png" and len(data) >= 24:
        side = max(struct.unpack(">II", data[16:24]))
        need(side <= (2_000 if images > 20 else 8_000), "A17", f"{side} pixels")
