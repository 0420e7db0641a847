"""Values that show that a formula has some: guessed from what stands on top, and looked at.

Whether two branches overlap is mostly answered by an object with the keys that they require, or by an empty one. That
costs some microseconds; a probe, which expands and solves all nodes that the formula leads to, costs milliseconds.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from typing import Any

from structgen.core.engines.json.value_graph.object_choices import about_key, known
from structgen.core.json_schema.formula.evaluate import evaluate
from structgen.core.json_schema.formula.language import (
    FALSE,
    All,
    And,
    Enum,
    Formula,
    Not,
    One,
    Or,
    Ref,
    Type,
    not_,
    spelled,
)
from structgen.core.json_schema.formula.values import (
    ARRAY,
    BOOLEAN,
    NULL,
    NUMBER,
    OBJECT,
    STRING,
    canonical_type,
    decode,
)
from structgen.errors import PatternError, TooComplexError

MAX_DEPTH = 3
"""Objects within objects that are guessed."""
WITNESS_STEPS = 15
"""What a guess costs at least: it takes as long as that many steps of other work."""
_SAMPLES: dict[int, Any] = {STRING: "a", NUMBER: 1, OBJECT: {}, ARRAY: [], BOOLEAN: True, NULL: None}


class _Open(Exception):
    """A reference leads to itself for one value."""


def witness(formula: Formula, kind: int, refs: Mapping[Hashable, Formula]) -> tuple[tuple[Any, ...], int]:
    """A value of a type that satisfies ``formula``, or (), which says nothing; and the steps that it took.

    Linear in the formula.
    """
    look = _Look(refs)
    try:
        value = look.guess(formula, kind, MAX_DEPTH)
        values = (value,) if look.holds(formula, value) else ()
    except (_Open, PatternError, TooComplexError):
        values = ()
    return values, WITNESS_STEPS + len(look.found)


class _Look:
    """Truth of the parts of a formula on the values of one guess, each found once."""

    def __init__(self, refs: Mapping[Hashable, Formula]) -> None:
        self._refs = refs
        self.found: dict[tuple[Formula, int], bool | None] = {}  # by the value's address; guesses stay alive
        self._guesses: list[Any] = []

    # --- guesses ---
    def guess(self, formula: Formula, kind: int, depth: int) -> Any:
        """A value of a type that may satisfy a formula."""
        value = _SAMPLES[kind]
        if isinstance(formula, Enum):
            value = next((decode(one) for one in formula.values if canonical_type(one) == kind), value)
        elif kind == OBJECT and depth:
            value = self._object(_parts(formula), depth)
        self._guesses.append(value)
        return value

    def _object(self, parts: Iterable[Formula], depth: int) -> dict[str, Any]:
        """With the keys that must be there, and the members that must not be as some condition says."""
        first = [part.args[0] if isinstance(part, (Or, One)) else part for part in parts]
        literals = [literal for part in first for literal in _parts(part)]
        members: dict[str, Any] = {}
        for literal in literals:
            if isinstance(literal, Not) and isinstance(literal.arg, All):
                name, _ = about_key(literal.arg)
                name = _other(literal.arg.keys) if name is None else name
                wanted = known(literals, name) if literal.arg.value is FALSE else not_(literal.arg.value)
                members[name] = self._any(wanted, depth - 1)
        return members

    def _any(self, formula: Formula, depth: int) -> Any:
        """A value of the likeliest type."""
        while isinstance(formula, (Ref, Or, One)):
            if isinstance(formula, Ref):
                if not depth:
                    break
                depth, formula = depth - 1, self._refs[formula.key]
            else:
                formula = formula.args[0]
        types = [part for part in _parts(formula) if isinstance(part, (Type, Enum))]
        if types and isinstance(types[0], Enum):
            return self.guess(types[0], canonical_type(types[0].values[0]), depth)
        mask = types[0].mask if types and isinstance(types[0], Type) else STRING
        return self.guess(formula, next((kind for kind in _SAMPLES if kind & mask), STRING), depth)

    # --- truth ---
    def holds(self, formula: Formula, value: Any) -> bool:
        """Whether a value satisfies a formula."""
        key = (formula, id(value))
        if key not in self.found:
            self.found[key] = None
            self.found[key] = self._holds(formula, value)
        answer = self.found[key]
        if answer is None:
            raise _Open
        return answer

    def _holds(self, formula: Formula, value: Any) -> bool:
        formula = spelled(formula)
        if isinstance(formula, And):
            return all([self.holds(part, value) for part in formula.args])
        if isinstance(formula, Or):
            return any([self.holds(part, value) for part in formula.args])
        if isinstance(formula, One):
            return sum([self.holds(part, value) for part in formula.args]) == 1
        if isinstance(formula, Not):
            return not self.holds(formula.arg, value)
        if isinstance(formula, Ref):
            return self.holds(self._refs[formula.key], value)
        if isinstance(formula, All) and isinstance(value, dict):
            return all([self.holds(formula.value, value[key]) for key in value if self.holds(formula.keys, key)])
        return evaluate(formula, value, self._refs)


def _parts(formula: Formula) -> Iterable[Formula]:
    formula = spelled(formula)
    return formula.args if isinstance(formula, And) else (formula,)


def _other(keys: Formula) -> str:
    """A key that a class surely has, if it is one of all keys but some."""
    names = keys.arg.members if isinstance(keys, Not) and isinstance(keys.arg, Enum) else ()
    name = "~"
    while name in names:
        name += "~"
    return name
