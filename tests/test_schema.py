"""Which schemas can describe a tool, and which values fit them (B2, reports JS)."""

from __future__ import annotations

import re
import time
from typing import Any

import pytest

from conftest import Plain, outcome
from toolcrib import Assembly, InvalidSchema, ToolDefinition, validate_schema
from toolcrib.arguments import SchemaParser
from toolcrib.schema import KNOWN_KEYWORDS, compile_asserting, compile_schema
from toolcrib.sources.mcp.catalogue.mirror import mirror

WORDS = """
    type properties required additionalProperties patternProperties propertyNames minProperties
    maxProperties unevaluatedProperties items prefixItems contains minContains maxContains
    minItems maxItems uniqueItems enum const format multipleOf maximum exclusiveMaximum minimum
    exclusiveMinimum maxLength minLength pattern allOf anyOf oneOf not if then else
    dependentSchemas dependentRequired title description default examples deprecated readOnly
    writeOnly $schema $id $ref $defs definitions $anchor $dynamicRef $dynamicAnchor $vocabulary
    $comment contentMediaType contentEncoding
"""
KNOWN = WORDS.split()


def test_B2_the_56_keywords_are_known_and_no_other() -> None:
    assert len(KNOWN) == 56
    assert set(KNOWN) == KNOWN_KEYWORDS
    for keyword in KNOWN:
        validate_schema({"type": "object", keyword: "object" if keyword == "type" else {}})


@pytest.mark.parametrize("empty", [None, {}])
def test_B2_nothing_and_the_empty_schema_are_fine(empty: Any) -> None:
    validate_schema(empty)


@pytest.mark.parametrize(
    "key",
    [
        "city", "dependencies", "additionalItems", "unevaluatedItems", "contentSchema",
        "$recursiveRef", "nullable", "name", "$unknown",
    ],
)  # fmt: skip
def test_B2_another_key_is_named_and_told_to_nest(key: str) -> None:
    with pytest.raises(InvalidSchema) as raised:
        validate_schema({"type": "object", key: {"type": "string"}})
    assert repr(key) in str(raised.value)
    assert "properties" in str(raised.value)


@pytest.mark.parametrize(
    "schema",
    [
        {"properties": {}},
        {"type": "array"},
        {"type": ["object"]},
        {"type": None},
        {"type": "Object"},
    ],
    ids=str,
)
def test_B2_the_root_is_an_object(schema: dict[str, Any]) -> None:
    with pytest.raises(InvalidSchema, match="object"):
        validate_schema(schema)


def test_B2_what_is_not_json_fails_before_anything_else() -> None:
    cycle: dict[str, Any] = {"type": "array", "wrong": {}}
    cycle["wrong"]["again"] = cycle
    for schema in (cycle, {"wrong": object()}, {"type": "object", "default": {1, 2}}):
        with pytest.raises(InvalidSchema, match="not JSON"):
            validate_schema(schema)


def test_B2_only_the_root_is_checked() -> None:
    validate_schema({"type": "object", "properties": {"a": {"nullable": True, "city": 1}}})


def test_a_definition_copies_its_schema_and_orders_nothing() -> None:
    schema: dict[str, Any] = {"type": "object", "properties": {"z": {}, "a": {}}}
    definition = ToolDefinition("t", "", schema)
    schema["properties"].clear()
    assert list(definition.input_schema["properties"]) == ["z", "a"]
    assert definition.schema_json == '{"type":"object","properties":{"z":{},"a":{}}}'


def test_JS16_an_empty_schema_is_an_object_without_properties() -> None:
    assert ToolDefinition("t").input_schema == {"type": "object", "properties": {}}
    assert ToolDefinition("t", "", {}).input_schema == {"type": "object", "properties": {}}


def test_a_fingerprint_changes_with_whatever_a_model_can_see() -> None:
    from toolcrib import Annotations

    base = ToolDefinition("t", "d", {"type": "object", "properties": {"a": {}, "b": {}}})
    same = ToolDefinition("t", "d", {"properties": {"b": {}, "a": {}}, "type": "object"})
    assert base.fingerprint == same.fingerprint
    others = [
        ToolDefinition("u", "d", base.input_schema),
        ToolDefinition("t", "e", base.input_schema),
        ToolDefinition("t", "d", {"type": "object", "properties": {"a": {}}}),
        ToolDefinition("t", "d", base.input_schema, annotations=Annotations(read_only=True)),
        ToolDefinition("t", "d", base.input_schema, output_schema={"type": "object"}),
    ]
    assert len({d.fingerprint for d in (base, *others)}) == 6


async def called(schema: dict[str, Any], arguments: str) -> str:
    async with Assembly([Plain("t", "ran", schema=schema)]) as tools:
        return outcome(await tools.call("t", arguments))


async def test_JS01_a_recursive_schema_checks_to_any_depth() -> None:
    schema = {
        "type": "object",
        "properties": {"root": {"$ref": "#/$defs/N"}},
        "$defs": {
            "N": {
                "type": "object",
                "properties": {
                    "kids": {"type": "array", "items": {"$ref": "#/$defs/N"}},
                    "n": {"type": "integer"},
                },
            }
        },
    }
    deep = '{"n": 1}'
    for _ in range(60):
        deep = f'{{"kids": [{deep}]}}'
    assert await called(schema, f'{{"root": {deep}}}') == "ran"
    wrong = deep.replace('"n": 1', '"n": "x"')
    assert await called(schema, f'{{"root": {wrong}}}') == "invalid_arguments"


async def test_JS11_enums_take_json_types_exactly() -> None:
    schema = {"type": "object", "properties": {"w": {"enum": [7, 14, "auto", None]}}}
    for fits in ("7", "14", '"auto"', "null"):
        assert await called(schema, f'{{"w": {fits}}}') == "ran"
    one = {"type": "object", "properties": {"w": {"enum": [1, 0]}}}
    for wrong in ("true", "false", '"x"', "2"):
        assert await called(one, f'{{"w": {wrong}}}') == "invalid_arguments"


async def test_JS13_conditional_keywords_are_honoured() -> None:
    schema = {
        "type": "object",
        "properties": {"a": {}, "b": {}},
        "patternProperties": {"^x": {"type": "integer"}},
        "dependentRequired": {"a": ["b"]},
        "if": {"properties": {"b": {"const": 1}}, "required": ["b"]},
        "then": {"required": ["x1"]},
    }
    assert await called(schema, '{"x1": 1}') == "ran"
    assert await called(schema, '{"x1": "s"}') == "invalid_arguments"
    assert await called(schema, '{"a": 1}') == "invalid_arguments"
    assert await called(schema, '{"b": 1}') == "invalid_arguments"
    assert await called(schema, '{"b": 1, "x1": 1, "a": 1}') == "ran"


async def test_JS17_a_nullable_object_is_an_object() -> None:
    schema = {
        "type": "object",
        "properties": {
            "values": {"anyOf": [{"type": "object"}, {"type": "null"}], "default": None}
        },
    }
    for arguments in ('{"values": {"a": 1}}', '{"values": null}', "{}"):
        assert await called(schema, arguments) == "ran"
    assert await called(schema, '{"values": 1}') == "invalid_arguments"


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "object", "properties": {"f": "true", "g": 1}},
        {"type": "object", "properties": {"f": {"type": "strang"}}},
        {"type": "object", "properties": {"f": {"$ref": "#/$defs/Nowhere"}}},
        {"type": "object", "properties": {"f": {"$ref": "http://127.0.0.1:1/x.json"}}},
        {"type": "object", "properties": {"f": {"$ref": "file:///etc/passwd"}}},
    ],
    ids=["JS20", "unknown type", "JS02", "network", "file"],
)
async def test_a_tool_whose_schema_cannot_be_used_fails_alone(schema: dict[str, Any]) -> None:
    broken = Plain("broken", "ran", schema=schema)
    async with Assembly([broken, Plain("healthy", "fine")]) as tools:
        result = await tools.call("broken", '{"f": 1}')
        assert result.is_error
        assert broken.got == []
        assert outcome(await tools.call("healthy")) == "fine"
        assert len(tools.session().turn().round().names) == 2


def test_JS21_deep_and_large_schemas_are_refused_in_bounded_time() -> None:
    deep: dict[str, Any] = {"type": "string"}
    for _ in range(5000):
        deep = {"type": "array", "items": deep}
    began = time.perf_counter()
    with pytest.raises(InvalidSchema):
        ToolDefinition("t", "", {"type": "object", "properties": {"a": deep}})
    shallow: dict[str, Any] = {"type": "string"}
    for _ in range(150):
        shallow = {"type": "array", "items": shallow}
    with pytest.raises(InvalidSchema, match="deep"):
        compile_schema({"type": "object", "properties": {"a": shallow}})
    large = {f"p{n}": {"type": "string", "description": "x" * 700} for n in range(3000)}
    with pytest.raises(InvalidSchema, match="bytes"):
        compile_schema({"type": "object", "properties": large})
    assert time.perf_counter() - began < 2


async def test_a_deep_value_is_refused_not_a_crash() -> None:
    schema = {"type": "object", "properties": {"a": {}}}
    value: Any = 1
    for _ in range(20_000):
        value = [value]
    checker = compile_schema(schema)
    assert not checker.fits({"a": value})
    assert "deeper" in checker.misfits({"a": value})[0]
    assert await called(schema, '{"a": ' + "[" * 150 + "]" * 150 + "}") == "ran"


async def test_a_pattern_that_backtracks_does_not_stop_the_process() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "string", "pattern": "^(a+)+$"}}}
    began = time.perf_counter()
    found = await called(schema, '{"a": "' + "a" * 4000 + '!"}')
    assert found in ("invalid_arguments", "internal")
    assert time.perf_counter() - began < 2


async def test_misfits_say_path_and_type_and_are_not_endless() -> None:
    schema = {
        "type": "object",
        "properties": {"rows": {"type": "array", "items": {"type": "integer"}}},
    }
    async with Assembly([Plain("t", schema=schema)]) as tools:
        result = await tools.call("t", '{"rows": ["a", 1, "b"]}')
        assert "rows.0" in result.text
        assert "rows.2" in result.text
        assert "got string" in result.text
        many = await tools.call("t", {"rows": ["x"] * 10_000})
    assert len(many.text) < 1500


# what servers list: one bad schema takes no other tool along


def listed(**schemas: Any) -> tuple[dict[str, ToolDefinition], dict[str, str]]:
    """What is offered of a server's list, and the reasons of what is not."""
    entries = [
        {"name": name, **({} if schema is ... else {"inputSchema": schema})}
        for name, schema in schemas.items()
    ]
    found = mirror("s", "", entries)
    return (
        {tool.remote: tool.definition for tool in found.tools},
        {rejection.tool: rejection.reason for rejection in found.rejected},
    )


FINE: dict[str, Any] = {"type": "object", "properties": {"a": {"type": "string"}}}


def nested(levels: int) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "string"}
    for _ in range(levels):
        schema = {"type": "array", "items": schema}
    return {"type": "object", "properties": {"a": schema}}


def deep_default(levels: int) -> dict[str, Any]:
    value: Any = 1
    for _ in range(levels):
        value = [value]
    return {"type": "object", "properties": {"a": {"default": value}}}


UNUSABLE: dict[str, tuple[dict[str, Any], str]] = {
    "JS02": (
        {"type": "object", "properties": {"node": {"$ref": "#/$defs/Node", "$defs": {"Node": {}}}}},
        "/\\$defs/Node",
    ),
    "JS20": ({"type": "object", "properties": {"f": "true", "g": 1}}, "/properties/f"),
    "JS20 inside": ({"type": "object", "properties": {"f": {"items": {"type": "strang"}}}}, "type"),
    "JS21": (nested(5000), "not JSON|deep"),
    "JS21 150": (nested(150), "deeper than 100"),
    "JS21 default": (deep_default(5000), "not JSON|deep"),
    "JS21 size": (
        {"type": "object", "properties": {f"p{n}": {"title": "x" * 700} for n in range(3000)}},
        "limit is 262144",
    ),
    "array": ({"type": "array"}, "not 'object'"),
    "surrogate": ({"type": "object", "description": "\ud800"}, "JSON"),
}


@pytest.mark.parametrize("name", UNUSABLE)
def test_JS02_JS20_JS21_an_unusable_schema_is_refused_with_its_reason_and_alone(name: str) -> None:
    schema, reason = UNUSABLE[name]
    began = time.process_time()
    offered, refused = listed(before=FINE, broken=schema, after=FINE)
    assert time.process_time() - began < 1
    assert list(offered) == ["before", "after"]
    assert list(refused) == ["broken"]
    assert re.search(reason, refused["broken"])
    assert len(refused["broken"]) < 500


async def test_JS03_references_may_point_anywhere_in_the_document() -> None:
    schema = {
        "type": "object",
        "properties": {
            "h": {"type": "object", "required": ["k"]},
            "a": {"type": "array", "items": {"$ref": "#/properties/h"}},
            "b": {"$ref": "#/properties/node/$defs/Node"},
            "node": {"$defs": {"Node": {"type": "integer"}}},
            "esc/aped~": {"$ref": "#/properties/esc~1aped~0x"},
            "esc/aped~x": {"type": "string"},
        },
    }
    offered, _ = listed(t=schema)
    assert "$ref" in str(offered["t"].input_schema)
    assert await called(schema, '{"a": [{"k": 1}], "b": 1, "esc/aped~": "x"}') == "ran"
    for wrong in ('{"a": [{}]}', '{"a": [1]}', '{"b": "x"}', '{"esc/aped~": 1}'):
        assert await called(schema, wrong) == "invalid_arguments"


@pytest.mark.parametrize("schema", [{"type": "object"}, {}, ..., None], ids=str)
async def test_JS16_no_schema_to_speak_of_is_a_tool_without_parameters(schema: Any) -> None:
    offered, refused = listed(t=schema)
    assert refused == {}
    found = dict(offered["t"].input_schema)
    assert found["type"] == "object"
    for arguments in ("{}", "", "null"):
        assert await called(found, arguments) == "ran"


def test_a_schema_is_compiled_at_the_first_call_and_shared_by_equal_ones(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    import toolcrib.schema as module

    made: list[str] = []
    built = module._built

    def counting(text: str, *args: Any, **kwargs: Any) -> Any:
        made.append(text)
        return built(text, *args, **kwargs)

    monkeypatch.setattr(module, "_built", counting)
    schema = {"type": "object", "properties": {"only-here": {"type": "string"}}}
    parsers = [SchemaParser(ToolDefinition(f"t{n}", "", schema)) for n in range(3)]
    assert made == []
    for parser in parsers:
        parser("{}")
    assert len(made) == 1


def test_formats_describe_unless_they_are_asserted() -> None:
    schema = {"type": "string", "format": "date"}
    assert compile_schema(schema).fits("no date")
    assert compile_asserting(schema).misfits("no date") != []
    assert compile_asserting(schema).fits("2026-11-30")


def test_misfits_of_a_union_say_what_it_takes_or_how_near_it_was() -> None:
    simple = compile_schema({"anyOf": [{"type": "string"}, {"type": "array"}]})
    assert simple.misfits(1) == ["expected array or string (got integer)"]
    x = {"properties": {"k": {"const": "x"}, "n": {"type": "integer"}}, "required": ["k", "n"]}
    y = {"properties": {"k": {"const": "y"}, "a": {}, "b": {}}, "required": ["k", "a", "b"]}
    shapes = compile_schema({"oneOf": [x, y, {"type": "null"}]})
    (told,) = shapes.misfits({"k": "x", "n": "secret"})
    assert "none of 3 alternatives" in told and "n: expected integer (got string)" in told
    assert "secret" not in told
