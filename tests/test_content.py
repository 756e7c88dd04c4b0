"""From what a tool returned to what a model reads (reports RS)."""

from __future__ import annotations

import asyncio
import dataclasses
import datetime
import decimal
import json
import math
import pathlib
import subprocess
import sys
import textwrap
from collections import OrderedDict, defaultdict
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from conftest import outcome
from toolcrib import (
    Assembly,
    AudioPart,
    DataPart,
    Failure,
    FilePart,
    ImagePart,
    TextPart,
    ToolError,
    ToolResult,
    tool,
)
from toolcrib.middleware import result_limit

PNG = b"\x89PNG\r\n\x1a\n"


async def returned(value: Any, *middlewares: Any) -> ToolResult:
    @tool(name="gives")
    async def give() -> Any:
        return value() if callable(value) and not isinstance(value, type) else value

    async with Assembly([give], middlewares=middlewares) as tools:
        return await tools.call("gives")


class Model(BaseModel):
    x: float = 1.0
    name: str = "n"


@dataclasses.dataclass
class Record:
    x: float
    tags: Any = ()


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("plain \n text", "plain \n text"),
        ("", ""),
        (5, "5"),
        (-0.5, "-0.5"),
        (True, "true"),
        (None, "null"),
        ([], "[]"),
        ({}, "{}"),
        ({"a": [1, {"b": None}]}, '{"a":[1,{"b":null}]}'),
        ({"ü": "€"}, '{"ü":"€"}'),
        (("a", 1), '["a",1]'),
        (Model(), '{"x":1.0,"name":"n"}'),
        (Record(2.5), '{"x":2.5,"tags":[]}'),
        (10**30, str(10**30)),
        ({"big": 2**70}, '{"big":1180591620717411303424}'),
    ],
    ids=repr,
)
async def test_what_a_tool_returns_becomes_text_and_stays_reachable_as_a_value(
    value: Any, text: str
) -> None:
    result = await returned(lambda: value)
    assert (result.text, result.value, result.is_error) == (text, value, False)


async def test_RS02_sets_dates_decimals_paths_and_odd_keys_have_a_stable_text() -> None:
    value = {
        "u": {3, 1, 2},
        "w": frozenset({"b", "a", "c"}),
        "d": decimal.Decimal("1.10"),
        "t": datetime.datetime(2026, 1, 2),  # noqa: DTZ001
        "p": pathlib.Path("a"),
        1: "int key",
    }
    result = await returned(lambda: value)
    assert json.loads(result.text) == {
        "u": [1, 2, 3],
        "w": ["a", "b", "c"],
        "d": "1.10",
        "t": "2026-01-02T00:00:00",
        "p": "a",
        "1": "int key",
    }


async def test_RS02_dict_views_are_written_too() -> None:
    assert (
        await returned(lambda: {"k": {}.keys(), "v": {"a": 1}.values()})
    ).text == '{"k":[],"v":[1]}'


STABLE = textwrap.dedent(
    """
    import asyncio, dataclasses
    from collections import OrderedDict, defaultdict
    from toolcrib import Assembly, tool
    words = {"alpha", "bravo", "carol", "delta", "early"}
    @dataclasses.dataclass
    class Record:
        tags: set
    VALUES = {
        "nested": [{"a": [words]}],
        "defaultdict": __import__("collections").defaultdict(list, a=words),
        "ordered": OrderedDict(a=words),
        "dataclass": Record(words),
        "mixed": {1, "a", None, (2, 3), 2.5},
    }
    async def main():
        for name, value in VALUES.items():
            @tool
            def gives(): return value
            async with Assembly([gives]) as t:
                print(name, await t.call("gives"))
    asyncio.run(main())
    """
)


def _stable(seed: str) -> dict[str, str]:
    run = subprocess.run(
        [sys.executable, "-c", STABLE],
        env={"PYTHONHASHSEED": seed, "PYTHONPATH": str(Path(__file__).parent.parent / "src")},
        capture_output=True,
        text=True,
        timeout=30,
        check=True,
    )
    return dict(line.split(" ", 1) for line in run.stdout.splitlines())


@pytest.fixture(scope="module")
def stable_runs() -> list[dict[str, str]]:
    return [_stable(seed) for seed in ("1", "2", "5")]


@pytest.mark.parametrize(
    "name",
    ["nested", "mixed", "defaultdict", "ordered", "dataclass"],
)
def test_RS02_sets_are_in_the_same_order_in_every_process(
    stable_runs: list[dict[str, str]], name: str
) -> None:
    assert len({run[name] for run in stable_runs}) == 1


@pytest.mark.parametrize(
    "value",
    [
        {"mean": math.nan, "max": math.inf, "min": -math.inf},
        [math.nan],
        math.nan,
        math.inf,
        Record(math.nan),
        Model(x=math.nan),
        [Model(x=math.inf)],
        DataPart({"x": math.nan}),
        DataPart(math.inf),
    ],
    ids=repr,
)
async def test_RS04_nan_and_infinity_are_strings_never_null(value: Any) -> None:
    result = await returned(lambda: value)
    assert "null" not in result.text
    assert "NaN" in result.text or "Infinity" in result.text

    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} is not JSON")

    json.loads(result.text, parse_constant=refuse)


async def test_RS04_it_is_noted_that_a_number_was_none() -> None:
    assert (await returned(lambda: {"mean": math.nan})).meta


def _cycle() -> Any:
    value: list[Any] = []
    value.append(value)
    return value


@pytest.mark.parametrize(
    "value",
    [
        dict,
        lambda: lambda: 1,
        lambda: ValueError("sk-secret"),
        lambda: {"a": object()},
        lambda: {object(): 1},
        _cycle,
        lambda: asyncio.sleep,
    ],
    ids=[
        "class",
        "lambda",
        "exception",
        "object",
        "object key",
        "cycle",
        "function",
    ],
)
async def test_RS01_what_json_cannot_hold_is_an_error_at_the_call_that_names_the_tool(
    value: Any,
) -> None:
    result = await returned(value)
    assert outcome(result) == "invalid_output"
    assert "'gives'" in result.text
    assert "the call itself did run" in result.text
    assert "sk-secret" not in result.text


async def test_RS01_an_open_file_is_not_read_out(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("sk-secret")
    with (tmp_path / "secret").open() as file:
        result = await returned(lambda: file)
    assert outcome(result) == "invalid_output"


@pytest.mark.parametrize("what", ["itertools.count()", "(0 for _ in iter(int, 1))"])
def test_RS01_an_endless_iterator_does_not_stop_the_process(what: str) -> None:
    code = f"""
    import asyncio, itertools, resource
    from toolcrib import Assembly, tool
    resource.setrlimit(resource.RLIMIT_AS, (2**30, 2**30))
    @tool(timeout=0.2)
    def gives():
        return {what}
    async def main():
        async with Assembly([gives]) as t:
            print((await t.call("gives")).failure)
    asyncio.run(main())
    """
    run = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        capture_output=True,
        text=True,
        timeout=2,
        check=True,
    )
    assert "Failure(kind=" in run.stdout


@pytest.mark.parametrize("limited", [False, True])
async def test_RS01_a_data_part_that_json_cannot_hold_is_an_error_at_the_call(
    limited: bool,
) -> None:
    chain = [result_limit(1000)] if limited else []
    try:
        result = await returned(lambda: DataPart({"a": object()}), *chain)
    except TypeError:
        pytest.fail("TypeError left the call")
    assert outcome(result) == "invalid_output"


def _encodes(result: ToolResult) -> None:
    json.dumps(result.to_json(), ensure_ascii=False).encode()
    str(result).encode()


async def test_RS14_a_lone_surrogate_in_a_text_is_replaced_and_the_result_kept() -> None:
    result = await returned(lambda: "x\ud83dy \ud83d\ude00")
    assert not result.is_error
    assert result.text[0] == "x"
    assert result.text[2] == "y"
    _encodes(result)


@pytest.mark.parametrize(
    "value",
    [
        lambda: {"a": ["x\ud83dy"]},
        lambda: TextPart("x\ud83dy"),
        lambda: DataPart({"a": "x\ud83dy"}),
        lambda: ToolResult.ok("x\ud83dy"),
        lambda: [TextPart("fine"), TextPart("x\ud83dy")],
    ],
    ids=["nested", "text part", "data part", "result", "parts"],
)
async def test_RS14_lone_surrogates_are_replaced_wherever_they_are(value: Any) -> None:
    result = await returned(value)
    assert not result.is_error
    _encodes(result)


async def test_RS14_lone_surrogates_are_replaced_in_an_error() -> None:
    def fail() -> Any:
        raise ToolError("no file x\ud83dy")

    _encodes(await returned(fail))


async def test_parts_are_content_as_they_are() -> None:
    parts: list[Any] = [
        TextPart("a"),
        ImagePart(PNG, "image/png"),
        AudioPart(b"RIFF", "audio/wav"),
        FilePart("file:///a", name="a", size=3),
        DataPart({"k": [1]}),
    ]
    result = await returned(lambda: parts)
    assert result.content == tuple(parts)
    assert result.text == 'a\n{"k":[1]}'
    single = await returned(lambda: ImagePart(PNG, "image/png"))
    assert single.content == (ImagePart(PNG, "image/png"),)
    assert single.text == ""
    mixed = await returned(lambda: [TextPart("a"), "b"])
    assert isinstance(mixed, ToolResult)


def test_RS09_bytes_of_an_image_are_never_text() -> None:
    result = ToolResult((ImagePart(b"\x00" * 300_000, "image/png"), TextPart("t")))
    assert str(result) == "t"
    assert len(repr(result)) < 500
    assert result.to_json()["content"][0]["data"] == "AAAA" * 100_000


def test_a_failure_holds_its_message_after_what_there_was() -> None:
    failed = ToolResult.failed("tool_error", "no more", partial=[TextPart("rows 1 to 3")])
    assert failed.is_error
    assert failed.failure == Failure("tool_error", "no more")
    assert failed.text == "rows 1 to 3\nno more"
    told = failed.to_json()
    assert told["is_error"] is True
    assert told["failure"]["kind"] == "tool_error"
    assert [part["type"] for part in told["content"]] == ["text", "text"]


def test_a_result_is_frozen_and_notes_make_a_new_one() -> None:
    result = ToolResult.ok("x", value=5)
    with pytest.raises(dataclasses.FrozenInstanceError):
        result.content = ()  # type: ignore[misc]
    noted = result.with_meta(a=1).with_meta(b=2)
    assert dict(noted.meta) == {"a": 1, "b": 2}
    assert (noted.text, noted.value, dict(result.meta)) == ("x", 5, {})


values = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text()),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(st.text(max_size=3), inner, max_size=3),
        st.sets(st.integers(), max_size=3),
        st.tuples(inner, inner),
        st.dictionaries(st.text(max_size=3), inner, max_size=2).map(OrderedDict),
        st.lists(inner, max_size=2).map(lambda v: defaultdict(list, a=v)),
    ),
    max_leaves=8,
)


@given(values)
def test_whatever_json_can_hold_is_strict_json_or_an_error_that_says_so(value: Any) -> None:
    from toolcrib.results import to_result

    result = to_result("t", value)
    if isinstance(value, str):
        result.text.encode()
        return
    if result.is_error:
        assert outcome(result) == "invalid_output"
        assert "the same text" in result.text, "only two keys that become one are an excuse"
        return
    json.loads(result.text, parse_constant=lambda name: pytest.fail(name))
