"""Boolean applicators and references. The signature is described in `structgen.core.json_schema.keywords_scalar`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from structgen.core.json_schema import checks
from structgen.core.json_schema.formula import language
from structgen.core.json_schema.formula.language import TRUE, Formula, and_, one, or_, unordered
from structgen.core.json_schema.formula.values import TYPE_BITS
from structgen.core.json_schema.keyword import TABLE, Keyword, Schema, always, if_valid
from structgen.core.json_schema.keywords_scalar import type_draft4
from structgen.core.json_schema.pointers import Pointer, sibling

if TYPE_CHECKING:
    from structgen.core.json_schema.context import Context


def _children(value: Any, pointer: Pointer, context: Context) -> list[Formula]:
    children = checks.array(value, pointer, nonempty=True)
    return [context.descend(child, pointer, index, in_place=True) for index, child in enumerate(children)]


@Keyword("allOf", "applicator", since=4, subschemas="list", applies=always)
def allOf(value: Any, schema: Schema, pointer: Pointer, context: Context) -> Formula:
    """All of the schemas."""
    return context.conjoin(_children(value, pointer, context))


@Keyword("anyOf", "applicator", since=4, subschemas="list", applies=if_valid)
def anyOf(value: Any, schema: Schema, pointer: Pointer, context: Context) -> Formula:
    """At least one of the schemas."""
    return or_(*_children(value, pointer, context))


@Keyword("oneOf", "applicator", since=4, subschemas="list", applies=if_valid)
def oneOf(value: Any, schema: Schema, pointer: Pointer, context: Context) -> Formula:
    """Exactly one of the schemas; which one is said by the schemas as written, whatever is closed below them."""
    children = _children(value, pointer, context)
    if not context.closes:
        return one(*children)
    written = [unordered(child) for child in _children(value, pointer, context.as_written)]
    if written == [unordered(child) for child in children]:
        return one(*children)
    return and_(one(*written), or_(*children))


@Keyword("not", "applicator", since=4, subschemas="one", is_condition=True)
def not_(value: Any, schema: Schema, pointer: Pointer, context: Context) -> Formula:
    """Not the schema (``not``)."""
    return language.not_(unordered(context.as_written.lower(value, pointer, in_place=True)))


@Keyword("if", "applicator", since=7, subschemas="one", applies=if_valid, is_condition=True)
def if_(value: Any, schema: Schema, pointer: Pointer, context: Context) -> Formula:
    """With ``then`` and ``else`` of the same schema."""
    condition = context.as_written.lower(value, pointer, in_place=True)
    then, otherwise = (
        context.lower(schema[branch], sibling(pointer, branch), in_place=True)
        if branch in schema and context.has(branch)
        else TRUE
        for branch in ("then", "else")
    )
    if then is otherwise:
        return then
    negated = language.not_(unordered(condition))
    if otherwise is TRUE:
        return or_(negated, then)
    return or_(and_(condition, then), and_(negated, otherwise))


def _if_condition(child: Any, schema: Schema, pointer: Pointer, context: Context) -> Formula:
    return if_valid(schema["if"], schema, sibling(pointer, "if"), context.as_written)


def _unless_condition(child: Any, schema: Schema, pointer: Pointer, context: Context) -> Formula:
    return language.not_(_if_condition(child, schema, pointer, context))


TABLE += (
    Keyword(name, "applicator", since=7, subschemas="one", needs="if", applies=applies)
    for name, applies in (("then", _if_condition), ("else", _unless_condition))
)


@Keyword("$ref", "core", is_reference=True)
def ref(value: Any, schema: Schema, pointer: Pointer, context: Context) -> Formula:
    """``$ref``."""
    return context.refer(checks.string(value, pointer), pointer)


@Keyword("$dynamicRef", "core", since=2020, is_reference=True)
def dynamicRef(value: Any, schema: Schema, pointer: Pointer, context: Context) -> Formula:
    """``$dynamicRef`` (2020-12)."""
    return context.refer(checks.string(value, pointer), pointer, dynamic=True)


@Keyword("$recursiveRef", "core", since=2019, until=2019, is_reference=True)
def recursiveRef(value: Any, schema: Schema, pointer: Pointer, context: Context) -> Formula:
    """``$recursiveRef`` (2019-09); its value is always "#"."""
    if value != "#":
        checks.refuse(pointer, '"#"', value)
    return context.refer("#", pointer, dynamic=True)


# --- draft 3 ---------------------------------------------------------------------------------------------------------


def _type_applies(child: Any, schema: Schema, pointer: Pointer, context: Context) -> Formula:
    """One type is all that there is; of several, schemas apply where they hold."""
    return if_valid(child, schema, pointer, context) if isinstance(child, dict) and pointer[1] != "type" else TRUE


@Keyword("type", "", until=3, subschemas="one or list", applies=_type_applies)
def type_draft3(value: Any, schema: Schema, pointer: Pointer, context: Context) -> Formula:
    """Draft 3: a type, "any", a schema, or an array of those. Names that it does not define allow anything."""
    if isinstance(value, list):
        return or_(*[_type_draft3(item, schema, (pointer, index), context) for index, item in enumerate(value)])
    return _type_draft3(value, schema, pointer, context)


def _type_draft3(value: Any, schema: Schema, pointer: Pointer, context: Context) -> Formula:
    if isinstance(value, dict):
        return context.lower(value, pointer, in_place=True)
    name = checks.string(value, pointer)
    return type_draft4(name, schema, pointer, context) if name in TYPE_BITS or name == "integer" else TRUE


@Keyword("disallow", "", until=3, subschemas="one or list", is_condition=True)
def disallow(value: Any, schema: Schema, pointer: Pointer, context: Context) -> Formula:
    """None of what ``type`` of draft 3 would allow."""
    return language.not_(unordered(type_draft3(value, schema, pointer, context.as_written)))


@Keyword("extends", "", until=3, subschemas="one or list", applies=always)
def extends(value: Any, schema: Schema, pointer: Pointer, context: Context) -> Formula:
    """The schema too, or all of several."""
    if isinstance(value, list):
        return context.conjoin([context.descend(child, pointer, i, in_place=True) for i, child in enumerate(value)])
    return context.lower(value, pointer, in_place=True)
