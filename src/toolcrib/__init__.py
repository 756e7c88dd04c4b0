"""toolcrib stands between LLM agents and their tools.

It knows thousands of tools, shows a model the few it needs now, finds the right one when asked, and
executes every call under limits, authorisation and record. Start with `Assembly` and `tool`.
"""

from toolcrib.assembly import Assembly
from toolcrib.content import (
    AudioPart,
    DataPart,
    Failure,
    FilePart,
    ImagePart,
    TextPart,
    ToolCall,
    ToolResult,
)
from toolcrib.definition import Annotations, ToolDefinition
from toolcrib.discovery.policy import Budget, Discovery, Dynamic
from toolcrib.errors import (
    ConfigurationError,
    Conflict,
    Denied,
    InvalidArguments,
    InvalidDefinition,
    InvalidSchema,
    NotAvailable,
    NotFound,
    NotReady,
    ToolcribError,
    ToolError,
)
from toolcrib.function import tool
from toolcrib.limits import UNLIMITED, ToolLimits
from toolcrib.manifest import define_tool
from toolcrib.policy import Policy
from toolcrib.principal import Principal
from toolcrib.registry import Registry
from toolcrib.schema import validate_schema
from toolcrib.session import Session
from toolcrib.tool import CallContext, Tool
from toolcrib.turn import Round, Turn

__all__ = [
    "UNLIMITED",
    "Annotations",
    "Assembly",
    "AudioPart",
    "Budget",
    "CallContext",
    "ConfigurationError",
    "Conflict",
    "DataPart",
    "Denied",
    "Discovery",
    "Dynamic",
    "Failure",
    "FilePart",
    "ImagePart",
    "InvalidArguments",
    "InvalidDefinition",
    "InvalidSchema",
    "NotAvailable",
    "NotFound",
    "NotReady",
    "Policy",
    "Principal",
    "Registry",
    "Round",
    "Session",
    "TextPart",
    "Tool",
    "ToolCall",
    "ToolDefinition",
    "ToolError",
    "ToolLimits",
    "ToolResult",
    "ToolcribError",
    "Turn",
    "define_tool",
    "tool",
    "validate_schema",
]

__version__ = "0.1.0"
