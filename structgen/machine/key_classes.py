"""Objects: which value node each key has, declared or not."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np

from structgen.automata.dfa import count_words, difference, from_strings, from_table, product
from structgen.errors import SchemaTooComplexError
from structgen.formula.evaluate import evaluate
from structgen.formula.language import FALSE, TRUE, All, Enum, Formula, Not, Or, and_
from structgen.formula.values import STRING
from structgen.machine.duties import MAX_DUTIES, choices
from structgen.machine.key_terms import encodable, named, string_atoms, truth
from structgen.machine.normal_form import dependency
from structgen.machine.specs import Choice, KeyClasses, ObjectSpec

if TYPE_CHECKING:
    from structgen.machine.conjunctions import Conjunctions
    from structgen.machine.goals import GoalGraph
    from structgen.machine.node import Node

# A class of undeclared keys with at most this many words is spelled out as declared keys.
MAX_SPELLED_OUT = 64
MANY_WORDS = 1 << 30
STATE_STEPS = 2  # what a state of a product costs, for each factor
MAX_KEY_PATTERNS = 60  # `product` labels states with 64 bits


class ObjectBuilder:
    """Collects the literals of one object and builds its spec."""

    def __init__(self, graph: GoalGraph, conjunctions: Conjunctions) -> None:
        self._graph = graph
        self._conjunctions = conjunctions
        self._members: dict[str, list[Formula]] = {}  # by key named alone
        self._rules: list[tuple[Formula, Formula]] = []  # (class, formula) of the others
        self._order: dict[str, None] = {}
        self._required: dict[str, None] = {}
        self._dependents: dict[str, set[str]] = {}
        self._duties: list[tuple[Formula, Formula]] = []  # (class, what the value of some key in it satisfies)
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
        found = dependency(clause)
        assert found is not None
        self._dependents.setdefault(found[0], set()).update(found[1])

    def order(self, names: Iterable[str]) -> None:
        """The declared order of keys; of several, the first that names a key decides."""
        self._order.update(dict.fromkeys(names))

    def require(self, name: str) -> None:
        """A key that must be present."""
        self._required[name] = None

    def oblige(self, keys: Formula, value: Formula) -> None:
        """Some member whose key is in a class must have a value that satisfies ``value``."""
        self._duties.append((keys, value))

    def members(self, atom: All) -> None:
        """A condition on the values of a class of keys."""
        keys = atom.keys
        if isinstance(keys, Enum):
            for name in keys.values:
                if isinstance(name, str):
                    self._members.setdefault(name, []).append(atom.value)
        else:
            self._rules.append((keys, atom.value))

    def build(self) -> ObjectSpec | None:
        """The spec, or None if too few keys are allowed on its face."""
        if self._most is not None and self._most < self._least:
            return None
        keys = {name: self._value(name) for name in self._names()}
        others, narrow, bits = self._others(keys)
        required = set(self._required)
        dependents: dict[str, set[str]] = {}
        if self._dependents:
            dependents = closure(self._dependents)
            for name in self._required:
                required |= dependents.get(name, set())
            if self._most is not None and self._least > 1:
                self._graph.unsupported(TRUE, "dependentRequired together with minProperties and maxProperties")
        spec = ObjectSpec(keys, required, dependents, self._least, self._most, others, narrow)
        if self._duties:
            self._oblige(spec, bits)
        return spec

    def _oblige(self, spec: ObjectSpec, bits: list[int]) -> None:
        """Add the obligations; ``bits``: those that each class of undeclared keys may meet."""
        if len(self._duties) > MAX_DUTIES:
            raise SchemaTooComplexError(
                f"an object has {len(self._duties)} conditions that some member must meet",
                budget="MAX_DUTIES",
                limit=MAX_DUTIES,
            )
        if spec.most is not None and spec.dependents:
            what = "a condition that some member must meet, beside maxProperties and dependentRequired"
            self._graph.unsupported(TRUE, what)
        spec.duties = len(self._duties)
        for name, node in spec.keys.items():
            allowed = sum(1 << i for i, (keys, _) in enumerate(self._duties) if self._holds(keys, name))
            spec.choices[name] = self._choices(node, allowed)
        nodes: list[Node] = []
        if isinstance(spec.others, KeyClasses):
            nodes = spec.others.nodes
        elif spec.others is not None:
            nodes = [spec.others]
        spec.other_choices = [self._choices(node, allowed) for node, allowed in zip(nodes, bits, strict=True)]

    def _choices(self, node: Node, allowed: int) -> list[Choice]:
        """The ways in which a member with values ``node`` can meet some of the obligations ``allowed``."""
        conditions = [(1 << i, value) for i, (_, value) in enumerate(self._duties) if allowed >> i & 1]
        return choices(node.formula, conditions, self._graph.node, self._graph.normal_form.possible)

    def _names(self) -> dict[str, None]:
        """Every key that is named anywhere, in declared order."""
        names = {**self._order, **dict.fromkeys(self._members), **self._required}
        for name, needed in self._dependents.items():
            names[name] = None
            names.update(dict.fromkeys(sorted(needed)))
        for keys, _ in (*self._rules, *self._duties):
            names.update(dict.fromkeys(named(keys)))
        return names

    def _value(self, name: str) -> Node:
        """The node of a named key's value: what names the key, and the rules whose class it is in."""
        if not encodable(name):
            return self._graph.node(FALSE)
        parts = self._members.get(name, [])
        applying = [value for keys, value in self._rules if self._holds(keys, name)]
        if applying:
            parts = [*parts, *applying]
        return self._graph.node(parts[0] if len(parts) == 1 else and_(*parts))

    def _holds(self, keys: Formula, name: str) -> bool:
        if isinstance(keys, Not) and isinstance(keys.arg, Enum):
            return name not in keys.arg.members
        return evaluate(keys, name, self._graph.lowered.refs)

    def _others(self, keys: dict[str, Node]) -> tuple[Node | KeyClasses | None, bool, list[int]]:
        """The node, or classes of nodes, of the keys that are not in ``keys``, and the obligations of each class."""
        if not self._rules and not self._duties:
            return self._graph.node(TRUE), False, []
        atoms: dict[Formula, None] = {}
        for rule, _ in (*self._rules, *self._duties):
            if not (isinstance(rule, Not) and isinstance(rule.arg, Enum)):
                atoms.update(dict.fromkeys(string_atoms(self._string(rule))))
        if not atoms:
            value, bits = self._of_class({})
            return (None, False, []) if value is FALSE else (self._graph.node(value), False, [bits])
        return self._classes(list(atoms), keys)

    def _of_class(self, facts: dict[Formula, bool]) -> tuple[Formula, int]:
        """What undeclared keys with these facts about them have as values, and the obligations they may meet."""
        value = and_(*[value for rule, value in self._rules if truth(self._string(rule), facts)])
        return value, sum(1 << i for i, (rule, _) in enumerate(self._duties) if truth(self._string(rule), facts))

    def _string(self, rule: Formula) -> Formula:
        """What a rule's class says of keys, which are strings."""
        if isinstance(rule, Not) and isinstance(rule.arg, Enum):
            return rule
        return self._graph.normal_form.restrict(rule, STRING)

    def _classes(self, atoms: list[Formula], keys: dict[str, Node]) -> tuple[KeyClasses | None, bool, list[int]]:
        """Classes by which of ``atoms`` a key satisfies, as one automaton."""
        limit = self._graph.options.max_automaton_states
        dfas = [self._conjunctions.string_dfa(atom, True) for atom in atoms]
        present = [dfa for dfa in dfas if dfa is not None]
        if len(present) > MAX_KEY_PATTERNS:
            raise SchemaTooComplexError(
                f"an object has {len(present)} patterns for keys", budget="MAX_KEY_PATTERNS", limit=MAX_KEY_PATTERNS
            )
        table, bits = product(present, limit)
        self._graph.budget.spend(STATE_STEPS * len(table) * len(present))
        places = [i for i, dfa in enumerate(dfas) if dfa is not None]
        formulas: dict[tuple[Formula, int], int] = {}
        class_of: dict[int, int] = {}
        for signature in np.unique(bits).tolist():
            facts = dict.fromkeys(atoms, True)  # an unknown format is no condition
            facts.update({atoms[place]: bool(signature >> i & 1) for i, place in enumerate(places)})
            value = self._of_class(facts)
            class_of[signature] = 0 if value[0] is FALSE else formulas.setdefault(value, len(formulas) + 1)
        labels = np.array([class_of[signature] for signature in bits.tolist()], np.int32)
        classes, narrow = self._trimmed(table, labels, [self._graph.node(formula) for formula, _ in formulas], keys)
        return classes, narrow, [] if classes is None else [duties for _, duties in formulas]

    def _trimmed(
        self, table: np.ndarray, labels: np.ndarray, nodes: list[Node], keys: dict[str, Node]
    ) -> tuple[KeyClasses | None, bool]:
        """The classes without dead states; declared keys excluded where that can matter."""
        whole = valid_ends(table)
        labels = np.where(whole, labels, 0).astype(np.int32)
        allowed = from_table(table, (labels > 0).astype(np.uint8))
        if allowed.is_empty:
            return None, False
        limit = self._graph.options.max_automaton_states
        words = count_words(allowed, MANY_WORDS)
        narrow = bool((words < MANY_WORDS).any())
        if narrow and keys:
            allowed = difference(allowed, from_strings(keys, limit), limit)
            if allowed.is_empty:
                return None, False
            words = count_words(allowed, MANY_WORDS)
            narrow = bool((words < MANY_WORDS).any())
        if words[0] <= MAX_SPELLED_OUT:
            for word, label in spelled_out(table, labels):
                keys.setdefault(word, nodes[label - 1])
            return None, False
        classes = [from_table(table, (labels == c + 1).astype(np.uint8)) for c in range(len(nodes))]
        merged, signature = product([allowed, *classes], limit)
        self._graph.budget.spend(STATE_STEPS * len(merged) * len(classes))
        marks = np.zeros(len(signature), np.int32)
        for c in range(len(nodes)):
            marks[((signature & 1) != 0) & ((signature >> np.uint64(c + 1)) & 1 != 0)] = c + 1
        count = None if words[0] >= MANY_WORDS else int(words[0])
        return KeyClasses(*trim(merged, marks), nodes, count), narrow


def valid_ends(table: np.ndarray) -> np.ndarray:
    """Whether each state stands between characters, bool[n]: inside one, only continuation bytes can follow."""
    return np.asarray(table[:, 0x41] >= 0)


def reaching(table: np.ndarray, ends: np.ndarray) -> np.ndarray:
    """Which states lead to one of ``ends`` (bool[n]), these included."""
    live = ends
    while True:
        reach = live | ((table >= 0) & live[table]).any(axis=1)
        if (reach == live).all():
            return live
        live = reach


def trim(table: np.ndarray, labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Remove states from which no labelled one is reached (start stays first) and renumber."""
    live = reaching(table, labels > 0)
    number = np.full(len(live) + 1, -1, np.int32)
    number[:-1][live] = np.arange(live.sum(), dtype=np.int32)
    return np.ascontiguousarray(number[table[live]]), labels[live]


def spelled_out(table: np.ndarray, labels: np.ndarray) -> Iterable[tuple[str, int]]:
    """All keys of a finite set of classes, with their labels."""
    table, labels = trim(table, labels)
    stack = [(0, b"")]
    while stack:
        state, text = stack.pop()
        if labels[state]:
            yield text.decode(), int(labels[state])
        for byte in np.flatnonzero(table[state] >= 0).tolist():
            stack.append((int(table[state, byte]), text + bytes([byte])))


def closure(dependents: dict[str, set[str]]) -> dict[str, set[str]]:
    """The transitive closure: what each key requires directly or through others."""
    closed = {name: set(needed) for name, needed in dependents.items()}
    changed = True
    while changed:
        changed = False
        for needed in closed.values():
            more = set().union(*[closed[name] for name in needed if name in closed]) - needed
            if more:
                needed |= more
                changed = True
    return closed
