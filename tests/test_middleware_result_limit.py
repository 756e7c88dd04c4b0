"""The last bound of a result: characters of text, bytes of everything else (A12.3-A12.5)."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conftest import Plain
from toolcrib import (
    Assembly,
    DataPart,
    FilePart,
    ImagePart,
    InvalidDefinition,
    TextPart,
    ToolDefinition,
    ToolResult,
)
from toolcrib.content import Failure, Part
from toolcrib.definition import UNCUT
from toolcrib.middleware import (
    DEFAULT_MARKER,
    ResultLimitSettings,
    Settings,
    limit_result,
    result_limit,
    standard,
)

MIB = 1024 * 1024


def cut(
    result: ToolResult, limit: int | None, marker: str = DEFAULT_MARKER, budget: int = MIB
) -> ToolResult:
    return limit_result(result, limit, marker, budget)


def texts(result: ToolResult) -> list[str]:
    return [part.text for part in result.content if isinstance(part, TextPart)]


def image(size: int) -> ImagePart:
    return ImagePart(b"x" * size, "image/png")


def encoded(part: Part) -> int:
    return len(json.dumps(part.to_json(), separators=(",", ":"), ensure_ascii=False).encode())


def test_A12_3_the_default_marker_is_a_line_break_and_20_runes_with_it() -> None:
    assert DEFAULT_MARKER == "\n…[result truncated]"
    assert len(DEFAULT_MARKER) == 20


def test_A12_3_a_thousand_cut_to_a_hundred_is_exactly_a_hundred() -> None:
    result = cut(ToolResult.ok("x" * 1000), 100)
    assert texts(result) == ["x" * 80 + DEFAULT_MARKER]
    assert len(result.text) == 100


def test_A12_3_a_max_smaller_than_the_marker_cuts_the_marker() -> None:
    assert texts(cut(ToolResult.ok("x" * 9), 3, "MARK")) == ["MAR"]
    assert texts(cut(ToolResult.ok("x" * 9), 4, "MARK")) == ["MARK"]
    assert texts(cut(ToolResult.ok("x" * 9), 5, "MARK")) == ["xMARK"]


def test_A12_3_runes_are_counted_not_bytes() -> None:
    result = cut(ToolResult.ok("你" * 100), 40)
    assert texts(result) == ["你" * 20 + DEFAULT_MARKER]
    fits = ToolResult.ok("你" * 40)
    assert cut(fits, 40) is fits


def test_A12_3_what_fits_is_the_same_object() -> None:
    for result in (
        ToolResult.ok("x" * 50),
        ToolResult.ok(""),
        ToolResult((TextPart("a" * 50), image(10), TextPart("b" * 50))),
        ToolResult(),
        ToolResult.failed("tool_error", "no"),
    ):
        assert cut(result, 100) is result


def test_A12_3_text_is_spent_in_order_the_marker_stands_at_the_cut_and_the_rest_is_dropped() -> (
    None
):
    picture = image(10)
    result = cut(
        ToolResult((TextPart("a" * 50), picture, TextPart("b" * 80), TextPart("c"), picture)), 100
    )
    assert result.content == (
        TextPart("a" * 50),
        picture,
        TextPart("b" * 30 + DEFAULT_MARKER),
        picture,
    )


def test_A12_3_an_error_stays_an_error_and_its_message_comes_first() -> None:
    result = cut(ToolResult.failed("tool_error", "the reason", partial=[TextPart("p" * 500)]), 100)
    assert result.failure == Failure("tool_error", "the reason")
    assert texts(result) == ["p" * 70 + DEFAULT_MARKER, "the reason"]
    long = cut(ToolResult.failed("tool_error", "e" * 500), 100)
    assert sum(map(len, texts(long))) == 100
    assert "".join(texts(long)) == "e" * 80 + DEFAULT_MARKER


def test_A12_3_a_cut_error_of_one_text_is_within_max_as_text_too() -> None:
    assert len(str(cut(ToolResult.failed("tool_error", "e" * 500), 100))) <= 100


@pytest.mark.parametrize("wrong", [0, -1])
def test_A12_3_max_must_be_above_nothing(wrong: int) -> None:
    with pytest.raises(InvalidDefinition, match="max"):
        result_limit(wrong)


async def test_A12_3_an_empty_marker_means_the_default() -> None:
    async with Assembly(
        [Plain("t", "x" * 99)], middlewares=[result_limit(50, marker="")]
    ) as assembly:
        assert (await assembly.call("t")).text == "x" * 30 + DEFAULT_MARKER


def test_A12_4_a_part_that_does_not_fit_is_dropped_and_a_later_smaller_one_may_fit() -> None:
    small, large = image(30), image(3000)
    budget = encoded(small) * 2
    result = cut(ToolResult((small, large, small, small)), 1000, budget=budget)
    assert result.content == (small, small, TextPart(DEFAULT_MARKER))


def test_A12_4_the_budget_is_of_the_encoded_bytes() -> None:
    picture = image(300)
    assert cut(ToolResult((picture,)), 100, budget=encoded(picture)).content == (picture,)
    assert cut(ToolResult((picture,)), 100, budget=encoded(picture) - 1).content == (
        TextPart(DEFAULT_MARKER),
    )


@pytest.mark.parametrize("budget", [0, -1])
def test_A12_4_nothing_or_less_lifts_the_part_budget(budget: int) -> None:
    result = ToolResult((image(2 * MIB),))
    assert cut(result, 100, budget=budget) is result


def test_A12_4_a_dropped_parts_marker_counts_inside_max() -> None:
    """T-A17."""
    full = cut(ToolResult((TextPart("x" * 100), image(3000))), 100, budget=100)
    assert full.content == (TextPart("x" * 80 + DEFAULT_MARKER),)
    roomy = cut(ToolResult((TextPart("x" * 80), image(3000))), 100, budget=100)
    assert roomy.content == (TextPart("x" * 80), TextPart(DEFAULT_MARKER))


async def test_A12_5_without_result_limit_parts_are_bounded_and_text_is_not() -> None:
    big = ToolResult((TextPart("x" * 3_000_000), image(MIB), image(10)))
    uncut = Plain("t", big)  # by its own format: that bound is another one
    uncut.definition = ToolDefinition("t", format=UNCUT)
    async with Assembly([uncut], middlewares=standard(Settings())) as assembly:
        result = await assembly.call("t")
    assert result.content == (TextPart("x" * 3_000_000), image(10), TextPart(DEFAULT_MARKER))
    lifted = standard(Settings(result_part_budget_bytes=0))
    async with Assembly([uncut], middlewares=lifted) as assembly:
        assert (await assembly.call("t")).content == big.content
    ignored = standard(
        Settings(result_limit=ResultLimitSettings(5_000_000), result_part_budget_bytes=10)
    )
    async with Assembly([uncut], middlewares=ignored) as assembly:
        assert image(10) in (await assembly.call("t")).content
    async with Assembly([uncut]) as assembly:
        assert (await assembly.call("t")).content == big.content


parts = st.one_of(
    st.text(max_size=60).map(TextPart),
    st.integers(0, 120).map(image),
    st.text(max_size=20).map(lambda text: DataPart({"v": text})),
    st.text(max_size=20).map(FilePart),
)
results = st.builds(
    lambda content, error: ToolResult(
        tuple(content), Failure("tool_error", "m") if error else None
    ),
    st.lists(parts, max_size=7),
    st.booleans(),
)


@given(
    results,
    st.one_of(st.none(), st.integers(1, 90)),
    st.text(min_size=1, max_size=25),
    st.one_of(st.just(0), st.integers(1, 600)),
)
def test_both_bounds_are_hard_and_nothing_is_made_up(
    result: ToolResult, limit: int | None, marker: str, budget: int
) -> None:
    bounded = cut(result, limit, marker, budget)
    before, after = texts(result), texts(bounded)
    others = [p for p in result.content if not isinstance(p, TextPart)]
    kept = [p for p in bounded.content if not isinstance(p, TextPart)]
    remaining = iter(others)
    assert all(part in remaining for part in kept), "what is kept keeps its order"
    if budget > 0:
        assert sum(map(encoded, kept)) <= budget
    else:
        assert kept == others
    if limit is not None:
        assert sum(map(len, after)) <= max(limit, 0)
    if bounded is result:
        assert limit is None or sum(map(len, before)) <= limit
    else:
        assert bounded.failure == result.failure
        assert any(text.endswith(marker[: limit or None]) for text in after) or after
        lost = len(kept) < len(others)
        assert lost or (limit is not None and sum(map(len, before)) > limit)
        if limit is not None and not lost:
            assert sum(map(len, after)) <= sum(map(len, before)), "cutting never makes it longer"
    again = cut(bounded, limit, marker, budget)
    assert again is bounded, "what was cut fits"
