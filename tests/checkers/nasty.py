"""Schemas as foreign servers really write them: each provider refuses some of them as they are."""

from __future__ import annotations

from typing import Any

STRING = {"type": "string"}


def _object(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


def _deep(levels: int) -> dict[str, Any]:
    node: dict[str, Any] = {"type": "string"}
    for _ in range(levels):
        node = {"type": "array", "items": node}
    return _object(deep=node)


def _nested(levels: int) -> dict[str, Any]:
    node = _object(x=STRING)
    for _ in range(levels - 1):
        node = _object(inner=node)
    return node


NODE = {
    "type": "object",
    "properties": {
        "name": STRING,
        "kids": {"type": "array", "items": {"$ref": "#/$defs/N"}},
    },
}

NASTY: dict[str, dict[str, Any]] = {
    "empty": {},
    "only an object": {"type": "object"},
    "no type at the root": {"properties": {"a": STRING}},
    "JS01 recursive": {**_object(root={"$ref": "#/$defs/N"}), "$defs": {"N": NODE}},
    "recursive root": _object(next={"$ref": "#"}, value=STRING),
    "root is a reference": {"$ref": "#/$defs/N", "$defs": {"N": NODE}},
    "two that call each other": {
        **_object(a={"$ref": "#/$defs/A"}),
        "$defs": {
            "A": _object(b={"$ref": "#/$defs/B"}, c={"$ref": "#/$defs/B"}),
            "B": _object(
                a={"$ref": "#/$defs/A"}, list={"type": "array", "items": {"$ref": "#/$defs/A"}}
            ),
        },
    },
    "a circle of references": {
        **_object(a={"$ref": "#/$defs/A"}),
        "$defs": {"A": {"$ref": "#/$defs/B"}, "B": {"$ref": "#/$defs/A"}},
    },
    "ten that call all ten": {
        **_object(a={"$ref": "#/$defs/D0"}),
        "$defs": {
            f"D{i}": _object(**{f"p{j}": {"$ref": f"#/$defs/D{j}"} for j in range(10)})
            for i in range(10)
        },
    },
    "JS02 definitions below a property": _object(
        node={"$ref": "#/$defs/Node", "$defs": {"Node": STRING}}
    ),
    "JS03 reference into properties": _object(
        h={"type": "object"}, a={"type": "array", "items": {"$ref": "#/properties/h"}}
    ),
    "reference to an odd name": {
        **_object(a={"$ref": "#/$defs/a~1b%20c"}),
        "$defs": {"a/b c": {"type": "integer"}},
    },
    "reference abroad": _object(a={"$ref": "https://example.com/x.json"}),
    "anchor": {**_object(a={"$ref": "#here"}), "$defs": {"X": {"$anchor": "here", **STRING}}},
    "dynamic reference": {
        "$dynamicAnchor": "node",
        **_object(next={"$dynamicRef": "#node"}, self={"$recursiveRef": "#"}),
    },
    "JS11 enum without type": _object(w={"enum": [7, 14, "auto", None]}),
    "enum of numbers": _object(w={"type": "integer", "enum": [1, 2]}),
    "enum with an empty string": _object(w={"type": "string", "enum": ["", "a"]}),
    "enum of lists": _object(w={"enum": [[1], [2]]}),
    "empty enum": _object(w={"enum": []}),
    "const": _object(w={"const": "x"}, n={"const": None}, o={"const": {"a": 1}}),
    "JS12 tuple": _object(
        where={
            "type": "array",
            "items": {"prefixItems": [STRING, {"enum": ["eq", "lt"]}, {}]},
        }
    ),
    "tuple of draft 7": {
        "$schema": "http://json-schema.org/draft-07/schema#",
        **_object(
            p={
                "type": "array",
                "items": [{"type": "number"}, {"type": "number"}],
                "additionalItems": False,
            }
        ),
    },
    "draft 4": {
        "$schema": "http://json-schema.org/draft-04/schema#",
        "id": "urn:x",
        **_object(n={"type": "integer", "minimum": 0, "exclusiveMinimum": True}),
    },
    "array without items": _object(a={"type": "array"}, b={"type": ["array", "null"]}),
    "JS13 keywords": {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": "urn:y",
        "$comment": "c",
        "x-foo": 1,
        **_object(a={**STRING, "examples": ["x"], "format": "uri", "pattern": "^(?!a)"}, b=STRING),
        "patternProperties": {"^x-": {"type": "integer"}},
        "dependentRequired": {"a": ["b"]},
        "if": {"properties": {"a": {"const": "x"}}},
        "then": {"required": ["b"]},
        "else": {"not": {"required": ["b"]}},
    },
    "JS15 list of free objects": _object(filters={"type": "array", "items": {"type": "object"}}),
    "JS17 nullable object": _object(
        values={"anyOf": [{"type": "object"}, {"type": "null"}], "default": None}
    ),
    "type lists": _object(
        a={"type": ["string", "null"]},
        b={"type": ["object", "array", "string", "number", "boolean", "null"]},
        c={"type": ["null"]},
        d={"type": "null"},
    ),
    "root anyOf": {
        "type": "object",
        "properties": {"a": STRING, "b": STRING},
        "anyOf": [{"required": ["a"]}, {"required": ["b"]}],
        "additionalProperties": False,
    },
    "root oneOf of shapes": {
        "type": "object",
        "oneOf": [
            {**_object(kind={"const": "a"}, x=STRING), "required": ["kind", "x"]},
            {**_object(kind={"const": "b"}, y={"type": "integer"}), "required": ["kind"]},
        ],
    },
    "root allOf": {
        "allOf": [
            _object(a=STRING),
            {**_object(a={"minLength": 1}, b=STRING), "required": ["b"]},
            {"if": {"required": ["a"]}, "then": {"required": ["b"]}},
            {"if": {"required": ["b"]}, "else": {"required": ["a"]}},
        ]
    },
    "root not, enum, const": {
        **_object(a=STRING),
        "not": {"required": ["a"]},
        "enum": [{}, {"a": "x"}],
    },
    "root of another type": {"type": "string"},
    "root of two types": {"type": ["object", "null"], "properties": {"a": STRING}},
    "nested unions": _object(
        a={"oneOf": [STRING, {"anyOf": [{"type": "integer"}, {"type": "null"}]}]},
        b={"allOf": [{"$ref": "#/$defs/S"}], "description": "words"},
        c={"allOf": [STRING, {"maxLength": 3}]},
        d={"not": STRING},
        e={"type": "string", "anyOf": [{"minLength": 2}, {"pattern": "^a"}]},
    )
    | {"$defs": {"S": STRING}},
    "free names": _object(
        env={"type": "object", "additionalProperties": STRING},
        any={"type": "object", "additionalProperties": True},
        pat={"type": "object", "patternProperties": {"^a": STRING}, "additionalProperties": False},
    ),
    "boolean subschemas": _object(a=True, b=False, c={"type": "array", "items": True}),
    "required names nobody described": {**_object(a=STRING), "required": ["a", "ghost"]},
    "deep": _deep(40),
    "too deep": _deep(200),
    "A5 odd keys": {
        **_object(
            **{
                "user@id": STRING,
                "a b": STRING,
                "$filter": STRING,
                "имя": STRING,
                "x" * 70: STRING,
                "é" * 30: STRING,
                "k..x": STRING,
                "": STRING,
            }
        ),
        "required": ["user@id", "$filter"],
    },
    "200 properties": _object(**{f"p{i}": STRING for i in range(200)}),
    "6,000 properties": _object(**{f"p{i}": STRING for i in range(6_000)}),
    "1,200 enum values": _object(a={"type": "string", "enum": [f"v{i}" for i in range(1_200)]}),
    "12 levels of objects": _nested(12),
    "unicode": _object(
        città={"type": "string", "description": "😀 漢字 \u2028", "enum": ["é", "漢"]}
    ),
    "names of keywords": _object(
        properties=STRING,
        type=STRING,
        required={"type": "boolean"},
        items=_object(enum=STRING),
    )
    | {"additionalProperties": False},
    "JS20 no schemas": {"type": "object", "properties": {"f": "true", "g": 1, "h": None, "i": []}},
    "malformed keywords": _object(
        a={"type": "float"},
        b={"type": "string", "enum": "x"},
        c={"type": 3},
        d={"required": True},
        e={"type": "object", "properties": []},
    ),
    "huge numbers": _object(n={"type": "integer", "maximum": 10**30, "default": 10**25}),
}
