"""Liveness as the parse table alone has it: of all stacks of an LALR parser with the same top.

The parser is a pushdown system, and the stacks from which the end can be reached are a regular set (Bouajjani, Esparza
and Maler, "Reachability Analysis of Pushdown Automata", 1997). The kernel saturates it once for a grammar
(`core.kernels.lalr.proofs`): for a state on top and the terminal that comes next, it finds which items of that
state can be completed by terminals that lexers surely read as meant, and before which terminals. Read along a stack
from the bottom, that is a class, so whether some text completes a stack is known when the stack is made.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import accumulate

import numpy as np
import numpy.typing as npt

from structgen.core.engines.lalr.lexer_simulation import Lexemes
from structgen.core.engines.lalr.tables import CLOSING, DEDENT, INDENT, OPENING, LalrTables
from structgen.core.kernels.lalr import machine as k
from structgen.core.kernels.lalr import tables as kt

MOST_WORDS = 1 << 22
"""Of what is found; a larger parse table goes without."""
Words = npt.NDArray[np.int64]
Item = tuple[int, int]
"""A nonterminal, and how many symbols of a rule of it have been read."""


def with_dead_ends(tables: LalrTables) -> LalrTables:
    """The tables, distrusted too if some parser may run into a dead end because of what its lexers find.

    A parser that takes a terminal is at a viable prefix if Lark has resolved no conflict: some row of terminals
    completes it. That is what may come after the first symbols of rules. If all of it can be written with terminals
    that each lexer ends cleanly wherever they may stand, there is a text. Linear in the parse table, nearly.
    """
    if tables.distrust:
        return tables
    clean = frozenset(_clean_everywhere(tables))
    return replace(tables, distrust=not _can_go_on(tables, clean), clean=clean)


def _can_go_on(tables: LalrTables, clean: frozenset[int]) -> bool:
    """Whether everything after the first symbols of rules has a text of clean terminals."""
    written: set[int] = set()  # nonterminals with such a text

    def is_written(symbol: int) -> bool:
        return symbol in written if symbol >= 0 else ~symbol in clean

    grown = True
    while grown:
        fresh = {origin for origin, body in tables.rules if origin not in written and all(map(is_written, body))}
        grown = bool(fresh)
        written |= fresh
    return all(is_written(symbol) for _, body in tables.rules for symbol in body[1:])


def _clean_everywhere(tables: LalrTables) -> set[int]:
    """The terminals that can be finished cleanly in every state that takes them; the indenter sees to its own."""
    lexemes, names = Lexemes(tables), tables.terminals
    clean = set(range(len(names) - 1))
    for state, row in enumerate(tables.action):
        taken = {int(terminal) for terminal in row.nonzero()[0]} & clean
        if taken:
            clean -= taken - lexemes.clean_start(int(tables.lexer_of[state])).keys()
            clean |= {t for t in taken if t == tables.newline or names[t] in (INDENT, DEDENT)}
    return clean


@dataclass(frozen=True, eq=False)
class LivenessTables:
    """What is known of a parser's states, for the kernel.

    Attributes:
        arrays: by their places in the heap's header.
        exact: whether a stack that no such terminals complete is completed by none.
        scratch: words that the longest key of a class has.
    """

    arrays: dict[int, npt.NDArray[np.int32] | Words]
    exact: bool
    scratch: int


def prove(tables: LalrTables) -> LivenessTables | None:
    """The proofs of a grammar; None if its parse table is too large, or its lines and brackets are not balanced."""
    if not _is_balanced(tables):
        return None
    items = _items(tables)
    count = tables.action.shape[1]
    words = (count + 63) >> 6
    gotos = [np.flatnonzero(row >= 0).tolist() for row in tables.goto]
    sizes = [len(entries) * words for entries in items]
    outs = [0, *accumulate((count + 1) * size for size in sizes)]
    values = [outs[-1], *(size * count for size, entries in zip(sizes, gotos, strict=True) for _ in entries)]
    places = list(accumulate(values))
    if places[-1] > MOST_WORDS:
        return None
    flat = [item for entries in items for item in entries]
    arrays: dict[int, npt.NDArray[np.int32] | Words] = {
        kt.items_from: _ints([0, *accumulate(map(len, items))]),
        kt.item_origin: _ints([origin for origin, _ in flat]),
        kt.item_dot: _ints([dot for _, dot in flat]),
        kt.gotos_from: _ints([0, *accumulate(map(len, gotos))]),
        kt.goto_symbol: _ints([symbol for entries in gotos for symbol in entries]),
        kt.values_from: np.array(places, np.int64),
        kt.out_from: np.array(outs, np.int64),
    }
    following = _following(tables, Lexemes(tables))
    liveness = _saturated(tables, arrays, following, np.zeros(max(places[-1], 1), np.int64))
    possible = _bits([set(np.flatnonzero(row).tolist()) for row in tables.action], words)
    exact = not np.any(possible & ~following) or np.array_equal(
        liveness, _saturated(tables, arrays, possible | following, liveness.copy())
    )
    arrays |= {kt.following_at: following.reshape(-1), kt.proof_at: liveness}
    return LivenessTables(arrays, exact, 1 + max(sizes))


def _saturated(
    tables: LalrTables, arrays: dict[int, npt.NDArray[np.int32] | Words], following: Words, liveness: Words
) -> Words:
    """What the kernel finds, beyond what is known, if terminals may be read after states as given; in place."""
    states, count = tables.action.shape
    before = _before(tables)
    header = np.zeros(k.HEADER, np.int64)
    header_arrays: dict[int, npt.NDArray[np.int32] | Words] = {
        **arrays,
        **parser_arrays(tables),
        kt.following_at: following.reshape(-1),
        kt.proof_at: liveness,
        kt.scratch_at: np.zeros(2 * states, np.int64),
        kt.unknown_at: np.array([0, *accumulate(map(len, before))], np.int64),
        kt.level_at: np.array([state for predecessors in before for state in predecessors] or [0], np.int64),
    }
    for position, data in header_arrays.items():
        header[position], header[position + 1] = data.ctypes.data, data.size
    header[k.H_CAP] = k.HEADER
    header[k.H_TERMINALS], header[k.H_NONTERMINALS], header[k.H_STATES] = count, tables.goto.shape[1], states
    header[k.H_END], header[k.H_END_STATE] = count - 1, tables.end
    heap = np.array([header.ctypes.data])  # with a name, to outlive the call: other threads allocate meanwhile
    k.run(heap.ctypes.data, k.PROVE, 0, 0, 0)
    return liveness


def parser_arrays(tables: LalrTables) -> dict[int, npt.NDArray[np.int32]]:
    """The parse table, by places in the heap's header."""
    return {
        kt.action_at: tables.action.reshape(-1),
        kt.goto_at: tables.goto.reshape(-1),
        kt.rule_size: _ints([len(expansion) for _, expansion in tables.rules]),
        kt.rule_origin: _ints([origin for origin, _ in tables.rules]),
    }


def _targets(tables: LalrTables) -> list[set[int]]:
    """The states that may stand right upon each state."""
    targets = []
    for actions, gotos in zip(tables.action, tables.goto, strict=True):
        shifts = actions[(actions > 0) & ((actions & 1) == 0)] >> 1
        targets.append({*(shifts - 1).tolist(), *gotos[gotos >= 0].tolist()})
    return targets


def _before(tables: LalrTables) -> list[list[int]]:
    """The states that may stand right below each state."""
    predecessors: list[list[int]] = [[] for _ in tables.action]
    for state, targets in enumerate(_targets(tables)):
        for target in targets:
            predecessors[target].append(state)
    return predecessors


def _items(tables: LalrTables) -> list[list[Item]]:
    """The items of each state, as nonterminal and dot: what is reduced above it some day.

    One of a nonterminal of its own stands for the whole text: it is read once the last state is reached.
    """
    items = [
        list(dict.fromkeys((tables.rules[rule][0], dot) for rule, dot in state_items if dot))
        for state_items in tables.items
    ]
    whole = tables.goto.shape[1]
    items[tables.start].append((whole, 1))
    items[tables.end].append((whole, 2))
    return items


def _following(tables: LalrTables, lexemes: Lexemes) -> Words:
    """int64[states, words]: the terminals that can be written, to be read as meant, where a state has been shifted.

    Of an indenter: a newline where no line has just begun, and after it what it makes of the next line's column.
    """
    names, newline = tables.terminals, tables.newline
    numbers = {name: i for i, name in enumerate(names)}
    read = np.full(len(tables.action), -1)
    for row in tables.action:
        for terminal, action in enumerate(row.tolist()):
            if action and not action & 1:
                read[(action >> 1) - 1] = terminal
    following = []
    for state, terminal in enumerate(read.tolist()):
        lexer = int(tables.lexer_of[state])
        terminals = {*lexemes.clean_start(lexer), len(names) - 1}
        if newline >= 0:
            indent, dedent = numbers[INDENT], numbers[DEDENT]
            if terminal not in (newline, indent, dedent) and lexemes.can_begin_lines(lexemes.start(lexer)):
                terminals.add(newline)
            terminals |= {newline: {indent, dedent}, dedent: {dedent}}.get(terminal, set())
        following.append(terminals)
    return _bits(following, (len(names) + 63) >> 6)


def _is_balanced(tables: LalrTables) -> bool:
    """Whether each nonterminal's texts open and close what an indenter counts by themselves, lines outside brackets.

    Then the indenter finds of what completes a stack that columns and brackets are right.
    """
    if tables.newline < 0:
        return True
    names = tables.terminals
    weights = [(name in OPENING) - (name in CLOSING) for name in names]
    lines = {tables.newline: 0, names.index(INDENT): 1, names.index(DEDENT): -1}
    has_lines: set[int] = set()
    grown = True
    while grown:
        fresh = {
            origin
            for origin, body in tables.rules
            if origin not in has_lines and any(s in has_lines if s >= 0 else ~s in lines for s in body)
        }
        grown = bool(fresh)
        has_lines |= fresh
    for _, body in tables.rules:
        brackets = levels = 0
        for symbol in body:
            if symbol < 0:
                brackets += weights[~symbol]
                levels += lines.get(~symbol, 0)
            if brackets < 0 or levels < 0 or (brackets and (symbol in has_lines if symbol >= 0 else ~symbol in lines)):
                return False
        if brackets or levels:
            return False
    return True


def _bits(rows: list[set[int]], words: int) -> Words:
    """Sets of terminals as rows of bits."""
    bits = np.zeros((len(rows), words), np.int64)
    for row, terminals in zip(bits, rows, strict=True):
        for terminal in terminals:
            row[terminal >> 6] |= np.int64(np.uint64(1 << (terminal & 63)).astype(np.int64))
    return bits


def _ints(numbers: list[int]) -> npt.NDArray[np.int32]:
    return np.array(numbers or [0], np.int32)
