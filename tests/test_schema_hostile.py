"""Must show 2: hostile schemas and values (dependencies §1). None takes a second, none ends the
process, none reads a file or opens a socket. In a process of its own: a crash is a finding."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from conftest import floor

SCRIPT = Path(__file__).parent / "data" / "json_schema_suite" / "hostile.py"


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[float, list[str]]]:
    folder = tmp_path_factory.mktemp("hostile")
    fifo = folder / "fifo"
    os.mkfifo(fifo)  # whoever opens it to read waits for ever
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.setblocking(False)
        port = server.getsockname()[1]
        run = subprocess.run(
            [sys.executable, str(SCRIPT), str(port), str(fifo)],
            env={"PYTHONPATH": str(Path(__file__).parents[1] / "src")},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        lines = [json.loads(line) for line in run.stdout.splitlines()]
        assert run.returncode == 0, (run.returncode, lines[-1:], run.stderr[-2000:])
        with pytest.raises(BlockingIOError):
            server.accept()  # nobody came
    return {name: (seconds, told) for name, seconds, told in lines}


Report = dict[str, tuple[float, list[str]]]


def test_none_takes_longer_than_a_loop_of_thirty_million(report: Report) -> None:
    assert len(report) > 60
    bound = 30 * floor()
    assert {name: seconds for name, (seconds, _) in report.items() if seconds > bound} == {}


def test_references_and_dialects_outside_are_refused_unread(report: Report) -> None:
    for name, (_, told) in report.items():
        if name.startswith(("http", "file", "dynamic")):
            assert told[0].startswith("refused: not a usable JSON Schema"), name


def test_JS21_what_is_too_much_is_refused_with_its_reason(report: Report) -> None:
    reasons = {
        "fan-out 24": "multiply",
        "fan-out 60": "multiply",
        "chain of members": "multiply",
        "long chain of references": "chain",
        "schema 200 deep": "deeper than 100",
        "3,000 properties, 2 MB": "limit is 262144",
        "very many patterns": "patterns",
        "pattern properties": "patterns",
        "nested counts": "regex",
        "surrogate": "",
        "not JSON": "not JSON",
        "digits": "not JSON",
    }
    for name, reason in reasons.items():
        (told,) = report[name][1]
        assert told.startswith("refused") and reason in told, (name, told)


def test_values_that_are_too_much_do_not_fit_and_say_why(report: Report) -> None:
    reasons: dict[str, Any] = {
        "value 900 deep": "nested deeper than 256 levels",
        "value 12,000 deep": "nested deeper than 256 levels",
        "value 20,000 deep": "nested deeper than 256 levels",
        "value that holds itself": "nested deeper than 256 levels",
        "value of aliases": "too large to be checked",
        "many errors": "0: expected integer (got string)",
        "many errors of a union": "too large to say where",
        "doubling allOf": "fits",
    }
    for name, reason in reasons.items():
        assert reason in report[name][1][0], (name, report[name][1])


def test_what_a_pattern_takes_too_long_for_does_not_fit(report: Report) -> None:
    assert "match" in report["regex"][1][0]
    for name in ("look-around", "call: look-around"):
        told = report[name][1][-1]
        assert "takes too long" in told or told == "invalid_arguments", (name, told)
