"""``additional_members="closed"``: schemas of values that declare members, without undeclared ones.

A schema of a value is closed where it, or a subschema in place (``allOf``, ``anyOf``, ``$ref``, ...), has
``properties`` or ``patternProperties``. Its members are then those that are declared, or asked for by ``required`` and
the like, by the schema, by all that always applies in place, by what applies on a condition that holds, and by **one**
branch of each ``anyOf`` and ``oneOf``. That is ``unevaluatedProperties: false`` for each branch; all branches at once
would be as many languages as there are sets of branches. An ``additionalProperties`` or ``unevaluatedProperties`` among
these counts as the specification has it: who says what other members are is not closed.

Closing only takes away: conditions (``if``, ``not``, ``contains``, which branch of ``oneOf`` it is) are read as
written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import chain, product
from typing import TYPE_CHECKING, Any, NamedTuple

from structgen.core.json_schema.formula.language import FALSE, TRUE, Enum, Formula, and_, not_, one, or_, unordered
from structgen.core.json_schema.keyword import Keyword, Schema
from structgen.core.json_schema.pointers import Pointer
from structgen.core.json_schema.unevaluated import (
    SITE_STEPS,
    Site,
    breadth,
    check_clauses,
    evaluated_keys,
    in_place,
    is_only_ref,
    remaining,
    sites,
)

if TYPE_CHECKING:
    from structgen.core.json_schema.context import Context

Declared = tuple[tuple[Formula, Formula], ...]  # (condition, keys that are declared under it)
CASE_STEPS = 10
"""Steps for a choice of one branch of each union, in addition to the size of its formulas."""


class UnionCase(NamedTuple):
    """One choice of a branch of each union: the condition that holds then, and the keys that are declared."""

    holds: Formula
    declared: Declared


class Closing:
    """How one schema of a value is closed.

    Attributes:
        remaining_members: what closes it, in addition to its keywords; TRUE: nothing.
    """

    def __init__(self, schema: Schema, pointer: Pointer, context: Context) -> None:
        self._context = context
        self._pointer = (pointer, "unevaluatedProperties")
        spoken = [word for word in schema if context.has(word)]
        is_reference = len(spoken) == 1 and context.dialect.keywords[spoken[0]].is_reference
        self._passes = spoken[0] if is_reference else None
        self._union: str | None = None
        self._branches: list[Formula] = []
        self.remaining_members: Formula = TRUE
        if self._passes is None:
            self._close(schema, pointer, context)

    def _close(self, schema: Schema, pointer: Pointer, context: Context) -> None:
        if not any(_declares(site) for site in sites(schema, pointer, context)):
            return
        declared, unions = _reading(schema, pointer, context, True)
        self._base = or_(*[keys for condition, keys in declared if condition is TRUE])
        is_said = "unevaluatedProperties" in schema and context.has("unevaluatedProperties")
        if is_said or self._base is TRUE:
            return
        groups = {name: self._relevant(_cases(union, frozenset())) for name, union in unions.items()}
        self._union = next((name for name, cases in groups.items() if name in ("anyOf", "oneOf") and any(cases)), None)
        inner = groups.pop(self._union) if self._union is not None else []
        others = list(self._combined([list(chain(*cases)) for cases in groups.values() if any(cases)], declared))
        if self._union is None:
            self.remaining_members = or_(*[and_(case.holds, self._closed(case.declared)) for case in others])
        else:
            self._branches = [or_(*self._each(branch, others)) for branch in inner]

    def _relevant(self, cases: list[list[UnionCase]]) -> list[list[UnionCase]]:
        """By branch, its ways without the keys that are declared anyway; empty ones if there is no difference."""
        new = not_(self._base)
        cut = [
            [UnionCase(case.holds, tuple((on, and_(keys, new)) for on, keys in case.declared)) for case in branch]
            for branch in cases
        ]
        if any(keys is not FALSE for branch in cut for case in branch for _, keys in case.declared):
            return cut
        return []

    def _combined(self, groups: list[list[UnionCase]], declared: Declared) -> Iterator[UnionCase]:
        number = 1
        for group in groups:
            number *= len(group)
            check_clauses(number, self._pointer, self._context)
        self._context.budget.spend(CASE_STEPS * number)
        for chosen in product(*groups):
            yield UnionCase(
                and_(*[case.holds for case in chosen]),
                (*declared, *chain(*[case.declared for case in chosen])),
            )

    def _each(self, branch: list[UnionCase], others: list[UnionCase]) -> Iterator[Formula]:
        """The ways of a branch, which itself is said by its schema, with those of the other unions."""
        for case, other in product(branch, others):
            self._context.budget.spend(CASE_STEPS + len(case.declared) + len(other.declared))
            yield and_(case.holds, other.holds, self._closed((*other.declared, *case.declared)))

    def _closed(self, declared: Declared) -> Formula:
        return remaining(declared, FALSE, self._pointer, self._context)

    @property
    def formula(self) -> Formula:
        """All that closes the schema, for the report; TRUE: it is not closed here."""
        return and_(self.remaining_members, *[branch for branch in self._branches if branch is not FALSE])

    def part(
        self, function: Callable[..., Formula | list[Formula]], value: Any, schema: Schema, pointer: Pointer
    ) -> Formula | list[Formula]:
        """What a keyword means: its function says so, except for a schema's only reference and for the union."""
        keyword, context = pointer[1], self._context
        if keyword == self._passes and isinstance(value, str):
            return context.refer(value, pointer, dynamic=keyword != "$ref", in_place=False)
        if keyword != self._union:
            return function(value, schema, pointer, context)
        children = [context.descend(child, pointer, i, in_place=True) for i, child in enumerate(value)]
        closed = or_(*[and_(child, branch) for child, branch in zip(children, self._branches, strict=True)])
        if keyword != "oneOf":
            return closed
        written = [
            unordered(context.as_written.descend(child, pointer, i, in_place=True)) for i, child in enumerate(value)
        ]
        return and_(one(*written), closed)


def _reading(
    schema: Any, pointer: Pointer, context: Context, outermost: bool
) -> tuple[Declared, dict[Any, list[tuple[Any, ...]]]]:
    """What a schema declares without its unions, and these: (schema, pointer, context, condition) of each branch.

    A union of the schema itself has its keyword as key.
    """
    declared: list[tuple[Formula, Formula]] = []
    unions: dict[Any, list[tuple[Any, ...]]] = {}
    todo = [Site(schema, pointer, context, TRUE, outermost)] if isinstance(schema, dict) else []
    seen = set()
    while todo:
        site = todo.pop()
        key = (id(site.schema), site.context, site.condition)
        if key in seen:
            continue
        seen.add(key)
        context.budget.spend(SITE_STEPS + breadth(site.condition))
        declared.append((site.condition, or_(evaluated_keys(site), _needed_keys(site))))
        for child, where, around, condition in in_place(site):
            keyword = where[0][1] if len(where[0]) == 2 else None
            if site.condition is TRUE and _is_union(keyword, site) and where[0][0] == site.pointer:
                name = keyword if site.outermost else (id(site.schema), site.context, keyword)
                unions.setdefault(name, []).append((child, where, around, condition))
            elif isinstance(child, dict):
                inner = around.within(child, where)
                todo.append(Site(child, where, inner, and_(site.condition, condition), False))
    return tuple(declared), unions


def _cases(union: list[tuple[Any, ...]], path: frozenset[Any]) -> list[list[UnionCase]]:
    """The ways of each branch of a union. A way does not repeat what the schema of the branch says."""
    by_branch = []
    for child, where, around, condition in union:
        context = around.within(child, where) if isinstance(child, dict) else around
        key = (id(child), context)
        declared, inner = _reading(child, where, context, False) if key not in path else ((), {})
        groups = [list(chain(*_cases(branches, path | {key}))) for branches in inner.values()]
        number = 1
        for group in groups:
            number *= len(group)
            check_clauses(number, where, context)
        context.budget.spend(number * (CASE_STEPS + len(declared) + sum(breadth(cases[0].holds) for cases in groups)))
        by_branch.append(
            [
                UnionCase(
                    and_(condition, *[case.holds for case in chosen]),
                    (*declared, *chain(*[case.declared for case in chosen])),
                )
                for chosen in product(*groups)
            ]
        )
    return by_branch


def _is_union(name: Any, site: Site) -> bool:
    keyword = site.context.dialect.keywords.get(name)
    return keyword is not None and keyword.is_union


def _declares(site: Site) -> bool:
    return not is_only_ref(site) and any(
        keyword.declares_members and isinstance(site.schema.get(keyword.name), dict) for keyword in _keywords(site)
    )


def _needed_keys(site: Site) -> Formula:
    """The keys that ``required`` and the like ask for; in a condition they ask for nothing."""
    if is_only_ref(site) or not site.context.closes:
        return FALSE
    lists: list[Any] = []
    for keyword in _keywords(site):
        if keyword.names_members:
            value = site.schema.get(keyword.name)
            lists += value.values() if isinstance(value, dict) else [value]
    names = [[names] if isinstance(names, str) else names for names in lists]
    return Enum([name for each in names if isinstance(each, list) for name in each if isinstance(name, str)])


def _keywords(site: Site) -> Iterable[Keyword]:
    return site.context.dialect.keywords.values()
