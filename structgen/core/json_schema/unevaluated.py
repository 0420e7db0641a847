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
)
from structgen.core.json_schema.keyword import Keyword, Schema, if_valid
from structgen.core.json_schema.pointers import Pointer, pointer_text
from structgen.errors import SchemaTooComplexError

if TYPE_CHECKING:
    from structgen.core.json_schema.context import Context

SITE_STEPS, CELL_STEPS = 20, 4
"""Steps for a schema that applies in place, and for a class of keys."""


class Site(NamedTuple):
    """A schema object applied in place, and the condition under which its annotations count."""

    schema: Schema
    pointer: Pointer
    context: Context
    condition: Formula
    outermost: bool


def sites(schema: Schema, pointer: Pointer, context: Context) -> Iterator[Site]:
    """The schema itself and all that apply in place below it (allOf, if, $ref, ... but not ``not``)."""
    todo = [Site(schema, pointer, context, TRUE, True)]
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


def in_place(site: Site) -> Iterator[tuple[Any, Pointer, Context, Formula]]:
    """The in-place subschemas of a schema that holds, each with the condition under which it holds too."""
    schema, pointer, context = site.schema, site.pointer, site.context
    for keyword in context.dialect.in_place:
        name = keyword.name
        if name not in schema:
            continue
        if keyword.is_reference:
            if isinstance(schema[name], str):
                yield *context.target(schema[name], (pointer, name), name != "$ref"), TRUE
        elif not is_only_ref(site) and (not keyword.needs or keyword.needs in schema):
            around = context.as_written if keyword.is_condition else context
            for child, where in keyword.children(schema[name], (pointer, name)):
                assert keyword.applies is not None
                yield child, where, around, keyword.applies(child, schema, where, around)


def is_only_ref(site: Site) -> bool:
    """Whether ``$ref`` hides the other keywords of the schema that speak of members and items."""
    return site.context.dialect.read_of(site.schema) is not site.schema


# --- objects ---------------------------------------------------------------------------------------------------------


@Keyword("unevaluatedProperties", "unevaluated", since=2019, subschemas="one", evaluates_keys=lambda *_: TRUE)
def unevaluatedProperties(value: Any, schema: Schema, pointer: Pointer, context: Context) -> Formula:
    """The members that no other keyword in place evaluates satisfy the schema ``value``."""
    evaluated = [(site.condition, evaluated_keys(site)) for site in sites(schema, pointer[0], context)]
    return remaining(evaluated, context.lower(value, pointer), pointer, context)


def remaining(
    evaluated: Iterable[tuple[Formula, Formula]], inner: Formula, pointer: Pointer, context: Context
) -> Formula:
    """The members that are in no class of keys whose condition holds satisfy ``inner``."""
    covers: dict[Formula, Formula] = {}
    for condition, keys in evaluated:
        if keys is not FALSE and condition is not FALSE:
            covers[condition] = or_(covers.get(condition, FALSE), keys)
    uncovered = not_(covers.pop(TRUE, FALSE))
    cells: dict[tuple[Formula, ...], Formula] = {(): uncovered}
    for condition, keys in covers.items():
        refined: dict[tuple[Formula, ...], Formula] = {}
        for conditions, cell in cells.items():
            for key, part in (((*conditions, condition), and_(cell, keys)), (conditions, and_(cell, not_(keys)))):
                if part is not FALSE:
                    refined[key] = part
        cells = refined
        context.budget.spend(CELL_STEPS * len(cells))
        check_clauses(len(cells), pointer, context)
    return and_(*[or_(All(cell, inner), *conditions) for conditions, cell in cells.items()])


def evaluated_keys(site: Site) -> Formula:
    """The class of keys that the site's own keywords evaluate."""
    if is_only_ref(site):
        return FALSE
    keys = [
        keyword.evaluates_keys(site.schema[keyword.name], site.schema, site.context)
        for keyword in _spoken(site)
        if keyword.evaluates_keys is not None
    ]
    return or_(*keys)


def _spoken(site: Site) -> Iterator[Keyword]:
    """The keywords of a schema, but for the one that asks what the others evaluate."""
    for keyword in site.context.dialect.keywords.values():
        if keyword.name in site.schema and not (site.outermost and keyword.vocabulary == "unevaluated"):
            yield keyword


def breadth(formula: Formula) -> int:
    """How many operands the formula has, which is what it costs to join it with others."""
    return len(formula.args) if isinstance(formula, (And, Or)) else 1


def check_clauses(clauses: int, pointer: Pointer, context: Context) -> None:
    limit = context.options.max_alternatives
    if clauses > limit:
        raise SchemaTooComplexError(
            f"its meaning takes more than {limit} clauses",
            budget="max_alternatives",
            limit=limit,
            pointer=pointer_text(pointer),
            keyword=str(pointer[1]),
        )


# --- arrays ----------------------------------------------------------------------------------------------------------


@Keyword("unevaluatedItems", "unevaluated", since=2019, subschemas="one", evaluates_items=lambda *_: None)
def unevaluatedItems(value: Any, schema: Schema, pointer: Pointer, context: Context) -> Formula:
    """The items that no other keyword in place evaluates satisfy the schema ``value``."""
    inner = context.lower(value, pointer)
    prefixes: list[tuple[int | None, Formula]] = []
    matches: dict[Formula, Formula] = {}
    for site in sites(schema, pointer[0], context):
        if site.condition is FALSE:
            continue
        prefixes.append((_evaluated_prefix(site), site.condition))
        for keyword in _spoken(site):
            if keyword.evaluates_matching:
                around = site.context.as_written
                item = if_valid(site.schema[keyword.name], site.schema, (site.pointer, keyword.name), around)
                matches[site.condition] = or_(matches.get(site.condition, FALSE), item)
    inner = or_(inner, matches.pop(TRUE, FALSE))
    bounds = sorted({0, *(end for end, _ in prefixes if end is not None)})
    clauses: list[Formula] = []
    for low, high in zip(bounds, [*bounds[1:], None], strict=True):
        covers = [condition for end, condition in prefixes if end is None or end > low]
        clauses.extend(or_(clause, *covers) for clause in _interval(low, high, inner, matches, pointer, context))
    return and_(*clauses)


def _interval(
    low: int, high: int | None, inner: Formula, matches: dict[Formula, Formula], pointer: Pointer, context: Context
) -> Iterator[Formula]:
    """For every set J of conditional ``contains``: one that is not in J applies, or J and ``inner`` cover the items."""
    check_clauses(2 ** len(matches), pointer, context)
    for size in range(len(matches) + 1):
        for chosen in combinations(matches, size):
            others = [condition for condition in matches if condition not in chosen]
            yield or_(Idx(low, high, or_(inner, *[matches[condition] for condition in chosen])), *others)


def _evaluated_prefix(site: Site) -> int | None:
    """How many of the first items the site's own keywords evaluate; None is all."""
    lengths = [
        keyword.evaluates_items(site.schema[keyword.name], site.schema)
        for keyword in _spoken(site)
        if keyword.evaluates_items is not None
    ]
    return None if None in lengths else max(filter(None, lengths), default=0)
