"""Packs the JSON Schema Test Suite into the four files beside this one."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
OLD = ("draft3", "draft4", "draft6", "draft7", "draft-next")


def main(root: Path) -> None:
    tests, remotes = root / "tests" / "draft2020-12", root / "remotes"
    kinds: dict[str, list[str]] = {"required": [], "optional": [], "formats": []}
    for file in sorted(tests.rglob("*.json")):
        name = file.relative_to(tests).as_posix()
        deep = name.startswith("optional/format/")
        kind = "formats" if deep else "optional" if name.startswith("optional/") else "required"
        for case in json.loads(file.read_text("utf-8")):
            kinds[kind].append(json.dumps([name, case], separators=(",", ":")) + "\n")
    for kind, lines in kinds.items():
        (HERE / f"{kind}.jsonl").write_text("".join(lines))
    found: dict[str, Any] = {}
    for file in sorted(remotes.rglob("*.json")):
        name = file.relative_to(remotes).as_posix()
        if name.split("/")[0] not in OLD:
            found["http://localhost:1234/" + name] = json.loads(file.read_text("utf-8"))
    (HERE / "remotes.json").write_text(json.dumps(found, separators=(",", ":")) + "\n")
    (HERE / "LICENSE").write_text((root / "LICENSE").read_text())


if __name__ == "__main__":
    main(Path(sys.argv[1]))
