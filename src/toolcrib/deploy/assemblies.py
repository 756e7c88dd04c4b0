"""`tool.Assembly/memory` and `/middleware`: their settings, and the call that makes an assembly.

`memory` knows only `dynamic`; `middleware` is the same with a chain and policies (rule A3.4). What
the settings mean is decided where they are used: `discovery.policy`, `middleware`, `policy`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from toolcrib.assembly import Assembly
from toolcrib.deploy.decode import Decoder, Field, list_of, map_of, plain_record, record, required
from toolcrib.deploy.document import MapNode
from toolcrib.deploy.places import At, Rejected
from toolcrib.deploy.resources import REGISTRY, SOURCE, Dependency, Given
from toolcrib.deploy.scalars import choice, duration, flag, integer, name, text
from toolcrib.discovery.policy import SEARCH_TOOL, Budget, Discovery, Dynamic
from toolcrib.frozen import NOTHING
from toolcrib.middleware import ResultLimitSettings, Settings, standard
from toolcrib.policy import EXPOSURES, Exposure, Policy

__all__ = [
    "ASSEMBLY_DEPS",
    "AssemblySettings",
    "build_assembly",
    "memory_settings",
    "middleware_settings",
]

ASSEMBLY_DEPS = (
    Dependency("tool", SOURCE, required=True, many=True),
    Dependency("registry", REGISTRY),
)

_LATER_MIDDLEWARES = ("approval", "approve", "audit", "format", "rate", "redact", "retry")
_LATER_POLICY = ("approval", "concurrency", "effects", "pin", "rate", "result", "retry", "sandbox")
_LATER_SETTINGS = ("approvals", "limits", "modes", "receipts", "sandbox", "toolsets")


@dataclass(frozen=True, slots=True)
class AssemblySettings:
    """`middlewares` is None for the impl that runs none at all; otherwise a chain that bounds the
    parts of results even where the file names nothing (rule A12.5)."""

    dynamic: Dynamic | None = None
    middlewares: Settings | None = None
    policies: Mapping[str, Policy] = field(default=NOTHING)


def build_assembly(given: Given) -> Assembly:
    """The assembly of `given.settings` over the sources it depends on; opens nothing."""
    settings: AssemblySettings = given.settings
    chain = settings.middlewares
    registry = given.deps.get("registry", ())
    return Assembly(
        given.deps["tool"],
        dynamic=settings.dynamic,
        middlewares=() if chain is None else standard(chain),
        policies=settings.policies,
        registry=registry[0] if registry else None,
    )


_LEVEL = choice(*EXPOSURES)


def _exposure(at: At) -> Exposure:
    return cast("Exposure", _LEVEL(at))


def _default_exposure(at: At) -> Exposure:
    """A level; the empty text is deferred (rule A4.1)."""
    return "deferred" if at.text_node().parts == () else _exposure(at)


def _search_stays_always(at: At) -> None:
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
    _search_stays_always(at)
    return map_of(_exposure)(at)


def _policies(at: At) -> dict[str, Policy]:
    _search_stays_always(at)
    return map_of(_POLICY)(at)


def _not_negative(at: At) -> float:
    seconds = duration(at)
    if seconds < 0:
        at.expected("a duration, 0s for none")
    return seconds


def _policy(scopes: tuple[str, ...] = (), **said: Any) -> Policy:
    return Policy(scopes=frozenset(scopes), **said)


_POLICY = record(
    _policy,
    {"exposure": _exposure, "timeout": _not_negative, "scopes": list_of(name)},
    later=_LATER_POLICY,
)


def _deprecated(at: At) -> int:
    value = integer()(at)
    at.warn("deprecated, and only taken for discovery.idle_rounds: set that instead")
    return value


def _dynamic(
    *,
    discovery: Mapping[str, int] = NOTHING,
    selected_retention: int = 0,
    recent_window: int = 0,
    search_with_load: bool = False,
    **said: Any,
) -> Dynamic:
    """`search_with_load` asks for lazy tools to be loaded before a search; none are lazy in this
    version, so both its values hold."""
    pool: dict[str, int] = dict(discovery)
    seed = next((one for one in (selected_retention, recent_window) if one > 0), None)
    if seed is not None:  # rule A6.1: the old keys speak only where idle_rounds does not
        pool.setdefault("idle_rounds", seed)
    return Dynamic(discovery=Discovery(**pool), **said)


_BUDGET = record(Budget, {"max_definitions": integer(), "max_bytes": integer()})
_DISCOVERY = plain_record(
    {"max_tools": integer(), "max_bytes": integer(), "idle_rounds": integer(0)}
)
_DYNAMIC = record(
    _dynamic,
    {
        "default": _default_exposure,
        "exposures": _exposures,
        "budget": _BUDGET,
        "discovery": _DISCOVERY,
        "search_with_load": flag,
        "selected_retention": _deprecated,
        "recent_window": _deprecated,
    },
)


def _timeout(at: At) -> float | None:
    """Seconds; the empty text is none (rule A12.6)."""
    return None if at.text_node().parts == () else duration(at)


def _alone(key: str, one: Decoder[Any] | Field) -> Decoder[Any]:
    """A mapping with this one key, taken for its value."""
    decode = plain_record({key: one})
    return lambda at: decode(at).get(key)


_MIDDLEWARES = record(
    Settings,
    {
        "recover": _alone("enabled", required(flag)),
        "telemetry": _alone("enabled", required(flag)),
        "result_limit": record(
            ResultLimitSettings,
            {"max": required(integer(1)), "marker": text, "part_budget_bytes": integer()},
        ),
        "timeout": _alone("default", _timeout),
        "concurrency": _alone("limit", integer()),
        "result_part_budget_bytes": integer(),
    },
    later=_LATER_MIDDLEWARES,
)

memory_settings = record(AssemblySettings, {"dynamic": _DYNAMIC}, later=_LATER_SETTINGS)


def _with_chain(middlewares: Settings = Settings(), **said: Any) -> AssemblySettings:
    return AssemblySettings(middlewares=middlewares, **said)


middleware_settings = record(
    _with_chain,
    {"dynamic": _DYNAMIC, "middlewares": _MIDDLEWARES, "policies": _policies},
    later=_LATER_SETTINGS,
)
