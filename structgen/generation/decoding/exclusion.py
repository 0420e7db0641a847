"""A constraint without values that were refused, so that no attempt writes them again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from structgen.core.constraints.base import Constraint
from structgen.core.constraints.json import JsonSchemaConstraint
from structgen.core.constraints.thinking import Thinking
from structgen.core.engines.protocols import Grammar
from structgen.core.vocabulary.vocabulary import Vocabulary
from structgen.errors import SchemaTooComplexError

MAX_EXCLUDED = 16  # the last ones: what it costs to compile grows with their members
MAX_STEPS = 100_000  # of compiling, about a microsecond each


def without(constraint: Constraint, values: Sequence[Any]) -> Constraint | None:
    """The constraint without these values, as JSON has them equal; None where that cannot be said of it."""
    if isinstance(constraint, Thinking):
        answer = None if constraint.answer is None else without(constraint.answer, values)
        return None if answer is None else replace(constraint, answer=answer)
    if not isinstance(constraint, JsonSchemaConstraint):
        return None
    options = replace(constraint.options, max_steps=min(MAX_STEPS, constraint.options.max_steps))
    return replace(constraint.without(values), options=options)


def compiled_without(constraint: Constraint, values: Sequence[Any], vocabulary: Vocabulary) -> Grammar | None:
    """What masks outputs that are none of the last of these values: of as many as can be compiled; None: of none.

    Raises:
        UnsatisfiableSchemaError: no other value is left.
    """
    count = min(len(values), MAX_EXCLUDED)
    while count:
        narrowed = without(constraint, values[-count:])
        if narrowed is None:
            return None
        try:
            grammar: Grammar = narrowed.compile(vocabulary)
            return grammar
        except SchemaTooComplexError:
            count //= 2
    return None
