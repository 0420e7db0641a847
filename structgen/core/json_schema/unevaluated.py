"""``unevaluatedProperties`` and ``unevaluatedItems`` as formulas, without annotations at run time.

Every keyword that evaluates members gives a pair (condition, class of keys): under that condition on the whole object
the members of the class count as evaluated. Keys are then cut into cells of equal membership, and each cell becomes one
clause: all its members satisfy the unevaluated schema, or one of the conditions that cover the cell holds. Items go the
same way by index intervals, except that ``contains`` (2020-12) covers single items by their value. The conditions are
formulas of the same value, so the result is exact; its size is linear unless pattern classes under different
conditions overlap (2 to the number of them, at most) or several ``contains`` are conditional.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import combinations
from typing import TYPE_CHECKING, Any, NamedTuple

from structgen.core.json_schema.formula.language import (
    FALSE,
    TRUE,
    All,
    And,
    Formula,
    Idx,
    Or,
    and_,
    not_,
    or_,
    unordered,
)
from structgen.core.json_schema.keywords_object import absent, declared_keys
from structgen.core.json_schema.places import Place, pointer
from structgen.errors import SchemaTooComplexError

if TYPE_CHECKING:
    from structgen.core.json_schema.lowering import Context

Schema = dict[str, Any]
SITE_STEPS, CELL_STEPS = 20, 4
"""What looking at a schema that applies in place costs, and at a class of keys."""


class Site(NamedTuple):
    """A schema object applied in place, and the condition under which its annotations count."""

    schema: Schema
    place: Place
    context: Context
    condition: Formula
    outermost: bool


def sites(schema: Schema, place: Place, context: Context) -> Iterator[Site]:
    """The schema itself and all that apply in place below it (allOf, if, $ref, ... but not ``not``)."""
    todo = [Site(schema, place, context, TRUE, True)]
    seen = set()
    while todo:
        site = todo.pop()
        key = (id(site.schema), site.context, site.condition)
        if key not in seen:
            seen.add(key)
            context.budget.spend(SITE_STEPS + breadth(site.condition))
            yield site
            for child, where, around, condition in in_place(site):
                condition = and_(site.condition, condition)
                if isinstance(child, dict):
                    inner = around.within(child, where)
                    todo.append(Site(child, where, inner, condition, False))


def in_place(site: Site) -> Iterator[tuple[Any, Place, Context, Formula]]:
    """The in-place subschemas of a schema that holds, each with the condition under which it holds too."""
    schema, place, context = site.schema, site.place, site.context
    for keyword in ("$ref", "$dynamicRef", "$recursiveRef"):
        if isinstance(schema.get(keyword), str) and context.has(keyword):
            child, where, around = context.target(schema[keyword], (place, keyword), keyword != "$ref")
            yield child, where, around, TRUE
    if is_only_ref(site):
        return
    for keyword in ("allOf", "anyOf", "oneOf"):
        if isinstance(schema.get(keyword), list) and context.has(keyword):
            for i, child in enumerate(schema[keyword]):
                where = ((place, keyword), i)
                yield child, where, context, TRUE if keyword == "allOf" else _holds(child, where, context)
    if "if" in schema and context.has("if"):
        condition = _holds(schema["if"], (place, "if"), context.as_written)
        yield schema["if"], (place, "if"), context.as_written, condition
        for keyword, branch in (("then", condition), ("else", not_(condition))):
            if keyword in schema:
                yield schema[keyword], (place, keyword), context, branch
    if isinstance(schema.get("dependentSchemas"), dict) and context.has("dependentSchemas"):
        for name, child in schema["dependentSchemas"].items():
            yield child, ((place, "dependentSchemas"), name), context, not_(absent(name))
    if context.dialect.overriding_ref:
        yield from _in_place_early(site)


def is_only_ref(site: Site) -> bool:
    """Whether ``$ref`` hides all other keywords of the schema."""
    return site.context.dialect.overriding_ref and "$ref" in site.schema


def _in_place_early(site: Site) -> Iterator[tuple[Any, Place, Context, Formula]]:
    """Of the keywords that only drafts up to 7 have: ``dependencies``, ``extends``, and schemas in ``type``."""
    schema, place, context = site.schema, site.place, site.context
    if isinstance(schema.get("dependencies"), dict) and context.has("dependencies"):
        for name, child in schema["dependencies"].items():
            yield child, ((place, "dependencies"), name), context, not_(absent(name))
    for keyword in ("extends", "type"):
        if context.has("extends"):
            several = isinstance(schema.get(keyword), list)
            for i, child in enumerate(schema[keyword] if several else [schema.get(keyword)]):
                where: Place = ((place, keyword), i) if several else (place, keyword)
                sure = keyword == "extends" or not several or not isinstance(child, dict)
                yield child, where, context, TRUE if sure else _holds(child, where, context)


def _holds(schema: Any, place: Place, context: Context) -> Formula:
    """The condition that a subschema of the same value holds.

    It is lowered as what a reference leads to, once: it may hold the very keyword that asks, behind a reference.
    """
    return unordered(context.lower_once(schema, place))


# --- objects ---------------------------------------------------------------------------------------------------------


def unevaluatedProperties(value: Any, schema: Schema, place: Place, context: Context) -> Formula:
    """The members that no other keyword in place evaluates satisfy the schema ``value``."""
    found = [(site.condition, evaluated_keys(site)) for site in sites(schema, place[0], context)]
    return remaining(found, context.lower(value, place), place, context)


def remaining(found: Iterable[tuple[Formula, Formula]], inner: Formula, place: Place, context: Context) -> Formula:
    """The members that are in no class of keys whose condition holds satisfy ``inner``."""
    covers: dict[Formula, Formula] = {}
    for condition, keys in found:
        if keys is not FALSE and condition is not FALSE:
            covers[condition] = or_(covers.get(condition, FALSE), keys)
    rest = not_(covers.pop(TRUE, FALSE))
    cells: dict[tuple[Formula, ...], Formula] = {(): rest}
    for condition, keys in covers.items():
        refined: dict[tuple[Formula, ...], Formula] = {}
        for conditions, cell in cells.items():
            for key, part in (((*conditions, condition), and_(cell, keys)), (conditions, and_(cell, not_(keys)))):
                if part is not FALSE:
                    refined[key] = part
        cells = refined
        context.budget.spend(CELL_STEPS * len(cells))
        check_clauses(len(cells), place, context)
    return and_(*[or_(All(cell, inner), *conditions) for conditions, cell in cells.items()])


def evaluated_keys(site: Site) -> Formula:
    """The class of keys that the site's own keywords evaluate."""
    schema, has = site.schema, site.context.has
    if is_only_ref(site):
        return FALSE
    if "additionalProperties" in schema and has("additionalProperties"):
        return TRUE
    if "unevaluatedProperties" in schema and not site.outermost and has("unevaluatedProperties"):
        return TRUE
    return declared_keys(schema, site.context) if has("properties") else FALSE


def breadth(formula: Formula) -> int:
    """How many parts a formula has on top, which is what joining it with others costs."""
    return len(formula.args) if isinstance(formula, (And, Or)) else 1


def check_clauses(clauses: int, place: Place, context: Context) -> None:
    limit = context.options.max_alternatives
    if clauses > limit:
        raise SchemaTooComplexError(
            f"its meaning takes more than {limit} clauses",
            budget="max_alternatives",
            limit=limit,
            pointer=pointer(place),
            keyword=str(place[1]),
        )


# --- arrays ----------------------------------------------------------------------------------------------------------


def unevaluatedItems(value: Any, schema: Schema, place: Place, context: Context) -> Formula:
    """The items that no other keyword in place evaluates satisfy the schema ``value``."""
    inner = context.lower(value, place)
    prefixes: list[tuple[int | None, Formula]] = []
    matches: dict[Formula, Formula] = {}
    for site in sites(schema, place[0], context):
        if site.condition is FALSE:
            continue
        prefixes.append((_evaluated_prefix(site), site.condition))
        if "contains" in site.schema and site.context.has("contains") and context.dialect.name != "draft2019-09":
            item = _holds(site.schema["contains"], (site.place, "contains"), site.context.as_written)
            matches[site.condition] = or_(matches.get(site.condition, FALSE), item)
    inner = or_(inner, matches.pop(TRUE, FALSE))
    bounds = sorted({0, *(end for end, _ in prefixes if end is not None)})
    clauses: list[Formula] = []
    for low, high in zip(bounds, [*bounds[1:], None], strict=True):
        covers = [condition for end, condition in prefixes if end is None or end > low]
        clauses.extend(or_(clause, *covers) for clause in _interval(low, high, inner, matches, place, context))
    return and_(*clauses)


def _interval(
    low: int, high: int | None, inner: Formula, matches: dict[Formula, Formula], place: Place, context: Context
) -> Iterator[Formula]:
    """For every set J of conditional ``contains``: one that is not in J applies, or J and ``inner`` cover the items."""
    check_clauses(2 ** len(matches), place, context)
    for size in range(len(matches) + 1):
        for chosen in combinations(matches, size):
            others = [condition for condition in matches if condition not in chosen]
            yield or_(Idx(low, high, or_(inner, *[matches[condition] for condition in chosen])), *others)


def _evaluated_prefix(site: Site) -> int | None:
    """How many of the first items the site's own keywords evaluate; None is all."""
    schema, has = site.schema, site.context.has
    if "unevaluatedItems" in schema and not site.outermost and has("unevaluatedItems"):
        return None
    if "items" in schema and not isinstance(schema["items"], list) and has("items"):
        return None
    if has("additionalItems") and isinstance(schema.get("items"), list):  # up to 2019-09
        return None if "additionalItems" in schema else len(schema["items"])
    prefix = schema.get("prefixItems")
    return len(prefix) if isinstance(prefix, list) and has("prefixItems") else 0
