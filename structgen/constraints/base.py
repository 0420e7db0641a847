"""Constraints as values: what the output must be, and how its text becomes a Python value.

A constraint is made once and compiled for a vocabulary when it is used; the compiled form is kept for the process.
"""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

from structgen.engines.protocols import Grammar
from structgen.vocabulary.vocabulary import Vocabulary


@runtime_checkable
class Constraint(Protocol):
    """What a generator needs of a constraint."""

    def compile(self, vocabulary: Vocabulary) -> Grammar:
        """The compiled form over this vocabulary."""
        ...

    def parse(self, text: str) -> Any:
        """The value of a finished output."""
        ...

    def parse_partial(self, text: str) -> Any:
        """The value of an output that is still being written, as far as it goes; None where there is none yet."""
        ...

    def instruction(self) -> str | None:
        """What to tell the model about the constraint; None for nothing."""
        ...
