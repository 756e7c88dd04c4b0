"""Gemini's generateContent (G0–G16)."""

from __future__ import annotations

import re
from typing import Any

from checkers.common import decoded, need, nodes, only, refuse, resolve, typed

SUBSET = {
    "type",
    "format",
    "title",
    "description",
    "nullable",
    "enum",
    "items",
    "minItems",
    "maxItems",
    "minProperties",
    "maxProperties",
    "minLength",
    "maxLength",
    "pattern",
    "minimum",
    "maximum",
    "example",
    "anyOf",
    "default",
    "properties",
    "required",
    "propertyOrdering",
}
DATA = {
    "text",
    "inlineData",
    "fileData",
    "functionCall",
    "functionResponse",
    "executableCode",
    "codeExecutionResult",
    "toolCall",
    "toolResponse",
}
BESIDE = {"thought", "thoughtSignature", "videoMetadata", "mediaResolution", "partMetadata"}
MEDIA = {"image/png", "image/jpeg", "image/webp", "application/pdf", "text/plain"}
TYPES = {"STRING", "NUMBER", "INTEGER", "BOOLEAN", "ARRAY", "OBJECT", "NULL"}
TOP = (
    "contents tools toolConfig systemInstruction generationConfig safetySettings cachedContent"
    " model serviceTier store"
)


def _camel_name(key: str) -> str:
    return re.sub(r"_([a-z])", lambda m: m[1].upper(), key)


def camel(value: Any, is_free: bool = False) -> Any:
    """Field names in one spelling: both are read (G1). Free maps keep their keys."""
    if isinstance(value, list):
        return [camel(v, is_free) for v in value]
    if not isinstance(value, dict):
        return value
    if is_free:
        return {k: camel(v, True) for k, v in value.items()}
    result: dict[str, Any] = {}
    for key, inner in value.items():
        name = _camel_name(key)
        free = name in ("args", "response", "properties", "parametersJsonSchema", "parameters")
        result[name] = camel(inner, free)
    return result


def check(request: dict[str, Any], model: str = "gemini-3-pro") -> None:
    is_three = "gemini-3" in model
    request = camel(request)
    only(request, TOP, "G1", "Unknown name: Cannot find field")
    if request.get("cachedContent"):
        for key in ("tools", "toolConfig", "systemInstruction"):
            need(key not in request, "G16", f"{key} with cached content")
    names = _tools(request.get("tools") or [])
    _config(request.get("toolConfig"), names)
    contents = typed(request.get("contents"), list, "G0", "contents")
    _contents(contents, is_three)


def _tools(tools: Any) -> list[str]:
    names: list[str] = []
    for tool in typed(tools, list, "G0", "tools"):
        typed(tool, dict, "G0", "tool")
        only(tool, "functionDeclarations googleSearch codeExecution urlContext", "G1", "tool")
        for declared in typed(tool.get("functionDeclarations", []), list, "G0", "declarations"):
            names.append(_declaration(typed(declared, dict, "G0", "declaration")))
    need(len(names) <= 512, "G3", f"{len(names)} declarations")
    need(len(set(names)) == len(names), "G3", "duplicate declaration")
    return names


def _declaration(declared: dict[str, Any]) -> str:
    keys = "name description parameters parametersJsonSchema response responseJsonSchema behavior"
    only(declared, keys, "G1", "declaration")
    name = typed(declared.get("name"), str, "G0", "name")
    legal = re.fullmatch(r"[A-Za-z_][A-Za-z0-9_.:-]{0,127}", name)
    need(bool(legal), "G2", f"Invalid function name {name!r}")
    both = "parameters" in declared and "parametersJsonSchema" in declared
    need(not both, "G5", "parameters and parametersJsonSchema")
    if "parameters" in declared:
        _subset(declared["parameters"], "", root=True)
    if "parametersJsonSchema" in declared:
        _json_schema(declared["parametersJsonSchema"])
    return name


def _subset(node: Any, path: str, root: bool = False) -> None:
    typed(node, dict, "G0", f"schema at {path}")
    node = {_camel_name(key): value for key, value in node.items()}  # both are read (G1)
    unknown = set(node) - SUBSET
    need(not unknown, "G6", f"Unknown name {sorted(unknown)} at {path}")
    kind = node.get("type")
    need(not isinstance(kind, list), "G7", f"a list of types at {path}")
    need(kind is not None or "anyOf" in node, "G7", f"no type at {path}")
    kind = str(kind or "").upper()
    need(kind in TYPES or not kind, "G7", f"type {kind} at {path}")
    need(kind != "NULL", "G7", f"null is nullable at {path}")
    if "enum" in node:
        need(kind == "STRING", "G7", f"enum: only allowed for STRING type at {path}")
        need(all(isinstance(v, str) and v for v in node["enum"]), "G7", "(TYPE_STRING)")
    if kind == "ARRAY":
        need("items" in node, "G7", f"items: missing field at {path}")
    if root:
        need(kind == "OBJECT", "G7", "root must be OBJECT")
        need(bool(node.get("properties")), "G7", "should be non-empty for OBJECT type")
    if "properties" in node:
        need(bool(node["properties"]), "G7", f"should be non-empty for OBJECT type at {path}")
    missing = set(node.get("required") or ()) - set(node.get("properties") or ())
    need(not missing, "G7", f"required {missing} at {path}")
    if "items" in node:
        _subset(node["items"], f"{path}/items")
    for at, inner in enumerate(node.get("anyOf") or ()):
        _subset(inner, f"{path}/anyOf/{at}")
    for name, inner in (node.get("properties") or {}).items():
        _subset(inner, f"{path}/{name}")


def _json_schema(root: Any) -> None:
    typed(root, dict, "G0", "parametersJsonSchema")
    need(root.get("type") == "object", "G8", "an object at the root")
    for path, node in nodes(root):
        if isinstance(node, dict) and "$ref" in node:
            beside = set(node) - {"$ref", "$defs", "description", "default"}
            need(not beside, "G8", f"$ref set alongside unsupported fields {beside} at {path}")
            need(resolve(root, node["$ref"]) is not None, "G8", f"{node['$ref']} at {path}")


def _config(config: Any, names: list[str]) -> None:
    calling = (config or {}).get("functionCallingConfig")
    if calling is None:
        return
    need(bool(names), "G15", "config without declarations")
    mode = calling.get("mode", "AUTO")
    need(mode in ("AUTO", "ANY", "NONE", "VALIDATED"), "G15", f"mode {mode!r}")
    allowed = calling.get("allowedFunctionNames")
    if allowed:
        need(mode in ("ANY", "VALIDATED"), "G15", "allowed names in this mode")
        need(set(allowed) <= set(names), "G15", f"undeclared {allowed}")


def _contents(contents: list[Any], is_three: bool) -> None:
    need(bool(contents), "G1", "no contents")
    waiting: list[dict[str, Any]] = []
    before = ""
    starts = [at for at, each in enumerate(contents) if _is_prompt(each)]
    current = starts[-1] if starts else 0
    for at, content in enumerate(contents):
        typed(content, dict, "G0", "content")
        only(content, "role parts", "G1", "content")
        role = content.get("role", "user")
        need(role in ("user", "model"), "G1", f"role {role!r}")
        parts = typed(content.get("parts"), list, "G0", "parts")
        need(bool(parts), "G1", "empty parts")
        calls, answers = _parts(parts, role, is_three)
        if waiting:
            _match(waiting, answers)
        else:
            need(not answers, "G11", "a response without a call")
        waiting = calls
        if calls:
            need(
                before in ("user",), "G11", "function call turn comes immediately after a user turn"
            )
            if is_three and at > current:
                first = next(p for p in parts if "functionCall" in p)
                need(bool(first.get("thoughtSignature")), "G12", "missing a thought_signature")
        before = role
    need(not waiting, "G11", "number of function response parts is equal to … calls")


def _is_prompt(content: Any) -> bool:
    parts = content.get("parts") or []
    return content.get("role", "user") == "user" and not any(
        "functionResponse" in part for part in parts
    )


def _parts(
    parts: list[Any], role: str, is_three: bool
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    calls: list[dict[str, Any]] = []
    answers: list[dict[str, Any]] = []
    for part in parts:
        typed(part, dict, "G0", "part")
        unknown = set(part) - DATA - BESIDE
        need(not unknown, "G1", f"Unknown name {unknown}")
        need(len(set(part) & DATA) == 1, "G1", f"one data field a part, not {sorted(part)}")
        if "text" in part:
            typed(part["text"], str, "G0", "text")
        if "inlineData" in part:
            decoded(part["inlineData"].get("data"), "G0")
        if "functionCall" in part:
            need(role == "model", "G9", "a call in a user turn")
            call = typed(part["functionCall"], dict, "G9", "functionCall")
            only(call, "name args id", "G9", "functionCall")
            typed(call.get("args", {}), dict, "G9", "args")
            typed(call.get("name"), str, "G9", "name")
            calls.append(call)
        if "functionResponse" in part:
            answer = typed(part["functionResponse"], dict, "G10", "functionResponse")
            _answer(answer, is_three)
            answers.append(answer)
    return calls, answers


def _answer(answer: dict[str, Any], is_three: bool) -> None:
    only(answer, "name response id parts willContinue scheduling", "G10", "functionResponse")
    need(bool(answer.get("name")), "G10", "name is empty")
    response = typed(answer.get("response"), dict, "G10", "response")
    _no_reference(response)
    if "parts" in answer:
        need(is_three, "G13", "function_response.parts is not supported for this model")
        for part in typed(answer["parts"], list, "G13", "parts"):
            need(set(part) <= {"inlineData", "fileData"} and bool(part), "G13", f"{sorted(part)}")
            data = part.get("inlineData") or part.get("fileData")
            need(data.get("mimeType") in MEDIA, "G13", f"{data.get('mimeType')!r}")
            if "inlineData" in part:
                decoded(data.get("data"), "G13")


def _no_reference(value: Any) -> None:
    if isinstance(value, dict):
        need("$ref" not in value, "G14", "referenced name does not match display_name")
        for inner in value.values():
            _no_reference(inner)
    elif isinstance(value, list):
        for inner in value:
            _no_reference(inner)


def _match(calls: list[dict[str, Any]], answers: list[dict[str, Any]]) -> None:
    need(len(calls) == len(answers), "G11", f"{len(answers)} responses to {len(calls)} calls")
    need(
        sorted(c["name"] for c in calls) == sorted(a["name"] for a in answers),
        "G11",
        "names differ",
    )
    given = {c["id"] for c in calls if c.get("id")}
    for answer in answers:
        if answer.get("id"):
            need(answer["id"] in given, "G11", f"id {answer['id']!r} of no call")
    if given:
        need({a.get("id") for a in answers} >= given, "G11", "ids without an answer")


__all__ = ["check", "refuse"]
