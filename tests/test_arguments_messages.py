"""What a refusal tells a model: path, expected, got, accepted names; never a value, nothing of a
secret, never endless (reports AR); and arguments shown while they arrive."""

from __future__ import annotations

import json
import time
from typing import Annotated, Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, Field, SecretStr

from conftest import Plain, outcome
from toolcrib import Assembly, InvalidArguments, ToolDefinition, ToolResult, tool
from toolcrib.arguments import MAX_ACCEPTED, JsonArguments, Repaired, SchemaParser, coerce
from toolcrib.definition import compact_json
from toolcrib.partial import partial_arguments
from toolcrib.schema import compile_schema
from toolcrib.secret import Secret


def foreign(schema: dict[str, Any]) -> Any:
    async def answer(ctx: object, arguments: str) -> str:
        return arguments

    return Plain("t", answer, schema=schema)


def schema_of(made: Any) -> dict[str, Any]:
    return dict(made.definition.input_schema)


async def sent(made: Any, arguments: str) -> ToolResult:
    async with Assembly([made]) as tools:
        return await tools.call("t", arguments)


async def refused(made: Any, arguments: str) -> str:
    result = await sent(made, arguments)
    assert outcome(result) == "invalid_arguments", result
    return result.text


class Pet(BaseModel):
    name: str
    age: int
    token: Annotated[str, Secret] = ""


@tool(name="t")
async def own(
    owner: str,
    pets: list[Pet] = [],  # noqa: B006
    mode: Literal["fast", "deep"] = "fast",
    token: Annotated[str, Secret] = "",
    pin: Annotated[int, Field(json_schema_extra={"writeOnly": True}, ge=1000)] = 1000,
    password: SecretStr = SecretStr(""),
    keys: Annotated[list[int], Secret] = [],  # noqa: B006
    more: Pet | dict[str, int] | None = None,
) -> str:
    return "ran"


KINDS = {"function": lambda: own, "schema": lambda: foreign(schema_of(own))}
both = pytest.mark.parametrize("kind", KINDS)


@both
async def test_a_refusal_says_path_expected_got_and_what_is_accepted(kind: str) -> None:
    text = await refused(
        KINDS[kind](), '{"pets": [{"name": "a", "age": []}], "mode": "slow", "ovner": "me"}'
    )
    for words in ("pets.0.age", "integer (got array)", "'ovner'", "did you mean 'owner'", "mode",
                  "owner (required), pets", "fast", "deep"):  # fmt: skip
        assert words in text
    assert "slow" not in text


@both
@pytest.mark.parametrize(
    ("arguments", "path"),
    [
        ('{"owner": "o", "token": 4711}', "token"),
        ('{"owner": "o", "token": ["4711"]}', "token"),
        ('{"owner": "o", "pin": 471}', "pin"),
        ('{"owner": "o", "pin": "x4711"}', "pin"),
        ('{"owner": "o", "password": 4711}', "password"),
        ('{"owner": "o", "keys": [1, "x4711"]}', "keys"),
        ('{"owner": "o", "pets": [{"name": "a", "age": 1, "token": 4711}]}', "pets.0.token"),
    ],
)
async def test_of_a_secret_nothing_is_told_but_where_it_is(
    kind: str, arguments: str, path: str
) -> None:
    text = await refused(KINDS[kind](), arguments)
    before = text.partition(" Accepted: ")[0]
    assert f"{path}: not accepted (it is secret" in before
    for word in ("4711", "471", "integer", "string", "array", "number", "1000", "pattern", "list"):
        assert word not in before


@both
async def test_a_secret_in_one_branch_of_a_union_is_not_told_either(kind: str) -> None:
    text = await refused(
        KINDS[kind](), '{"owner": "o", "more": {"name": "n", "age": 1, "token": 4711}}'
    )
    assert "4711" not in text
    for told in text.partition(" Accepted: ")[0].split("; "):
        assert "token" not in told or "secret" in told or "nearest" in told


def test_a_secret_is_marked_in_the_schema_and_works_as_what_it_is() -> None:
    properties = schema_of(own)["properties"]
    for name in ("token", "pin", "password", "keys"):
        assert properties[name]["writeOnly"] is True
    assert own.stages.parse('{"owner": "o", "token": "4711"}') == {"owner": "o", "token": "4711"}


async def test_AR13_the_path_of_a_number_that_is_none_is_told() -> None:
    schema = {"type": "object", "properties": {"s": {"type": "number"}, "deep": {}}}

    @tool(name="t")
    async def run(s: float = 0, deep: Any = None, pet: Pet | None = None) -> str:
        return "ran"

    async with Assembly([run]) as mine, Assembly([foreign(schema)]) as theirs:
        for number in ("NaN", "Infinity", "-Infinity", "1e999", "-1e999", "1" * 400 + ".0",
                       "9" * 300 + "e50"):  # fmt: skip
            for arguments, path in (
                (f'{{"s": {number}}}', "s"),
                (f'{{"deep": {{"a": [0, {number}]}}}}', "deep.a.1"),
            ):
                for tools in (mine, theirs):
                    result = await tools.call("t", arguments)
                    assert outcome(result) == "invalid_arguments", arguments[:40]
                    assert path in result.text, (arguments[:40], result.text)
                    assert not (await tools.call("t", '{"s": 1e30}')).is_error


# AR14


NUMBERS = [1917043659912705297, 2**63, -(2**64), 10**59 + 7, 10**4000]


@pytest.mark.parametrize("number", NUMBERS, ids=lambda n: str(n)[:20])
async def test_AR14_integers_stay_exact_through_validation_mending_and_the_wire(
    number: int,
) -> None:
    schema = {
        "type": "object",
        "properties": {
            "id": {"type": "integer", "minimum": -(10**70), "default": number},
            "n": {"type": "integer"},
        },
    }
    made = foreign(schema)
    assert json.loads(made.definition.schema_json)["properties"]["id"]["default"] == number
    for text in (f'{{"id": {number}}}', f'{{"id": "{number}"}}', f'{{"id": {number}, "n": "1"}}'):
        result = await sent(made, text)
        assert json.loads(result.text)["id"] == number
    bounded = compile_schema({"maximum": number, "minimum": number})
    assert bounded.fits(number)
    assert not bounded.fits(number + 1)
    assert not bounded.fits(number - 1)


async def test_AR14_a_number_of_too_many_digits_is_refused() -> None:
    @tool(name="t")
    async def run(id: int) -> str:
        return "ran"

    for made in (run, foreign({"type": "object"})):
        for text in ('{"id": %s}' % ("9" * 5000), '{"id": %s} and more' % ("9" * 5000)):
            await refused(made, text)


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_AR14_floats_keep_their_digits(number: float) -> None:
    text = compact_json({"x": number, "big": 10**30})
    assert json.loads(text) == {"x": number, "big": 10**30}
    parser = SchemaParser(ToolDefinition("t", "", {"type": "object", "properties": {"n": {"type": "integer"}}}))  # fmt: skip  # noqa: E501
    mended = parser(json.dumps({"x": number, "n": "5"}))
    assert isinstance(mended, Repaired)
    assert json.loads(mended.prepared.text) == {"x": number, "n": 5}


# AR16, AR17, AR18


@both
async def test_AR17_names_made_of_broken_punctuation_are_escaped_and_cut(kind: str) -> None:
    names = ['"}]}, {', "__class__", "self", "k" * 5000, "a\nb\x1b[31m", "\u202e", "{}"]
    text = await refused(KINDS[kind](), json.dumps({"owner": "o", **dict.fromkeys(names, 1)}))
    assert "'__class__'" in text and "'self'" in text
    assert "\n" not in text and "\x1b" not in text and "\u202e" not in text
    assert len(text) < 2000
    nested = json.dumps({"owner": "o", "pets": [{"name": "n", "age": 1, "token": "", "\n": 2}],
                         "more": {"\x1b": "x"}})  # fmt: skip
    text = await refused(KINDS[kind](), nested)
    assert "\n" not in text and "\x1b" not in text


@both
@pytest.mark.parametrize("wrapper", ["arguments", "input", "parameters", "args"])
async def test_AR18_arguments_wrapped_in_a_key_are_told_to_stand_at_the_top(
    kind: str, wrapper: str
) -> None:
    text = await refused(KINDS[kind](), json.dumps({wrapper: {"owner": "o"}}))
    assert f"at the top level, not inside '{wrapper}'" in text
    assert "top level" not in await refused(KINDS[kind](), json.dumps({wrapper: {}, "owner": 1}))


async def test_AR16_a_tool_that_takes_anything_gets_anything() -> None:
    result = await sent(foreign({"type": "object"}), '{"effort": "low"}')
    assert outcome(result) == '{"effort": "low"}'


# AR05 and the table, at depth


NESTED: dict[str, Any] = {
    "type": "object",
    "properties": {
        "filter": {"$ref": "#/properties/shape"},
        "shape": {
            "type": "object",
            "properties": {"limit": {"type": "integer"}, "name": {"type": "string"}},
            "required": ["limit"],
        },
        "node": {"$ref": "#/properties/tree/$defs/Node"},
        "tree": {
            "$defs": {
                "Node": {
                    "type": "object",
                    "properties": {
                        "kids": {
                            "type": "array",
                            "items": {"$ref": "#/properties/tree/$defs/Node"},
                        },
                        "n": {"type": "integer"},
                    },
                }
            },
            "type": "object",
        },
        "either": {"anyOf": [{"$ref": "#/properties/shape"}, {"type": "null"}]},
        "loop": {"$ref": "#/properties/loop"},
        "through": {"$ref": "#/properties/a~1b~0c%25"},
        "a/b~c%": {"type": "array"},
    },
}


@pytest.mark.parametrize(
    ("arguments", "expected", "paths"),
    [
        ({"filter": '{"limit": 3}'}, {"filter": {"limit": 3}}, ["filter"]),
        ({"filter": {"limit": "3"}}, {"filter": {"limit": 3}}, ["filter.limit"]),
        ({"filter": '{"limit": "3"}'}, {"filter": {"limit": 3}}, ["filter", "filter.limit"]),
        ({"filter": {"limit": "3", "name": None}}, {"filter": {"limit": 3}},
         ["filter.limit", "filter.name"]),
        ({"node": {"kids": [{"n": "1"}, {"kids": '[{"n": "2"}]'}]}},
         {"node": {"kids": [{"n": 1}, {"kids": [{"n": 2}]}]}},
         ["node.kids.0.n", "node.kids.1.kids", "node.kids.1.kids.0.n"]),
        ({"either": '{"limit": 3}'}, {"either": {"limit": 3}}, ["either"]),
        ({"filter": None}, {}, ["filter"]),
        ({"through": "[3]"}, {"through": [3]}, ["through"]),
    ],
)  # fmt: skip
async def test_JS02_JS03_slips_are_put_right_through_references(
    arguments: dict[str, Any], expected: dict[str, Any], paths: list[str]
) -> None:
    result = await sent(foreign(NESTED), json.dumps(arguments))
    assert json.loads(result.text) == expected
    assert [repair.split(":")[0] for repair in result.meta["repairs"]] == paths


async def test_JS18_null_for_what_is_optional_never_reaches_the_server() -> None:
    schema = {
        "type": "object",
        "properties": {"q": {"type": "string"}, "head": {"type": "string"},
                       "tail": {"type": ["string", "null"]}, "free": {}},
        "required": ["q"],
    }  # fmt: skip
    made = foreign(schema)
    for text, expected in (
        ('{"q": "x"}', {"q": "x"}),
        ('{"q": "x", "head": null}', {"q": "x"}),
        ('{"q": "x", "tail": null, "free": null}', {"q": "x", "tail": None, "free": None}),
        ('{"q": "x", "head": null, "tail": null}', {"q": "x", "tail": None}),
    ):
        assert json.loads((await sent(made, text)).text) == expected
    assert "q: expected string (got null)" in await refused(made, '{"q": null}')


async def test_a_string_stays_one_where_a_string_is_taken_whatever_else_is_mended() -> None:
    schema = {"type": "object", "properties": {"free": {"type": ["string", "array"]}, "n": {"type": "integer"}}}  # fmt: skip  # noqa: E501
    result = await sent(foreign(schema), '{"free": "[1]", "n": "5"}')
    assert json.loads(result.text) == {"free": "[1]", "n": 5}


async def test_of_thousands_of_errors_the_first_is_told_without_listing_them() -> None:
    """From 1,000 on pydantic is not asked for its list, which takes longer than the call."""
    pets = [{"name": "n", "age": "x"}] * 2000
    text = await refused(own, json.dumps({"owner": "o", "pets": pets}))
    assert "too large to say where" in text
    assert "Input should" not in text


async def test_a_name_given_twice_counts_once_and_the_text_is_written_anew() -> None:
    result = await sent(foreign({"type": "object"}), '{"path": "/safe", "path": "/etc"}')
    assert outcome(result) == '{"path":"/etc"}'
    assert "twice" in result.meta["repairs"][0]
    result = await sent(foreign({"type": "object"}), '{"a": {"b": 1, "b": 2}} and so on')
    assert outcome(result) == '{"a":{"b":2}}'
    assert len(result.meta["repairs"]) == 2
    assert own.stages.parse('{"owner": "a", "owner": "b"}') == {"owner": "b"}


async def test_many_repairs_are_counted_and_not_listed() -> None:
    schema = {
        "type": "object",
        "properties": {"rows": {"type": "array", "items": {"type": "integer"}}},
    }
    result = await sent(foreign(schema), json.dumps({"rows": [str(n) for n in range(1000)]}))
    assert json.loads(result.text) == {"rows": list(range(1000))}
    assert len(result.meta["repairs"]) == 21
    assert "980 more" in result.meta["repairs"][-1]


# JS20, JS02: a schema that cannot be used


async def test_JS20_a_tool_whose_schema_cannot_be_used_says_so_when_called() -> None:
    made = foreign({"type": "object", "properties": {"f": "true", "g": 1}})
    result = await sent(made, '{"f": 1}')
    assert outcome(result) == "not_available"
    assert "/properties/f" in result.text
    assert made.got == []


# bounds


@both
async def test_a_refusal_is_short_however_much_is_wrong(kind: str) -> None:
    for arguments in (
        {f"name{n}": 1 for n in range(100_000)},
        {"owner": "o", "pets": [{"name": n} for n in range(20_000)]},
        {"owner": "o", "keys": ["x"] * 100_000},
        {"owner": "o", "more": {str(n): "x" for n in range(20_000)}},
        {"owner": "o", "pets": {"x" * 100_000: 1}},
    ):
        text = json.dumps(arguments)
        began = time.process_time()
        told = await refused(KINDS[kind](), text)
        assert time.process_time() - began < 1.5
        assert len(told) < 3500


async def test_a_tool_with_thousands_of_parameters_lists_the_needed_and_counts_the_rest() -> None:
    properties: dict[str, Any] = {f"p{n:04}": {"type": "integer"} for n in range(3000)}
    made = foreign({"type": "object", "properties": properties, "required": ["p2999"],
                    "additionalProperties": False})  # fmt: skip
    text = await refused(made, '{"p0001": "x"}')
    assert "p2999 (required)" in text
    assert f"and {3000 - MAX_ACCEPTED} more" in text
    assert len(text) < 1500


# what fits is never touched


words = st.text(st.characters(exclude_categories=("Cs",)), max_size=6)
numbers = st.integers() | st.floats(allow_nan=False, allow_infinity=False)
json_values = st.recursive(
    st.none() | st.booleans() | numbers | words,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words, inner, max_size=3),
    max_leaves=8,
)
subschemas = st.recursive(
    st.sampled_from(
        [{}, {"type": "string"}, {"type": "integer"}, {"type": "number"},
         {"type": ["null", "boolean"]}, {"enum": [1, "1", None]}, {"const": "5"},
         {"$ref": "#/properties/a"}, {"not": {"type": "null"}}]
    ),
    lambda inner: st.one_of(
        st.builds(lambda items: {"type": "array", "items": items}, inner),
        st.builds(lambda one, two: {"anyOf": [one, two]}, inner, inner),
        st.builds(
            lambda one, two, closed: {"type": "object", "properties": {"a": one, "b": two},
                                      **({"additionalProperties": False} if closed else {})},
            inner, inner, st.booleans(),
        ),
    ),
    max_leaves=5,
)  # fmt: skip


def assert_short(text: str) -> None:
    assert len(text) < 4000


@given(
    st.dictionaries(st.sampled_from(["a", "b", "c", "d"]), json_values, max_size=4),
    st.dictionaries(st.sampled_from(["a", "b", "c"]), subschemas, max_size=3),
)
def test_whatever_fits_is_handed_on_unchanged(
    value: dict[str, Any], properties: dict[str, Any]
) -> None:
    schema = {"type": "object", "properties": {"a": {}, **properties}}
    if schema["properties"]["a"] == {"$ref": "#/properties/a"}:
        schema["properties"]["a"] = {}
    checker = compile_schema(schema)
    parser = SchemaParser(ToolDefinition("t", "", schema))
    text = json.dumps(value)
    if not checker.fits(value):
        try:
            found = parser(text)
        except InvalidArguments as error:
            told = str(error)
            assert_short(told)
            return
        assert isinstance(found, Repaired) and found.repairs
        assert checker.fits(dict(found.prepared))
        assert coerce(dict(found.prepared), schema)[0] is not None
        return
    assert checker.misfits(value) == []
    found = parser(text)
    assert isinstance(found, JsonArguments)
    assert found == value
    assert found.text == text if value else found.text == "{}"


# arguments that are still arriving


def test_partial_arguments_grow_to_the_whole() -> None:
    whole = '{"path": "a\\"b\\u00e4\\ud83d\\ude00", "rows": [1, {"x": [true, null]}], "n": -1.5e3}'
    shown = [partial_arguments(whole[:end]) for end in range(len(whole) + 1)]
    assert shown[0] == shown[1] == {}
    assert shown[-1] == json.loads(whole)
    assert partial_arguments('{"path": "notes/to') == {"path": "notes/to"}
    assert partial_arguments('{"path": "a", "ro') == {"path": "a"}
    sizes = [len(json.dumps(value)) for value in shown if value]
    assert sizes[0] < sizes[-1]


@pytest.mark.parametrize(
    "text", ["", " ", "null", "[1", '"x', "5", "hello", "{}}", '{"a": NaN', "\ud83d", "{" * 5000,
             '{"a": "' + "x" * (9 * 1024 * 1024)],
    ids=lambda text: text[:8] or "empty",
)  # fmt: skip
def test_partial_arguments_of_what_is_no_object_are_none(text: str) -> None:
    assert partial_arguments(text) == {}


@given(st.text() | st.text('{}[]",:0123456789.eE+-nulltrefas \\'))
def test_partial_arguments_never_raise(text: str) -> None:
    assert isinstance(partial_arguments(text), dict)
