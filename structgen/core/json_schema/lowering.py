"""From a JSON Schema to a formula: the result of the walk, and what it says when asked."""

from __future__ import annotations

import itertools
import sys
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from structgen.core.json_schema.budget import StepBudget
from structgen.core.json_schema.context import Context
from structgen.core.json_schema.dialects import BY_NAME
from structgen.core.json_schema.explained import Parts
from structgen.core.json_schema.formula.language import Formula, and_
from structgen.core.json_schema.keyword import TABLE
from structgen.core.json_schema.keywords_data import document
from structgen.core.json_schema.plain import plain_bytes, plain_json
from structgen.core.json_schema.pointers import ROOT, pointer_text
from structgen.core.json_schema.references import dialect_of
from structgen.core.json_schema.report import Entry, Report, Trace
from structgen.errors import SchemaTooComplexError
from structgen.options import JsonOptions
from structgen.progress import CONSTRAINT_LOG

if TYPE_CHECKING:
    from referencing import Registry

_serials = itertools.count(1)


class Lowered:
    """A schema as a formula.

    Attributes:
        root: the formula of a valid document.
        refs: formula by key, for each ``Ref`` that occurs.
        schema: plain JSON (see `plain_json`).
        options, registry: as given.
        serial: part of the keys of recursive references.
        misspelt: words that are most likely misspelt keywords or formats, by JSON Pointer.
        budget: what is left of ``options.max_steps``.

    Args:
        trace: writes down what comes from where, in a lowering like an earlier one: of the same ``serial``.
    """

    def __init__(
        self,
        schema: Any,
        options: JsonOptions,
        registry: Registry[Any] | None,
        trace: Trace | None = None,
        serial: int | None = None,
    ) -> None:
        self.options, self.registry = options, registry
        self.serial = next(_serials) if serial is None else serial
        self.budget = StepBudget(options.max_steps)
        self.misspelt: dict[str, Entry] = {}
        try:
            self.schema = schema = plain_json(schema)
            dialect = BY_NAME[options.dialect]
            if schema.__class__ is dict and "$schema" in schema:
                dialect = dialect_of(schema, dialect, registry)
            root = Context(self, dialect, options.additional_members == "closed", trace)
            whole = document(schema, root)
            formula = root.lower(schema, ROOT)
            self.refs = root.finished(formula)
            self.root = and_(formula, whole)
            doubt = dialect.doubt_schema(schema) if schema.__class__ is dict and not self.misspelt else None
            if doubt is not None:
                self.misspelt[""] = Entry("", "", "misspelt", doubt)
        except RecursionError:
            raise _too_deep() from None

    @property
    def schema_bytes(self) -> int:
        """About what the schema takes. Linear in its size."""
        return plain_bytes(self.schema)

    @cached_property
    def _trace(self) -> Trace:
        return self._traced(self.options, self.serial)

    def _traced(self, options: JsonOptions, serial: int) -> Trace:
        """Lower once more and write down what comes from where; nodes are hash-consed, so they are the same ones."""
        trace = Trace()
        Lowered(self.schema, options, self.registry, trace, serial)
        return trace

    def parts(self) -> tuple[Lowered, Parts]:
        """The same schema lowered once more, and what each keyword of each subschema says in it."""
        parts = Parts()
        return Lowered(self.schema, self.options, self.registry, parts, self.serial), parts

    def origin(self, formula: Formula) -> tuple[str, str] | None:
        """JSON Pointer and keyword that this formula (an atom, say) first came from. The first call costs a walk."""
        pointer = self._trace.origins.get(formula)
        return (pointer_text(pointer), str(pointer[1])) if pointer is not None else None

    @property
    def report(self) -> Report:
        """What is enforced, for every keyword that can matter. Computed when asked for."""
        entries = self._trace.report.entries
        listed = {entry.pointer for entry in entries}
        return Report([*entries, *(one for one in self.misspelt.values() if one.pointer not in listed)], self._open())

    def _open(self) -> list[str]:
        """Where members that are not declared are allowed: what would be closed."""
        if self.options.additional_members == "closed":
            return []
        try:
            return open_objects(self.schema, self.options, self.registry)
        except SchemaTooComplexError:  # closing it is more work than reading it
            return []


def _too_deep() -> SchemaTooComplexError:
    return SchemaTooComplexError(
        "the schema is nested too deeply for Python's recursion limit", limit=sys.getrecursionlimit()
    )


def open_objects(schema: Any, options: JsonOptions, registry: Registry[Any] | None = None) -> list[str]:
    """JSON Pointers of the schemas that ``additional_members="closed"`` would close: a lowering.

    Raises:
        SchemaError: as `lower`.
    """
    trace = Trace()
    Lowered(schema, replace(options, additional_members="closed"), registry, trace)
    return trace.report.closed


def may_be_open(schema: Any) -> bool:
    """Whether some schema in it declares members and says itself nothing of others: where none does, it has no open
    objects."""
    todo = [schema]
    while todo:
        part = todo.pop()
        if isinstance(part, list):
            todo += part
        elif isinstance(part, dict):
            if not part.keys().isdisjoint(_DECLARE) and part.keys().isdisjoint(_SAY_OTHERS):
                return True
            todo += part.values()
    return False


_DECLARE = frozenset(keyword.name for keyword in TABLE if keyword.declares_members)
_SAY_OTHERS = frozenset(keyword.name for keyword in TABLE if keyword.evaluates_keys) - _DECLARE


def lower(schema: Any, options: JsonOptions | None = None, registry: Registry[Any] | None = None) -> Lowered:
    """Lower a parsed JSON Schema (an object, true or false), in whatever holds it (see `plain_json`).

    Linear in the part of the schema that references reach, but for unevaluated* (see that module).

    Raises:
        SchemaError: a keyword's value is malformed; pointer, keyword and what was found.
        UnresolvableReferenceError: a reference leads nowhere, or in place only back to itself.
        UnknownKeywordError: a word that no draft has, where the options refuse such.
        SchemaTooComplexError: nested deeper than the recursion limit, too many clauses, or too many steps.
    """
    lowered = Lowered(schema, options or JsonOptions(), registry)
    for where, entry in lowered.misspelt.items():
        CONSTRAINT_LOG.warning("schema, at %s: %s", where or "its root", entry.reason)
    return lowered
