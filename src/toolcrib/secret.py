"""Values that nobody but the tool may see: how a parameter says so, and where a schema does.

`writeOnly: true` is JSON Schema's own word for it (`format: "password"` and pydantic's `SecretStr`
say the same), so one rule serves own functions and foreign servers. This marks; leaving the value
out is up to whoever writes text.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from toolcrib.jsonvalue import is_array, is_object
from toolcrib.refs import alternatives

__all__ = ["Secret", "is_secret", "secret_at"]


class _Secret:
    """Marks a parameter: `token: Annotated[str, Secret]`."""

    __slots__ = ()

    def __get_pydantic_json_schema__(
        self, core: Any, handler: Callable[[Any], dict[str, Any]]
    ) -> dict[str, Any]:
        return {**handler(core), "writeOnly": True}

    def __repr__(self) -> str:
        return "Secret"


Secret: Final = _Secret()
"""`Annotated[str, Secret]`: nothing of the argument, not even its type, is told in any message."""


def is_secret(schema: object) -> bool:
    """Whether a subschema says of itself that its value is secret."""
    return is_object(schema) and (
        schema.get("writeOnly") is True or schema.get("format") == "password"
    )


def secret_at(root: object, steps: Sequence[object]) -> int | None:
    """How many of `steps`, the path of a value, lead to the first secret on it; None without one.

    Errs on the careful side: secret in one branch of a union is secret, and a step that is no name
    of a member (pydantic names the branches of a union) is passed over.
    """
    here: list[object] = list(alternatives(root, root))
    for count, step in enumerate((None, *steps)):
        if count:
            inner = [part for node in here for part in _parts(node, step)]
            opened: list[object] = []
            for part in inner:
                opened += alternatives(part, root) or list[object]([part])
            here = opened if isinstance(step, int) else [*opened, *here]
            if any(map(is_secret, opened)):
                return count
        elif any(map(is_secret, here)):
            return 0
    return None


def _parts(node: object, step: object) -> list[object]:
    if not is_object(node):
        return []
    if isinstance(step, int):
        prefix = node.get("prefixItems")
        if is_array(prefix) and step < len(prefix):
            return [prefix[step]]
        return [node["items"]] if is_object(node.get("items")) else []
    properties = node.get("properties")
    if is_object(properties) and isinstance(step, str) and step in properties:
        return [properties[step]]
    rest = node.get("additionalProperties")
    patterns = node.get("patternProperties")
    return [rest] if is_object(rest) else list(patterns.values()) if is_object(patterns) else []
