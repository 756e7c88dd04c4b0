"""The cache of vectors on disk: bounds, several processes, and whatever may happen to a file."""

from __future__ import annotations

import logging
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from toolcrib.dense.vectors import VectorCache, mark_of
from toolcrib.errors import InvalidDefinition

WARNINGS = "toolcrib.dense.vectors"
OPEN: list[VectorCache] = []


@pytest.fixture(autouse=True)
def every_cache_closed() -> Iterator[None]:
    yield
    while OPEN:
        OPEN.pop().close()


def opened(path: Path, **options: int) -> VectorCache:
    OPEN.append(VectorCache(path, **options))
    return OPEN[-1]


def vector(seed: int, dimensions: int = 8) -> Any:
    made = np.random.default_rng(seed).standard_normal(dimensions).astype(np.float32)
    return made / np.linalg.norm(made)


def marks(count: int) -> list[bytes]:
    return [mark_of("toy", str(number)) for number in range(count)]


def filled(path: Path, count: int = 3) -> VectorCache:
    cache = opened(path)
    cache.put({mark: vector(number) for number, mark in enumerate(marks(count))})
    return cache


def test_what_was_put_is_found_by_the_next_process_to_three_digits(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "er" / "vectors.db"
    filled(path).close()
    found = opened(path).get([*marks(3), mark_of("toy", "unknown")])
    assert found.keys() == set(marks(3))
    for number, mark in enumerate(marks(3)):
        assert found[mark].dtype == np.float32
        assert found[mark] == pytest.approx(vector(number), abs=1e-3)


def test_more_marks_than_one_statement_takes_are_found(tmp_path: Path) -> None:
    assert filled(tmp_path / "v", 1_700).get(marks(1_800)).keys() == set(marks(1_700))


def test_encoders_are_kept_apart() -> None:
    assert mark_of("one", "text") != mark_of("two", "text") != mark_of("two", "txt")
    assert len(mark_of("lone surrogate", "\ud800")) == 32


def test_the_longest_unused_are_dropped_first(tmp_path: Path) -> None:
    cache = opened(tmp_path / "v", most=4)
    all_marks = marks(6)
    for number, mark in enumerate(all_marks[:4]):
        cache.put({mark: vector(number)})
    cache.get([all_marks[0]])
    cache.put({mark: vector(9) for mark in all_marks[4:]})
    assert cache.get(all_marks).keys() == {all_marks[n] for n in (0, 3, 4, 5)}


def test_a_cache_that_keeps_nothing_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidDefinition):
        VectorCache(tmp_path / "v", most=0)


@pytest.mark.parametrize("content", [b"this was never a database" * 99, b"SQLite format 3\0" * 400])
def test_a_broken_file_is_set_aside_with_a_warning_and_begun_anew(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, content: bytes
) -> None:
    path = tmp_path / "vectors.db"
    path.write_bytes(content)
    with caplog.at_level(logging.WARNING, WARNINGS):
        cache = filled(path)
    assert "set aside" in caplog.text
    assert cache.get(marks(3)).keys() == set(marks(3))
    assert Path(f"{path}.broken").read_bytes() == content


def test_a_file_that_breaks_while_it_is_open_costs_vectors_only(tmp_path: Path) -> None:
    path = tmp_path / "vectors.db"
    filled(path, 900).close()
    whole = path.read_bytes()
    path.write_bytes(whole[:4096] + b"\xff" * (len(whole) - 4096))
    cache = opened(path)
    assert cache.get(marks(900)) == {}
    cache.put({marks(1)[0]: vector(0)})
    assert len(cache.get(marks(1))) == 1


def test_a_vector_that_rotted_is_not_used(tmp_path: Path) -> None:
    path = tmp_path / "vectors.db"
    filled(path).close()
    with sqlite3.connect(path) as raw:
        raw.execute("UPDATE vectors SET vector = ? WHERE mark = ?", (b"\0" * 20, marks(1)[0]))
    raw.close()
    assert opened(path).get(marks(3)).keys() == set(marks(3)[1:])


def test_a_place_that_cannot_be_used_warns_once_and_keeps_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").write_text("not a folder")
    with caplog.at_level(logging.WARNING, WARNINGS):
        cache = filled(tmp_path / "file" / "vectors.db")
        assert cache.get(marks(3)) == {}
    assert len(caplog.records) == 1


def test_a_closed_cache_finds_and_keeps_nothing(tmp_path: Path) -> None:
    cache = filled(tmp_path / "v")
    cache.close()
    cache.close()
    assert cache.get(marks(3)) == {}
    cache.put({marks(1)[0]: vector(0)})


WRITER = """
import sys
from collections.abc import Iterator
from pathlib import Path
import numpy as np
from toolcrib.dense.vectors import VectorCache, mark_of
cache = VectorCache(Path(sys.argv[1]))
first, last = int(sys.argv[2]), int(sys.argv[3])
for number in range(first, last):
    row = np.full(8, number, np.float32)
    cache.put({mark_of("toy", f"{number}/{each}"): row for each in range(20)})
    print(number, flush=True)
"""


def writer(path: Path, first: int, last: int) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", WRITER, str(path), str(first), str(last)],
        stdout=subprocess.PIPE,
        text=True,
    )


def test_processes_that_write_at_once_lose_nothing(tmp_path: Path) -> None:
    path = tmp_path / "vectors.db"
    writers = [writer(path, first, first + 15) for first in (0, 100, 200)]
    for each in writers:
        each.communicate(timeout=60)
        assert each.returncode == 0
    wanted = [
        mark_of("toy", f"{number}/{each}")
        for first in (0, 100, 200)
        for number in range(first, first + 15)
        for each in range(20)
    ]
    assert len(opened(path).get(wanted)) == len(wanted)


def test_a_process_killed_while_writing_leaves_what_it_had_put(tmp_path: Path) -> None:
    path = tmp_path / "vectors.db"
    victim = writer(path, 0, 1_000_000)
    assert victim.stdout is not None
    for _ in range(5):
        last = int(victim.stdout.readline())
    victim.send_signal(signal.SIGKILL)
    victim.communicate(timeout=60)
    cache = opened(path)
    for number in range(last + 1):
        found = cache.get(mark_of("toy", f"{number}/{each}") for each in range(20))
        assert len(found) == 20
        assert all((row == number).all() for row in found.values())
    cache.put({marks(1)[0]: vector(0)})
    assert len(cache.get(marks(1))) == 1
