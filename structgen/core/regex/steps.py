"""A bound of the work that making an automaton may take."""

from __future__ import annotations

from structgen.errors import TooComplexError


class Steps:
    """Steps that are left of ``limit``. ``message`` says what takes more; ``{}`` in it stands for the limit."""

    __slots__ = ("_left", "_limit", "_message")

    def __init__(self, limit: int, message: str) -> None:
        self._left = self._limit = limit
        self._message = message

    def spend(self, steps: int) -> None:
        """Take off some steps. Raises TooComplexError when there are none left."""
        self._left -= steps
        if self._left < 0:
            raise TooComplexError(self._message.format(self._limit), budget="automaton steps", limit=self._limit)
