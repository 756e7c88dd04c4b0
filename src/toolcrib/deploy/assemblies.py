"""`tool.Assembly/memory` and `/middleware`: their settings, and the call that makes an assembly.

`memory` knows only `dynamic`; `middleware` is the same with a chain and policies (rule A3.4). What
the settings mean is decided where they are used: `discovery.policy`, `middleware`, `policy`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from toolcrib.assembly import Assembly
from toolcrib.deploy.decode import Decoder, Field, list_of, map_of, plain_record, record, required
from toolcrib.deploy.dynamic import dynamic_settings, exposure, not_negative, search_stays_always
from toolcrib.deploy.places import At, Rejected
from toolcrib.deploy.resources import REGISTRY, SOURCE, Dependency, Given
from toolcrib.deploy.scalars import duration, flag, integer, name, text
from toolcrib.discovery.policy import Dynamic
from toolcrib.frozen import NOTHING
from toolcrib.limits import UNLIMITED, ToolLimits
from toolcrib.middleware import ResultLimitSettings, Settings, standard
from toolcrib.policy import Policy

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
_LATER_SETTINGS = ("approvals", "modes", "receipts", "sandbox", "toolsets")


_USUAL = ToolLimits()


@dataclass(frozen=True, slots=True)
class AssemblySettings:
    """`middlewares` is None for the impl that runs none at all; otherwise a chain that bounds the
    parts of results even where the file names nothing (rule A12.5)."""

    dynamic: Dynamic | None = None
    middlewares: Settings | None = None
    policies: Mapping[str, Policy] = field(default=NOTHING)
    limits: ToolLimits = _USUAL


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
        limits=settings.limits,
        registry=registry[0] if registry else None,
    )


def _policies(at: At) -> dict[str, Policy]:
    search_stays_always(at)
    return map_of(_POLICY)(at)


def _policy(scopes: tuple[str, ...] = (), **said: Any) -> Policy:
    return Policy(scopes=frozenset(scopes), **said)


_POLICY = record(
    _policy,
    {
        "exposure": exposure,
        "timeout": not_negative,
        "scopes": list_of(name),
        "idempotent": flag,
    },
    later=_LATER_POLICY,
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


def _limit(at: At) -> int:
    """A number, or the word `unlimited`."""
    try:
        if at.silent.expand() == "unlimited":
            return UNLIMITED
    except Rejected:
        pass  # the decoder below says why
    return integer(0)(at)


_LIMITS = record(
    ToolLimits,
    {"iterations": _limit, "calls": _limit, "parallel": integer(0), "searches": _limit},
)

memory_settings = record(AssemblySettings, {"dynamic": dynamic_settings}, later=_LATER_SETTINGS)


def _with_chain(middlewares: Settings = Settings(), **said: Any) -> AssemblySettings:
    return AssemblySettings(middlewares=middlewares, **said)


middleware_settings = record(
    _with_chain,
    {
        "dynamic": dynamic_settings,
        "limits": _LIMITS,
        "middlewares": _MIDDLEWARES,
        "policies": _policies,
    },
    later=_LATER_SETTINGS,
)
