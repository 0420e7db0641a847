"""Hostile JSON Schemas, for `benchmarks/hostile.py`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def _nested(keyword: str, depth: int, inner: Any) -> Any:
    for _ in range(depth):
        inner = {keyword: inner if keyword in ("items", "not") else {"a": inner}}
    return inner


def _tagged(count: int) -> dict[str, Any]:
    """Objects that a constant tells apart."""
    return {
        "oneOf": [
            {
                "type": "object",
                "properties": {"tag": {"const": f"t{i}"}, f"p{i}": {"type": "integer"}},
                "required": ["tag"],
            }
            for i in range(count)
        ]
    }


def _overlapping(count: int) -> dict[str, Any]:
    """Objects that nothing tells apart."""
    return {"oneOf": [{"type": "object", "properties": {f"p{i}": {"type": "integer"}}} for i in range(count)]}


def _alternatives_of_alternatives(count: int, width: int) -> dict[str, Any]:
    return {
        "allOf": [
            {"oneOf": [{"properties": {f"a{i}_{j}": {"const": j}}, "required": [f"a{i}_{j}"]} for j in range(width)]}
            for i in range(count)
        ]
    }


def _doubling_references(count: int) -> dict[str, Any]:
    """Definitions each of which refers to the next twice."""
    found: dict[str, Any] = {
        f"d{i}": {"properties": {"a": {"$ref": f"#/$defs/d{i + 1}"}, "b": {"$ref": f"#/$defs/d{i + 1}"}}}
        for i in range(count)
    }
    return {"$ref": "#/$defs/d0", "$defs": {**found, f"d{count}": {"type": "integer"}}}


def _chain(count: int) -> dict[str, Any]:
    found: dict[str, Any] = {f"d{i}": {"$ref": f"#/$defs/d{i + 1}"} for i in range(count)}
    return {"$ref": "#/$defs/d0", "$defs": {**found, f"d{count}": {"type": "integer"}}}


_ONE_SPELLING = "^(a|b)*a(a|b){%d}$"

JSON: list[tuple[str, Callable[[], Any]]] = [
    ("oneOf of 1,000 tagged objects", lambda: _tagged(1_000)),
    ("oneOf of 10,000 tagged objects", lambda: _tagged(10_000)),
    ("oneOf of 1,000 overlapping objects", lambda: _overlapping(1_000)),
    ("40 oneOf of 4 in allOf", lambda: _alternatives_of_alternatives(40, 4)),
    ("12 oneOf of 12 in allOf", lambda: _alternatives_of_alternatives(12, 12)),
    ("anyOf of 10,000 constants", lambda: {"anyOf": [{"const": f"c{i}"} for i in range(10_000)]}),
    ("enumeration of 100,000 strings", lambda: {"enum": [f"value {i}" for i in range(100_000)]}),
    ("enumeration of 10,000 objects", lambda: {"enum": [{"a": i, "b": [i]} for i in range(10_000)]}),
    ("20,000 declared members", lambda: {"properties": {f"p{i}": {"type": "integer"} for i in range(20_000)}}),
    ("1,000 required members and their negation", lambda: {"not": {"required": [f"p{i}" for i in range(1_000)]}}),
    ("200 items deep", lambda: _nested("items", 200, {"type": "integer"})),
    ("100,000 items deep", lambda: _nested("items", 100_000, {"type": "integer"})),
    ("1,000 not deep", lambda: _nested("not", 1_000, {"type": "integer"})),
    ("5,000 properties deep", lambda: _nested("properties", 5_000, {"type": "integer"})),
    ("a chain of 5,000 references", lambda: _chain(5_000)),
    ("references doubling 100 times", lambda: _doubling_references(100)),
    ("pattern with 2^14 states", lambda: {"pattern": _ONE_SPELLING % 13}),
    ("pattern with 2^40 states", lambda: {"pattern": _ONE_SPELLING % 40}),
    ("20 patterns for keys", lambda: {"patternProperties": {f"^.*x{i}.*$": {"const": i} for i in range(20)}}),
    ("60 patterns for keys", lambda: {"patternProperties": {f"^.*x{i}.*$": {"const": i} for i in range(60)}}),
    ("30 patterns at once", lambda: {"allOf": [{"pattern": f"x{i}.*y{i}"} for i in range(30)]}),
    ("a pattern and a length of 65,536", lambda: {"pattern": "^(ab|cde)*$", "maxLength": 65_536, "minLength": 60_000}),
    ("at least 2^31 - 1 characters", lambda: {"type": "string", "minLength": 2**31 - 1}),
    ("at most 2^63 items", lambda: {"type": "array", "maxItems": 2**63}),
    ("a tuple of 50,000", lambda: {"prefixItems": [{"const": i} for i in range(50_000)]}),
    ("contains at least 5,000", lambda: {"contains": {"type": "integer"}, "minContains": 5_000}),
    ("10 contains", lambda: {"allOf": [{"contains": {"const": i}, "maxContains": 3} for i in range(10)]}),
    ("multiples of 2^40", lambda: {"type": "integer", "multipleOf": 2**40}),
    ("multiples of a number of 300 digits", lambda: {"type": "integer", "multipleOf": 10**299 + 7}),
    ("a bound of 1,500 digits", lambda: {"type": "integer", "minimum": 10**1_500}),
    ("300 of 300 distinct integers", lambda: _distinct(300)),
    ("10,000 of 10,000 distinct integers", lambda: _distinct(10_000)),
    (
        "distinct objects of 20 flags",
        lambda: {
            "type": "array",
            "uniqueItems": True,
            "minItems": 100,
            "items": {
                "type": "object",
                "properties": {f"f{i}": {"type": "boolean"} for i in range(20)},
                "additionalProperties": False,
            },
        },
    ),
    (
        "recursion through contains",
        lambda: {"contains": {"oneOf": [{"$ref": "#"}, {}]}, "minContains": 2, "maxContains": 5},
    ),
    (
        "unevaluated under 40 conditions",
        lambda: {
            "anyOf": [{"properties": {f"p{i}": {"const": i}}} for i in range(40)],
            "unevaluatedProperties": False,
        },
    ),
]


def _distinct(count: int) -> dict[str, Any]:
    return {
        "type": "array",
        "uniqueItems": True,
        "minItems": count,
        "items": {"type": "integer", "minimum": 1, "maximum": count},
    }
