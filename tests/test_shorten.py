"""A JSON value shortened by its structure (RS13; must show 3)."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from toolcrib.definition import compact_json
from toolcrib.shorten import shorten

leaves = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.integers(10**30, 10**60)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text()
    | st.text(st.sampled_from('"\\\x01\n漢😀a'), min_size=50, max_size=300)
)
values = st.recursive(
    leaves,
    lambda inner: (
        st.lists(inner, max_size=40) | st.dictionaries(st.text(max_size=12), inner, max_size=30)
    ),
    max_leaves=120,
)


@given(values, st.integers(2, 900), st.text(max_size=60))
@example([1e16, 10**20], 25, "")
@example({"…": [0] * 50, "……": "x" * 50}, 60, "n")
@example([[]] * 100, 2, "")
def test_RS13_it_is_json_within_the_cap_and_unchanged_where_it_fits(
    value: Any, cap: int, note: str
) -> None:
    text = shorten(value, cap, note)
    assert len(text.encode()) <= cap
    again = json.loads(text)
    if len(compact_json(value).encode()) <= cap:
        assert text == compact_json(value)
    elif isinstance(value, list | dict) and cap >= 140:
        assert type(again) is type(value)
        assert text != compact_json(value)


@given(st.lists(st.integers(0, 10**9), min_size=60, max_size=300), st.integers(90, 300))
def test_RS13_an_array_keeps_both_ends_and_says_how_many_are_missing(
    rows: list[int], cap: int
) -> None:
    text = shorten(rows, cap)
    shown = json.loads(text)
    if shown == rows:
        return
    (marker,) = [item for item in shown if isinstance(item, str)]
    at = shown.index(marker)
    head, tail = shown[:at], shown[at + 1 :]
    assert head == rows[: len(head)]
    assert tail == rows[len(rows) - len(tail) :]
    assert abs(len(head) - len(tail)) <= 1
    assert marker == f"… {len(rows) - len(head) - len(tail)} of {len(rows)} items left out …"


def test_the_room_is_used() -> None:
    rows = [{"id": i, "text": "some words"} for i in range(5000)]
    for cap in (500, 5_000, 50_000):
        assert len(shorten(rows, cap).encode()) > cap * 0.9
    assert len(shorten({"one": "x" * 9000, "two": "y" * 9000, "n": 1}, 1000)) > 950
    assert len(shorten([["x" * 9000]], 1000)) > 950


def test_small_members_stay_whole_and_large_ones_share_what_is_left() -> None:
    shown = json.loads(shorten({"id": 7, "log": "l" * 5000, "rows": list(range(5000))}, 400))
    assert list(shown) == ["id", "log", "rows"]
    assert shown["id"] == 7
    assert shown["log"].startswith("lll")
    assert shown["log"].endswith("lll")
    assert "characters left out" in shown["log"]
    assert shown["rows"][0] == 0
    assert shown["rows"][-1] == 4999


def test_an_object_of_too_many_keys_says_so() -> None:
    shown = json.loads(shorten({f"key{n}": n for n in range(1000)}, 300))
    assert shown["key0"] == 0
    assert shown["key999"] == 999
    assert shown["…"] == f"… {1001 - len(shown)} of 1000 keys left out …"


def test_what_lies_deep_is_summarised() -> None:
    value: Any = {"rows": list(range(400))}
    for _ in range(200):
        value = {"a": value, "b": 1}
    shown = shorten(value, 800)
    assert "{… 2 keys}" in shown
    assert shown.count('"a"') <= 17


def test_the_note_stands_in_the_outermost_place() -> None:
    assert json.loads(shorten(list(range(1000)), 200, "see /x"))[-1] != "see /x"
    assert "see /x" in shorten(list(range(1000)), 200, "see /x")
    assert json.loads(shorten({"a": "x" * 999}, 200, "see /x"))["…"] == "see /x"
    assert json.loads(shorten(["x" * 999], 200, "see /x"))[-1] == "see /x"
    assert "y" not in shorten(list(range(1000)), 100, "y" * 80), "a note beyond half of the room"


@pytest.mark.parametrize("shape", ["wide", "deep", "strings", "objects"])
def test_it_looks_at_no_more_than_it_could_show(shape: str) -> None:
    deep: Any = list(range(100_000))
    for _ in range(200):
        deep = [deep, deep]
    value = {
        "wide": list(range(1_000_000)),
        "deep": [deep[0][0][0]] * 3,
        "strings": ["x" * 1_000_000] * 20,
        "objects": {f"k{n}": {"a": [n] * 5} for n in range(200_000)},
    }[shape]
    started = time.process_time()
    from toolcrib import shorten as module

    room = 20_000
    if shape == "deep":  # written whole it would be without end
        assert module._size(value, room) > room
        text = module._shown(value, room, 0)
    else:
        text = module._shown(value, room, 0)
    assert len(text.encode()) <= room
    assert time.process_time() - started < 2
