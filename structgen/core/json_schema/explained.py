"""Records what each keyword of each subschema lowers to, to find which keywords leave no value."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from structgen.core.json_schema.formula.language import Formula, and_
from structgen.core.json_schema.pointers import Pointer, pointer_text
from structgen.core.json_schema.report import Trace

CLOSING = "additional_members"
"""In place of a keyword: what closes a schema of a value."""


@dataclass
class Subschema:
    """A subschema, and what its keywords lower to."""

    schema: dict[str, Any]
    keywords: dict[str, Formula] = field(default_factory=dict)

    @property
    def formula(self) -> Formula:
        """What the whole subschema says."""
        return and_(*self.keywords.values())


class Parts(Trace):
    """Writes down the subschemas by JSON Pointer, each as it is read first."""

    by_keyword = True

    def __init__(self) -> None:
        super().__init__()
        self.subschemas: dict[str, Subschema] = {}

    def visit(self, schema: dict[str, Any], pointer: Pointer, context: Any) -> None:
        """See `Trace.visit`."""
        self.subschemas.setdefault(pointer_text(pointer), Subschema(schema))

    def record(self, formula: Formula | list[Formula], pointer: Pointer) -> None:
        """See `Trace.record`."""
        self._say(pointer, str(pointer[1]), and_(*formula) if isinstance(formula, list) else formula)

    def close(self, formula: Formula, pointer: Pointer) -> None:
        """See `Trace.close`."""
        self._say(pointer, CLOSING, formula)

    def _say(self, pointer: Pointer, keyword: str, formula: Formula) -> None:
        self.subschemas[pointer_text(pointer[0])].keywords.setdefault(keyword, formula)
