"""Rankers of others, and how well a ranker finds what it should."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from toolcrib.definition import ToolDefinition
from toolcrib.errors import InvalidDefinition
from toolcrib.ranking.fields import Document, document_of
from toolcrib.ranking.index import Index
from toolcrib.ranking.ranker import Accept, Hit
from toolcrib.testing import Case, check_ranker, evaluate


def test_our_index_keeps_the_contract() -> None:
    check_ranker(Index)


class Broken(Index):
    """A ranker that is right but for what a subclass breaks."""

    def search(self, query: str, limit: int = 8, accept: Accept | None = None) -> list[Hit]:
        return super().search(query, limit, accept)


class Forgetful(Broken):
    def update(self, put: Iterable[Document] = (), drop: Iterable[str] = ()) -> None:
        super().update(put)


class Boundless(Broken):
    def search(self, query: str, limit: int = 8, accept: Accept | None = None) -> list[Hit]:
        return super().search(query, 1_000, accept)


class Careless(Broken):
    def search(self, query: str, limit: int = 8, accept: Accept | None = None) -> list[Hit]:
        return super().search(query, limit)


class Curious(Broken):
    def search(self, query: str, limit: int = 8, accept: Accept | None = None) -> list[Hit]:
        if accept is not None:
            [accept(hit.name) for hit in super().search(query, 1_000)]
        return super().search(query, limit, accept)


class Nameless(Broken):
    def search(self, query: str, limit: int = 8, accept: Accept | None = None) -> list[Hit]:
        hits = super().search(query.lower().replace("_", " ") + " path", limit, accept)
        return [Hit(hit.name, hit.score) for hit in hits] if query.split() else hits


class Upward(Broken):
    def search(self, query: str, limit: int = 8, accept: Accept | None = None) -> list[Hit]:
        return super().search(query, limit, accept)[::-1]


class Talkative(Broken):
    def search(self, query: str, limit: int = 8, accept: Accept | None = None) -> list[Hit]:
        return super().search(query if query.strip() else "lantern", limit, accept)


class Brittle(Broken):
    def search(self, query: str, limit: int = 8, accept: Accept | None = None) -> list[Hit]:
        query.encode()
        return super().search(query, limit, accept)


class Waiting(Broken):
    def __init__(self) -> None:
        super().__init__()
        self.guard = threading.RLock()

    def update(self, put: Iterable[Document] = (), drop: Iterable[str] = ()) -> None:
        with self.guard:
            super().update(put, drop)

    def search(self, query: str, limit: int = 8, accept: Accept | None = None) -> list[Hit]:
        with self.guard:
            return super().search(query, limit, accept)


class Halfway(Broken):
    def update(self, put: Iterable[Document] = (), drop: Iterable[str] = ()) -> None:
        super().update(drop=drop)
        for document in put:
            super().update([document])


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (Forgetful, "what was dropped is still found"),
        (Boundless, "limit 3: 20 hits"),
        (Careless, "finds what is not accepted"),
        (Curious, "not asked in rank order, once a key"),
        (Nameless, "not marked exact"),
        (Upward, "scores do not fall"),
        (Talkative, "'' finds something"),
        (Brittle, "odd_queries: it raised UnicodeEncodeError"),
        (Halfway, "a search saw half of an update"),
        (Waiting, "an update waits for a search"),
    ],
)
def test_a_broken_ranker_is_told(
    make: Callable[[], Index], says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("toolcrib.testing.rankers.PATIENCE", 0.05)
    with pytest.raises(AssertionError, match=says):
        check_ranker(make)


def index() -> Index:
    found = Index()
    texts = {"send_mail": "Send a message.", "read_mail": "Read messages.", "weather": "Of a city."}
    found.update(document_of(ToolDefinition(name, text)) for name, text in texts.items())
    return found


def test_an_evaluation_tells_means_and_what_came_instead() -> None:
    cases = [
        Case("send a message", frozenset({"send_mail"})),
        Case("read mail", frozenset({"send_mail"})),
        Case("weather", frozenset({"weather", "read_mail"})),
        Case("nothing knows this xyzzy", frozenset({"weather"})),
    ]
    found = evaluate(index(), cases, k=1)
    assert found.recall == {1: (1 + 0 + 0.5 + 0) / 4, 5: (1 + 1 + 0.5) / 4, 8: (1 + 1 + 0.5) / 4}
    assert found.mrr == (1 + 1 / 2 + 1 + 0) / 4
    second, half = 1 / math.log2(3), 1 / (1 + 1 / math.log2(3))
    assert found.ndcg == pytest.approx((1 + second + half) / 4)
    assert [(one.query, one.missing, one.came) for one in found.missed] == [
        ("read mail", ("send_mail",), ("read_mail",)),
        ("weather", ("read_mail",), ("weather",)),
        ("nothing knows this xyzzy", ("weather",), ()),
    ]
    assert json.loads(json.dumps(found.to_json()))["recall"]["1"] == 0.375


def test_an_evaluation_needs_cases_and_a_rank() -> None:
    for wrong in (lambda: Case(" ", frozenset({"a"})), lambda: Case("a", frozenset())):
        with pytest.raises(InvalidDefinition):
            wrong()
    with pytest.raises(InvalidDefinition):
        evaluate(index(), [])
    with pytest.raises(InvalidDefinition):
        evaluate(index(), [Case("a", frozenset({"weather"}))], k=0)


# the commands

TOOLS = '''
from toolcrib import tool

@tool
def double(number: int) -> int:
    """Double a whole number."""
    return 2 * number

@tool
def rename_branch() -> str:
    """Rename a branch."""
    return "renamed"
'''

FILE = """
resources:
  own:
    kind: tool.Source
    impl: functions
    settings: {path: ., modules: [eval_tools]}
  tools:
    kind: tool.Assembly
    impl: middleware
    deps: {tool: own}
"""


@pytest.fixture
def deployment(tmp_path: Path) -> Path:
    (tmp_path / "eval_tools.py").write_text(TOOLS)
    file = tmp_path / "shop.yaml"
    file.write_text(FILE)
    return file


def toolcrib(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", "from toolcrib.cli import main; main()", *map(str, arguments)]
    return subprocess.run(
        command,
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, "COLUMNS": "120"},
        check=False,
    )


def cases(deployment: Path, *lines: str) -> Path:
    file = deployment.with_name("cases.jsonl")
    file.write_text("\n".join(lines))
    return file


def test_eval_search_prints_the_figures_and_the_queries_that_failed(deployment: Path) -> None:
    file = cases(
        deployment,
        '{"query": "double a number", "relevant": ["double"]}',
        "",
        '{"query": "rename something", "relevant": ["double"]}',
    )
    told = toolcrib("eval-search", deployment, file)
    assert told.returncode == 0, told.stderr
    assert "2 queries  recall@1 0.500" in told.stdout
    assert "'rename something'" in told.stdout and "came: rename_branch" in told.stdout
    parsed = json.loads(toolcrib("eval-search", deployment, file, "--k", "3", "--json").stdout)
    assert (parsed["cases"], parsed["k"], parsed["recall"]["3"]) == (2, 3, 0.5)
    assert toolcrib("eval-search", deployment, file, "--min-recall", "0.5").returncode == 0
    assert toolcrib("eval-search", deployment, file, "--min-recall", "0.6").returncode == 1


def test_eval_search_tells_every_line_that_is_no_case(deployment: Path) -> None:
    file = cases(
        deployment,
        '{"query": "double", "relevant": ["dubble", "double"]}',
        '{"query": "double", "relevant": []}',
        "not json",
        "[1]",
        '{"query": "x", "relevant": ["double", 1]}',
    )
    told = toolcrib("eval-search", deployment, file)
    assert told.returncode == 3
    assert f"{file}:1: there is no tool 'dubble'" in told.stderr
    assert all(f"{file}:{line}: " in told.stderr for line in range(2, 6))
    assert toolcrib("eval-search", deployment, cases(deployment)).returncode == 3
    assert toolcrib("eval-search", deployment, deployment.with_name("gone")).returncode == 3


def test_search_explain_prints_under_each_hit_what_its_score_is_made_of(deployment: Path) -> None:
    told = toolcrib("search", deployment, "renaming a branch", "--explain")
    assert told.returncode == 0, told.stderr
    assert "rename_branch" in told.stdout and "rarity" in told.stdout
    assert "name covered" in told.stdout and "description" in told.stdout
    parsed = json.loads(toolcrib("search", deployment, "+rename", "--explain", "--json").stdout)
    (hit,) = parsed["hits"]
    assert hit["conditions"] == [{"text": "+rename", "holds": True}]
    assert hit["words"][0]["fields"][0]["field"] == "name"
