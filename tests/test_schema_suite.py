"""Must show 2: the JSON Schema Test Suite, draft 2020-12, through our validator."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from toolcrib import InvalidSchema
from toolcrib.schema import Checker, compile_asserting, compile_schema, compile_with

SUITE = Path(__file__).parent / "data" / "json_schema_suite"
OLD, NEW = "http://json-schema.org/", "https://json-schema.org/draft/"
REMOTES = json.loads((SUITE / "remotes.json").read_text())


def cases(kind: str) -> Iterator[tuple[str, dict[str, Any]]]:
    for line in (SUITE / f"{kind}.jsonl").read_text().splitlines():
        name, case = json.loads(line)
        yield name, case


def counted(kind: str, make: Any) -> tuple[int, list[str]]:
    """How many tests agree, and those that do not."""
    agree, wrong = 0, []
    for name, case in cases(kind):
        checker: Checker = make(case["schema"])
        for test in case["tests"]:
            fits = checker.fits(test["data"])
            if fits == test["valid"] and bool(checker.misfits(test["data"])) != fits:
                agree += 1
            else:
                wrong.append(f"{name}: {case['description']}: {test['description']}")
    return agree, wrong


def test_the_suite_agrees_wholly_where_it_is_required() -> None:
    agree, wrong = counted("required", lambda schema: compile_with(schema, REMOTES))
    assert (agree, wrong) == (1257, [])


def test_the_suite_agrees_wholly_on_formats() -> None:
    agree, wrong = counted("formats", compile_asserting)
    assert (agree, wrong) == (491, [])


def test_the_suite_agrees_where_it_is_optional_but_for_a_dialect_that_turns_formats_on() -> None:
    agree, wrong = counted("optional", lambda schema: compile_with(schema, REMOTES))
    assert agree >= 156
    assert all("optional/format-assertion.json" in each for each in wrong)


def test_the_checker_that_tools_get_agrees_on_every_schema_without_documents() -> None:
    """The same, through the shared constructor, which is given no documents: what refers to one is
    refused and not fetched."""
    refused = 0
    for name, case in cases("required"):
        try:
            checker = compile_schema(case["schema"])
        except InvalidSchema:
            refused += 1
            assert "http://localhost:1234/" in json.dumps(case["schema"]), name
            continue
        assert compile_schema(case["schema"]) is checker
        for test in case["tests"]:
            assert checker.fits(test["data"]) == test["valid"], (name, test["description"])
    assert refused < 40


@pytest.mark.parametrize(
    ("dialect", "schema", "fits", "wrong"),
    [
        ("", {"prefixItems": [{"type": "integer"}]}, [1], ["a"]),
        (f"{NEW}2019-09/schema", {"items": [{"type": "integer"}]}, [1], ["a"]),
        (f"{OLD}draft-07/schema#", {"items": [{"type": "integer"}]}, [1], ["a"]),
        (f"{OLD}draft-07/schema#", {"dependencies": {"a": ["b"]}}, {"b": 1}, {"a": 1}),
        (f"{OLD}draft-04/schema#", {"maximum": 5, "exclusiveMaximum": True}, 4, 5),
    ],
)  # fmt: skip
def test_the_draft_is_the_one_that_the_schema_names(
    dialect: str, schema: dict[str, Any], fits: Any, wrong: Any
) -> None:
    checker = compile_schema({"$schema": dialect, **schema} if dialect else schema)
    assert checker.fits(fits)
    assert not checker.fits(wrong)


def test_a_dialect_that_is_not_known_is_refused_by_name() -> None:
    with pytest.raises(InvalidSchema, match=r"example\.com/dialect"):
        compile_schema({"$schema": "https://example.com/dialect", "type": "object"})
