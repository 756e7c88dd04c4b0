"""Who is asked on behalf of a conversation: a person, a model, the places it works in.

The contract and its values, of no protocol. Who asks, and what an answer becomes, is the source's
(`sources.mcp`), whether one fits its question `answers`; how a person is shown a question is the
host's own affair.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal, Protocol, TypeAlias, runtime_checkable

from toolcrib.content import AudioPart, ImagePart, Part, TextPart
from toolcrib.errors import InvalidDefinition
from toolcrib.frozen import NOTHING

__all__ = [
    "CANCELLED",
    "DECLINED",
    "Ability",
    "Elicitation",
    "ElicitationAnswer",
    "Elicits",
    "HasRoots",
    "Host",
    "Root",
    "Samples",
    "SamplingAnswer",
    "SamplingMessage",
    "SamplingRequest",
    "abilities_of",
    "accepted",
    "checked",
]


@dataclass(frozen=True, slots=True)
class Elicitation:
    """A question to a person, asked by `server` during the call `call_id` of the tool `tool` (both
    empty where several calls may be meant).

    A form: `schema` describes an object of plain fields. Or an errand: the person is to open `url`
    and finish there, and accepting means that they agreed to. Everything in it is the server's own
    words: show who says them, and never open a url unasked.
    """

    server: str
    message: str
    schema: Mapping[str, Any] = field(default=NOTHING, hash=False)
    url: str = ""
    tool: str = ""
    call_id: str = ""


@dataclass(frozen=True, slots=True)
class ElicitationAnswer:
    """What a person said: `accept` with the values of a form, `decline` (no), or `cancel` (neither
    yes nor no)."""

    action: Literal["accept", "decline", "cancel"]
    values: Mapping[str, Any] = field(default=NOTHING, hash=False, repr=False)


DECLINED: Final = ElicitationAnswer("decline")
CANCELLED: Final = ElicitationAnswer("cancel")


def accepted(values: Mapping[str, Any] = NOTHING) -> ElicitationAnswer:
    """Yes, with these values. A field left out takes the default that the question gives it."""
    return ElicitationAnswer("accept", values)


@dataclass(frozen=True, slots=True)
class SamplingMessage:
    """One message of the conversation that a model is to go on with."""

    role: Literal["user", "assistant"]
    content: tuple[Part, ...]


@dataclass(frozen=True, slots=True)
class SamplingRequest:
    """What `server` wants a model of the host's to say, during the call `call_id` of the tool
    `tool` (both empty where several calls may be meant). `hints` are names of models it would like,
    the best first; which one it gets, and whether any, is the host's to say."""

    server: str
    messages: tuple[SamplingMessage, ...]
    max_tokens: int
    system_prompt: str = ""
    temperature: float | None = None
    stop_sequences: tuple[str, ...] = ()
    hints: tuple[str, ...] = ()
    tool: str = ""
    call_id: str = ""


@dataclass(frozen=True, slots=True)
class SamplingAnswer:
    """What the model `model` said. `stop_reason`: endTurn, stopSequence, maxTokens, or another."""

    content: TextPart | ImagePart | AudioPart
    model: str
    stop_reason: str = "endTurn"


@dataclass(frozen=True, slots=True)
class Root:
    """A place that servers may work in, as a `file://` URI. Raises `InvalidDefinition` for any
    other."""

    uri: str
    name: str = ""

    def __post_init__(self) -> None:
        if not self.uri.startswith("file://"):
            raise InvalidDefinition(f"a root is a file:// URI, not {self.uri[:100]!r}")


@runtime_checkable
class Elicits(Protocol):
    """Can put a question to a person. Returns when they answered; cancelled once nobody waits for
    the answer any more."""

    async def elicit(self, question: Elicitation) -> ElicitationAnswer: ...


@runtime_checkable
class Samples(Protocol):
    """Can have a model say something. None: refused."""

    async def sample(self, request: SamplingRequest) -> SamplingAnswer | None: ...


@runtime_checkable
class HasRoots(Protocol):
    """Knows the places that servers may work in."""

    async def roots(self) -> Iterable[Root]: ...


Host: TypeAlias = Elicits | Samples | HasRoots
"""Whoever can do one of the three, or more. Asked on the assembly's loop, by several calls at
once."""

Ability: TypeAlias = Literal["elicit", "sample", "roots"]

_CONTRACTS: Final[tuple[tuple[Ability, type], ...]] = (
    ("elicit", Elicits),
    ("sample", Samples),
    ("roots", HasRoots),
)


def checked(host: Host | None) -> Host | None:
    """`host`. Raises `InvalidDefinition` for one that cannot be asked anything: a misspelled method
    would be found out by nobody."""
    if host is not None and not abilities_of(host):
        raise InvalidDefinition(
            f"the host {host!r} can be asked nothing: give it elicit, sample or roots"
        )
    return host


def abilities_of(host: object) -> frozenset[Ability]:
    """What `host` can be asked; nothing, where it is None."""
    return frozenset(ability for ability, contract in _CONTRACTS if isinstance(host, contract))
