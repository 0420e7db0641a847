"""What a value of one type must satisfy, as plain conjunctions: the normal form between formulas and tables."""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

from structgen.core.engines.json.numbers.automaton import NumberAutomaton
from structgen.core.regex.dfa import Dfa
from structgen.core.regex.labelled import LabelledDfa
from structgen.core.regex.lengths import Distances

if TYPE_CHECKING:
    from structgen.core.engines.json.value_graph.node import ValueNode


@dataclass(slots=True)
class EnumSpec:
    """A string that is one of ``values``."""

    values: tuple[str, ...]


@dataclass(slots=True)
class StringSpec:
    """A string in the language of ``dfa`` (None: any) with ``least`` to ``most`` code points (None: no limit).

    ``distances`` is there when both the automaton and a length limit matter.
    """

    dfa: Dfa | None
    least: int
    most: int | None
    distances: Distances | None


@dataclass(slots=True)
class NumberChoice:
    """A number that the automaton accepts. ``has_ends``: the schema would allow longer ones (``with_ends``)."""

    automaton: NumberAutomaton
    has_ends: bool = False


@dataclass(slots=True)
class KeyClasses:
    """Classes of undeclared keys, as ``automaton`` tells them apart.

    Class 0 is "not allowed"; class i > 0 has the value node ``nodes[i - 1]`` and ``words[i - 1]`` keys that are not
    declared, at least one (`MANY_WORDS`: that many or without end). Declared keys may be labelled too.
    """

    automaton: LabelledDfa
    nodes: list[ValueNode]
    words: list[int]


Choice: TypeAlias = "tuple[ValueNode, int]"
"""The node of a member's value, and the existentials (bits) that such a value meets."""


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
    keys: ``others`` is the node of their values, or their classes, or None: not allowed. ``existentials``: how many
    conditions the members have to meet together, each by some member; ``choices[k]``: the ways in which
    key k can meet some of them, ``other_choices``: other keys, by class. ``settled``: what `key_classes.settle` has
    found.
    """

    keys: dict[str, ValueNode]
    required: set[str]
    dependents: dict[str, set[str]]
    least: int
    most: int | None
    others: ValueNode | KeyClasses | None
    forbidden: AbstractSet[str] = frozenset()  # keys whose values no JSON satisfies; set when solved
    existentials: int = 0
    choices: dict[str, list[Choice]] = field(default_factory=dict)
    other_choices: Sequence[list[Choice]] = ()
    settled: tuple[Undeclared | None] | None = None


@dataclass(slots=True)
class ArraySpec:
    """An array: nodes of the first items, of all later ones, and how many items there may be.

    ``distinct``: no two items are equal (True), or two must be (False); None: either.
    """

    prefix: list[ValueNode]
    rest: ValueNode
    least: int
    most: int | None
    distinct: bool | None = None
    uncertain: bool = False  # whether enough distinct items exist is not known; set when solved


@dataclass(slots=True)
class CountedState:
    """A state of a counted array: whether the array may close, and (node of the next item, state after it).

    ``needs``: for each choice how many values its node must have so that, of distinct items, one is surely new.
    """

    closes: bool
    choices: list[tuple[ValueNode, int]]
    needs: list[int]


@dataclass(slots=True)
class CountedSpec:
    """An array as an automaton over what its items satisfy; state 0 is the empty array."""

    states: list[CountedState]
    distinct: bool = False
    live: list[bool] = field(default_factory=list)  # which states have completions; set when solved
    uncertain: bool = False
