"""Hypothesis strategies: small JSON Schemas that the engine covers, and options to compile them with."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from structgen.options import JsonOptions

Schema = dict[str, Any]

NAMES = ["a", "b", "ab", "", "é", 'q"\nz', "a b", "\U0001f600"]
SCALARS = [None, True, False, 0, 1, -1, 12, 2.5, "", "a", "ab", "é", "\U0001f600", 'x"\\\nz']
PATTERNS = ["^a", "^[a-c]{2,4}$", "[0-9]{2}", "^(x|yz)*$", "^é+\\.?$", "^\\d{3}-[a-z]+$", '^"', "\\\\", "^[^a]{2}"]
KEY_PATTERNS = ["^a", "b", "^[0-9]{2}", "^é", "^x{3,}y"]
# No value satisfies these, the second and third only by their recursion.
NOTHING: list[Any] = [
    False,
    {"$ref": "#/$defs/none"},
    {"type": "array", "items": {"$ref": "#/$defs/none"}, "minItems": 1},
]
NONE = {"type": "object", "properties": {"none": {"$ref": "#/$defs/none"}}, "required": ["none"]}
FORMATS = ["ipv4", "uuid"]  # those on which Python agrees with the standards


def counts(keyword: str, most: int) -> st.SearchStrategy[Schema]:
    """``minKeyword`` and ``maxKeyword``, either, both or neither."""
    small = st.integers(0, most)
    return st.one_of(
        st.just({}),
        small.map(lambda n: {f"min{keyword}": n}),
        small.map(lambda n: {f"max{keyword}": n}),
        st.tuples(small, small).map(lambda pair: {f"min{keyword}": min(pair), f"max{keyword}": max(pair)}),
    )


@st.composite
def numbers(draw: st.DrawFn) -> Schema:
    """Numbers with bounds and steps that binary floating point holds exactly."""
    schema: Schema = {"type": draw(st.sampled_from(["integer", "number"]))}
    bound = st.sampled_from([-100, -3, -0.5, 0, 1, 2.25, 17, 1000, 65535])
    for keyword in ("minimum", "exclusiveMinimum", "maximum", "exclusiveMaximum"):
        if draw(st.integers(0, 3)) == 0:
            schema[keyword] = draw(bound)
    if draw(st.integers(0, 3)) == 0:
        schema["multipleOf"] = draw(st.sampled_from([1, 3, 0.5, 0.25, 10]))
    return schema


@st.composite
def strings(draw: st.DrawFn) -> Schema:
    """Strings with lengths, a pattern or a format."""
    schema: Schema = {"type": "string", **draw(counts("Length", 6))}
    kind = draw(st.integers(0, 3))
    if kind == 0:
        schema["pattern"] = draw(st.sampled_from(PATTERNS))
    elif kind == 1:
        return {"type": "string", "format": draw(st.sampled_from(FORMATS))}
    return schema


def scalars() -> st.SearchStrategy[Schema]:
    """Schemas of values without members."""
    some = st.lists(st.sampled_from(SCALARS), min_size=1, max_size=4, unique_by=repr)
    return st.one_of(
        st.sampled_from([{"type": "null"}, {"type": "boolean"}, {"type": ["string", "null"]}, {"const": "ab"}]),
        some.map(lambda values: {"enum": values}),
        numbers(),
        strings(),
    )


@st.composite
def objects(draw: st.DrawFn, inner: st.SearchStrategy[Any]) -> Schema:
    """Objects with declared, required, forbidden, dependent, patterned and additional members, and limits on them."""
    inner = st.one_of(*[inner] * 7, st.sampled_from(NOTHING))
    names = draw(st.lists(st.sampled_from(NAMES), max_size=4, unique=True))
    schema: Schema = {"type": "object", "properties": {name: draw(inner) for name in names}}
    if draw(st.booleans()):
        schema["required"] = draw(st.lists(st.sampled_from([*names, "z"]), max_size=3, unique=True))
    if names and draw(st.integers(0, 3)) == 0:
        needed = draw(st.lists(st.sampled_from(names), max_size=2, unique=True))
        schema["dependentRequired"] = {draw(st.sampled_from(names)): needed}
    if draw(st.integers(0, 3)) == 0:
        schema["patternProperties"] = {draw(st.sampled_from(KEY_PATTERNS)): draw(inner)}
    if draw(st.integers(0, 5)) == 0:
        schema["propertyNames"] = {"pattern": draw(st.sampled_from(KEY_PATTERNS))}
    if draw(st.booleans()):
        schema["additionalProperties"] = draw(st.one_of(st.booleans(), inner))
    if draw(st.integers(0, 2)) == 0:
        schema.update(draw(counts("Properties", len(names) + 1)))
    return schema


@st.composite
def arrays(draw: st.DrawFn, inner: st.SearchStrategy[Any]) -> Schema:
    """Arrays and tuples."""
    schema: Schema = {"type": "array", **draw(counts("Items", 3))}
    if draw(st.booleans()):
        schema["items"] = draw(st.one_of(inner, st.just(False)))
    if draw(st.integers(0, 2)) == 0:
        schema["prefixItems"] = draw(st.lists(inner, min_size=1, max_size=3))
    return schema


def choices(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Schema]:
    """Alternatives, overlapping ones included."""
    some = st.lists(inner, min_size=2, max_size=3)
    return st.tuples(st.sampled_from(["anyOf", "oneOf", "anyOf", "allOf"]), some).map(lambda pair: {pair[0]: pair[1]})


def _compound(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    child = st.one_of(inner, inner, st.just({"$ref": "#"}), st.just({"$ref": "#/$defs/one"}))
    return st.one_of(objects(child), arrays(child), choices(inner), objects(child))


@st.composite
def schemas(draw: st.DrawFn, leaves: int = 6) -> Schema:
    """Schemas of 2020-12, recursive ones included. Some have no value, and a few are not covered by the engine."""
    root = draw(st.recursive(scalars(), _compound, max_leaves=leaves))
    return {**root, "$defs": {"one": draw(scalars()), "none": NONE}}


@st.composite
def options(draw: st.DrawFn) -> JsonOptions:
    """Every way to spell."""
    return JsonOptions(
        key_order=draw(st.sampled_from(["declared", "any"])),
        whitespace=draw(st.sampled_from(["single", "compact", "any", 0, 1, 3])),
        max_whitespace_run=draw(st.sampled_from([16, 1, None])),
        string_escapes=draw(st.sampled_from(["minimal", "any"])),
        number_spellings=draw(st.sampled_from(["plain", "any"])),
        max_string_length=draw(st.sampled_from([None, None, 8])),
        max_number_length=draw(st.sampled_from(["auto", None, 12])),
    )
