"""Where tools come from: each source publishes its list into a registry, at once or later."""

from toolcrib.sources.contract import Publish, Source
from toolcrib.sources.functions import FunctionSource
from toolcrib.sources.remote import RemoteSource, RemoteTool, mount

__all__ = ["FunctionSource", "Publish", "RemoteSource", "RemoteTool", "Source", "mount"]
