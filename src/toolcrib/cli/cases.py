"""The cases of `eval-search`: a JSONL file, read with every problem in it told by line."""

from __future__ import annotations

from collections.abc import Container
from pathlib import Path
from typing import cast

import orjson

from toolcrib.errors import ConfigurationError, InvalidDefinition, Problem
from toolcrib.testing.retrieval import Case

__all__ = ["load_cases"]


def load_cases(path: Path, known: Container[str]) -> list[Case]:
    """The cases of `path`: a line each, `{"query": "…", "relevant": ["tool_name", …]}`; blank lines
    are skipped. Raises `ConfigurationError` with every line that is no case, or names a tool that
    is not in `known`; also if there is no case at all, or the file cannot be read."""
    try:
        lines = path.read_bytes().split(b"\n")
    except OSError as error:
        raise ConfigurationError(f"{path}: the cases cannot be read: {error}") from error
    cases: list[Case] = []
    problems: list[Problem] = []
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            case = _case(line)
        except (InvalidDefinition, ValueError) as error:
            problems.append(Problem(str(error), file=str(path), line=number))
            continue
        cases.append(case)
        problems += [
            Problem(f"there is no tool {name!r} that can be found", file=str(path), line=number)
            for name in sorted(case.relevant)
            if name not in known
        ]
    if problems or not cases:
        raise ConfigurationError(problems or f"{path}: there are no cases in it")
    return cases


def _case(line: bytes) -> Case:
    value = orjson.loads(line)
    if not isinstance(value, dict):
        raise InvalidDefinition("a case is an object with query and relevant")
    found = cast("dict[str, object]", value)
    query, relevant = found.get("query"), found.get("relevant")
    names = cast("list[object]", relevant) if isinstance(relevant, list) else []
    texts = frozenset(name for name in names if isinstance(name, str))
    if not isinstance(query, str) or not names or len(texts) != len(set(map(repr, names))):
        raise InvalidDefinition("a case needs a query (text) and relevant (a list of tool names)")
    return Case(query, texts)
