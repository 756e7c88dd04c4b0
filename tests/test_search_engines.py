"""The two engines of the search index: equal histories, equal answers, to the last bit."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from toolcrib.definition import ToolDefinition
from toolcrib.ranking import packed, scan
from toolcrib.ranking.engine import WordList
from toolcrib.ranking.fields import FIELDS, Document, document_of
from toolcrib.ranking.index import Index
from toolcrib.ranking.learned import Learned
from toolcrib.ranking.packed import Packed
from toolcrib.ranking.scan import Scan


class Both:
    """An index on each engine, given the same and asked the same."""

    def __init__(self) -> None:
        self.learned = Learned()
        self.plain = Index(Scan(), learned=self.learned)
        self.fast = Index(Packed(), learned=self.learned)

    def update(self, put: Sequence[Document] = (), drop: Sequence[str] = ()) -> None:
        self.plain.update(put, drop)
        self.fast.update(put, drop)

    def agree_on(self, query: str, limit: int = 10) -> list[str]:
        plain, fast = self.plain.search(query, limit), self.fast.search(query, limit)
        assert plain == fast  # names, scores and which are named
        return [hit.name for hit in plain]

    def agree_on_why(self, query: str, keys: Iterable[str]) -> None:
        for key in keys:
            assert self.plain.explain(query, key) == self.fast.explain(query, key)


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
            both.learned.note(query, key)
            both.agree_on(query, limit)
    for query in (last, f"source:read {last}", f'+file "read file" {last[:9]}'):
        both.agree_on_why(query, both.agree_on(query, limit)[:2])


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
            query = random_query(rng)
            both.agree_on_why(query, both.agree_on(query, limit)[::9])
            both.agree_on(f"+{query}", limit)


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


def engines_of(documents: Sequence[Sequence[str]]) -> tuple[Scan, Packed]:
    """Both, with the words of each document in the field that its number counts out"""
    engines = Scan(), Packed()
    for engine in engines:
        for number, words in enumerate(documents):
            fields: list[Sequence[str]] = [[] for _ in FIELDS]
            fields[number % len(FIELDS)] = words
            engine.add(number, fields)
        engine.settle()
    return engines


def test_any_documents_are_scored_by_any_lists_as_a_scan_scores_them() -> None:
    rng = random.Random(10)
    words = [f"w{n}" for n in range(60)]
    documents = [rng.choices(words, range(1, 61), k=rng.randrange(1, 30)) for _ in range(700)]
    taught = {number: rng.random() for number in rng.sample(range(700), 40)}

    def lists(engine: Scan | Packed) -> Sequence[WordList]:
        impacts = [engine.impacts(word) for word in ("w59", "w3", "w30")]
        impacts += [engine.given(taught), engine.expanded("w1", engine.expansions("w1"))]
        return [WordList(0.5 + n, one, (0.5 + n) * one.peak) for n, one in enumerate(impacts)]

    plain, fast = engines_of(documents)
    everything = plain.candidates(lists(plain), 700)
    for numbers in ([], [5], {3, 4, 699}, range(0, 700, 3), list(range(699, -1, -1))):
        found = plain.among(lists(plain), numbers)
        assert found == fast.among(lists(fast), numbers)
        assert found == {n: everything[n] for n in numbers if n in everything}
    assert plain.given({}).peak == fast.given({}).peak == 0


def test_the_holders_of_a_term_and_where_it_stands_in_them_are_told_alike() -> None:
    documents = [["here", "here", "there"], ["there"], ["here"] * 200, []]
    for engine in engines_of(documents):
        assert list(engine.holding("here")) == [0, 2]
        assert list(engine.holding("nowhere")) == []
        engine.remove(1)
        assert list(engine.holding("there")) == [0]
        (first,) = engine.occurrences("here", 0)
        assert (first.field, first.times) == (FIELDS[0], 2)
        assert engine.occurrences("here", 2)[0].times == 127
        assert engine.occurrences("here", 1) == engine.occurrences("nowhere", 0) == []
    plain, fast = engines_of(documents)
    assert plain.occurrences("here", 2) == fast.occurrences("here", 2)


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
        "import sys, toolcrib, toolcrib.ranking.index as index\n"
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
        "from toolcrib.ranking.fields import document_of\n"
        "from toolcrib.ranking.index import Index\n"
        "index = Index(); index.put(document_of(D('read_file', 'Reads.')))\n"
        "print(index.search('file')[0].name)"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "read_file"
