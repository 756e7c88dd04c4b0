"""Exposed names: what a model may call a tool, whatever its source calls it.

Every provider takes 1 to 64 of `[A-Za-z0-9_-]` (shared rules O2, A2, G2), so that is what is shown;
the source keeps the original for the call.

Case counts: `Search` and `search` are two names, as they are to providers and to the registry, so
neither hides the other (GW03). Equal names of two owners are the registry's `Conflict`.
"""

from __future__ import annotations

import difflib
import hashlib
import itertools
import re
from collections import Counter
from collections.abc import Callable, Iterable

__all__ = [
    "MAX_NAME",
    "NearNames",
    "exposed_name",
    "exposed_names",
    "is_exposed_name",
    "namespace",
    "nearest",
]

MAX_NAME = 64

_LEGAL = re.compile(r"[A-Za-z0-9_-]{1,64}\Z")
_ILLEGAL_RUN = re.compile(r"[^A-Za-z0-9_-]+")
_HASH = 8
_CANDIDATES = 60


def is_exposed_name(name: str) -> bool:
    """Whether `name` can be sent to every provider as it is."""
    return _LEGAL.match(name) is not None


def namespace(prefix: str) -> str:
    """The namespace a `prefix` setting means: `fs` → `fs__`, `fs_` → `fs_`, empty → none."""
    return prefix if not prefix or prefix.endswith("_") else prefix + "__"


def exposed_name(prefix: str, name: str) -> str:
    """The exposed name of a source's tool `name` under the namespace `prefix`.

    A name that is legal with its prefix stays as it is. Any other is cleaned, shortened and given a
    hash of its original, so that two originals never become one and neither listing order nor
    other tools change the outcome.
    """
    wanted = prefix + name
    if is_exposed_name(wanted):
        return wanted
    digest = hashlib.sha256(wanted.encode("utf-8", "surrogatepass")).hexdigest()[:_HASH]
    clean = _ILLEGAL_RUN.sub("_", wanted)
    return f"{clean[: MAX_NAME - _HASH - 1]}_{digest}"


def exposed_names(prefix: str, originals: Iterable[str]) -> dict[str, str]:
    """`{original: exposed}` of one source's whole listing, in its order, no exposed name twice.

    A name listed twice is one entry: the first counts (NM05). Which name an original gets depends
    on the set of originals, never on their order (NM03), and on the others only where one was
    chosen to look like another's hash: a legal name keeps itself, the other gets a new hash.
    """
    listed = dict.fromkeys(originals)
    given = {name: prefix + name for name in listed if is_exposed_name(prefix + name)}
    taken = set(given.values())
    for name in sorted(listed.keys() - given.keys()):
        wanted = exposed_name(prefix, name)
        while wanted in taken:
            wanted = exposed_name("", f"{wanted}/{name}")
        taken.add(wanted)
        given[name] = wanted
    return {name: given[name] for name in listed}


def nearest(name: str, names: Iterable[str], most: int = 3) -> list[str]:
    """The `most` known names closest to `name`, best first; case and separators count little."""
    plain = {_plain(known): known for known in names}
    close = difflib.get_close_matches(_plain(name), list(plain), n=most, cutoff=0.6)
    return [plain[key] for key in close]


class NearNames:
    """Finds near names among thousands: by shared letter pairs first, then closely."""

    def __init__(self, names: Iterable[str]) -> None:
        self._by_pair: dict[str, list[str]] = {}
        for name in names:
            for pair in _pairs(name):
                self._by_pair.setdefault(pair, []).append(name)

    def closest(self, name: str, accept: Callable[[str], bool], most: int) -> list[str]:
        """At most `most` names like `name` among those `accept` takes, best first."""
        shared: Counter[str] = Counter()
        for pair in _pairs(name[:MAX_NAME]):
            shared.update(self._by_pair.get(pair, ()))
        near = sorted(shared, key=lambda known: (-shared[known], known))
        return nearest(name, itertools.islice(filter(accept, near), _CANDIDATES), most)


def _pairs(name: str) -> set[str]:
    plain = f"_{_plain(name)}_"
    return {plain[at : at + 2] for at in range(len(plain) - 1)}


def _plain(name: str) -> str:
    return re.sub(r"[^a-z0-9]+", "_", name.lower())
