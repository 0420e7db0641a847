"""What longer tokens spell of a grammar although some of their bytes are no tokens: exactly, by a product.

A text that stands after a token can be finished if its rest is a run of tokens. Runs of tokens are a regular language:
bytes that are tokens, and the longer tokens that have others. So the grammar's product with it has what can be written
(Bar-Hillel, Perles and Shamir 1961: a context-free language meets a regular one in a context-free one).

One thing is added. Where a token has ended, the rest is to be a run of tokens of its own: "a" may begin "ab", and then
there must be a "b". So each token has a **mark** after it, a byte that the grammar does not have; the product reads
it where a token may end, and begins a run there.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from structgen.core.grammars.normal_form import ContextFreeGrammar, Rule, Terminal
from structgen.core.kernels.automata import calls
from structgen.core.regex.dfa import from_table
from structgen.core.vocabulary.vocabulary import Vocabulary

Flags = npt.NDArray[np.bool_]
Symbols = tuple[int, ...]

MOST_RUN_STATES, MOST_TABLE_STATES, MOST_RULES = 4_096, 1 << 16, 1 << 15
"""Of the automaton of runs of tokens, of its products with all terminals (a kilobyte each), and of the grammar that is
made."""
MOST_WORK = 1 << 19
"""States of tables that are made minimal, and steps of looking for exits; more is given up. Some microseconds each."""


class _TooLarge(Exception):
    """One of the bounds above is met."""


class ByTokens(NamedTuple):
    """A grammar over marked tokens, and the mark."""

    grammar: ContextFreeGrammar
    mark: int


def bytes_inside_tokens(used: Flags, vocabulary: Vocabulary) -> tuple[int, ...]:
    """Those of some bytes that are no tokens, but inside tokens that are made of these bytes."""
    inside = set[int]().union(*_longer(used, vocabulary))
    return tuple(sorted(inside.difference(_single(vocabulary))))


def bytes_of(grammar: ContextFreeGrammar) -> Flags:
    """The bytes of all terminals."""
    found = np.zeros(256, np.bool_)
    for terminal in grammar.terminals:
        found |= (terminal.dfa.transitions >= 0).any(axis=0)
    return found


def by_tokens(grammar: ContextFreeGrammar, vocabulary: Vocabulary) -> ByTokens | None:
    """The texts of a grammar that runs of tokens spell; none where that would take too much.

    Captures are left out.
    """
    used = bytes_of(grammar)
    free = np.flatnonzero(~used)
    if not len(free):
        return None
    mark = int(free[-1])
    try:
        runs = _runs(used, vocabulary)
        return ByTokens(_Product(_with_ignored(grammar), runs, mark).grammar(), mark)
    except _TooLarge:
        return None


@lru_cache(8)
def marked(vocabulary: Vocabulary, mark: int) -> Vocabulary:
    """The vocabulary with a byte after each token; those that have this byte spell nothing."""
    tokens = [token + bytes([mark]) if token and mark not in token else b"" for token in vocabulary.tokens]
    special = set(vocabulary.special_token_ids) - vocabulary.named  # whose bytes are stand-ins
    return Vocabulary(tokens, eos_token_ids=vocabulary.eos_token_ids, special_token_ids=special)


def _single(vocabulary: Vocabulary) -> bytes:
    """The bytes that are tokens."""
    return bytes({token[0] for token in vocabulary.tokens if len(token) == 1})


def _longer(used: Flags, vocabulary: Vocabulary) -> set[bytes]:
    """The tokens of such bytes of which some are no tokens."""
    known, single = bytes(np.flatnonzero(used).tolist()), _single(vocabulary)
    return {token for token in vocabulary.tokens if not token.translate(None, known) and token.translate(None, single)}


# --- runs of tokens ---
class _Runs(NamedTuple):
    """The minimal automaton of the texts that are runs of tokens; from state 0 on, where a token has just ended."""

    transitions: npt.NDArray[np.int32]
    accepting: Flags


def _runs(used: Flags, vocabulary: Vocabulary) -> _Runs:
    """The subsets of the places inside longer tokens where a text may stand. Raises _TooLarge."""
    longer, single = _longer(used, vocabulary), _single(vocabulary)
    inside = {token[:n] for token in longer for n in range(1, len(token))}
    following: dict[bytes, set[int]] = {}
    for token in longer:
        for n, byte in enumerate(token):
            following.setdefault(token[:n], set()).add(byte)
    alone = {byte for byte in single if used[byte]}
    start = frozenset([b""])
    numbers, states, rows = {start: 0}, [start], []
    for state in states:
        row = np.full(256, -1, np.int32)
        bytes_ = set().union(*(following.get(place, ()) for place in state)) | (alone if b"" in state else set())
        for byte in sorted(bytes_):
            texts = {place + bytes([byte]) for place in state}
            after = texts & inside
            if texts & longer or (b"" in state and byte in alone):
                after.add(b"")
            if after:
                target = frozenset(after)
                row[byte] = numbers.setdefault(target, len(states))
                if row[byte] == len(states):
                    states.append(target)
        rows.append(row)
        if len(states) > MOST_RUN_STATES:
            raise _TooLarge
    table, flags = calls.minimise(np.array(rows), np.array([b"" in state for state in states], np.uint8))
    return _Runs(table, flags.astype(np.bool_))


# --- the product ---
def _with_ignored(grammar: ContextFreeGrammar) -> ContextFreeGrammar:
    """The grammar with rules for what is ignored: before each terminal, and at the end."""
    if not grammar.ignored:
        return grammar
    ignored, start = len(grammar.nonterminals), len(grammar.nonterminals) + 1
    rules = [Rule(ignored, ()), *(Rule(ignored, (~t, ignored)) for t in dict.fromkeys(grammar.ignored))]
    for rule in grammar.rules:
        right = [part for symbol in rule.rhs for part in ((ignored, symbol) if symbol < 0 else (symbol,))]
        rules.append(Rule(rule.lhs, tuple(right), rule.place))
    rules.append(Rule(start, (grammar.start, ignored)))
    return ContextFreeGrammar(grammar.terminals, (*grammar.nonterminals, "ignored", "start"), tuple(rules), start)


class _Product:
    """A grammar's product with the automaton of runs. Its symbols are the grammar's, each from a state to a state.

    Args:
        grammar: without ignored terminals.
        runs: the automaton.
        mark: the byte after tokens.
    """

    def __init__(self, grammar: ContextFreeGrammar, runs: _Runs, mark: int) -> None:
        self._grammar, self._runs, self._mark = grammar, runs, mark
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
        """The product. Raises _TooLarge."""
        start = self._grammar.start
        self._find_exits(start)
        for state in sorted(self._exits[start, 0]):
            if self._runs.accepting[state]:
                self._rules.append(Rule(0, (self._symbol((start,), 0, state),)))
        while self._todo:
            key = self._todo.pop()
            self._write(key, self._numbers[key])
        return ContextFreeGrammar(tuple(self._terminals), tuple(self._names), tuple(self._rules), 0)

    # --- where symbols lead ---
    def _find_exits(self, start: int) -> None:
        """The states after the texts of each nonterminal, from each state where it can begin: a least fixpoint."""
        self._exits[start, 0] = set()
        changed = True
        while changed:
            changed = False
            for key in list(self._exits):
                found = self._exits[key]
                before, known = len(found), len(self._exits)
                for rule in self._bodies.get(key[0], ()):
                    found |= self._after(rule.rhs, key[1])
                changed |= len(found) > before or len(self._exits) > known

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
        """int32[n * r, 256] for n states of a terminal beside r of the runs, with the mark where a token may end."""
        found = self._tables.get(terminal)
        if found is None:
            one, two = self._grammar.terminals[terminal].dfa.transitions, self._runs.transitions
            width = len(two)
            self._table_states += len(one) * width
            if self._table_states > MOST_TABLE_STATES:
                raise _TooLarge
            both = (one[:, None] >= 0) & (two[None] >= 0)
            found = np.where(both, one[:, None] * np.int32(width) + two[None], np.int32(-1))
            found[:, self._runs.accepting, self._mark] = (np.arange(len(one), dtype=np.int32) * width)[:, None]
            found = self._tables[terminal] = found.reshape(-1, 256)
        return found

    # --- what is written ---
    def _write(self, key: tuple[Symbols, int, int], number: int) -> None:
        """The rules of some symbols from a state to a state."""
        (first, *rest), before, state_after = key
        if rest:
            for middle in sorted(self._exits_of(first, before)):
                if state_after in self._after(tuple(rest), middle):
                    begin, end = self._symbol((first,), before, middle), self._symbol(tuple(rest), middle, state_after)
                    self._rule(number, begin, end)
            return
        for rule in self._bodies.get(first, ()):
            if state_after in self._after(rule.rhs, before):
                self._rule(number, *([self._symbol(rule.rhs, before, state_after)] if rule.rhs else []))

    def _rule(self, number: int, *right: int) -> None:
        if len(self._rules) >= MOST_RULES:
            raise _TooLarge
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
                self._names.append(self._grammar.nonterminals[symbols[0]] if len(symbols) == 1 else "rest")
                self._todo.append(key)
        return self._numbers[key]

    def _terminal(self, terminal: int, before: int, state_after: int) -> Terminal:
        """The texts of a terminal from a state to a state."""
        given, table = self._grammar.terminals[terminal], self._table(terminal)
        self._spend(len(table))
        order = np.arange(len(table), dtype=np.int32)
        order[[0, before]] = order[[before, 0]]  # from_table begins at 0
        places = np.append(order, np.int32(-1))
        accepting = np.zeros((len(given.dfa), len(self._runs.accepting)), np.uint8)
        accepting[given.dfa.accepting, state_after] = 1
        dfa = from_table(np.ascontiguousarray(places[table[order]]), accepting.reshape(-1)[order])
        return Terminal(given.name, dfa, given.source, given.priority, given.place)

    def _spend(self, steps: int) -> None:
        self._work += steps
        if self._work > MOST_WORK:
            raise _TooLarge
