"""The `dynamic:` of an assembly, decoded. What it means is `discovery.policy`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast, get_args

from toolcrib.deploy.decode import map_of, plain_record, record
from toolcrib.deploy.document import MapNode
from toolcrib.deploy.places import At, Rejected
from toolcrib.deploy.scalars import choice, duration, flag, integer
from toolcrib.deploy.search import ByMeaning, search_settings
from toolcrib.discovery.policy import SEARCH_TOOL, Budget, Discovery, Dynamic, Evict
from toolcrib.frozen import NOTHING
from toolcrib.policy import EXPOSURES, Exposure

__all__ = ["dynamic_settings", "exposure", "not_negative", "search_stays_always"]

_LEVEL = choice(*EXPOSURES)
_EVICT = choice(*get_args(Evict))


def _evict(at: At) -> Evict:
    return cast("Evict", _EVICT(at))


def exposure(at: At) -> Exposure:
    return cast("Exposure", _LEVEL(at))


def _default_exposure(at: At) -> Exposure:
    """A level; the empty text is deferred (rule A4.1)."""
    return "deferred" if at.text_node().parts == () else exposure(at)


def search_stays_always(at: At) -> None:
    """Rule A3.5, for a mapping from tool names to levels or to records that hold one."""
    entry = at.map_node().by_key.get(SEARCH_TOOL) if isinstance(at.node, MapNode) else None
    if entry is None:
        return
    place = at.under(entry)
    if isinstance(entry.value, MapNode):
        inner = entry.value.by_key.get("exposure")
        if inner is None:
            return
        place = place.under(inner)
    try:
        always = place.silent.expand() == "always"
    except Rejected:
        return  # its own decoder says why
    if not always:
        place.note(f"{SEARCH_TOOL} must stay always: without it nothing deferred is ever found")


def _exposures(at: At) -> dict[str, Exposure]:
    search_stays_always(at)
    return map_of(exposure)(at)


def not_negative(at: At) -> float:
    """A duration in seconds, 0 or more."""
    seconds = duration(at)
    if seconds < 0:
        at.expected("a duration, 0s for none")
    return seconds


def _deprecated(at: At) -> int:
    value = integer()(at)
    at.warn("deprecated, and only taken for discovery.idle_rounds: set that instead")
    return value


def _dynamic(
    *,
    discovery: Mapping[str, Any] = NOTHING,
    selected_retention: int = 0,
    recent_window: int = 0,
    search: ByMeaning | None = None,
    **said: Any,
) -> Dynamic:
    pool: dict[str, Any] = dict(discovery)
    seed = next((one for one in (selected_retention, recent_window) if one > 0), None)
    if seed is not None:  # rule A6.1: the old keys speak only where idle_rounds does not
        pool.setdefault("idle_rounds", seed)
    return Dynamic(discovery=Discovery(**pool), ranker=search, **said)


_BUDGET = record(
    Budget, {"max_definitions": integer(), "max_bytes": integer(), "max_tokens": integer()}
)
_DISCOVERY = plain_record(
    {
        "max_tools": integer(),
        "max_bytes": integer(),
        "idle_rounds": integer(0),
        "evict": _evict,
        "max_admitted": integer(0),
        "load_timeout": not_negative,
    }
)
dynamic_settings = record(
    _dynamic,
    {
        "default": _default_exposure,
        "exposures": _exposures,
        "budget": _BUDGET,
        "discovery": _DISCOVERY,
        "search": search_settings,
        "search_with_load": flag,
        "selected_retention": _deprecated,
        "recent_window": _deprecated,
    },
)
