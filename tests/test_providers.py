"""What each provider is sent and what is read from it, by the ids of the public bug reports."""

from __future__ import annotations

import copy
import json
import os
import random
import subprocess
import sys
from typing import Any

import pytest

from checkers.nasty import NASTY
from conftest import Plain as ToolEntry
from toolcrib import (
    Annotations,
    Assembly,
    AudioPart,
    DataPart,
    Dynamic,
    FilePart,
    ImagePart,
    TextPart,
    ToolCall,
    ToolDefinition,
    ToolResult,
)
from toolcrib import tool as tool_of
from toolcrib.errors import InvalidDefinition
from toolcrib.providers import anthropic, gemini, mcp, openai
from toolcrib.providers.history import Answers, Assistant, Message, User
from toolcrib.providers.report import Export
from toolcrib.schema import compile_schema

PNG = b"\x89PNG\r\n\x1a\n" + bytes(300_000)
STRING = {"type": "string"}


def tool(schema: dict[str, Any], name: str = "t", description: str = "A tool.") -> ToolDefinition:
    return ToolDefinition(name, description, schema)


def of_openai(schema: dict[str, Any], *, strict: bool = False) -> dict[str, Any]:
    return dict(openai.tools([tool(schema)], strict=strict)[0]["function"]["parameters"])


def of_anthropic(schema: dict[str, Any]) -> dict[str, Any]:
    return dict(anthropic.tools([tool(schema)])[0]["input_schema"])


def of_gemini(schema: dict[str, Any], form: gemini.Form = "json") -> dict[str, Any]:
    declared = gemini.tools([tool(schema)], form=form)[0]["functionDeclarations"][0]
    key = "parametersJsonSchema" if form == "json" else "parameters"
    return dict(declared.get(key) or {})


def reasons(export: Export) -> set[str]:
    return {each.reason for each in export.degraded}


# -- schemas --------------------------------------------------------------------------------------


def test_JS01_references_are_kept_or_expanded_to_a_bound() -> None:
    schema = NASTY["JS01 recursive"]
    for sent in (of_openai(schema), of_anthropic(schema), of_openai(schema, strict=False)):
        assert sent["properties"]["root"] == {"$ref": "#/$defs/N"}
        assert sent["$defs"]["N"]["properties"]["kids"]["items"] == {"$ref": "#/$defs/N"}
    for form in ("json", "openapi"):
        sent = of_gemini(schema, form)
        assert "$ref" not in json.dumps(sent)
        node, depth = sent["properties"]["root"], 0
        while "properties" in node:
            node, depth = node["properties"]["kids"]["items"], depth + 1
        assert (node, depth) == ({"type": "object"}, 2)
    assert len(json.dumps(of_gemini(NASTY["ten that call all ten"]))) < 1_000_000


def test_JS02_a_reference_to_nowhere_costs_its_tool_one_argument_and_the_others_nothing() -> None:
    broken = tool(NASTY["JS02 definitions below a property"], "broken")
    healthy = [tool({"type": "object", "properties": {"a": STRING}}, f"h{n}") for n in range(2)]
    for export in (openai.export, anthropic.export, gemini.export):
        done = export([healthy[0], broken, healthy[1]])
        told = [each for each in done.degraded if each.reason.startswith("reference to nowhere")]
        assert [(each.tool, each.path) for each in told] == [("broken", "/properties/node")]


def test_JS03_a_reference_into_properties_is_resolved() -> None:
    schema = NASTY["JS03 reference into properties"]
    for sent in (of_openai(schema), of_anthropic(schema)):
        assert sent["properties"]["a"]["items"] == {"$ref": "#/$defs/h"}
        assert sent["$defs"] == {"h": {"type": "object"}}
    assert of_gemini(schema)["properties"]["a"]["items"] == {"type": "object"}


def test_JS11_an_enum_of_other_than_strings_is_told_in_words_to_gemini() -> None:
    sent = of_gemini(NASTY["JS11 enum without type"], "openapi")["properties"]["w"]
    assert sent["description"] == 'One of: 7, 14, "auto", null'
    assert sent["nullable"] is True
    assert sent["anyOf"] == [{"type": "string", "enum": ["auto"]}, {"type": "integer"}]
    assert of_openai(NASTY["JS11 enum without type"])["properties"]["w"] == {
        "enum": [7, 14, "auto", None]
    }


def test_JS12_a_tuple_has_typed_items_at_each_level() -> None:
    for form in ("json", "openapi"):
        where = of_gemini(NASTY["JS12 tuple"], form)["properties"]["where"]
        assert where["type"] == where["items"]["type"] == "array"
        first, second, anything = where["items"]["items"]["anyOf"]
        assert first == {"type": "string"}
        assert second == {"type": "string", "enum": ["eq", "lt"]}
        assert {"type": "object"} in anything["anyOf"]
    assert of_openai(NASTY["array without items"])["properties"]["b"]["items"] == {}


def test_JS13_nothing_unknown_is_sent() -> None:
    schema = NASTY["JS13 keywords"]
    assert set(of_gemini(schema)) <= {"type", "properties", "required", "additionalProperties"}
    assert set(of_gemini(schema)["properties"]["a"]) == {"type"}
    for sent in (of_openai(schema), of_anthropic(schema)):
        assert not {"$schema", "$id", "$comment", "x-foo"} & set(sent)
        assert {"patternProperties", "dependentRequired", "if", "then"} <= set(sent)


def test_JS14_exports_share_nothing_with_the_schema_or_each_other() -> None:
    schema = {
        "type": "object",
        "properties": {"o": {"type": "object", "additionalProperties": True}, "s": STRING},
    }
    before = copy.deepcopy(schema)
    definition = tool(schema)
    first = openai.tools([definition], strict=True)
    text = json.dumps(first)
    first[0]["function"]["parameters"]["properties"].clear()
    anthropic.tools([definition])[0]["input_schema"]["properties"].clear()
    assert schema == before == definition.input_schema
    assert json.dumps(openai.tools([definition], strict=True)) == text


def test_JS15_a_tool_without_a_strict_form_is_sent_as_it_is_with_the_reason() -> None:
    fine = {
        "type": "object",
        "properties": {"a": STRING, "b": {"type": "integer"}},
        "required": ["a"],
    }
    three = [tool(fine, "x"), tool(NASTY["JS15 list of free objects"], "y"), tool(fine, "z")]
    done = openai.export(three, strict=True)
    assert [t["function"]["strict"] for t in done.tools] == [True, False, True]
    why = [d for d in done.degraded if d.tool == "y"]
    assert why[0].reason == "not strict: an object with free names"
    assert why[0].path == "/properties/filters/items"
    assert done.tools[0]["function"]["parameters"] == {
        "type": "object",
        "properties": {"a": STRING, "b": {"type": ["integer", "null"]}},
        "required": ["a", "b"],
        "additionalProperties": False,
    }
    assert done.counts()["object closed: names beyond those listed"] == 2


@pytest.mark.parametrize("schema", [{"type": "object"}, {}])
def test_JS16_no_parameters(schema: dict[str, Any]) -> None:
    empty = {"type": "object", "properties": {}}
    assert of_openai(schema) == of_anthropic(schema) == empty
    assert of_openai(schema, strict=True) == {
        **empty,
        "required": [],
        "additionalProperties": False,
    }
    assert of_gemini(schema) == of_gemini(schema, "openapi") == {}  # G7: parameters left out


def test_JS17_a_nullable_object_stays_an_object() -> None:
    schema = NASTY["JS17 nullable object"]
    assert of_anthropic(schema)["properties"]["values"]["anyOf"][0] == {"type": "object"}
    assert of_gemini(schema, "openapi")["properties"]["values"] == {
        "type": "object",
        "nullable": True,
    }
    assert of_gemini(schema)["properties"]["values"] == {
        "anyOf": [{"type": "object"}, {"type": "null"}]
    }


def test_JS18_nulls_of_strict_mode_do_not_reach_the_tool() -> None:
    schema = {
        "type": "object",
        "properties": {
            "q": STRING,
            "head": STRING,
            "tail": {"type": ["string", "null"]},
            "inner": {"type": "object", "properties": {"x": STRING}},
        },
        "required": ["q"],
    }
    text = '{"q":"x","head":null,"tail":null,"inner":{"x":null}}'
    reply = {"output": [{"type": "function_call", "call_id": "1", "name": "t", "arguments": text}]}
    assert openai.calls(reply)[0].arguments == text
    call = openai.calls(reply, [tool(schema)])[0]
    assert call.arguments == '{"q":"x","tail":null,"inner":{}}'


def test_JS20_what_is_no_schema_is_told_and_the_rest_stays() -> None:
    done = openai.export([tool(NASTY["JS20 no schemas"], "bad"), tool({}, "good")])
    told = [d.path for d in done.degraded if d.reason.startswith("no schema where one belongs")]
    assert told == [f"/properties/{name}" for name in "fghi"]
    assert {d.tool for d in done.degraded} == {"bad"}


def test_JS21_a_schema_too_deep_is_an_object_of_anything_with_the_reason() -> None:
    for export in (openai.export, anthropic.export, gemini.export):
        done = export([tool(NASTY["too deep"])])
        assert "schema too deep: sent as an object of anything" in reasons(done)


def test_the_unions_of_a_root_become_one_object() -> None:
    sent = of_anthropic(NASTY["root oneOf of shapes"])
    assert set(sent["properties"]) == {"kind", "x", "y"}
    assert sent["properties"]["kind"] == {"anyOf": [{"const": "a"}, {"const": "b"}]}
    assert sent["required"] == ["kind"]
    assert of_openai(NASTY["root anyOf"])["additionalProperties"] is False
    done = anthropic.export([tool(NASTY["root oneOf of shapes"])])
    assert "union at the root merged into one object" in reasons(done)


@pytest.mark.parametrize("is_closed", [True, False])
def test_a_property_of_one_open_branch_is_told_as_narrower(is_closed: bool) -> None:
    more = {"additionalProperties": False} if is_closed else {}
    branches = [{"properties": {"a": STRING}, **more}, {"properties": {"b": STRING}, **more}]
    done = openai.export([tool({"type": "object", "anyOf": branches})])
    lossy = [d.path for d in done.degraded if d.is_lossy]
    assert lossy == ([] if is_closed else ["/properties/a", "/properties/b"])


def test_A5_odd_argument_names_are_mapped_and_come_back() -> None:
    definition = tool(NASTY["A5 odd keys"])
    sent = anthropic.tools([definition])[0]["input_schema"]
    names = list(sent["properties"])
    given = dict(zip(names, range(len(names)), strict=True))
    content = [{"type": "tool_use", "id": "1", "name": "t", "input": given}]
    back = json.loads(anthropic.calls({"content": content}, [definition])[0].arguments)
    assert list(back) == list(definition.input_schema["properties"])
    assert set(sent["required"]) <= set(names)
    alone = json.loads(anthropic.calls({"content": content})[0].arguments)
    assert {"user@id", "$filter", "a b", "имя", "k..x", ""} <= set(alone)


def test_an_old_draft_is_sent_in_the_words_of_2020() -> None:
    schema = {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "type": "object",
        "definitions": {"p": {"type": "integer", "minimum": 0}},
        "properties": {
            "at": {"type": "array", "items": [{"type": "number"}], "additionalItems": False},
            "p": {"$ref": "#/definitions/p", "maximum": -1},
            "q": {},
        },
        "dependencies": {"p": ["q"], "at": {"required": ["q"]}},
    }
    sent = of_anthropic(schema)
    assert sent["properties"]["at"] == {
        "type": "array",
        "prefixItems": [{"type": "number"}],
        "items": {"not": {}},
    }
    assert sent["properties"]["p"] == {"$ref": "#/$defs/p"}
    assert sent["dependentRequired"] == {"p": ["q"]}
    assert sent["dependentSchemas"] == {"at": {"required": ["q"]}}
    ours, theirs = compile_schema(schema), compile_schema(sent)
    for value in ({}, {"p": 1}, {"p": 1, "q": 0}, {"at": [1], "q": 0}, {"at": [1, 2], "q": 0}):
        assert ours.fits(value) == theirs.fits(value)


# -- names, order, bytes --------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["1password", "-x", "_1x", "__-x", "plain", "_plain", "a" * 64])
def test_G2_a_name_begins_with_a_letter_and_comes_back(name: str) -> None:
    declared = gemini.tools([tool({}, name)])[0]["functionDeclarations"][0]
    assert declared["name"][0].isalpha() or declared["name"][0] == "_"
    parts = [{"functionCall": {"name": declared["name"], "args": {}}}]
    assert gemini.calls({"candidates": [{"content": {"parts": parts}}]})[0].name == name
    written = gemini.messages([Assistant("", (ToolCall("i", name),))])[0]["parts"][0]
    assert written["functionCall"]["name"] == declared["name"]


def test_NM_a_name_no_provider_takes_is_mapped_and_comes_back() -> None:
    odd = [tool({}, "build:dev"), tool({}, "build dev"), tool({}, "build_dev")]
    done = openai.export(odd)
    names = [t["function"]["name"] for t in done.tools]
    assert len(set(names)) == 3 and done.counts() == {"name mapped": 2}
    message = {"tool_calls": [{"id": "1", "function": {"name": n, "arguments": ""}} for n in names]}
    assert [c.name for c in openai.calls({"choices": [{"message": message}]}, odd)] == [
        "build:dev",
        "build dev",
        "build_dev",
    ]


@pytest.mark.parametrize("room", [openai, anthropic, gemini, mcp])
def test_O5_A3_G3_two_tools_of_one_name_are_refused(room: Any) -> None:
    with pytest.raises(InvalidDefinition, match="'t'"):
        room.tools([tool({}), tool({"type": "object"})])


def test_O3_G3_too_many_tools_are_told() -> None:
    many = [tool({}, f"t{n}") for n in range(513)]
    assert "more than 128 tools: the API refuses the request" in reasons(openai.export(many))
    assert reasons(openai.export(many[:128])) == set()
    assert "more than 512 tools: the API refuses the request" in reasons(gemini.export(many))
    assert openai.tools([]) == anthropic.tools([]) == gemini.tools([]) == []


def test_TS08_revealing_a_tool_only_appends() -> None:
    definitions = [tool(schema, f"t{at}") for at, schema in enumerate(NASTY.values())]
    for room in (openai, anthropic, mcp):
        whole = json.dumps(room.tools(definitions))
        for count in random.Random(1).sample(range(1, len(definitions)), 5):
            assert whole.startswith(json.dumps(room.tools(definitions[:count]))[:-1])
    declared = gemini.tools(definitions)[0]["functionDeclarations"]
    assert gemini.tools(definitions[:9])[0]["functionDeclarations"] == declared[:9]


def test_TS09_the_bytes_do_not_depend_on_the_hash_seed() -> None:
    code = (
        "import json; from checkers.nasty import NASTY; from toolcrib import ToolDefinition as D;"
        "from toolcrib.providers import openai, anthropic, gemini, mcp;"
        "d=[D(f't{n}','x',s) for n,s in enumerate(NASTY.values())];"
        "e=[openai.export(d),openai.export(d,strict=True),anthropic.export(d),gemini.export(d),"
        "gemini.export(d,form='openapi'),mcp.export(d)];"
        "print(json.dumps([[x.tools,[repr(g) for g in x.degraded]] for x in e]))"
    )
    here = os.path.dirname(__file__)
    outputs = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": str(seed), "PYTHONPATH": f"{here}/../src:{here}"},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in (0, 5)
    }
    assert len(outputs) == 1


def test_TS09_two_tools_that_differ_in_order_only_keep_their_own() -> None:
    one = {"type": "object", "properties": {"b": STRING, "a": STRING}}
    other = {"type": "object", "properties": {"a": STRING, "b": STRING}}
    assert tool(one).fingerprint == tool(other).fingerprint
    assert list(of_openai(one)["properties"]) == ["b", "a"]
    assert list(of_openai(other)["properties"]) == ["a", "b"]


# -- calls and results ----------------------------------------------------------------------------


@pytest.mark.parametrize("text", ["", "null", "  ", "{}"])
def test_AR02_AR03_no_arguments_are_an_empty_object_in_every_history(text: str) -> None:
    history = [Assistant("", (ToolCall("1", "t", text),))]
    function = openai.messages(history)[0]["tool_calls"][0]["function"]
    assert function["arguments"] == "{}"
    assert openai.messages(history, api="responses")[0]["arguments"] == "{}"
    assert anthropic.messages(history)[0]["content"][0]["input"] == {}
    assert gemini.messages(history)[0]["parts"][0]["functionCall"]["args"] == {}


def test_AR03_calls_without_arguments_are_read_as_an_empty_object() -> None:
    call = {"id": "1", "type": "function", "function": {"name": "t", "arguments": None}}
    assert openai.calls({"choices": [{"message": {"tool_calls": [call]}}]})[0].arguments == "{}"
    use = {"type": "tool_use", "id": "1", "name": "t", "input": None}
    assert anthropic.calls({"content": [use]})[0].arguments == "{}"
    content = {"parts": [{"functionCall": {"name": "t"}}]}
    assert gemini.calls({"candidates": [{"content": content}]})[0].arguments == "{}"
    assert mcp.calls({"name": "t"})[0].arguments == "{}"


def test_AR14_big_integers_cross_every_format_exactly() -> None:
    text = '{"id":1917043659912705297123}'
    history = [Assistant("", (ToolCall("1", "t", text),))]
    assert openai.messages(history)[0]["tool_calls"][0]["function"]["arguments"] == text
    use = anthropic.messages(history)[0]["content"]
    assert anthropic.calls({"content": use})[0].arguments == text


def test_O24_a_repair_of_a_replayed_call_keeps_the_items_around_it() -> None:
    items = [
        {"type": "reasoning", "id": "r", "summary": []},
        {"type": "function_call", "id": "f", "call_id": "c", "name": "t", "arguments": ""},
    ]
    written = openai.messages([openai.reply({"output": items})], api="responses")
    assert written == [items[0], {**items[1], "arguments": "{}"}]


def failed() -> ToolResult:
    return ToolResult.failed("tool_error", "db down", partial=(ImagePart(PNG, "image/png"),))


def test_RS05_RS06_an_error_is_an_error_in_every_format() -> None:
    call = ToolCall("", "t")
    result = failed()
    assert openai.results([result])[0]["content"].startswith("Error: db down")
    assert openai.results([result], api="responses")[0]["output"][0]["text"].startswith("Error: ")
    block = anthropic.results([result])[0]["content"][0]
    assert block["is_error"] is True and block["content"].startswith("db down")
    assert isinstance(block["content"], str)  # A16: text only
    response = gemini.results([result], [call])[0]["parts"][0]["functionResponse"]["response"]
    assert response == {"error": "db down"}
    definition = ToolDefinition("t", output_schema={"type": "object"})
    value = ToolResult(result.content, result.failure, {"answer": 42})
    sent = mcp.results([value], [call], definitions=[definition])[0]
    assert sent["isError"] is True and "structuredContent" not in sent
    assert sent["content"][-1] == {"type": "text", "text": "db down"}


def test_RS09_an_image_stands_where_the_provider_takes_it() -> None:
    result = ToolResult((TextPart("see"), ImagePart(PNG, "image/png")), call_id="1")
    calls = [ToolCall("1", "t")]
    told, shown = openai.results([result], calls)
    assert told["content"] == "see\n[images in the next message]"
    assert [part["type"] for part in shown["content"]] == ["text", "image_url"]
    output = openai.results([result], calls, api="responses")[0]["output"]
    assert [part["type"] for part in output] == ["input_text", "input_image"]
    blocks = anthropic.results([result])[0]["content"][0]["content"]
    assert [block["type"] for block in blocks] == ["text", "image"]
    answer = gemini.results([result], calls)[0]["parts"][0]["functionResponse"]
    assert answer["parts"][0]["inlineData"]["mimeType"] == "image/png"
    older = gemini.results([result], calls, images_inside=False)
    assert "parts" not in older[0]["parts"][0]["functionResponse"]
    assert older[1]["parts"][1]["inlineData"]["mimeType"] == "image/png"
    assert mcp.results([result])[0]["content"][1]["type"] == "image"


def test_O13_all_answers_come_before_the_images_of_any() -> None:
    image = ImagePart(PNG, "image/png")
    results = [ToolResult((image,), call_id="1"), ToolResult((image,), call_id="2")]
    roles = [message["role"] for message in openai.results(results)]
    assert roles == ["tool", "tool", "user"]


@pytest.mark.parametrize(
    ("part", "marker"),
    [
        (ImagePart(b"BM" + bytes(9), "image/bmp"), "image/bmp, 11 bytes"),
        (ImagePart(b"", "image/png"), "it is empty"),
        (ImagePart(b"\x89PNG\r\n\x1a\n" + bytes(8_000_000), "image/png"), "too large"),
        (ImagePart(PNG[:16] + (9_000).to_bytes(4) * 2, "image/png"), "too many pixels"),
        (AudioPart(b"abc", "audio/wav"), "[sound audio/wav, 3 bytes"),
        (FilePart("file:///a.txt", "a", "text/plain", size=3), "at file:///a.txt"),
    ],
)
def test_what_cannot_be_shown_leaves_a_marker(part: Any, marker: str) -> None:
    result = ToolResult((part,), call_id="1")
    assert marker in openai.results([result])[0]["content"]
    assert marker in anthropic.results([result])[0]["content"][0]["content"]
    assert marker in json.dumps(gemini.results([result], [ToolCall("1", "t")]))
    history: list[Message] = [Assistant("", (ToolCall("1", "t"),)), Answers((result,))]
    lossy = [d for d in anthropic.write(history).degraded if d.is_lossy]
    assert bool(lossy) == (not isinstance(part, FilePart))


def test_A17_the_media_type_is_true_to_the_bytes() -> None:
    result = ToolResult((ImagePart(PNG, "image/jpeg"),), call_id="1")
    source = anthropic.results([result])[0]["content"][0]["content"][0]["source"]
    assert source["media_type"] == "image/png"


def test_A15_an_empty_result_has_no_content() -> None:
    block = anthropic.results([ToolResult((), call_id="1")])[0]["content"][0]
    assert block == {"type": "tool_result", "tool_use_id": "1"}


def test_G14_data_is_text_for_gemini() -> None:
    result = ToolResult((DataPart({"$ref": "#/x", "n": 10**30}),), call_id="1")
    answer = gemini.results([result], [ToolCall("1", "t")])[0]["parts"][0]["functionResponse"]
    assert answer["response"] == {"output": '{"$ref":"#/x","n":' + str(10**30) + "}"}


def test_RS14_unpaired_surrogates_are_replaced() -> None:
    result = ToolResult((TextPart("x\ud83dy"),), call_id="1")
    history: list[Message] = [
        User.of("\ud83d"),
        Assistant("\ud83d", (ToolCall("1", "t"),)),
        Answers((result,)),
    ]
    for written in (
        openai.messages(history),
        anthropic.messages(history),
        gemini.messages(history),
    ):
        json.dumps(written, ensure_ascii=False).encode()


@pytest.mark.parametrize("call_id", ["call.with/odd signs", "x" * 100, "ü", ""])
def test_O14_A12_G11_an_id_is_mapped_alike_in_call_and_result(call_id: str) -> None:
    calls = (ToolCall(call_id, "t"),)
    history: list[Message] = [
        Assistant("", calls),
        Answers((ToolResult((), call_id=call_id),)),
        Assistant("", calls),
        Answers((ToolResult((), call_id=call_id),)),
    ]
    chat = openai.messages(history)
    ids = [m["tool_calls"][0]["id"] for m in chat if m["role"] == "assistant"]
    assert [m["tool_call_id"] for m in chat if m["role"] == "tool"] == ids
    assert len(set(ids)) == 2 and all(0 < len(i) <= 40 for i in ids)
    blocks = [message["content"][0] for message in anthropic.messages(history)]
    uses = [block["id"] for block in blocks if block["type"] == "tool_use"]
    assert [b["tool_use_id"] for b in blocks if b["type"] == "tool_result"] == uses
    assert len(set(uses)) == 2
    if call_id:  # without the history, the first of an id is mapped the same way
        assert openai.results([ToolResult((), call_id=call_id)])[0]["tool_call_id"] == ids[0]
        loose = anthropic.results([ToolResult((), call_id=call_id)])[0]["content"][0]
        assert loose["tool_use_id"] == uses[0]


def test_a_legal_id_is_kept() -> None:
    for room in (openai, anthropic, gemini):
        done = room.write([Assistant("", (ToolCall("toolu_01AbC", "t"),))])
        assert "toolu_01AbC" in json.dumps(done.messages) and done.degraded == ()


def test_G11_an_id_gemini_did_not_give_is_not_sent_back() -> None:
    content = {"role": "model", "parts": [{"functionCall": {"name": "t", "args": {}}}]}
    reply = {"candidates": [{"content": content}], "responseId": "r"}
    call = gemini.calls(reply)[0]
    assert call.id and call == gemini.calls(reply)[0]
    answer = gemini.results([ToolResult((), call_id=call.id)], [call])[0]["parts"][0]
    assert answer["functionResponse"] == {"name": "t", "response": {"output": ""}}


def test_A13_a_history_with_gaps_is_closed_and_told() -> None:
    history: list[Message] = [
        Assistant("", (ToolCall("1", "t"), ToolCall("2", "t"))),
        Answers((ToolResult((TextPart("one"),), call_id="1"), ToolResult((), call_id="9"))),
        User.of("and?"),
    ]
    done = anthropic.write(history)
    blocks = done.messages[1]["content"]
    assert [b["type"] for b in blocks] == ["tool_result", "tool_result", "text"]  # A14
    assert blocks[1]["is_error"] is True
    assert {"result without a call left out", "call without a result answered for it"} == reasons(
        done
    )


def test_mcp_tools_and_results() -> None:
    definition = ToolDefinition(
        "t", "d", {"type": "object"}, {"type": "object"}, Annotations("T", True, None, False)
    )
    assert mcp.tools([definition]) == [
        {
            "name": "t",
            "title": "T",
            "description": "d",
            "inputSchema": {"type": "object"},
            "outputSchema": {"type": "object"},
            "annotations": {"title": "T", "readOnlyHint": True, "idempotentHint": False},
        }
    ]
    call = mcp.calls({"jsonrpc": "2.0", "id": 7, "params": {"name": "t", "arguments": {"a": 1}}})[0]
    assert call == ToolCall("7", "t", '{"a":1}')
    result = ToolResult((TextPart("x"), FilePart("u:x")), None, {"v": 1}, "7")
    assert mcp.results([result], [call], definitions=[definition])[0] == {
        "content": [
            {"type": "text", "text": "x"},
            {"type": "resource_link", "uri": "u:x", "name": "u:x"},
        ],
        "isError": False,
        "structuredContent": {"v": 1},
    }
    assert "structuredContent" not in mcp.results([result])[0]


@pytest.mark.parametrize("room", [openai, anthropic, gemini])
@pytest.mark.parametrize("reply", [{}, {"choices": []}, {"content": None}, {"candidates": [{}]}])
def test_a_reply_without_calls_has_none(room: Any, reply: dict[str, Any]) -> None:
    assert room.calls(reply) == []
    assert room.reply(reply).text == ""


def test_a_history_comes_back_from_every_format() -> None:
    said = Assistant("Let me see.", (ToolCall("a1", "t", '{"q":"é"}'), ToolCall("a2", "u", "{}")))
    answers = Answers((ToolResult((TextPart("1"),), call_id="a1"), ToolResult((), call_id="a2")))
    history: list[Message] = [User.of("hi"), said, answers, Assistant("Done.")]
    chat = openai.messages(history)
    assert openai.reply({"choices": [{"message": chat[1]}]}) == said
    items = openai.messages(history, api="responses")
    back = openai.reply({"output": items[2:4]})
    assert back.calls == said.calls and items[1]["content"] == said.text
    block = anthropic.reply({"content": anthropic.messages(history)[1]["content"]})
    assert (block.text, block.calls) == (said.text, said.calls)
    content = gemini.reply({"candidates": [{"content": gemini.messages(history)[1]}]})
    assert (content.text, content.calls) == (said.text, said.calls)
    for room in (openai, anthropic, gemini):
        again = json.dumps(room.messages(history))
        assert again == json.dumps(room.messages(list(history)))


async def test_a_round_of_a_session_through_each_provider() -> None:
    async with Assembly([add, boom]) as tools:
        for room in (openai, anthropic, gemini):
            async with tools.session().turn() as turn:
                round = turn.round()
                assert len(room.export(round.definitions).degraded) == 0
                message = {
                    openai: {"choices": [{"message": chat_call("add", '{"a": 2, "b": 3}')}]},
                    anthropic: {"content": [use("add", {"a": 2, "b": 3})]},
                    gemini: {"candidates": [{"content": {"parts": [fc("add", {"a": 2, "b": 3})]}}]},
                }[room]
                calls = room.calls(message)
                written = json.dumps(room.results(await round.execute(calls), calls))
                assert '"5"' in written


@tool_of
def add(a: int, b: int) -> int:
    """Add two whole numbers."""
    return a + b


@tool_of
def boom() -> str:
    """Fails."""
    raise RuntimeError("no")


def chat_call(name: str, arguments: str) -> dict[str, Any]:
    function = {"name": name, "arguments": arguments}
    return {
        "role": "assistant",
        "tool_calls": [{"id": "1", "type": "function", "function": function}],
    }


def use(name: str, given: dict[str, Any]) -> dict[str, Any]:
    return {"type": "tool_use", "id": "1", "name": name, "input": given}


def fc(name: str, args: dict[str, Any]) -> dict[str, Any]:
    return {"functionCall": {"name": name, "args": args}}


async def test_a_deferred_catalogue_is_searched_and_loaded_natively() -> None:
    said = {n: "Counts sheep." if n == 7 else f"Does thing {n}." for n in range(40)}
    everything = [ToolEntry(f"tool_{n}", description=text) for n, text in said.items()]
    async with Assembly(everything, dynamic=Dynamic()) as tools:
        deferred = [entry.definition for entry in everything]
        session = tools.session()
        async with session.turn() as turn:
            round = turn.round()
            sent = anthropic.tools(round.definitions, deferred=deferred)
            native = openai.tools(round.definitions, api="responses", deferred=deferred)
            assert [t["type"] for t in native] == ["tool_search"]
            calls = [ToolCall("1", "tool_search", '{"query": "count sheep"}')]
            results = await round.execute(calls)
            content = anthropic.results(results, calls, deferred=deferred)[0]["content"][0][
                "content"
            ]
            assert content[0] == {"type": "tool_reference", "tool_name": "tool_7"}
            loaded = openai.results(results, calls, api="responses", deferred=deferred)[0]
            assert loaded["tools"][0]["name"] == "tool_7"
            after = turn.round()
            assert "tool_7" in after.names
            # what was found is in the next round, and yet the bytes that were sent stay the same
            assert anthropic.tools(after.definitions, deferred=deferred) == sent
