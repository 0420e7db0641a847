"""What all that builds the specs of one schema shares: options, budget, and how errors say where and what to raise."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from contextlib import contextmanager
from typing import Protocol

from structgen.core.json_schema.budget import StepBudget
from structgen.core.json_schema.formula.language import Formula
from structgen.core.regex.dfa import AUTOMATON_STATES
from structgen.errors import (
    PatternError,
    SchemaTooComplexError,
    TooComplexError,
    UnsupportedPatternError,
    UnsupportedSchemaError,
)
from structgen.options import JsonOptions


def schema_too_complex(
    error: TooComplexError, options: JsonOptions, pointer: str = "", keyword: str | None = None
) -> SchemaTooComplexError:
    """The error of a schema for that of an automaton: where it is asked for, and the option that raises its budget.

    No option does where the automaton met a smaller bound than the option's, or counts something else.
    """
    budget, limit = None, error.limit
    if error.budget == AUTOMATON_STATES and limit >= options.max_automaton_states:
        budget, limit = "max_automaton_states", options.max_automaton_states
    return SchemaTooComplexError(error.message, budget=budget, limit=limit, pointer=pointer, keyword=keyword)


_LENIENCY = 'JsonOptions(unsupported="ignore") leaves it out and lists it on the report.'


class Formulas(Protocol):
    """What a graph of formulas asks of the schema, or of the schemas, that they come from."""

    @property
    def refs(self) -> Mapping[Hashable, Formula]:
        """Formula by key, for each ``Ref`` that occurs."""

    @property
    def budget(self) -> StepBudget:
        """What is left of the steps."""

    def origin(self, formula: Formula) -> tuple[str, str] | None:
        """JSON Pointer and keyword that a formula came from."""


class SpecContext:
    """Attributes: ``ignored``, what is left out on request: pointers with reasons; ``decides``, see `ValueGraph`."""

    def __init__(self, lowered: Formulas, options: JsonOptions, decides: bool = False) -> None:
        self.decides = decides
        self.lowered, self.options = lowered, options
        self.budget = StepBudget(options.max_steps, lowered.budget.left)
        self.ignored: list[tuple[str, str]] = []

    def unsupported(self, literal: Formula, what: str) -> None:
        """Raise, or note that ``literal`` is ignored, as the options say."""
        pointer, keyword = self.lowered.origin(literal) or ("", None)
        if self.options.unsupported == "ignore":
            self.ignored.append((pointer, what))
            return
        raise UnsupportedSchemaError(
            f"{what} is not supported yet",
            pointer=pointer,
            keyword=keyword,
            hint=_LENIENCY,
        )

    @contextmanager
    def placed(self, literal: Formula) -> Iterator[None]:
        """A block that makes an automaton for ``literal``; errors in doing so say where it is asked for."""
        try:
            yield
        except PatternError as error:
            pointer, keyword = self.lowered.origin(literal) or ("", None)
            error.place_in_schema(pointer, keyword, _LENIENCY if isinstance(error, UnsupportedPatternError) else None)
            raise
        except TooComplexError as error:
            pointer, keyword = self.lowered.origin(literal) or ("", None)
            raise schema_too_complex(error, self.options, pointer, keyword) from None
