"""The middlewares of guide A, and the order they stand in.

Each is one function round a call (`chain.Middleware`); a user's own is no different.
"""

from toolcrib.middleware.concurrency import concurrency
from toolcrib.middleware.recover import recover
from toolcrib.middleware.result_limit import (
    DEFAULT_MARKER,
    DEFAULT_PART_BUDGET,
    limit_result,
    result_limit,
)
from toolcrib.middleware.standard import ResultLimitSettings, Settings, standard
from toolcrib.middleware.telemetry import Telemetry
from toolcrib.middleware.timeout import timeout

__all__ = [
    "DEFAULT_MARKER",
    "DEFAULT_PART_BUDGET",
    "ResultLimitSettings",
    "Settings",
    "Telemetry",
    "concurrency",
    "limit_result",
    "recover",
    "result_limit",
    "standard",
    "timeout",
]
