"""The middlewares a deployment can name, and the one order they stand in."""

from __future__ import annotations

from dataclasses import dataclass

from toolcrib.chain import Middleware
from toolcrib.middleware.concurrency import concurrency
from toolcrib.middleware.recover import recover
from toolcrib.middleware.result_limit import DEFAULT_MARKER, DEFAULT_PART_BUDGET, result_limit
from toolcrib.middleware.telemetry import Telemetry
from toolcrib.middleware.timeout import timeout

__all__ = ["ResultLimitSettings", "Settings", "standard"]


@dataclass(frozen=True, slots=True)
class ResultLimitSettings:
    """`max` characters of text; `part_budget_bytes` of other parts, 0 lifts that bound."""

    max: int
    marker: str = DEFAULT_MARKER
    part_budget_bytes: int = DEFAULT_PART_BUDGET


@dataclass(frozen=True, slots=True)
class Settings:
    """What a `tool.Assembly/middleware` may set; what is absent is not in the chain.

    `timeout` is in seconds. `result_part_budget_bytes` bounds the parts that are not text where
    there is no `result_limit`; 0 lifts it (rule A12.5).
    """

    recover: bool = False
    telemetry: bool = False
    result_limit: ResultLimitSettings | None = None
    timeout: float | None = None
    concurrency: int | None = None
    result_part_budget_bytes: int = DEFAULT_PART_BUDGET


def standard(settings: Settings) -> tuple[Middleware, ...]:
    """The chain of `settings`, outermost first. A limit of 0 or less is left out (rule A12.7)."""
    chain: list[Middleware] = []
    if settings.recover:  # outermost: contains a fault of any other
        chain.append(recover)
    if settings.telemetry:  # sees the result as the model will get it, and all the waiting
        chain.append(Telemetry())
    limit = settings.result_limit
    if limit is not None:  # outside the time-out, so that error texts are bounded too
        chain.append(
            result_limit(limit.max, marker=limit.marker, part_budget_bytes=limit.part_budget_bytes)
        )
    elif settings.result_part_budget_bytes > 0:
        chain.append(result_limit(part_budget_bytes=settings.result_part_budget_bytes))
    if settings.concurrency is not None and settings.concurrency > 0:
        # outside the time-out: queueing does not eat the tool's own time
        chain.append(concurrency(settings.concurrency))
    if settings.timeout is not None and settings.timeout > 0:
        chain.append(timeout(settings.timeout))
    return tuple(chain)
