"""What a schema's values look like, roughly and briefly: for telling a model, not for judging a text.

Members, items, types, options and descriptions are kept; bounds, patterns and conditions are left to the mask. A shape
is small whatever the schema: references are followed to a depth that keeps it so.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeAlias

from structgen.core.json_schema.dialects import BY_NAME
from structgen.core.json_schema.pointers import ROOT
from structgen.errors import SchemaError

if TYPE_CHECKING:
    from referencing import Registry

    from structgen.core.json_schema.references import Resource, Resources

DEPTHS = (12, 6, 4, 3, 2, 1)  # that are tried, one after the other, until a shape is small
MAX_SHAPES = 256  # of one schema; where there are more, what lies deepest is left out
MAX_OPTIONS = 8  # of a union


@dataclass(frozen=True)
class Anything:
    """Any value: nothing is known of it, it is nested too deeply, or it is the schema ``name`` around it again."""

    name: str = ""


@dataclass(frozen=True)
class Scalar:
    """A value of a JSON type that has no parts; ``format``: its schema's, or ""."""

    type: str
    format: str = ""


@dataclass(frozen=True)
class Options:
    """One of some values."""

    values: tuple[Any, ...]


@dataclass(frozen=True)
class ObjectMember:
    """A member of an object."""

    shape: Shape
    is_required: bool = False
    note: str = ""


@dataclass(frozen=True)
class Object:
    """An object: its members by name, and what others are (None: nothing is said of others)."""

    members: Mapping[str, ObjectMember]
    others: Shape | None = None


@dataclass(frozen=True)
class Array:
    """An array: what its first items are, and its others (None: there are none)."""

    first: tuple[Shape, ...]
    others: Shape | None


@dataclass(frozen=True)
class Union:
    """One of several ways."""

    options: tuple[Shape, ...]


Shape: TypeAlias = Anything | Scalar | Options | Object | Array | Union
ANYTHING = Anything()
_TYPES = {
    "object": ("properties", "additionalProperties", "patternProperties", "required"),
    "array": ("items", "prefixItems"),
    "string": ("minLength", "maxLength", "pattern", "format"),
    "number": ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"),
}


class _TooLarge(Exception):
    """More shapes than ``MAX_SHAPES``."""


def shape_of(
    schema: Mapping[str, Any] | bool, registry: Registry[Any] | None = None, *, dialect: str = "draft2020-12"
) -> Shape:
    """The shape of a schema's values, as deep as one of at most ``MAX_SHAPES`` shapes can be.

    Nothing is refused: a reference that leads nowhere is any value. ``dialect``: of schemas that name none.
    """
    from structgen.core.json_schema.references import Resources, dialect_of

    default = BY_NAME[dialect]
    try:
        resources = Resources(schema, dialect_of(schema, default, registry), default, registry)
    except SchemaError:  # an identifier or a dialect that compiling refuses
        return ANYTHING
    for depth in DEPTHS:
        try:
            return _Reader(resources).read(schema, resources.root, depth)
        except _TooLarge:
            continue
    return ANYTHING


def cut(shape: Shape, depth: int, most: int | None = None) -> Shape:
    """A shape without what is nested deeper than ``depth``, and without more than ``most`` members of an object."""
    if isinstance(shape, Union):
        return Union(tuple(cut(option, depth, most) for option in shape.options))
    if not isinstance(shape, Object | Array):
        return shape
    if depth <= 0:
        return ANYTHING
    if isinstance(shape, Array):
        first = tuple(cut(each, depth - 1, most) for each in shape.first[:most])
        return Array(first, None if shape.others is None else cut(shape.others, depth - 1, most))
    kept = islice(shape.members.items(), most)
    members = {name: replace(member, shape=cut(member.shape, depth - 1, most)) for name, member in kept}
    others = ANYTHING if len(members) < len(shape.members) else shape.others
    return Object(members, None if others is None else cut(others, depth - 1, most))


class _Reader:
    def __init__(self, resources: Resources) -> None:
        self._resources = resources
        self._open: dict[int, str] = {}  # what references have led to and is being read, with its name
        self._count = 0

    def read(self, schema: Any, around: Resource, depth: int) -> Shape:
        """The shape of a schema that stands in ``around``."""
        if not isinstance(schema, dict) or depth <= 0:
            return ANYTHING
        self._count += 1
        if self._count > MAX_SHAPES:
            raise _TooLarge
        try:
            around = self._resources.enter(schema, ROOT, around)
        except SchemaError:
            return ANYTHING
        shape = self._own(schema, around, depth)
        for reference in ("$ref", "$dynamicRef", "$recursiveRef"):
            if isinstance(schema.get(reference), str):
                shape = _both(shape, self._referred(schema[reference], around, depth))
        for each in _schemas(schema.get("allOf")):
            shape = _both(shape, self.read(each, around, depth))
        for keyword in ("anyOf", "oneOf"):
            options = [self.read(each, around, depth) for each in _schemas(schema.get(keyword))]
            shape = _both(shape, _union(options))
        return shape

    def _referred(self, reference: str, around: Resource, depth: int) -> Shape:
        try:
            target, _, resource = self._resources.resolve(reference, around, ROOT)
        except SchemaError:
            return ANYTHING
        if id(target) in self._open:
            return Anything(self._open[id(target)])
        self._open[id(target)] = reference.rpartition("/")[2].lstrip("#") or "the whole"
        try:
            return self.read(target, resource, depth)
        finally:
            del self._open[id(target)]

    def _own(self, schema: dict[str, Any], around: Resource, depth: int) -> Shape:
        """By the keywords of the schema itself."""
        if "const" in schema:
            return Options((schema["const"],))
        if isinstance(schema.get("enum"), list) and schema["enum"]:
            return Options(tuple(schema["enum"]))
        given = schema.get("type")
        if given is None:
            given = next((kind for kind, keywords in _TYPES.items() if any(key in schema for key in keywords)), None)
        kinds = [kind for kind in (given if isinstance(given, list) else [given]) if isinstance(kind, str)]
        return _union([self._typed(kind, schema, around, depth) for kind in kinds])

    def _typed(self, kind: str, schema: dict[str, Any], around: Resource, depth: int) -> Shape:
        if kind == "object":
            return self._object(schema, around, depth - 1)
        if kind == "array":
            return self._array(schema, around, depth - 1)
        if kind == "any":
            return ANYTHING
        name = schema.get("format") if kind == "string" else None
        return Scalar(kind, name if isinstance(name, str) else "")

    def _object(self, schema: dict[str, Any], around: Resource, depth: int) -> Shape:
        given, required = schema.get("properties"), schema.get("required")
        properties: Mapping[str, Any] = given if isinstance(given, dict) else {}
        needed = set(filter(lambda name: isinstance(name, str), required)) if isinstance(required, list) else set()
        members = {
            name: ObjectMember(self.read(value, around, depth), name in needed, _note(value))
            for name, value in properties.items()
            if value is not False
        }
        members.update({name: ObjectMember(ANYTHING, True) for name in sorted(needed - properties.keys())})
        patterns = schema.get("patternProperties")
        others = [*patterns.values()] if isinstance(patterns, dict) else []
        if isinstance(schema.get("additionalProperties"), dict):
            others.append(schema["additionalProperties"])
        shapes = [self.read(value, around, depth) for value in others if value is not False]
        return Object(members, _union(shapes) if shapes else None)

    def _array(self, schema: dict[str, Any], around: Resource, depth: int) -> Shape:
        items = schema.get("items", True)
        first = items if isinstance(items, list) else schema.get("prefixItems")
        others = schema.get("additionalItems", True) if isinstance(items, list) else items
        prefix = tuple(self.read(each, around, depth) for each in _schemas(first))
        if others is False or (prefix and others is True):
            return Array(prefix, None)
        return Array(prefix, self.read(others, around, depth))


def _schemas(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _note(schema: Any) -> str:
    description = schema.get("description") if isinstance(schema, dict) else None
    return " ".join(description.split()) if isinstance(description, str) else ""


def _union(options: Iterable[Shape]) -> Shape:
    """Any of these; of none, anything."""

    def flat(shape: Shape) -> Iterator[Shape]:
        yield from shape.options if isinstance(shape, Union) else (shape,)

    distinct: list[Shape] = []
    for option in (each for shape in options for each in flat(shape)):
        if option not in distinct:
            distinct.append(option)
    if not distinct or any(option == ANYTHING for option in distinct):
        return ANYTHING
    return distinct[0] if len(distinct) == 1 else Union(tuple(distinct[:MAX_OPTIONS]))


def _both(one: Shape, other: Shape) -> Shape:
    """What satisfies both, as far as shapes tell; where they contradict, the first."""
    if one == ANYTHING or other == ANYTHING:
        return one if other == ANYTHING else other
    if isinstance(one, Union) or isinstance(other, Union):
        return _union(_pairs(one, other))
    if isinstance(one, Object) and isinstance(other, Object):
        return _joined(one, other)
    if isinstance(other, Options) and not isinstance(one, Options):
        return other
    return other if isinstance(one, Anything) else one


def _pairs(one: Shape, other: Shape) -> list[Shape]:
    first = one.options if isinstance(one, Union) else (one,)
    second = other.options if isinstance(other, Union) else (other,)
    return [_both(a, b) for a in first for b in second if kind_of(a) == kind_of(b)] or list(first)


def kind_of(shape: Shape) -> str:
    """The JSON type of a shape's values; "" where it is not known or there are several."""
    if isinstance(shape, Scalar):
        return shape.type
    if isinstance(shape, Options):
        kinds = {type_name(value) for value in shape.values}
        return kinds.pop() if len(kinds) == 1 else ""
    return {Object: "object", Array: "array"}.get(type(shape), "")


def type_name(value: Any) -> str:
    """The JSON type of a value."""
    if value is None or isinstance(value, bool):
        return "null" if value is None else "boolean"
    if isinstance(value, (str, dict, list)):
        return {str: "string", dict: "object", list: "array"}.get(type(value), "string")
    return "integer" if isinstance(value, int) else "number"


def _joined(one: Object, other: Object) -> Object:
    members = dict(one.members)
    for name, member in other.members.items():
        before = members.get(name, ObjectMember(ANYTHING))
        needed = before.is_required or member.is_required
        members[name] = ObjectMember(_both(before.shape, member.shape), needed, before.note or member.note)
    return Object(members, one.others if other.others is None else other.others)
