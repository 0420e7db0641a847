"""What each keyword of each subschema lowers to, written down to find out which of them leave no value."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from structgen.core.json_schema.formula.language import Formula, and_
from structgen.core.json_schema.places import Place, pointer
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
        self.found: dict[str, Subschema] = {}

    def visit(self, schema: dict[str, Any], place: Place, context: Any) -> None:
        """See `Trace.visit`."""
        self.found.setdefault(pointer(place), Subschema(schema))

    def record(self, formula: Formula | list[Formula], place: Place) -> None:
        """See `Trace.record`."""
        self._say(place, str(place[1]), and_(*formula) if isinstance(formula, list) else formula)

    def close(self, formula: Formula, place: Place) -> None:
        """See `Trace.close`."""
        self._say(place, CLOSING, formula)

    def _say(self, place: Place, keyword: str, formula: Formula) -> None:
        self.found[pointer(place[0])].keywords.setdefault(keyword, formula)
