"""One question: is there a value of a formula that does not satisfy another?

Decided in order of cost: by identity, by simulation, by the algebra of formulas, by the value graph, and where a budget
ends that, by the graph of each alternative, and by drawn documents. Budgets are counted, so an answer is the same
everywhere.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from structgen.core.answers.drawing import DocumentDrawing
from structgen.core.answers.implication import Simulation
from structgen.core.answers.picking.picks import RandomPicks
from structgen.core.engines.json.completion.cheapest_values import Values
from structgen.core.engines.json.value_graph.context import Formulas
from structgen.core.engines.json.value_graph.graph import ValueGraph
from structgen.core.engines.json.value_graph.node import ValueNode
from structgen.core.json_schema.formula.evaluate import evaluate
from structgen.core.json_schema.formula.language import FALSE, Formula, Or, Ref, and_, not_, spelled, unordered
from structgen.core.json_text import loads_exact
from structgen.errors import (
    CompletionTooLongError,
    InternalError,
    PatternError,
    SchemaTooComplexError,
    TooComplexError,
    UnsatisfiableSchemaError,
    UnsupportedSchemaError,
)
from structgen.options import JsonOptions

MAX_DISJUNCTS = 64
"""Alternatives of a negation that are asked about one by one."""
SAMPLES, SAMPLE_BYTES = 200, 200
"""Documents that are drawn where a question stays open, and about how long they are."""
UNDECIDED = (PatternError, SchemaTooComplexError, TooComplexError, UnsupportedSchemaError, RecursionError)
"""What a graph raises where it has no answer."""


def answering(options: JsonOptions | None) -> JsonOptions:
    """The options under which questions are about values: members in any order, numbers of any length, plain."""
    return replace(
        options or JsonOptions(),
        key_order="any",
        whitespace="compact",
        max_number_length=None,
        number_spellings="plain",
        string_escapes="minimal",
    )


@dataclass(frozen=True)
class Decision:
    """The answer to "is each value of this one of that?".

    Attributes:
        contained: yes, no, or not decided (None).
        method: what decided it: "identical", "simulation", "algebra", "graph", "parts" or "sample".
        node: of a no, the values that are of the first alone, or some of them; None where a document was drawn.
        text: of a no, a shortest such value as JSON; None: it is too long to be written, or there is none to write.
        reason: of an open question, the budget or keyword that left it open.
    """

    contained: bool | None
    method: str
    node: ValueNode | None = None
    text: str | None = None
    reason: str = ""

    @property
    def value(self) -> Any:
        """The value of ``text``."""
        return None if self.text is None else loads_exact(self.text)


class Questions:
    """Questions about the formulas of a joint, or of one lowered schema."""

    def __init__(self, formulas: Formulas, options: JsonOptions) -> None:
        self.formulas, self.options = formulas, options
        self.simulation = Simulation(formulas.refs)

    def is_contained(self, formula: Formula, other: Formula) -> Decision:
        """Whether each value of ``formula`` satisfies ``other``."""
        if formula is other:
            return Decision(True, "identical")
        if self.simulation.implies(formula, other):
            return Decision(True, "simulation")
        difference = and_(formula, not_(unordered(other)))
        if difference is FALSE:
            return Decision(True, "algebra")
        try:
            node = self.node_of(difference)
        except UNDECIDED as error:
            decision = self._by_parts(formula, other, error)
            return decision if decision.contained is not None else self._by_sample(formula, other, decision)
        if node is None:
            return Decision(True, "graph")
        return self._different(node, "graph", formula, other)

    def node_of(self, formula: Formula) -> ValueNode | None:
        """The values of a formula, solved; None: there are none.

        Raises:
            ConstraintError, RecursionError: not decided (see `UNDECIDED`).
        """
        try:
            return ValueGraph(self.formulas, self.options, explains=False, decides=True).compile(formula)
        except UnsatisfiableSchemaError:
            return None

    def holds(self, formula: Formula, value: Any) -> bool:
        """Whether a value satisfies a formula.

        Raises:
            PatternError, TooComplexError: a pattern in it cannot be read.
        """
        return evaluate(formula, value, self.formulas.refs)

    def _by_parts(self, formula: Formula, other: Formula, error: BaseException) -> Decision:
        """Each alternative of the negation by itself, with a budget of its own."""
        excluded = not_(unordered(self._unfolded(other)))
        reason = _said(error)
        if not isinstance(excluded, Or) or len(excluded.args) > MAX_DISJUNCTS:
            return Decision(None, "", reason=reason)
        is_open = False
        for part in excluded.args:
            if self.simulation.implies(formula, not_(part)):
                continue
            try:
                node = self.node_of(and_(formula, part))
            except UNDECIDED as left_open:
                is_open, reason = True, _said(left_open)
                continue
            if node is not None:
                return self._different(node, "parts", formula, other)
        return Decision(None, "", reason=reason) if is_open else Decision(True, "parts")

    def _by_sample(self, formula: Formula, other: Formula, left_open: Decision) -> Decision:
        """A "no" by a document of the first that the second refuses, if one is drawn."""
        try:
            node = self.node_of(formula)
            if node is None:
                return Decision(True, "graph")
            drawing = DocumentDrawing(node, self.options, RandomPicks(0), SAMPLE_BYTES)
            for _ in range(SAMPLES):
                text = drawing.document()
                if self._separates(text, formula, other):
                    return Decision(False, "sample", None, text)
        except (*UNDECIDED, CompletionTooLongError):
            pass
        return left_open

    def _unfolded(self, formula: Formula) -> Formula:
        while isinstance(formula, Ref):
            formula = self.formulas.refs[formula.key]
        return spelled(formula)

    def _different(self, node: ValueNode, method: str, formula: Formula, other: Formula) -> Decision:
        """A "no", with a shortest document, which both formulas judge."""
        try:
            text = Values(self.options).text(node).decode()
            later = text.replace('"0000-', '"2000-')  # a legal year, which other judges refuse
            if later != text and self._separates(later, formula, other):
                text = later
            judged = self._separates(text, formula, other)
        except CompletionTooLongError:
            return Decision(False, method, node)
        except (PatternError, TooComplexError, RecursionError) as error:
            return Decision(None, "", reason=_said(error))
        if not judged:
            raise InternalError(f"the document {text:.200} of a difference is judged otherwise by the formulas")
        return Decision(False, method, node, text)

    def _separates(self, text: str, formula: Formula, other: Formula) -> bool:
        value = loads_exact(text)
        return self.holds(formula, value) and not self.holds(other, value)


def _said(error: BaseException) -> str:
    """Why a question was left open, in a line."""
    if isinstance(error, RecursionError):
        return "the schemas are nested too deeply"
    return str(error).splitlines()[0]
