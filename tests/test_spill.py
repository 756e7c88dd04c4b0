"""The whole text of a cut result, kept for its caller and read in pieces."""

from __future__ import annotations

import json
import logging
import os
import stat
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conftest import outcome
from toolcrib import Assembly, CallContext, InvalidDefinition, Principal, ToolCall, ToolError, tool
from toolcrib.definition import Format
from toolcrib.executor import Executor
from toolcrib.format import Truncation
from toolcrib.output import Delivery
from toolcrib.principal import LOCAL
from toolcrib.spill import MAX_READ, READ_TOOL, SpillStore, read_tool

TEXT = "".join(f"line {n} 漢\n" for n in range(3000))


@pytest.fixture
def store(tmp_path: Path) -> SpillStore:
    return SpillStore(tmp_path / "spill")


@tool(format=Format(1000, recovery_hint="Cut."))
def long() -> str:
    return TEXT


@tool
def short() -> str:
    return "short"


@tool(format=Format(1000))
def rows() -> list[int]:
    return list(range(5000))


@tool(format=Format(1000))
def fails() -> str:
    raise ToolError("no more", partial=TEXT)


def opened(store: SpillStore | None) -> Assembly:
    assembly = Assembly([long, short, rows, fails])
    assembly.executor.close()
    assembly.executor = Executor(assembly.registry, delivery=Delivery(spill=store))
    if store is not None:
        assembly.registry.add(read_tool(store), "toolcrib")
    return assembly


def id_of(result: Any) -> str:
    found = result.meta["truncation"]
    assert isinstance(found, Truncation)
    return found.result_id


def files(store: SpillStore) -> list[Path]:
    return sorted(store.directory.glob("*")) if store.directory.exists() else []


class Talk:
    def __init__(self, id: str) -> None:
        self.id = id


def context(principal: Principal = LOCAL, session: str = "") -> CallContext:
    return CallContext("t", "c", principal, Talk(session) if session else None)


async def read_all(session: Any, result_id: str, limit: int) -> str:
    text, offset, calls = "", 0, 0
    while True:
        piece = await session.call(READ_TOOL, id=result_id, offset=offset, limit=limit)
        assert not piece.is_error
        assert len(piece.text.encode()) <= limit + 100
        said, _, footer = piece.text.rpartition("\n")
        text, calls = text + said, calls + 1
        if footer.endswith("; the end]"):
            return text
        offset = int(footer.rpartition("next offset: ")[2].rstrip("]"))
        assert calls < 100


async def test_a_model_reads_on_where_a_result_was_cut(store: SpillStore) -> None:
    async with opened(store) as assembly:
        session = assembly.session()
        result = await session.call("long")
        result_id = id_of(result)
        assert f'\nCut.\nThe whole result: read_tool_result(id="{result_id}")\n' in result.text
        assert len(result.text.encode()) <= 1000
        assert await read_all(session, result_id, 9_999) == TEXT
        assert READ_TOOL in {d.name for d in session.turn().round().definitions}


async def test_the_whole_json_and_the_partial_result_of_an_error_are_kept(
    store: SpillStore,
) -> None:
    async with opened(store) as assembly:
        session = assembly.session()
        whole = await session.call("rows")
        assert id_of(whole) in json.loads(whole.text)[len(json.loads(whole.text)) // 2]
        assert json.loads(await read_all(session, id_of(whole), MAX_READ)) == list(range(5000))
        failed = await session.call("fails")
        assert failed.text.endswith("\nno more")
        assert await read_all(session, id_of(failed), MAX_READ) == f"{TEXT}\nno more"


async def test_nothing_is_written_while_nothing_is_cut_or_no_store_is_given(
    store: SpillStore,
) -> None:
    async with opened(store) as assembly:
        await assembly.call("short")
        assert not store.directory.exists()
    async with opened(None) as assembly:
        result = await assembly.call("long")
        assert id_of(result) == ""
        assert "read_tool_result" not in result.text
        assert outcome(await assembly.call(READ_TOOL, id="r")) == "not_found"


async def test_another_principal_or_conversation_is_told_there_is_nothing(
    store: SpillStore,
) -> None:
    ana, bob = Principal("ana", "t1"), Principal("bob", "t1")
    async with opened(store) as assembly:
        mine = assembly.session(principal=ana)
        result_id = id_of(await mine.call("long"))
        for other in (
            assembly.session(principal=bob),
            assembly.session(principal=bob, id=mine.id),
            assembly.session(principal=Principal("ana", "t2"), id=mine.id),
            assembly.session(principal=ana),
        ):
            answer = await other.call(READ_TOOL, id=result_id)
            unknown = await other.call(READ_TOOL, id="r" + "x" * 22)
            assert (outcome(answer), answer.text) == ("not_found", unknown.text)
        assert not (await mine.call(READ_TOOL, id=result_id)).is_error
        outside = id_of(await assembly.execute(ToolCall("c", "long"), principal=ana))
        assert not (await mine.call(READ_TOOL, id=outside)).is_error, "no conversation owns it"


def test_owners_cannot_be_confused_by_their_names(store: SpillStore) -> None:
    result_id = store.keep("secret", context(Principal('a","b'), "s"))
    assert result_id
    for other in (Principal("a"), Principal("b", "a"), Principal('a","b', "s")):
        assert store.read(result_id, context(other, "s")) is None
    assert store.read(result_id, context(Principal('a","b'), "s"))


@pytest.mark.parametrize("id", ["", "r", "../../etc/passwd", "r" + "x" * 22 + "\n", "r" + "/" * 22])
def test_an_id_that_is_none_reaches_no_file(store: SpillStore, id: str) -> None:
    store.keep("text", context())
    assert store.read(id, context()) is None


def test_CF10_files_are_private_from_their_first_moment(
    store: SpillStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    modes: list[int] = []
    real = os.open

    def watched(path: Any, flags: int, mode: int = 0o777, **rest: Any) -> int:
        made = real(path, flags, mode, **rest)
        if str(path).endswith(".txt"):
            modes.append(stat.S_IMODE(os.fstat(made).st_mode))
            assert flags & os.O_EXCL
        return made

    before = os.umask(0)
    try:
        monkeypatch.setattr(os, "open", watched)
        store.keep("text", context())
    finally:
        os.umask(before)
    assert modes == [0o600]
    assert stat.S_IMODE(store.directory.stat().st_mode) == 0o700


def test_a_directory_that_others_may_enter_is_refused(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    with pytest.raises(InvalidDefinition, match="700"):
        SpillStore(tmp_path)
    (tmp_path / "file").touch(0o600)
    with pytest.raises(InvalidDefinition, match="directory"):
        SpillStore(tmp_path / "file")
    with pytest.raises(InvalidDefinition, match="bounds"):
        SpillStore(tmp_path / "new", max_age=0)


def test_a_text_beyond_the_bound_is_kept_up_to_there(tmp_path: Path) -> None:
    store = SpillStore(tmp_path / "s", max_result_bytes=1001)
    result_id = store.keep("漢" * 10_000, context())
    assert result_id
    piece = store.read(result_id, context())
    assert piece
    assert piece.total_bytes <= 1001
    assert piece.text.endswith("漢\n[the kept text ends here: 30000 bytes were too many]")
    small = SpillStore(tmp_path / "t", max_result_bytes=3)
    assert small.keep("漢" * 10, context())
    assert sum(path.stat().st_size for path in files(small)) <= 3


def test_all_together_are_bounded_and_the_oldest_go_first(tmp_path: Path) -> None:
    store = SpillStore(tmp_path / "s", max_total_bytes=1000, max_result_bytes=400)
    ids = [store.keep(str(n) * 300, context()) for n in range(5)]
    for age, path in enumerate(sorted(files(store), key=lambda p: p.read_text()), 1):
        os.utime(path, (path.stat().st_atime, path.stat().st_mtime - 50 + age))
    ids.append(store.keep("5" * 300, context()))
    kept = [store.read(result_id or "", context()) is not None for result_id in ids]
    assert kept == [False, False, False, True, True, True]
    assert sum(path.stat().st_size for path in files(store)) <= 1000


def test_what_is_old_goes_and_what_is_not_ours_stays(store: SpillStore) -> None:
    result_id = store.keep("old", context())
    assert result_id
    (path,) = files(store)
    (store.directory / "notes.md").write_text("mine")
    for each in files(store):
        os.utime(each, (0, 0))
    assert store.read(result_id, context()) is None
    assert files(store) == [store.directory / "notes.md"]
    assert not path.exists()


async def test_a_store_that_cannot_write_costs_the_result_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    store = SpillStore(tmp_path / "spill")
    store.directory.write_text("a file is in the way")
    async with opened(store) as assembly:
        result = await assembly.call("long")
    assert result.text.startswith("line") or "line" in result.text
    assert id_of(result) == ""
    assert [r.levelno for r in caplog.records if r.name == "toolcrib.spill"] == [logging.ERROR]


@given(st.text(st.sampled_from("a漢😀é\n"), max_size=60), st.integers(4, 20))
def test_reading_on_gives_the_whole_text_in_whole_characters(text: str, limit: int) -> None:
    import tempfile

    with tempfile.TemporaryDirectory() as place:
        store = SpillStore(Path(place) / "s")
        result_id = store.keep(text, context())
        assert result_id
        found, offset = "", 0
        while offset is not None:
            piece = store.read(result_id, context(), offset, limit)
            assert piece
            found += piece.text
            assert len(piece.text.encode()) <= limit
            assert piece.next_offset is None or piece.next_offset > offset
            offset = piece.next_offset  # type: ignore[assignment]
        assert found == text
        size = len(text.encode())
        for start in (-5, 1, 2, size, size + 99):
            assert store.read(result_id, context(), start, limit)


async def test_the_reading_tool_bounds_what_it_is_asked(store: SpillStore) -> None:
    async with opened(store) as assembly:
        result_id = store.keep("x" * 200_000, context())
        assert outcome(await assembly.call(READ_TOOL, id=result_id, limit=10**9)) == (
            "invalid_arguments"
        )
        most = await assembly.call(READ_TOOL, id=result_id, limit=MAX_READ)
        assert len(most.text) <= MAX_READ + 100
        assert most.text.endswith("next offset: 40000]")
