"""Documents of a schema: typical ones, the shortest, those at bounds, and those that just miss it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count, islice
from typing import TYPE_CHECKING, Any, Literal

from structgen.core.answers.deciding import UNDECIDED, Questions, answering
from structgen.core.answers.drawing import DocumentDrawing
from structgen.core.answers.joint import Joint
from structgen.core.answers.occurrences import Occurrence, anything_in, dialect_for, occurrences, without
from structgen.core.answers.picking.picks import Manner, RandomPicks
from structgen.core.answers.sources import is_text, schema_of
from structgen.core.engines.json.completion.cheapest_values import Values
from structgen.core.engines.json.value_graph.node import ValueNode
from structgen.core.json_schema.formula.language import Formula, and_, not_, unordered
from structgen.core.json_schema.lowering import Lowered
from structgen.core.json_text import loads_exact
from structgen.errors import OptionsError, SchemaError, UnsatisfiableSchemaError
from structgen.options import JsonOptions, check_count, checked_options

if TYPE_CHECKING:
    from referencing import Registry

Style = Literal["typical", "minimal", "boundary", "invalid"]
STYLES: dict[str, Manner] = {
    "typical": "readable",
    "minimal": "plain",
    "boundary": "corners",
    "invalid": "readable",
}
FUTILE = 60
"""Documents one after another that give nothing new, after which there are no more."""


@dataclass(frozen=True)
class Example:
    """A document.

    Attributes:
        text: as JSON. ``value``: what it says, numbers exact.
        note: what it shows.
        pointer: of an invalid document, the only keyword occurrence that refuses it; "" else.
    """

    text: str
    note: str = ""
    pointer: str = ""

    @property
    def value(self) -> Any:
        """The value of the text."""
        return loads_exact(self.text)


def examples(
    constraint: Any,
    n: int = 10,
    *,
    style: Style = "typical",
    size: int = 300,
    seed: int = 0,
    options: JsonOptions | None = None,
    registry: Registry[Any] | None = None,
) -> Iterator[Example]:
    """Up to ``n`` different documents; fewer where there are no more.

    Args:
        constraint: a schema, JSON text, file, Python type or tool definition; or a grammar, expression or choice, whose
            first examples reach each of its rules (styles "typical", "minimal" and "boundary").
        style: "typical": readable, all alternatives in turn; "minimal": a shortest; "boundary": at the limits of
            numbers, lengths and counts; "invalid": each is refused by exactly one keyword occurrence, whose pointer it
            has: without that occurrence the schema allows it.
        size: about how many bytes optional parts may take.
        seed: the same gives the same documents, in every process.

    Raises:
        SchemaError: the schema is malformed, unsatisfiable, or beyond a budget. OptionsError: ``style`` or ``n``.
        ConstraintError: a grammar has parts without rules (JSON, names, tags).
    """
    if style not in STYLES:
        raise OptionsError(f"style is one of {', '.join(STYLES)}, not {style!r}", option="style", value=style)
    check_count("n", n, 0)
    if is_text(constraint):
        from structgen.core.answers.texts.examples import text_examples

        if style == "invalid":
            raise OptionsError("invalid examples are of schemas, not of texts", option="style", value=style)
        texts = text_examples(constraint, RandomPicks(seed, STYLES[style]), size)
        return (Example(text) for text in islice(texts, n))
    schema, options = schema_of(constraint), answering(checked_options(options))
    if style == "invalid":
        return _spread(NearMisses(schema, options, registry), n, size, seed)
    lowered = Lowered(schema, options, registry)
    joint = Joint([lowered], options)
    questions, root = Questions(joint, options), joint.roots[0]
    node = questions.node_of(root)
    if node is None:
        raise UnsatisfiableSchemaError("no JSON value satisfies the schema, so there are no examples")
    if style == "minimal":
        shortest = later_year(questions, root, Values(options).text(node).decode())
        return iter([Example(shortest, "a shortest document")][:n])
    drawing = DocumentDrawing(node, options, RandomPicks(seed, STYLES[style]), size)
    return _distinct(drawing, questions, root, n, set())


def later_year(questions: Questions, formula: Formula, text: str) -> str:
    """The document with dates of another year than 0000, a legal one that other judges refuse, where that is one."""
    later = text.replace('"0000-', '"2000-')
    return later if later != text and questions.holds(formula, loads_exact(later)) else text


def _distinct(
    drawing: DocumentDrawing, questions: Questions, formula: Formula, n: int, seen: set[str]
) -> Iterator[Example]:
    """Documents that are not among those ``seen``, to which they are added."""
    futile = 0
    while len(seen) < n and futile < FUTILE:
        text = later_year(questions, formula, drawing.document())
        if text in seen:
            futile += 1
            continue
        futile = 0
        seen.add(text)
        yield Example(text)


class NearMisses:
    """Documents that exactly one keyword occurrence of a schema refuses.

    Those that break occurrence k and nothing else are, by definition, the documents of the schema without k that the
    schema refuses. Below ``not``, ``if`` and ``oneOf`` there may be none: there the keyword around is the one to break.
    """

    def __init__(self, schema: Any, options: JsonOptions, registry: Registry[Any] | None = None) -> None:
        self._schema, self._options, self._registry = schema, options, registry
        dialect = dialect_for(schema, options, registry)
        self._anything = anything_in(dialect)
        self.occurrences = [one for one in occurrences(schema, dialect) if not one.is_container]
        self._whole = Lowered(schema, options, registry)

    def of(self, occurrence: Occurrence) -> tuple[Questions, Formula, ValueNode | None]:
        """The values that miss the schema by one occurrence alone; None: there are none, so it has no effect there.

        Raises:
            ConstraintError, RecursionError: not decided (see `deciding.UNDECIDED`).
        """
        silent = Lowered(without(self._schema, [occurrence], self._anything), self._options, self._registry)
        joint = Joint([silent, self._whole], self._options)
        questions = Questions(joint, self._options)
        wide, narrow = joint.roots
        if questions.simulation.implies(wide, narrow):
            return questions, narrow, None
        missed = and_(wide, not_(unordered(narrow)))
        return questions, missed, questions.node_of(missed)


def _spread(misses: NearMisses, n: int, size: int, seed: int) -> Iterator[Example]:
    """Near misses of each occurrence in turn."""
    sources = []
    seen: set[str] = set()
    given = 0
    for number, occurrence in enumerate(misses.occurrences):
        if given == n:
            return
        try:
            questions, missed, node = misses.of(occurrence)
        except (*UNDECIDED, SchemaError):
            continue
        if node is not None:
            drawing = DocumentDrawing(node, misses._options, RandomPicks(seed + number), size)
            name = f" of {occurrence.name!r}" if occurrence.name else ""
            drawn = _distinct(drawing, questions, missed, n, seen)
            source = (drawn, f"breaks {occurrence.keyword}{name} alone", occurrence)
            sources.append(source)
            first = next(source[0], None)
            if first is not None:
                given += 1
                yield Example(first.text, source[1], occurrence.pointer)
    for _ in count():
        before = given
        for drawn, note, occurrence in sources:
            if given < n and (one := next(drawn, None)) is not None:
                given += 1
                yield Example(one.text, note, occurrence.pointer)
        if given in (n, before):
            return
