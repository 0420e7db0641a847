"""Keywords for arrays. The signature is described in `structgen.core.json_schema.keywords_scalar`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from structgen.core.json_schema import checks
from structgen.core.json_schema.formula.language import TRUE, UNIQ, Formula, Idx, Items, and_, not_, unordered
from structgen.core.json_schema.keyword import TABLE, Keyword, Schema
from structgen.core.json_schema.keywords_scalar import guard
from structgen.core.json_schema.pointers import Pointer, sibling

if TYPE_CHECKING:
    from structgen.core.json_schema.context import Context
    from structgen.core.json_schema.report import Status


def _number_of_schemas(value: Any, schema: Schema) -> int | None:
    """How many of the first items have a schema: so many as a list has; one schema is for all."""
    return len(value) if isinstance(value, list) else None


@Keyword("prefixItems", "applicator", since=2020, subschemas="list", evaluates_items=_number_of_schemas)
def prefixItems(value: Any, schema: Schema, pointer: Pointer, context: Context) -> Formula:
    """Schemas of the first items, one each."""
    children = checks.array(value, pointer)
    return and_(*[Idx(i, i + 1, context.descend(child, pointer, i)) for i, child in enumerate(children)])


@Keyword("items", "applicator", since=2020, subschemas="one", evaluates_items=_number_of_schemas)
def items(value: Any, schema: Schema, pointer: Pointer, context: Context) -> Formula:
    """From 2020-12 on: schema of the items after ``prefixItems``."""
    prefix = schema.get("prefixItems")
    if isinstance(value, list):
        hint = "An array of schemas is prefixItems from 2020-12 on; or declare an earlier dialect with $schema"
        checks.refuse(pointer, "a schema", value, hint=hint)
    return Idx(len(prefix) if isinstance(prefix, list) else 0, None, context.lower(value, pointer))


@Keyword("items", "applicator", until=2019, subschemas="one or list", evaluates_items=_number_of_schemas)
def items_draft3(value: Any, schema: Schema, pointer: Pointer, context: Context) -> Formula:
    """Up to 2019-09: one schema for all items, or one for each of the first items."""
    if isinstance(value, list):
        return prefixItems(value, schema, pointer, context)
    return Idx(0, None, context.lower(value, pointer))


def _additional_status(value: Any, schema: Schema, context: Context) -> tuple[Status, str] | None:
    is_array = isinstance(schema.get("items"), list)
    return None if is_array else ("ignored", "without effect unless items is an array")


@Keyword(
    "additionalItems",
    "applicator",
    until=2019,
    subschemas="one",
    evaluates_items=lambda value, schema: None if isinstance(schema.get("items"), list) else 0,
    status=_additional_status,
)
def additionalItems(value: Any, schema: Schema, pointer: Pointer, context: Context) -> Formula:
    """Without effect unless ``items`` is an array."""
    formula = context.lower(value, pointer)
    prefix = schema.get("items")
    return Idx(len(prefix), None, formula) if isinstance(prefix, list) else TRUE


@Keyword("minItems", "validation")
def minItems(value: Any, schema: Schema, pointer: Pointer, context: Context) -> Formula:
    """At least so many items."""
    return Items(TRUE, checks.count(value, pointer))


@Keyword("maxItems", "validation")
def maxItems(value: Any, schema: Schema, pointer: Pointer, context: Context) -> Formula:
    """At most so many items."""
    return guard("array", not_(Items(TRUE, checks.count(value, pointer) + 1)), schema)


@Keyword("uniqueItems", "validation")
def uniqueItems(value: Any, schema: Schema, pointer: Pointer, context: Context) -> Formula:
    """If true, no two items are equal."""
    return UNIQ if checks.boolean(value, pointer) else TRUE


@Keyword("contains", "applicator", since=6, until=2019, subschemas="one", is_condition=True)
@Keyword("contains", "applicator", since=2020, subschemas="one", is_condition=True, evaluates_matching=True)
def contains(value: Any, schema: Schema, pointer: Pointer, context: Context) -> Formula:
    """With ``minContains`` and ``maxContains`` of the same schema where the dialect has them."""
    formula = unordered(context.as_written.lower(value, pointer))
    least = schema.get("minContains", 1) if context.has("minContains") else 1
    parts: list[Formula] = [Items(formula, checks.count(least, sibling(pointer, "minContains")))]
    if "maxContains" in schema and context.has("maxContains"):
        most = checks.count(schema["maxContains"], sibling(pointer, "maxContains"))
        parts.append(guard("array", not_(Items(formula, most + 1)), schema))
    return and_(*parts)


TABLE += (Keyword(name, "validation", since=2019, needs="contains") for name in ("minContains", "maxContains"))
