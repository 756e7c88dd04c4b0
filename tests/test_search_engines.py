"""The two engines of the search index: equal histories, equal answers, to the last bit."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from toolcrib.definition import ToolDefinition
from toolcrib.discovery import packed, scan
from toolcrib.discovery.fields import Document, document_of
from toolcrib.discovery.index import Index
from toolcrib.discovery.packed import Packed
from toolcrib.discovery.scan import Scan


class Both:
    """An index on each engine, given the same and asked the same."""

    def __init__(self) -> None:
        self.plain, self.fast = Index(Scan()), Index(Packed())

    def update(self, put: Sequence[Document] = (), drop: Sequence[str] = ()) -> None:
        self.plain.update(put, drop)
        self.fast.update(put, drop)

    def agree_on(self, query: str, limit: int = 10) -> list[str]:
        plain, fast = self.plain.search(query, limit), self.fast.search(query, limit)
        assert plain == fast  # names, scores and which are named
        return [hit.name for hit in plain]


WORDS = ["file", "files", "read", "reader", "read_file", "web", "webfetch", "git", "的", "会话"]
WORDS += ["the", "of", "s3", "page", "pages", "a"]
TEXTS = st.lists(st.sampled_from(WORDS), max_size=8).map(" ".join)
STEPS = st.lists(
    st.tuples(st.integers(0, 11), st.one_of(st.none(), TEXTS), st.one_of(st.none(), TEXTS)),
    max_size=40,
)


@settings(max_examples=200, deadline=None)
@given(STEPS, TEXTS, st.integers(1, 12))
def test_any_history_is_answered_alike(
    steps: list[tuple[int, str | None, str | None]], last: str, limit: int
) -> None:
    both = Both()
    for number, text, query in steps:
        key = f"tool_{number}"
        if text is None:
            both.update(drop=[key])
        else:
            both.update([document_of(ToolDefinition(key, text), text[:4])])
        if query is not None:
            both.agree_on(query, limit)
    both.agree_on(last, limit)


def random_document(rng: random.Random, key: str) -> Document:
    """Words as skewed as those of a language: some stand almost everywhere, most in few"""
    words = [f"w{int(rng.paretovariate(0.6)) % 5_000:x}q" for _ in range(rng.randrange(3, 30))]
    schema = {"properties": {word: {"description": words[0]} for word in words[:3]}}
    name = "_".join(words[:2])
    return document_of(ToolDefinition(name, " ".join(words), schema), words[-1], key=key)


def random_query(rng: random.Random) -> str:
    return " ".join(
        f"w{int(rng.paretovariate(0.5)) % 5_000:x}q" for _ in range(rng.randrange(1, 9))
    )


def play(both: Both, rng: random.Random, rounds: int) -> None:
    """Fills, replaces and empties, in steps of very different sizes, and searches in between."""
    for _ in range(rounds):
        keys = [f"k{rng.randrange(3_000)}" for _ in range(rng.choice([1, 3, 400]))]
        put = [random_document(rng, key) for key in keys]
        both.update(put, [f"k{rng.randrange(3_000)}" for _ in range(rng.choice([0, 1, 200]))])
        for limit in (1, 10, 60):
            both.agree_on(random_query(rng), limit)


def test_thousands_of_documents_that_come_and_go_are_ranked_alike() -> None:
    both, rng = Both(), random.Random(7)
    play(both, rng, 60)
    assert len(both.agree_on(random_query(rng) + " w1q", 5_000)) > 100
    both.update(drop=[f"k{n}" for n in range(3_000)])
    assert both.agree_on("w1q w2q") == []
    play(both, rng, 5)


def test_impacts_that_were_forgotten_are_weighed_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scan, "MAX_KEPT", 1_000)
    monkeypatch.setattr(packed, "MAX_KEPT", 1_000)
    play(Both(), random.Random(8), 15)


def test_a_word_that_begins_many_words_is_ranked_alike() -> None:
    both, rng = Both(), random.Random(9)
    endings = [f"work{chr(97 + n % 26)}{chr(97 + n // 26)}x" for n in range(200)]
    texts = [" ".join(rng.sample(endings, 5)) + " works" * rng.randrange(9) for _ in range(900)]
    both.update([document_of(ToolDefinition(f"t{n}", text)) for n, text in enumerate(texts)])
    both.update([document_of(ToolDefinition("worka", "worka workaax"))])
    for query in ("worka", "workb", "workaa tool", "worka work the tool"):
        assert both.agree_on(query, 30)


def test_more_occurrences_than_are_counted_are_ranked_alike() -> None:
    both = Both()
    both.update(
        [document_of(ToolDefinition(f"t{n}", "word " * n)) for n in (1, 126, 127, 128, 900)]
    )
    assert len(both.agree_on("word wor")) == 5


@pytest.mark.parametrize("engine", [Scan, Packed])
def test_a_search_of_nothing_finds_nothing(engine: Callable[[], Scan | Packed]) -> None:
    index = Index(engine())
    assert index.search("anything") == []
    index.update([document_of(ToolDefinition("t", "word"))], ["t"])
    assert [hit.name for hit in index.search("word")] == ["t"]


def shared(kind: str) -> list[dict[str, object]]:
    root = os.environ.get("TOOLCRIB_SHARED", "")
    files = sorted((Path(root) / "bench" / "toolret" / "data").glob(f"*.{kind}.jsonl"))
    if not root or not files:
        text = (
            "THE ENGINES WERE NOT COMPARED ON THE SHARED CORPUS: set TOOLCRIB_SHARED to the folder"
            f" that holds bench/toolret/data (now: {root!r})"
        )
        print(f"\n{'!' * 100}\n{text}\n{'!' * 100}")
        pytest.skip(text)
    lines = [line for file in files for line in file.read_text(encoding="utf-8").split("\n")]
    return [json.loads(line) for line in lines if line]


def test_real_tools_and_queries_are_ranked_alike() -> None:
    both = Both()
    tools = shared("tools")[::8]
    both.update(
        [
            document_of(
                ToolDefinition(tool["name"], tool["description"], tool["input_schema"]),  # type: ignore[arg-type]
                str(tool.get("server") or ""),
                key=str(tool["id"]),
            )
            for tool in tools
        ]
    )
    for at, query in enumerate(shared("queries")[::20]):
        both.agree_on(str(query["query"]), (8, 25)[at % 2])
        both.update(drop=[str(tools[at]["id"])])


def test_numpy_is_imported_by_an_index_and_not_by_the_package() -> None:
    code = (
        "import sys, toolcrib, toolcrib.discovery.index as index\n"
        "before = 'numpy' in sys.modules\n"
        "index.Index()\n"
        "print(before, 'numpy' in sys.modules)"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.split() == ["False", "True"]


def test_without_numpy_an_index_finds_the_same() -> None:
    code = (
        "import sys; sys.modules['numpy'] = None\n"
        "from toolcrib.definition import ToolDefinition as D\n"
        "from toolcrib.discovery.fields import document_of\n"
        "from toolcrib.discovery.index import Index\n"
        "index = Index(); index.put(document_of(D('read_file', 'Reads.')))\n"
        "print(index.search('file')[0].name)"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "read_file"
