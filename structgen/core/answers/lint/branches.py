"""Rules about alternatives: those that nothing takes, that others take too, or that overlap."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from typing import Any

from structgen.core.answers.lint.findings import Finding, LintRule, SchemaView
from structgen.core.json_schema.formula.language import FALSE, Enum, Formula, and_, or_

MAX_PAIRS = 1_000
"""Pairs of alternatives of one ``oneOf`` that are looked at."""


def _unions(view: SchemaView, *names: str) -> Iterator[tuple[str, str, list[tuple[str, Formula]], Formula]]:
    """Each union: its owner's pointer, its keyword, the alternatives with their pointers, what stands beside them."""
    for pointer, part in view.subschemas.items():
        for name in names:
            listed = part.schema.get(name)
            if isinstance(listed, list) and name in part.keywords:
                branches = [
                    (f"{pointer}/{name}/{i}", view.formula(child, f"{pointer}/{name}/{i}"))
                    for i, child in enumerate(listed)
                ]
                yield pointer, name, branches, view.others(part, name)


def dead_branches(view: SchemaView) -> Iterator[Finding]:
    """Alternatives, and values of enumerations, that no document takes."""
    for _, name, branches, siblings in _unions(view, "anyOf", "oneOf"):
        for pointer, formula in branches:
            if view.contained(pointer, and_(siblings, formula), FALSE).contained:
                message = f"no value satisfies this alternative of {name} and the keywords next to {name}"
                yield Finding("dead-branch", "error", pointer, message, {"question": "alternative and siblings: empty"})
    for pointer, part in view.subschemas.items():
        values = part.schema.get("enum")
        if isinstance(values, list) and isinstance(part.keywords.get("enum"), Enum):
            yield from _dead_values(view, pointer, values, view.others(part, "enum"))


def _dead_values(view: SchemaView, pointer: str, values: list[Any], siblings: Formula) -> Iterator[Finding]:
    for index, value in enumerate(values):
        if view.questions.simulation.holds(siblings, value) is False:
            message = f"the keywords next to enum refuse its value {value!r:.60}"
            yield Finding("dead-branch", "error", f"{pointer}/enum/{index}", message, {"document": value})


def covered_branches(view: SchemaView) -> Iterator[Finding]:
    """Alternatives of ``anyOf`` all of whose values others take."""
    for _, name, branches, siblings in _unions(view, "anyOf"):
        gone: set[str] = set()
        for pointer, formula in reversed(branches):
            others = [other for where, other in branches if where != pointer and where not in gone]
            mine = and_(siblings, formula)
            if mine is not FALSE and others and view.contained(pointer, mine, or_(*others)).contained:
                gone.add(pointer)
                message = f"the other alternatives of {name} take every value of this one"
                yield Finding("covered-branch", "info", pointer, message, {"question": "alternative within the others"})


def overlaps(view: SchemaView) -> Iterator[Finding]:
    """Alternatives of ``oneOf`` that a value may satisfy together, for which it is refused; or that exclude each
    other, so that ``anyOf`` says the same."""
    for owner, name, branches, siblings in _unions(view, "oneOf"):
        pairs = list(combinations(branches, 2))
        if len(pairs) > MAX_PAIRS:
            view.undecided.setdefault(f"{owner}/{name}", f"more than {MAX_PAIRS} pairs of alternatives")
            continue
        disjoint = True
        for (first, a), (second, b) in pairs:
            decision = view.contained(first, and_(siblings, a, b), FALSE)
            disjoint = disjoint and decision.contained is True
            if decision.contained is False:
                message = f"a value may satisfy this alternative and {second}, and is refused for it; use anyOf"
                evidence = {"document": decision.value, "with": second}
                yield Finding("overlapping-branches", "warning", first, message, evidence)
        if disjoint and len(branches) > 1:
            message = "the alternatives exclude each other: anyOf says the same, and more tools read it"
            yield Finding("disjoint-branches", "info", f"{owner}/{name}", message, {"question": "no two overlap"})


RULES = [
    LintRule("dead-branch", "An alternative or enumerated value that no document takes.", dead_branches),
    LintRule("covered-branch", "An alternative of anyOf whose values others take too.", covered_branches),
    LintRule("overlapping-branches", "Alternatives of oneOf that one value satisfies together.", overlaps),
]
