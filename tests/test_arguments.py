"""From what a model sent to the arguments of a call: recovered by rule and recorded, or refused
with a reason (reports AR, the decision table), for function tools and for foreign schemas."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conftest import Plain, outcome
from toolcrib import Assembly, InvalidArguments, ToolResult, tool
from toolcrib.arguments import coerce, decode, encode

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "q": {"type": "string"},
        "limit": {"type": "integer"},
        "rows": {"type": "array", "items": {"type": "integer"}},
        "deep": {"type": "boolean"},
        "free": {"type": ["string", "array"]},
        "rate": {"type": "number"},
        "opt": {"type": ["string", "null"]},
    },
    "required": ["q"],
    "additionalProperties": False,
}


def function() -> Any:
    @tool(name="t")
    async def run(
        q: str,
        limit: int = 3,
        rows: list[int] = [],  # noqa: B006
        deep: bool = False,
        free: str | list[Any] = "",
        rate: float = 0.5,
        opt: str | None = None,
    ) -> Any:
        given = {"q": q, "limit": limit, "rows": rows, "deep": deep, "free": free, "rate": rate}
        defaults = {"limit": 3, "rows": [], "deep": False, "free": "", "rate": 0.5}
        return {k: v for k, v in given.items() if k not in defaults or v != defaults[k]}

    return run


def foreign() -> Any:
    async def answer(ctx: object, arguments: str) -> str:
        return arguments

    return Plain("t", answer, schema=SCHEMA)


async def sent(made: Any, arguments: str) -> ToolResult:
    async with Assembly([made]) as tools:
        return await tools.call("t", arguments)


KINDS = [function, foreign]
both = pytest.mark.parametrize("kind", KINDS, ids=["function", "schema"])


def values(result: ToolResult) -> Any:
    assert not result.is_error, result
    return json.loads(result.text)


@both
@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ('{"q": "a"}', {"q": "a"}),
        (' \n{"q": "a"}\n ', {"q": "a"}),
        ('{"q": "}{"}', {"q": "}{"}),
        ('{"q": "a, "}', {"q": "a, "}),
        ('{"q": "\\u2028 \\ud83d\\ude00"}', {"q": "\u2028 😀"}),
        ('{"q": "a", "rows": [1, 2]}', {"q": "a", "rows": [1, 2]}),
        ('{"q": "NaN and Infinity"}', {"q": "NaN and Infinity"}),
    ],
)
async def test_what_is_right_is_taken_as_it_is_and_nothing_is_noted(
    kind: Any, arguments: str, expected: Any
) -> None:
    result = await sent(kind(), arguments)
    assert values(result) == expected
    assert "repairs" not in result.meta


@both
@pytest.mark.parametrize(
    ("arguments", "expected", "note"),
    [
        (json.dumps('{"q": "*.md"}'), {"q": "*.md"}, "JSON string"),
        (json.dumps(json.dumps('{"q": "*.md"}')), {"q": "*.md"}, "JSON string"),
        ('{"q":"todo","limit":4}\n\nNow I will look', {"q": "todo", "limit": 4}, "ignored"),
        ('{"q": "a", "limit": "5"}', {"q": "a", "limit": 5}, "limit"),
        ('{"q": "a", "rows": "[1, 2]"}', {"q": "a", "rows": [1, 2]}, "rows"),
        ('{"q": "a", "deep": "true"}', {"q": "a", "deep": True}, "deep"),
        ('{"q": "a", "rate": "2"}', {"q": "a", "rate": 2}, "rate"),
        ('{"q": "a", "limit": null}', {"q": "a"}, "null"),
    ],
    ids=["AR05 once", "AR05 twice", "AR10", "number", "list", "boolean", "float", "JS18"],
)
async def test_what_is_recovered_is_noted(
    kind: Any, arguments: str, expected: Any, note: str
) -> None:
    result = await sent(kind(), arguments)
    assert values(result) == expected
    assert any(note in repair for repair in result.meta["repairs"])


@both
@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ('{"q": "a", "limit": "5.5"}', "limit"),
        ('{"q": "a", "limit": "five"}', "limit"),
        ('{"q": "a", "limit": "[5]"}', "limit"),
        ('{"q": "a", "deep": "yes"}', "deep"),
        ('{"q": null}', "q"),
        ('{"q": ["a"]}', "q"),
        ('{"e":"x","q":"a"}{"e":"x","q":"b"}', "exactly one object"),
        ('{"q":"a"}, {"q":"b"}', "exactly one object"),
        ('{"q": "echo a, ', "cut off"),
        ('{"q": "a", "limit": ', "cut off"),
        ('{"arguments": {"q": "a"}}', "'arguments'"),
        ("hello", "not JSON"),
        (json.dumps("hello"), "object"),
        (json.dumps(json.dumps(json.dumps(json.dumps(json.dumps('{"q": "a"}'))))), "object"),
    ],
    ids=["half", "word", "list", "yes", "null", "list for a string", "AR11", "AR11 comma", "AR12",
         "AR12 later", "AR18", "text", "AR05 text", "AR05 deep"],
)  # fmt: skip
async def test_what_leaves_doubt_is_refused(kind: Any, arguments: str, says: str) -> None:
    result = await sent(kind(), arguments)
    assert outcome(result) == "invalid_arguments", result
    assert says in result.text


@both
@pytest.mark.parametrize("arguments", ["[1,2]", '"hello"', "42", "true", "1.5"])
async def test_AR04_json_that_is_no_object_says_what_it_got(kind: Any, arguments: str) -> None:
    result = await sent(kind(), arguments)
    assert outcome(result) == "invalid_arguments"
    kinds = {"[": "array", '"': "string", "4": "integer", "t": "boolean", "1": "number"}
    assert "must be a JSON object, got" in result.text
    assert kinds[arguments[0]] in result.text


@both
async def test_a_string_parameter_keeps_a_string_that_looks_like_json(kind: Any) -> None:
    for text in ("[1]", "5", "null", "true", '{"a": 1}'):
        result = await sent(kind(), json.dumps({"q": text, "free": text}))
        assert values(result) == {"q": text, "free": text}
        assert "repairs" not in result.meta


@both
async def test_AR16_an_unknown_name_is_refused_with_the_accepted_ones(kind: Any) -> None:
    result = await sent(kind(), '{"q": "a", "limitt": 3, "path": "x"}')
    assert outcome(result) == "invalid_arguments"
    for words in ("'limitt'", "did you mean 'limit'", "'path'", "q (required), limit"):
        assert words in result.text


async def test_AR16_a_tool_without_parameters_ignores_what_it_is_sent_and_notes_it() -> None:
    @tool(name="t")
    async def ping() -> str:
        return "pong"

    closed = Plain("t", "pong", schema={"type": "object", "properties": {}, "additionalProperties": False})  # fmt: skip  # noqa: E501
    for made in (ping, closed):
        result = await sent(made, '{"effort": "low"}')
        assert outcome(result) == "pong"
        assert "1" in result.meta["repairs"][0]
        for nothing in ("", "{}", "null", " ", "\n"):
            result = await sent(made, nothing)
            assert outcome(result) == "pong"
            assert "repairs" not in result.meta


@both
async def test_AR17_broken_punctuation_and_dunders_do_not_reach_the_function(kind: Any) -> None:
    name = '"}]}, {'
    arguments = json.dumps({"q": "a", name: 10, "__class__": "x", "self": 1, "k" * 5000: 1})
    result = await sent(kind(), arguments)
    assert outcome(result) == "invalid_arguments"
    assert "__class__" in result.text
    assert len(result.text) < 1500


async def test_AR18_a_tool_that_has_a_parameter_called_arguments_gets_it() -> None:
    @tool(name="t")
    async def run(arguments: dict[str, Any]) -> Any:
        return arguments

    assert values(await sent(run, '{"arguments": {"a": 1}}')) == {"a": 1}


@both
@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e999", "-1e999"])
async def test_AR13_no_number_that_json_does_not_know(kind: Any, number: str) -> None:
    made = kind()
    async with Assembly([made]) as tools:
        for place in (f'"rate": {number}', f'"free": [{number}]', f'"free": [[{{"x": {number}}}]]'):
            result = await tools.call("t", f'{{"q": "a", {place}}}')
            assert outcome(result) == "invalid_arguments", place
        assert not (await tools.call("t", '{"q": "a"}')).is_error


async def test_AR14_integers_stay_exact_at_each_hop() -> None:
    async def answer(ctx: object, arguments: str) -> str:
        return arguments

    made = Plain("t", answer, schema={"type": "object", "properties": {"id": {"type": "integer"}}})
    for number in (1917043659912705297, 10**59 + 7):
        for text in (f'{{"id": {number}}}', f'{{"id": "{number}"}}', f' {{"id":{number}}} ok'):
            assert values(await sent(made, text)) == {"id": number}


@pytest.mark.parametrize("number", ["10.0", "1e3"])
async def test_AR14_a_whole_float_for_an_integer_is_one_rule_for_all_tools(number: str) -> None:
    found = {(await sent(kind(), f'{{"q": "a", "limit": {number}}}')).is_error for kind in KINDS}
    assert len(found) == 1


async def test_extra_names_pass_where_the_schema_allows_them() -> None:
    async def answer(ctx: object, arguments: str) -> str:
        return arguments

    for more in ({}, {"additionalProperties": True}, {"additionalProperties": {"type": "integer"}}):
        made = Plain("t", answer, schema={"type": "object", "properties": {"a": {}}, **more})
        assert values(await sent(made, '{"a": 1, "b": 2}')) == {"a": 1, "b": 2}


async def test_refusals_never_repeat_a_value() -> None:
    for kind in KINDS:
        for arguments in (
            '{"q": ["sk-secret"]}',
            '{"q": "a", "limit": "sk-secret"}',
            '{"q": "a", "rows": ["sk-secret"]}',
            '{"q": "a", "rows": {"sk-secret": 1}}',
        ):
            result = await sent(kind(), arguments)
            assert outcome(result) == "invalid_arguments"
            assert "sk-secret" not in result.text


async def test_what_a_program_sends() -> None:
    assert encode({"a": 1}, {"b": 2}) == '{"a":1,"b":2}'
    assert encode(None, {}) == "{}"
    assert encode("[text", {}) == "[text"
    for wrong in (("{}", {"a": 1}), ({"a": 1}, {"a": 2}), ({"a": object()}, {})):
        with pytest.raises(InvalidArguments):
            encode(*wrong)  # type: ignore[arg-type]


async def test_arguments_that_are_too_long_are_refused_quickly() -> None:
    result = await sent(foreign(), '{"q": "' + "x" * (9 * 1024 * 1024) + '"}')
    assert outcome(result) == "invalid_arguments"
    assert "longer" in result.text


json_values = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(),
        st.floats(allow_nan=False, allow_infinity=False),
        st.text(st.characters(exclude_categories=("Cs",))),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.dictionaries(st.text(st.characters(exclude_categories=("Cs",))), inner, max_size=4),
    ),
    max_leaves=12,
)
objects = st.dictionaries(
    st.text(st.characters(exclude_categories=("Cs",)), max_size=5), json_values, max_size=5
)


@given(objects)
def test_any_json_object_is_decoded_as_it_is(value: dict[str, Any]) -> None:
    assert decode(json.dumps(value)) == (value, ())
    assert decode(json.dumps(value, ensure_ascii=False)) == (value, ())
    wrapped, repairs = decode(json.dumps(json.dumps(value)))
    assert wrapped == value
    assert repairs


@given(st.one_of(st.text(), st.text("{}[]\",:0123456789.eE+-nulltrefas \n\\"), objects.map(json.dumps)), st.integers(0, 40))  # fmt: skip  # noqa: E501
def test_no_text_is_answered_by_anything_but_an_object_or_a_refusal(text: str, cut: int) -> None:
    for sent_text in (text, text[:cut]):
        try:
            value, _ = decode(sent_text)
        except InvalidArguments as refusal:
            told = str(refusal)
        else:
            told = ""
            assert isinstance(value, dict)
        assert len(told) < 500


@given(objects)
def test_coercion_touches_only_strings_and_nulls_of_known_parameters(value: dict[str, Any]) -> None:
    mended, repairs = coerce(value, SCHEMA)
    assert {k: v for k, v in value.items() if k not in SCHEMA["properties"]} == {
        k: v for k, v in mended.items() if k not in SCHEMA["properties"]
    }
    if not repairs:
        assert mended == value


# the rows of the bug reports that have no other test of their name


@tool(name="look")
async def _look(q: str, limit: int = 1) -> str:
    """Look."""
    return f"{q}/{limit}"


@pytest.mark.parametrize("times", [1, 2])
async def test_AR05_an_object_inside_a_json_string_is_unwrapped_and_noted(times: int) -> None:
    text = '{"q": "*.md"}'
    for _ in range(times):
        text = json.dumps(text)
    async with Assembly([_look]) as tools:
        result = await tools.call("look", text)
        assert result.text == "*.md/1"
        assert "JSON string" in str(result.meta["repairs"])
        assert outcome(await tools.call("look", '"\\"hello\\""')) == "invalid_arguments"


async def test_AR10_prose_after_the_object_is_cut_off_and_noted() -> None:
    async with Assembly([_look]) as tools:
        result = await tools.call("look", '{"q":"todo","limit":3}\n\nNow I will look')
    assert result.text == "todo/3"
    assert "after the JSON object" in str(result.meta["repairs"])


async def test_AR11_two_objects_glued_together_are_refused_and_nothing_runs() -> None:
    async with Assembly([_look]) as tools:
        glued = await tools.call("look", '{"q":"x"}{"q":"b"}')
        assert outcome(glued) == "invalid_arguments"
        assert "exactly one object" in glued.text
        assert (await tools.call("look", '{"q":"a}{b"}')).text == "a}{b/1"


async def test_AR12_what_is_cut_off_never_runs_and_no_string_is_edited() -> None:
    async with Assembly([_look]) as tools:
        for cut in ('{"q":"echo a, ', '{"q":"a"', '{"q":"a","limit":'):
            result = await tools.call("look", cut)
            assert outcome(result) == "invalid_arguments"
            assert "cut off" in result.text
        assert outcome(await tools.call("look", '{"q":"a",}')) == "invalid_arguments"
        assert (await tools.call("look", '{"q":"echo a, "}')).text == "echo a, /1"
