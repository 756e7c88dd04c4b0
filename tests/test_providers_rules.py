"""The checkers themselves: for every rule, one whole request that breaks it and is refused by it.

The id of the rule is the id of the case. Rules marked ° in the source (O4, O24, A22, G4) are notes
only; A20's and A14's unconfirmed halves are checked as written there.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest

from checkers import anthropic, gemini, openai
from checkers.common import Refused

PNG = "iVBORw0KGgo="
Edit = Callable[[dict[str, Any]], object]


def chat() -> dict[str, Any]:
    call = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    parameters = {
        "type": "object",
        "properties": {"a": {"type": "string"}},
        "required": ["a"],
        "additionalProperties": False,
    }
    return {
        "tools": [
            {
                "type": "function",
                "function": {"name": "f", "parameters": parameters, "strict": True},
            },
            {
                "type": "function",
                "function": {"name": "g", "parameters": copy.deepcopy(parameters)},
            },
        ],
        "messages": [
            {"role": "user", "content": "hi"},
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "c1", "content": "1"},
            {
                "role": "user",
                "content": [
                    {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PNG}"}}
                ],
            },
        ],
    }


def responses() -> dict[str, Any]:
    empty = {"type": "object", "properties": {}}
    return {
        "tools": [
            {"type": "function", "name": "f", "parameters": empty, "strict": False},
            {
                "type": "function",
                "name": "late",
                "parameters": empty,
                "strict": False,
                "defer_loading": True,
            },
            {
                "type": "tool_search",
                "execution": "client",
                "description": "d",
                "parameters": empty,
            },
            {"type": "namespace", "name": "n", "description": "d", "tools": []},
        ],
        "input": [
            {"role": "user", "content": "hi"},
            {"type": "function_call", "call_id": "c1", "name": "f", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "c1", "output": "1"},
            {"type": "tool_search_call", "call_id": "s1", "execution": "client", "arguments": {}},
            {"type": "tool_search_output", "call_id": "s1", "execution": "client", "tools": []},
            {"type": "additional_tools", "role": "developer", "tools": []},
        ],
    }


def messages() -> dict[str, Any]:
    schema = {"type": "object", "properties": {"a": {"type": "string"}}}
    image = {"type": "base64", "media_type": "image/png", "data": PNG}
    return {
        "max_tokens": 9,
        "tools": [
            {"name": "f", "input_schema": schema},
            {"name": "late", "input_schema": copy.deepcopy(schema), "defer_loading": True},
            {"type": "tool_search_tool_bm25_20251119", "name": "tool_search_tool_bm25"},
        ],
        "messages": [
            {"role": "user", "content": "hi"},
            {
                "role": "assistant",
                "content": [
                    {"type": "text", "text": "so"},
                    {"type": "tool_use", "id": "c1", "name": "f", "input": {}},
                ],
            },
            {
                "role": "user",
                "content": [
                    {
                        "type": "tool_result",
                        "tool_use_id": "c1",
                        "content": [{"type": "image", "source": image}],
                    },
                    {"type": "text", "text": "go on"},
                ],
            },
        ],
    }


def contents() -> dict[str, Any]:
    schema = {"type": "object", "properties": {"a": {"type": "string"}}}
    return {
        "tools": [
            {
                "functionDeclarations": [
                    {"name": "f", "parametersJsonSchema": schema},
                    {"name": "g", "parameters": copy.deepcopy(schema)},
                ]
            }
        ],
        "contents": [
            {"role": "user", "parts": [{"text": "hi"}]},
            {
                "role": "model",
                "parts": [
                    {
                        "functionCall": {"name": "f", "args": {}, "id": "1"},
                        "thoughtSignature": "YQ==",
                    }
                ],
            },
            {
                "role": "user",
                "parts": [
                    {"functionResponse": {"name": "f", "id": "1", "response": {"output": 1}}}
                ],
            },
        ],
    }


def parameters(request: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = request["tools"][0]["function"]["parameters"]
    return found


def prop(request: dict[str, Any], schema: dict[str, Any]) -> None:
    parameters(request)["properties"]["a"] = schema


def nest(request: dict[str, Any], levels: int) -> None:
    node: dict[str, Any] = {"type": "string"}
    for _ in range(levels):
        node = {
            "type": "object",
            "properties": {"x": node},
            "required": ["x"],
            "additionalProperties": False,
        }
    prop(request, node)


def call_of(request: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = request["messages"][1]["tool_calls"][0]
    return found


CHAT: list[tuple[str, Edit]] = [
    ("O0", lambda r: r["messages"][0].update(content=3)),
    ("O1", lambda r: r["tools"].__setitem__(0, {"type": "function", "name": "f"})),
    ("O1", lambda r: r["tools"][0]["function"].update(annotations={})),
    ("O2", lambda r: r["tools"][0]["function"].update(name="a.b")),
    ("O2", lambda r: r["tools"][0]["function"].update(name="a" * 65)),
    ("O3", lambda r: r.update(tools=[])),
    ("O3", lambda r: r.update(tools=r["tools"] * 65)),
    ("O3", lambda r: r["messages"][1].update(tool_calls=[], content="x")),
    ("O5", lambda r: r["tools"][1]["function"].update(name="f")),
    ("O6", lambda r: parameters(r).update(type="string")),
    ("O6", lambda r: parameters(r).update(anyOf=[{}])),
    ("O6", lambda r: parameters(r).pop("properties")),
    ("O7", lambda r: prop(r, {"type": ["array", "null"]})),
    ("O8", lambda r: parameters(r).pop("additionalProperties")),
    ("O8", lambda r: parameters(r).update(required=[])),
    ("O9", lambda r: prop(r, {"type": "string", "oneOf": []})),
    ("O9", lambda r: prop(r, {"type": "string", "format": "uri"})),
    ("O10", lambda r: nest(r, 11)),
    ("O10", lambda r: prop(r, {"type": "string", "enum": [str(i) for i in range(1_001)]})),
    ("O11", lambda r: prop(r, {"description": "x"})),
    ("O11", lambda r: prop(r, {"$ref": "#/properties/a", "description": "x"})),
    ("O11", lambda r: prop(r, {"$ref": "#/$defs/no"})),
    ("O12", lambda r: call_of(r)["function"].update(arguments={})),
    ("O12", lambda r: r["messages"].append({"role": "assistant", "content": None})),
    ("O13", lambda r: r["messages"].pop(2)),
    ("O13", lambda r: r["messages"].pop(1)),
    ("O14", lambda r: r["messages"][1]["tool_calls"].append(copy.deepcopy(call_of(r)))),
    ("O15", lambda r: r["messages"][2].update(content=[{"type": "image_url"}])),
    ("O16", lambda r: r["messages"][3]["content"][0]["image_url"].update(url=PNG)),
    ("O17", lambda r: r["messages"][2].update(is_error=True)),
    ("O18", lambda r: r.update(tool_choice={"type": "function", "function": {"name": "no"}})),
    ("O18", lambda r: r.update(tool_choice="any")),
]
RESPONSES: list[tuple[str, Edit]] = [
    ("O0", lambda r: r["input"].append(3)),
    ("O1", lambda r: r["tools"][0].update(function={})),
    ("O1", lambda r: r["tools"][0].pop("strict")),
    ("O12", lambda r: r["input"].append({"role": "tool", "content": "x"})),
    ("O12", lambda r: r["input"][1].update(arguments={})),
    ("O14", lambda r: r["input"][1].update(call_id="x" * 65)),
    ("O15", lambda r: r["input"][2].update(output={"a": 1})),
    ("O16", lambda r: r["input"][2].update(output=[{"type": "input_image", "image_url": PNG}])),
    ("O17", lambda r: r["input"][2].update(status="failed")),
    ("O18", lambda r: r.update(tool_choice={"type": "function", "name": "late"})),
    ("O19", lambda r: r["input"].pop(2)),
    ("O19", lambda r: r["input"].pop(1)),
    ("O19", lambda r: r["input"][3].update(call_id="c9")),
    ("O20", lambda r: r["tools"].pop(2)),
    ("O20", lambda r: r["tools"][3].update(defer_loading=True)),
    ("O21", lambda r: r["tools"][3].pop("description")),
    ("O21", lambda r: r["tools"][3].update(tools=[{"type": "tool_search"}])),
    ("O22", lambda r: r["tools"][2].pop("description")),
    ("O22", lambda r: r["input"][3].update(arguments="{}")),
    ("O23", lambda r: r["input"][5].update(role="user")),
]


def tool(request: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = request["tools"][0]
    return found


def answer(request: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = request["messages"][2]["content"][0]
    return found


def strict(request: dict[str, Any], **schema: Any) -> None:
    base = {"type": "object", "properties": {}, "additionalProperties": False}
    tool(request).update(strict=True, input_schema={**base, **schema})


def marks(request: dict[str, Any]) -> None:
    request["system"] = [
        {"type": "text", "text": "x", "cache_control": {"type": "ephemeral"}} for _ in range(5)
    ]


ANTHROPIC: list[tuple[str, Edit]] = [
    ("A0", lambda r: r.update(messages={})),
    ("A1", lambda r: tool(r).update(annotations={})),
    ("A1", lambda r: tool(r).update(parameters={})),
    ("A2", lambda r: tool(r).update(name="a.b")),
    ("A3", lambda r: r["tools"][1].update(name="f")),
    ("A4", lambda r: tool(r)["input_schema"].update(anyOf=[{}])),
    ("A4", lambda r: tool(r)["input_schema"].pop("type")),
    ("A4", lambda r: tool(r)["input_schema"]["properties"].update(a={"type": "float"})),
    ("A5", lambda r: tool(r)["input_schema"]["properties"].update({"user@id": {}})),
    ("A6", lambda r: strict(r, additionalProperties=True)),
    ("A6", lambda r: strict(r, properties={str(i): {"type": "string"} for i in range(25)})),
    ("A6", lambda r: strict(r, properties={"a": {"type": "integer", "minimum": 1}})),
    ("A7", lambda r: r.update(tools=[r["tools"][1]])),
    ("A7", lambda r: r["tools"][2].update(defer_loading=True)),
    ("A8", lambda r: r["tools"][1].update(cache_control={"type": "ephemeral"})),
    ("A9", lambda r: r["tools"][2].update(name="search")),
    (
        "A10",
        lambda r: answer(r).update(content=[{"type": "tool_reference", "tool_name": "no"}]),
    ),
    (
        "A11",
        lambda r: r["messages"][1]["content"].insert(
            0, {"type": "tool_search_tool_result", "tool_use_id": "s1"}
        ),
    ),
    ("A12", lambda r: r["messages"][1]["content"][1].update(id="a.b")),
    ("A12", lambda r: r["messages"][1]["content"][1].update(input="{}")),
    ("A12", lambda r: r["messages"].extend(copy.deepcopy(r["messages"][1:3]))),
    ("A13", lambda r: r["messages"][2]["content"].pop(0)),
    ("A13", lambda r: answer(r).update(tool_use_id="c9")),
    ("A13", lambda r: r["messages"][2]["content"].insert(0, copy.deepcopy(answer(r)))),
    ("A14", lambda r: r["messages"][2]["content"].reverse()),
    ("A14", lambda r: r["messages"][1]["content"].reverse()),
    ("A15", lambda r: answer(r).update(content=[])),
    ("A15", lambda r: answer(r).update(content=[{"type": "text", "text": ""}])),
    ("A15", lambda r: answer(r).update(content=[{"type": "audio"}])),
    ("A15", lambda r: answer(r).update(content={"a": 1})),
    ("A16", lambda r: answer(r).update(is_error=True)),
    ("A17", lambda r: answer(r)["content"][0]["source"].update(media_type="image/jpeg")),
    ("A17", lambda r: answer(r)["content"][0]["source"].update(media_type="image/bmp")),
    ("A18", marks),
    ("A18", lambda r: tool(r).update(cache_control={"type": "ephemeral", "ttl": "2h"})),
    ("A19", lambda r: r.update(tool_choice="auto")),
    ("A19", lambda r: r.update(tool_choice={"type": "tool", "name": "no"})),
    ("A19", lambda r: r.update(tool_choice={"type": "any"}, thinking={"type": "enabled"})),
    ("A20", lambda r: r.pop("max_tokens") and r.update(max_tokens="9")),
    ("A20", lambda r: r["messages"][0].update(role="tool")),
    ("A20", lambda r: r["messages"].insert(0, {"role": "system", "content": "x"})),
    (
        "A21",
        lambda r: r["messages"].append(
            {"role": "system", "content": [{"type": "tool_addition", "tool_name": "no"}]}
        ),
    ),
]


def declared(request: dict[str, Any], at: int = 0) -> dict[str, Any]:
    found: dict[str, Any] = request["tools"][0]["functionDeclarations"][at]
    return found


def subset(request: dict[str, Any], schema: dict[str, Any]) -> None:
    declared(request, 1)["parameters"]["properties"]["a"] = schema


def response(request: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = request["contents"][2]["parts"][0]["functionResponse"]
    return found


def calling(**config: Any) -> dict[str, Any]:
    return {"functionCallingConfig": config}


GEMINI: list[tuple[str, Edit]] = [
    ("G0", lambda r: r["contents"][0]["parts"][0].update(text=3)),
    ("G1", lambda r: r.update(messages=[])),
    ("G1", lambda r: r["contents"][0].update(parts=[])),
    ("G1", lambda r: r["contents"][0]["parts"][0].update(inlineData={"data": ""})),
    ("G1", lambda r: r["contents"][0].update(role="tool")),
    ("G2", lambda r: declared(r).update(name="1f")),
    ("G2", lambda r: declared(r).update(name="a" * 129)),
    ("G3", lambda r: declared(r).update(name="g")),
    (
        "G3",
        lambda r: r["tools"][0].update(
            functionDeclarations=[{"name": f"f{i}"} for i in range(513)]
        ),
    ),
    ("G5", lambda r: declared(r).update(parameters={"type": "object"})),
    ("G6", lambda r: subset(r, {"type": "string", "const": "x"})),
    ("G6", lambda r: declared(r, 1)["parameters"].update({"$schema": "x"})),
    ("G7", lambda r: subset(r, {"type": ["string", "null"]})),
    ("G7", lambda r: subset(r, {"type": "integer", "enum": [1]})),
    ("G7", lambda r: subset(r, {"type": "array"})),
    ("G7", lambda r: declared(r, 1)["parameters"].update(properties={})),
    ("G7", lambda r: declared(r, 1)["parameters"].update(required=["b"])),
    ("G8", lambda r: declared(r)["parametersJsonSchema"].update(type="string")),
    (
        "G8",
        lambda r: declared(r)["parametersJsonSchema"]["properties"].update(
            b={"$ref": "#/properties/a", "type": "string"}
        ),
    ),
    ("G9", lambda r: r["contents"][1]["parts"][0]["functionCall"].update(args="{}")),
    ("G10", lambda r: response(r).update(response="x")),
    ("G10", lambda r: response(r).update(name="")),
    ("G10", lambda r: response(r).update(is_error=True)),
    ("G11", lambda r: r["contents"].pop(2)),
    ("G11", lambda r: response(r).update(name="g")),
    ("G11", lambda r: response(r).update(id="9")),
    ("G11", lambda r: r["contents"].pop(0)),
    ("G12", lambda r: r["contents"][1]["parts"][0].pop("thoughtSignature")),
    (
        "G13",
        lambda r: response(r).update(parts=[{"inlineData": {"mimeType": "audio/wav", "data": ""}}]),
    ),
    ("G14", lambda r: response(r).update(response={"output": {"a": [{"$ref": "x"}]}})),
    ("G15", lambda r: r.update(toolConfig=calling(mode="SOME"))),
    ("G15", lambda r: r.update(toolConfig=calling(allowedFunctionNames=["f"]))),
    ("G15", lambda r: r.update(toolConfig=calling(mode="ANY", allowedFunctionNames=["no"]))),
    ("G16", lambda r: r.update(cachedContent="c")),
]

ALL = {
    "chat": (chat, openai.check_chat, CHAT),
    "responses": (responses, openai.check_responses, RESPONSES),
    "anthropic": (messages, anthropic.check, ANTHROPIC),
    "gemini": (contents, gemini.check, GEMINI),
}
CASES = [
    pytest.param(which, rule, edit, id=f"{rule}-{which}-{at}")
    for which, (_, _, cases) in ALL.items()
    for at, (rule, edit) in enumerate(cases)
]


@pytest.mark.parametrize("which", ALL)
def test_the_whole_request_passes(which: str) -> None:
    whole, check, _ = ALL[which]
    check(whole())


@pytest.mark.parametrize(("which", "rule", "edit"), CASES)
def test_a_request_that_breaks_a_rule_is_refused_by_it(which: str, rule: str, edit: Edit) -> None:
    whole, check, _ = ALL[which]
    request = whole()
    edit(request)
    with pytest.raises(Refused) as refusal:
        check(request)
    assert refusal.value.rule == rule, refusal.value


def test_every_rule_that_can_be_checked_has_its_case() -> None:
    cased = {rule for _, _, cases in ALL.values() for rule, _ in cases}
    notes = {"O4", "O24", "A22", "G4"}
    every = {f"O{n}" for n in range(24 + 1)} | {f"A{n}" for n in range(22 + 1)}
    assert cased == (every | {f"G{n}" for n in range(16 + 1)}) - notes


def test_G13_media_in_an_answer_only_from_gemini_3_on() -> None:
    request = contents()
    inline = {"inlineData": {"mimeType": "image/png", "data": PNG}}
    response(request)["parts"] = [inline]
    gemini.check(request, "gemini-3-pro")
    with pytest.raises(Refused, match="G13"):
        gemini.check(request, "gemini-2.5-pro")
