"""How much work the compilation of one schema may take."""

from __future__ import annotations

from structgen.automata.dfa import AUTOMATON_STATES
from structgen.errors import SchemaTooComplexError, TooComplexError
from structgen.options import JsonOptions


class GoalBudget:
    """Steps that are left. A step is about a microsecond: a literal looked at, a node visited.

    Counted instead of timed, so that a schema is refused everywhere or nowhere.
    """

    __slots__ = ("left", "limit")

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.left = limit

    def spend(self, steps: int = 1) -> None:
        """Take off some steps.

        Raises:
            SchemaTooComplexError: there are none left.
        """
        self.left -= steps
        if self.left < 0:
            raise SchemaTooComplexError(
                f"compiling the schema takes more than {self.limit} steps", budget="max_steps", limit=self.limit
            )


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
