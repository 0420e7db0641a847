"""Strategies of the test library hypothesis for the documents of a schema (``pip install hypothesis``).

from hypothesis import given
from structgen.testing import from_constraint

@given(from_constraint({"type": "object", "properties": {"a": {"type": "integer"}}}))
def test_it(document): ...
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING, Any

from hypothesis import strategies as st

from structgen.core.answers.deciding import Questions, answering
from structgen.core.answers.drawing import DocumentDrawing
from structgen.core.answers.examples import later_year
from structgen.core.answers.joint import Joint
from structgen.core.answers.picking.picks import Manner
from structgen.core.answers.sources import schema_of
from structgen.core.json_schema.lowering import Lowered
from structgen.core.json_text import loads_exact
from structgen.errors import UnsatisfiableSchemaError
from structgen.options import JsonOptions, checked_options

if TYPE_CHECKING:
    from referencing import Registry


class HypothesisPicks:
    """Choices that hypothesis makes, and shrinks: towards the first option, no more items, numbers next to 0."""

    manner: Manner = "plain"

    def __init__(self, draw: Callable[[st.SearchStrategy[Any]], Any]) -> None:
        self._draw = draw

    def one(self, key: Hashable, count: int) -> int:
        """See `Picks`."""
        return int(self._draw(st.integers(0, count - 1))) if count > 1 else 0

    def chance(self, key: Hashable, share: float) -> bool:
        """See `Picks`."""
        return bool(self._draw(st.booleans()))

    def number(self, low: int, high: int) -> int:
        """See `Picks`."""
        return int(self._draw(st.integers(low, high)))


def from_constraint(
    constraint: Any,
    *,
    size: int = 300,
    options: JsonOptions | None = None,
    registry: Registry[Any] | None = None,
) -> st.SearchStrategy[Any]:
    """Values of a schema (or JSON text, file, Python type, tool definition), small ones where a test fails.

    Args:
        size: about how many bytes optional parts may take.
        options, registry: as of `structgen.examples`.

    Raises:
        SchemaError: the schema is malformed, unsatisfiable, or beyond a budget.
    """
    options = answering(checked_options(options))
    joint = Joint([Lowered(schema_of(constraint), options, registry)], options)
    questions, root = Questions(joint, options), joint.roots[0]
    node = questions.node_of(root)
    if node is None:
        raise UnsatisfiableSchemaError("no JSON value satisfies the schema, so there is nothing to draw")

    @st.composite
    def documents(draw: Callable[[st.SearchStrategy[Any]], Any]) -> Any:
        drawing.picks = HypothesisPicks(draw)
        return loads_exact(later_year(questions, root, drawing.document()))

    drawing = DocumentDrawing(node, options, HypothesisPicks(lambda strategy: None), size)
    return documents()
