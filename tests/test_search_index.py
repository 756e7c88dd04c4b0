"""The search index: what a query finds, in which order, while the catalog changes."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterable, Mapping
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from toolcrib.definition import Annotations, ToolDefinition
from toolcrib.ranking.fields import MAX_NODES, MAX_TEXT, Document, document_of
from toolcrib.ranking.index import Index
from toolcrib.ranking.ranker import DEFAULT_LIMIT, Hit
from toolcrib.ranking.text import Words

PLAIN: Mapping[str, Any] = {"type": "object", "properties": {}}


def tool(
    name: str,
    description: str = "",
    schema: Mapping[str, Any] = PLAIN,
    *,
    source: str = "",
    title: str | None = None,
    tags: tuple[str, ...] = (),
) -> Document:
    definition = ToolDefinition(
        name, description, schema, annotations=Annotations(title=title), tags=tags
    )
    return document_of(definition, source)


def index_of(documents: Iterable[Document]) -> Index:
    index = Index()
    index.update(documents)
    return index


def names(index: Index, query: str, limit: int = DEFAULT_LIMIT) -> list[str]:
    return [hit.name for hit in index.search(query, limit)]


WEB = [
    tool("webfetch", "Download a page."),
    tool("read_file", "Load what a path holds."),
    tool("清理会话", "清理会话的历史记录"),
    tool("send_mail", "Send a message to somebody."),
]


# what is a word


def test_A5_7_words_are_lower_cased_runs_split_at_everything_else() -> None:
    assert Words().terms("Read a file 1 世界") == ["read", "file", "世", "界", "世界"]


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("findSymbol", ["find", "symbol"]),
        ("web.search read_file", ["web", "search", "read", "file"]),
        ("parseHTTPResponse", ["pars", "http", "respons"]),
        ("list of URLs", ["list", "of", "url"]),
        ("sha256", ["sha", "256"]),
        ("s3", ["s3"]),
        ("Café", ["cafe"]),
        ("naïve ＧＩＴ", ["naiv", "git"]),
        ("用git提交", ["用", "git", "提", "交", "提交"]),
    ],
)
def test_A5_7_camel_case_digits_accents_and_scripts_are_split(text: str, terms: list[str]) -> None:
    assert Words().terms(text) == terms


@pytest.mark.parametrize("query", ["a", "1", "a 1", "", "   ", "!!!", "---", "🙂"])
def test_A5_7_a_query_without_words_finds_nothing(query: str) -> None:
    assert names(index_of(WEB), query) == []


@pytest.mark.parametrize("query", ["清理", "会话", "历史记录"])
def test_A5_7_a_part_of_a_chinese_text_finds_it(query: str) -> None:
    assert names(index_of(WEB), query) == ["清理会话"]


def test_T_A6_a_single_letter_never_drags_in_what_it_begins() -> None:
    documents = [tool("webfetch", "Alpha"), tool("read_file", "Load")]
    assert names(index_of(documents), "read a file") == ["read_file"]
    assert names(index_of(WEB), "w") == []


def test_the_forms_of_a_word_find_each_other() -> None:
    index = index_of([tool("branch_renamer", "Renames branches."), *WEB])
    assert names(index, "renaming a branch")[0] == "branch_renamer"


def test_unpaired_surrogates_and_huge_words_are_only_text() -> None:
    index = index_of([tool("odd", "\ud800 " + "x" * 100_000), *WEB])
    assert names(index, "\udfff page " + "y" * 100_000) == ["webfetch"]


# what is ranked how


def test_A5_6_a_prefix_finds_the_words_it_begins() -> None:
    assert names(index_of(WEB), "webf") == ["webfetch"]


def test_A5_6_the_exact_word_outranks_the_word_it_begins() -> None:
    index = index_of([tool("beta", "one web two"), tool("alpha", "one website two")])
    exact, begun = index.search("web")
    assert (exact.name, begun.name) == ("beta", "alpha")
    assert exact.score > begun.score


def test_T_A7_many_words_begun_count_as_the_best_of_them() -> None:
    many = tool("many", "portal portfolio portage portrait portion")
    one = tool("one", "port of the ship at sea")
    assert names(index_of([many, one, *WEB]), "port") == ["one", "many"]
    begun = tool("zero", "portal of the ship at sea")
    first, second = index_of([many, begun]).search("porta")
    assert first.score < 2 * second.score


def test_a_name_hit_outranks_a_text_hit() -> None:
    documents = [
        tool("compress_image", "Makes it smaller."),
        tool("aaa_other", "Can compress."),
        tool("zzz_other", "compress"),
    ]
    assert names(index_of(documents), "compress something")[0] == "compress_image"


@pytest.mark.parametrize(
    ("document", "query"),
    [
        (tool("t", title="Currency converter"), "currency"),
        (tool("t", "Exchange money."), "exchange money"),
        (tool("t", tags=("finance",)), "finance"),
        (tool("t", source="wallstreet"), "wallstreet"),
        (tool("t", schema={"properties": {"iban": {}}}), "iban"),
        (tool("t", schema={"properties": {"x": {"description": "a postcode"}}}), "postcode"),
        (tool("t", schema={"properties": {"x": {"enum": ["celsius", None, 3]}}}), "celsius"),
        (tool("t", schema={"properties": {"x": {"items": {"properties": {"deep": {}}}}}}), "deep"),
        (
            tool(
                "t",
                schema={
                    "properties": {"x": {"anyOf": [{"$ref": "#/$defs/Place"}, {"type": "null"}]}},
                    "$defs": {"Place": {"properties": {"latitude": {}}}},
                },
            ),
            "latitude",
        ),
    ],
)
def test_every_field_of_a_definition_is_searched(document: Document, query: str) -> None:
    assert names(index_of([document, *WEB]), query) == ["t"]


def test_a_namespace_that_repeats_its_source_is_not_counted_in_the_name() -> None:
    assert tool("git__git_status", source="git").name == "git_status"
    assert tool("fs__read", source="files").name == "fs__read"
    assert tool("git__", source="git").name == "git__"
    index = index_of([tool(f"git__git_{what}", source="git") for what in ("log", "status", "add")])
    assert names(index, "git status")[0] == "git__git_status"


def test_stop_words_weigh_little_but_are_searchable() -> None:
    index = index_of([tool("about", "what is it"), tool("weather", "Tells the weather.")])
    assert names(index, "what is the weather")[0] == "weather"
    assert names(index, "what is it") == ["about"]


def test_A5_6_equal_documents_come_by_name() -> None:
    index = index_of(tool(f"tool_{n:02}", "the same text") for n in reversed(range(20)))
    assert names(index, "same text") == [f"tool_{n:02}" for n in range(8)]


@pytest.mark.parametrize("limit", [0, -1, DEFAULT_LIMIT])
def test_A5_3_a_limit_of_nothing_is_the_default_of_eight(limit: int) -> None:
    index = index_of(tool(f"tool_{n:02}", "the same text") for n in range(20))
    assert len(index.search("text", limit)) == 8
    assert len(index.search("text", 3)) == 3
    assert len(index.search("text", 1_000_000)) == 20


def test_scores_fall_and_are_positive() -> None:
    scores = [hit.score for hit in index_of(WEB).search("read_file page message")]
    assert scores == sorted(scores, reverse=True) and scores[-1] > 0


# names


def eighty() -> list[Document]:
    wanted = ["search_graph", "trace_path", "get_snippet", "query_graph", "index_repo"]
    text = "search graph trace path get snippet query index repo find symbol " * 3
    others = [tool(f"graph_search_{n}", text) for n in range(73)]
    return [*others, *(tool(n) for n in wanted), tool("mcp__srv__find_symbol"), tool("symbols")]


def test_TS01_every_tool_named_in_the_query_comes_first() -> None:
    named = ["search_graph", "trace_path", "get_snippet", "query_graph", "index_repo"]
    assert sorted(names(index_of(eighty()), " ".join(named))[:5]) == sorted(named)


@pytest.mark.parametrize(
    "query",
    ["mcp__srv__find_symbol", "mcp/srv/find_symbol", "MCP SRV FIND SYMBOL", "mcpSrvFindSymbol"],
)
def test_TS01_separators_and_case_of_a_name_are_ignored(query: str) -> None:
    assert names(index_of(eighty()), query)[0] == "mcp__srv__find_symbol"


@pytest.mark.parametrize(
    "query",
    [
        "find symbol",
        "findSymbol",
        "FIND_SYMBOL",
        "find-symbol",
        "mcp__srv__find_symbol",
        "findsymbol",
    ],
)
@pytest.mark.parametrize("name", ["find_symbol", "findSymbol", "srv__find_symbol"])
def test_TS01_a_name_is_found_with_and_without_its_namespace(query: str, name: str) -> None:
    named = tool(name, source="srv")
    assert names(index_of([*eighty()[:73], named]), query)[0] == name


def test_TS01_names_inside_a_sentence_come_first() -> None:
    found = names(index_of(eighty()), "first call `trace_path`, then getSnippet(x) on the graph.")
    assert sorted(found[:2]) == ["get_snippet", "trace_path"]


def test_a_plain_word_of_a_sentence_is_not_taken_for_a_name() -> None:
    index = index_of(
        [
            tool("api", "Lists endpoints."),
            tool("get_weather", "The weather of a city, by an API."),
            tool("get_tides", "The tides, by an API."),
        ]
    )
    assert names(index, "weather in Paris by the API")[0] == "get_weather"
    assert names(index, "api")[0] == "api"


def test_a_query_of_plain_names_only_finds_them_all() -> None:
    texts = [tool(f"sum_{n}", "add and subtract and multiply numbers") for n in range(30)]
    index = index_of([*texts, tool("add"), tool("subtract"), tool("multiply")])
    assert sorted(names(index, "add, subtract, multiply", 3)) == ["add", "multiply", "subtract"]


def test_a_full_name_comes_before_the_same_name_of_another_source() -> None:
    index = index_of([tool("a__read", source="a"), tool("b__read", source="b")])
    assert names(index, "b__read") == ["b__read", "a__read"]


# who may find what


def test_accept_filters_and_is_asked_in_rank_order_no_longer_than_needed() -> None:
    index = index_of(tool(f"tool_{n:04}", "the same text") for n in range(2_000))
    asked: list[str] = []

    def accept(name: str) -> bool:
        asked.append(name)
        return int(name[-4:]) % 50 == 49

    hits = [hit.name for hit in index.search("text", 3, accept)]
    assert hits == ["tool_0049", "tool_0099", "tool_0149"]
    assert asked == [f"tool_{n:04}" for n in range(150)]


def test_a_named_tool_that_is_not_accepted_stays_hidden() -> None:
    index = index_of(WEB)
    assert index.search("webfetch", accept=lambda name: name != "webfetch") == []


# changes


def test_put_replaces_and_drop_removes_from_the_next_search_on() -> None:
    index = index_of(WEB)
    index.put(tool("webfetch", "Now it bakes bread."))
    assert names(index, "bread") == ["webfetch"]
    assert names(index, "download") == []
    index.drop("webfetch")
    index.drop("never_there")
    assert names(index, "bread webfetch webf") == []
    index.update([tool("new", "bread")], drop=["new"])
    assert names(index, "bread") == ["new"]


def test_what_came_and_went_between_two_searches_leaves_nothing() -> None:
    index = index_of(WEB)
    for n in range(100):
        index.put(tool(f"passing_{n}", "passing"))
        index.drop(f"passing_{n}")
    assert names(index, "passing") == []


def test_a_name_of_two_owners_is_dropped_one_by_one() -> None:
    index = index_of([tool("a__read", source="a"), tool("b__read", source="b")])
    index.drop("a__read")
    assert names(index, "read") == ["b__read"]


WORDS = ["file", "files", "read", "reader", "web", "webfetch", "git", "的", "会话", "the", "s3"]
TEXTS = st.lists(st.sampled_from(WORDS), max_size=6).map(" ".join)
STEPS = st.lists(st.tuples(st.integers(0, 9), st.one_of(st.none(), TEXTS)), max_size=30)


@settings(max_examples=150, deadline=None)
@given(STEPS, TEXTS, st.data())
def test_any_history_finds_what_a_fresh_index_finds(
    steps: list[tuple[int, str | None]], query: str, data: st.DataObject
) -> None:
    index = Index()
    kept: dict[str, Document] = {}
    for number, text in steps:
        key = f"tool_{number}"
        if text is None:
            index.drop(key)
            kept.pop(key, None)
        else:
            kept[key] = tool(key, text, source=text[:3])
            index.put(kept[key])
        if data.draw(st.booleans()):
            index.search(query)
    fresh = index_of(kept.values())
    found = {hit.name: hit.score for hit in index.search(query, 50)}
    expected = {hit.name: hit.score for hit in fresh.search(query, 50)}
    assert found.keys() == expected.keys()
    # average lengths differ by the documented drift, and scores by no more than that
    assert all(score == pytest.approx(expected[name], rel=0.06) for name, score in found.items())


def test_a_limited_search_is_the_beginning_of_an_unlimited_one() -> None:
    texts = [" ".join(WORDS[k] for k in range(len(WORDS)) if n >> k % 9 & 1) for n in range(500)]
    index = index_of(tool(f"x{n:03}", text + " of the city") for n, text in enumerate(texts))
    for query in (
        "read the web files of the city",
        "git",
        "web reader the of city",
        "会话 s3 file",
    ):
        everything = index.search(query, 10_000)
        for limit in (1, 5, 40):
            assert index.search(query, limit) == everything[:limit]


def test_no_search_sees_half_an_update_while_threads_write() -> None:
    index = index_of(WEB)
    planets = ["mercury", "venus", "jupiter", "saturn"]
    start = threading.Barrier(len(planets) + 2)
    written = threading.Event()
    torn: list[list[Hit]] = []

    def write(planet: str) -> None:
        pair = [tool(f"{side}_{planet}", "a moon") for side in ("near", "far")]
        start.wait()
        for _ in range(60):
            index.update(pair)
            index.update(drop=[document.key for document in pair])
        index.update(pair)

    def look() -> None:
        start.wait()
        while not written.is_set():
            for planet in planets:
                hits = index.search(planet)
                if len(hits) not in (0, 2):
                    torn.append(hits)

    writers = [threading.Thread(target=write, args=(planet,)) for planet in planets]
    lookers = [threading.Thread(target=look) for _ in range(2)]
    for thread in (*writers, *lookers):
        thread.start()
    for thread in writers:
        thread.join()
    written.set()
    for thread in lookers:
        thread.join()
    assert torn == []
    assert sorted(names(index, "moon", 20)) == sorted(
        f"{side}_{planet}" for side in ("near", "far") for planet in planets
    )


def test_putting_never_waits_for_a_search() -> None:
    index = index_of(WEB)

    def accept(name: str) -> bool:
        writer = threading.Thread(target=index.put, args=(tool("late", "page"),))
        writer.start()
        writer.join(10)
        return not writer.is_alive()

    assert [hit.name for hit in index.search("page", accept=accept)] == ["webfetch"]
    assert sorted(names(index, "page")) == ["late", "webfetch"]


# strangers' schemas


def test_a_hostile_schema_costs_no_more_than_a_large_honest_one() -> None:
    deep: dict[str, Any] = {"properties": {"bottom": {}}}
    for _ in range(60):
        deep = {"properties": {"level": deep}, "anyOf": [{}] * 1_000}
    wide = {"properties": {f"p{n}": {"enum": ["v" * 200] * 60} for n in range(300)}}
    circle = {
        "properties": {"me": {"$ref": "#/$defs/Me"}},
        "$defs": {"Me": {"properties": {"me": {"$ref": "#/$defs/Me"}}}},
    }
    for schema in (deep, wide, circle):
        document = tool("hostile", "x" * 1_000_000, schema)
        assert len(document.parameters.split()) <= MAX_NODES
        assert all(len(text) <= MAX_TEXT for text in document.texts)


@pytest.mark.parametrize(
    "schema",
    [
        {"properties": ["not", "a", "mapping"]},
        {"properties": {"x": True, "y": None, "z": {"description": 5, "enum": "abc"}}},
        {"properties": {"x": {"$ref": "#/$defs/gone"}, "y": {"$ref": 7}}, "$defs": []},
        {"properties": {"x": {"anyOf": {"not": "a list"}, "items": [1, 2]}}},
    ],
)
def test_a_schema_that_makes_no_sense_is_read_as_far_as_it_does(schema: Mapping[str, Any]) -> None:
    assert names(index_of([tool("odd_one", "fine", schema)]), "fine") == ["odd_one"]


def test_the_ranking_does_not_depend_on_the_hash_seed() -> None:
    script = (
        "from toolcrib.definition import ToolDefinition as D\n"
        "from toolcrib.ranking.fields import document_of\n"
        "from toolcrib.ranking.index import Index\n"
        "index = Index()\n"
        "for n in range(200):\n"
        "    text = ' '.join(w for k, w in enumerate('webs reads files sends mails'.split())"
        " if n >> k & 1)\n"
        "    index.put(document_of(D(f't{n}', text), 'src'))\n"
        "print(index.search('web read fil the mailer', 50), index.search('sen', 9))\n"
    )
    outputs = {
        subprocess.run(
            [sys.executable, "-c", script],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("0", "1", "2")
    }
    assert len(outputs) == 1
