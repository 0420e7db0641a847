"""What keyword functions see of a lowering: the context they ask, and what references lead to.

The walk is a table look-up per keyword; all that is rare (references to other documents, embedded resources, dynamic
scope) is worked out on first use. The pointer of a subschema is extended by the walk and by `Context.descend`, never
by a keyword function.

A subschema that a reference leads to is lowered once for each dynamic scope, and the result shared; a reference back
into a subschema still being lowered becomes ``Ref(key)``.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable
from collections.abc import Set as AbstractSet
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from structgen.core.json_schema.checks import refuse
from structgen.core.json_schema.closed_members import Closing
from structgen.core.json_schema.dialects import BY_NAME, WORDS, Dialect
from structgen.core.json_schema.formula.language import (
    FALSE,
    TRUE,
    And,
    Formula,
    Order,
    Unordered,
    and_,
    ref,
    spelled,
    unordered,
)
from structgen.core.json_schema.keywords_object import plain_object
from structgen.core.json_schema.keywords_scalar import meant_type
from structgen.core.json_schema.loops import break_loops
from structgen.core.json_schema.pointers import Pointer, pointer_text
from structgen.core.json_schema.references import RECURSIVE_ANCHOR, Resource, Resources, Target
from structgen.core.json_schema.report import Entry, Trace
from structgen.core.json_schema.spelling import doubt_required, is_extension
from structgen.errors import UnknownKeywordError

if TYPE_CHECKING:
    from structgen.core.json_schema.lowering import Lowered


class Key(NamedTuple):
    """Key of a recursive reference: distinct for each call of `lower`, so that formulas can outlive it.

    ``number`` tells apart the readings of one schema: under other dynamic scopes, closed or as written.
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


_NO_REFS = Refs()
_Asked: TypeAlias = "tuple[int, Context, bool]"  # a schema by identity, its context, and whether it is closed elsewhere
_UNKNOWN: Any = object()
TARGET_STEPS, PART_STEPS = 20, 5
"""What following a reference costs, and each array and object of a schema that is lowered again for another scope."""


class Lowering:
    """What references of one schema lead to: documents, contexts and formulas. Most schemas do without."""

    def __init__(self, lowered: Lowered, root: Context, resources: Resources) -> None:
        self._lowered, self._root, self.resources = lowered, root, resources
        self._refs = Refs()
        self._pointers: dict[Hashable, Pointer] = {}
        self._names: dict[_Asked, Key] = {}
        self._contexts: dict[Hashable, Context] = {}
        self._whole: _Asked = (id(lowered.schema), root, False)
        self._memo: dict[_Asked, Formula | None] = {self._whole: None}  # None: being lowered, as the whole schema is
        self._sizes: dict[int, int] = {}  # of schemas that were lowered; 0: not known yet

    def finish(self, whole: Formula) -> Refs:
        """The formulas that references lead to, by name, once the ``whole`` schema is lowered.

        What refers to each other is dropped, so that the garbage collector need not search for it.
        """
        self._settle(self._whole, whole)
        if self._refs:
            break_loops(self._refs, self._pointers, self._lowered.budget)
        for context in self._contexts.values() or (self._root,):
            context.finish()
        self.resources.finish()
        return self._refs

    def context(self, resource: Resource, outer: dict[str, Target], closes: bool) -> Context:
        """The one context of ``resource`` under the dynamic anchors of the scopes around it (outer ones win)."""
        root = self._root
        self._lowered.budget.spend(TARGET_STEPS + len(outer))
        if not self._contexts:
            self._contexts[_scope(self.resources.root, root.dynamic, root.closes)] = root
        self.resources.index(resource.document)
        dynamic = {**resource.dynamic_anchors, **outer}
        context = Context(self._lowered, resource.dialect, closes, root.trace)
        context.enter(self, resource, dynamic)
        return self._contexts.setdefault(_scope(resource, dynamic, closes), context)

    def lower_target(self, schema: Any, pointer: Pointer, context: Context, in_place: bool = False) -> Formula:
        """Lower what a reference leads to, once."""
        key = (id(schema), context, in_place and context.closes)
        cached = self._memo.get(key, _UNKNOWN)
        if cached is _UNKNOWN:
            self._count(schema)
            self._memo[key] = None
            formula = context.lower(schema, pointer, in_place=in_place)
            self._settle(key, formula)
            return formula
        if cached is None:
            name = self._names.setdefault(key, Key(self._lowered.serial, pointer_text(pointer), len(self._names)))
            self._pointers[name] = pointer
            return ref(name)
        return cached

    def recursive(self, made: Callable[[Formula], Formula], pointer: Pointer) -> Formula:
        """A formula that holds references to itself, which ``made`` gets; they descend into the value."""
        key = Key(self._lowered.serial, pointer_text(pointer), -1)
        self._pointers[key] = pointer
        formula = self._refs[key] = made(ref(key))
        return formula

    def _count(self, schema: Any) -> None:
        """Count the work of lowering a schema: once is linear for all, so only repetitions cost by their size."""
        size = self._sizes.get(id(schema))
        if size is None:
            self._sizes[id(schema)] = size = 0
        elif not size:
            self._sizes[id(schema)] = size = _parts(schema)
        self._lowered.budget.spend(TARGET_STEPS + PART_STEPS * size)

    def _settle(self, key: _Asked, formula: Formula) -> None:
        self._memo[key] = formula
        if key in self._names:
            self._refs[self._names[key]] = formula


def _parts(schema: Any) -> int:
    """How many distinct arrays and objects a schema is made of, itself among them."""
    todo, seen = [schema], {id(schema)}
    for node in todo:  # which grows
        inner = node.values() if node.__class__ is dict else node if node.__class__ is list else ()
        new = [part for part in inner if part.__class__ in (dict, list) and id(part) not in seen]
        seen.update(map(id, new))
        todo += new
    return len(todo)


def _scope(resource: Resource, dynamic: dict[str, Target], closes: bool) -> Hashable:
    return resource, closes, tuple(sorted((name, id(target[0])) for name, target in dynamic.items()))


class Context:
    """What a keyword function may ask: its dialect and options, and to lower a subschema or follow a reference.

    ``closes``: whether schemas of values are closed (see `structgen.core.json_schema.closed_members`).
    """

    __slots__ = (
        "_dynamic", "_lowered", "_lowering", "_resource", "_targets", "_watched", "budget", "closes",
        "declared_order", "dialect", "options", "ordinary", "trace",
    )  # fmt: skip
    ordinary: AbstractSet[str]
    _dynamic: dict[str, Target] | None
    _resource: Resource
    _targets: dict[tuple[str, bool], tuple[Any, Pointer, Context]]

    def __init__(self, lowered: Lowered, dialect: Dialect, closes: bool, trace: Trace | None) -> None:
        self._lowered, self.dialect, self.closes, self.trace = lowered, dialect, closes, trace
        self.options, self.budget = lowered.options, lowered.budget
        self.ordinary = WORDS if lowered.options.unknown_keywords == "refuse" else dialect.ordinary
        self.declared_order = lowered.options.key_order == "declared"
        self._watched = closes or trace is not None
        self._lowering: Lowering | None = None

    def enter(self, lowering: Lowering, resource: Resource, dynamic: dict[str, Target] | None) -> None:
        """Set the resource and the dynamic scope that the context is in."""
        self._lowering, self._resource, self._dynamic = lowering, resource, dynamic
        self._targets = {}

    def finish(self) -> None:
        """Drop what refers to this context."""
        del self._lowering, self._targets

    @property
    def lowering(self) -> Lowering:
        """What references lead to; the root's context makes it when the first is met."""
        if self._lowering is None:
            lowered = self._lowered
            default = BY_NAME[lowered.options.dialect]
            resources = Resources(lowered.schema, self.dialect, default, lowered.registry)
            self.enter(Lowering(lowered, self, resources), resources.root, None)
        return self._lowering  # type: ignore[return-value]

    def finished(self, whole: Formula) -> Refs:
        """Of the root's context: the formulas that references lead to."""
        return _NO_REFS if self._lowering is None else self._lowering.finish(whole)

    def has(self, keyword: str) -> bool:
        """Whether the dialect has this keyword."""
        return keyword in self.dialect.speaking

    @property
    def asserts_formats(self) -> bool:
        """Whether formats are to be enforced, as far as the dialect defines them."""
        return self.options.assert_formats or self.dialect.asserts_formats

    def asserts_format(self, name: str) -> bool:
        """Whether the format is to be enforced."""
        return self.asserts_formats and name in self.dialect.formats

    def doubt_format(self, name: str) -> str | None:
        """What to say of a format that would be enforced but for a slip in its name; None: it would not."""
        return self.dialect.doubt_format(name) if self.asserts_formats else None

    def enforces_pattern(self, expression: str) -> bool:
        """False for an expression that no automaton can read, where the options say that such are to be left out."""
        if self.options.unsupported == "error":
            return True
        from structgen.core.regex.ecma_parser import is_regular  # deferred: automata are not needed to read a schema

        return is_regular(expression)

    @property
    def as_written(self) -> Context:
        """The context in which nothing is closed: for conditions, where less would be more elsewhere."""
        return self.lowering.context(self._resource, self.dynamic, False) if self.closes else self

    def descend(self, schema: Any, pointer: Pointer, token: str | int, *, in_place: bool = False) -> Formula:
        """Lower the subschema at ``token`` below ``pointer``."""
        return self.lower(schema, (pointer, token), 1, in_place=in_place)

    def lower(self, schema: Any, pointer: Pointer, within: int = 0, *, in_place: bool = False) -> Formula:
        """Lower the schema at ``pointer``, whose keyword is the token ``within`` levels above the end.

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
            meant = meant_type(schema) if isinstance(schema, str) else None
            hint = meant and f'Did you mean {{"type": "{meant}"}}?'
            refuse(pointer, "a schema (an object, true or false)", schema, within=within, hint=hint)
        dialect = self.dialect
        trace: Trace | None = None
        closing: Closing | None = None
        if self._watched or not dialect.opening.isdisjoint(schema):
            trace = self.trace
            read = dialect.read_of(schema)
            if read is schema and dialect.identifier in schema:
                inner = self.within(schema, pointer)
                if inner is not self:
                    return inner.lower(schema, pointer, in_place=in_place)
            if trace is not None:
                trace.visit(schema, pointer, self)
            schema = read
            if self.closes and not in_place:
                closing = Closing(schema, pointer, self)
        if "properties" in schema and schema.get("type") == "object" and not self.closes:
            formula = plain_object(schema, pointer, self) if trace is None or not trace.by_keyword else None
            if formula is not None:
                if trace is not None:
                    trace.record_object(formula, pointer)
                return formula
        functions, ordinary = dialect.functions, self.ordinary
        parts: list[Formula] = []
        for keyword, value in schema.items():
            function = functions.get(keyword)
            if function is not None:
                where = (pointer, keyword)
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
            elif keyword not in ordinary:
                self.note_word(keyword, pointer)
        if closing is not None:
            if closing.remaining_members is not TRUE:
                parts.append(closing.remaining_members)
            if trace is not None and closing.formula is not TRUE:
                trace.close(closing.formula, (pointer, "unevaluatedProperties"))
        if len(parts) < 2:
            return parts[0] if parts else TRUE
        return self.conjoin(parts) if self.declared_order else and_(*parts)

    def note_word(self, word: str, pointer: Pointer) -> None:
        """Note a word that looks like a misspelt keyword; where the options say so, refuse all that no draft has."""
        doubt, where = self.dialect.doubt(word), pointer_text((pointer, word))
        if self.ordinary is WORDS and not is_extension(word):
            raise UnknownKeywordError(
                doubt or "no draft has this keyword, so it has no effect",
                pointer=where,
                keyword=word,
                hint='Correct it, leave it out, or allow such words with JsonOptions(unknown_keywords="report")',
            )
        if doubt is not None:
            self._lowered.misspelt[where] = Entry(where, word, "misspelt", doubt)

    def note_format(self, name: str, pointer: Pointer) -> None:
        """Note a format that looks like a misspelt one."""
        doubt = self.doubt_format(name)
        if doubt is not None:
            where = pointer_text(pointer)
            self._lowered.misspelt[where] = Entry(where, "format", "misspelt", doubt)

    def note_required(self, required: list[str], declared: Collection[str], pointer: Pointer) -> None:
        """Note required names that look like misspelt ones of members that are declared."""
        for index, name in enumerate(required):
            doubt = None if name in declared else doubt_required(name, required, declared)
            if doubt is not None:
                where = pointer_text((pointer, index))
                self._lowered.misspelt[where] = Entry(where, "required", "misspelt", doubt)

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

    def within(self, schema: dict[str, Any], pointer: Pointer) -> Context:
        """The context inside a schema that may have a URI of its own."""
        identifier = self.dialect.identifier
        if identifier not in schema:
            return self
        if not isinstance(schema[identifier], str) and identifier == "$id":
            # (where the keyword is "id", up to draft 4, it is rather a property that strayed: without meaning)
            refuse((pointer, identifier), "a URI reference", schema[identifier])
        if self._lowering is None and schema is self._lowered.schema:
            return self  # the root, which this context is that of
        lowering = self.lowering
        return self.of(lowering.resources.enter(schema, pointer, self._resource))

    def of(self, resource: Resource) -> Context:
        """The context of another resource that is entered from this one."""
        return self if resource is self._resource else self.lowering.context(resource, self.dynamic, self.closes)

    @property
    def dynamic(self) -> dict[str, Target]:
        """The outermost target of each dynamic anchor of the scopes entered so far."""
        lowering = self.lowering
        if self._dynamic is None:
            lowering.resources.index(self._resource.document)
            self._dynamic = self._resource.dynamic_anchors
        return self._dynamic

    def refer(self, reference: str, pointer: Pointer, dynamic: bool = False, *, in_place: bool = True) -> Formula:
        """The formula of what a reference leads to."""
        lowering = self._lowering or self.lowering
        return lowering.lower_target(*self.target(reference, pointer, dynamic), in_place)

    def lower_once(self, schema: Any, pointer: Pointer) -> Formula:
        """As `lower` in place, but once: later calls get the same formula, and calls during it a reference to it."""
        return self.lowering.lower_target(schema, pointer, self, in_place=True)

    def target(self, reference: str, pointer: Pointer, dynamic: bool = False) -> tuple[Any, Pointer, Context]:
        """The schema that a reference leads to, the pointer to it and its context.

        Raises:
            UnresolvableReferenceError: it leads nowhere.
        """
        lowering = self._lowering or self.lowering
        cached = self._targets.get((reference, dynamic))
        if cached is None:
            target = lowering.resources.resolve(reference, self._resource, pointer)
            if dynamic:
                target = self._dynamically(reference, target)
            schema, where, resource = target
            context = self.of(resource)
            cached = self._targets[reference, dynamic] = schema, where, context
        return cached

    def _dynamically(self, reference: str, target: Target) -> Target:
        """The outermost dynamic anchor instead, if what the reference leads to is one (core, section 8.2.3.2)."""
        self.lowering.resources.index(target[2].document)
        fragment = reference.partition("#")[2]
        name = RECURSIVE_ANCHOR if self.dialect.name == "draft2019-09" else fragment
        return self.dynamic.get(name, target) if name in target[2].dynamic_anchors else target
