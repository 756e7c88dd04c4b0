"""OpenAI: chat completions and responses (O0–O24)."""

from __future__ import annotations

import json
import re
from typing import Any

from checkers.common import Refused, decoded, need, nodes, only, refuse, resolve, typed, types

FORMATS = {"date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"}
NOT_STRICT = {
    "allOf",
    "oneOf",
    "not",
    "if",
    "then",
    "else",
    "dependentRequired",
    "dependentSchemas",
    "dependencies",
    "patternProperties",
    "unevaluatedProperties",
    "unevaluatedItems",
    "propertyNames",
    "minProperties",
    "maxProperties",
    "contains",
    "minContains",
    "maxContains",
    "uniqueItems",
}
IMAGES = {"image/png", "image/jpeg", "image/webp", "image/gif"}


def check_chat(request: dict[str, Any]) -> None:
    messages = typed(request.get("messages"), list, "O0", "messages")
    names: list[str] = []
    if "tools" in request:
        tools = typed(request["tools"], list, "O0", "tools")
        need(0 < len(tools) <= 128, "O3", f"{len(tools)} tools")
        for tool in tools:
            typed(tool, dict, "O0", "tool")
            need(set(tool) == {"type", "function"}, "O1", f"chat tool keys {sorted(tool)}")
            need(tool["type"] == "function", "O1", "tool type")
            function = typed(tool["function"], dict, "O0", "function")
            only(function, "name description parameters strict", "O1", "function")
            names.append(_function(function))
        _distinct(names)
    _choice(request.get("tool_choice"), names, "chat")
    _chat_messages(messages)


def _function(function: dict[str, Any]) -> str:
    name = typed(function.get("name"), str, "O0", "name")
    need(bool(re.fullmatch(r"[A-Za-z0-9_-]{1,64}", name)), "O2", name)
    if function.get("description") is not None:
        typed(function["description"], str, "O0", "description")
    strict = function.get("strict")
    if strict is not None:
        typed(strict, bool, "O0", "strict")
    if function.get("parameters") is not None:
        schema(typed(function["parameters"], dict, "O0", "parameters"), bool(strict))
    return name


def _distinct(names: list[str]) -> None:
    need(len(set(names)) == len(names), "O5", "two tools of one name")


def schema(root: dict[str, Any], strict: bool) -> None:
    need(root.get("type") == "object", "O6", "schema must have type 'object'")
    banned = {"oneOf", "anyOf", "allOf", "enum", "const", "not"} & set(root)
    need(not banned, "O6", f"{banned} at the top level")
    need(isinstance(root.get("properties"), dict), "O6", "object schema missing properties")
    for path, node in nodes(root):
        if "array" in types(node):
            need("items" in node, "O7", f"array schema missing items at {path}")
    if strict:
        _strict(root)


def _strict(root: dict[str, Any]) -> None:
    names, enums, size = 0, 0, 0
    for path, node in nodes(root):
        if node is False and path.endswith("/additionalProperties"):
            continue
        need(isinstance(node, dict), "O11", f"boolean schema at {path}")
        banned = NOT_STRICT & set(node)
        need(not banned, "O9", f"{sorted(banned)} is not permitted at {path}")
        need(node.get("format", "date") in FORMATS, "O9", f"{node.get('format')!r} is not a format")
        if "$ref" in node:
            need(set(node) <= {"$ref", "$defs"}, "O11", f"$ref with siblings at {path}")
            need(resolve(root, node["$ref"]) is not None, "O11", f"{node['$ref']} does not resolve")
            continue
        said = bool({"type", "anyOf", "enum", "const"} & set(node))
        need(said, "O11", f"schema must have a 'type' key at {path}")
        if "object" in types(node) or "properties" in node:
            closed = node.get("additionalProperties") is False
            need(closed, "O8", f"additionalProperties false at {path}")
            properties = node.get("properties") or {}
            missing = set(properties) - set(node.get("required") or ())
            need(not missing, "O8", f"required: missing {missing} at {path}")
            names += len(properties)
            size += sum(map(len, properties))
        values = node.get("enum") or ()
        enums += len(values)
        text = sum(len(v) for v in values if isinstance(v, str))
        size += text
        need(len(values) <= 250 or text <= 15_000, "O10", "a long enum")
    need(names <= 5_000, "O10", f"{names} properties")
    need(enums <= 1_000, "O10", f"{enums} enum values")
    need(size <= 120_000, "O10", f"{size} characters")
    need(_levels(root) <= 10, "O10", f"{_levels(root)} levels of nesting")


def _levels(node: Any) -> int:
    """Object levels; references are not followed (how levels count is unknown)."""
    if not isinstance(node, dict):
        return 0
    own = 1 if "object" in types(node) else 0
    inner = [
        *(node.get("properties") or {}).values(),
        node.get("items"),
        *(node.get("anyOf") or ()),
    ]
    return own + max(map(_levels, inner), default=0)


def _choice(choice: Any, names: list[str], api: str, natives: tuple[str, ...] = ()) -> None:
    if choice is None:
        return
    if isinstance(choice, str):
        need(choice in ("none", "auto", "required"), "O18", choice)
        return
    typed(choice, dict, "O18", "tool_choice")
    if choice.get("type") == "allowed_tools":
        spec = choice.get("allowed_tools", choice)
        chosen = [t.get("function", t).get("name") for t in spec.get("tools", ())]
    elif choice.get("type") == "function":
        chosen = [choice.get("function", {}).get("name") if api == "chat" else choice.get("name")]
    else:
        refuse("O18", f"choice {choice.get('type')}")
    for name in chosen:
        need(name in names and name not in natives, "O18", f"unknown or deferred name {name!r}")


def _chat_messages(messages: list[Any]) -> None:
    waiting: set[str] = set()
    for message in messages:
        typed(message, dict, "O0", "message")
        role, content = message.get("role"), message.get("content")
        if role == "tool":
            only(message, "role tool_call_id content", "O17", "tool message")
            call_id = typed(message.get("tool_call_id"), str, "O0", "tool_call_id")
            need(call_id in waiting, "O13", "role 'tool' must be a response to a preceding message")
            waiting.discard(call_id)
            _tool_content(content)
            continue
        need(not waiting, "O13", f"must be followed by tool messages responding to {waiting}")
        if role == "assistant":
            waiting = _calls(message, content)
        elif role in ("user", "system", "developer"):
            _user_content(content, role)
        else:
            refuse("O0", f"role {role!r}")
    need(not waiting, "O13", f"must be followed by tool messages responding to {waiting}")


def _calls(message: dict[str, Any], content: Any) -> set[str]:
    ids: list[str] = []
    if "tool_calls" in message:
        calls = typed(message["tool_calls"], list, "O12", "tool_calls")
        need(bool(calls), "O3", "empty tool_calls")
        for call in calls:
            need(set(call) == {"id", "type", "function"}, "O12", f"call keys {sorted(call)}")
            need(call["type"] == "function", "O12", "call type")
            function = typed(call["function"], dict, "O12", "call function")
            need(set(function) == {"name", "arguments"}, "O12", "call function keys")
            need(bool(re.fullmatch(r"[A-Za-z0-9_-]{1,64}", function["name"])), "O2", "call name")
            _arguments(function["arguments"])
            ids.append(typed(call["id"], str, "O12", "call id"))
    need(content is not None or bool(ids), "O12", "content null without calls")
    if content is not None:
        typed(content, (str, list), "O0", "content")
    need(len(set(ids)) == len(ids), "O14", "ids not unique in the message")
    return set(ids)


def _arguments(text: Any) -> None:
    """A string; that it holds an object is only a note there, but ours always does (AR02)."""
    typed(text, str, "O12", "arguments")
    try:
        need(isinstance(json.loads(text), dict), "O12", f"arguments {text[:40]!r}")
    except ValueError:
        refuse("O12", f"arguments {text[:40]!r}")


def _tool_content(content: Any) -> None:
    if isinstance(content, str):
        return
    for part in typed(content, list, "O15", "tool content"):
        typed(part, dict, "O15", "tool content part")
        need(part.get("type") == "text", "O15", "images are only allowed for role 'user'")
        typed(part.get("text"), str, "O0", "text")


def _user_content(content: Any, role: str) -> None:
    if isinstance(content, str):
        return
    for part in typed(content, list, "O0", "content"):
        if part.get("type") == "text":
            typed(part.get("text"), str, "O0", "text")
        elif part.get("type") == "image_url":
            need(role == "user", "O15", "image outside a user message")
            _image(typed(part.get("image_url"), dict, "O16", "image_url").get("url"))
        else:
            refuse("O15", f"part {part.get('type')!r}")


def _image(url: Any) -> None:
    typed(url, str, "O16", "image url")
    if url.startswith(("http://", "https://")):
        return
    found = re.fullmatch(r"data:([a-z/+.-]+);base64,(.+)", url, re.S)
    need(found is not None, "O16", "neither a URL nor a data URL")
    assert found
    need(found[1] in IMAGES, "O16", found[1])
    decoded(found[2], "O16")


# -- responses ------------------------------------------------------------------------------------


def check_responses(request: dict[str, Any]) -> None:
    names: list[str] = []
    late: list[str] = []
    tools = request.get("tools")
    if tools is not None:
        typed(tools, list, "O0", "tools")
        need(bool(tools), "O3", "empty tools")
        for tool in tools:
            _tool(typed(tool, dict, "O0", "tool"), names, late)
        _distinct(names)
        search = any(tool.get("type") == "tool_search" for tool in tools)
        need(search or not late, "O20", "Deferred tools require tools.tool_search")
    _choice(request.get("tool_choice"), names, "responses", tuple(late))
    items = request.get("input")
    if isinstance(items, str):
        return
    free = bool(request.get("previous_response_id") or request.get("conversation"))
    _items(typed(items, list, "O0", "input"), free)


def _tool(tool: dict[str, Any], names: list[str], late: list[str], inside: bool = False) -> None:
    kind = tool.get("type")
    if kind == "function":
        need("function" not in tool, "O1", "nested function in responses")
        keys = "type name description parameters strict defer_loading output_schema allowed_callers"
        only(tool, keys, "O1", "function")
        need(inside or {"parameters", "strict"} <= set(tool), "O1", "parameters and strict")
        name = _function({k: v for k, v in tool.items() if k not in keys.split()[5:] + ["type"]})
        names.append(name)
        if tool.get("defer_loading"):
            late.append(name)
    elif kind == "tool_search":
        need(not inside, "O21", "tool_search in a namespace")
        only(tool, "type execution description parameters", "O22", "tool_search")
        if tool.get("execution") == "client":
            need(bool(tool.get("description")), "O22", "client search without description")
            typed(tool.get("parameters"), dict, "O22", "client search parameters")
            schema(tool["parameters"], False)
    elif kind == "namespace":
        need("defer_loading" not in tool, "O20", "the flag belongs on the functions")
        only(tool, "type name description tools", "O21", "namespace")
        for key in ("name", "description"):
            typed(tool.get(key), str, "O21", key)
        own: list[str] = []
        for inner in typed(tool.get("tools"), list, "O21", "tools"):
            need(inner.get("type") in ("function", "custom"), "O21", "kind in a namespace")
            _tool(inner, own, late, inside=True)
        _distinct(own)
    else:
        refuse("O1", f"tool type {kind!r}")


def _items(items: list[Any], free: bool) -> None:
    open_calls: dict[str, str] = {}
    seen: set[str] = set()
    for item in items:
        typed(item, dict, "O0", "item")
        kind = item.get("type", "message" if "role" in item else None)
        if kind == "message":
            need(item["role"] != "tool", "O12", "role tool in responses")
            _message(item)
        elif kind == "function_call":
            keys = "type id call_id name arguments status namespace caller"
            only(item, keys, "O12", "function_call")
            typed(item.get("name"), str, "O12", "name")
            _arguments(item.get("arguments"))
            _opened(item, open_calls, seen)
        elif kind == "function_call_output":
            only(item, "type id call_id output status name namespace caller", "O17", "output")
            status = item.get("status", "completed")
            need(status in ("in_progress", "completed", "incomplete"), "O17", f"status {status}")
            _output(item.get("output"))
            _closed(item, "function_call", open_calls, free)
        elif kind == "tool_search_call":
            typed(item.get("arguments"), dict, "O22", "search arguments")
            if item.get("execution") == "client":
                _opened(item, open_calls, seen)
            else:
                need(item.get("call_id") is None, "O22", "server search with a call id")
        elif kind == "tool_search_output":
            for tool in typed(item.get("tools"), list, "O22", "tools"):
                _tool(typed(tool, dict, "O22", "tool"), [], [])
            if item.get("execution") == "client":
                _closed(item, "tool_search_call", open_calls, free)
        elif kind == "additional_tools":
            need(item.get("role") == "developer", "O23", "additional_tools role")
            for tool in typed(item.get("tools"), list, "O23", "tools"):
                _tool(tool, [], [])
        elif kind != "reasoning":
            refuse("O0", f"item {kind!r}")
    need(not open_calls, "O19", f"No tool output found for function call {sorted(open_calls)}")


def _opened(item: dict[str, Any], open_calls: dict[str, str], seen: set[str]) -> None:
    call_id = typed(item.get("call_id"), str, "O14", "call_id")
    need(0 < len(call_id) <= 64, "O14", "string too long")
    need(call_id not in seen, "O14", "ids not unique")
    seen.add(call_id)
    open_calls[call_id] = item["type"]


def _closed(item: dict[str, Any], kind: str, open_calls: dict[str, str], free: bool) -> None:
    found = open_calls.pop(typed(item.get("call_id"), str, "O0", "call_id"), None)
    if found is None and free:
        return
    need(found == kind, "O19", f"No tool call found for {item['type']}: {found}")


def _message(item: dict[str, Any]) -> None:
    content = item.get("content")
    if isinstance(content, str):
        return
    allowed = {"output_text", "refusal"} if item["role"] == "assistant" else {"input_text"}
    if item["role"] == "user":
        allowed |= {"input_image", "input_file"}
    for part in typed(content, list, "O0", "content"):
        need(part.get("type") in allowed, "O15", f"part {part.get('type')!r}")
        _response_part(part)


def _output(output: Any) -> None:
    if isinstance(output, str):
        return
    for part in typed(output, list, "O15", "output"):
        kind = typed(part, dict, "O15", "output part").get("type")
        need(kind in ("input_text", "input_image", "input_file"), "O15", f"part {kind!r}")
        _response_part(part)


def _response_part(part: dict[str, Any]) -> None:
    if "text" in part:
        typed(part["text"], str, "O0", "text")
    if part["type"] == "input_image":
        _image(part.get("image_url"))
        need(part.get("detail", "auto") in ("low", "high", "auto", "original"), "O16", "detail")


__all__ = ["Refused", "check_chat", "check_responses", "schema"]
