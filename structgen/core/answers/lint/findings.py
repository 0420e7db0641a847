"""What lint finds, and what a rule sees of a schema."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

from structgen.core.answers.deciding import UNDECIDED, Decision, Questions
from structgen.core.engines.json.value_graph.node import ValueNode
from structgen.core.json_schema.dialects import Dialect
from structgen.core.json_schema.explained import Subschema
from structgen.core.json_schema.formula.language import FALSE, TRUE, Formula, and_
from structgen.core.json_schema.lowering import Lowered

QUESTION_STEPS = 100_000
"""Steps that one question may take: a look at a schema is to take less than a second."""
Level = Literal["error", "warning", "info"]


@dataclass(frozen=True)
class Finding:
    """One finding.

    Attributes:
        rule, level: its rule's id, and how grave it is.
        pointer: where in the schema (RFC 6901).
        message: what is so, and what to do.
        evidence: what shows it, as JSON: ``document`` or ``text`` (which the rule says something of), or
            ``question``, the containment that was decided.
    """

    rule: str
    level: Level
    pointer: str
    message: str
    evidence: dict[str, Any] = field(default_factory=dict, hash=False)


@dataclass(frozen=True)
class LintRule:
    """A rule: ``check`` yields what it finds; ``is_deep``: whether it runs only when asked to look deeply."""

    name: str
    summary: str
    check: Callable[[SchemaView], Iterator[Finding]]
    is_deep: bool = False


class SchemaView:
    """A schema as rules see it: its subschemas by pointer, what each keyword of them says, and questions."""

    def __init__(self, lowered: Lowered, dialect: Dialect) -> None:
        self.lowered, parts = lowered.parts()
        self.whole, self.dialect = lowered, dialect
        self.subschemas: dict[str, Subschema] = {
            pointer: part for pointer, part in parts.subschemas.items() if not pointer or pointer.startswith("/")
        }
        self.lowered.budget.left = min(self.lowered.budget.left, QUESTION_STEPS)
        self.questions = Questions(self.lowered, lowered.options)
        self.undecided: dict[str, str] = {}

    def formula(self, schema: Any, pointer: str) -> Formula:
        """What the subschema at a pointer says."""
        if isinstance(schema, bool):
            return TRUE if schema else FALSE
        part = self.subschemas.get(pointer)
        return TRUE if part is None else part.formula

    def others(self, part: Subschema, keyword: str) -> Formula:
        """What a subschema says without one of its keywords."""
        return and_(*[said for name, said in part.keywords.items() if name != keyword])

    def contained(self, pointer: str, formula: Formula, other: Formula) -> Decision:
        """See `Questions.is_contained`; what is not decided is noted."""
        decision = self.questions.is_contained(formula, other)
        if decision.contained is None:
            self._left_open(pointer, decision.reason)
        return decision

    def node(self, pointer: str, formula: Formula) -> ValueNode | None:
        """The values of a formula; None: there are none, or it was not decided, which is noted."""
        if formula is FALSE:
            return None
        try:
            return self.questions.node_of(formula)
        except UNDECIDED as error:
            self._left_open(pointer, str(error).splitlines()[0])
            return None

    def _left_open(self, pointer: str, reason: str) -> None:
        """Note it. Later questions have half the steps, so that one schema does not take for ever."""
        self.undecided.setdefault(pointer, reason)
        self.lowered.budget.left //= 2
