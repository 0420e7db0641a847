"""From a JSON Schema to a formula: the walk, the context that keyword functions see, and the result.

The walk is a table look-up per keyword; all that is rare (references to other documents, embedded resources, dynamic
scope) is worked out on first use. The pointer of a subschema is extended by the walk and by `Context.descend`, never
by a keyword function.

A subschema that a reference leads to is lowered once for each dynamic scope, and the result shared; a reference back
into a subschema still being lowered becomes ``Ref(key)``.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Hashable
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

from structgen.errors import SchemaTooComplexError
from structgen.formula.language import FALSE, TRUE, And, Formula, Order, Unordered, and_, ref, spelled, unordered
from structgen.json_schema.checks import refuse
from structgen.json_schema.closing import Closing
from structgen.json_schema.dialects import BY_NAME, Dialect
from structgen.json_schema.keywords_object import plain_object
from structgen.json_schema.loops import break_loops
from structgen.json_schema.places import ROOT, Place, pointer
from structgen.json_schema.plain import plain_bytes, plain_json
from structgen.json_schema.references import RECURSIVE_ANCHOR, Resource, Resources, Target
from structgen.json_schema.report import Report, Trace
from structgen.options import JsonOptions

if TYPE_CHECKING:
    from referencing import Registry

_serials = itertools.count(1)


class Key(NamedTuple):
    """Key of a recursive reference: distinct for each call of `lower`, so that formulas can outlive it.

    ``number`` tells apart the readings of one place: under other dynamic scopes, closed or as written.
    """

    serial: int
    pointer: str
    number: int


class Refs(dict[Hashable, Formula]):
    """Formulas by key of reference; the unordered reading of a key is derived when first asked for."""

    def __missing__(self, key: Hashable) -> Formula:
        if not isinstance(key, Unordered):
            raise KeyError(key)
        formula = self[key] = unordered(self[key.key])
        return formula


class Lowering:
    """State of one call of `lower`: documents, contexts, and what references led to."""

    def __init__(self, schema: Any, options: JsonOptions, registry: Registry[Any] | None, serial: int) -> None:
        self.options = options
        self.serial = serial
        self.resources = Resources(schema, BY_NAME[options.dialect], registry)
        self.refs = Refs()
        self.places: dict[Hashable, Place] = {}
        self._memo: dict[tuple[int, Context, bool], Formula | None] = {}  # None: being lowered
        self._names: dict[tuple[int, Context, bool], Key] = {}
        self.trace: Trace | None = None
        self.root = Context(self, self.resources.root, None, options.additional_members == "closed")
        self._contexts: dict[Hashable, Context] = {}

    def context(self, resource: Resource, outer: dict[str, Target], closes: bool) -> Context:
        """The one context of ``resource`` under the dynamic anchors of the scopes around it (outer ones win)."""
        if not self._contexts:
            self._contexts[_scope(self.root.resource, self.root.dynamic, self.root.closes)] = self.root
        self.resources.index(resource.document)
        dynamic = {**resource.dynamic_anchors, **outer}
        found = Context(self, resource, dynamic, closes)
        return self._contexts.setdefault(_scope(resource, dynamic, closes), found)

    def lower_target(self, schema: Any, place: Place, context: Context, in_place: bool = False) -> Formula:
        """Lower what a reference leads to, once."""
        key = (id(schema), context, in_place and context.closes)
        if key not in self._memo:
            self._memo[key] = None
            formula = self._memo[key] = context.lower(schema, place, in_place=in_place)
            if key in self._names:
                self.refs[self._names[key]] = formula
            return formula
        known = self._memo[key]
        if known is None:
            name = self._names.setdefault(key, Key(self.serial, pointer(place), len(self._names)))
            self.places[name] = place
            return ref(name)
        return known


def _scope(resource: Resource, dynamic: dict[str, Target], closes: bool) -> Hashable:
    return resource, closes, tuple(sorted((name, id(target[0])) for name, target in dynamic.items()))


class Context:
    """What a keyword function may ask: its dialect and options, and to lower a subschema or follow a reference.

    ``closes``: whether schemas of values are closed (see `structgen.json_schema.closing`).
    """

    __slots__ = ("_dynamic", "_lowering", "_targets", "closes", "declared_order", "dialect", "options", "resource")

    def __init__(self, lowering: Lowering, resource: Resource, dynamic: dict[str, Target] | None, closes: bool) -> None:
        self._lowering, self.resource, self._dynamic, self.closes = lowering, resource, dynamic, closes
        self.options = lowering.options
        self.dialect: Dialect = resource.dialect
        self.declared_order = self.options.key_order == "declared"
        self._targets: dict[tuple[str, bool], tuple[Any, Place, Context]] = {}

    def has(self, keyword: str) -> bool:
        """Whether the dialect has this keyword."""
        return keyword in self.dialect.keywords or keyword in self.dialect.partners

    def asserts_format(self, name: str) -> bool:
        """Whether the format is to be enforced."""
        return (self.options.assert_formats or self.dialect.asserts_formats) and name in self.dialect.formats

    def enforces_pattern(self, expression: str) -> bool:
        """False for an expression that no automaton can read, where the options say that such are to be left out."""
        if self.options.unsupported == "error":
            return True
        from structgen.automata.ecma_parser import is_regular  # deferred: automata are not needed to read a schema

        return is_regular(expression)

    @property
    def as_written(self) -> Context:
        """The context in which nothing is closed: for conditions, where less would be more elsewhere."""
        return self._lowering.context(self.resource, self.dynamic, False) if self.closes else self

    def descend(self, schema: Any, place: Place, token: str | int, *, in_place: bool = False) -> Formula:
        """Lower the subschema at ``token`` below ``place``."""
        return self.lower(schema, (place, token), 1, in_place=in_place)

    def lower(self, schema: Any, place: Place, within: int = 0, *, in_place: bool = False) -> Formula:
        """Lower the schema at ``place``, whose keyword is the token ``within`` levels above the end.

        Args:
            in_place: it speaks of the value that the schema around it speaks of, which is closed there.

        Raises:
            SchemaError: it is malformed (or a subclass: see `lower`).
        """
        if schema.__class__ is not dict:
            if schema is True:
                return TRUE
            if schema is False:
                return FALSE
            refuse(place, "a schema (an object, true or false)", schema, within=within)
        dialect = self.dialect
        trace = self._lowering.trace
        if dialect.overriding_ref and "$ref" in schema:
            if trace is not None:
                trace.visit(schema, place, self)
            schema = {"$ref": schema["$ref"]}
        elif dialect.identifier in schema:
            inner = self.within(schema, place)
            if inner is not self:
                return inner.lower(schema, place, in_place=in_place)
        if trace is not None:
            trace.visit(schema, place, self)
        if not self.closes and "properties" in schema and schema.get("type") == "object":
            formula = plain_object(schema, place, self)
            if formula is not None:
                if trace is not None:
                    trace.record_object(formula, place)
                return formula
        keywords = dialect.keywords
        closing = Closing(schema, place, self) if self.closes and not in_place else None
        parts: list[Formula] = []
        for keyword, value in schema.items():
            function = keywords.get(keyword)
            if function is not None:
                where = (place, keyword)
                if closing is None:
                    part = function(value, schema, where, self)
                else:
                    part = closing.part(function, value, schema, where)
                if trace is not None:
                    trace.record(part, where)
                if part.__class__ is list:
                    parts += part
                elif part is not TRUE:
                    parts.append(part)  # type: ignore[arg-type]
        if closing is not None and closing.rest is not TRUE:
            parts.append(closing.rest)
        if closing is not None and trace is not None and closing.formula is not TRUE:
            trace.close(closing.formula, (place, "unevaluatedProperties"))
        if len(parts) < 2:
            return parts[0] if parts else TRUE
        return self.conjoin(parts) if self.declared_order else and_(*parts)

    def conjoin(self, parts: list[Formula]) -> Formula:
        """Conjunction in schema order: the declared orders of several parts become one, the first part's first."""
        if len(parts) < 2:
            return parts[0] if parts else TRUE
        if self.declared_order:
            flat = [arg for part in map(spelled, parts) for arg in (part.args if isinstance(part, And) else (part,))]
            orders = [arg for arg in flat if arg.__class__ is Order]
            if len(orders) > 1:
                names = dict.fromkeys(name for order in orders for name in order.names)
                parts = [*(arg for arg in flat if arg.__class__ is not Order), Order(names)]
        return and_(*parts)

    def within(self, schema: dict[str, Any], place: Place) -> Context:
        """The context inside a schema that may have a URI of its own."""
        if self.dialect.identifier not in schema:
            return self
        if not isinstance(schema[self.dialect.identifier], str) and self.dialect.identifier == "$id":
            # (where the keyword is "id", up to draft 4, it is rather a property that strayed: without meaning)
            refuse((place, self.dialect.identifier), "a URI reference", schema[self.dialect.identifier])
        resource = self._lowering.resources.enter(schema, place, self.resource)
        return self.of(resource)

    def of(self, resource: Resource) -> Context:
        """The context of another resource that is entered from this one."""
        return self if resource is self.resource else self._lowering.context(resource, self.dynamic, self.closes)

    @property
    def dynamic(self) -> dict[str, Target]:
        """The outermost target of each dynamic anchor of the scopes entered so far."""
        if self._dynamic is None:
            self._lowering.resources.index(self.resource.document)
            self._dynamic = self.resource.dynamic_anchors
        return self._dynamic

    def refer(self, reference: str, place: Place, dynamic: bool = False, *, in_place: bool = True) -> Formula:
        """The formula of what a reference leads to."""
        return self._lowering.lower_target(*self.target(reference, place, dynamic), in_place)

    def lower_once(self, schema: Any, place: Place) -> Formula:
        """As `lower` in place, but with one result for all who ask, and a reference to it for who asks meanwhile."""
        return self._lowering.lower_target(schema, place, self, in_place=True)

    def target(self, reference: str, place: Place, dynamic: bool = False) -> tuple[Any, Place, Context]:
        """The schema that a reference leads to, its place and its context.

        Raises:
            UnresolvableReferenceError: it leads nowhere.
        """
        known = self._targets.get((reference, dynamic))
        if known is None:
            target = self._lowering.resources.resolve(reference, self.resource, place)
            if dynamic:
                target = self._dynamically(reference, target)
            schema, where, resource = target
            context = self.of(resource)
            known = self._targets[reference, dynamic] = schema, where, context
        return known

    def _dynamically(self, reference: str, target: Target) -> Target:
        """The outermost dynamic anchor instead, if what the reference leads to is one (core, section 8.2.3.2)."""
        self._lowering.resources.index(target[2].document)
        fragment = reference.partition("#")[2]
        name = RECURSIVE_ANCHOR if self.dialect.name == "draft2019-09" else fragment
        return self.dynamic.get(name, target) if name in target[2].dynamic_anchors else target


class Lowered:
    """A schema as a formula.

    Attributes:
        root: the formula of a valid document.
        refs: formula by key, for each ``Ref`` that occurs.
        options: as given.
    """

    def __init__(self, schema: Any, options: JsonOptions, registry: Registry[Any] | None) -> None:
        self.options = options
        try:
            schema = plain_json(schema)
        except RecursionError:
            raise _too_deep() from None
        self._schema, self._registry, self._serial = schema, registry, next(_serials)
        lowering = Lowering(schema, options, registry, self._serial)
        self.root = _run(lowering)
        self.refs: Refs = lowering.refs

    @property
    def schema_bytes(self) -> int:
        """About what the schema takes. Linear in its size."""
        return plain_bytes(self._schema)

    @cached_property
    def _trace(self) -> Trace:
        return self._traced(self.options, self._serial)

    def _traced(self, options: JsonOptions, serial: int) -> Trace:
        """Lower once more and write down what comes from where; nodes are hash-consed, so they are the same ones."""
        lowering = Lowering(self._schema, options, self._registry, serial)
        lowering.trace = Trace()
        _run(lowering)
        return lowering.trace

    def origin(self, formula: Formula) -> tuple[str, str] | None:
        """JSON Pointer and keyword that this formula (an atom, say) first came from. The first call costs a walk."""
        place = self._trace.origins.get(formula)
        return (pointer(place), str(place[1])) if place is not None else None

    @property
    def report(self) -> Report:
        """What is enforced, for every keyword that can matter. Computed when asked for."""
        return Report(self._trace.report.entries, self._open())

    def _open(self) -> list[str]:
        """Where members that are not declared are allowed: what would be closed."""
        if self.options.additional_members == "closed":
            return []
        try:
            return self._traced(replace(self.options, additional_members="closed"), next(_serials)).report.closed
        except SchemaTooComplexError:  # closing it is more work than reading it
            return []


def _run(lowering: Lowering) -> Formula:
    root = lowering.resources.root
    try:
        formula = lowering.lower_target(root.contents, ROOT, lowering.root)
        if lowering.refs:
            break_loops(lowering.refs, lowering.places)
    except RecursionError:
        raise _too_deep() from None
    return formula


def _too_deep() -> SchemaTooComplexError:
    return SchemaTooComplexError(
        "the schema is nested too deeply for Python's recursion limit", limit=sys.getrecursionlimit()
    )


def lower(schema: Any, options: JsonOptions | None = None, registry: Registry[Any] | None = None) -> Lowered:
    """Lower a parsed JSON Schema (an object, true or false), in whatever holds it (see `plain_json`).

    Linear in the part of the schema that references reach, but for unevaluated* (see that module).

    Raises:
        SchemaError: a keyword's value is malformed; pointer, keyword and what was found.
        UnresolvableReferenceError: a reference leads nowhere, or in place only back to itself.
        SchemaTooComplexError: nested deeper than the recursion limit, or too many clauses.
    """
    return Lowered(schema, options or JsonOptions(), registry)
