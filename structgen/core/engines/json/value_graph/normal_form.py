"""Formulas restricted to one type, as disjunctions of conjunctions of literals.

Restriction to a type is the best simplification there is: of ``anyOf`` over a string and an object nothing remains but
one branch each. What is left is expanded to disjunctive normal form within a budget; each conjunction becomes one
alternative of the machine (`structgen.core.kernels.json`: a thread). Literals are atoms and negated atoms, and
clauses "key k absent, or keys d present" (``dependentRequired``), which the machine counts without a choice.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping
from itertools import combinations

from structgen.core.engines.json.value_graph.discriminators import Cases, discriminator
from structgen.core.engines.json.value_graph.disjointness import candidates
from structgen.core.engines.json.value_graph.object_choices import Conjunction as Conjunction
from structgen.core.engines.json.value_graph.object_choices import ObjectChoices, merged
from structgen.core.json_schema.budget import StepBudget
from structgen.core.json_schema.formula.language import (
    FALSE,
    TRUE,
    All,
    And,
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
    MemberRecord,
    Mult,
    Not,
    One,
    Or,
    Order,
    Pat,
    Phrased,
    Quoted,
    Ref,
    Type,
    Uniq,
    and_,
    not_,
    one,
    or_,
    unordered,
)
from structgen.core.json_schema.formula.values import ARRAY, BOOLEAN, NULL, NUMBER, OBJECT, STRING, canonical_type
from structgen.errors import SchemaTooComplexError

ATOM_TYPE: dict[type[Formula], int] = {
    Mult: NUMBER,
    Ge: NUMBER,
    Gt: NUMBER,
    Int: NUMBER,
    Pat: STRING,
    Format: STRING,
    Quoted: STRING,
    Phrased: STRING,
    Len: STRING,
    All: OBJECT,
    Keys: OBJECT,
    Order: OBJECT,
    Idx: ARRAY,
    Items: ARRAY,
    Uniq: ARRAY,
}
KINDS = (NULL, BOOLEAN, NUMBER, STRING, ARRAY, OBJECT)
SEARCHED = 16
"""Combinations looked at, for each alternative of the budget."""
COMPARED = 4
"""Alternatives that are compared by a step."""
PROBE_STEPS = 20
"""What asking whether two formulas overlap costs at least."""


class NormalForm:
    """Expands formulas of one schema. ``overlap(f, type)`` tells whether some value of the type may satisfy f."""

    def __init__(
        self,
        refs: Mapping[Hashable, Formula],
        max_alternatives: int,
        budget: StepBudget,
        overlap: Callable[[Formula, int], bool],
        propagates: bool = False,
    ) -> None:
        self._refs = refs
        self._limit = max_alternatives
        self._budget = budget
        self._overlap = overlap
        self._propagates = propagates
        self._restricted: dict[tuple[Formula, int], Formula] = {}

    def restrict(self, formula: Formula, kind: int) -> Formula:
        """What ``formula`` says of values of type ``kind`` (a type bit)."""
        kept = ATOM_TYPE.get(formula.__class__)
        if kept is not None:
            return formula if kept == kind else TRUE
        if isinstance(formula, Type):
            return TRUE if formula.mask & kind else FALSE
        key = (formula, kind)
        restricted = self._restricted.get(key)
        if restricted is None:
            restricted = self._restricted[key] = self._restrict(formula, kind)
        return restricted

    def _restrict(self, formula: Formula, kind: int) -> Formula:
        if isinstance(formula, And):
            first = formula.args[0]  # a type is: parts stand in order of creation
            if first.__class__ is Type and not first.mask & kind:
                return FALSE
            return and_(*[self.restrict(part, kind) for part in formula.args])
        if isinstance(formula, Or):
            return or_(*[self.restrict(part, kind) for part in formula.args])
        if isinstance(formula, One):
            return one(*[self.restrict(part, kind) for part in formula.args])
        if isinstance(formula, Not):
            return not_(self.restrict(formula.arg, kind))
        if isinstance(formula, Ref):
            return self.restrict(self._refs[formula.key], kind)
        if isinstance(formula, MemberRecord):
            return self.restrict(formula.spelled, kind) if kind == OBJECT else FALSE
        assert isinstance(formula, Enum)
        if formula.types == kind:
            return formula
        return Enum([value for value in formula.values if canonical_type(value) == kind])

    def alternatives(self, formula: Formula, kind: int) -> list[Conjunction]:
        """Conjunctions of literals whose disjunction is what ``formula`` says of values of type ``kind``."""
        if isinstance(formula, And):
            literals = plain_literals(formula.args, kind)
            if literals is not None:
                return [literals]
        elif isinstance(formula, Type):
            return [()] if formula.mask & kind else []
        elif isinstance(formula, Enum) and formula.types == kind and kind not in (OBJECT, ARRAY):
            return [(formula,)]
        return self._expand(self.restrict(formula, kind), kind)

    def possible(self, formula: Formula) -> bool:
        """Whether some value may satisfy ``formula``; False is certain."""
        if isinstance(formula, Type):
            return formula is not FALSE
        return any(self._overlap(formula, kind) for kind in KINDS)

    def _expand(self, formula: Formula, kind: int, done: frozenset[str] = frozenset()) -> list[Conjunction]:
        formula = factored(formula)
        if self._propagates and isinstance(formula, And):
            formula = propagated(formula)
        if formula is FALSE:
            return []
        if formula is TRUE:
            return [()]
        if kind == OBJECT and (name := self._discriminator(formula, done)) is not None:
            return self._by_cases(formula, name, done | {name})
        if isinstance(formula, And):
            return self._conjunction(formula.args, kind, done)
        if isinstance(formula, Or):
            if dependency(formula) is not None:
                return [(formula,)]
            alternatives = self._bounded(other for part in formula.args for other in self._expand(part, kind, done))
            return merged(alternatives, self._budget) if kind == OBJECT else alternatives
        if isinstance(formula, One):
            return self._exactly_one(formula.args, kind, done)
        if isinstance(formula, Not):
            return self._negation(formula, kind, done)
        if isinstance(formula, Enum) and kind in (OBJECT, ARRAY):
            return self._bounded(compound(value) for value in formula.values)
        return [(formula,)]

    def _discriminator(self, formula: Formula, done: frozenset[str]) -> str | None:
        """The member by whose value a formula's choices are told apart."""
        parts = formula.args if isinstance(formula, And) else (formula,)
        choices = [part for part in parts if part.__class__ is not All and is_choice(part)]
        if not choices:
            return None
        chosen = set(choices)
        context = [part for part in parts if part not in chosen]
        if len(choices) == 1:
            choice = choices[0].arg if isinstance(choices[0], Not) else choices[0]
            choices = list(choice.args) if isinstance(choice, One) else []
        return discriminator(choices, context, done, self.restrict) if len(choices) > 1 else None

    def _by_cases(self, formula: Formula, name: str, done: frozenset[str]) -> list[Conjunction]:
        """The alternatives of each case of the member ``name``."""
        alternatives: list[Conjunction] = []
        for literals, residual in Cases(formula, name, self.restrict, self._budget):
            for alternative in self._expand(residual, OBJECT, done):
                alternatives.extend(joins(literals, [alternative]))
        return merged(self._bounded(alternatives), self._budget)

    def _conjunction(
        self, parts: Iterable[Formula], kind: int, done: frozenset[str] = frozenset()
    ) -> list[Conjunction]:
        plain = ATOM_TYPE.keys()
        return self._product(
            [[(part,)] if part.__class__ in plain else self._expand(part, kind, done) for part in parts], kind
        )

    def _product(self, parts: Iterable[list[Conjunction]], kind: int) -> list[Conjunction]:
        """One alternative of each part, in all ways that do not contradict themselves on their face."""
        literals: list[Formula] = []
        choices: list[list[Conjunction]] = []
        for part in parts:
            if len(part) == 1:
                literals.extend(part[0])
            elif part:
                choices.append(part)
            else:
                return []
        present = set(literals)
        if any(literal.negation in present for literal in literals):
            return []
        if not choices:
            return [tuple(dict.fromkeys(literals))]
        if kind == OBJECT:
            products = ObjectChoices(self.possible, self._budget).product(literals, choices)
            return merged(self._bounded(products), self._budget)
        conjunctions = [tuple(dict.fromkeys(literals))]
        for choice in sorted(choices, key=len):
            self._budget.spend(len(conjunctions) * len(choice))
            joined = (union for side in conjunctions for union in joins(side, choice))
            conjunctions = self._bounded(joined if kind != ARRAY else filter(self._has_items, joined))
        return conjunctions

    def _has_items(self, literals: Conjunction) -> bool:
        """Whether no item that must be there is one that cannot be."""
        least = max(
            (literal.n for literal in literals if isinstance(literal, Items) and literal.value is TRUE), default=0
        )
        ranges = [literal for literal in literals if isinstance(literal, Idx)]
        self._budget.spend(len(ranges))
        for position in {part.lo for part in ranges if part.lo < least}:
            self._budget.spend(len(ranges))
            inside = [part.value for part in ranges if part.lo <= position and (part.hi is None or position < part.hi)]
            self._budget.spend(len(ranges))
            if not self.possible(and_(*inside)):
                return False
        return True

    def _bounded(self, alternatives: Iterable[Conjunction]) -> list[Conjunction]:
        """The distinct alternatives without those that say more than another."""
        distinct: dict[frozenset[Formula], Conjunction] = {}
        for count, alternative in enumerate(alternatives):
            self._budget.spend(1 + len(alternative))
            distinct[frozenset(alternative)] = alternative
            if len(distinct) > self._limit or count > SEARCHED * self._limit:
                distinct = absorbed(distinct, self._budget)
                if len(distinct) > self._limit // 2 or count > SEARCHED * self._limit:
                    raise SchemaTooComplexError(
                        f"a value has more than {self._limit} alternatives once its conditions are combined",
                        budget="max_alternatives",
                        limit=self._limit,
                    )
        return list((absorbed(distinct, self._budget) if len(distinct) > 1 else distinct).values())

    def _exactly_one(self, parts: tuple[Formula, ...], kind: int, done: frozenset[str]) -> list[Conjunction]:
        """Exactly one: a plain choice where the parts exclude each other, else each part without those it overlaps."""
        overlapping: list[list[Formula]] = [[] for _ in parts]
        for i, j in candidates(parts, self._budget) if kind == OBJECT else combinations(range(len(parts)), 2):
            self._budget.spend(PROBE_STEPS)
            if self._overlap(and_(parts[i], parts[j]), kind):
                overlapping[i].append(parts[j])
                overlapping[j].append(parts[i])
        return self._bounded(
            alternative
            for part, others in zip(parts, overlapping, strict=True)
            for alternative in self._expand(
                and_(part, *[self.restrict(not_(unordered(other)), kind) for other in others]), kind, done
            )
        )

    def _negation(self, formula: Not, kind: int, done: frozenset[str]) -> list[Conjunction]:
        """Negated atoms that say "there is": by key or position where these are few."""
        atom = formula.arg
        if isinstance(atom, One):
            none = and_(*map(not_, atom.args))
            pairs = [and_(first, second) for i, first in enumerate(atom.args) for second in atom.args[:i]]
            return self._expand(or_(none, *pairs), kind, done)
        if isinstance(atom, All) and isinstance(atom.keys, Enum):
            names = [name for name in atom.keys.values if isinstance(name, str)]
            if len(names) == 1 and atom.value is FALSE:
                return [(formula,)]
            members = [(not_(All(Enum([name]), FALSE)), All(Enum([name]), not_(atom.value))) for name in names]
            return self._bounded(tuple(part for part in member if part is not TRUE) for member in members)
        if isinstance(atom, Enum) and kind in (OBJECT, ARRAY):
            parts = [or_(*[not_(literal) for literal in compound(value)]) for value in atom.values]
            return self._conjunction(parts, kind)
        return [(formula,)]


def propagated(formula: Formula) -> Formula:
    """A conjunction whose disjunctions have lost the alternatives that its other parts exclude, or were met by one."""
    while isinstance(formula, And) and any(part.__class__ is Or for part in formula.args):
        certain = set(formula.args)
        parts = [_unmet(part, certain) if isinstance(part, Or) else part for part in formula.args]
        simpler = and_(*parts)
        if simpler is formula:
            break
        formula = simpler
    return formula


def _unmet(choice: Or, certain: set[Formula]) -> Formula:
    """What a disjunction still asks where the formulas that are ``certain`` hold."""
    if any(part in certain for part in choice.args):
        return TRUE
    left = [part for part in choice.args if part.negation is None or part.negation not in certain]
    return choice if len(left) == len(choice.args) else or_(*left)


def is_choice(formula: Formula) -> bool:
    """Whether a formula over objects is more than one alternative on its face."""
    if isinstance(formula, Not):
        return isinstance(formula.arg, One)
    return isinstance(formula, One) or (isinstance(formula, Or) and dependency(formula) is None)


def factored(formula: Formula) -> Formula:
    """What all parts of an "exactly one" have in common, said once before it; other formulas as they are."""
    if isinstance(formula, One):
        common, remaining = _common(formula)
        return and_(*common, factored(one(*remaining))) if common else formula
    if isinstance(formula, And) and any([part.__class__ is One for part in formula.args]):
        return and_(*[factored(part) if part.__class__ is One else part for part in formula.args])
    if isinstance(formula, Not) and isinstance(formula.arg, One) and not formula.ordered:
        common, remaining = _common(formula.arg)
        return or_(*map(not_, common), not_(one(*remaining))) if common else formula
    return formula


def _common(formula: One) -> tuple[list[Formula], list[Formula]]:
    parts = [part.args if isinstance(part, And) else (part,) for part in formula.args]
    common = dict.fromkeys(parts[0])
    for part in parts[1:]:
        if not common:
            break
        common = {literal: None for literal in part if literal in common}
    remaining = [and_(*[literal for literal in part if literal not in common]) for part in parts] if common else []
    return list(common), remaining


def plain_literals(parts: Iterable[Formula], kind: int) -> Conjunction | None:
    """The literals of a conjunction that speak of one type, if it is one of plain literals and the type is possible."""
    literals = []
    for part in parts:
        cls = part.__class__
        kept = ATOM_TYPE.get(cls)
        if kept is None and cls is Not:
            atom = part.arg  # type: ignore[attr-defined]
            kept = ATOM_TYPE.get(atom.__class__)
            if atom.__class__ is All and kind == OBJECT and absent_key(atom) is None:
                return None
            if atom.__class__ is Idx and kind == ARRAY:
                return None
            if kept is not None and kept != kind:
                return None  # false off its type
        if kept == kind:
            literals.append(part)
        elif cls is Type:
            if not part.mask & kind:  # type: ignore[attr-defined]
                return None
        elif kept is None:
            return None
    return tuple(literals)


def joins(side: Conjunction, choice: Iterable[Conjunction]) -> list[Conjunction]:
    """``side`` and each alternative of a choice, without what contradicts itself; just ``side`` if one follows."""
    present = dict.fromkeys(side)
    new_sides = []
    for other in choice:
        new = [literal for literal in other if literal not in present]
        if not new:
            return [side]
        if not any(literal.negation in present for literal in new):
            new_sides.append((*side, *new))
    return new_sides


def absorbed(
    alternatives: dict[frozenset[Formula], Conjunction], budget: StepBudget
) -> dict[frozenset[Formula], Conjunction]:
    """Without the conjunctions that contain another. Linear where each has a literal that few others have."""
    if frozenset() in alternatives:
        return {frozenset(): alternatives[frozenset()]}
    uses = Counter(literal for literals in alternatives for literal in literals)
    kept: dict[Formula, list[frozenset[Formula]]] = {}  # by the rarest literal
    chosen = set()
    for literals in sorted(alternatives, key=len):
        rivals = [others for literal in literals if (others := kept.get(literal)) is not None]
        if rivals:
            budget.spend(sum(map(len, rivals)) // COMPARED)
        if not any(other <= literals for others in rivals for other in others):
            kept.setdefault(min(literals, key=uses.__getitem__), []).append(literals)
            chosen.add(literals)
    return {literals: conjunction for literals, conjunction in alternatives.items() if literals in chosen}


def compound(value: object) -> Conjunction:
    """The literals that only the array or object ``value`` (canonical form) satisfies."""
    assert isinstance(value, tuple)
    tag, content = value
    if tag == "array":
        items = [Idx(i, i + 1, Enum([item])) for i, item in enumerate(content)]
        return tuple(
            part
            for part in (*items, Items(TRUE, len(content)), not_(Items(TRUE, len(content) + 1)))
            if part is not TRUE
        )
    members = sorted(content, key=lambda member: str(member[0]))
    names = [name for name, _ in members]
    literals: list[Formula] = []
    for name, item in members:
        literals += [not_(All(Enum([name]), FALSE)), All(Enum([name]), Enum([item]))]
    return (*literals, All(not_(Enum(names)), FALSE))


def absent_key(formula: Formula) -> str | None:
    """k, if the formula says that the key k is absent."""
    if isinstance(formula, All) and formula.value is FALSE and isinstance(formula.keys, Enum):
        values = formula.keys.values
        if len(values) == 1 and isinstance(values[0], str):
            return values[0]
    return None


def required_key(formula: Formula) -> str | None:
    """k, if the formula says that the key k is present."""
    return absent_key(formula.arg) if isinstance(formula, Not) else None


def dependency(formula: Formula) -> tuple[str, list[str]] | None:
    """(k, names), if the formula says "k is absent, or all of these are present"."""
    if not isinstance(formula, Or) or len(formula.args) != 2:
        return None
    first, second = formula.args
    for condition, consequence in ((first, second), (second, first)):
        key = absent_key(condition)
        if key is not None:
            parts = consequence.args if isinstance(consequence, And) else (consequence,)
            names = [required_key(part) for part in parts]
            if all(name is not None for name in names):
                return key, [name for name in names if name is not None]
    return None
