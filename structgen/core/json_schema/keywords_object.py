"""Keywords for objects. The signature is described in `structgen.core.json_schema.keywords_scalar`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from structgen.core.json_schema import checks
from structgen.core.json_schema.formula.language import (
    FALSE,
    TRUE,
    All,
    And,
    Enum,
    Formula,
    Keys,
    Not,
    One,
    Or,
    Order,
    Pat,
    Type,
    absent,
    and_,
    members,
    not_,
    one,
    or_,
    present,
    record,
    spelled,
    unordered,
)
from structgen.core.json_schema.formula.values import STRING
from structgen.core.json_schema.keyword import TABLE, Keyword, Schema, if_present
from structgen.core.json_schema.keywords_scalar import guard, unicode_status

if TYPE_CHECKING:
    from structgen.core.json_schema.context import Context
    from structgen.core.json_schema.pointers import Pointer


def _declared_names(value: Any, schema: Schema, context: Context) -> Formula:
    return Enum(value) if isinstance(value, dict) else FALSE


def _declared_patterns(value: Any, schema: Schema, context: Context) -> Formula:
    patterns = value if isinstance(value, dict) else ()
    return or_(*[Pat(regex) for regex in patterns if context.enforces_pattern(regex)])


@Keyword("properties", "applicator", since=4, subschemas="map", evaluates_keys=_declared_names)
def properties(value: Any, schema: Schema, pointer: Pointer, context: Context) -> list[Formula]:
    """Schemas by key, and the order in which a writer of declared order puts them."""
    checks.mapping(value, pointer)
    lower = context.lower
    parts = members([(name, lower(child, (pointer, name), 1)) for name, child in value.items()])
    if context.declared_order:
        parts.append(Order(value))
    return parts


_NOTHING: list[str] = []
PLAIN = frozenset({"type", "properties", "required", "additionalProperties"})


def plain_object(schema: Schema, pointer: Pointer, context: Context) -> Formula | None:
    """The formula of a schema of ``type`` object with ``properties`` if no keywords but these, ``required`` and
    ``additionalProperties`` say anything, made at once; None: there are others, or something is malformed."""
    if not context.dialect.not_plain.isdisjoint(schema):
        return None
    children, required = schema["properties"], schema.get("required", _NOTHING)
    if children.__class__ is not dict or required.__class__ is not list:
        return None
    for name in required:
        if name.__class__ is not str:
            return None
    lower, others, ordinary = context.lower, TRUE, context.ordinary
    values: list[Formula] = []
    if not children.keys() >= set(required):
        context.note_required(required, children, (pointer, "required"))
    for keyword in schema:  # in this order errors and the report come
        if keyword == "properties":
            below = (pointer, keyword)
            for name, child in children.items():
                values.append(lower(child, (below, name), 1))
        elif keyword == "additionalProperties":
            others = lower(schema[keyword], (pointer, keyword))
        elif keyword not in ordinary:
            context.note_word(keyword, pointer)
    return record(tuple(children), tuple(values), tuple(required), others, context.declared_order)


@Keyword(
    "patternProperties",
    "applicator",
    subschemas="map",
    evaluates_keys=_declared_patterns,
    status=lambda value, schema, context: unicode_status(value) if isinstance(value, dict) else None,
)
def patternProperties(value: Any, schema: Schema, pointer: Pointer, context: Context) -> Formula:
    """Schemas of all members whose key matches."""
    checks.mapping(value, pointer)
    children = [(regex, context.descend(child, pointer, regex)) for regex, child in value.items()]
    return and_(*[All(Pat(regex), child) for regex, child in children if context.enforces_pattern(regex)])


@Keyword("additionalProperties", "applicator", subschemas="one", evaluates_keys=lambda *_: TRUE)
def additionalProperties(value: Any, schema: Schema, pointer: Pointer, context: Context) -> Formula:
    """Schema of the members that neither ``properties`` nor ``patternProperties`` of this schema names."""
    return All(not_(declared_keys(schema, context)), context.lower(value, pointer))


def declared_keys(schema: Schema, context: Context) -> Formula:
    """The keys that ``properties`` and ``patternProperties`` of this schema speak of."""
    names = _declared_names(schema.get("properties"), schema, context)
    return or_(names, _declared_patterns(schema.get("patternProperties"), schema, context))


@Keyword("required", "validation", since=4, names_members=True)
def required(value: Any, schema: Schema, pointer: Pointer, context: Context) -> Formula | list[Formula]:
    """Keys that must be present: not absent."""
    names = checks.strings(value, pointer)
    declared = schema.get("properties")
    if isinstance(declared, dict):
        context.note_required(names, declared, pointer)
    parts = [present(name) for name in names]
    return parts if schema.get("type") == "object" else guard("object", and_(*parts), schema)


@Keyword("minProperties", "validation", since=4)
def minProperties(value: Any, schema: Schema, pointer: Pointer, context: Context) -> Formula:
    """At least so many members."""
    return Keys(checks.count(value, pointer))


@Keyword("maxProperties", "validation", since=4)
def maxProperties(value: Any, schema: Schema, pointer: Pointer, context: Context) -> Formula:
    """At most so many members."""
    return guard("object", not_(Keys(checks.count(value, pointer) + 1)), schema)


@Keyword("propertyNames", "applicator", since=6, subschemas="one", is_condition=True)
def propertyNames(value: Any, schema: Schema, pointer: Pointer, context: Context) -> Formula:
    """Schema of the keys: no member whose key violates it."""
    return All(not_(of_strings(unordered(context.as_written.lower(value, pointer)))), FALSE)


def of_strings(formula: Formula, done: dict[Formula, Formula] | None = None) -> Formula:
    """The formula restricted to strings: what it says of types is decided, atoms of other types are true.

    ``done``: what became of parts, so that those that are shared are looked at once.
    """
    done = {} if done is None else done
    restricted = done.get(formula)
    if restricted is None:
        restricted = done[formula] = _of_strings(spelled(formula), done)
    return restricted


def _of_strings(formula: Formula, done: dict[Formula, Formula]) -> Formula:
    if isinstance(formula, Type):
        return TRUE if formula.mask & STRING else FALSE
    if isinstance(formula, Enum):
        return Enum(value for value in formula.values if isinstance(value, str))
    if isinstance(formula, Not):
        return not_(of_strings(formula.arg, done))
    if isinstance(formula, (And, Or, One)):
        build = {And: and_, Or: or_, One: one}[formula.__class__]
        return build(*[of_strings(part, done) for part in formula.args])
    return formula if formula.__class__.__name__ in ("Pat", "Format", "Len", "Quoted", "Phrased", "Ref") else TRUE


@Keyword("dependentRequired", "validation", since=2019, names_members=True)
def dependentRequired(value: Any, schema: Schema, pointer: Pointer, context: Context) -> Formula:
    """Keys that must be present if another is."""
    checks.mapping(value, pointer)
    return and_(*[_needs(name, checks.strings(names, (pointer, name))) for name, names in value.items()])


def _needs(name: str, names: list[str]) -> Formula:
    return or_(absent(name), and_(*map(present, names)))


@Keyword("dependentSchemas", "applicator", since=2019, subschemas="map", applies=if_present)
def dependentSchemas(value: Any, schema: Schema, pointer: Pointer, context: Context) -> Formula:
    """Schemas of the whole object if a key is present."""
    checks.mapping(value, pointer)
    return and_(
        *[or_(absent(name), context.descend(child, pointer, name, in_place=True)) for name, child in value.items()]
    )


# (from 2019-09 on two keywords replace it, and validators may go on enforcing it (core, section "Compatibility"; the
# suite's optional/dependencies-compatibility): whoever writes it means it)
@Keyword("dependencies", "", subschemas="map", applies=if_present, names_members=True)
def dependencies(value: Any, schema: Schema, pointer: Pointer, context: Context) -> Formula:
    """Up to draft 7 (draft 3 also allows a single name): a schema or names."""
    checks.mapping(value, pointer)
    parts = []
    for name, child in value.items():
        if isinstance(child, str) and context.dialect.name == "draft3":
            parts.append(_needs(name, [child]))
        elif isinstance(child, list):
            parts.append(_needs(name, checks.strings(child, (pointer, name))))
        else:
            parts.append(or_(absent(name), context.descend(child, pointer, name, in_place=True)))
    return and_(*parts)


@Keyword("properties", "", until=3, subschemas="map", evaluates_keys=_declared_names)
def properties_draft3(value: Any, schema: Schema, pointer: Pointer, context: Context) -> list[Formula]:
    """Draft 3 marks a required member by ``required: true`` in its schema."""
    parts = properties(value, schema, pointer, context)
    names = [name for name, child in value.items() if isinstance(child, dict) and child.get("required") is True]
    return [*parts, guard("object", and_(*map(present, names)), schema)] if names else parts


TABLE.append(Keyword("required", "validation", until=3))  # a Boolean, which `properties_draft3` reads
