"""Keywords for arrays. The signature is described in `structgen.core.json_schema.keywords_scalar`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from structgen.core.json_schema import checks
from structgen.core.json_schema.formula.language import TRUE, UNIQ, Formula, Idx, Items, and_, not_, unordered
from structgen.core.json_schema.keywords_scalar import Schema, guard
from structgen.core.json_schema.places import Place, sibling

if TYPE_CHECKING:
    from structgen.core.json_schema.lowering import Context


def prefixItems(value: Any, schema: Schema, place: Place, context: Context) -> Formula:
    """Schemas of the first items, one each."""
    children = checks.array(value, place)
    return and_(*[Idx(i, i + 1, context.descend(child, place, i)) for i, child in enumerate(children)])


def items(value: Any, schema: Schema, place: Place, context: Context) -> Formula:
    """From 2020-12 on: schema of the items after ``prefixItems``."""
    prefix = schema.get("prefixItems")
    if isinstance(value, list):
        hint = "An array of schemas is prefixItems from 2020-12 on; or declare an earlier dialect with $schema"
        checks.refuse(place, "a schema", value, hint=hint)
    return Idx(len(prefix) if isinstance(prefix, list) else 0, None, context.lower(value, place))


def items_draft3(value: Any, schema: Schema, place: Place, context: Context) -> Formula:
    """Up to 2019-09: one schema for all items, or one for each of the first items."""
    if isinstance(value, list):
        return prefixItems(value, schema, place, context)
    return Idx(0, None, context.lower(value, place))


def additionalItems(value: Any, schema: Schema, place: Place, context: Context) -> Formula:
    """Without effect unless ``items`` is an array."""
    formula = context.lower(value, place)
    prefix = schema.get("items")
    return Idx(len(prefix), None, formula) if isinstance(prefix, list) else TRUE


def minItems(value: Any, schema: Schema, place: Place, context: Context) -> Formula:
    """At least so many items."""
    return Items(TRUE, checks.count(value, place))


def maxItems(value: Any, schema: Schema, place: Place, context: Context) -> Formula:
    """At most so many items."""
    return guard("array", not_(Items(TRUE, checks.count(value, place) + 1)), schema)


def uniqueItems(value: Any, schema: Schema, place: Place, context: Context) -> Formula:
    """If true, no two items are equal."""
    return UNIQ if checks.boolean(value, place) else TRUE


def contains(value: Any, schema: Schema, place: Place, context: Context) -> Formula:
    """With ``minContains`` and ``maxContains`` beside it where the dialect has them."""
    formula = unordered(context.as_written.lower(value, place))
    least = schema.get("minContains", 1) if context.has("minContains") else 1
    parts: list[Formula] = [Items(formula, checks.count(least, sibling(place, "minContains")))]
    if "maxContains" in schema and context.has("maxContains"):
        most = checks.count(schema["maxContains"], sibling(place, "maxContains"))
        parts.append(guard("array", not_(Items(formula, most + 1)), schema))
    return and_(*parts)
