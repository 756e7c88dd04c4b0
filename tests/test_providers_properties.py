"""What every export keeps, over generated schemas: the input, the bytes, and what was valid.

A schema is generated together with values that fit it; unless an export says that it is narrower,
its schema must still take each of them.
"""

from __future__ import annotations

import copy
import json
import os
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from checkers import anthropic as check_anthropic
from checkers import gemini as check_gemini
from checkers import openai as check_openai
from checkers.nasty import NASTY
from toolcrib import ToolCall, ToolDefinition
from toolcrib.arguments import decode
from toolcrib.errors import InvalidSchema
from toolcrib.providers import anthropic, gemini, mcp, openai
from toolcrib.providers.history import Assistant
from toolcrib.providers.keys import given_keys, long_keys, sent_keys
from toolcrib.providers.nulls import without_nulls
from toolcrib.providers.report import Export
from toolcrib.schema import compile_schema

MANY = 150 if os.environ.get("TOOLCRIB_SOAK") else 4
Value = st.SearchStrategy[Any]
Pair = tuple[dict[str, Any], Value]
KEYS = st.sampled_from(["a", "b", "c", "type", "properties", "user@id", "ключ", "$x", "k..a"])
ANY = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(KEYS, inner, max_size=2),
    max_leaves=4,
)


@st.composite
def scalars(draw: st.DrawFn) -> Pair:
    kind = draw(
        st.sampled_from(["string", "integer", "number", "boolean", "null", "enum", "const"])
    )
    if kind == "enum":
        values = draw(st.lists(st.sampled_from(["x", "", 7, 1.5, None, True, [1]]), min_size=1))
        return {"enum": values}, st.sampled_from(values)
    if kind == "const":
        value = draw(st.sampled_from(["x", 3, None, False]))
        return {"const": value}, st.just(value)
    schema: dict[str, Any] = {"type": kind}
    values_of: dict[str, Value] = {
        "string": st.text(max_size=4),
        "integer": st.integers(-(10**20), 10**20),
        "number": st.floats(-1e9, 1e9) | st.integers(-9, 9),
        "boolean": st.booleans(),
        "null": st.none(),
    }
    value = values_of[kind]
    if kind == "string":
        schema |= draw(st.sampled_from([{}, {"maxLength": 9}, {"format": "uri"}, {"title": "t"}]))
    if kind in ("integer", "number") and draw(st.booleans()):
        schema["maximum"] = 10**30
    if draw(st.booleans()):
        schema["description"] = "d"
    if draw(st.integers(0, 3)) == 0 and kind != "null":
        return {**schema, "type": [kind, "null"]}, value | st.none()
    return schema, value


@st.composite
def arrays(draw: st.DrawFn, inner: st.SearchStrategy[Pair]) -> Pair:
    kind = draw(st.sampled_from(["list", "tuple", "bare"]))
    if kind == "bare":
        return {"type": "array"}, st.lists(ANY, max_size=2)
    if kind == "list":
        schema, value = draw(inner)
        more = draw(st.sampled_from([{}, {"maxItems": 3}, {"uniqueItems": False}]))
        return {"type": "array", "items": schema, **more}, st.lists(value, max_size=3)
    members = draw(st.lists(inner, min_size=1, max_size=3))
    schema = {"type": "array", "prefixItems": [s for s, _ in members]}
    rest = draw(st.sampled_from(["open", "closed", "counted"]))
    if rest == "closed":
        schema["items"] = False
    elif rest == "counted":
        schema["maxItems"] = len(members)
    return schema, st.tuples(*(v for _, v in members)).map(list)


@st.composite
def objects(draw: st.DrawFn, inner: st.SearchStrategy[Pair]) -> Pair:
    members = draw(st.dictionaries(KEYS, inner, max_size=4))
    required = [name for name in members if draw(st.booleans())]
    schema: dict[str, Any] = {
        "type": "object",
        "properties": {name: s for name, (s, _) in members.items()},
    }
    if required:
        schema["required"] = required
    free: Value = st.just({})
    rest = draw(st.sampled_from(["closed", "closed", "closed", "unsaid", "named", "any"]))
    if rest == "closed":
        schema["additionalProperties"] = False
    elif rest == "named":
        named, value = draw(inner)
        schema["additionalProperties"] = named
        free = st.dictionaries(st.sampled_from(["x1", "x2"]), value, max_size=2)
    elif rest == "any":
        schema["additionalProperties"] = True
        free = st.dictionaries(st.sampled_from(["x1", "x2"]), ANY, max_size=2)
    needed = st.fixed_dictionaries({n: members[n][1] for n in required})
    others = {n: v for n, (_, v) in members.items() if n not in required}
    known = st.fixed_dictionaries({}, optional=others)
    return schema, st.builds(lambda a, b, c: {**a, **b, **c}, needed, known, free)


@st.composite
def unions(draw: st.DrawFn, inner: st.SearchStrategy[Pair]) -> Pair:
    key = draw(st.sampled_from(["anyOf", "oneOf", "allOf"]))
    many = draw(st.lists(inner, min_size=1, max_size=1 if key == "allOf" else 3))
    value = st.one_of(*(v for _, v in many))
    return {key: [s for s, _ in many]}, value


NODES: st.SearchStrategy[Pair] = st.recursive(
    scalars(), lambda inner: arrays(inner) | objects(inner) | unions(inner), max_leaves=8
)


@st.composite
def roots(draw: st.DrawFn) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """A tool's schema and valid arguments of it: some with definitions, some with unions on top."""
    schema, value = draw(objects(NODES))
    shape = draw(st.sampled_from(["plain", "plain", "defs", "recursive", "anyOf", "allOf", "if"]))
    if shape == "defs":
        inner, inner_value = draw(NODES)
        schema["properties"]["d"] = {"$ref": "#/$defs/D", "description": "words"}
        schema["$defs"] = {"D": inner}
        value = st.builds(lambda a, b: {**a, "d": b}, value, inner_value)
    elif shape == "recursive":
        schema["properties"]["next"] = {"$ref": "#"}
        value = st.builds(lambda a, b: {**a, "next": b}, value, value)
    elif shape in ("anyOf", "allOf"):
        more, more_value = draw(objects(scalars()))
        if shape == "anyOf":
            other, other_value = draw(objects(scalars()))
            branches = [more, other]
            value = st.builds(lambda a, b: {**a, **b}, value, more_value | other_value)
            schema = {
                "type": "object",
                draw(st.sampled_from(["anyOf", "oneOf"])): branches,
                **{k: v for k, v in schema.items() if k != "type"},
            }
        else:
            value = st.builds(lambda a, b: {**a, **b}, value, more_value)
            schema = {"allOf": [schema, more]}
    elif shape == "if":
        schema |= {"if": {"required": ["a"]}, "then": {"required": ["b"]}}
    checker = compile_schema(schema)
    values = draw(st.lists(value, min_size=1, max_size=4))
    return schema, [v for v in values if checker.fits(v)]


def plain_json_schema(node: Any) -> Any:
    """Gemini's OpenAPI subset as JSON Schema: `nullable` is a null more."""
    if isinstance(node, list):
        return [plain_json_schema(each) for each in node]
    if not isinstance(node, dict):
        return node
    kept = {k: v for k, v in node.items() if k != "nullable"}
    for key in ("items",):
        if key in kept:
            kept[key] = plain_json_schema(kept[key])
    if "anyOf" in kept:
        kept["anyOf"] = plain_json_schema(kept["anyOf"])
    if "properties" in kept:
        kept["properties"] = {k: plain_json_schema(v) for k, v in kept["properties"].items()}
    return {"anyOf": [kept, {"type": "null"}]} if node.get("nullable") else kept


def as_strict(value: Any, schema: Any, root: Any) -> Any:
    """`value` as a model in strict mode would write it: null for what is left out."""
    while "$ref" in schema:
        schema = root["$defs"][schema["$ref"].rsplit("/", 1)[-1]]
    if "anyOf" in schema:
        for branch in schema["anyOf"]:
            tried = as_strict(value, branch, root)
            if compile_schema({**branch, "$defs": root.get("$defs", {})}).fits(tried):
                return tried
        return value
    if isinstance(value, list):
        return [as_strict(each, schema.get("items", {}), root) for each in value]
    if isinstance(value, dict):
        known = schema.get("properties", {})
        filled = {**dict.fromkeys(known), **value}
        return {
            k: v if v is None else as_strict(v, known.get(k, {}), root) for k, v in filled.items()
        }
    return value


def parameters(way: str, tool: dict[str, Any]) -> dict[str, Any]:
    if way.startswith("openai"):
        return dict(tool["function"]["parameters"])
    if way == "anthropic":
        return dict(tool["input_schema"])
    declared = tool["functionDeclarations"][0]
    return declared.get("parametersJsonSchema") or plain_json_schema(
        declared.get("parameters", {"type": "object"})
    )


USER = [{"role": "user", "content": "hi"}]
CONTENTS = [{"role": "user", "parts": [{"text": "hi"}]}]
EXPORTS: dict[str, Callable[[list[ToolDefinition]], Export]] = {
    "openai": lambda d: openai.export(d),
    "openai strict": lambda d: openai.export(d, strict=True),
    "anthropic": lambda d: anthropic.export(d),
    "gemini": lambda d: gemini.export(d),
    "gemini openapi": lambda d: gemini.export(d, form="openapi"),
}
CHECKS: dict[str, Callable[[list[dict[str, Any]]], None]] = {
    "openai": lambda t: check_openai.check_chat({"messages": USER, "tools": t}),
    "anthropic": lambda t: check_anthropic.check({"max_tokens": 1, "messages": USER, "tools": t}),
    "gemini": lambda t: check_gemini.check({"contents": CONTENTS, "tools": t}),
}
seen: Counter[str] = Counter()


@pytest.mark.parametrize("way", EXPORTS)
@settings(max_examples=20 * MANY)
@given(pair=roots())
def test_what_was_valid_stays_valid_unless_the_export_says_it_is_narrower(
    way: str, pair: tuple[dict[str, Any], list[dict[str, Any]]]
) -> None:
    schema, values = pair
    before = copy.deepcopy(schema)
    definition = ToolDefinition("t", "", schema)
    own = copy.deepcopy(definition.input_schema)
    done = EXPORTS[way]([definition])
    assert schema == before and definition.input_schema == own
    CHECKS[way.split()[0]](done.tools)
    if any(each.is_lossy for each in done.degraded):
        seen[f"{way}: lossy"] += 1
        return
    seen[f"{way}: exact"] += 1
    sent = parameters(way, done.tools[0])
    checker = compile_schema(sent)
    is_strict = way == "openai strict" and done.tools[0]["function"]["strict"]
    for value in values:
        told = value
        if way == "anthropic":
            mapped = sent_keys(value)
            told = {mapped.get(k, k): v for k, v in value.items()}
        if is_strict:
            told = as_strict(value, sent, sent)
        assert checker.fits(told), (checker.misfits(told), told, sent)


@pytest.mark.parametrize("way", EXPORTS)
@settings(max_examples=5 * MANY)
@given(pair=roots())
def test_exporting_twice_gives_the_same_bytes_in_fresh_objects(
    way: str, pair: tuple[dict[str, Any], list[dict[str, Any]]]
) -> None:
    one, other = (ToolDefinition("t", "A tool.", copy.deepcopy(pair[0])) for _ in range(2))
    first = EXPORTS[way]([one])
    text = json.dumps(first.tools)
    ruin(first.tools)
    assert json.dumps(EXPORTS[way]([one]).tools) == text == json.dumps(EXPORTS[way]([other]).tools)


def ruin(value: Any) -> None:
    """Changes every list and object within `value`."""
    if isinstance(value, dict):
        for inner in list(value.values()):
            ruin(inner)
        value.clear()
    elif isinstance(value, list):
        for inner in value:
            ruin(inner)
        value.append("ruined")


@pytest.mark.parametrize("way", EXPORTS)
@pytest.mark.parametrize("case", NASTY)
def test_JS14_no_export_changes_a_nasty_schema(way: str, case: str) -> None:
    schema = copy.deepcopy(NASTY[case])
    definition = ToolDefinition("t", "A tool.", schema)
    own = json.dumps(definition.input_schema)
    first = json.dumps(EXPORTS[way]([definition]).tools)
    assert schema == NASTY[case]
    assert json.dumps(definition.input_schema) == own
    assert json.dumps(EXPORTS[way]([definition]).tools) == first


@given(st.dictionaries(st.text(max_size=70), st.integers(), max_size=4))
def test_A5_mapped_argument_names_come_back(values: dict[str, int]) -> None:
    mapped = sent_keys(values)
    told = {mapped.get(key, key): value for key, value in values.items()}
    assert len(told) == len(values)
    assert all(len(key) <= 64 for key in told)
    assert long_keys(given_keys(told), values) == values
    short = {key: value for key, value in values.items() if len(key) <= 7}
    assert given_keys({mapped.get(k, k): v for k, v in short.items()}) == short


@settings(max_examples=20 * MANY)
@given(pair=roots())
def test_nulls_of_strict_mode_are_taken_out_again(
    pair: tuple[dict[str, Any], list[dict[str, Any]]],
) -> None:
    schema, values = pair
    for value in values:
        kept = without_nulls(value, schema, schema)
        assert compile_schema(schema).fits(kept), (value, kept)


@given(st.text(alphabet=st.characters(codec="utf-8"), max_size=20), st.sampled_from("abc"))
def test_AR02_arguments_in_a_history_are_always_objects(text: str, name: str) -> None:
    history = [Assistant("", (ToolCall("1", name, text),))]
    written = openai.messages(history)[0]["tool_calls"][0]["function"]["arguments"]
    assert isinstance(json.loads(written), dict) and isinstance(decode(written)[0], dict)
    assert isinstance(anthropic.messages(history)[0]["content"][-1]["input"], dict)
    assert isinstance(gemini.messages(history)[0]["parts"][-1]["functionCall"]["args"], dict)


def test_most_generated_exports_are_exact() -> None:
    """Otherwise the property above would say little."""
    for way in EXPORTS:
        if seen[f"{way}: exact"] + seen[f"{way}: lossy"] > 50:
            assert seen[f"{way}: exact"] > 20, seen
    print(dict(seen))


WORDS = (
    "type properties required items prefixItems anyOf oneOf allOf not if then else enum const $ref"
    " $defs definitions additionalProperties patternProperties dependentRequired dependentSchemas"
    " minimum exclusiveMinimum maxItems minLength multipleOf pattern format title description"
    " default $schema $id $anchor nullable uniqueItems propertyNames x-foo a b"
)
KEYWORDS = st.sampled_from(WORDS.split())
JUNK = st.recursive(
    st.none()
    | st.booleans()
    | st.sampled_from(["string", "object", "array", "#", "#/$defs/a", "#/properties/b", "#a", "a"])
    | st.sampled_from([0, 1, -1, 2.5, 10**25, "http://json-schema.org/draft-04/schema#", "\ud83d"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYWORDS, inner, max_size=5),
    max_leaves=25,
)


@pytest.mark.parametrize("way", EXPORTS)
@settings(max_examples=20 * MANY)
@given(schema=st.dictionaries(KEYWORDS, JUNK, max_size=6))
def test_whatever_a_server_calls_a_schema_is_sent_in_a_form_that_passes(
    way: str, schema: dict[str, Any]
) -> None:
    try:
        definition = ToolDefinition("t", "A tool.", schema)
    except InvalidSchema:  # what JSON cannot hold never becomes a definition
        return
    done = EXPORTS[way]([definition])
    for sent in (done.tools, mcp.tools([definition])):
        json.dumps(sent, ensure_ascii=False).encode()
    CHECKS[way.split()[0]](done.tools)
