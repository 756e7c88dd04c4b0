"""What a query may say: operators, misspelled words, words of one meaning; and why a hit scores."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from conftest import Plain
from toolcrib import Assembly
from toolcrib.definition import ToolDefinition
from toolcrib.discovery.policy import Dynamic
from toolcrib.errors import InvalidDefinition
from toolcrib.ranking.fields import Document, document_of
from toolcrib.ranking.index import Index
from toolcrib.ranking.learned import MAX_TERMS, MAX_TOOLS, Learned
from toolcrib.ranking.syntax import Ask, ask


def tool(name: str, text: str = "", source: str = "", tags: tuple[str, ...] = ()) -> Document:
    return document_of(ToolDefinition(name, text, tags=tags), source)


def index_of(documents: Iterable[Document]) -> Index:
    index = Index()
    index.update(documents)
    return index


def names(index: Index, query: str, limit: int = 8) -> list[str]:
    return [hit.name for hit in index.search(query, limit)]


SHOP = [
    tool("git__rename_branch", "Rename a branch of a repository.", "git", ("vcs", "Write Access")),
    tool("git__list_branches", "The branches, with who may rename a branch.", "git", ("vcs",)),
    tool("git__commit", "Record a change.", "git"),
    tool("hub__rename_repo", "Give a repository another name.", "Git Hub", ("vcs",)),
    tool("mail__send", "Send a message about a branch of science.", "mail", ("write-access",)),
    tool("weather__today", "The weather of a city.", "weather"),
]


# filters


def test_A5_a_source_filter_alone_lists_its_tools_by_name() -> None:
    index = index_of(SHOP)
    listed = ["git__commit", "git__list_branches", "git__rename_branch"]
    assert names(index, "source:git") == listed
    assert names(index, " Source:GIT, ") == listed
    assert names(index, "source:git", 2) == listed[:2]
    assert len({hit.score for hit in index.search("source:git")}) == 1


@pytest.mark.parametrize("query", ["source:git_hub", 'source:"git hub"', "source:GitHub"])
def test_A5_case_and_separators_of_a_source_are_ignored(query: str) -> None:
    assert names(index_of(SHOP), query) == ["hub__rename_repo"]


@pytest.mark.parametrize("query", ["tag:write_access", 'tag:"Write Access"', "TAG:WriteAccess"])
def test_A5_case_and_separators_of_a_tag_are_ignored(query: str) -> None:
    assert names(index_of(SHOP), query) == ["git__rename_branch", "mail__send"]


def test_A5_filters_of_one_kind_are_any_of_both_kinds_both() -> None:
    index = index_of(SHOP)
    assert names(index, "source:mail source:weather") == ["mail__send", "weather__today"]
    assert names(index, "source:git tag:vcs") == ["git__list_branches", "git__rename_branch"]
    assert names(index, "source:mail tag:vcs") == []
    assert names(index, "source:nowhere") == []


def test_A5_words_beside_a_filter_rank_what_it_leaves() -> None:
    index = index_of(SHOP)
    assert names(index, "rename source:git") == ["git__rename_branch", "git__list_branches"]
    assert names(index, "source:git weather") == []


def test_A5_a_filter_follows_what_is_dropped_and_replaced() -> None:
    index = index_of(SHOP)
    index.update([tool("git__commit", "Moved.", "elsewhere")], drop=["git__list_branches"])
    assert names(index, "source:git") == ["git__rename_branch"]
    assert names(index, "source:elsewhere") == ["git__commit"]


def test_A5_accept_is_asked_of_what_a_filter_leaves_only() -> None:
    asked: list[str] = []
    index_of(SHOP).search("source:mail message", 8, lambda name: not asked.append(name))
    assert asked == ["mail__send"]


# phrases and required words


def test_A5_a_phrase_stands_in_some_text_in_its_order() -> None:
    index = index_of(SHOP)
    both = {"git__rename_branch", "git__list_branches"}
    assert set(names(index, '"rename a branch"')) == both
    assert set(names(index, '"renames a branches"')) == both, "the same forms as everywhere"
    assert names(index, '"list branches"') == ["git__list_branches"], "its name"
    assert names(index, '"branch rename"') == []
    assert names(index, '"rename a branch" tag:vcs source:git record') == names(
        index, '"rename a branch"'
    )


def test_A5_a_phrase_does_not_reach_from_one_text_into_the_next() -> None:
    assert names(index_of([tool("alpha", "Beta gamma.")]), '"alpha beta"') == []


def test_A5_a_phrase_of_chinese_words() -> None:
    index = index_of([tool("a", "清理会话的历史记录 git"), tool("b", "会话的清理")])
    assert names(index, '"清理会话"') == names(index, '"记录 git"') == ["a"]


def test_TS03_a_required_word_that_only_descriptions_hold_finds_nothing() -> None:
    index = index_of(SHOP)
    assert names(index, "+message") == []
    assert names(index, "+city weather") == []


def test_TS03_a_required_word_stands_in_the_name() -> None:
    index = index_of(SHOP)
    assert names(index, "+rename") == ["git__rename_branch", "hub__rename_repo"]
    assert names(index, "+branches")[0] == "git__list_branches"
    assert names(index, "+rename +repo") == ["hub__rename_repo"]
    assert names(index, "+git record")[0] == "git__commit", "a namespace is part of the name"
    assert names(index, "+rename_branch") == ["git__rename_branch"]


def test_TS01_exact_names_come_first_among_what_operators_leave() -> None:
    index = index_of([*SHOP, tool("files__rename_branch", "x", "files")])
    assert names(index, "source:git rename_branch")[0] == "git__rename_branch"
    assert "files__rename_branch" not in names(index, "source:git rename_branch")


# what is no operator


@pytest.mark.parametrize(
    "text",
    [
        "fetch https://x.org/a?b=c",
        "source:https://x.org",
        "meet at 12:30",
        r"read C:\tag:x\file",
        "compile C++ code",
        "a + b",
        "1 +2",
        "+49 170",
        "foo:bar",
        "datasource:git",
        "source: git",
        "tag:",
        'a "b',
        'say "hello" and "good',
        '"source:git" "',
        'delete the scene called "Bedtime" in my flat',
        '"Find me a good and cheap hotel in the centre of Paris"',
        '"!!!" ---',
        "+_",
        "source:--",
    ],
)
def test_A5_prose_and_malformed_queries_are_plain_text(text: str) -> None:
    assert ask(text) == Ask(text)


def test_A5_a_query_taken_apart() -> None:
    found = ask('source:Git-Hub tag:"My Tag" "rename a branch" +Repo, now')
    assert found.text.split() == ["rename", "a", "branch", "Repo", ",", "now"]
    assert (found.sources, found.tags) == (("github",), ("mytag",))
    assert (found.phrases, found.required) == (("rename a branch",), ("Repo",))


@settings(max_examples=300, deadline=None)
@given(
    st.lists(
        st.sampled_from(
            [
                '"',
                "source:",
                "tag:",
                "git",
                "+",
                "+rename",
                " ",
                "branch",
                ":",
                "\\",
                "會",
                "\ud800",
                "::",
            ]
        ),
        max_size=12,
    ).map("".join)
)
def test_A5_no_query_is_an_error_and_operators_only_narrow(query: str) -> None:
    index = index_of(SHOP)
    found = names(index, query, 50)
    plain = ask(query)
    if plain.text.strip() and not plain.sources and not plain.tags:
        words = re.sub(r'[+":]', " ", plain.text)  # its own text is no query with operators
        assert set(found) <= set(names(index, words, 50))
    for hit in found:
        assert index.explain(query, hit) is not None


# words of one meaning


def test_a_synonym_finds_a_tool_and_counts_less_than_the_word_itself() -> None:
    index = index_of(
        [tool("forecast", "Sun and rain."), tool("weather", "Sun and rain."), tool("x", "Other.")]
    )
    assert names(index, "weather") == ["weather", "forecast"]
    assert names(index_of([tool("delete_file", "Gone."), *SHOP]), "remove file")[0] == "delete_file"


# did you mean


@pytest.mark.parametrize(
    ("query", "corrected"),
    [
        ("wether", {"wether": "weather"}),
        ("the weahter of a city", {"weahter": "weather"}),
        ("repositroy", {"repositroy": "repository"}),
        ("renaem a branhc", {"renaem": "rename", "branhc": "branch"}),
        ("weather", {}),
        ("weat", {}),  # it begins a word
        ("zzzzzz", {}),
        ("send to Wether", {}),  # a name
        ("123456", {}),
    ],
)
def test_A5_a_word_nothing_knows_is_taken_for_its_nearest(
    query: str, corrected: dict[str, str]
) -> None:
    assert dict(index_of(SHOP).searched(query).corrected) == corrected


def test_A5_a_corrected_word_finds_and_weighs_less() -> None:
    index = index_of(SHOP)
    (wrong,), (right,) = index.search("wether"), index.search("weather")
    assert (wrong.name, right.name) == ("weather__today", "weather__today")
    assert wrong.score < right.score


def test_A5_no_correction_tells_a_word_of_a_tool_that_may_not_be_found() -> None:
    searched = index_of(SHOP).searched("wether", 8, lambda name: name != "weather__today")
    assert (searched.hits, dict(searched.corrected)) == ((), {})


def test_A5_what_was_dropped_corrects_nothing() -> None:
    index = index_of(SHOP)
    assert index.searched("wether").corrected
    index.drop("weather__today")
    assert not index.searched("wether").corrected
    index.put(tool("t", "A wetter day."))
    assert dict(index.searched("wettre").corrected) == {"wettre": "wetter"}


async def test_A5_9_the_model_reads_did_you_mean_only_where_something_was_corrected() -> None:
    async with Assembly([Plain("forecast", description="The weather.")], dynamic=Dynamic()) as own:
        session = own.session()
        for query, expected in (("wether", {"wether": "weather"}), ("weather", None)):
            result = await session.call("tool_search", query=query)
            answer: dict[str, Any] = json.loads(result.text)
            assert answer.get("did_you_mean") == expected
            assert answer["exposed"] == ["forecast"]


# why


WORDS = [
    "branch",
    "rename",
    "weather",
    "wether",
    "the",
    "repo",
    "change",
    "git",
    "mail",
    "renam",
    "forecast",
    "send",
    "record",
    "清理",
    "source:git",
    "+rename",
    "tag:vcs",
    "rename_branch",
]


@settings(max_examples=200, deadline=None)
@given(st.lists(st.sampled_from(WORDS), min_size=1, max_size=7).map(" ".join))
def test_an_explanation_adds_up_to_the_score(query: str) -> None:
    index = Index(learned=Learned())
    index.update(SHOP)
    index.note("thunderstorm change", "weather__today")
    hits = {hit.name: hit.score for hit in index.search(query, 50)}
    for document in SHOP:
        why = index.explain(query, document.key)
        assert why is not None
        assert why.total == pytest.approx(hits.get(document.key, 0.0), rel=1e-9)
        points = sum(word.points for word in why.words)
        if document.key in hits and not why.listed:
            assert why.total == pytest.approx(points * why.gains.factor + why.named)
        for word in why.words:
            if word.origin != "learned":
                assert sum(share.points for share in word.fields) == pytest.approx(word.points)


def test_an_explanation_names_words_fields_and_conditions() -> None:
    index = index_of(SHOP)
    why = index.explain("source:git renaming", "git__rename_branch")
    assert why is not None
    (word,) = why.words
    assert (word.term, word.origin) == ("renam", "word")
    assert {share.field: share.count for share in word.fields} == {"name": 1, "description": 1}
    assert [(one.text, one.holds) for one in why.conditions] == [("source:git", True)]
    other = index.explain("source:git message", "mail__send")
    assert other is not None
    assert (other.total, other.conditions[0].holds) == (0.0, False)
    assert index.explain("anything", "not_there") is None


# learned


def test_learned_words_find_the_tool_they_led_to_and_never_outrank_a_name() -> None:
    index = Index(learned=Learned())
    index.update(SHOP)
    assert names(index, "umbrella") == []
    index.note("do I need an umbrella", "weather__today")
    assert names(index, "umbrella") == ["weather__today"]
    for _ in range(1_000):
        index.note("commit", "weather__today")
    assert names(index, "commit")[0] == "git__commit"
    assert names(index, "do I need") == [], "stop words teach nothing"


def test_an_index_learns_nothing_unless_it_is_given_a_memory() -> None:
    index = index_of(SHOP)
    index.note("umbrella", "weather__today")
    assert index.search("umbrella") == []


def test_learned_is_bounded_in_tools_and_terms_and_fades() -> None:
    learned = Learned()
    learned.note("umbrella", "old")
    strong = learned.of("umbrella")["old"]
    for n in range(MAX_TOOLS + 5):
        learned.note(" ".join(f"word{chr(97 + n % 26)}{k}x" for k in range(4)), f"tool{n}")
    kept = learned.to_json()["tools"]
    assert len(kept) == MAX_TOOLS
    assert "old" not in kept
    assert learned.of("umbrella") == {}
    learned = Learned()
    learned.note("umbrella", "a")
    for n in range(40):
        learned.note(" ".join(f"w{chr(97 + k)}{chr(97 + n % 26)}q" for k in range(9)), "b")
    assert len(learned.to_json()["tools"]["b"]) == MAX_TERMS
    assert learned.of("umbrella")["a"] < strong


def test_learned_survives_json_and_refuses_what_it_did_not_write() -> None:
    learned = Learned()
    for query in ("rename branch", "branch", "weather in town"):
        learned.note(query, "t")
    again = Learned.from_json(json.loads(json.dumps(learned.to_json())))
    assert again.to_json() == learned.to_json()
    assert again.of("branch") == learned.of("branch")
    for wrong in (
        {},
        {"notes": "x", "tools": {}},
        {"notes": 1, "tools": []},
        {"notes": 1, "tools": {"t": {"w": [math.nan, 0]}}},
        {"notes": 1, "tools": {"t": {"w": [1, 9]}}},
        {"notes": 1, "tools": {"t": {"w": 1}}},
    ):
        with pytest.raises(InvalidDefinition, match="to_json"):
            Learned.from_json(wrong)


async def test_a_session_teaches_the_query_that_led_to_the_first_successful_call() -> None:
    learned = Learned()
    tools = [Plain("forecast", "sunny", description="The weather of a city.")]
    dynamic = Dynamic(ranker=lambda: Index(learned=learned))
    async with Assembly(tools, dynamic=dynamic) as own:
        session = own.session()
        await session.call("tool_search", query="umbrella weather")
        assert learned.of("umbrella") == {}
        await session.call("forecast")
        await session.call("forecast")
        assert learned.of("umbrella") == {"forecast": pytest.approx(0.5)}
        assert (await session.call("tool_search", query="umbrella")).text.count("forecast") >= 2
