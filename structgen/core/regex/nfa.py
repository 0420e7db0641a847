"""Syntax tree to a nondeterministic program over character sets (Thompson's construction, right to left)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from structgen.core.kernels.automata.layout import BOL, BOUNDARY, CHAR, EOL, LOOK, MATCH, SPLIT
from structgen.core.regex.charset import ANY, EMPTY, CharSet, complement, intersection
from structgen.core.regex.dfa import too_complex
from structgen.core.regex.ecma_ast import Alternate, Anchor, Boundary, Chars, Concat, Look, Node, Repeat
from structgen.core.regex.steps import check_time

NODES_PER_STATE = 4
"""The program may have this many nodes for each automaton state allowed."""


@dataclass(frozen=True, slots=True)
class Lookaround:
    """A lookaround of a program: its body begins at node ``start`` and ends at a MATCH node of its own."""

    start: int
    lookbehind: bool
    negative: bool


@dataclass(slots=True)
class Program:
    """Nodes ``(op, x, y)`` as in `core.kernels.automata.layout`, the sets of CHAR nodes, the lookarounds of LOOK
    nodes.

    ``words`` are the sets of word characters that BOUNDARY nodes refer to.
    """

    limit: int
    nodes: list[tuple[int, int, int]] = field(default_factory=list)
    sets: dict[CharSet, int] = field(default_factory=dict)
    looks: list[Lookaround] = field(default_factory=list)
    words: set[CharSet] = field(default_factory=set)

    def array(self) -> npt.NDArray[np.int32]:
        """The nodes as the kernels read them."""
        return np.array(self.nodes, np.int32)

    def char(self, charset: CharSet, following: int) -> int:
        """Append a CHAR node."""
        return self.add(CHAR, self.sets.setdefault(charset, len(self.sets)), following)

    def add(self, op: int, x: int, y: int) -> int:
        """Append a node and return its number."""
        check_time()
        check_time()
        if len(self.nodes) >= self.limit:
            raise too_complex(self.limit // NODES_PER_STATE, "the expression")
        self.nodes.append((op, x, y))
        return len(self.nodes) - 1

    def emit(self, node: Node, following: int) -> int:
        """Append nodes that match ``node`` and go on at ``following``; returns where they begin."""
        if isinstance(node, Chars):
            return self.char(node.charset, following)
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
        if isinstance(node, Boundary):
            self.words.add(node.word)
            return self.add(BOUNDARY, node.negative, following)
        start = self.emit(node.body, self.add(MATCH, 0, 0))
        self.looks.append(Lookaround(start, node.lookbehind, node.negative))
        return self.add(LOOK, len(self.looks) - 1, following)

    def emit_options(self, options: Sequence[Node], following: int) -> int:
        """Alternatives; none of them match nothing."""
        if not options:
            return self.char(EMPTY, following)
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
        return self.emit_copies(node, entry)

    def emit_copies(self, node: Repeat, following: int) -> int:
        """The ``low`` copies that a repetition must have, as far as a copy is anything."""
        for _ in range(node.low):
            entry = self.emit(node.body, following)
            if entry == following:  # the empty text, once as often as thousand times
                break
            following = entry
        return following


def search_program(node: Node, max_states: int) -> tuple[Program, int]:
    """The program that finds ``node`` anywhere in a text, and its first node.

    Raises TooComplexError if counted repetitions unroll to more than ``NODES_PER_STATE * max_states`` nodes.
    """
    program = Program(NODES_PER_STATE * max_states)
    start = program.emit(node, program.add(MATCH, 0, 0))
    if len(program.words) > 1 or (program.words and program.looks):
        return search_program(_spell_out_boundaries(node), max_states)
    if not begins_anchored(node):
        loop = program.add(SPLIT, 0, start)
        program.nodes[loop] = (SPLIT, program.char(ANY, loop), start)
        start = loop
    return _without_boundaries(program, start) if program.words else (program, start)


def _spell_out_boundaries(node: Node) -> Node:
    if isinstance(node, Boundary):
        return node.as_lookarounds()
    if isinstance(node, Concat):
        return Concat(tuple(map(_spell_out_boundaries, node.parts)))
    if isinstance(node, Alternate):
        return Alternate(tuple(map(_spell_out_boundaries, node.options)))
    if isinstance(node, Repeat | Look):
        return node._replace(body=_spell_out_boundaries(node.body))
    return node


def _without_boundaries(program: Program, start: int) -> tuple[Program, int]:
    """An equal program without BOUNDARY nodes.

    A node becomes up to six: the character before is a word character or not, and the next one must be, must not be
    (or the text ends), or may be any.
    """
    (word,) = program.words
    other = complement(word)
    sets = list(program.sets)
    allowed = {None: ANY, True: word, False: other}
    result = Program(program.limit)
    number: dict[tuple[int, bool, bool | None], int] = {}
    todo: list[tuple[int, bool, bool | None]] = []

    def reach(node: int, before: bool, after: bool | None) -> int:
        key = (node, before, after)
        if key not in number:
            number[key] = result.add(MATCH, 0, 0)
            todo.append(key)
        return number[key]

    first = reach(start, False, None)
    while todo:
        key = todo.pop()
        node, before, after = key
        op, x, y = program.nodes[node]
        replacement = (op, x, y)
        if op == CHAR:
            here = intersection(sets[x], allowed[after])
            in_word = result.char(intersection(here, word), reach(y, True, None))
            replacement = (SPLIT, in_word, result.char(intersection(here, other), reach(y, False, None)))
        elif op == SPLIT:
            replacement = (SPLIT, reach(x, before, after), reach(y, before, after))
        elif op in (BOL, EOL):
            replacement = (op, 0, reach(y, before, after))
        elif op == BOUNDARY:
            needed = before is bool(x)
            dead = after is not None and after is not needed
            target = result.char(EMPTY, 0) if dead else reach(y, before, needed)
            replacement = (SPLIT, target, target)
        elif after is not None:  # MATCH while the next character is not yet seen
            seen = result.char(allowed[after], result.add(MATCH, 0, 0))
            ended = seen if after else result.add(EOL, 0, result.add(MATCH, 0, 0))
            replacement = (SPLIT, seen, ended)
        result.nodes[number[key]] = replacement
    return result, first


def begins_anchored(node: Node) -> bool:
    """Whether every match must begin at the start of the text (false negatives only cost time)."""
    if isinstance(node, Concat):
        return bool(node.parts) and begins_anchored(node.parts[0])
    if isinstance(node, Alternate):
        return bool(node.options) and all(begins_anchored(option) for option in node.options)
    return isinstance(node, Anchor) and not node.at_end
