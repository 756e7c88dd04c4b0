"""What a tool returned, as JSON and against its own output schema (reports RS)."""

from __future__ import annotations

import asyncio
import collections
import dataclasses
import datetime
import decimal
import enum
import fractions
import hashlib
import ipaddress
import itertools
import json
import logging
import math
import re
import subprocess
import sys
import threading
import typing
import uuid
from pathlib import Path
from typing import Any

import numpy as np
import pydantic
import pytest
from hypothesis import given
from hypothesis import strategies as st

from conftest import outcome
from toolcrib import (
    Assembly,
    CallContext,
    DataPart,
    FilePart,
    ImagePart,
    TextPart,
    ToolCall,
    ToolDefinition,
    ToolError,
    ToolResult,
    define_tool,
    tool,
)
from toolcrib.content import Failure
from toolcrib.jsonable import MAX_DEPTH, NON_FINITE, REPLACED, NotJson, json_text, jsonable
from toolcrib.manifest import ManifestTool
from toolcrib.providers import anthropic, gemini
from toolcrib.providers import mcp as mcp_format
from toolcrib.results import structured, to_result
from toolcrib.sources.mcp.content.translate import result_of


async def returned(value: Any, **settings: Any) -> ToolResult:
    async def give(ctx: CallContext, arguments: Any) -> Any:
        if isinstance(value, BaseException):
            raise value
        return value

    made = define_tool("gives", description="", execute=give, **settings)
    async with Assembly([made]) as tools:
        return await tools.call("gives")


# -- RS01


@pytest.mark.parametrize(
    "value",
    [
        dict,
        lambda: 1,
        ValueError("sk-secret"),
        {"a": {"b": [1, object()]}},
        iter([1]),
        itertools.count(),
        (n for n in [1]),
        3 + 4j,
        range(10**12),
        {1: "a", "1": "b"},
        {"picture": ImagePart(b"x", "image/png")},
        {"n": 10**5000},
        {(object(),): 1},
    ],
    ids=lambda value: type(value).__name__,
)
def test_RS01_what_json_cannot_hold_is_an_error_that_names_the_tool_and_no_value(
    value: Any,
) -> None:
    result = to_result("gives", value)
    assert outcome(result) == "invalid_output"
    assert result.text.startswith("tool 'gives' returned what cannot be written as JSON (")
    assert result.text.endswith("the call itself did run")
    assert "sk-secret" not in result.text
    assert "0x" not in result.text
    json.dumps(result.to_json())


def test_RS01_the_error_says_where() -> None:
    assert "(a.b.1: a value of type 'object')" in to_result("t", {"a": {"b": [1, object()]}}).text


async def test_RS01_an_open_file_is_an_error_and_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "f").write_text("sk-secret")
    with (tmp_path / "f").open() as file:
        result = await returned(file)
    assert outcome(result) == "invalid_output"
    assert "sk-secret" not in result.text


def nested(depth: int, inner: Any = 1) -> Any:
    for _ in range(depth):
        inner = [inner]
    return inner


@pytest.mark.parametrize("inner", [1, {2}, math.nan])
def test_RS01_depth_is_bounded_alike_on_every_way(inner: Any) -> None:
    inner_depth = 1 if isinstance(inner, set) else 0
    assert not to_result("t", nested(MAX_DEPTH - inner_depth, inner)).is_error
    assert to_result("t", nested(MAX_DEPTH + 1 - inner_depth, inner)).is_error


def test_RS01_cycles_end() -> None:
    around: dict[str, Any] = {"set": {1}}
    around["self"] = around
    twice: list[Any] = []
    twice += [twice, twice, {1}]

    class Node(pydantic.BaseModel):
        next: Any = None

    node = Node()
    node.next = node
    for value in (around, twice, node, [node], collections.deque([around])):
        assert outcome(to_result("t", value)) == "invalid_output"


async def test_RS01_the_fault_of_a_value_is_internal_and_its_text_hidden() -> None:
    class Hostile(collections.UserDict[str, int]):
        def items(self) -> Any:
            raise ValueError("sk-secret")

    result = await returned({"a": Hostile(x=1)})
    assert outcome(result) == "internal"
    assert "sk-secret" not in result.text


# -- RS02


class Colour(enum.Enum):
    RED = "red"
    SET = frozenset({1})


class Level(enum.IntEnum):
    LOW = 1


class Name(enum.StrEnum):
    ANA = "ana"


class Point(typing.NamedTuple):
    x: int
    y: int


@dataclasses.dataclass
class Row:
    tags: set[str]
    at: datetime.date = datetime.date(2026, 1, 2)


class Model(pydantic.BaseModel):
    tags: set[str] = {"b", "a", "c"}
    raw: bytes = b"ok"
    secret: pydantic.SecretStr = pydantic.SecretStr("sk-secret")
    when: datetime.timedelta = datetime.timedelta(hours=25)
    long_name: int = pydantic.Field(1, serialization_alias="longName")


UTC = datetime.UTC
CASES: list[tuple[Any, str]] = [
    (
        {"u": {3, 1, 2}, "k": {}.keys(), "d": decimal.Decimal("1.10")},
        '{"u":[1,2,3],"k":[],"d":"1.10"}',
    ),
    ({"t": datetime.datetime(2026, 1, 2, tzinfo=UTC)}, '{"t":"2026-01-02T00:00:00+00:00"}'),
    ([datetime.date(2026, 1, 2), datetime.time(3, 4)], '["2026-01-02","03:04:00"]'),
    ([datetime.timedelta(hours=25)], '["P1DT1H"]'),
    ({"p": Path("a/b")}, '{"p":"a/b"}'),
    (
        {1: "i", None: "n", False: "b", 2.5: "f", (1, "a"): "t"},
        '{"1":"i","null":"n","false":"b","2.5":"f","[1,\\"a\\"]":"t"}',
    ),
    (
        {Name.ANA: 1, Colour.RED: 2, datetime.date(2026, 1, 2): 3},
        '{"ana":1,"red":2,"2026-01-02":3}',
    ),
    ({"a": 1}.items(), '[["a",1]]'),
    ({"b": 1, "a": 2}.keys(), '["b","a"]'),
    ({"b": 1, "a": 2}.values(), "[1,2]"),
    ({"a", 1, None, (2, 3), 2.5}, '[1,2.5,"a",[2,3],null]'),
    ([Colour.RED, Colour.SET, Level.LOW, Name.ANA], '["red",[1],1,"ana"]'),
    (Point(1, 2), "[1,2]"),
    (Row({"b", "a"}), '{"tags":["a","b"],"at":"2026-01-02"}'),
    ([Row({"b", "a"})], '[{"tags":["a","b"],"at":"2026-01-02"}]'),
    (
        Model(),
        '{"tags":["a","b","c"],"raw":"ok","secret":"**********","when":"P1DT1H","longName":1}',
    ),
    (Model(raw=b"\xff").raw, "�"),
    ([uuid.UUID(int=1)], '["00000000-0000-0000-0000-000000000001"]'),
    ([fractions.Fraction(1, 3)], '["1/3"]'),
    ([ipaddress.ip_address("::1"), re.compile("a+")], '["::1","a+"]'),
    ([b"text", bytearray(b"b"), memoryview(b"m")], '["text","b","m"]'),
    (collections.deque([1, 2]), "[1,2]"),
    (collections.Counter("aab"), '{"a":2,"b":1}'),
    (collections.ChainMap({"a": 1}), '{"a":1}'),
    (range(3), "[0,1,2]"),
    ({"big": 2**70, "s": {1}}, '{"big":1180591620717411303424,"s":[1]}'),
    (np.int64(3), "3"),
    (np.float64(2.5), "2.5"),
    ({"x": np.bool_(True), "a": np.array([[1, 2], [3, 4]])}, '{"x":true,"a":[[1,2],[3,4]]}'),
    (np.array(["2026-01-02"], dtype="datetime64[D]"), '["2026-01-02"]'),
    (np.str_("text"), "text"),
    (Name.ANA, "ana"),
    (b"line\nline", "line\nline"),
    ("plain", "plain"),
]


@pytest.mark.parametrize(("value", "text"), CASES, ids=[text[:40] for _, text in CASES])
async def test_RS02_anything_reasonable_has_a_documented_text(value: Any, text: str) -> None:
    result = await returned(value)
    assert (result.text, result.is_error) == (text, False)
    assert result.value is value


def test_numpy_is_never_imported_by_us() -> None:
    code = "import sys, toolcrib; from toolcrib.jsonable import json_text; json_text({1: {2}});"
    code += "sys.exit('numpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


STABLE = """
import pydantic, enum, collections
from toolcrib.results import to_result
words = {"alpha", "bravo", "carol", "delta", "early"}
class M(pydantic.BaseModel):
    tags: set[str] = words
    inner: dict[str, list[frozenset[str]]] = {"a": [frozenset(words)]}
class E(enum.Enum):
    W = frozenset(words)
print(to_result("t", [M(), {"m": M()}, E.W, {frozenset(words): 1}, {(w,) for w in words}]).text)
"""


def test_RS02_the_order_is_the_same_in_every_process() -> None:
    def run(seed: str) -> str:
        environ = {"PYTHONHASHSEED": seed, "PYTHONPATH": str(Path(__file__).parents[1] / "src")}
        command = [sys.executable, "-c", STABLE]
        return subprocess.run(
            command, env=environ, capture_output=True, text=True, check=True
        ).stdout

    assert len({run(seed) for seed in ("0", "1", "2", "5")}) == 1


plain = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text() | st.floats(),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(), inner, max_size=5),
)


@given(plain)
def test_both_ways_of_writing_agree(value: Any) -> None:
    """The quick one and the careful one; a set beside forces the careful one."""
    quick = json_text(value)[0]
    careful = json_text([{0}, value])[0]
    assert careful == f"[[0],{quick}]"
    assert json.loads(quick) == jsonable(value)[0]


# -- RS04


class Floats(pydantic.BaseModel):
    x: float


@pytest.mark.parametrize(
    "value",
    [
        {"mean": math.nan, "max": math.inf, "min": -math.inf, "none": None},
        [Floats(x=math.nan)],
        Floats(x=-math.inf),
        DataPart({"x": [math.nan]}),
        [TextPart("t"), {"x": math.inf}],
        np.array([math.nan, 1.0]),
        decimal.Decimal("NaN"),
        decimal.Decimal("-Infinity"),
        math.nan,
        {math.inf: 1},
    ],
    ids=lambda v: str(v)[:30],
)
async def test_RS04_what_is_not_finite_is_a_string_and_noted(value: Any) -> None:
    result = await returned(value)

    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} is not JSON")

    data = [part.value for part in result.content if isinstance(part, DataPart)]
    said = json.dumps(data, allow_nan=False) if data else result.text
    json.loads(said, parse_constant=refuse)
    assert "NaN" in said or "Infinity" in said
    assert "null" not in said.replace('"none":null', "")
    assert result.meta["notes"] == (NON_FINITE,)


async def test_RS04_text_that_only_says_so_is_left_alone() -> None:
    result = await returned({"a": "NaN null Infinity", "b": None})
    assert result.text == '{"a":"NaN null Infinity","b":null}'
    assert not result.meta


# -- RS05, RS06: an error stays an error through every layer


CALLS = [ToolCall("call-1", "gives")]
DOWN = {"isError": True, "content": [{"type": "text", "text": "no such row"}]}


async def foreign(wire: dict[str, Any], **settings: Any) -> ToolResult:
    return await returned(result_of("remote", wire), **settings)


async def test_RS05_an_error_of_a_server_is_one_in_the_api_and_in_every_export() -> None:
    result = await foreign(DOWN)
    assert result.is_error
    assert result.failure == Failure("tool_error", "no such row")
    assert result.to_json()["is_error"] is True
    (message,) = anthropic.results([result])
    assert message["content"][0]["is_error"] is True
    assert mcp_format.results([result])[0]["isError"] is True
    assert "error" in json.dumps(gemini.results([result], CALLS)).lower()


async def test_RS06_the_words_of_an_error_win_over_its_structured_content() -> None:
    said = {"type": "text", "text": "db down"}
    wire = {"isError": True, "content": [said], "structuredContent": {"answer": 42}}
    schema = {"type": "object", "properties": {"answer": {"type": "string"}}}
    result = await foreign(wire, output_schema=schema, strict_output=True)
    assert (outcome(result), result.text) == ("tool_error", "db down")
    assert "warnings" not in result.meta, "the structure of an error is not checked"
    assert "42" not in json.dumps(anthropic.results([result]))


# -- RS08

GRADES = {
    "type": "object",
    "properties": {"grade": {"enum": ["a", "b"]}},
    "required": ["grade"],
}


def answer(structured_content: Any = None) -> dict[str, Any]:
    wire: dict[str, Any] = {"content": [{"type": "text", "text": "grade c"}]}
    return wire if structured_content is None else {**wire, "structuredContent": structured_content}


@pytest.mark.parametrize(
    ("wire", "warning"),
    [
        (answer({"grade": "c"}), "grade: "),
        (answer({}), "'grade'"),
        (answer(), "gave no structured value"),
    ],
    ids=["enum", "missing", "none"],
)
async def test_RS08_a_result_against_its_own_schema_is_delivered_with_a_warning(
    wire: dict[str, Any], warning: str
) -> None:
    result = await foreign(wire, output_schema=GRADES)
    assert (result.text, result.is_error) == ("grade c", False)
    assert warning in result.meta["warnings"][0].replace('"', "'")
    strict = await foreign(wire, output_schema=GRADES, strict_output=True)
    assert outcome(strict) == "invalid_output"
    assert strict.text.startswith("tool 'gives' gave a result that does not fit its own output")
    assert warning in strict.text.replace('"', "'")


async def test_RS08_what_fits_is_neither_warned_of_nor_changed() -> None:
    result = await foreign(answer({"grade": "a"}), output_schema=GRADES, strict_output=True)
    assert (result.text, dict(result.meta)) == ("grade c", {})


async def test_RS08_a_schema_that_cannot_be_used_warns_and_stops_nothing() -> None:
    schema = {"type": "object", "$ref": "https://example.invalid/s.json"}
    result = await foreign(answer({"grade": "c"}), output_schema=schema)
    assert result.text == "grade c"
    assert "cannot be used" in result.meta["warnings"][0]


async def test_RS08_the_return_annotation_is_the_output_schema_and_is_checked() -> None:
    class Grade(typing.TypedDict):
        grade: typing.Literal["a", "b"]
        count: int

    def grade() -> Grade:
        return {"grade": "c", "count": 1}  # type: ignore[typeddict-item]

    grade.__annotations__["return"] = Grade
    for is_strict in (False, True):
        made = tool(strict_output=is_strict)(grade)
        assert made.definition.output_schema == {
            "type": "object",
            "properties": {
                "grade": {"enum": ["a", "b"], "type": "string"},
                "count": {"type": "integer"},
            },
            "required": ["grade", "count"],
        }
        async with Assembly([made]) as tools:
            result = await tools.call("grade")
        if is_strict:
            assert outcome(result) == "invalid_output"
        else:
            assert result.text == '{"grade":"c","count":1}'
            assert len(result.meta["warnings"]) == 1


def give_model() -> Model: ...  # type: ignore[empty-body]
def give_row() -> Row: ...  # type: ignore[empty-body]
def give_rows() -> list[Row]: ...  # type: ignore[empty-body]
def give_counts() -> dict[str, int]: ...  # type: ignore[empty-body]
def give_point() -> Point: ...  # type: ignore[empty-body]
async def give_later() -> typing.Annotated[Row, "later"]: ...  # type: ignore[empty-body]
def give_str() -> str: ...  # type: ignore[empty-body]
def give_int() -> int: ...  # type: ignore[empty-body]
def give_none() -> None: ...
def give_any() -> Any: ...
def give_dict() -> dict[str, Any]: ...  # type: ignore[empty-body]
def give_bare() -> list: ...  # type: ignore[empty-body,type-arg]
def give_maybe() -> Row | None: ...
def give_result() -> ToolResult: ...  # type: ignore[empty-body]
def give_parts() -> list[TextPart | ImagePart]: ...  # type: ignore[empty-body]
def give_image() -> ImagePart: ...  # type: ignore[empty-body]
def give_bytes() -> bytes: ...  # type: ignore[empty-body]
def give_many() -> collections.abc.Iterator[int]: ...  # type: ignore[empty-body]
def give_odd() -> list[threading.Thread]: ...  # type: ignore[empty-body]
def give_nothing_said(): ...  # type: ignore[no-untyped-def]


@pytest.mark.parametrize(
    ("function", "says"),
    [
        (give_model, "object"),
        (give_row, "object"),
        (give_rows, "array"),
        (give_counts, "object"),
        (give_point, "array"),
        (give_later, "object"),
        *(
            (function, None)
            for function in (
                give_str, give_int, give_none, give_any, give_dict, give_bare, give_maybe,
                give_result, give_parts, give_image, give_bytes, give_many, give_odd,
                give_nothing_said,
            )
        ),
    ],
    ids=lambda v: getattr(v, "__name__", v),
)  # fmt: skip
def test_an_output_schema_is_derived_where_it_says_something(
    function: Any, says: str | None
) -> None:
    schema = tool(function).definition.output_schema
    assert (schema is None) == (says is None)
    if schema is not None and "$ref" not in schema:
        assert schema["type"] == says


async def test_what_a_function_gives_fits_the_schema_of_its_annotation() -> None:
    @tool(strict_output=True)
    def rows() -> list[Row]:
        return [Row({"b"})]

    @tool(strict_output=True)
    def model() -> Model:
        return Model()

    async with Assembly([rows, model]) as tools:
        assert (await tools.call("rows")).text == '[{"tags":["b"],"at":"2026-01-02"}]'
        result = await tools.call("model")
        assert not result.is_error
        assert structured(result)["longName"] == 1


# -- RS14

BAD = "x\ud83dy"


@pytest.mark.parametrize(
    "value",
    [
        BAD,
        {"a": [BAD], BAD: 1},
        {BAD},
        Row({BAD}),
        TextPart(BAD),
        DataPart({"a": BAD}),
        FilePart(BAD, BAD),
        [TextPart("fine"), BAD, {"a": BAD}],
        ToolResult.ok(BAD),
        ToolResult.failed("tool_error", BAD, partial=[TextPart(BAD)]),
        ToolError(BAD, partial={"k": BAD}),
        b"\x97 ok".decode("utf-8", "surrogateescape"),
        b"\x97 ok",
        {"out": b"\x97"},
        Path("a\udc97"),
    ],
    ids=lambda v: type(v).__name__,
)
async def test_RS14_what_is_no_text_is_replaced_at_ingestion_and_the_result_kept(
    value: Any,
) -> None:
    result = await returned(value)
    assert outcome(result) in {"tool_error", result.text}
    wire = json.dumps(result.to_json(), ensure_ascii=False)
    hashlib.sha256(wire.encode())
    assert "�" in wire
    assert "\ud83d" not in wire
    for export in (anthropic, gemini, mcp_format):
        json.dumps(export.results([result], CALLS), ensure_ascii=False).encode()


async def test_RS14_it_is_noted_and_what_was_text_stays() -> None:
    assert (await returned(BAD)).meta["notes"] == (REPLACED,)
    pair = await returned("\ud83d\ude00 漢")
    assert pair.text == "😀 漢"
    whole = ToolResult.ok("漢").with_meta(own=1)
    assert to_result("t", whole) is whole


async def test_SB13_the_bytes_of_a_subprocess_are_text_with_replacements_and_a_note() -> None:
    def run() -> bytes:
        return subprocess.run(["printf", r"\xff\xfe ok"], capture_output=True, check=True).stdout

    async with Assembly([run]) as tools:
        result = await tools.call("run")
    assert result.text == "�� ok"
    assert result.meta["notes"] == (REPLACED,)


# -- RS09, the parts of it


async def test_RS09_parts_in_a_list_with_other_things_stay_parts() -> None:
    picture = ImagePart(b"\x00" * 300_000, "image/png")
    result = await returned(["caption", picture, {"k": 1}])
    assert result.content == (TextPart("caption"), picture, DataPart({"k": 1}))
    assert len(result.text) < 50


# -- RS16


def thread_interrupt() -> str:
    raise KeyboardInterrupt


async def test_RS16_what_a_tool_raises_never_ends_the_program(
    caplog: pytest.LogCaptureFixture,
) -> None:
    class Unsayable(Exception):
        def __str__(self) -> str:
            raise RuntimeError("no words")

    class UnsayableError(ToolError):
        def __str__(self) -> str:
            raise RuntimeError("no words")

    assert outcome(await returned(SystemExit(3))) == "internal"
    assert outcome(await returned(asyncio.CancelledError())) == "cancelled"
    assert outcome(await returned(Unsayable())) == "internal"
    said = await returned(UnsayableError("x"))
    assert (outcome(said), said.text) == ("tool_error", "UnsayableError")
    async with Assembly([tool(name="t")(thread_interrupt)]) as tools:
        assert outcome(await tools.call("t")) == "internal"
    assert all(record.levelno >= logging.ERROR for record in caplog.records)


@pytest.mark.parametrize("redacted", [False, True])
async def test_RS16_an_exception_without_words_survives_the_log_too(
    redacted: bool, caplog: pytest.LogCaptureFixture
) -> None:
    from toolcrib.failures import internal
    from toolcrib.redact import Redactor, using

    class Unsayable(Exception):
        def __str__(self) -> str:
            raise SystemError("no words")

    with using(Redactor(["secret"] if redacted else [])):
        result = internal("t", Unsayable(), logging.getLogger("toolcrib.test"))
    assert outcome(result) == "internal"
    assert result.failure
    assert result.failure.reference in caplog.text


async def test_RS16_a_keyboard_interrupt_of_the_loop_passes_through() -> None:
    with pytest.raises(KeyboardInterrupt):
        await returned(KeyboardInterrupt())


# -- the rest


def test_a_value_that_is_no_json_has_no_structured_form() -> None:
    assert structured(ToolResult.ok("x", object())) is None
    assert structured(ToolResult.ok("x", Row({"b", "a"}))) == {
        "tags": ["a", "b"],
        "at": "2026-01-02",
    }
    value = {"a": [1]}
    assert structured(ToolResult.ok("x", value)) is value
    with pytest.raises(NotJson):
        jsonable(object())


def test_new_fields_of_a_definition_are_not_on_the_wire() -> None:
    from toolcrib.definition import Example, Format

    bare = ToolDefinition("t", "d")
    full = ToolDefinition(
        "t", "d", examples=(Example({}),), format=Format(5), display_hint=lambda a: "x"
    )
    assert (full.fingerprint, full.wire_bytes) == (bare.fingerprint, bare.wire_bytes)
    for export in (anthropic, gemini, mcp_format):
        assert export.tools([full]) == export.tools([bare])
    assert isinstance(define_tool("t", description="", execute=print), ManifestTool)
