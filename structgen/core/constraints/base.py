"""Constraints as values: what the output must be, and how its text becomes a Python value.

A constraint is made once and compiled for a vocabulary when it is used; the compiled form is kept for the process.
"""

from __future__ import annotations

import inspect
from functools import lru_cache
from typing import Any, Protocol, TypeGuard, cast, runtime_checkable

from typing_extensions import TypeVar

from structgen.core.engines.protocols import Grammar
from structgen.core.json_schema.prompt_forms import SchemaForm
from structgen.core.vocabulary.vocabulary import Vocabulary
from structgen.errors import GenerationError

T = TypeVar("T", default=Any)
"""What an output's value is an instance of, where type checkers can know it."""
T_co = TypeVar("T_co", covariant=True, default=Any)


@runtime_checkable
class Constraint(Protocol[T_co]):
    """What a generator needs of a constraint, whose values are instances of the type parameter."""

    def compile(self, vocabulary: Vocabulary) -> Grammar:
        """The compiled form over this vocabulary."""
        ...

    def parse(self, text: str) -> T_co:
        """The value of a finished output."""
        ...

    def parse_partial(self, text: str) -> Any:
        """The value of an output that is still being written, as far as it goes; None where there is none yet. Of a
        text that such an output may begin with, nothing is raised."""
        ...

    def instruction(self) -> str | None:
        """What to tell the model about the constraint; None for nothing. One with schemas in it takes ``form``, the
        ``SchemaForm`` that they are shown in; see ``instruction_of``."""
        ...


def is_constraint(value: object) -> TypeGuard[Constraint]:
    """Whether this is a constraint, and not a class of them."""
    kind: Any = type(value)  # which mypy takes for unhashable
    return not isinstance(value, type) and _makes_constraints(kind)


@lru_cache(256)  # Python looks through all members of a protocol each time
def _makes_constraints(kind: type) -> bool:
    return issubclass(kind, Constraint)


def instruction_of(constraint: Constraint, form: SchemaForm) -> str | None:
    """What to tell the model about a constraint, with its schemas in this form. Constraints whose ``instruction`` takes
    no form have one only."""
    instruct: Any = constraint.instruction
    return cast(
        "str | None",
        instruct(form) if inspect.signature(instruct).parameters else instruct(),
    )


def value_of(constraint: Constraint[T] | None, text: str) -> T:
    """The value of a finished output; without a constraint its text. Errors as ``Constraint.parse``."""
    return cast(T, text) if constraint is None else constraint.parse(text)


def partial_of(constraint: Constraint[T] | None, text: str) -> T | None:
    """The value of an output that is still being written, as far as it goes; without a constraint its text."""
    return cast(T, text) if constraint is None else constraint.parse_partial(text)


def settled_of(constraint: Constraint[T], text: str) -> T:
    """The value of a part that is whole, of an output that is not; where it is refused, which is for the end to say, as
    far as it goes."""
    try:
        return constraint.parse(text)
    except GenerationError:
        return cast(T, constraint.parse_partial(text))
