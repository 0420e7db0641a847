"""What an object must satisfy, as a plain conjunction."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

from structgen.core.engines.json.value_graph.scalars import ARRAY_BYTES, ITEM_BYTES, AddAutomaton, is_new
from structgen.core.regex.labelled import MANY_WORDS, LabelledDfa, every_text

if TYPE_CHECKING:
    from structgen.core.engines.json.value_graph.node import ValueNode

KEY_BYTES = 1_024  # of a key with the formulas that speak of it alone; measured, within some 20 %
_NO_NAMES: frozenset[str] = frozenset()

Live: TypeAlias = "Callable[[ValueNode], bool]"
"""Which nodes have a value, as far as it is known."""

Choice: TypeAlias = "tuple[ValueNode, int]"
"""The node of a member's value, and the existentials (bits) that such a value meets."""


def is_live(node: ValueNode) -> bool:
    """The answer that `liveness.solve` has found."""
    return node.live


@dataclass(slots=True)
class KeyClasses:
    """Classes of undeclared keys, as ``automaton`` tells them apart.

    Class 0 is "not allowed"; class i > 0 has the value node ``nodes[i - 1]`` and ``words[i - 1]`` keys that are not
    declared, at least one (`MANY_WORDS`: that many or without end). Declared keys may be labelled too.
    """

    automaton: LabelledDfa
    nodes: list[ValueNode]
    words: list[int]

    @classmethod
    def of_all(cls, node: ValueNode) -> KeyClasses:
        """One class, of all keys."""
        return cls(every_text(), [node], [MANY_WORDS])

    @property
    def is_one(self) -> bool:
        """Whether all keys are one class."""
        return self.automaton is every_text()


@dataclass(slots=True)
class Undeclared:
    """The undeclared keys of a solved object: classes (as in `KeyClasses`) that have values, one at least.

    ``choices``: of each class, if there are existentials. ``narrow``: there are beginnings that only finitely many
    undeclared keys have; the automaton then leads to no declared key.
    """

    automaton: LabelledDfa
    nodes: list[ValueNode]
    choices: Sequence[list[Choice]]
    narrow: bool


@dataclass(slots=True)
class ObjectSpec:
    """An object. ``keys`` maps each key that the schema names to its value's node, in declared order.

    ``required`` names must be present; ``dependents[k]`` are required if k is present (closed under itself). Other
    keys: ``others`` has their classes; None: not allowed. ``existentials``: how many conditions the members have to
    meet together, each by some member; ``choices[k]``: the ways in which key k can meet some of them,
    ``other_choices``: other keys, by class. ``settled``: what `key_classes.settle` has found.
    """

    keys: dict[str, ValueNode]
    required: set[str]
    dependents: dict[str, set[str]]
    least: int
    most: int | None
    others: KeyClasses | None
    forbidden: AbstractSet[str] = frozenset()  # keys whose values no JSON satisfies; set when solved
    existentials: int = 0
    choices: dict[str, list[Choice]] = field(default_factory=dict)
    other_choices: Sequence[list[Choice]] = ()
    settled: tuple[Undeclared | None] | None = None

    def children(self) -> list[ValueNode]:
        """The nodes that it leads to, with repetition."""
        nodes = [*self.keys.values()]
        if self.existentials:
            for choices in (*self.choices.values(), *self.other_choices):
                nodes += [child for child, _ in choices]
        if self.others is not None:
            nodes += self.others.nodes
        return nodes

    # --- whether it has values ---
    def is_live(self, live: Live) -> bool:
        """Whether the object has a value, given which nodes have. Sets ``forbidden``."""
        forbidden: AbstractSet[str] = _NO_NAMES
        for node in self.keys.values():
            if not (node.live if live is is_live else live(node)):
                forbidden = {name for name, node in self.keys.items() if not live(node)}
                break
        while self.dependents:
            blocked = {
                name
                for name, names in self.dependents.items()
                if name not in forbidden and (names & forbidden or self._too_many(names | {name}))
            }
            if not blocked:
                break
            forbidden |= blocked
        self.forbidden = forbidden
        if forbidden and not forbidden.isdisjoint(self.required):
            return False
        if self.most is not None and len(self.required) > self.most:
            return False
        if self.existentials and not self._coverable(live):
            return False
        if not self.least:
            return True
        others, undeclared = self.others, 0
        if others is not None:
            undeclared = sum(words for node, words in zip(others.nodes, others.words, strict=True) if live(node))
        return undeclared >= MANY_WORDS or len(self.keys) - len(forbidden) + undeclared >= self.least

    def _too_many(self, names: set[str]) -> bool:
        return self.most is not None and len(self.required | names) > self.most

    def _coverable(self, live: Live) -> bool:
        """Whether members can meet all existentials, as the kernel will decide it for an empty object."""
        room = 1 << 30 if self.most is None else self.most - len(self.required)
        declared = {
            name: [bits for node, bits in choices if live(node)]
            for name, choices in self.choices.items()
            if name not in self.forbidden
        }
        classes = [[bits for node, bits in choices if live(node)] for choices in self.other_choices]

        def search(unmet: int, room: int, taken: frozenset[str]) -> bool:
            if room < 0:
                return False
            if not unmet:
                return True
            first = unmet & -unmet
            for name, choices in declared.items():
                if name not in taken:
                    cost = 0 if name in self.required else 1
                    for bits in choices:
                        if bits & first and search(unmet & ~bits, room - cost, taken | {name}):
                            return True
            return any(
                bits & first and search(unmet & ~bits, room - 1, taken) for choices in classes for bits in choices
            )

        return search((1 << self.existentials) - 1, room, frozenset())

    def is_endless(self, endless: Live) -> bool:
        """Whether it has endlessly many values, given which nodes have."""
        room = self.most is None or self.most > len(self.required)
        others = self.others
        if room and others is not None:
            words = zip(others.nodes, others.words, strict=True)
            if any(node.live and count >= MANY_WORDS for node, count in words):
                return True
            if others.is_one:
                return False
        return any(
            endless(node)
            for name, node in self.keys.items()
            if name not in self.forbidden and (name in self.required or (room and not self.dependents.get(name)))
        )

    # --- what completes it ---
    def needed(self) -> list[ValueNode]:
        """The nodes that the least that completes it may depend on."""
        nodes = [child for choices in (*self.choices.values(), *self.other_choices) for child, _ in choices]
        if self.least <= len(self.required) and not self.existentials:
            return nodes + [self.keys[name] for name in self.required]
        nodes += self.keys.values()
        return nodes if self.others is None else nodes + self.others.nodes

    # --- what it takes ---
    def memory_bytes(self, counted: set[int]) -> int:
        """About what the spec takes; its nodes apart."""
        size = KEY_BYTES * len(self.keys) + ITEM_BYTES * (len(self.required) + len(self.forbidden))
        if self.others is not None and not self.others.is_one:
            size += 2 * (ARRAY_BYTES + self.others.automaton.transitions.nbytes)  # as it is, and settled
        return size

    def pooled_states(self, counted: set[int]) -> int:
        """States of the automaton of its undeclared keys, as the pool has them, unless it is ``counted`` (by id)."""
        if self.others is None or self.others.is_one or not is_new(self.others.automaton, counted):
            return 0
        return len(self.others.automaton.transitions)

    def encoded(self, number: dict[ValueNode, int], add: AddAutomaton) -> dict[str, Any]:
        """As plain JSON, for files; ``number``: of each node."""
        others: Any = None
        if self.others is not None:
            automaton = self.others.automaton
            part = None if self.others.is_one else add(automaton.transitions, automaton.labels)
            others = [part, [number[node] for node in self.others.nodes], self.others.words]
        return {
            "keys": [(name, number[node]) for name, node in self.keys.items()],
            "required": sorted(self.required),
            "dependents": [(name, sorted(names)) for name, names in self.dependents.items()],
            "counts": [self.least, self.most],
            "others": others,
            "forbidden": sorted(self.forbidden),
            "existentials": self.existentials,
            "choices": [
                (name, [(number[node], bits) for node, bits in choices]) for name, choices in self.choices.items()
            ],
            "other_choices": [[(number[node], bits) for node, bits in choices] for choices in self.other_choices],
        }
