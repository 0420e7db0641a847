"""Keywords for any type, numbers and strings: one function per keyword, named as the keyword.

All keyword functions, here and in the sibling modules, have one signature, ``(value, schema, pointer, context)``: the
keyword's value, the schema object that it stands in, the pointer to the value, and the context of lowering. They return
the formula that the keyword means, given the other keywords of ``schema`` (or a list of formulas: their conjunction),
and raise SchemaError if the value is malformed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from difflib import get_close_matches
from fractions import Fraction
from typing import TYPE_CHECKING, Any, NoReturn

from structgen.core.json_schema import checks
from structgen.core.json_schema.formula.language import (
    INT,
    TRUE,
    Enum,
    Format,
    Formula,
    Ge,
    Gt,
    Len,
    Mult,
    Pat,
    Type,
    and_,
    not_,
    or_,
)
from structgen.core.json_schema.formula.values import ANY, NUMBER, TYPE_BITS, Canonical
from structgen.core.json_schema.keyword import Keyword, Schema
from structgen.core.regex.unicode.properties import unicode_version

if TYPE_CHECKING:
    from structgen.core.json_schema.context import Context
    from structgen.core.json_schema.pointers import Pointer
    from structgen.core.json_schema.report import Status

_TYPES: dict[str, Formula] = {name: Type(bit) for name, bit in TYPE_BITS.items()}
_INTEGRAL = Mult(1)
_TYPES["integer"] = and_(Type(NUMBER), _INTEGRAL)
_TYPE_NAMES = "one of " + ", ".join(f'"{name}"' for name in _TYPES)
_OTHER_NAMES = {
    "int": "integer", "long": "integer", "str": "string", "text": "string", "float": "number", "double": "number",
    "bool": "boolean", "list": "array", "tuple": "array", "dict": "object", "map": "object", "none": "null",
}  # fmt: skip
_TYPES_DRAFT4 = _TYPES | {"integer": and_(Type(NUMBER), INT)}
BACKREFERENCE = "on request: backreferences are not regular"
_NOT_COUNTED = "but that the Punycode form of a label has at most 63 characters: that is not regular"
_OTHER = {bit: Type(ANY & ~bit) for bit in TYPE_BITS.values()}


def guard(name: str, formula: Formula, schema: Schema) -> Formula:
    """``formula``, or the value is of another type than ``name``. Needed where a keyword lowers to a negated atom.

    Omitted if ``type`` of the same schema says ``name``: the conjunction is the same and stays one of atoms.
    """
    return formula if schema.get("type") == name else or_(_OTHER[TYPE_BITS[name]], formula)


def number_guard(formula: Formula, schema: Schema) -> Formula:
    """`guard` for keywords of numbers, where ``type`` may also say integer."""
    return formula if schema.get("type") in ("integer", "number") else or_(_OTHER[NUMBER], formula)


@Keyword("type", "validation", since=6)
def type(value: Any, schema: Schema, pointer: Pointer, context: Context) -> Formula:
    """A type, or any of several; an integer is a number with zero fraction (1.0 is one)."""
    formula = _TYPES.get(value) if value.__class__ is str else None
    return formula or _types(value, pointer, _TYPES, _INTEGRAL)


@Keyword("type", "", since=4, until=4)
def type_draft4(value: Any, schema: Schema, pointer: Pointer, context: Context) -> Formula:
    """Up to draft 4 an integer is a number that is written without fraction and exponent (1.0 is none)."""
    formula = _TYPES_DRAFT4.get(value) if value.__class__ is str else None
    return formula or _types(value, pointer, _TYPES_DRAFT4, INT)


def _types(value: Any, pointer: Pointer, types: dict[str, Formula], integral: Formula) -> Formula:
    if isinstance(value, str):
        return types.get(value) or _refuse_type(pointer, value)
    if not isinstance(value, (list, tuple)) or not value:
        checks.refuse(pointer, "a type or a non-empty array of types", value)
    names = checks.strings(value, pointer)
    mask = 0
    for index, name in enumerate(names):
        if name not in _TYPES:
            _refuse_type((pointer, index), name, within=1)
        mask |= TYPE_BITS.get(name, 0)
    if "integer" in names and not mask & NUMBER:
        return and_(Type(mask | NUMBER), integral)
    return Type(mask)


def meant_type(name: str) -> str | None:
    """The type that a name is, or was most likely meant to be."""
    return _OTHER_NAMES.get(name.lower()) or next(iter(get_close_matches(name, _TYPES, 1)), None)


def _refuse_type(pointer: Pointer, name: str, within: int = 0) -> NoReturn:
    """Refuse what is no type, with the nearest that is."""
    near = meant_type(name)
    checks.refuse(pointer, _TYPE_NAMES, name, within=within, hint=near and f'Did you mean "{near}"?')


@Keyword("enum", "validation")
def enum(value: Any, schema: Schema, pointer: Pointer, context: Context) -> Formula:
    """One of the values."""
    values: list[Canonical] = []
    for item in value if value.__class__ is list else checks.array(value, pointer):
        values.append(item if item.__class__ is str else checks.json_value(item, pointer))
    return Enum(values)


@Keyword("const", "validation", since=6)
def const(value: Any, schema: Schema, pointer: Pointer, context: Context) -> Formula:
    """The value."""
    return Enum([checks.json_value(value, pointer)])


@Keyword("divisibleBy", "", until=3)
@Keyword("multipleOf", "validation", since=4)
def multipleOf(value: Any, schema: Schema, pointer: Pointer, context: Context) -> Formula:
    """An integer multiple, exactly (0.3 is one of 0.1)."""
    divisor = checks.number(value, pointer)
    if divisor <= 0:
        checks.refuse(pointer, "a number greater than 0", value)
    return Mult(divisor)


@Keyword("minimum", "validation", since=6)
def minimum(value: Any, schema: Schema, pointer: Pointer, context: Context) -> Formula:
    """At least."""
    return Ge(checks.number(value, pointer))


@Keyword("exclusiveMinimum", "validation", since=6)
def exclusiveMinimum(value: Any, schema: Schema, pointer: Pointer, context: Context) -> Formula:
    """More than (a number from draft 6 on)."""
    return Gt(_bound(value, pointer))


@Keyword("maximum", "validation", since=6)
def maximum(value: Any, schema: Schema, pointer: Pointer, context: Context) -> Formula:
    """At most: not more than."""
    return number_guard(not_(Gt(checks.number(value, pointer))), schema)


@Keyword("exclusiveMaximum", "validation", since=6)
def exclusiveMaximum(value: Any, schema: Schema, pointer: Pointer, context: Context) -> Formula:
    """Less than: not at least (a number from draft 6 on)."""
    return number_guard(not_(Ge(_bound(value, pointer))), schema)


def _bound(value: Any, pointer: Pointer) -> int | Fraction:
    if isinstance(value, bool):
        hint = 'A boolean here is the form of draft 4; declare it: "$schema": "http://json-schema.org/draft-04/schema#"'
        checks.refuse(pointer, "a number", value, hint=hint)
    return checks.number(value, pointer)


@Keyword("minimum", "", until=4)
def minimum_draft4(value: Any, schema: Schema, pointer: Pointer, context: Context) -> Formula:
    """With ``exclusiveMinimum``, a boolean up to draft 4."""
    bound = checks.number(value, pointer)
    return Gt(bound) if schema.get("exclusiveMinimum") is True else Ge(bound)


@Keyword("maximum", "", until=4)
def maximum_draft4(value: Any, schema: Schema, pointer: Pointer, context: Context) -> Formula:
    """With ``exclusiveMaximum``, a boolean up to draft 4."""
    bound = checks.number(value, pointer)
    return number_guard(not_(Ge(bound) if schema.get("exclusiveMaximum") is True else Gt(bound)), schema)


@Keyword("exclusiveMinimum", "", until=4)
@Keyword("exclusiveMaximum", "", until=4)
def exclusive_draft4(value: Any, schema: Schema, pointer: Pointer, context: Context) -> Formula:
    """Draft 4's exclusiveMinimum and exclusiveMaximum modify their partner, which reads them."""
    checks.boolean(value, pointer)
    return TRUE


@Keyword("minLength", "validation")
def minLength(value: Any, schema: Schema, pointer: Pointer, context: Context) -> Formula:
    """At least so many code points."""
    return Len(checks.count(value, pointer))


@Keyword("maxLength", "validation")
def maxLength(value: Any, schema: Schema, pointer: Pointer, context: Context) -> Formula:
    """At most so many code points."""
    return guard("string", not_(Len(checks.count(value, pointer) + 1)), schema)


def unicode_status(expressions: Iterable[Any]) -> tuple[Status, str] | None:
    """What the report says where the version of Unicode decides what expressions match: by properties, and by case."""
    if any(re.search(r"\\[pP]\{|\(\?[ms]*i", expression) for expression in expressions if isinstance(expression, str)):
        reason = "by Unicode {}: a validator of another version may take characters otherwise that are newer than it"
        return "enforced", reason.format(unicode_version())
    return None


def _pattern_status(value: Any, schema: Schema, context: Context) -> tuple[Status, str] | None:
    if not isinstance(value, str) or context.enforces_pattern(value):
        return unicode_status([value])
    return "ignored", BACKREFERENCE


@Keyword("pattern", "validation", status=_pattern_status)
def pattern(value: Any, schema: Schema, pointer: Pointer, context: Context) -> Formula:
    """The expression matches somewhere in the string."""
    return Pat(value) if context.enforces_pattern(checks.string(value, pointer)) else TRUE


def _format_status(value: Any, schema: Schema, context: Context) -> tuple[Status, str] | None:
    if not isinstance(value, str):
        return None  # lowering refuses it
    if context.asserts_format(value):
        return "enforced", _NOT_COUNTED if value == "idn-hostname" else ""
    if value in context.dialect.formats:
        return "annotation", "formats are not asserted (options.assert_formats)"
    doubt = context.doubt_format(value)
    if doubt is not None:
        return "misspelt", doubt
    return "annotation", f"{value!r} is not a format of {context.dialect.name}"


@Keyword("format", "format", status=_format_status)
def format(value: Any, schema: Schema, pointer: Pointer, context: Context) -> Formula:
    """An annotation unless the options assert formats and the dialect defines the name."""
    checks.string(value, pointer)
    if not context.asserts_format(value):
        context.note_format(value, pointer)
        return TRUE
    from structgen.core.regex.formats import max_length  # deferred: automata are not needed to read a schema

    language = Format(value, context.dialect.name)
    longest = max_length(value, context.dialect.name)
    return language if longest is None else and_(language, guard("string", not_(Len(longest + 1)), schema))
