"""The deployment file: one YAML text that says which tools there are and how they are assembled.

::

    deployment = load("workshop.yaml")          # read and checked; every problem at once
    async with deployment.build() as tools:     # an open Assembly
        print(await tools.call("add", a=2, b=3))

The rooms, lowest first: `document` (nodes) and `reading` (YAML to nodes), `decode` and `scalars`
(nodes to settings), `resources` (the table of what there may be), `clients` (files of other MCP
clients), `functions` · `mcp`, `mcp_servers` · `assemblies` (its entries), `declared` (what lies
between resources), `changes`, `build`, `loading`.
"""

from toolcrib.deploy.build import Built, Deployment
from toolcrib.deploy.decode import Decoder, list_of, map_of, nothing, record, required
from toolcrib.deploy.loading import load, loads
from toolcrib.deploy.places import At
from toolcrib.deploy.resources import Dependency, Given, Resource, ResourceType, ResourceTypes
from toolcrib.deploy.standard import standard_types

__all__ = [
    "At",
    "Built",
    "Decoder",
    "Dependency",
    "Deployment",
    "Given",
    "Resource",
    "ResourceType",
    "ResourceTypes",
    "list_of",
    "load",
    "loads",
    "map_of",
    "nothing",
    "record",
    "required",
    "standard_types",
]
