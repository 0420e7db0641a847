"""Syntax tree to a nondeterministic program over character sets (Thompson's construction, right to left)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from structgen.automata.charset import ANY, CharSet
from structgen.automata.dfa import too_complex
from structgen.automata.ecma_ast import Alternate, Anchor, Chars, Concat, Look, Node, Repeat
from structgen.automata.kernels import BOL, CHAR, EOL, LOOK, MATCH, SPLIT

NODES_PER_STATE = 4
"""The program may have this many nodes for each automaton state allowed."""


@dataclass(frozen=True, slots=True)
class Lookaround:
    """A lookaround of a program: its body begins at node ``start`` and ends at a MATCH node of its own."""

    start: int
    behind: bool
    negative: bool


@dataclass(slots=True)
class Program:
    """Nodes ``(op, x, y)`` as in ``kernels``; ``sets[x]`` is a CHAR node's set, ``looks[x]`` a LOOK node's body."""

    limit: int
    nodes: list[tuple[int, int, int]] = field(default_factory=list)
    sets: dict[CharSet, int] = field(default_factory=dict)
    looks: list[Lookaround] = field(default_factory=list)

    def array(self) -> npt.NDArray[np.int32]:
        """The nodes as the kernels read them."""
        return np.array(self.nodes, np.int32)

    def add(self, op: int, x: int, y: int) -> int:
        """Append a node and return its number."""
        if len(self.nodes) >= self.limit:
            raise too_complex(self.limit // NODES_PER_STATE, "the expression")
        self.nodes.append((op, x, y))
        return len(self.nodes) - 1

    def emit(self, node: Node, following: int) -> int:
        """Append nodes that match ``node`` and go on at ``following``; returns where they begin."""
        if isinstance(node, Chars):
            return self.add(CHAR, self.sets.setdefault(node.charset, len(self.sets)), following)
        if isinstance(node, Concat):
            for part in reversed(node.parts):
                following = self.emit(part, following)
            return following
        if isinstance(node, Alternate):
            return self.emit_options(node.options, following)
        if isinstance(node, Repeat):
            return self.emit_repeat(node, following)
        if isinstance(node, Anchor):
            return self.add(EOL if node.at_end else BOL, 0, following)
        assert isinstance(node, Look)
        start = self.emit(node.body, self.add(MATCH, 0, 0))
        self.looks.append(Lookaround(start, node.behind, node.negative))
        return self.add(LOOK, len(self.looks) - 1, following)

    def emit_options(self, options: Sequence[Node], following: int) -> int:
        """Alternatives; none of them match nothing."""
        if not options:
            return self.add(CHAR, self.sets.setdefault((), len(self.sets)), following)
        entry = self.emit(options[-1], following)
        for option in reversed(options[:-1]):
            entry = self.add(SPLIT, self.emit(option, following), entry)
        return entry

    def emit_repeat(self, node: Repeat, following: int) -> int:
        """``low`` copies, then a loop, or nested options (which keep the program linear in ``high``)."""
        entry = following
        if node.high is None:
            entry = self.add(SPLIT, 0, following)
            self.nodes[entry] = (SPLIT, self.emit(node.body, entry), following)
        else:
            for _ in range(node.high - node.low):
                entry = self.add(SPLIT, self.emit(node.body, entry), following)
        for _ in range(node.low):
            entry = self.emit(node.body, entry)
        return entry


def search_program(node: Node, max_states: int) -> tuple[Program, int]:
    """The program that finds ``node`` anywhere in a text, and its first node.

    Raises SchemaTooComplexError if counted repetitions unroll to more than ``NODES_PER_STATE * max_states`` nodes.
    """
    program = Program(NODES_PER_STATE * max_states)
    start = program.emit(node, program.add(MATCH, 0, 0))
    if begins_anchored(node):
        return program, start
    loop = program.add(SPLIT, 0, start)
    program.nodes[loop] = (SPLIT, program.add(CHAR, program.sets.setdefault(ANY, len(program.sets)), loop), start)
    return program, loop


def begins_anchored(node: Node) -> bool:
    """Whether every match must begin at the start of the text (false negatives only cost time)."""
    if isinstance(node, Concat):
        return bool(node.parts) and begins_anchored(node.parts[0])
    if isinstance(node, Alternate):
        return bool(node.options) and all(begins_anchored(option) for option in node.options)
    return isinstance(node, Anchor) and not node.at_end
