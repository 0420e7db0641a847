"""Nodes: one node per distinct formula, with its alternatives per type, and which nodes have a value at all.

A formula becomes a `ValueNode` once; equal nodes are one node however often a schema repeats them. A node lists, for
each JSON type, alternatives that are plain conjunctions (`scalars`, `objects`, `items`). What cannot be said as one
raises `UnsupportedSchemaError`. Satisfiability is the least fixpoint over the finished graph: a value is finite, so
a node that only leads to itself has none. Every alternative and key that has no value is taken out, which is what
makes the machine live: it never enters what it cannot leave.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from structgen.core.engines.json.value_graph.blame import blame
from structgen.core.engines.json.value_graph.conjunctions import Conjunctions
from structgen.core.engines.json.value_graph.context import Formulas, SpecContext
from structgen.core.engines.json.value_graph.key_classes import record_spec
from structgen.core.engines.json.value_graph.liveness import (
    array_live,
    make_distinct,
    possibly_live,
    prune,
    reachable,
    solve,
)
from structgen.core.engines.json.value_graph.node import StringAlternative, ValueNode
from structgen.core.engines.json.value_graph.normal_form import NormalForm
from structgen.core.engines.json.value_graph.objects import is_live
from structgen.core.engines.json.value_graph.scalars import EnumSpec
from structgen.core.engines.json.value_graph.shared import ANSWERED, SHARED
from structgen.core.engines.json.value_graph.witness import witness
from structgen.core.json_schema.formula.evaluate import evaluate
from structgen.core.json_schema.formula.language import (
    FALSE,
    REFERS,
    TRUE,
    And,
    Enum,
    Formula,
    MemberRecord,
    One,
    Or,
    Type,
    and_,
)
from structgen.core.json_schema.formula.values import ANY, ARRAY, BOOLEAN, NULL, NUMBER, OBJECT, STRING
from structgen.core.json_schema.lowering import Lowered
from structgen.errors import (
    PatternError,
    SchemaTooComplexError,
    TooComplexError,
    UnsatisfiableSchemaError,
    UnsupportedSchemaError,
)
from structgen.options import JsonOptions

# Probes within probes: deeper ones would rather exhaust the stack than tell anything. What is not probed may overlap.
MAX_PROBES = 3

# What a value node costs at least.
NODE_STEPS = 50


class ValueGraph:
    """The nodes of one schema.

    Args:
        explains: whether the error for a formula without values says what is to blame; the formula then is of a
            `Lowered`.
        decides: whether the graph only answers whether there are values, and which: it may then hold what no table
            can say, and drops alternatives that others of a conjunction exclude.
    """

    normal_form: NormalForm

    def __init__(
        self, lowered: Formulas, options: JsonOptions, explains: bool = True, *, decides: bool = False
    ) -> None:
        self.context = context = SpecContext(lowered, options, decides)
        self.lowered, self.options, self.explains, self.decides = lowered, options, explains, decides
        self.budget, self.ignored = context.budget, context.ignored
        self.nodes: dict[Formula, ValueNode] = {}
        self._share = ANSWERED if decides else SHARED
        self._shared = self._share.under(options).nodes
        self._pending: list[ValueNode] = []
        self._conjunctions: Conjunctions | None = None  # made with the normal form, when first needed
        self._active: set[ValueNode] = set()
        self._expansions: list[ValueNode] = []
        self._given_up = False
        self._depth = 0
        self._overlaps: dict[tuple[Formula, int], bool] = {}
        self._witnesses: dict[tuple[Formula, int], tuple[bool, int]] = {}  # whether there is one, and the steps

    def compile(self, formula: Formula) -> ValueNode:
        """The node of a formula with all that it leads to, solved. Once: the graph expands nothing afterwards.

        Raises:
            UnsupportedSchemaError: some value node is more than plain conjunctions can say.
            UnsatisfiableSchemaError: no value satisfies the formula.
            SchemaTooComplexError: a budget is exceeded.
        """
        try:
            return self._compiled(formula)
        except UnsatisfiableSchemaError:
            if not self.explains:
                raise
            raise self.explained(formula) from None
        finally:  # only expansion needs these; they refer to the graph, which would stay until cycles are looked for
            if self._conjunctions is not None:
                del self.normal_form
                self._conjunctions = None

    def _compiled(self, formula: Formula) -> ValueNode:
        root = self.node(formula)
        self._drain()
        while self._given_up:  # what a probe left unfinished may be wanted after all
            self._given_up = False
            self._pending = [node for node in reachable(root) if not node.expanded]
            self._drain()
        new = [node for node in self.nodes.values() if not node.shared]
        if self.options.distinct_items != "schema":
            for node in new:
                make_distinct(node, only_strings=self.options.distinct_items == "strings")
        unsettled = solve(new)
        if unsettled:
            self._check_distinct(root, unsettled)
            prune(unsettled)
        if not (self._overlaps or self.ignored):  # what probes cost depends on what came before
            # what depends on its formula and the options alone, as does all that it leads to
            self._share.add(self.options, [node for node in new if node.expanded and not node.formula.flags & REFERS])
        if not root.live:
            raise UnsatisfiableSchemaError("no JSON value satisfies the schema")
        return root

    def explained(self, formula: Formula) -> UnsatisfiableSchemaError:
        """The error for a formula of the schema that no value satisfies: it names what is to blame."""
        hint = "Relax conditions that exclude each other."
        if self.options.additional_members == "closed":
            hint += ' With additional_members="schema", members that are not declared are allowed.'
        if self.options.distinct_items != "schema":
            hint += ' With distinct_items="schema", items may be equal where the schema does not say otherwise.'
        message = "no JSON value satisfies the schema"
        assert isinstance(self.lowered, Lowered)
        whole = self.lowered.root
        if formula is not whole and formula is not and_(Type(OBJECT), whole):
            return UnsatisfiableSchemaError(message, hint=hint)
        limits = self._limits(formula)
        if limits:
            hint = "Raise the limits of the options, or leave them out."
            return UnsatisfiableSchemaError(f"{message} within {limits}: without that there are some", hint=hint)
        try:
            lowered, parts = self.lowered.parts()
            types = ANY if formula is whole else OBJECT
            blamed = blame(parts, types, lambda part: _has_value(lowered, part, lowered.options), possible_types)
        except (SchemaTooComplexError, RecursionError):
            return UnsatisfiableSchemaError(message, hint=hint)
        what = ", since none satisfies this part of it, which must hold" if blamed.pointer else ""
        message = f"{message}{what}: {blamed.reason}"
        return UnsatisfiableSchemaError(message, pointer=blamed.pointer, keyword=blamed.keyword, hint=hint)

    def _limits(self, formula: Formula) -> str:
        """The options that limit lengths, if they are why no value satisfies a formula."""
        options = self.options
        limits = {"max_string_length": options.max_string_length, "max_number_length": options.max_number_length}
        limited = [f"{name}={limit}" for name, limit in limits.items() if isinstance(limit, int)]
        freed = replace(options, max_string_length=None, max_number_length=None)
        return ", ".join(limited) if limited and _has_value(self.lowered, formula, freed, False) else ""

    def _check_distinct(self, root: ValueNode, new: list[ValueNode]) -> None:
        """Refuse arrays of distinct items of which it is not known whether there are enough."""
        if not any(spec.distinct for node in new for spec in node.arrays):
            return
        for node in reachable(root):
            if any(not array_live(spec, is_live) and spec.uncertain for spec in node.arrays):
                self.context.unsupported(node.formula, "uniqueItems with minItems over items that have few values")

    def node(self, formula: Formula) -> ValueNode:
        """The node of a formula; new ones are expanded later, so that recursion in the schema is none here."""
        node = self.nodes.get(formula)
        if node is None:
            node = self._shared.get(formula)
            if node is not None:
                if node.objects or node.arrays:
                    self._adopt(node)
                else:
                    self.nodes[formula] = node
                    self.budget.spend(node.steps)
                return node
            node = self.nodes[formula] = ValueNode(formula)
        if not node.expanded:
            self._pending.append(node)
        return node

    def _adopt(self, node: ValueNode) -> None:
        """Take a shared node with all that it leads to, for what it cost when it was new: budgets forget nothing."""
        self.nodes[node.formula] = node
        adopted = [node]
        for node in adopted:
            self.budget.spend(node.steps)
            if node.objects or node.arrays:
                for child in node.children():
                    if child.formula not in self.nodes:
                        self.nodes[child.formula] = child
                        adopted.append(child)

    def _drain(self) -> None:
        while self._pending:
            node = self._pending.pop()
            if node.expanded:
                continue
            node.expanded = True
            self._expansions.append(node)
            self._active.add(node)
            try:
                self._expand(node)
            except BaseException:
                node.expanded = False
                raise
            finally:
                self._active.discard(node)

    def _expand(self, node: ValueNode) -> None:
        formula, budget = node.formula, self.budget
        before = budget.left
        budget.spend(NODE_STEPS)
        if formula.__class__ is MemberRecord:
            node.objects = [record_spec(formula, self.node)]
            node.steps = NODE_STEPS
            return
        types = possible_types(formula)
        build = self._conjunctions or self.conjunctions()
        alternatives = self.normal_form.alternatives
        if types & (NULL | BOOLEAN):
            node.flags = self._flags(formula, types)
        if types & NUMBER:
            node.numbers = _built(alternatives(formula, NUMBER), build.number)
        if types & STRING:
            node.strings = _merged_enums(_built(alternatives(formula, STRING), build.string))
        if types & OBJECT:
            node.objects = _built(alternatives(formula, OBJECT), build.object)
        if types & ARRAY:
            node.arrays = [spec for literals in alternatives(formula, ARRAY) for spec in build.arrays(literals)]
        node.steps = before - budget.left

    def conjunctions(self) -> Conjunctions:
        """What builds specs; made, and the normal form with it, when a value node needs it: many schemas have none."""
        if self._conjunctions is None:
            limit = self.options.max_alternatives
            self.normal_form = NormalForm(self.lowered.refs, limit, self.budget, self._overlap, propagates=self.decides)
            self._conjunctions = Conjunctions(self.context, self.normal_form, self.node)
        return self._conjunctions

    def _flags(self, formula: Formula, types: int) -> int:
        flags = 0
        for bit, (value, kind) in enumerate(_CONSTANTS):
            if types & kind and evaluate(self.normal_form.restrict(formula, kind), value, self.lowered.refs):
                flags |= 1 << bit
        return flags

    def _overlap(self, formula: Formula, kind: int) -> bool:
        """Whether some value of a type may satisfy a formula. True where a node still being expanded leaves it open."""
        restricted = self.normal_form.restrict(formula, kind)
        if restricted is FALSE or restricted is TRUE:
            return restricted is TRUE
        overlap = self._overlaps.get((restricted, kind))
        if overlap is None:
            if self._depth == MAX_PROBES:
                return True
            if self._has_witness(restricted, kind):
                return True
            self._depth += 1
            try:
                overlap = self._overlaps[restricted, kind] = self._probe(restricted, kind)
            finally:
                self._depth -= 1
        return overlap

    def _has_witness(self, restricted: Formula, kind: int) -> bool:
        """Whether a value was guessed. That costs the same each time, whatever came before."""
        entry = self._witnesses.get((restricted, kind))
        if entry is None:
            values, steps = witness(restricted, kind, self.lowered.refs)
            entry = self._witnesses[restricted, kind] = bool(values), steps
        self.budget.spend(entry[1])
        return entry[0]

    def _probe(self, formula: Formula, kind: int) -> bool:
        """Expand the value node apart from the work in progress and solve what it reaches."""
        outer, self._pending = self._pending, []
        before = len(self._expansions)
        try:
            probe = self.node(and_(Type(kind), formula))
            self._drain()
        except (UnsupportedSchemaError, SchemaTooComplexError, TooComplexError):
            if self.budget.left < 0:
                raise
            for node in self._expansions[before:]:  # some of what they lead to was never expanded
                node.expanded = False
            self._given_up = True
            return True
        finally:
            self._pending = outer
        return possibly_live(probe, self._active, self.budget)


def _has_value(lowered: Formulas, formula: Formula, options: JsonOptions, unknown: bool = True) -> bool:
    """Whether some value satisfies a formula of a schema, as far as the steps that are left tell; else ``unknown``."""
    graph = ValueGraph(lowered, options, explains=False)
    try:
        graph.compile(formula)
    except UnsatisfiableSchemaError:
        return False
    except (PatternError, SchemaTooComplexError, TooComplexError, UnsupportedSchemaError):
        return unknown
    finally:
        lowered.budget.left = max(0, graph.budget.left)
    return True


_CONSTANTS = ((None, NULL), (True, BOOLEAN), (False, BOOLEAN))


def possible_types(formula: Formula) -> int:
    """Types (bits) that values of a formula may have, by what stands on top. A superset."""
    if isinstance(formula, Type):
        return formula.mask
    if isinstance(formula, Enum):
        return formula.types
    if isinstance(formula, And):
        types = ANY
        for part in formula.args:
            if part.__class__ is Type or part.__class__ is Enum:
                types &= possible_types(part)
        return types
    if isinstance(formula, MemberRecord):
        return OBJECT
    if isinstance(formula, (Or, One)):
        types = 0
        for part in formula.args:
            if part.__class__ not in (And, Enum, MemberRecord, Type):
                return ANY
            types |= possible_types(part)
        return types
    return ANY


def _built(alternatives: list[tuple[Formula, ...]], build: Callable[[tuple[Formula, ...]], Any]) -> list[Any]:
    return [spec for conjunction in alternatives if (spec := build(conjunction)) is not None]


def _merged_enums(alternatives: list[StringAlternative]) -> list[StringAlternative]:
    """All enumerations as one, which costs one configuration instead of several."""
    enums = [spec for spec in alternatives if isinstance(spec, EnumSpec)]
    if len(enums) < 2:
        return alternatives
    values = tuple(dict.fromkeys(value for spec in enums for value in spec.values))
    return [EnumSpec(values), *(spec for spec in alternatives if not isinstance(spec, EnumSpec))]
