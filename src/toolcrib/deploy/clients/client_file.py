"""A client's file, read: which client's it is, its servers, its inputs.

What makes the whole file unreadable is a `ConfigurationError`; everything else is the fault of one
server. Reads that one file and nothing else.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from toolcrib.deploy.clients.dialect import Dialect
from toolcrib.deploy.clients.jsonc import Entry, JsoncFault, Value, parse
from toolcrib.deploy.clients.server import Declared, LeftOut, declared
from toolcrib.deploy.paths import joined
from toolcrib.deploy.places import Place
from toolcrib.errors import ConfigurationError, Problem

__all__ = ["ClientFile", "Input", "read_client_file", "text_of"]

MAX_BYTES = 4 * 1024 * 1024
"""Claude Code keeps whole histories in ~/.claude.json, next to the servers."""
_FOLDERS: dict[str, Dialect] = {".vscode": "vscode", ".cursor": "cursor"}
_KEYS = ("mcpServers", "servers")
_HOMES = ((), ("mcp",), ("settings", "mcp"))
"""Where these keys stand: in a file of their own, in VS Code's settings.json, in a workspace's."""
_ELSEWHERE = {
    "projects": "; what single projects have (projects.*.mcpServers) is not read",
    "context_servers": "; the files of Zed (context_servers) are not read",
}
_BARE = '; put {"mcpServers": …} around the servers'
_EDITORS_SIGNS = ("${env:", "${workspaceFolder", "${userHome}")
_OTHERS = {"$schema", "inputs"}


@dataclass(frozen=True, slots=True)
class Input:
    """What VS Code would ask a person for. Only an input that is no password has a default."""

    id: str
    description: str = ""
    default: str | None = None


@dataclass(frozen=True, slots=True)
class ClientFile:
    """A file of a client. `folder` is what relative paths are relative to, and where servers run:
    the file's directory, for a file in `.vscode` or `.cursor` the one that holds it."""

    file: str
    dialect: Dialect
    folder: Path
    servers: tuple[Declared, ...]
    left_out: tuple[LeftOut, ...] = ()
    inputs: Mapping[str, Input] = field(default_factory=dict[str, Input])
    notes: tuple[str, ...] = ()


def read_client_file(path: Path, dialect: Dialect | None = None) -> ClientFile:
    """The client file at `path`; `dialect` None finds out whose it is. Raises `ConfigurationError`
    if it cannot be read, is no JSON, or has no servers in it."""
    text = text_of(path, MAX_BYTES)
    if not text.strip():
        raise _unreadable(path, "the file is empty", 0)
    try:
        root = parse(text)
    except JsoncFault as error:
        raise _unreadable(path, str(error), error.line) from error
    key, home, at = _place(root, path, dialect)
    servers = home.get(key)
    if servers is None or servers.entries is None:
        raise _unreadable(path, f"has no object 'mcpServers' or 'servers'{_hint(root)}", 0)
    found = dialect or _dialect(path, key, text)
    place = Place(joined(at, key), str(path), servers.line)
    judged = tuple(_judged(servers.entries, place, found))
    return ClientFile(
        str(path),
        found,
        _folder(path),
        tuple(one for one in judged if isinstance(one, Declared)),
        tuple(one for one in judged if isinstance(one, LeftOut)),
        _inputs(home.get("inputs")),
        tuple(_notes(home, key, str(path)) if found == "vscode" else _projects(root, str(path))),
    )


def _place(root: Value, path: Path, dialect: Dialect | None) -> tuple[str, Value, str]:
    """The key that holds the servers, the object it stands in, and the path of that object;
    the key is empty where there is none."""
    for steps in _HOMES:
        home: Value | None = root
        for step in steps:
            home = home.get(step) if home is not None else None
        entries = home.entries if home is not None else None
        keys = [e.key for e in entries or () if e.key in _KEYS and e.value.entries is not None]
        if home is None or not keys:
            continue
        if len(keys) != len(set(keys)):
            raise _unreadable(path, f"has {keys[0]!r} twice", home.line)
        is_vscode = dialect == "vscode"
        wanted = [key for key in keys if dialect is None or (key == "servers") == is_vscode]
        return max(wanted or keys), home, ".".join(steps)  # `servers` before `mcpServers`
    return "", root, ""


def _hint(root: Value) -> str:
    """Why there may be none, and what to do."""
    for key, words in _ELSEWHERE.items():
        if root.get(key) is not None:
            return words
    first = next((one.value for one in root.entries or ()), None)
    is_server = first is not None and any(first.get(key) for key in ("command", "url"))
    return _BARE if is_server else ""


def _judged(entries: Iterable[Entry], at: Place, dialect: Dialect) -> Iterator[Declared | LeftOut]:
    """Each server by its name, and none of several that share one."""
    by_name: dict[str, list[Entry]] = {}
    for entry in entries:
        by_name.setdefault(entry.key, []).append(entry)
    for name, (entry, *others) in by_name.items():
        place = Place(joined(at.path, name), at.file, entry.line)
        if others:
            lines = ", ".join(str(one.line) for one in (entry, *others))
            message = f"several servers have this name (lines {lines}): none of them is used"
            yield LeftOut(name, str(place.problem(message)), is_fault=True)
        else:
            yield declared(entry, place, dialect)


def text_of(path: Path, most: int) -> str:
    """The text of a file of at most `most` bytes. Raises `ConfigurationError`."""
    try:
        with path.open("rb") as opened:
            raw = opened.read(most + 1)
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or error
        raise _unreadable(path, f"cannot be read: {why}", 0) from error
    if len(raw) > most:
        raise _unreadable(path, f"larger than {most // 1024} KiB", 0)
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise _unreadable(path, "not UTF-8 text: save it as UTF-8", line) from error


def _unreadable(path: Path, message: str, line: int) -> ConfigurationError:
    return ConfigurationError([Problem(message, file=str(path), line=line)])


def _dialect(path: Path, key: str, text: str) -> Dialect:
    """Whose file it is: by its key, the folder it is in, its name, the references it holds."""
    if key == "servers":
        return "vscode"
    if (dialect := _FOLDERS.get(path.absolute().parent.name)) is not None:
        return dialect
    if "claude" in path.name or path.name == ".mcp.json":
        return "claude"
    return "cursor" if any(sign in text for sign in _EDITORS_SIGNS) else "claude"


def _folder(path: Path) -> Path:
    folder = path.absolute().parent
    return folder.parent if folder.name in _FOLDERS else folder


def _inputs(value: Value | None) -> dict[str, Input]:
    """The inputs that have an id; what else is wrong with one shows where it is referred to."""
    found: dict[str, Input] = {}
    for item in (value.items or ()) if value is not None else ():
        texts = {e.key: e.value.data for e in item.entries or () if isinstance(e.value.data, str)}
        password = item.get("password")
        is_secret = password is not None and password.data is not False
        if "id" in texts:
            default = None if is_secret else texts.get("default")
            found[texts["id"]] = Input(texts["id"], texts.get("description", ""), default)
    return found


def _notes(root: Value, key: str, file: str) -> Iterator[str]:
    entries: tuple[Entry, ...] = root.entries or ()
    for entry in entries:
        if entry.key not in (key, *_OTHERS):
            place = Place(joined("", entry.key), file, entry.line)
            yield str(place.problem(f"{entry.key!r} is left out: unknown here"))


def _projects(root: Value, file: str) -> Iterator[str]:
    """What ~/.claude.json has for single projects."""
    projects = root.get("projects")
    for project in (projects.entries or ()) if projects is not None else ():
        servers = project.value.get("mcpServers")
        if servers is not None and servers.entries:
            place = Place(joined("projects", project.key), file, servers.line)
            yield str(
                place.problem(f"servers of that project alone: {len(servers.entries)} left out")
            )
