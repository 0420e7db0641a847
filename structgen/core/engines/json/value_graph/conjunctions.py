"""Conjunctions of literals of one type as specs: what the machine enforces without a choice."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, cast

from structgen.core.engines.json.numbers.automaton import automaton
from structgen.core.engines.json.numbers.spec import NumberSpec, Spelling, prime_to_ten
from structgen.core.engines.json.value_graph.context import SpecContext
from structgen.core.engines.json.value_graph.counted import CountedArrays, CountedPlan, Counter, counters
from structgen.core.engines.json.value_graph.items import ArraySpec, CountedSpec
from structgen.core.engines.json.value_graph.key_classes import ObjectBuilder, encodable
from structgen.core.engines.json.value_graph.node import NODE_BYTES
from structgen.core.engines.json.value_graph.normal_form import Conjunction, NormalForm
from structgen.core.engines.json.value_graph.objects import ObjectSpec
from structgen.core.engines.json.value_graph.scalars import CUT, EnumSpec, NumberChoice, QuoteSpec, StringSpec
from structgen.core.grammars.phrases import phrase_dfa
from structgen.core.json_schema.formula.evaluate import evaluate
from structgen.core.json_schema.formula.language import (
    FALSE,
    MAX_COUNT,
    TRUE,
    UNIQ,
    All,
    Enum,
    Format,
    Formula,
    Ge,
    Gt,
    Idx,
    Int,
    Items,
    Keys,
    Len,
    Mult,
    Not,
    Or,
    Order,
    Pat,
    Phrased,
    Quoted,
    Uniq,
    and_,
    not_,
    unordered,
)
from structgen.core.regex.dfa import Dfa, accepts, complement, difference, from_strings, intersect, universal
from structgen.core.regex.formats import excluded_dfa, format_dfa
from structgen.core.regex.lengths import distances
from structgen.core.regex.pattern import pattern_dfa
from structgen.errors import SchemaTooComplexError

if TYPE_CHECKING:
    from structgen.core.engines.json.value_graph.node import StringAlternative, ValueNode

MAX_KNOWN, MAX_KNOWN_BYTES = 2_000, 16 << 20
_UNKNOWN = object()


class KnownSpecs(dict[Hashable, Any]):
    """Specs of scalars, which depend on nothing but their literals and options, so that all schemas share them.

    All are forgotten, and with them the formulas that only they hold, when there are `MAX_KNOWN`, or when they take
    `MAX_KNOWN_BYTES`.
    """

    memory_bytes = 0

    def __init__(self) -> None:
        super().__init__()
        self._counted: set[int] = set()  # automata of these, by id

    def forget(self) -> None:
        """Forget all."""
        self.clear()
        self._counted.clear()
        self.memory_bytes = 0

    def remember(self, key: Hashable, spec: Any) -> Any:
        """The spec, which is kept."""
        if len(self) >= MAX_KNOWN or self.memory_bytes > MAX_KNOWN_BYTES:
            self.forget()
        self.memory_bytes += NODE_BYTES + (0 if spec is None else spec.memory_bytes(self._counted))
        self[key] = spec
        return spec


_known_numbers, _known_strings = KnownSpecs(), KnownSpecs()

# A tuple longer than this is a mistake or an attack; each position is a table entry.
MAX_PREFIX = 100_000

# What automata cost: of a conjunction of numbers, of one of strings, and of a state of it.
NUMBER_STEPS, AUTOMATON_STEPS, STATE_STEPS = 500, 500, 40


# A number is read modulo its steps without their factors 2 and 5. Powers of ten, however large, cost nothing.
MAX_STEP_BITS = 1_024


def split(literal: Formula) -> tuple[Formula, bool]:
    """The atom of a literal, and whether it is positive."""
    return (literal.arg, False) if isinstance(literal, Not) else (literal, True)


class Conjunctions:
    """Builds specs for the nodes of one graph. Each method returns None where nothing satisfies the conjunction."""

    def __init__(self, context: SpecContext, form: NormalForm, node: Callable[[Formula], ValueNode]) -> None:
        self._context, self._form, self._node, self._options = context, form, node, context.options
        self._counted = CountedArrays(node, form.possible, context.options.max_automaton_states, context.budget)

    # --- numbers ---
    def number(self, literals: Conjunction) -> NumberChoice | None:
        """The automaton of the numbers that satisfy all ``literals``."""
        key = (literals, self._options.number_spellings, self._options.max_number_length)
        made = _known_numbers.get(key, _UNKNOWN)
        if made is _UNKNOWN:
            self._context.budget.spend(NUMBER_STEPS)
            made = _known_numbers.remember(key, self._number(literals))
        return cast("NumberChoice | None", made)

    def _number(self, literals: Conjunction) -> NumberChoice | None:
        least: tuple[Fraction, bool] | None = None  # bound, exclusive
        most: tuple[Fraction, bool] | None = None
        multiples: set[Fraction] = set()
        non_multiples: set[Fraction] = set()
        excluded: set[Fraction] = set()
        values: frozenset[Fraction] | None = None
        spelling: Spelling = self._options.number_spellings
        for literal in literals:
            atom, positive = split(literal)
            if isinstance(atom, Mult):
                (multiples if positive else non_multiples).add(atom.q)
            elif isinstance(atom, Int) and spelling == "plain":  # then the value tells
                (multiples if positive else non_multiples).add(Fraction(1))
            elif isinstance(atom, Int):
                spelling = "integer" if positive else "marked"
            elif isinstance(atom, (Ge, Gt)) and positive:
                bound = (atom.x, isinstance(atom, Gt))
                least = bound if least is None else max(least, bound)
            elif isinstance(atom, (Ge, Gt)):
                bound = (atom.x, isinstance(atom, Ge))
                most = bound if most is None else min(most, bound, key=lambda b: (b[0], not b[1]))
            elif isinstance(atom, Enum):
                numbers = frozenset(Fraction(value) for value in atom.values)
                if not positive:
                    excluded |= numbers
                else:
                    values = numbers if values is None else values & numbers
        _check_steps(multiples | non_multiples)
        spec = NumberSpec(
            minimum=least[0] if least else None,
            exclusive_minimum=least is not None and least[1],
            maximum=most[0] if most else None,
            exclusive_maximum=most is not None and most[1],
            multiples=frozenset(multiples),
            non_multiples=frozenset(non_multiples),
            excluded=frozenset(excluded),
            values=values,
            spelling=spelling,
        )
        limit = self._options.max_number_length
        limited = spec.with_ends() if limit == "auto" else replace(spec, max_length=limit)
        result = automaton(limited)
        return None if result.is_empty else NumberChoice(result, limit == "auto" and limited is not spec)

    # --- strings ---
    def string(self, literals: Conjunction) -> StringAlternative | None:
        """Either the strings themselves, or an automaton with length bounds."""
        key = (literals, self._options.max_string_length, self._options.max_automaton_states)
        made = _known_strings.get(key, _UNKNOWN)
        if made is _UNKNOWN:
            made = _known_strings.remember(key, self._string(literals))
        return cast("StringAlternative | None", made)

    def _string(self, literals: Conjunction) -> StringAlternative | None:
        limit = self._options.max_string_length
        if limit is not None and limit > MAX_COUNT:
            limit = None
        enums = [literal for literal in literals if isinstance(literal, Enum)]
        if enums:
            others = [literal for literal in literals if literal is not enums[0]]
            if limit is not None:
                others.append(not_(Len(limit + 1)))
            values = tuple([value for value in enums[0].values if encodable(value)])
            if others:
                values = tuple(
                    [value for value in values if not any(_may_be_of_format(literal, value) for literal in others)]
                )
                remaining, refs = and_(*others), self._context.lowered.refs
                values = tuple([value for value in values if evaluate(remaining, value, refs)])
            return EnumSpec(values) if values else None
        least, most = 0, limit
        quoted = next((literal for literal in literals if isinstance(literal, Quoted)), None)
        if quoted is not None:
            literals = self._with_quote(literals, quoted)
        dfa: Dfa | None = None
        for literal in literals:
            atom, positive = split(literal)
            if isinstance(atom, Len):
                if positive:
                    least = max(least, atom.n)
                else:
                    most = atom.n - 1 if most is None else min(most, atom.n - 1)
            elif atom is not quoted:
                other = self.string_dfa(atom, positive)
                if other is not None:
                    self._context.budget.spend(AUTOMATON_STEPS + STATE_STEPS * len(other.accepting))
                    with self._context.placed(atom):
                        dfa = other if dfa is None else intersect(dfa, other, self._options.max_automaton_states)
        if most is not None and most < least:
            return None
        if quoted is not None:
            spec = QuoteSpec(quoted.corpus, least, most)
            return spec if next(spec.listed()) is not CUT else None
        if dfa is None or dfa.digest == universal().digest:
            return StringSpec(None, least, most, None)
        if dfa.is_empty:
            return None
        if least == 0 and most is None:
            return StringSpec(dfa, 0, None, None)
        lengths = distances(dfa)
        return StringSpec(dfa, least, most, lengths) if lengths.alive(0, least, most) else None

    def _with_quote(self, literals: Conjunction, quoted: Quoted) -> Conjunction:
        """The literals without those that cannot be combined with a quote; lengths can."""
        kept = []
        for literal in literals:
            atom, _ = split(literal)
            if literal is quoted or isinstance(atom, Len):
                kept.append(literal)
            else:
                where = literal if self._context.lowered.origin(literal) else atom
                self._context.unsupported(where, "a quote together with another condition on its text")
        return tuple(kept)

    def string_dfa(self, atom: Formula, positive: bool) -> Dfa | None:
        """The automaton of a string atom or of its negation; None: any string."""
        with self._context.placed(atom):
            return self._string_dfa(atom, positive)

    def _string_dfa(self, atom: Formula, positive: bool) -> Dfa | None:
        limit = self._options.max_automaton_states
        if isinstance(atom, Quoted):
            self._context.unsupported(atom, "a quote in a negation, or as the name of a member")
            return None
        if isinstance(atom, Pat):
            dfa = pattern_dfa(atom.regex, max_states=limit)
        elif isinstance(atom, Format):
            return format_dfa(atom.name, atom.dialect) if positive else excluded_dfa(atom.name, atom.dialect)
        elif isinstance(atom, Phrased):
            dfa = phrase_dfa(atom.search, limit)
        elif isinstance(atom, Len):
            dfa = pattern_dfa(f"^[^]{{{atom.n},}}$", max_states=limit)
        else:
            assert isinstance(atom, Enum)
            words = from_strings([value for value in atom.values if isinstance(value, str)], limit)
            return words if positive else difference(universal(), words, limit)
        return dfa if positive else complement(dfa, limit)

    # --- arrays ---
    def arrays(self, literals: Conjunction) -> list[ArraySpec | CountedSpec]:
        """What `array` says of the literals; where a graph decides, and two items must be equal, one spec for each two
        places that they may have: places among the first items, and two after them."""
        if not (self._context.decides and not_(UNIQ) in literals) or counters(literals):
            spec = self.array(literals)
            return [] if spec is None else [spec]
        others = tuple([literal for literal in literals if literal is not not_(UNIQ)])
        base = self.array(others)
        if base is None or isinstance(base, CountedSpec):
            return []
        ranges = [(part.lo, part.hi, part.value) for part in others if isinstance(part, Idx)]
        end = len(base.prefix) + 2 if base.most is None else min(base.most, len(base.prefix) + 2)
        self._context.budget.spend(end * end * (1 + len(ranges)))
        return [self._with_equal(base, ranges, i, j) for j in range(end) for i in range(j)]

    def _with_equal(
        self, base: ArraySpec, ranges: list[tuple[int, int | None, Formula]], first: int, second: int
    ) -> ArraySpec:
        """The arrays of which two items, at these places, are equal."""
        both = [
            value
            for lo, hi, value in ranges
            if any(lo <= index and (hi is None or index < hi) for index in (first, second))
        ]
        items = [base.item(index) for index in range(max(len(base.prefix), second + 1))]
        items[first] = items[second] = self._node(and_(*both))
        least = max(base.least, second + 1)
        return ArraySpec(items, base.remaining, least, base.most, equal=(first, second))

    def array(self, literals: Conjunction) -> ArraySpec | CountedSpec | None:
        """Item nodes by position, and the number of items; an automaton where items are counted by what they are."""
        if len(literals) == 1 and literals[0].__class__ is Idx:
            (whole,) = cast("tuple[Idx]", literals)
            if whole.lo == 0 and whole.hi is None:  # most arrays say no more than this
                return ArraySpec([], self._node(whole.value), 0, self._options.max_items)
        least, most = 0, None
        ranges: list[tuple[int, int | None, Formula]] = []
        distinct: bool | None = None
        counted = counters(literals)
        for literal in literals:
            atom, positive = split(literal)
            if isinstance(atom, Items) and atom.value is TRUE:
                if positive:
                    least = max(least, atom.n)
                else:
                    most = atom.n - 1 if most is None else min(most, atom.n - 1)
            elif isinstance(atom, Idx) and positive:
                ranges.append((atom.lo, atom.hi, atom.value))
            elif isinstance(atom, Uniq):
                distinct = positive
        if distinct is False:
            least = max(least, 2)
            limits = "" if self._options.max_items is None else " (JsonOptions.max_items)"
            if counted or most is not None or limits or any(lo or hi is not None for lo, hi, _ in ranges):
                what = f"the negation of uniqueItems together with limits on the items{limits}"
                self._context.unsupported(not_(UNIQ), what)
                distinct = None
        if most is not None and most < least:
            return None
        if distinct and most is not None and most < 2:
            distinct = None
        if most is None:
            most = self._most_items(least, ranges, counted)
        if counted:
            return self._counted.build(CountedPlan(ranges, counted, least, most, bool(distinct)))
        prefix, remaining = self._items(ranges)
        return ArraySpec(prefix, remaining, least, most, distinct)

    def _most_items(
        self, least: int, ranges: list[tuple[int, int | None, Formula]], counted: list[Counter]
    ) -> int | None:
        """``max_items`` (None: no limit), or as many as there must be: at the places that are named, and to be
        counted."""
        limit = self._options.max_items
        if limit is None:
            return None
        named = max((lo if hi is None else hi for lo, hi, _ in ranges), default=0)
        return max(limit, least, named, sum(each.lo + each.least for each in counted))

    def _items(self, ranges: list[tuple[int, int | None, Formula]]) -> tuple[list[ValueNode], ValueNode]:
        """Nodes of the items before the last boundary, one each, and of all later items."""
        node = self._node
        if all(lo == 0 and hi is None for lo, hi, _ in ranges):
            return [], node(and_(*[value for _, _, value in ranges]))
        end = max(max(lo, hi or 0) for lo, hi, _ in ranges)
        if end > MAX_PREFIX:
            self._context.unsupported(
                and_(*[value for *_, value in ranges]), f"a tuple of more than {MAX_PREFIX} items"
            )
        single: dict[int, list[Formula]] = {}  # by place: a tuple has a range for each of its items
        for lo, hi, value in ranges:
            if hi == lo + 1:
                single.setdefault(lo, []).append(value)
        wide = [(lo, hi, value) for lo, hi, value in ranges if hi != lo + 1]
        self._context.budget.spend(end * (1 + len(wide)))
        prefix = []
        for index in range(end):
            values = [value for lo, hi, value in wide if lo <= index and (hi is None or index < hi)]
            prefix.append(node(and_(*values, *single.get(index, ()))))
        return prefix, node(and_(*[value for _, hi, value in ranges if hi is None]))

    # --- objects ---
    def object(self, literals: Conjunction) -> ObjectSpec | None:
        """Nodes by key, and which keys must be there."""
        builder = ObjectBuilder(self._context, self._form, self._node, self.string_dfa)
        for literal in literals:
            if literal.__class__ is All:
                builder.members(literal)
                continue
            atom, positive = split(literal)
            if isinstance(atom, Keys):
                builder.count(atom.n, positive)
            elif isinstance(atom, Or):
                builder.depend(atom)
            elif isinstance(atom, Order):
                builder.order(atom.names)
            elif isinstance(atom, All) and isinstance(atom.keys, Enum) and atom.value is FALSE:
                builder.require(str(atom.keys.values[0]))
            else:
                assert isinstance(atom, All)
                builder.require_some(atom.keys, not_(unordered(atom.value)))
        return builder.build()


def _may_be_of_format(literal: Formula, value: Any) -> bool:
    """Whether a value that must not be of a format may be of it, where the format is enforced more narrowly."""
    atom, positive = split(literal)
    if positive or not isinstance(atom, Format) or not isinstance(value, str):
        return False
    excluded = excluded_dfa(atom.name, atom.dialect)
    return excluded is not None and not accepts(excluded, value)


def _check_steps(steps: set[Fraction]) -> None:
    """Refuse steps with which every digit of a number would cost too much arithmetic."""
    odd = math.lcm(*(prime_to_ten(step.numerator) for step in steps))
    if odd.bit_length() > MAX_STEP_BITS:
        raise SchemaTooComplexError(
            f"the steps of multipleOf have a common multiple of more than {MAX_STEP_BITS} bits without factors 2 and 5",
            keyword="multipleOf",
            limit=MAX_STEP_BITS,
        )
