"""A cheap proof that each value of one formula satisfies another: simulation of formulas, without automata.

Sound and incomplete: "no" means that it was not proved. Coinductive over references: what is being proved may be used
below, in the value of a member or item, which is smaller. No answer is kept that leant on an open assumption.
Patterns that no automaton can read do no harm where both sides have them.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from fractions import Fraction
from itertools import combinations

from structgen.core.json_schema.formula.evaluate import evaluate
from structgen.core.json_schema.formula.language import (
    FALSE,
    TRUE,
    UNIQ,
    All,
    And,
    Enum,
    Formula,
    Ge,
    Gt,
    Idx,
    Int,
    Items,
    Keys,
    Len,
    MemberRecord,
    Mult,
    Not,
    One,
    Or,
    Ref,
    Type,
    and_,
    enum_of,
    not_,
    or_,
    spelled,
)
from structgen.core.json_schema.formula.values import (
    ANY,
    ARRAY,
    BOOLEAN,
    NULL,
    NUMBER,
    OBJECT,
    STRING,
    decode,
)
from structgen.errors import PatternError, TooComplexError

MAX_RULES = 5_000
"""Rules applied for one question."""
MAX_LISTED = 200
"""Values of an enumeration, names of members and spans of items that are looked at one by one."""
MAX_SPLIT = 8
"""Alternatives of a disjunction that are proved apart."""
_CLOSED = 1 << 30  # no assumption
_KIND = {Mult: NUMBER, Ge: NUMBER, Gt: NUMBER, Int: NUMBER, All: OBJECT, Keys: OBJECT, Idx: ARRAY, Items: ARRAY}


class _OutOfRulesError(Exception):
    """The budget is spent."""


class Simulation:
    """Proofs over one table of references."""

    def __init__(self, refs: Mapping[Hashable, Formula]) -> None:
        self._refs = refs
        self._rules = 0
        self._proved: dict[tuple[Formula, Formula], bool] = {}
        self._open: dict[tuple[Formula, Formula], int] = {}
        self._held: dict[tuple[Formula, object], bool | None] = {}  # of keys, which are asked about by each part
        self._lowest = _CLOSED

    def implies(self, formula: Formula, other: Formula) -> bool:
        """Whether it was proved that each value of ``formula`` satisfies ``other``."""
        self._rules = 0
        self._lowest = _CLOSED
        self._open.clear()
        try:
            return self._prove(formula, other)
        except (_OutOfRulesError, RecursionError, PatternError, TooComplexError):
            return False

    def _prove(self, f: Formula, g: Formula) -> bool:
        if f is g or g is TRUE or f is FALSE:
            return True
        if f is TRUE and g.__class__ is Type:
            return False
        question = (f, g)
        answer = self._proved.get(question)
        if answer is not None:
            return answer
        depth = self._open.get(question)
        if depth is not None:
            self._lowest = min(self._lowest, depth)
            return True
        self._rules += 1
        if self._rules > MAX_RULES:
            raise _OutOfRulesError
        depth = self._open[question] = len(self._open)
        outer, self._lowest = self._lowest, _CLOSED
        try:
            answer = self._rule(f, g)
        finally:
            del self._open[question]
        if not answer or self._lowest >= depth:
            self._proved[question] = answer
            self._lowest = _CLOSED
        self._lowest = min(self._lowest, outer)
        return answer

    # --- connectives ---
    def _rule(self, f: Formula, g: Formula) -> bool:
        if isinstance(f, MemberRecord) and isinstance(g, MemberRecord) and self._records(f, g):
            return True
        f, g = self._unfolded(f), self._unfolded(g)
        if f is g or g is TRUE or f is FALSE:
            return True
        if isinstance(g, And):
            return all(self._prove(f, part) for part in g.args)
        if isinstance(f, Or):
            return all(self._prove(part, g) for part in f.args)
        if isinstance(f, One):
            return self._same_choice(f, g) or all(self._prove(part, g) for part in f.args)
        parts = self._parts(f)
        if parts is None:
            return True
        listed = self._listed(f, parts)
        if listed is not None:
            return all(self.holds(g, value) for value in listed)
        if g in parts:
            return True
        if isinstance(g, Or):
            proved = self._disjunction(f, g)
        elif isinstance(g, One):
            proved = any(isinstance(part, One) and self._same_choice(part, g) for part in parts) or (
                self._are_apart(g.args) and self._prove(f, or_(*g.args))
            )
        elif isinstance(g, Not) and isinstance(g.arg, One):
            proved = self._contraposed(parts, g.arg) or all(self._prove(f, not_(part)) for part in g.arg.args)
        else:
            proved = Atoms(self, f, parts).imply(g)
        return proved or self._split(parts, g)

    def _unfolded(self, formula: Formula) -> Formula:
        """The formula, with what a reference on top leads to in its place. References in place do not come back."""
        while True:
            formula = spelled(formula)
            if isinstance(formula, Ref):
                formula = self._refs[formula.key]
            elif isinstance(formula, Not) and isinstance(formula.arg, Ref):
                formula = not_(self._refs[formula.arg.key])
            else:
                return formula

    def _parts(self, formula: Formula) -> dict[Formula, None] | None:
        """What a conjunction joins, references in place unfolded; None: nothing satisfies it."""
        parts: dict[Formula, None] = {}
        todo = list(formula.args) if isinstance(formula, And) else [formula]
        while todo:
            part = self._unfolded(todo.pop())
            if isinstance(part, And):
                todo += part.args
            elif part is FALSE:
                return None
            else:
                parts[part] = None
        return parts

    def _listed(self, f: Formula, parts: Iterable[Formula]) -> list[object] | None:
        """The values of a formula that has few, on its face."""
        enum = next((part for part in parts if isinstance(part, Enum)), None)
        if enum is None and possible_types(parts) & ~(NULL | BOOLEAN) == 0:
            enum = enum_of([None, True, False])
        if enum is None or len(enum.values) > MAX_LISTED:
            return None
        return [value for value in map(decode, enum.values) if self.holds(f, value) is not False]

    def holds(self, formula: Formula, value: object) -> bool | None:
        """Whether a value satisfies a formula; None: a pattern in it cannot be read."""
        if value.__class__ is str:
            question = (formula, value)
            if question not in self._held:
                self._held[question] = self._evaluated(formula, value)
            return self._held[question]
        return self._evaluated(formula, value)

    def _evaluated(self, formula: Formula, value: object) -> bool | None:
        try:
            return evaluate(formula, value, self._refs)
        except (PatternError, TooComplexError):
            return None

    def _records(self, f: MemberRecord, g: MemberRecord) -> bool:
        """Whether each member that one record declares is one that the other allows."""
        if not set(g.required) <= set(f.required):
            return False
        mine = dict(zip(f.names, f.values, strict=True))
        theirs = dict(zip(g.names, g.values, strict=True))
        pairs = {(mine.get(name, f.others), theirs.get(name, g.others)): None for name in (mine | theirs)}
        return all(self._prove(*pair) for pair in pairs) and self._prove(f.others, g.others)

    def _same_choice(self, f: One, g: Formula) -> bool:
        """Whether the alternatives of two "exactly one" are pairwise the same."""
        if not isinstance(g, One) or len(f.args) != len(g.args):
            return False
        left = [part for part in g.args if part not in f.args]
        for part in f.args:
            if part in g.args:
                continue
            match = next((o for o in left if self._prove(part, o) and self._prove(o, part)), None)
            if match is None:
                return False
            left.remove(match)
        return True

    def _disjunction(self, f: Formula, g: Or) -> bool:
        """Some alternative by itself; or one where the literals beside it do not hold."""
        if any(self._prove(f, part) for part in g.args):
            return True
        literals = [part for part in g.args if not isinstance(part, (And, One, MemberRecord, Ref))]
        if not literals or len(literals) > MAX_SPLIT:
            return False
        types = [part for part in literals if isinstance(part, Type)]
        for literal in types or literals:
            remaining = or_(*[part for part in g.args if part is not literal])
            if self._prove(and_(f, not_(literal)), remaining):
                return True
        return False

    def _contraposed(self, parts: Iterable[Formula], atom: Formula) -> bool:
        """Whether some part is "not x" with an x that ``atom`` implies."""
        return any(isinstance(part, Not) and self._prove(atom, part.arg) for part in parts)

    def _are_apart(self, alternatives: Sequence[Formula]) -> bool:
        """Whether no two of few alternatives have a value in common, so that "exactly one" is "some"."""
        if len(alternatives) > MAX_SPLIT:
            return False
        return all(self._prove(one, not_(two)) for one, two in combinations(alternatives, 2))

    def _split(self, parts: dict[Formula, None], g: Formula) -> bool:
        """Case by case, of the smallest disjunction; a part that is a large one must imply ``g`` by itself."""
        choices = [part for part in parts if isinstance(part, (Or, One))]
        if not choices:
            return False
        choice = min(choices, key=lambda part: len(part.args))
        if len(choice.args) > MAX_SPLIT:
            return len(parts) > 1 and any(self._prove(part, g) for part in choices)  # one part alone is this question
        others = [part for part in parts if part is not choice]
        return all(self._prove(and_(*others, part), g) for part in choice.args)


def possible_types(parts: Iterable[Formula]) -> int:
    """Types (bits) that values of a conjunction may have, by its literals. A superset."""
    types = ANY
    for part in parts:
        if isinstance(part, Type):
            types &= part.mask
        elif isinstance(part, Enum):
            types &= part.types
        elif isinstance(part, Not) and not isinstance(part.arg, (Enum, One, Ref, MemberRecord)):
            types &= ARRAY if part.arg is UNIQ else _KIND.get(part.arg.__class__, STRING)
    return types


class Atoms:
    """What the literals of one conjunction imply of a literal."""

    def __init__(self, simulation: Simulation, f: Formula, parts: dict[Formula, None]) -> None:
        self._prove, self._contraposed = simulation._prove, simulation._contraposed
        self._holds = simulation.holds
        self._f, self._parts = f, parts
        self._types = possible_types(parts)

    def imply(self, g: Formula) -> bool:
        """Whether it was proved that the literal ``g`` holds."""
        if isinstance(g, Type):
            return not self._types & ~g.mask
        if isinstance(g, Enum):
            return False
        if isinstance(g, Not):
            return self._negative(g.arg)
        kind = ARRAY if g is UNIQ else _KIND.get(g.__class__, STRING)
        return not self._types & kind or self._positive(g)

    def _positive(self, g: Formula) -> bool:
        match g:
            case All():
                return self._members(g)
            case Idx():
                return self._items(g)
            case Items():
                least = [part for part in self._parts if isinstance(part, Items) and part.n >= g.n]
                return any(self._prove(and_(part.value, self._any_item()), g.value) for part in least)
            case Keys():
                return self._fewest_members() >= g.n
            case Len():
                return any(isinstance(part, Len) and part.n >= g.n for part in self._parts)
            case Ge() | Gt():
                return any(_at_least(part, g) for part in self._parts)
            case Mult() | Int():
                return any((_step(part) / _step(g)).denominator == 1 for part in self._parts if _is_step(part))
        return g is UNIQ and self._most_items() < 2

    def _negative(self, atom: Formula) -> bool:
        if isinstance(atom, Enum):
            if self._types & atom.types == 0:
                return True
            return len(atom.values) <= MAX_LISTED and all(
                self._holds(self._f, decode(value)) is False for value in atom.values
            )
        kind = ARRAY if atom is UNIQ else _KIND.get(atom.__class__, STRING)
        if self._types & ~kind:
            return False
        match atom:
            case Ge() | Gt():
                return any(_below(part, atom) for part in self._parts)
            case Keys() if self._most_members() < atom.n:
                return True
            case Items() if self._most_items() < atom.n:
                return True
            case All() if self._some_member(atom):
                return True
            case Items():
                fewer = [p.arg for p in self._parts if isinstance(p, Not) and isinstance(p.arg, Items)]
                return any(other.n <= atom.n and self._prove(atom.value, other.value) for other in fewer)
            case Len():
                return any(
                    isinstance(part, Not) and isinstance(part.arg, Len) and part.arg.n <= atom.n for part in self._parts
                )
        return self._contraposed(self._parts, atom)

    # --- objects ---
    def _value_of(self, name: str) -> Formula:
        """What the parts say of the member ``name``."""
        return and_(*[p.value for p in self._parts if isinstance(p, All) and self._holds(p.keys, name)])

    def _members(self, g: All) -> bool:
        """Each key by itself that is singled out somewhere, then all others."""
        names = dict.fromkeys(_names(g.keys))
        whole = isinstance(g.keys, Enum)
        if not whole:
            names |= dict.fromkeys(name for p in self._parts if isinstance(p, All) for name in _names(p.keys))
        if len(names) > MAX_LISTED:
            return False
        for name in names:
            if self._holds(g.keys, name) is not False and not self._prove(self._value_of(name), g.value):
                return False
        if whole:
            return True
        others = and_(Type(STRING), g.keys, not_(enum_of(names)) if names else TRUE)
        said = [p.value for p in self._parts if isinstance(p, All) and self._prove(others, p.keys)]
        return self._prove(and_(*said), g.value)

    def _some_member(self, atom: All) -> bool:
        """Whether some member surely has a key of ``atom`` and no value of it."""
        for part in self._parts:
            if not (isinstance(part, Not) and isinstance(part.arg, All)):
                continue
            some = part.arg
            names = _names(some.keys)
            if isinstance(some.keys, Enum):
                if all(
                    self._holds(atom.keys, name)
                    and self._prove(and_(self._value_of(name), not_(some.value)), not_(atom.value))
                    for name in names
                ):
                    return True
            elif self._prove(some.keys, atom.keys) and self._prove(atom.value, some.value):
                return True
        return False

    def _fewest_members(self) -> int:
        least = max((part.n for part in self._parts if isinstance(part, Keys)), default=0)
        some = [p.arg for p in self._parts if isinstance(p, Not) and isinstance(p.arg, All)]
        required = {atom.keys for atom in some if isinstance(atom.keys, Enum) and len(atom.keys.values) == 1}
        return max(least, len(required))

    def _most_members(self) -> int:
        limits = [p.arg.n - 1 for p in self._parts if isinstance(p, Not) and isinstance(p.arg, Keys)]
        for part in self._parts:
            if isinstance(part, All) and part.value is FALSE and isinstance(part.keys, Not):
                limits.append(len(_names(part.keys)) if isinstance(part.keys.arg, Enum) else 1 << 60)
        return min(limits, default=1 << 60)

    # --- arrays ---
    def _spans(self) -> list[Idx]:
        return [part for part in self._parts if isinstance(part, Idx)]

    def _any_item(self) -> Formula:
        return and_(*[span.value for span in self._spans() if span.lo == 0 and span.hi is None])

    def _most_items(self) -> int:
        counts = [p.arg for p in self._parts if isinstance(p, Not)]
        limits = [atom.n - 1 for atom in counts if isinstance(atom, Items) and atom.value is TRUE]
        return min(limits, default=1 << 60)

    def _items(self, g: Idx) -> bool:
        """Span by span between the places where something begins or ends."""
        spans, most = self._spans(), self._most_items()
        cuts = {g.lo} | {cut for span in spans for cut in (span.lo, span.hi) if cut is not None and cut > g.lo}
        cuts = {cut for cut in cuts if cut < most and (g.hi is None or cut < g.hi)}
        if len(cuts) > MAX_LISTED:
            return False
        for cut in sorted(cuts):
            said = [s.value for s in spans if s.lo <= cut and (s.hi is None or cut < s.hi)]
            if not self._prove(and_(*said), g.value):
                return False
        return True


def _names(keys: Formula) -> list[str]:
    """The keys that a class singles out."""
    if isinstance(keys, Not):
        keys = keys.arg
    if isinstance(keys, (And, Or)):
        return [name for part in keys.args for name in _names(part)]
    return [name for name in keys.values if isinstance(name, str)] if isinstance(keys, Enum) else []


def _is_step(part: Formula) -> bool:
    return isinstance(part, (Mult, Int))


def _step(part: Formula) -> Fraction:
    """The step of a number; numbers are plain here, so that those spelled as integers are the integers."""
    return part.q if isinstance(part, Mult) else Fraction(1)


def _at_least(part: Formula, g: Ge | Gt) -> bool:
    if isinstance(part, Ge):
        return part.x > g.x or (part.x == g.x and isinstance(g, Ge))
    return isinstance(part, Gt) and part.x >= g.x


def _below(part: Formula, atom: Ge | Gt) -> bool:
    """Whether a part says "less than" (or at most) so that ``atom``, a lower bound, is false."""
    if not (isinstance(part, Not) and isinstance(part.arg, (Ge, Gt))):
        return False
    bound = part.arg  # not Ge(x): below x; not Gt(x): at most x
    return bound.x < atom.x or (bound.x == atom.x and (isinstance(bound, Ge) or isinstance(atom, Gt)))
