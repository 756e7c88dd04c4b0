"""How a long result is cut: rules B6–B11 with the traps corrected, RS12, RS13."""

from __future__ import annotations

import json
import logging
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from toolcrib import (
    Assembly,
    DataPart,
    ImagePart,
    InvalidDefinition,
    TextPart,
    ToolError,
    ToolResult,
    define_tool,
    tool,
)
from toolcrib.definition import UNCUT, Format
from toolcrib.format import Truncation, always_fits, count_lines, cut, formatted
from toolcrib.middleware import result_limit

PICTURE = ImagePart(b"\x89PNG", "image/png")


def told(result: ToolResult) -> Truncation:
    found = result.meta["truncation"]
    assert isinstance(found, Truncation)
    return found


# -- the cut itself


@pytest.mark.parametrize(
    ("text", "lines"), [("", 0), ("a", 1), ("a\n", 1), ("a\nb", 2), ("\n", 1), ("\n\n", 2)]
)
def test_B7_lines_are_counted_by_their_line_feeds(text: str, lines: int) -> None:
    assert count_lines(text) == lines


@pytest.mark.parametrize(
    ("text", "max_bytes", "max_lines", "tail", "head"),
    [
        ("a" * 950 + "b" * 50, 50, 9, "b" * 50, "a" * 50),
        (
            "line 1\nline 2\nline 3\nline 4\nline 5\n",
            999,
            2,
            "line 4\nline 5\n",
            "line 1\nline 2\n",
        ),
        ("l1\nl2\nl3", 999, 2, "l2\nl3", "l1\nl2\n"),
        ("\na\nb\n", 999, 2, "a\nb\n", "\na\n"),  # T-B7
        ("ααααα", 5, 9, "αα", "αα"),  # T-B8: never above the cap
        ("a\nlonglastline", 13, 1, "longlastline", "a\n"),
        ("short", 5, 1, "short", "short"),
        ("", 5, 1, "", ""),
        ("abc", 0, 1, "", ""),
        ("abc", 5, 0, "", ""),
    ],
)
def test_B7_one_end_is_kept(
    text: str, max_bytes: int, max_lines: int, tail: str, head: str
) -> None:
    assert cut(text, max_bytes, max_lines, "tail") == tail
    assert cut(text, max_bytes, max_lines, "head") == head


characters = st.text(st.sampled_from("ab\n\r漢😀é\u0301\u200d"), max_size=200)


@given(characters, st.integers(0, 120), st.integers(0, 9), st.sampled_from(["tail", "head"]))
@example("👨\u200d👩\u200d👧e\u0301", 9, 1, "tail")
def test_RS12_a_cut_is_whole_characters_of_one_end_and_within_both_caps(
    text: str, max_bytes: int, max_lines: int, style: Any
) -> None:
    kept = cut(text, max_bytes, max_lines, style)
    data = kept.encode()  # valid UTF-8, or it could not be encoded
    assert len(data) <= max_bytes
    assert count_lines(kept) <= max_lines
    assert text.endswith(kept) if style == "tail" else text.startswith(kept)
    if len(text.encode()) <= max_bytes and count_lines(text) <= max_lines:
        assert kept == text
    elif max_lines > len(text):  # only the bytes are short: no room for one more character
        more = text[-len(kept) - 1 :] if style == "tail" else text[: len(kept) + 1]
        assert len(more.encode()) > max_bytes


# -- a whole result

formats = st.builds(
    Format,
    st.integers(1, 400),
    st.integers(1, 12),
    st.sampled_from(["tail", "head"]),
    st.sampled_from(["", "see {path}\nfrom {next_offset}", "{unknown} {shown_bytes}"]),
)
HINTED = "漢" * 20


@given(characters, formats, st.none() | st.text(max_size=80), st.none() | st.just("r" + "x" * 22))
def test_RS12_B9_no_result_exceeds_its_caps_with_notice_hint_and_message_inside(
    text: str, format: Format, message: str | None, kept_as: str | None
) -> None:
    whole = ToolResult.ok(text)
    if message is not None:
        whole = ToolResult.failed("tool_error", message, partial=[TextPart(text)])
    whole = whole.with_meta(path=HINTED)
    result = formatted(whole, format, lambda kept: kept_as)
    said = result.text
    assert len(said.encode()) <= format.max_bytes
    assert count_lines(said) <= format.max_lines
    fits = len(whole.text.encode()) <= format.max_bytes
    assert (result is whole) == (fits and count_lines(whole.text) <= format.max_lines)
    has_room = message and len(message.encode()) + 1 < format.max_bytes
    if message and has_room and count_lines(message) + 1 < format.max_lines:
        assert said.endswith(message)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=200),
    lambda inner: st.lists(inner, max_size=30) | st.dictionaries(st.text(max_size=9), inner),
    max_leaves=60,
)


@given(st.lists(json_values) | st.dictionaries(st.text(max_size=9), json_values), formats)
def test_RS13_a_json_result_stays_json_within_its_cap(value: Any, format: Format) -> None:
    from toolcrib.results import to_result

    whole = to_result("t", value)
    for before in (whole, to_result("t", DataPart(value))):
        result = formatted(before, format)
        assert len(result.text.encode()) <= format.max_bytes
        if not before.is_error and format.max_bytes >= 2:
            json.loads(result.text)


async def gave(value: Any, format: Format = Format(), *chain: Any) -> ToolResult:
    async def give(ctx: Any, arguments: Any) -> Any:
        if isinstance(value, Exception):
            raise value
        return value

    made = define_tool("gives", description="", execute=give, format=format)
    async with Assembly([made], middlewares=chain) as tools:
        return await tools.call("gives")


async def test_RS13_ten_thousand_rows_keep_head_and_tail_as_json() -> None:
    rows = [{"id": i, "name": f"row {i}"} for i in range(10_000)]
    result = await gave(rows, Format(20_000))
    shown = json.loads(result.text)
    assert 19_000 < len(result.text.encode()) <= 20_000
    assert shown[0] == rows[0]
    assert shown[-1] == rows[-1]
    assert [item for item in shown if isinstance(item, str)] == [
        f"… {10_001 - len(shown)} of 10000 items left out …"
    ]
    assert result.value is rows
    assert told(result).style == "json"


async def test_RS13_an_error_at_the_very_end_is_kept_and_stands_after_the_partial_result() -> None:
    """B10, T-B1: the message is reserved first."""
    result = await gave(ToolError("disk full", partial="x" * 4096), Format(200))
    assert result.text.startswith("xxx")
    assert result.text.endswith("]\ndisk full")
    assert len(result.text.encode()) <= 200
    assert result.failure
    assert result.failure.message == "disk full"
    rows = await gave(ToolError("disk full", partial=list(range(5000))), Format(200))
    part, message = rows.content
    assert isinstance(part, TextPart)
    assert json.loads(part.text)[0] == 0
    assert message == TextPart("disk full")


async def test_B10_a_message_beyond_the_cap_is_cut_and_nothing_else_is_left() -> None:
    result = await gave(ToolError("m" * 9_000, partial=[TextPart("p"), PICTURE]), Format(300))
    assert len(result.text.encode()) <= 300
    assert "p" not in result.text.replace("bytes", "")
    assert PICTURE in result.content
    assert result.failure
    assert len(result.failure.message) <= 300


async def test_T_B6_a_string_is_cut_as_text_so_that_line_caps_count_its_lines() -> None:
    text = "".join(f"line {n}\n" for n in range(1, 5001))
    result = await gave(text)
    assert result.text.endswith(
        f"line 5000\n[1999 lines shown of 5000 total, 19990 bytes of {len(text)}: the end]"
    )
    assert count_lines(result.text) == 2000
    assert told(result) == Truncation(len(text), 5000, 19990, 1999, "tail")
    assert result.value == text


async def test_B8_nothing_is_noted_and_nothing_copied_where_it_fits() -> None:
    text = "x" * 50_000
    result = await gave(text)
    assert result.text is text
    assert "truncation" not in result.meta
    assert (await gave("x" * 50_001)).meta["truncation"].original_bytes == 50_001
    assert (await gave("x\n" * 2000)).meta == {}
    assert told(await gave("x\n" * 2001)).original_lines == 2001


async def test_B8_ten_megabytes_are_cut_to_the_cap() -> None:
    result = await gave("漢" * 3_333_333)
    assert told(result).original_bytes == 9_999_999
    assert told(result).shown_bytes <= len(result.text.encode()) <= 50_000
    assert told(result).style == "tail"


async def test_B9_placeholders_are_filled_once_extras_win_and_unknown_ones_stay() -> None:
    """T-B11: hint and notice count inside, the hint is in the metadata, a notice needs no hint."""
    hint = "Full output at {path} ({style}, {original_bytes}); {offset} {next_offset} {nope} {x}"
    given = ToolResult.ok("a\n" * 400).with_meta(path="/tmp/{style}", x="{path}", style="HEAD")
    result = await gave(given, Format(4000, 20, "head", hint))
    shown, _, footer = result.text.partition("\n\n")
    assert footer.splitlines() == [
        "Full output at /tmp/{style} (HEAD, 800); {offset} 18 {nope} {path}",
        "[17 lines shown of 400 total, 34 bytes of 800: the beginning]",
    ]
    assert shown + "\n" == "a\n" * 17
    assert count_lines(result.text) == 20
    assert told(result).recovery_hint == footer.splitlines()[0]


async def test_B9_a_hint_that_takes_too_much_room_gives_way_then_the_notice() -> None:
    long_hint = "h" * 90
    result = await gave("x" * 500, Format(160, 99, "tail", long_hint))
    assert "hhh" not in result.text
    assert "lines shown of 1 total" in result.text
    assert (await gave("x" * 500, Format(20, 99, "tail", long_hint))).text == "x" * 20


async def test_B9_the_hint_of_a_json_result_stands_inside_it() -> None:
    hint = 'All of it: {path} "quoted"'
    for value in ({"rows": list(range(9_000)), "…": 1}, list(range(9_000))):
        made = ToolResult((DataPart(value),), None, value).with_meta(path="/x")
        result = await gave(made, Format(300, recovery_hint=hint))
        assert len(result.text) <= 300
        assert 'All of it: /x "quoted"' in json.dumps(json.loads(result.text)).replace("\\", "")


class Report:
    def __init__(self, text: str) -> None:
        self.said = text

    def for_model(self) -> str:
        return self.said

    def markdown(self) -> str:
        return "# Report"


async def test_B6_what_renders_itself_opts_out_of_format_but_not_of_result_limit() -> None:
    report = Report("r" * 80_000)
    result = await gave(report)
    assert result.text == report.said
    assert result.value is report
    assert "truncation" not in result.meta
    assert len((await gave(report, Format(), result_limit(1000))).text) == 1000
    partial = await gave(ToolError("failed", partial=report))
    assert partial.text == report.said + "\nfailed"  # B10: honoured on errors too


async def test_B11_markdown_is_for_displays_and_never_of_an_error() -> None:
    assert (await gave(Report("short"))).markdown == "# Report"
    assert (await gave(Report("short"))).text == "short"
    assert (await gave({"a": [1]})).markdown == '```json\n{\n  "a": [\n    1\n  ]\n}\n```'
    assert (await gave("{not json")).markdown == "{not json"
    assert (await gave('["a string"]')).markdown == '["a string"]'
    failed = await gave(ToolError("no", partial=Report("found")))
    assert failed.markdown == failed.text == "found\nno"


async def test_what_a_tool_wrote_as_text_is_cut_as_text_even_if_it_looks_like_json() -> None:
    text = json.dumps(list(range(3000)))
    assert told(await gave(text, Format(500))).style == "tail"
    broken = ToolResult.ok("[" + "x" * 2000, value={"a": 1})
    assert told(await gave(broken, Format(500))).style == "tail"
    deep = ToolResult.ok("[" * 90_000, value={"a": 1})
    assert told(await gave(deep, Format(500))).style == "tail"


async def test_RS09_images_stay_whole_and_count_nowhere_here() -> None:
    parts = [TextPart("a\n" * 900), PICTURE, TextPart("b\n" * 900), PICTURE]
    result = await gave(parts, Format(500, 100))
    text, *pictures = result.content
    assert pictures == [PICTURE, PICTURE]
    assert isinstance(text, TextPart)
    assert text.text.startswith("b\n")
    assert len(result.text.encode()) <= 500
    assert (await gave([PICTURE])).content == (PICTURE,)


async def test_a_failure_of_several_parts_is_bounded_in_its_message_too() -> None:
    from toolcrib.content import Failure

    parts = (TextPart("x" * 900), TextPart("y" * 900))
    mcp = ToolResult(parts, Failure("tool_error", "x" * 900 + "\n" + "y" * 900))
    result = await gave(mcp, Format(300))
    assert len(result.text.encode()) <= 300
    assert result.failure
    assert len(result.failure.message) <= 300
    assert result.text.count("y") > 100


async def test_every_assembly_has_the_step_and_each_tool_its_own_format() -> None:
    @tool(format=Format(100, style="head"))
    def first() -> str:
        return "a" + "x" * 300

    @tool(format=UNCUT)
    async def all_of_it() -> str:
        return "x\n" * 50_000

    @tool
    def usual() -> str:
        return "x\n" * 50_000

    async with Assembly([first, all_of_it, usual]) as tools:
        assert (await tools.call("first")).text.startswith("ax")
        assert len((await tools.call("all_of_it")).text) == 100_000
        assert count_lines((await tools.call("usual")).text) == 2000
        assert tools.catalog.definitions[0].format is UNCUT


def test_what_is_short_is_not_looked_at() -> None:
    assert always_fits(Format()) == 2000
    assert always_fits(Format(40, 2000)) == 10
    for character in ("😀", "\n"):
        text = character * always_fits(Format())
        assert formatted(ToolResult.ok(text), Format()).text is text


def test_a_format_says_what_it_does_not_know() -> None:
    with pytest.raises(InvalidDefinition, match="'tail' or 'head'"):
        Format(style="middle")  # type: ignore[arg-type]
    assert Format(0, -1) == Format()


async def test_T_B5_what_was_cut_is_what_providers_send(caplog: pytest.LogCaptureFixture) -> None:
    from toolcrib.providers import anthropic

    caplog.set_level(logging.ERROR)
    result = await gave({"rows": ["x" * 50] * 5000}, Format(1000))
    (message,) = anthropic.results([result])
    assert len(json.dumps(message)) < 2500
    assert not caplog.records
