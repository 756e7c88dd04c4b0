"""Exposed names: legal for every provider, unique, stable, and the original kept (reports NM)."""

from __future__ import annotations

import logging
import random
import string
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conftest import outcome
from toolcrib import Assembly, Conflict, ToolDefinition
from toolcrib.names import MAX_NAME, exposed_name, exposed_names, is_exposed_name, namespace
from toolcrib.sources.mcp.catalogue.mirror import mirror
from toolcrib.sources.remote import mount

A: Any = {"type": "object", "properties": {"a": {"type": "string"}}}
B: Any = {"type": "object", "properties": {"b": {"type": "string"}}}


class Place:
    """A remote place that says what it was asked for."""

    def __init__(self, name: str, *tools: ToolDefinition) -> None:
        self.name = name
        self._tools = tools

    def tools(self) -> list[ToolDefinition]:
        return list(self._tools)

    async def call(self, name: str, arguments: Mapping[str, Any]) -> object:
        return f"{self.name}/{name}"


async def routed(*places: Any) -> dict[str, str]:
    """`{exposed name: what was called}` of everything that is mounted."""
    async with Assembly(list(places)) as tools:
        return {d.name: outcome(await tools.call(d.name, "{}")) for d in tools.catalog.definitions}


# NM01


LONG = "synchronize_all_customer_records_across_regions"
SERVER = "enterprise-database-management"


async def test_NM01_a_long_name_is_shortened_and_stays_apart_from_its_neighbour() -> None:
    near = LONG[:-1] + "z"
    found = await routed(mount(Place(SERVER, ToolDefinition(LONG), ToolDefinition(near))))
    assert sorted(found.values()) == sorted((f"{SERVER}/{LONG}", f"{SERVER}/{near}"))
    assert all(is_exposed_name(name) and len(name) <= MAX_NAME for name in found)


def test_NM01_a_shortened_name_is_the_same_in_every_run() -> None:
    assert exposed_name(namespace(SERVER), LONG) == (
        "enterprise-database-management__synchronize_all_custome_5bf10bf8"
    )


# NM03, NM05


ALIKE = ["build:dev", "build_dev", "build dev", "build.dev"]


async def test_NM03_names_that_look_alike_when_cleaned_are_all_there_and_routed() -> None:
    definitions = [ToolDefinition(name) for name in ALIKE]
    first = await routed(mount(Place("ci", *definitions)))
    assert sorted(first.values()) == sorted(f"ci/{name}" for name in ALIKE)
    assert await routed(mount(Place("ci", *reversed(definitions)))) == first


async def test_NM05_of_two_tools_of_one_name_the_first_counts_and_that_is_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    listing = (
        ToolDefinition("get-user", "", A),
        ToolDefinition("get-user", "", B),
        ToolDefinition("get.user", "", B),
    )
    async with Assembly([mount(Place("crm", *listing))]) as tools:
        by_original = {
            tools.catalog.get(d.name).tool.original: d  # type: ignore[union-attr]
            for d in tools.catalog.definitions
        }
    assert set(by_original) == {"get-user", "get.user"}
    assert list(by_original["get-user"].input_schema["properties"]) == ["a"]
    assert "'get-user' twice" in caplog.text


def test_NM05_a_server_that_lists_a_name_twice_is_taken_the_same_way() -> None:
    listing = [{"name": "get-user", "inputSchema": A}, {"name": "get-user", "inputSchema": B}]
    (only,) = mirror("crm", "crm__", [*listing]).tools
    assert list(only.definition.input_schema["properties"]) == ["a"]


# NM04, NM06, GW03


async def test_NM04_two_sources_may_offer_the_same_name() -> None:
    found = await routed(
        mount(Place("github", ToolDefinition("create_issue", "", A))),
        mount(Place("gitlab", ToolDefinition("create_issue", "", B))),
    )
    assert found == {
        "github__create_issue": "github/create_issue",
        "gitlab__create_issue": "gitlab/create_issue",
    }


async def test_NM04_without_a_namespace_it_is_a_conflict_that_names_both(
    caplog: pytest.LogCaptureFixture,
) -> None:
    places = [mount(Place(n, ToolDefinition("create_issue")), prefix="") for n in ("gh", "gl")]
    with caplog.at_level(logging.CRITICAL), pytest.raises(Conflict) as raised:
        await routed(*places)
    assert "create_issue" in str(raised.value)
    assert "gh" in str(raised.value) and "gl" in str(raised.value)


async def test_NM06_a_name_that_begins_like_the_namespace_is_prefixed_as_any_other() -> None:
    for prefix in ("git", "git_"):
        found = await routed(
            mount(
                Place("git", ToolDefinition("git_status"), ToolDefinition("status")), prefix=prefix
            )
        )
        assert sorted(found.values()) == ["git/git_status", "git/status"]


async def test_GW03_names_that_differ_in_case_only_are_two_names() -> None:
    found = await routed(
        mount(Place("a", ToolDefinition("search")), prefix=""),
        mount(Place("b", ToolDefinition("Search")), prefix=""),
    )
    assert found == {"search": "a/search", "Search": "b/Search"}


# whatever is listed


letters = st.text(st.sampled_from("aB_-.:/ ä世" + string.digits), min_size=1, max_size=80)
any_name = st.one_of(letters, st.text(min_size=1, max_size=70))
listings = st.lists(any_name, max_size=12)


@given(st.sampled_from(["", "fs__", "x" * 60 + "__", "ä__"]), listings, st.randoms())
def test_exposed_names_are_legal_unique_and_independent_of_order(
    prefix: str, originals: list[str], rng: random.Random
) -> None:
    names = exposed_names(prefix, originals)
    assert list(names) == list(dict.fromkeys(originals))
    assert all(is_exposed_name(name) for name in names.values())
    assert len(set(names.values())) == len(names)
    for name, exposed in names.items():
        if is_exposed_name(prefix + name):
            assert exposed == prefix + name
    shuffled = [*originals, *originals[:3]]
    rng.shuffle(shuffled)
    assert exposed_names(prefix, shuffled) == names


@given(st.sampled_from(["", "fs__"]), listings, any_name)
def test_a_name_does_not_change_when_others_come_or_go(
    prefix: str, originals: list[str], more: str
) -> None:
    names = exposed_names(prefix, originals)
    assert {
        n: e for n, e in exposed_names(prefix, [more, *originals]).items() if n in names
    } == names
    assert all(names[name] == exposed_name(prefix, name) for name in names)


def test_a_name_made_to_look_like_anothers_hash_takes_nothing_from_it() -> None:
    copied = exposed_name("", "build:dev")
    for listing in (["build:dev", copied], [copied, "build:dev"]):
        names = exposed_names("", listing)
        assert names[copied] == copied
        assert names["build:dev"].startswith("build_dev_")
        assert len(set(names.values())) == 2


def test_NM03_two_originals_of_one_hash_are_told_apart_in_any_order() -> None:
    one, two = "a\u4e10\u4fad", "a\u4e78\u4f41"
    assert exposed_name("", one) == exposed_name("", two)
    names = exposed_names("", [one, two])
    assert exposed_names("", [two, one]) == names
    assert len(set(names.values())) == 2
