"""What texts of a grammar's symbols do to the states of an automaton that reads them too.

The texts of a symbol lead from some states of the automaton to some: a relation, n × n bits. Of terminals it is
found in the product of their automata with this one, of rules by multiplying, of nonterminals as the least fixpoint;
texts that are ignored may come before each terminal and at the end. So "can this be completed to what both take" is
decided exactly, and the product itself is never made (Bar-Hillel, Perles and Shamir 1961).
"""

from __future__ import annotations

from collections import deque
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from structgen.core.engines.cfg.analysis import CfgTables
from structgen.core.engines.cfg.machine import CfgAutomata
from structgen.core.regex.dfa import Dfa
from structgen.core.regex.steps import check_time
from structgen.errors import TooComplexError

MAX_STATES = 1 << 10
MAX_WORDS = 1 << 23
"""Of the relations of positions, together."""

Bits = npt.NDArray[np.uint64]
Matrix = npt.NDArray[np.float32]


class Relations:
    """The relations of one grammar's parts over the states of an automaton.

    Sets of states are integers, bit q for state q. Relations are numbered: equal ones have one number.

    Attributes:
        all: the set of all states.
        exits: of each position, the states from which a text leads on to the end of its terminal.
        most_before: of each position, from how many states a text leads on to the end of its terminal.
        end: the states from which ignored text may lead to an accepting one.

    Raises:
        TooComplexError: there are too many states, or positions of terminals for them.
    """

    def __init__(self, tables: CfgTables, automata: CfgAutomata, dfa: Dfa) -> None:
        self._tables, self._automata = tables, automata
        self.count = len(dfa)
        self._words = -(-self.count // 64)
        words = automata.positions * (self.count + 1) * self._words
        for budget, needed, limit in (
            ("states of the automaton of an intersection", self.count, MAX_STATES),
            ("words of relations of an intersection", words, MAX_WORDS),
        ):
            if needed > limit:
                raise TooComplexError(
                    f"the intersection needs more than {limit:,} {budget}", budget=budget, limit=limit
                )
        self.all = (1 << self.count) - 1
        self._reach = self._reach_of(dfa)
        self.exits = [_number(flags) for flags in (self._reach[:, :-1] != 0).any(axis=-1)]
        self.most_before = [states.bit_count() for states in self.exits]
        self._matrices: list[Matrix] = []
        self._numbers: dict[bytes, int] = {}
        self._products: dict[tuple[int, int], int] = {}
        self._unions: dict[tuple[int, int], int] = {}
        self._before: dict[tuple[int, int], int] = {}
        self._before_position: dict[tuple[int, int], int] = {}
        identity = np.eye(self.count, dtype=np.float32)
        self.none, self.same = self._intern(np.zeros_like(identity)), self._intern(identity)
        self._gap = self._closure(self._union_of(automata.ignored))
        self._suffixes = self._fixpoint()
        self.end = self.before(self._gap, _number(dfa.accepting))

    # --- what is asked while texts are read ---
    def before_suffix(self, suffix: int, targets: int) -> int:
        """The states that some text of a suffix leads to one of ``targets`` from."""
        return self.before(self._suffixes[suffix], targets)

    def before(self, relation: int, targets: int) -> int:
        """The states that a relation leads to one of ``targets`` from."""
        if relation == self.same or not targets:
            return targets
        states = self._before.get((relation, targets))
        if states is None:
            leads: Matrix = np.asarray(self._matrices[relation] @ self._flags(targets))
            states = self._before[relation, targets] = _number(leads.astype(np.bool_))
        return states

    def before_position(self, position: int, targets: int) -> int:
        """The states from which a text that ends a terminal, from a position of it on, leads to one of ``targets``."""
        if targets == self.all:
            return self.exits[position]
        states = self._before_position.get((position, targets))
        if states is None:
            hits = np.asarray((self._reach[position, :-1] & self._packed(targets)).any(axis=-1))
            states = self._before_position[position, targets] = _number(hits)
        return states

    def forget(self) -> None:
        """Forget what can be found again."""
        self._before.clear()
        self._before_position.clear()

    @property
    def memory_bytes(self) -> int:
        """Bytes of the relations."""
        return self._reach.nbytes + sum(matrix.nbytes for matrix in self._matrices)

    def words(self, states: int) -> npt.NDArray[np.int64]:
        """A set of states as words."""
        return np.frombuffer(states.to_bytes(8 * self._words, "little"), np.int64)

    def _packed(self, states: int) -> Bits:
        return self.words(states).view(np.uint64)

    def _flags(self, states: int) -> Matrix:
        bits = np.frombuffer(states.to_bytes(8 * self._words, "little"), np.uint8)
        return np.unpackbits(bits, bitorder="little", count=self.count).astype(np.float32)

    # --- terminals ---
    def _reach_of(self, dfa: Dfa) -> Bits:
        """uint64[P, n + 1, words]: the states after texts from each position to the end of its terminal; last none."""
        classes, count = dfa.columns
        lead = np.array([int(np.argmax(classes == each)) for each in range(count)])
        after = np.where(dfa.transitions[:, lead] < 0, self.count, dfa.transitions[:, lead]).T  # [classes, n]
        automata = self._automata
        reach = np.zeros((automata.positions, self.count + 1, self._words), np.uint64)
        states = np.arange(self.count)
        for ending in np.flatnonzero(automata.accepts[: automata.positions]):
            reach[ending, states, states >> 6] = np.uint64(1) << (states & 63).astype(np.uint64)
        bases = [first for first, _ in automata.first] + [automata.positions]
        for first, end in pairwise(bases):
            edges = [self._edges_of(position, classes) for position in range(first, end)]
            changed = True
            while changed:
                changed = False
                for position in range(end - 1, first - 1, -1):
                    changed |= self._widen(reach, position, edges[position - first], after, first)
                check_time()
        return reach

    def _edges_of(self, position: int, classes: npt.NDArray[np.int32]) -> list[tuple[int, list[int]]]:
        """The positions after a position, and the classes of bytes that lead to each."""
        automata, targets = self._automata, dict[int, set[int]]()
        for lo, hi, target in automata.edge.reshape(-1, 3)[automata.edges[position] : automata.edges[position + 1]]:
            targets.setdefault(int(target), set()).update(classes[lo : hi + 1].tolist())
        return [(target, sorted(each)) for target, each in targets.items()]

    def _widen(
        self, reach: Bits, position: int, edges: list[tuple[int, list[int]]], after: npt.NDArray[np.intp], first: int
    ) -> bool:
        """Enter what the positions after a position reach; whether that may change others."""
        states, before = reach[position, :-1], reach[position, :-1].copy()
        for target, classes in edges:
            states |= np.bitwise_or.reduce(reach[target][after[classes]], axis=0)
        loops = any(first <= target <= position for target, _ in edges)
        return loops and not np.array_equal(before, states)

    def _union_of(self, positions: list[int]) -> int:
        """The relation of texts from some positions."""
        bits = np.zeros((self.count, self._words), np.uint64)
        for position in positions:
            bits |= self._reach[position, :-1]
        flags = np.unpackbits(bits.view(np.uint8), axis=-1, bitorder="little", count=self.count)
        return self._intern(flags.astype(np.float32))

    # --- rules ---
    def _fixpoint(self) -> list[int]:
        """The relation of each suffix: the least that agree with all rules."""
        tables = self._tables
        size, starts = len(tables.first), self._automata.starts[: len(tables.classes)]
        symbols = {~c: self._times(self._gap, self._union_of(first)) for c, first in enumerate(starts)}
        owners: dict[int, list[int]] = {}
        for y, bodies in enumerate(tables.rules):
            for suffix in bodies:
                owners.setdefault(suffix, []).append(y)
        users: dict[int, list[int]] = {}  # suffixes that begin with a nonterminal
        longer: dict[int, list[int]] = {}  # suffixes with one symbol more
        for suffix in range(1, size):
            users.setdefault(tables.first[suffix], []).append(suffix)
            longer.setdefault(tables.next[suffix], []).append(suffix)
        suffixes = [self.same, *([self.none] * (size - 1))]
        todo, waiting = deque(range(size)), [True] * size
        while todo:
            check_time()
            suffix = todo.popleft()
            waiting[suffix] = False
            if suffix:
                following = self._times(symbols.get(tables.first[suffix], self.none), suffixes[tables.next[suffix]])
                if following == suffixes[suffix]:
                    continue
                suffixes[suffix] = following
            changed = list(longer.get(suffix, ()))
            for y in owners.get(suffix, ()):
                relation = symbols.get(y, self.none)
                symbols[y] = self._plus(relation, suffixes[suffix])
                if symbols[y] != relation:
                    changed += users.get(y, ())
            for each in changed:
                if not waiting[each]:
                    waiting[each] = True
                    todo.append(each)
        return suffixes

    def _closure(self, relation: int) -> int:
        """The relation any number of times, also none."""
        closure = self._plus(self.same, relation)
        while (twice := self._times(closure, closure)) != closure:
            closure = twice
        return closure

    def _times(self, one: int, two: int) -> int:
        """One relation after the other."""
        if self.none in (one, two):
            return self.none
        if self.same in (one, two):
            return one if two == self.same else two
        if (one, two) not in self._products:
            matrix = self._matrices[one] @ self._matrices[two]
            self._products[one, two] = self._intern(np.minimum(matrix, np.float32(1)))
        return self._products[one, two]

    def _plus(self, one: int, two: int) -> int:
        """Both relations together."""
        if one == two or two == self.none:
            return one
        if one == self.none:
            return two
        key = min(one, two), max(one, two)
        if key not in self._unions:
            self._unions[key] = self._intern(np.maximum(self._matrices[one], self._matrices[two]))
        return self._unions[key]

    def _intern(self, matrix: Matrix) -> int:
        key = np.packbits(matrix > 0).tobytes()
        number = self._numbers.setdefault(key, len(self._matrices))
        if number == len(self._matrices):
            self._matrices.append(matrix)
        return number


def _number(flags: npt.NDArray[np.bool_]) -> int:
    """A set of states as an integer."""
    return int.from_bytes(np.packbits(flags, bitorder="little").tobytes(), "little")
