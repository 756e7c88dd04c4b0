"""What a host decides about a server's tools: which, under which names, in which words."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from servers.support import hosting, raw, source
from toolcrib.errors import InvalidDefinition
from toolcrib.sources import mcp
from toolcrib.sources.mcp import Overrides
from toolcrib.sources.mcp.catalogue.mirror import Mirror, mirror

LISTING = [
    {"name": name, "description": f"{name} of the server"}
    for name in ("git_log", "git_push", "git.tag", "Read", "read")
]


def seen(listing: list[Any] | None = None, **decided: Any) -> Mirror:
    named = LISTING if listing is None else listing
    return mirror("s", "s__", named, overrides=Overrides(**decided))


def remotes(**decided: Any) -> list[str]:
    return [one.remote for one in seen(**decided).tools]


@pytest.mark.parametrize(
    ("decided", "offered"),
    [
        ({}, ["git_log", "git_push", "git.tag", "Read", "read"]),
        ({"include": ["git_*"]}, ["git_log", "git_push"]),
        ({"include": ["git?tag", "Read"]}, ["git.tag", "Read"]),
        ({"include": ["[rR]ead"]}, ["Read", "read"]),
        ({"include": ["git"]}, []),
        ({"include": []}, []),
        ({"exclude": ["git*"]}, ["Read", "read"]),
        ({"include": ["git*"], "exclude": ["*push"]}, ["git_log", "git.tag"]),
        ({"include": ["s__git_log"]}, []),
    ],
)
def test_patterns_are_over_whole_remote_names_and_exclude_wins(
    decided: dict[str, Any], offered: list[str]
) -> None:
    assert remotes(**decided) == offered
    assert seen(**decided).rejected == ()


def test_a_pattern_that_matches_nothing_is_told_and_no_fault() -> None:
    found = seen(include=["git_log", "svn_*"], exclude=["*_drop"])
    assert [one.remote for one in found.tools] == ["git_log"]
    assert found.idle == (
        "include 'svn_*' matches none of its tools",
        "exclude '*_drop' matches none of its tools",
    )
    assert seen(include=["*"], exclude=["*push"]).idle == ()


def test_a_renamed_tool_is_offered_under_the_prefix_and_called_by_its_own_name() -> None:
    found = seen(rename={"git_log": "history"})
    first = found.tools[0]
    assert (first.definition.name, first.remote) == ("s__history", "git_log")
    assert first.definition.meta["remote_name"] == "git_log"


def test_a_rename_of_a_tool_that_is_not_there_waits_for_it() -> None:
    found = seen(rename={"git_gone": "history"}, descriptions={"git_gone": "words"})
    assert found.tools[0].definition.name == "s__git_log"
    assert found.idle == (
        "rename 'git_gone' waits: it lists no such tool",
        "descriptions 'git_gone' waits: it lists no such tool",
    )
    later = seen([*LISTING, {"name": "git_gone"}], rename={"git_gone": "history"})
    assert later.tools[-1].definition.name == "s__history"
    assert later.idle == ()


def test_a_new_name_that_the_server_uses_itself_belongs_to_the_renamed_tool() -> None:
    for listing in (LISTING, LISTING[::-1]):
        found = seen(listing, rename={"git_log": "read"})
        by_name = {one.definition.name: one.remote for one in found.tools}
        assert by_name["s__read"] == "git_log"
        (left_out,) = found.rejected
        assert left_out.tool == "read"
        assert "'git_log' is renamed to its name: rename or exclude one" in left_out.reason
    assert seen(rename={"git_log": "read"}, exclude=["read"]).rejected == ()
    assert seen(rename={"git_log": "read"}, exclude=["git_log"]).rejected == ()


def test_two_tools_may_swap_their_names() -> None:
    found = seen(rename={"Read": "read", "read": "Read"})
    assert [(one.remote, one.definition.name) for one in found.tools][-2:] == [
        ("Read", "s__read"),
        ("read", "s__Read"),
    ]
    assert found.rejected == ()


def test_a_description_stands_instead_of_the_servers_title_and_all() -> None:
    listing = [{"name": "t", "description": "d", "annotations": {"title": "T"}}]
    assert seen(listing, descriptions={"t": "ours"}).tools[0].definition.description == "ours"
    assert seen(listing, descriptions={"t": ""}).tools[0].definition.description == ""
    assert seen(listing).tools[0].definition.description == "T: d"


@pytest.mark.parametrize(
    ("decided", "said"),
    [
        ({"include": "git_*"}, "include must be a list of texts, not one text"),
        ({"exclude": "git_*"}, "exclude must be a list of texts, not one text"),
        ({"include": [" "]}, "include holds a blank name or pattern"),
        ({"rename": {"": "x"}}, "rename holds a blank name"),
        ({"rename": {"a": " "}}, "rename 'a': the new name is blank"),
        ({"rename": {"a": "c", "b": "c"}}, "'a' and 'b' would both be 'c'"),
        ({"descriptions": {" ": "x"}}, "descriptions holds a blank name"),
    ],
)
def test_what_can_never_be_right_is_refused_when_it_is_declared(
    decided: dict[str, Any], said: str
) -> None:
    with pytest.raises(InvalidDefinition, match="tools: ") as caught:
        Overrides(**decided)
    assert said in str(caught.value)


def test_the_short_way_takes_them_flat() -> None:
    decided: dict[str, Any] = {
        "include": ["a*"],
        "exclude": ["ab"],
        "rename": {"a": "b"},
        "descriptions": {"a": "text"},
    }
    for one in (mcp.stdio("s", "x", **decided), mcp.http("s", "http://h", **decided)):
        assert one.servers[0].tools == Overrides(**decided)
    assert mcp.stdio("s", "x").servers[0].tools == Overrides()
    with pytest.raises(InvalidDefinition, match="not one text"):
        mcp.stdio("s", "x", include="a*")


def test_overrides_are_frozen() -> None:
    renamed = {"a": "b"}
    decided = Overrides(include=["a"], rename=renamed)
    renamed["c"] = "d"
    assert decided == Overrides(include=("a",), rename={"a": "b"})


NAME = st.text("ab._/ ü", min_size=1, max_size=4).filter(str.strip)


@given(
    st.lists(NAME, max_size=8),
    st.none() | st.lists(NAME | st.just("*"), max_size=2),
    st.lists(NAME | st.just("a*"), max_size=2),
    st.dictionaries(NAME, NAME, max_size=4),
)
def test_T_A20_exposed_names_stay_legal_and_unique_whatever_is_decided(
    listed: list[str], include: list[str] | None, exclude: list[str], rename: dict[str, str]
) -> None:
    unique = {new: old for old, new in rename.items()}
    decided = Overrides(include, exclude, {old: new for new, old in unique.items()})
    for order in (listed, listed[::-1]):
        found = mirror("s", "s__", [{"name": name} for name in order], overrides=decided)
        exposed = [one.definition.name for one in found.tools]
        assert len(set(exposed)) == len(exposed)
        offered = {one.remote for one in found.tools} | {one.tool for one in found.rejected}
        assert offered == {name for name in listed if decided.takes(name)}
        wanted = [one.remote for one in found.tools if one.remote in decided.rename]
        assert set(wanted) == {name for name in listed if name in decided.rename} & offered


async def test_a_real_servers_tools_are_called_by_their_new_names(
    caplog: pytest.LogCaptureFixture,
) -> None:
    more = json.dumps([{"name": "extra", "inputSchema": {"type": "object"}}])
    decided = Overrides(
        include=["echo", "pid", "gone"],
        exclude=["pid"],
        rename={"echo": "say"},
        descriptions={"echo": "Says it again."},
    )
    async with hosting(source(raw(tools=more, declared={"tools": decided}))) as host:
        assert host.names == ["raw__say"]
        assert host.tool("raw__say").definition.description == "Says it again."
        assert str(await host.call("raw__say", text="hello")) == "hello"
        assert host.health().tools == 1
    assert "'raw': include 'gone' matches none of its tools" in caplog.text
