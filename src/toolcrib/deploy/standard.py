"""The resource types of this version, as one visible list."""

from __future__ import annotations

from toolcrib.deploy.assemblies import (
    ASSEMBLY_DEPS,
    build_assembly,
    memory_settings,
    middleware_settings,
)
from toolcrib.deploy.functions import build_functions, function_settings
from toolcrib.deploy.mcp import build_mcp, mcp_settings, reload_mcp
from toolcrib.deploy.resources import ASSEMBLY, REGISTRY, SOURCE, ResourceType, ResourceTypes
from toolcrib.registry import Registry

__all__ = ["standard_types"]


def standard_types() -> ResourceTypes:
    """A table of its own, to which a host may add."""
    return ResourceTypes(
        (
            ResourceType(SOURCE, "functions", build_functions, function_settings),
            ResourceType(SOURCE, "mcp", build_mcp, mcp_settings, reload=reload_mcp),
            ResourceType(REGISTRY, "memory", lambda _: Registry()),
            ResourceType(ASSEMBLY, "memory", build_assembly, memory_settings, ASSEMBLY_DEPS),
            ResourceType(
                ASSEMBLY, "middleware", build_assembly, middleware_settings, ASSEMBLY_DEPS
            ),
        )
    )
