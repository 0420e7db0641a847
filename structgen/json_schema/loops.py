"""References that come back to themselves without descending into the value.

``{"anyOf": [{"$ref": "#"}, {"type": "null"}]}`` asks of a value whether it satisfies the same schema. Such a schema has
several readings; the least one (nothing is valid unless it must be) is what unrolling with "false" at the point of
return gives, because only two truth values exist: a monotone Boolean function has its least fixpoint at F(false).
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import NoReturn

from structgen.errors import UnresolvableReferenceError
from structgen.formula.language import FALSE, And, Formula, Not, One, Or, Ref, Unordered, and_, one, or_
from structgen.json_schema.places import Place, pointer

_BUILD = {And: and_, Or: or_, One: one}


def break_loops(refs: dict[Hashable, Formula], places: dict[Hashable, Place]) -> None:
    """Replace every formula of ``refs`` that leads back to itself in place by its least fixpoint.

    Raises:
        UnresolvableReferenceError: the fixpoint is FALSE (the reference says nothing but itself) or does not exist
            (the loop passes through a negation or oneOf).
    """
    edges = {key: {_base(found) for found in _in_place(formula)} for key, formula in refs.items()}
    looping = {key for key in edges if _reaches_itself(key, edges)}
    solved = {key: _solve(refs[key], frozenset({key}), looping, refs, places) for key in looping}
    for key, formula in solved.items():
        if formula is FALSE:
            _refuse(key, places, "it says nothing but itself")
        refs[key] = formula


def _base(key: Hashable) -> Hashable:
    return key.key if isinstance(key, Unordered) else key


def _in_place(formula: Formula) -> Iterator[Hashable]:
    """Keys of references that speak of the same value as ``formula``."""
    todo, seen = [formula], set()
    while todo:
        node = todo.pop()
        if node in seen:
            continue
        seen.add(node)
        if isinstance(node, Ref):
            yield node.key
        elif isinstance(node, Not):
            todo.append(node.arg)
        elif isinstance(node, (And, Or, One)):
            todo.extend(node.args)


def _reaches_itself(key: Hashable, edges: dict[Hashable, set[Hashable]]) -> bool:
    todo, seen = list(edges[key]), set()
    while todo:
        node = todo.pop()
        if node == key:
            return True
        if node not in seen:
            seen.add(node)
            todo.extend(edges.get(node, ()))
    return False


def _solve(
    formula: Formula,
    active: frozenset[Hashable],
    looping: set[Hashable],
    refs: dict[Hashable, Formula],
    places: dict[Hashable, Place],
) -> Formula:
    """``formula`` with in-place references unrolled, FALSE where one of ``active`` returns."""
    if isinstance(formula, Ref):
        key = _base(formula.key)
        if key not in looping:
            return formula
        return FALSE if key in active else _solve(refs[key], active | {key}, looping, refs, places)
    if isinstance(formula, (And, Or)):
        return _BUILD[type(formula)](*[_solve(arg, active, looping, refs, places) for arg in formula.args])
    if isinstance(formula, (Not, One)):
        for key in map(_base, _in_place(formula)):
            if key in looping:
                _refuse(key, places, "the way back passes through a negation or oneOf")
    return formula


def _refuse(key: Hashable, places: dict[Hashable, Place], why: str) -> NoReturn:
    place = places[key]
    hint = "Let the reference stand below properties, items or another keyword that descends into the value"
    message = f"the schema refers to itself without descending into the value: {why}"
    raise UnresolvableReferenceError(message, pointer=pointer(place), keyword="$ref", hint=hint)
