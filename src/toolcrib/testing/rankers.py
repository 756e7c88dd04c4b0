"""The contract of a ranker (`ranking.ranker.Ranker`), played through."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator

from toolcrib.definition import ToolDefinition
from toolcrib.ranking.fields import Document, document_of
from toolcrib.ranking.ranker import DEFAULT_LIMIT, Ranker
from toolcrib.testing.findings import Findings

__all__ = ["check_ranker"]

PATIENCE = 10.0
"""Seconds for an update that must not wait for a search."""
_ROUNDS = 30
_UNSAID = ("", "   ", "!!!", "---")
_ODD = ("\ud800 \udfff", "x" * 20_000, '"', "source:", "+", "\x00")


def check_ranker(make: Callable[[], Ranker]) -> None:
    """Checks the rankers that `make()` gives, each call a new, empty one.

    Raises `AssertionError` with everything it found, if: what is put, replaced or dropped is not so
    in the next search; a limit is not kept, or one ≤ 0 is not the default of 8; `accept` is not
    asked in rank order, or twice for a key, or not obeyed; scores are not positive and falling;
    equal histories or equal questions give different answers; tools that the query names do not
    come first and marked `exact`; equal documents do not come by key; a query without words finds
    something, an odd one raises; an update waits for a search, or a search sees half of one.
    """
    found = Findings(make())
    for part in (
        _changes,
        _limits,
        _acceptance,
        _order,
        _names,
        _odd_queries,
        _update_in_search,
        _update_read_slowly,
        _whole_updates,
    ):
        try:
            part(found, make)
        except Exception as error:
            found.expect(False, f"{part.__name__.strip('_')}: it raised {error!r}")
    found.tell()


def _document(name: str, description: str, source: str = "") -> Document:
    return document_of(ToolDefinition(name, description), source)


def _many(count: int) -> list[Document]:
    return [_document(f"tool_{n:02}", "the same lantern") for n in range(count)]


def _names_of(ranker: Ranker, query: str, limit: int = DEFAULT_LIMIT) -> list[str]:
    return [hit.name for hit in ranker.search(query, limit)]


def _changes(found: Findings, make: Callable[[], Ranker]) -> None:
    ranker = make()
    found.expect(ranker.search("lantern") == [], "an empty one finds something")
    ranker.update([_document("first", "A lantern."), _document("second", "A bucket.")])
    found.expect(_names_of(ranker, "lantern") == ["first"], "what was put is not found next")
    ranker.update([_document("first", "A carpet.")])
    found.expect(_names_of(ranker, "lantern") == [], "what was replaced is still found")
    found.expect(_names_of(ranker, "carpet") == ["first"], "the replacement is not found")
    ranker.update(drop=["first", "never_there"])
    found.expect(_names_of(ranker, "carpet") == [], "what was dropped is still found")
    ranker.update([_document("second", "A ladder.")], drop=["second"])
    found.expect(_names_of(ranker, "ladder") == ["second"], "a drop undid the put of its update")


def _limits(found: Findings, make: Callable[[], Ranker]) -> None:
    ranker = make()
    ranker.update(_many(20))
    for limit, expected in ((0, DEFAULT_LIMIT), (-3, DEFAULT_LIMIT), (3, 3), (1_000_000, 20)):
        count = len(ranker.search("lantern", limit))
        found.expect(count == expected, f"limit {limit}: {count} hits, not {expected}")
    found.expect(
        ranker.search("lantern", 3) == ranker.search("lantern", 20)[:3],
        "a limited search is not the beginning of an unlimited one",
    )


def _acceptance(found: Findings, make: Callable[[], Ranker]) -> None:
    ranker = make()
    ranker.update(_many(40))
    everything = _names_of(ranker, "lantern", 40)
    asked: list[str] = []

    def accept(key: str) -> bool:
        asked.append(key)
        return int(key[-2:]) % 10 == 9

    hits = [hit.name for hit in ranker.search("lantern", 2, accept)]
    wanted = [name for name in everything if int(name[-2:]) % 10 == 9][:2]
    found.expect(hits == wanted, f"of what is accepted it finds {hits}, not {wanted}")
    found.expect(asked == everything[: len(asked)], "accept is not asked in rank order, once a key")
    refused = ranker.search("lantern tool_01", 5, lambda key: False)
    found.expect(refused == [], "it finds what is not accepted")


def _order(found: Findings, make: Callable[[], Ranker]) -> None:
    one, other = make(), make()
    documents = [*_many(12), _document("lamp", "A lantern, a lantern!"), _document("jug", "Water.")]
    one.update(documents)
    other.update(documents)
    hits = one.search("a lantern or water", 20)
    found.expect(one.search("a lantern or water", 20) == hits, "asked again it answers otherwise")
    found.expect(other.search("a lantern or water", 20) == hits, "equal histories differ")
    scores = [hit.score for hit in hits]
    found.expect(all(score > 0 for score in scores), "a score is not positive")
    found.expect(scores == sorted(scores, reverse=True), "scores do not fall")
    names = [hit.name for hit in hits]
    found.expect(len(names) == len(set(names)), "a tool is found twice")
    third = make()
    third.update(reversed(_many(6)))
    by_key = [f"tool_{n:02}" for n in range(6)]
    found.expect(_names_of(third, "lantern") == by_key, "equal documents do not come by key")


def _names(found: Findings, make: Callable[[], Ranker]) -> None:
    ranker = make()
    text = "trace path find symbol " * 5
    ranker.update(_document(f"path_trace_{n}", text) for n in range(20))
    ranker.update([_document("trace_path", "x"), _document("find_symbol", "x")])
    for query, wanted in (
        ("trace_path find_symbol", {"trace_path", "find_symbol"}),
        ("first call trace_path, please", {"trace_path"}),
        ("findSymbol", {"find_symbol"}),
        ("FIND_SYMBOL", {"find_symbol"}),
    ):
        hits = ranker.search(query)[: len(wanted)]
        named = {hit.name for hit in hits}
        found.expect(named == wanted, f"{query!r}: first come {sorted(named)}")
        found.expect(all(hit.exact for hit in hits), f"{query!r}: its hits are not marked exact")


def _odd_queries(found: Findings, make: Callable[[], Ranker]) -> None:
    ranker = make()
    ranker.update(_many(3))
    for query in _UNSAID:
        found.expect(ranker.search(query) == [], f"{query!r} finds something")
    for query in _ODD:
        ranker.search(query)


def _update_in_search(found: Findings, make: Callable[[], Ranker]) -> None:
    ranker = make()
    ranker.update(_many(1))
    waited: list[bool] = []

    def accept(key: str) -> bool:
        late = [_document("late", "A lantern.")]
        writer = threading.Thread(target=ranker.update, args=(late,), daemon=True)
        writer.start()
        writer.join(PATIENCE)
        waited.append(writer.is_alive())
        return True

    ranker.search("lantern", accept=accept)
    found.expect(waited == [False], "an update waits for a search, or accept was not asked once")
    found.expect("late" in _names_of(ranker, "lantern"), "what came during a search is lost")


def _update_read_slowly(found: Findings, make: Callable[[], Ranker]) -> None:
    ranker = make()
    seen: list[int] = []

    def slowly() -> Iterator[Document]:
        yield _document("near", "A lighthouse.")
        looker = threading.Thread(
            target=lambda: seen.append(len(ranker.search("lighthouse"))), daemon=True
        )
        looker.start()
        looker.join(PATIENCE)
        yield _document("far", "A lighthouse.")

    ranker.update(slowly())
    found.expect(set(seen) <= {0, 2}, "a search saw half of an update")


def _whole_updates(found: Findings, make: Callable[[], Ranker]) -> None:
    ranker = make()
    pair = [_document("near", "A lighthouse."), _document("far", "A lighthouse.")]
    counts: set[int] = set()
    failed: list[BaseException] = []
    done = threading.Event()

    def write() -> None:
        try:
            for _ in range(_ROUNDS):
                ranker.update(pair)
                ranker.update(drop=["near", "far"])
            ranker.update(pair)
        except Exception as error:
            failed.append(error)
        finally:
            done.set()

    writer = threading.Thread(target=write)
    writer.start()
    while not done.is_set():
        counts.add(len(ranker.search("lighthouse")))
    writer.join()
    found.expect(not failed, f"an update raised {failed}")
    found.expect(counts <= {0, 2}, "a search saw half of an update")
    found.expect(len(ranker.search("lighthouse")) == 2, "the last update is not seen")
