"""How much work the compilation of one schema may take."""

from __future__ import annotations

from structgen.errors import SchemaTooComplexError


class StepBudget:
    """Steps that are left. A step is about a microsecond: a literal looked at, a node visited.

    Counted instead of timed, so that a schema is refused everywhere or nowhere.

    Args:
        limit: steps in all.
        left: steps that are left of them; None: all.
    """

    __slots__ = ("left", "limit")

    def __init__(self, limit: int, left: int | None = None) -> None:
        self.limit = limit
        self.left = limit if left is None else left

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
