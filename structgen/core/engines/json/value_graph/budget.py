"""What exceeds a budget where a schema is compiled, said of the schema."""

from __future__ import annotations

from structgen.core.regex.dfa import AUTOMATON_STATES
from structgen.errors import SchemaTooComplexError, TooComplexError
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
