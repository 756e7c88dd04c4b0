"""What a deployment decides about discovery: exposures, the budget of a round, the pool's caps.

Values only. What they lead to is `pool` and `visible`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias, get_args

from toolcrib.discovery.tokens import TokenCounter, Tokens, estimated
from toolcrib.errors import InvalidDefinition
from toolcrib.frozen import NOTHING
from toolcrib.policy import EXPOSURES, NO_POLICY, Exposure, Policies, Policy
from toolcrib.ranking.ranker import Ranker

__all__ = ["SEARCH_TOOL", "Budget", "Caps", "Discovery", "Dynamic", "Evict"]

SEARCH_TOOL = "tool_search"

DEFAULT_DEFINITIONS = 32
DEFAULT_BYTES = 16384
DEFAULT_IDLE_ROUNDS = 10
DEFAULT_LOAD_TIMEOUT = 10.0

Evict: TypeAlias = Literal["idle", "pressure", "never-in-turn"]
"""When tools leave the pool. `idle`: after so many rounds without use, and for newer ones where
there is no room · `pressure`: only where there is no room, and then down to half of the caps at
once, so that a provider's prompt cache keeps its prefix longest · `never-in-turn`: not while a user
turn lasts; what is idle leaves when the next one begins, and what finds no room in between is
`over_budget`."""
_EVICT: tuple[str, ...] = get_args(Evict)


@dataclass(frozen=True, slots=True)
class Caps:
    """At most so many tools, of so many bytes of definitions together."""

    max_tools: int
    max_bytes: int


@dataclass(frozen=True, slots=True)
class Budget:
    """What one round may send: definitions, and their bytes (`ToolDefinition.wire_bytes`). 0 or
    less means the default (rule A7.1). `max_tokens` bounds their tokens too, as `counter` counts
    them (by default an estimate from the bytes); 0 or less: no bound."""

    max_definitions: int = DEFAULT_DEFINITIONS
    max_bytes: int = DEFAULT_BYTES
    max_tokens: int = 0
    counter: TokenCounter = estimated
    tokens: Tokens = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "tokens", Tokens(self.counter))

    @property
    def caps(self) -> Caps:
        return Caps(
            self.max_definitions if self.max_definitions > 0 else DEFAULT_DEFINITIONS,
            self.max_bytes if self.max_bytes > 0 else DEFAULT_BYTES,
        )


@dataclass(frozen=True, slots=True)
class Discovery:
    """The pool of discovered tools: its caps (None, 0 or less: the budget's, rule A6.1), how many
    accepted rounds a tool stays without being used (0: gone with the next one), and when tools
    leave it at all. `max_admitted` bounds the new tools that the searches of one round may take in;
    0: no bound. A search waits `load_timeout` seconds for lazy tools it found.

    Raises `InvalidDefinition` for a negative number or an unknown `evict`."""

    max_tools: int | None = None
    max_bytes: int | None = None
    idle_rounds: int = DEFAULT_IDLE_ROUNDS
    evict: Evict = "idle"
    max_admitted: int = 0
    load_timeout: float = DEFAULT_LOAD_TIMEOUT

    def __post_init__(self) -> None:
        for name in ("idle_rounds", "max_admitted", "load_timeout"):
            if (value := getattr(self, name)) < 0:
                raise InvalidDefinition(f"discovery.{name} is {value!r}: use 0 or more")
        if self.evict not in _EVICT:
            raise InvalidDefinition(
                f"discovery.evict is {self.evict!r}: use one of {', '.join(_EVICT)}"
            )


@dataclass(frozen=True, slots=True)
class Dynamic:
    """Dynamic discovery: which tools are in every round, which must be searched for first.

    `exposures` maps tool names or patterns to a level, `always` is short for the level always;
    everything else is `default`. `search_with_load` loads every lazy tool before a search, so that
    it is found by what it really says. `ranker` makes what ranks tools for a search, once for each
    assembly, which closes it (default: the lexical `ranking.index.Index`). Raises
    `InvalidDefinition` for an unknown level, a blank name, or a level of `tool_search` other than
    always (rules A3.5, A4.1).
    """

    default: Exposure = "deferred"
    exposures: Mapping[str, Exposure] = field(default=NOTHING)
    always: Sequence[str] = ()
    budget: Budget = Budget()
    discovery: Discovery = Discovery()
    search_with_load: bool = False
    ranker: Callable[[], Ranker] | None = None

    def __post_init__(self) -> None:
        for name, level in (*self.exposures.items(), ("default", self.default)):
            if not name.strip():
                raise InvalidDefinition("dynamic.exposures has a blank tool name")
            if level not in EXPOSURES:
                raise InvalidDefinition(
                    f"dynamic: unknown exposure {level!r} for {name!r}: use one of"
                    f" {', '.join(EXPOSURES)}"
                )
        if self.exposures.get(SEARCH_TOOL, "always") != "always":
            raise InvalidDefinition(
                f"dynamic.exposures: {SEARCH_TOOL} must stay always: without it nothing is found"
            )
        object.__setattr__(self, "always", tuple(self.always))

    @property
    def pool_caps(self) -> Caps:
        """The pool's caps in force."""
        budget, own = self.budget.caps, self.discovery
        return Caps(
            own.max_tools if own.max_tools and own.max_tools > 0 else budget.max_tools,
            own.max_bytes if own.max_bytes and own.max_bytes > 0 else budget.max_bytes,
        )

    def policies(self, records: Mapping[str, Policy]) -> Policies:
        """`records` with the exposures filled in where they name none."""
        levels: dict[str, Exposure] = {**dict.fromkeys(self.always, "always"), **self.exposures}
        levels[SEARCH_TOOL] = "always"  # whatever a pattern or a default says
        merged = {
            name: records.get(name, NO_POLICY).over(Policy(exposure=level))
            for name, level in levels.items()
        }
        if merged[SEARCH_TOOL].exposure != "always":
            raise InvalidDefinition(f"policies: {SEARCH_TOOL} must stay always")
        rest = {name: policy for name, policy in records.items() if name not in merged}
        return Policies({**merged, **rest}, default=Policy(exposure=self.default))
