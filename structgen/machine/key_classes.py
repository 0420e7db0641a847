"""Objects: which value node each key has, declared or not."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np

from structgen.automata.dfa import count_words, difference, from_strings, from_table, product
from structgen.formula.evaluate import evaluate
from structgen.formula.language import FALSE, TRUE, All, And, Enum, Formula, Not, Or, Type, and_
from structgen.formula.values import STRING
from structgen.machine.normal_form import dependency
from structgen.machine.specs import KeyClasses, ObjectSpec

if TYPE_CHECKING:
    from structgen.machine.conjunctions import Conjunctions
    from structgen.machine.goals import GoalGraph, Node

# A class of undeclared keys with at most this many words is spelled out as declared keys.
MAX_SPELLED_OUT = 64
MANY_WORDS = 1 << 30


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
        self._least, self._most = 0, None

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
        names = self._names()
        keys = {name: self._value(name, formulas) for name, formulas in names.items()}
        others, narrow = self._others(keys)
        required = set(self._required)
        dependents = closure(self._dependents)
        for name in self._required:
            required |= dependents.get(name, set())
        if dependents and self._most is not None and self._least > 1:
            self._graph.unsupported(TRUE, "dependentRequired together with minProperties and maxProperties")
        return ObjectSpec(keys, required, dependents, self._least, self._most, others, narrow)

    def _names(self) -> dict[str, list[Formula]]:
        """Every key that is named anywhere, in declared order, with the conditions that name it alone."""
        mentioned = dict.fromkeys(self._order)
        mentioned.update(dict.fromkeys(self._members))
        mentioned.update(dict.fromkeys(self._required))
        for name, needed in self._dependents.items():
            mentioned[name] = None
            mentioned.update(dict.fromkeys(sorted(needed)))
        for keys, _ in self._rules:
            mentioned.update(dict.fromkeys(named(keys)))
        return {name: self._members.get(name, []) for name in mentioned}

    def _value(self, name: str, formulas: list[Formula]) -> Node:
        parts = list(formulas)
        for keys, value in self._rules:
            if self._holds(keys, name):
                parts.append(value)
        return self._graph.node(and_(*parts))

    def _holds(self, keys: Formula, name: str) -> bool:
        if isinstance(keys, Not) and isinstance(keys.arg, Enum):
            return name not in keys.arg.members
        return evaluate(keys, name, self._graph.lowered.refs)

    def _others(self, keys: dict[str, Node]) -> tuple[Node | KeyClasses | None, bool]:
        """The node, or classes of nodes, of the keys that are not in ``keys``."""
        atoms: dict[Formula, None] = {}
        for rule, _ in self._rules:
            atoms.update(dict.fromkeys(string_atoms(self._graph.normal_form.restrict(rule, STRING))))
        if not atoms:
            value = and_(*[value for rule, value in self._rules if truth(self._string(rule), {})])
            return (None, False) if value is FALSE else (self._graph.node(value), False)
        return self._classes(list(atoms), keys)

    def _string(self, rule: Formula) -> Formula:
        return self._graph.normal_form.restrict(rule, STRING)

    def _classes(self, atoms: list[Formula], keys: dict[str, Node]) -> tuple[KeyClasses | None, bool]:
        """Classes by which of ``atoms`` a key satisfies, as one automaton."""
        limit = self._graph.options.max_automaton_states
        dfas = [self._conjunctions.string_dfa(atom, True) for atom in atoms]
        present = [dfa for dfa in dfas if dfa is not None]
        table, bits = product(present, limit)
        places = [i for i, dfa in enumerate(dfas) if dfa is not None]
        formulas: dict[Formula, int] = {}
        class_of: dict[int, int] = {}
        for signature in np.unique(bits).tolist():
            facts = dict.fromkeys(atoms, True)  # an unknown format is no condition
            facts.update({atoms[place]: bool(signature >> i & 1) for i, place in enumerate(places)})
            value = and_(*[value for rule, value in self._rules if truth(self._string(rule), facts)])
            class_of[signature] = 0 if value is FALSE else formulas.setdefault(value, len(formulas) + 1)
        labels = np.array([class_of[signature] for signature in bits.tolist()], np.int32)
        return self._trimmed(table, labels, [self._graph.node(formula) for formula in formulas], keys)

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
        label = np.zeros(len(signature), np.int32)
        for c in range(len(nodes)):
            label[((signature & 1) != 0) & ((signature >> np.uint64(c + 1)) & 1 != 0)] = c + 1
        return KeyClasses(*trim(merged, label), nodes), narrow


def valid_ends(table: np.ndarray) -> np.ndarray:
    """Whether each state stands between characters, bool[n]: inside one, only continuation bytes can follow."""
    return np.asarray(table[:, 0x41] >= 0)


def trim(table: np.ndarray, labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Remove states from which no labelled one is reached (start stays first) and renumber."""
    live = labels > 0
    while True:
        reach = live | ((table >= 0) & live[table]).any(axis=1)
        if (reach == live).all():
            break
        live = reach
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


def named(keys: Formula) -> Iterable[str]:
    """The strings that a key class names."""
    if isinstance(keys, Enum):
        return [value for value in keys.values if isinstance(value, str)]
    if isinstance(keys, Not):
        return named(keys.arg)
    if isinstance(keys, (And, Or)):
        return [name for part in keys.args for name in named(part)]
    return []


def string_atoms(keys: Formula) -> Iterable[Formula]:
    """The atoms of a key class other than enumerations."""
    if isinstance(keys, (Enum, Type)):
        return []
    if isinstance(keys, Not):
        return string_atoms(keys.arg)
    if hasattr(keys, "args"):
        return [atom for part in keys.args for atom in string_atoms(part)]
    return [keys]


def truth(keys: Formula, facts: dict[Formula, bool]) -> bool:
    """Truth of a key class for a key that no enumeration names, given the truth of its other atoms."""
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
    if hasattr(keys, "args"):
        return sum(truth(part, facts) for part in keys.args) == 1
    return facts[keys]


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
