"""Objects: which value node each key has, declared or not; which existentials members meet, what a key settles."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import combinations
from typing import TYPE_CHECKING, Any

from structgen.core.engines.json.value_graph.context import SpecContext
from structgen.core.engines.json.value_graph.normal_form import NormalForm, dependency
from structgen.core.engines.json.value_graph.objects import Choice, KeyClasses, ObjectSpec, Undeclared
from structgen.core.json_schema.budget import StepBudget
from structgen.core.json_schema.formula.evaluate import evaluate
from structgen.core.json_schema.formula.language import (
    FALSE,
    TRUE,
    All,
    And,
    Enum,
    Formula,
    MemberRecord,
    Not,
    One,
    Or,
    Type,
    and_,
    not_,
    unordered,
)
from structgen.core.json_schema.formula.leaves import leaves
from structgen.core.json_schema.formula.values import STRING
from structgen.core.regex.dfa import Dfa
from structgen.core.regex.labelled import MANY_WORDS, LabelledDfa, classes_of, side_by_side
from structgen.errors import SchemaTooComplexError

if TYPE_CHECKING:
    from structgen.core.engines.json.value_graph.node import ValueNode


def named(keys: Formula) -> Iterable[str]:
    """The strings that a key class names."""
    return [name for atom in leaves(keys) if isinstance(atom, Enum) for name in atom.values if isinstance(name, str)]


def string_atoms(keys: Formula) -> Iterable[Formula]:
    """The atoms of a key class other than enumerations."""
    return [atom for atom in leaves(keys) if not isinstance(atom, (Enum, Type))]


def truth(keys: Formula, facts: dict[Formula, bool]) -> bool:
    """Truth of a key class for a key that no enumeration names, given the truth of its other atoms.

    That of parts is added to ``facts``, so that those that are shared are looked at once.
    """
    verdict = facts.get(keys)
    if verdict is None:
        verdict = facts[keys] = _looked_at(keys, facts)
    return verdict


def _looked_at(keys: Formula, facts: dict[Formula, bool]) -> bool:
    if isinstance(keys, Type):
        return keys.mask != 0
    if isinstance(keys, Enum):
        return False
    if isinstance(keys, Not):
        return not truth(keys.arg, facts)
    if isinstance(keys, And):
        return all(truth(part, facts) for part in keys.args)
    if isinstance(keys, Or):
        return any(truth(part, facts) for part in keys.args)
    if isinstance(keys, One):
        return sum(truth(part, facts) for part in keys.args) == 1
    raise AssertionError(f"there is no fact about {keys!r}")


def encodable(text: str) -> bool:
    """Whether a string is Unicode text (lone surrogates are not: RFC 8259, section 8.2)."""
    return text.isascii() or not any(0xD800 <= ord(c) <= 0xDFFF for c in text)


MAX_EXISTENTIALS = 6
"""Existentials of one object; the kernel's search for members that meet them is that deep."""
MAX_DECIDED = 16
"""The same where no table is made of the object."""


def choices(
    base: Formula,
    conditions: list[tuple[int, Formula]],
    node: Callable[[Formula], ValueNode],
    possible: Callable[[Formula], bool],
) -> list[Choice]:
    """The ways in which a member with values ``base`` can meet some of its existentials (bit, condition)."""
    certain, open_conditions = 0, []
    for bit, condition in conditions:
        if possible(and_(base, condition)):
            if possible(and_(base, not_(unordered(condition)))):
                open_conditions.append((bit, condition))
            else:
                certain |= bit
    options = [(node(base), certain)] if certain else []
    for size in range(1, len(open_conditions) + 1):
        for chosen in combinations(open_conditions, size):
            value = and_(base, *[condition for _, condition in chosen])
            if value is not FALSE and possible(value):
                options.append((node(value), certain | sum(bit for bit, _ in chosen)))
    return options


# A class of undeclared keys with at most this many words is spelled out as declared keys.
MAX_SPELLED_OUT = 64
NOTHING: frozenset[str] = frozenset()
RULE_STEPS = 3  # what asking whether a class has a key costs
STATE_STEPS = 2  # what a state of a product costs, for each factor
MAX_KEY_PATTERNS = 60  # `product` labels states with 64 bits


class ObjectBuilder:
    """Collects the literals of one object and builds its spec."""

    def __init__(
        self,
        context: SpecContext,
        form: NormalForm,
        node: Callable[[Formula], ValueNode],
        string_dfa: Callable[[Formula, bool], Dfa | None],
    ) -> None:
        self._context, self._form, self._node, self._string_dfa = context, form, node, string_dfa
        self._members: dict[str, Formula] = {}  # by key named alone
        self._rules: list[tuple[Formula, Formula]] = []  # (class, formula) of the others
        self._order: dict[str, None] = {}
        self._required: dict[str, None] = {}
        self._dependents: dict[str, set[str]] = {}
        self._existentials: list[tuple[Formula, Formula]] = []  # (class, what the value of some key in it satisfies)
        self._least = 0
        self._most: int | None = None

    def count(self, n: int, positive: bool) -> None:
        """At least ``n`` members, or (negated) fewer."""
        if positive:
            self._least = max(self._least, n)
        else:
            self._most = n - 1 if self._most is None else min(self._most, n - 1)

    def depend(self, clause: Or) -> None:
        """A key whose presence requires others."""
        needs = dependency(clause)
        assert needs is not None
        self._dependents.setdefault(needs[0], set()).update(needs[1])

    def order(self, names: Iterable[str]) -> None:
        """The declared order of keys; of several, the first that names a key decides."""
        self._order.update(dict.fromkeys(names))

    def require(self, name: str) -> None:
        """A key that must be present."""
        self._required[name] = None

    def require_some(self, keys: Formula, value: Formula) -> None:
        """Some member whose key is in a class must have a value that satisfies ``value``."""
        self._existentials.append((keys, value))

    def members(self, atom: All) -> None:
        """A condition on the values of a class of keys."""
        keys, value, members = atom.keys, atom.value, self._members
        if keys.__class__ is not Enum:
            self._rules.append((keys, value))
            return
        for name in keys.values:
            if name.__class__ is str:
                present = members.get(name)
                members[name] = value if present is None else and_(present, value)

    def build(self) -> ObjectSpec | None:
        """The spec, or None if too few keys are allowed on its face."""
        if self._most is not None and self._most < self._least:
            return None
        node, value = self._node, self._value
        keys = {name: node(value(name)) for name in self._names()}
        others, bits = self._others(keys)
        required = set(self._required)
        dependents: dict[str, set[str]] = {}
        if self._dependents:
            dependents = closure(self._dependents, self._context.budget)
            for name in self._required:
                required |= dependents.get(name, set())
            if self._most is not None and self._least > 1:
                self._context.unsupported(TRUE, "dependentRequired together with minProperties and maxProperties")
        spec = ObjectSpec(keys, required, dependents, self._least, self._most, others)
        if self._existentials:
            self._require_some(spec, bits)
        return spec

    def _require_some(self, spec: ObjectSpec, bits: list[int]) -> None:
        """Add the existentials; ``bits``: those that each class of undeclared keys may meet."""
        count = len(self._existentials)
        limit = MAX_DECIDED if self._context.decides else MAX_EXISTENTIALS
        if count > limit:
            raise SchemaTooComplexError(
                f"an object has {count} conditions that some member must meet, more than {limit}",
                limit=limit,
            )
        if spec.most is not None and spec.dependents:
            what = "a condition that some member must meet, beside maxProperties and dependentRequired"
            self._context.unsupported(TRUE, what)
        spec.existentials = len(self._existentials)
        for name, node in spec.keys.items():
            allowed = sum(1 << i for i, (keys, _) in enumerate(self._existentials) if self._holds(keys, name))
            spec.choices[name] = self._choices(node, allowed)
        nodes = [] if spec.others is None else spec.others.nodes
        spec.other_choices = [self._choices(node, allowed) for node, allowed in zip(nodes, bits, strict=True)]

    def _choices(self, node: ValueNode, allowed: int) -> list[Choice]:
        """The ways in which a member with values ``node`` can meet some of the existentials ``allowed``."""
        conditions = [(1 << i, value) for i, (_, value) in enumerate(self._existentials) if allowed >> i & 1]
        return choices(node.formula, conditions, self._node, self._form.possible)

    def _names(self) -> dict[str, None]:
        """Every key that is named anywhere, in declared order."""
        names: dict[str, Any] = {**self._order, **self._members, **self._required}
        for name, needed in self._dependents.items():
            names[name] = None
            names.update(dict.fromkeys(sorted(needed)))
        for keys, _ in (*self._rules, *self._existentials):
            names.update(dict.fromkeys(named(keys)))
        return names

    def _value(self, name: str) -> Formula:
        """What a named key's value satisfies: what names the key says, and the rules whose class it is in."""
        if not encodable(name):
            return FALSE
        value_of = self._members.get(name, TRUE)
        self._context.budget.spend(RULE_STEPS * len(self._rules))
        for keys, value in self._rules:
            if self._holds(keys, name):
                value_of = and_(value_of, value)
        return value_of

    def _holds(self, keys: Formula, name: str) -> bool:
        if keys.__class__ is Not and keys.arg.__class__ is Enum:
            return name not in keys.arg.members
        return evaluate(keys, name, self._context.lowered.refs)

    def _others(self, keys: dict[str, ValueNode]) -> tuple[KeyClasses | None, list[int]]:
        """The classes of the keys that are not in ``keys``, and the existentials of each class."""
        if not self._rules and not self._existentials:
            return KeyClasses.of_all(self._node(TRUE)), []
        atoms: dict[Formula, None] = {}
        for rule, _ in (*self._rules, *self._existentials):
            if not (isinstance(rule, Not) and isinstance(rule.arg, Enum)):
                atoms.update(dict.fromkeys(string_atoms(self._string(rule))))
        if not atoms:
            value, bits = self._of_class({})
            return (None, []) if value is FALSE else (KeyClasses.of_all(self._node(value)), [bits])
        return self._classes(list(atoms), keys)

    def _of_class(self, facts: dict[Formula, bool]) -> tuple[Formula, int]:
        """What undeclared keys with these facts about them have as values, and the existentials they may meet."""
        value = and_(*[value for rule, value in self._rules if truth(self._string(rule), facts)])
        return value, sum(1 << i for i, (rule, _) in enumerate(self._existentials) if truth(self._string(rule), facts))

    def _string(self, rule: Formula) -> Formula:
        """What a rule's class says of keys, which are strings."""
        if isinstance(rule, Not) and isinstance(rule.arg, Enum):
            return rule
        return self._form.restrict(rule, STRING)

    def _classes(self, atoms: list[Formula], keys: dict[str, ValueNode]) -> tuple[KeyClasses | None, list[int]]:
        """Classes by which of ``atoms`` a key satisfies, as one automaton."""
        limit = self._context.options.max_automaton_states
        dfas = [self._string_dfa(atom, True) for atom in atoms]
        present = tuple([dfa for dfa in dfas if dfa is not None])
        if len(present) > MAX_KEY_PATTERNS:
            raise SchemaTooComplexError(
                f"an object has {len(present)} patterns for keys, more than {MAX_KEY_PATTERNS}", limit=MAX_KEY_PATTERNS
            )
        with self._context.placed(atoms[0] if atoms else TRUE):
            sides = side_by_side(present, limit)
        self._context.budget.spend(STATE_STEPS * len(sides.bits) * len(present))
        places = [i for i, dfa in enumerate(dfas) if dfa is not None]
        formulas: dict[tuple[Formula, int], int] = {}
        classes: list[int] = []
        for signature in sides.kinds:
            facts = dict.fromkeys(atoms, True)  # an unknown format is no condition
            facts.update({atoms[position]: bool(signature >> i & 1) for i, position in enumerate(places)})
            value = self._of_class(facts)
            classes.append(0 if value[0] is FALSE else formulas.setdefault(value, len(formulas) + 1))
        return self._counted(classes_of(present, tuple(classes), limit), list(formulas), keys)

    def _counted(
        self, automaton: LabelledDfa, formulas: list[tuple[Formula, int]], keys: dict[str, ValueNode]
    ) -> tuple[KeyClasses | None, list[int]]:
        """The classes that have undeclared keys. Where there are few of these, they join the declared ones."""
        counts = words_besides(automaton, keys)
        total = sum(counts)
        # One member can be chosen for each existential as long as its class has keys; of few keys that is not so.
        few = [c for c, n in enumerate(counts) if n and (total if not self._existentials else n) <= MAX_SPELLED_OUT]
        for word, label in automaton.renamed(_only(few, len(counts))).texts() if few else ():
            if word not in keys:
                keys[word] = self._node(formulas[few[label - 1]][0])
        kept = [c for c, n in enumerate(counts) if n and c not in few]
        if not kept:
            return None, []
        automaton = automaton.renamed(_only(kept, len(counts)))
        nodes = [self._node(formulas[c][0]) for c in kept]
        self._context.budget.spend(STATE_STEPS * len(automaton.labels) * len(kept))
        return KeyClasses(automaton, nodes, [counts[c] for c in kept]), [formulas[c][1] for c in kept]


def record_spec(record: MemberRecord, node: Callable[[Formula], ValueNode]) -> ObjectSpec:
    """The spec of a `MemberRecord`: what `ObjectBuilder` makes of its literals."""
    names, values, others = record.names, record.values, record.others
    if others is TRUE and not record.declared and TRUE in values:  # what says nothing names nothing
        keys = {name: node(value) for name, value in zip(names, values, strict=True) if value is not TRUE}
    else:
        keys = dict(zip(names, map(node, values), strict=True))
    required = {*record.required}
    if not required <= keys.keys():
        value_of = dict(zip(names, values, strict=True))
        for name in record.required:
            keys[name] = node(value_of.get(name, others))
    if not "".join(keys).isascii():
        for name in keys:
            if not encodable(name):
                keys[name] = node(FALSE)
    return ObjectSpec(keys, required, {}, 0, None, None if others is FALSE else KeyClasses.of_all(node(others)))


def settle(spec: ObjectSpec, max_states: int) -> Undeclared | None:
    """What remains of the undeclared keys when it is known which nodes have values; None: none.

    The same object each time: `tables.arrays` and `completion.remaining_text` number states alike.

    Raises:
        SchemaTooComplexError: more than ``max_states`` states.
    """
    if spec.settled is None:
        spec.settled = (_settled(spec, max_states),)
    return spec.settled[0]


def _settled(spec: ObjectSpec, max_states: int) -> Undeclared | None:
    others = spec.others
    if others is None:
        return None
    kept = [c for c, node in enumerate(others.nodes) if node.live]
    if not kept:
        return None
    if others.is_one:
        return Undeclared(others.automaton, others.nodes, spec.other_choices, False)
    automaton = others.automaton.renamed(_only(kept, len(others.nodes)))
    narrow = automaton.is_narrow
    if narrow and spec.keys:  # a beginning that only declared keys have leads to no undeclared one
        automaton = automaton.without(spec.keys, max_states)
        narrow = automaton.is_narrow
    choices = [spec.other_choices[c] for c in kept] if spec.existentials else []
    return Undeclared(automaton, [others.nodes[c] for c in kept], choices, narrow)


def _only(kept: list[int], classes: int) -> list[int]:
    """New numbers for the labels of some classes (counted from 0) so that ``kept`` are left."""
    number = [0] * (classes + 1)
    for label, label_of in enumerate(kept, 1):
        number[label_of + 1] = label
    return number


def words_besides(automaton: LabelledDfa, names: Iterable[str]) -> list[int]:
    """How many keys each class has besides ``names``; `MANY_WORDS` where there are that many or no end."""
    counts = automaton.words.copy()
    if any([count < MANY_WORDS for count in counts]):
        for label in map(automaton.class_of, names):
            if label and counts[label - 1] < MANY_WORDS:
                counts[label - 1] -= 1
    return counts


def closure(dependents: dict[str, set[str]], budget: StepBudget) -> dict[str, set[str]]:
    """The transitive closure: what each key requires directly or through others."""
    closed = {}
    for name, needed in dependents.items():
        closed_names, todo = set(needed), list(needed)
        for other in todo:  # which grows
            new = dependents.get(other, NOTHING) - closed_names
            closed_names |= new
            todo += new
            budget.spend(1 + len(dependents.get(other, NOTHING)))
        closed[name] = closed_names
    return closed
