"""Finding by words and by meaning: what a host and a model see of it, while documents are encoded,
change and go, and while the encoder fails."""

from __future__ import annotations

import asyncio
import logging
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from toolcrib import Assembly, Dynamic, ToolCall, tool
from toolcrib.dense.hybrid import Hybrid, Retry
from toolcrib.dense.vectors import VectorCache
from toolcrib.errors import InvalidDefinition
from toolcrib.ranking.fields import Document
from toolcrib.ranking.index import Index
from toolcrib.ranking.learned import Learned
from toolcrib.ranking.ranker import Ranker

SOON = Retry(0.001, 0.002)
PATIENCE = 20.0
MEANINGS = [
    ("picture", "photo", "image", "snapshot"),
    ("mail", "letter", "message"),
    ("delete", "erase", "remove"),
    ("weather", "forecast", "rain"),
]


class Toy:
    """An encoder that knows a few words' meanings. `before` runs ahead of each batch."""

    name = "toy"
    dimensions = len(MEANINGS) + 1

    def __init__(self, before: Callable[[Sequence[str]], object] = lambda texts: None) -> None:
        self.before = before
        self.documented: list[str] = []
        self.asked: list[tuple[str, threading.Thread]] = []

    def documents(self, texts: Sequence[str]) -> Any:
        self.before(texts)
        self.documented += texts
        return self._vectors(texts)

    def queries(self, texts: Sequence[str]) -> Any:
        self.asked += [(text, threading.current_thread()) for text in texts]
        return self._vectors(texts)

    def _vectors(self, texts: Sequence[str]) -> Any:
        rows = np.full((len(texts), self.dimensions), 0.1, np.float32)
        for row, text in zip(rows, texts, strict=True):
            for axis, words in enumerate(MEANINGS):
                row[axis] += sum(word in text.lower() for word in words)
        return rows / np.linalg.norm(rows, axis=1, keepdims=True)


class Mute(Toy):
    """One whose queries fail."""

    def queries(self, texts: Sequence[str]) -> Any:
        super().queries(texts)
        raise ConnectionError("no answer")


class Gate:
    """Holds an encoder up: it says when it has come, and waits until it may go."""

    def __init__(self) -> None:
        self.come = threading.Event()
        self.go = threading.Event()

    def __call__(self, texts: Sequence[str]) -> None:
        self.come.set()
        assert self.go.wait(PATIENCE)


def document(name: str, description: str = "") -> Document:
    return Document(name, name, name, description=description)


TOOLS = [
    document("take_snapshot", "Keeps what is in view."),
    document("erase_letter", "Throws a letter away."),
    document("rain", "Says whether to take an umbrella."),
    document("law_book", "What the law says."),
]


@pytest.fixture
def made() -> Iterable[Callable[..., Hybrid]]:
    """Makes hybrids over an `Index`; closes them at the end."""
    hybrids: list[Hybrid] = []

    def make(documents: Iterable[Document] = (), encoder: Any = None, **options: Any) -> Hybrid:
        hybrids.append(Hybrid(Index(), encoder or Toy(), retry=SOON, **options))
        hybrids[-1].update(documents)
        return hybrids[-1]

    yield make
    for hybrid in hybrids:
        hybrid.close()


Make = Callable[..., Hybrid]


def encoded(hybrid: Hybrid) -> Hybrid:
    assert hybrid.wait_encoded(PATIENCE)
    return hybrid


def names(hybrid: Ranker, query: str, limit: int = 8) -> list[str]:
    return [hit.name for hit in hybrid.search(query, limit)]


# what is found


def test_a_tool_is_found_by_its_meaning_without_one_common_word(made: Make) -> None:
    hybrid = encoded(made(TOOLS))
    assert names(hybrid, "image")[0] == "take_snapshot"
    assert names(hybrid, "remove messages")[0] == "erase_letter"
    assert isinstance(hybrid, Ranker)


def test_words_and_meaning_count_both(made: Make) -> None:
    tools = [
        document("send_photo", "Send a photo to a printer."),
        document("send_ink", "Send ink to a printer."),
        document("album", "An image of many images."),
    ]
    assert names(encoded(made(tools)), "printer for pictures")[0] == "send_photo"


def test_a_tool_that_the_query_names_comes_first_though_others_are_nearer(made: Make) -> None:
    hybrid = encoded(made([*TOOLS, document("photo_image_picture", "Photos and pictures.")]))
    hits = hybrid.search("law_book for a photo image picture snapshot")
    assert hits[0].name == "law_book"
    assert [hit.exact for hit in hits] == [True] + [False] * (len(hits) - 1)


def test_a_weight_of_nothing_is_the_lexical_ranking(made: Make) -> None:
    index = Index()
    index.update(TOOLS)
    hybrid = encoded(made(TOOLS, weight=0))
    query = "what the law says of a letter in view"
    assert names(hybrid, query, 3) == names(index, query, 3)


def test_a_blank_query_finds_nothing(made: Make) -> None:
    assert encoded(made(TOOLS)).search(" \n") == []


@pytest.mark.parametrize("weight", [-0.1, 1.1])
def test_a_weight_is_a_share(weight: float) -> None:
    with pytest.raises(InvalidDefinition):
        Hybrid(Index(), Toy(), weight=weight)


def test_accept_is_asked_in_rank_order_once_a_key_and_no_longer_than_needed(made: Make) -> None:
    hybrid = encoded(made(document(f"photo_{n:04}", "the same text") for n in range(1_000)))
    asked: list[str] = []

    def accept(name: str) -> bool:
        asked.append(name)
        return int(name[-4:]) % 250 == 249

    found = [hit.name for hit in hybrid.search("the same snapshot", 3, accept)]
    assert found == ["photo_0249", "photo_0499", "photo_0749"]
    assert asked == [f"photo_{n:04}" for n in range(750)]


def test_a_limited_search_is_the_beginning_of_an_unlimited_one(made: Make) -> None:
    texts = [" ".join(words[n % len(words)] for words in MEANINGS[: n % 5]) for n in range(700)]
    hybrid = encoded(made(document(f"x{n:03}", f"{text} {n % 7}") for n, text in enumerate(texts)))
    for query in ("erase a photo 3", "letter", "forecast image mail 5"):
        everything = hybrid.search(query, 10_000)
        assert len({hit.name for hit in everything}) == len(everything)
        for limit in (1, 8, 150):
            assert hybrid.search(query, limit) == everything[:limit]


# while documents are being encoded


def test_what_operators_rule_out_is_not_found_by_meaning_either(made: Make) -> None:
    hybrid = made([*TOOLS, Document("photo_album", "photo_album", "photo_album", source="home")])
    assert hybrid.wait_encoded(PATIENCE)
    assert names(hybrid, "source:home picture") == ["photo_album"]
    assert names(hybrid, "+letter message") == ["erase_letter"]
    assert names(hybrid, "source:home") == ["photo_album"]
    assert names(hybrid, "source:nowhere picture") == []


def test_operators_are_not_encoded(made: Make) -> None:
    encoder = Toy()
    hybrid = made(TOOLS, encoder)
    hybrid.search("source:mail picture")
    hybrid.search("source:mail")
    assert [text.strip() for text, _ in encoder.asked] == ["picture"]


def test_a_misspelled_word_is_told_with_the_hits_that_hold_the_right_one(made: Make) -> None:
    hybrid = made([*TOOLS, document("secret", "About umbrallas.")])
    assert hybrid.wait_encoded(PATIENCE)
    assert hybrid.searched("umbrela").corrected == {"umbrela": "umbrella"}
    assert hybrid.searched("umbrela", 8, "law_book".__eq__).corrected == {}
    assert hybrid.searched("umbrella").corrected == {}
    assert list(hybrid.searched("umbrela", 2).hits) == hybrid.search("umbrela", 2)


def test_the_lexical_side_learns_and_explains_its_share() -> None:
    index = Index(learned=Learned())
    with closing(Hybrid(index, Toy())) as hybrid:
        hybrid.update(TOOLS)
        hybrid.note("parasol", "rain")
        assert index.learned is not None and index.learned.of("parasol").keys() == {"rain"}
        told = hybrid.explain("parasol umbrella", "rain")
        assert told is not None and told.partial
        assert {word.origin for word in told.words} == {"word", "learned"}
        assert told.total == pytest.approx(index.search("parasol umbrella")[0].score)
        assert hybrid.explain("umbrella", "unknown") is None


def test_until_its_vector_is_there_a_document_is_found_by_its_words(made: Make) -> None:
    gate = Gate()
    hybrid = made(TOOLS, Toy(gate))
    assert not hybrid.ready
    assert not hybrid.wait_encoded(0)
    assert names(hybrid, "umbrella") == ["rain"]
    assert names(hybrid, "image") == []
    gate.go.set()
    assert names(encoded(hybrid), "image")[0] == "take_snapshot"
    assert hybrid.ready


def test_a_newcomer_takes_part_by_its_words_among_those_encoded(made: Make) -> None:
    gate = Gate()
    toy = Toy()
    hybrid = encoded(made(TOOLS, toy))
    toy.before = gate
    hybrid.update([document("umbrella_stand", "An umbrella and an umbrella.")])
    assert gate.come.wait(PATIENCE)
    assert names(hybrid, "umbrella")[0] == "umbrella_stand"
    gate.go.set()


def test_updating_never_waits_for_the_encoder_or_a_search(made: Make) -> None:
    gate = Gate()
    hybrid = made(TOOLS, Toy(gate))
    assert gate.come.wait(PATIENCE)

    def accept(name: str) -> bool:
        writer = threading.Thread(target=hybrid.update, args=([document("late", "umbrella")],))
        writer.start()
        writer.join(PATIENCE)
        return not writer.is_alive()

    assert [hit.name for hit in hybrid.search("umbrella", accept=accept)] == ["rain"]
    assert sorted(names(hybrid, "umbrella")) == ["late", "rain"]
    gate.go.set()


def test_what_is_dropped_while_it_is_encoded_stays_gone(made: Make) -> None:
    gate = Gate()
    hybrid = made(TOOLS, Toy(gate))
    assert gate.come.wait(PATIENCE)
    hybrid.update(drop=["take_snapshot", "never_there"])
    gate.go.set()
    assert "take_snapshot" not in names(encoded(hybrid), "image")


def test_what_came_was_encoded_and_went_between_two_searches_leaves_nothing(made: Make) -> None:
    hybrid = encoded(made([document("passing", "photo")]))
    hybrid.update(drop=["passing"])
    assert names(hybrid, "image") == []


def test_what_changes_while_it_is_encoded_is_found_as_it_is_now(made: Make) -> None:
    gate = Gate()
    hybrid = made([document("it", "photo")], Toy(gate))
    assert gate.come.wait(PATIENCE)
    hybrid.update([document("it", "rain")])
    gate.go.set()
    encoded(hybrid)
    hybrid.update([document("album", "image")])
    assert names(encoded(hybrid), "weather")[0] == "it"
    assert names(hybrid, "snapshot")[0] == "album"


def test_a_document_that_says_the_same_is_not_encoded_again(made: Make) -> None:
    toy = Toy()
    hybrid = encoded(made(TOOLS, toy))
    hybrid.update(TOOLS)
    hybrid.update(TOOLS, drop=[each.key for each in TOOLS])
    assert hybrid.ready
    assert len(toy.documented) == len(TOOLS)
    assert names(hybrid, "image")[0] == "take_snapshot"


WORDS = [words[n] for words in MEANINGS for n in (0, 1)] + ["the", "file"]
TEXTS = st.lists(st.sampled_from(WORDS), max_size=5).map(" ".join)
STEPS = st.lists(st.tuples(st.integers(0, 9), st.one_of(st.none(), TEXTS)), max_size=30)


@settings(max_examples=60, deadline=None)
@given(STEPS, TEXTS, st.data())
def test_any_history_finds_what_a_fresh_hybrid_finds(
    steps: list[tuple[int, str | None]], query: str, data: st.DataObject
) -> None:
    kept: dict[str, Document] = {}
    with closing(Hybrid(Index(), Toy())) as grown, closing(Hybrid(Index(), Toy())) as fresh:
        for number, text in steps:
            key = f"tool_{number}"
            if text is None:
                grown.update(drop=[key])
                kept.pop(key, None)
            else:
                kept[key] = document(key, text)
                grown.update([kept[key]])
            match data.draw(st.sampled_from(["go on", "search", "encode"])):
                case "search":
                    grown.search(query)
                case "encode":
                    encoded(grown)
                case _:
                    pass
        fresh.update(kept.values())
        found, expected = (
            {hit.name: hit.score for hit in encoded(each).search(query)} for each in (grown, fresh)
        )
    assert found.keys() == expected.keys()
    # the lexical side's average lengths differ by its documented drift
    assert all(score == pytest.approx(expected[name], rel=0.08) for name, score in found.items())


def test_no_search_sees_half_an_update_while_threads_write(made: Make) -> None:
    hybrid = encoded(made(TOOLS))
    start = threading.Barrier(4)
    written = threading.Event()
    torn: list[list[str]] = []

    def write(word: str) -> None:
        pair = [document(f"{side}_{word}", f"moon {word}") for side in ("near", "far")]
        start.wait()
        for _ in range(40):
            hybrid.update(pair)
            hybrid.update(drop=[each.key for each in pair])

    def look() -> None:
        start.wait()
        while not written.is_set():
            for word in ("photo", "erase"):
                found = [name for name in names(hybrid, "moon", 20) if name.endswith(f"_{word}")]
                if len(found) not in (0, 2):
                    torn.append(found)

    writers = [threading.Thread(target=write, args=(word,)) for word in ("photo", "erase")]
    lookers = [threading.Thread(target=look) for _ in range(2)]
    for thread in (*writers, *lookers):
        thread.start()
    for thread in writers:
        thread.join()
    written.set()
    for thread in lookers:
        thread.join()
    assert torn == []


# queries


def test_a_query_is_encoded_once_and_forgotten_after_many_others(made: Make) -> None:
    toy = Toy()
    hybrid = encoded(made(TOOLS, toy))
    for query in ["image", "image", *map(str, range(256)), "image"]:
        hybrid.search(query)
    assert [text for text, _ in toy.asked].count("image") == 2


async def test_a_prepared_query_was_encoded_off_the_loop(made: Make) -> None:
    toy = Toy()
    hybrid = made(TOOLS, toy)
    await asyncio.to_thread(encoded, hybrid)
    await hybrid.prepare("image")
    await hybrid.prepare("image")
    await hybrid.prepare("  ")
    assert names(hybrid, "image")[0] == "take_snapshot"
    ((text, thread),) = toy.asked
    assert text == "image" and thread is not threading.current_thread()


async def test_a_query_that_cannot_be_encoded_is_answered_by_words(
    made: Make, caplog: pytest.LogCaptureFixture
) -> None:
    mute = Mute()
    hybrid = Hybrid(Index(), mute, retry=Retry(3_600, 3_600))
    hybrid.update(TOOLS)
    await asyncio.to_thread(encoded, hybrid)
    with caplog.at_level(logging.WARNING):
        await hybrid.prepare("umbrella")
        assert names(hybrid, "umbrella") == ["rain"]
        assert names(hybrid, "letter") == ["erase_letter"]
    hybrid.close()
    assert len(mute.asked) == 1  # it is left alone for a while
    assert caplog.text.count("no answer") == 1


# an encoder that fails


def test_a_failing_encoder_is_logged_once_and_tried_until_it_works(
    made: Make, caplog: pytest.LogCaptureFixture
) -> None:
    left = iter(range(5))
    failed_often = threading.Event()
    may_work = threading.Event()

    def fail(texts: Sequence[str]) -> None:
        if next(left, None) is None:
            failed_often.set()
        if not may_work.is_set():
            raise ConnectionError("the model is away")

    with caplog.at_level(logging.WARNING):
        hybrid = made(TOOLS, Toy(fail))
        assert failed_often.wait(PATIENCE)
        assert names(hybrid, "umbrella") == ["rain"]
        may_work.set()
        assert names(encoded(hybrid), "image")[0] == "take_snapshot"
    assert caplog.text.count("the model is away") == 1


def test_one_text_that_cannot_be_encoded_holds_up_no_other(made: Make) -> None:
    done: set[str] = set()
    all_done = threading.Event()

    def fail(texts: Sequence[str]) -> None:
        if any("poison" in text for text in texts):
            raise ValueError("cannot read that")
        done.update(texts)
        if len(done) == 100:
            all_done.set()

    tools = [document(f"photo_{n}") for n in range(100)]
    hybrid = made([document("poison"), *tools], Toy(fail))
    assert all_done.wait(PATIENCE)
    assert not hybrid.ready
    hybrid.update(drop=["poison"])
    assert len(names(encoded(hybrid), "image", 200)) == 100


@pytest.mark.parametrize(
    "rows",
    [np.zeros((1, 3)), np.zeros((9, 5)), np.full((1, 5), np.nan), np.full((1, 5), np.inf)],
)
def test_vectors_that_cannot_be_are_a_failure(
    made: Make, caplog: pytest.LogCaptureFixture, rows: Any
) -> None:
    class Odd(Toy):
        wrong = True
        tried = threading.Event()

        def _vectors(self, texts: Sequence[str]) -> Any:
            if self.wrong:
                self.tried.set()
                return rows
            return super()._vectors(texts)

    odd = Odd()
    with caplog.at_level(logging.WARNING):
        hybrid = made(TOOLS[:1], odd)
        assert odd.tried.wait(PATIENCE)
        odd.wrong = False
        assert names(encoded(hybrid), "image") == ["take_snapshot"]
    assert "vector" in caplog.text


# lifetime


def test_closing_ends_the_thread_and_leaves_the_search(made: Make) -> None:
    before = set(threading.enumerate())
    hybrid = encoded(made(TOOLS))
    assert set(threading.enumerate()) != before
    hybrid.close()
    hybrid.close()
    assert set(threading.enumerate()) <= before
    hybrid.update([document("late", "umbrella")])
    assert not hybrid.ready
    assert names(hybrid, "image")[0] == "take_snapshot"
    assert "late" in names(hybrid, "umbrella")


def test_closing_does_not_wait_for_a_retry_or_leave_waiters_behind(made: Make) -> None:
    failed = threading.Event()

    def fail(texts: Sequence[str]) -> None:
        failed.set()
        raise ConnectionError

    hybrid = Hybrid(Index(), Toy(fail), retry=Retry(3_600, 3_600))
    hybrid.update(TOOLS)
    assert failed.wait(PATIENCE)
    answers: list[bool] = []
    waiter = threading.Thread(target=lambda: answers.append(hybrid.wait_encoded()))
    waiter.start()
    hybrid.close()
    waiter.join(PATIENCE)
    assert answers == [False]


@pytest.mark.parametrize(("first", "longest"), [(0, 1), (2, 1), (-1, 1)])
def test_a_retry_waits_ever_longer(first: float, longest: float) -> None:
    assert [Retry(1, 5).after(failures) for failures in (1, 2, 3, 4, 999)] == [1, 2, 4, 5, 5]
    with pytest.raises(InvalidDefinition):
        Retry(first, longest)


@pytest.fixture
def cache(tmp_path: Path) -> Iterable[VectorCache]:
    with closing(VectorCache(tmp_path / "vectors.db")) as cache:
        yield cache


def test_with_a_cache_the_next_start_encodes_nothing(made: Make, cache: VectorCache) -> None:
    toy = Toy()
    encoded(made(TOOLS, cache=cache))
    hybrid = encoded(made(TOOLS, toy, cache=cache))
    assert toy.documented == []
    assert names(hybrid, "image")[0] == "take_snapshot"


def test_vectors_of_another_width_in_the_cache_are_made_anew(
    made: Make, cache: VectorCache
) -> None:
    class Wide(Toy):
        dimensions = Toy.dimensions + 3

    encoded(made(TOOLS, cache=cache))
    wide = Wide()
    encoded(made(TOOLS, wide, cache=cache))
    assert len(wide.documented) == len(TOOLS)


async def test_a_model_finds_a_tool_by_its_meaning_through_tool_search(made: Make) -> None:
    @tool
    def take_snapshot() -> str:
        """Keeps what is in view."""
        return "click"

    hybrid = made()
    async with Assembly([take_snapshot], dynamic=Dynamic(ranker=lambda: hybrid)) as assembly:
        session = assembly.session()
        assert assembly.ranker is hybrid
        await asyncio.to_thread(encoded, hybrid)
        result = await session.execute(ToolCall("1", "tool_search", '{"query": "an image"}'))
    assert result.value.exposed == ("take_snapshot",)


def test_the_package_is_imported_without_numpy() -> None:
    code = "import sys, toolcrib, toolcrib.ranking.index; print('numpy' in sys.modules)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "False"


def test_without_numpy_the_error_says_what_to_install() -> None:
    code = (
        "import sys; sys.modules['numpy'] = None\n"
        "try: import toolcrib.dense.hybrid\n"
        "except ImportError as error: print(error)\n"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "numpy is not installed: pip install 'toolcrib[dense]'"
