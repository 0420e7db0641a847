"""A grammar's product with an automaton: the texts of a grammar that the automaton accepts, as a grammar.

A context-free language meets a regular one in a context-free one (Bar-Hillel, Perles and Shamir 1961). The product's
symbols are the grammar's symbols, each from a state of the automaton to a state. Only those are made that the start
leads to, and that have texts.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from structgen.core.grammars.inlining import without_ignored
from structgen.core.grammars.normal_form import ContextFreeGrammar, Rule, Terminal
from structgen.core.regex.dfa import from_table
from structgen.core.regex.steps import check_time
from structgen.core.regions import Region

Flags = npt.NDArray[np.bool_]
Symbols = tuple[int, ...]


class ByteAutomaton(NamedTuple):
    """What a product is made with, begun in state 0.

    Attributes:
        transitions: int32[n, 256], -1 where no accepted text goes on.
        accepting: bool[n].
    """

    transitions: npt.NDArray[np.int32]
    accepting: Flags


class ProductBounds(NamedTuple):
    """What a product may take.

    Attributes:
        table_states: states of the products of all terminals with the automaton, a kilobyte each.
        rules: of the grammar that is made.
        work: states of tables that are made minimal, and steps of looking for exits; some microseconds each.
    """

    table_states: int
    rules: int
    work: int


class ProductTooLarge(Exception):
    """A bound of a product is met: its name, and how much it is."""

    def __init__(self, name: str, limit: int) -> None:
        super().__init__(name, limit)
        self.name, self.limit = name, limit


def product_grammar(
    grammar: ContextFreeGrammar, automaton: ByteAutomaton, bounds: ProductBounds, mark: int = -1
) -> ContextFreeGrammar:
    """The texts of a grammar that an automaton accepts, captures included. A grammar without rules: there is none.

    Args:
        mark: a byte that is read wherever the automaton accepts, and leads to its state 0; -1: none.

    Raises:
        ProductTooLarge: see `ProductBounds`.
    """
    return _Product(without_ignored(grammar), automaton, bounds, mark).grammar()


class _Product:
    """See `product_grammar`. ``grammar`` has no ignored terminals."""

    def __init__(self, grammar: ContextFreeGrammar, automaton: ByteAutomaton, bounds: ProductBounds, mark: int) -> None:
        self._grammar, self._automaton, self._bounds, self._mark = grammar, automaton, bounds, mark
        self._captured: dict[int, list[str | Region]] = {}
        for symbol, name in grammar.captures:
            self._captured.setdefault(symbol, []).append(name)
        self._captures: list[tuple[int, str | Region]] = []
        self._bodies: dict[int, list[Rule]] = {}
        for rule in grammar.rules:
            self._bodies.setdefault(rule.lhs, []).append(rule)
        self._tables: dict[int, npt.NDArray[np.int32]] = {}
        self._of_terminals: dict[tuple[int, int], frozenset[int]] = {}
        self._exits: dict[tuple[int, int], set[int]] = {}
        self._work = self._table_states = 0
        self._terminals: list[Terminal] = []
        self._names: list[str] = ["start"]
        self._rules: list[Rule] = []
        self._numbers: dict[tuple[Symbols, int, int], int] = {}
        self._todo: list[tuple[Symbols, int, int]] = []

    def grammar(self) -> ContextFreeGrammar:
        """The product. Raises ProductTooLarge."""
        start = self._grammar.start
        self._find_exits(start)
        for state in sorted(self._exits[start, 0]):
            if self._automaton.accepting[state]:
                self._rules.append(Rule(0, (self._symbol((start,), 0, state),)))
        while self._todo:
            key = self._todo.pop()
            self._write(key, self._numbers[key])
        return ContextFreeGrammar(
            tuple(self._terminals), tuple(self._names), tuple(self._rules), 0, captures=tuple(self._captures)
        )

    # --- where symbols lead ---
    def _find_exits(self, start: int) -> None:
        """The states after the texts of each nonterminal, from each state where it can begin: a least fixpoint."""
        self._exits[start, 0] = set()
        changed = True
        while changed:
            changed = False
            for key in list(self._exits):
                exits = self._exits[key]
                before, number_of_exits = len(exits), len(self._exits)
                for rule in self._bodies.get(key[0], ()):
                    exits |= self._after(rule.rhs, key[1])
                changed |= len(exits) > before or len(self._exits) > number_of_exits

    def _after(self, symbols: Symbols, state: int) -> set[int]:
        """The states after some symbols, as far as they are known."""
        here = {state}
        for symbol in symbols:
            self._spend(len(here))
            here = set().union(*(self._exits_of(symbol, each) for each in here))
        return here

    def _exits_of(self, symbol: int, state: int) -> set[int] | frozenset[int]:
        if symbol >= 0:
            return self._exits.setdefault((symbol, state), set())
        key = ~symbol, state
        if key not in self._of_terminals:
            self._of_terminals[key] = self._exits_of_terminal(*key)
        return self._of_terminals[key]

    def _exits_of_terminal(self, terminal: int, state: int) -> frozenset[int]:
        table, dfa = self._table(terminal), self._grammar.terminals[terminal].dfa
        reached = np.zeros(len(table), np.bool_)
        layer = np.array([state])  # its first state, beside this one
        while len(layer):
            reached[layer] = True
            self._spend(len(layer))
            after = np.unique(table[layer])
            after = after[after >= 0]
            layer = after[~reached[after]]
        ends = reached.reshape(len(dfa), -1)[dfa.accepting].any(axis=0)
        return frozenset(np.flatnonzero(ends).tolist())

    def _table(self, terminal: int) -> npt.NDArray[np.int32]:
        """int32[n * r, 256] for n states of a terminal with r of the automaton, with the mark where it accepts."""
        product = self._tables.get(terminal)
        if product is None:
            one, two = self._grammar.terminals[terminal].dfa.transitions, self._automaton.transitions
            width = len(two)
            self._table_states += len(one) * width
            if self._table_states > self._bounds.table_states:
                raise ProductTooLarge("states of terminals", self._bounds.table_states)
            both = (one[:, None] >= 0) & (two[None] >= 0)
            product = np.where(both, one[:, None] * np.int32(width) + two[None], np.int32(-1))
            if self._mark >= 0:
                product[:, self._automaton.accepting, self._mark] = (np.arange(len(one), dtype=np.int32) * width)[
                    :, None
                ]
            product = self._tables[terminal] = product.reshape(-1, 256)
        return product

    # --- what is written ---
    def _write(self, key: tuple[Symbols, int, int], number: int) -> None:
        """The rules of some symbols from a state to a state."""
        (first, *remaining), before, state_after = key
        if remaining:
            for middle in sorted(self._exits_of(first, before)):
                if state_after in self._after(tuple(remaining), middle):
                    begin, end = (
                        self._symbol((first,), before, middle),
                        self._symbol(tuple(remaining), middle, state_after),
                    )
                    self._rule(number, begin, end)
            return
        for rule in self._bodies.get(first, ()):
            if state_after in self._after(rule.rhs, before):
                self._rule(number, *([self._symbol(rule.rhs, before, state_after)] if rule.rhs else []))

    def _rule(self, number: int, *right: int) -> None:
        if len(self._rules) >= self._bounds.rules:
            raise ProductTooLarge("rules", self._bounds.rules)
        self._rules.append(Rule(number, right))

    def _symbol(self, symbols: Symbols, before: int, state_after: int) -> int:
        """The symbol of the texts of some symbols from a state to a state."""
        key = symbols, before, state_after
        if key not in self._numbers:
            if len(symbols) == 1 and symbols[0] < 0:
                self._numbers[key] = ~len(self._terminals)
                self._terminals.append(self._terminal(~symbols[0], before, state_after))
            else:
                self._numbers[key] = len(self._names)
                self._names.append(self._grammar.nonterminals[symbols[0]] if len(symbols) == 1 else "suffix")
                self._todo.append(key)
            if len(symbols) == 1:
                self._captures += [(self._numbers[key], name) for name in self._captured.get(symbols[0], ())]
        return self._numbers[key]

    def _terminal(self, terminal: int, before: int, state_after: int) -> Terminal:
        """The texts of a terminal from a state to a state."""
        given, table = self._grammar.terminals[terminal], self._table(terminal)
        self._spend(len(table))
        order = np.arange(len(table), dtype=np.int32)
        order[[0, before]] = order[[before, 0]]  # from_table begins at 0
        places = np.append(order, np.int32(-1))
        accepting = np.zeros((len(given.dfa), len(self._automaton.accepting)), np.uint8)
        accepting[given.dfa.accepting, state_after] = 1
        dfa = from_table(np.ascontiguousarray(places[table[order]]), accepting.reshape(-1)[order])
        return Terminal(given.name, dfa, given.source, given.priority, given.position)

    def _spend(self, steps: int) -> None:
        self._work += steps
        check_time()
        if self._work > self._bounds.work:
            raise ProductTooLarge("steps", self._bounds.work)
