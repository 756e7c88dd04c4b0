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
from toolcrib.definition import Annotations, Example, Format, ToolDefinition
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
from toolcrib.examples import render_examples
from toolcrib.function import tool
from toolcrib.lazy import LazyTool
from toolcrib.limits import UNLIMITED, ToolLimits
from toolcrib.manifest import define_tool
from toolcrib.partial import partial_arguments
from toolcrib.policy import Policy
from toolcrib.principal import Principal
from toolcrib.redact import Redactor
from toolcrib.registry import Registry
from toolcrib.schema import validate_schema
from toolcrib.secret import Secret
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
    "Example",
    "Failure",
    "FilePart",
    "Format",
    "ImagePart",
    "InvalidArguments",
    "InvalidDefinition",
    "InvalidSchema",
    "LazyTool",
    "NotAvailable",
    "NotFound",
    "NotReady",
    "Policy",
    "Principal",
    "Redactor",
    "Registry",
    "Round",
    "Secret",
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
    "partial_arguments",
    "render_examples",
    "tool",
    "validate_schema",
]

__version__ = "0.1.0"
