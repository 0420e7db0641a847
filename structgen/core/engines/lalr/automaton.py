"""The LALR(1) automaton of a grammar, as Lark makes it: item sets, lookaheads, and which conflicts are resolved how.

After DeRemer and Pennello, "Efficient Computation of LALR(1) Look-Ahead Sets" (1982), on numbers: Lark's own module
does the same on objects, cannot be stopped, and keeps no items.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from structgen.core.regex.steps import check_time
from structgen.errors import TooComplexError

MAX_ENTRIES = 1 << 25
"""Of the parse table."""
Rules = Sequence[tuple[int, tuple[int, ...]]]
"""Origin and expansion of each rule; terminals as ``~terminal``."""
Transition = tuple[int, int]
"""A state, and a nonterminal that leads on from it."""


class RuleConflict(Exception):
    """Two rules may be reduced before one terminal, and priorities do not decide."""

    def __init__(self, terminal: int, rules: list[int]) -> None:
        self.terminal, self.rules = terminal, rules
        super().__init__(terminal, rules)


@dataclass(frozen=True, eq=False)
class LalrAutomaton:
    """A parse table with its items.

    Attributes:
        items: the kernel items ``(rule, dot)`` of each state; of the first one, the rules of the whole text at dot 0.
        action: int32[states, terminals]: 0 none, ``(state + 1) << 1`` shift, ``(rule + 1) << 1 | 1`` reduce.
        goto: int32[states, nonterminals], -1 where there is none.
        end: the state where parsing ends; it begins in state 0.
        has_conflicts: whether a terminal was shifted where a rule might have been reduced.
    """

    items: list[list[tuple[int, int]]]
    action: npt.NDArray[np.int32]
    goto: npt.NDArray[np.int32]
    end: int
    has_conflicts: bool


def lalr_automaton(
    rules: Rules, start: int, terminals: int, nonterminals: int, priority: Callable[[int], int]
) -> LalrAutomaton:
    """The automaton of a grammar whose texts are those of the nonterminal ``start``; the last terminal is their end.

    Raises:
        RuleConflict: it is not LALR(1).
        TooComplexError: it has too many states, which may be exponentially many.
    """
    return _Builder(rules, start, terminals, nonterminals).build(priority)


class _Builder:
    """Makes item sets first and then what may follow each nonterminal where it stands.

    An item is a number: where its rule begins in the rules written one after another, and the symbols before the dot.
    The rule of the whole text, ``root: start``, is the last one.
    """

    def __init__(self, rules: Rules, start: int, terminals: int, nonterminals: int) -> None:
        self._rules = [*rules, (nonterminals, (start,))]
        self._start, self._terminals, self._nonterminals = start, terminals, nonterminals
        self._first = np.cumsum([0, *(len(body) + 1 for _, body in self._rules)]).tolist()
        self._symbols: list[int | None] = []  # after the dot of each item
        self._rule_of: list[int] = []
        for number, (_, body) in enumerate(self._rules):
            self._symbols += [*body, None]
            self._rule_of += [number] * (len(body) + 1)
        self._by_origin: list[list[int]] = [[] for _ in range(nonterminals + 1)]
        for number, (origin, _) in enumerate(self._rules):
            self._by_origin[origin].append(number)
        self._expanded: dict[int, list[int]] = {}
        self._kernels: list[tuple[int, ...]] = []
        self._moves: list[dict[int, int]] = []  # of each state: the state after a symbol

    def build(self, priority: Callable[[int], int]) -> LalrAutomaton:
        self._make_states()
        action = np.zeros((len(self._moves), self._terminals), np.int32)
        goto = np.full((len(self._moves), max(self._nonterminals, 1)), -1, np.int32)
        for state, moves in enumerate(self._moves):
            for symbol, target in moves.items():
                if symbol >= 0:
                    goto[state, symbol] = target
                else:
                    action[state, ~symbol] = (target + 1) << 1
        has_conflicts = self._enter_reductions(action, priority)
        return LalrAutomaton(self._items(), action, goto, self._moves[0][self._start], has_conflicts)

    # --- states ---
    def _make_states(self) -> None:
        root = (self._first[-2],)
        numbers: dict[tuple[int, ...], int] = {root: 0}
        width = self._terminals + self._nonterminals
        self._kernels.append(root)
        for kernel in self._kernels:  # which grows
            check_time()
            moves = {}
            for symbol, reached in self._reached(kernel).items():
                target = tuple(sorted(reached))
                moves[symbol] = numbers.setdefault(target, len(numbers))
                if moves[symbol] == len(self._kernels):
                    self._kernels.append(target)
            self._moves.append(moves)
            if len(numbers) * width > MAX_ENTRIES:
                raise TooComplexError("Lark's parse table is too large", budget="table entries", limit=MAX_ENTRIES)

    def _reached(self, kernel: Sequence[int]) -> dict[int, list[int]]:
        """The kernel items after each symbol that a state can read."""
        moves: dict[int, list[int]] = {}
        for item in self._closure(kernel):
            symbol = self._symbols[item]
            if symbol is not None:
                moves.setdefault(symbol, []).append(item + 1)
        return moves

    def _closure(self, kernel: Sequence[int]) -> list[int]:
        origins = {symbol for item in kernel if (symbol := self._symbols[item]) is not None and symbol >= 0}
        return [*kernel, *{self._first[rule] for origin in origins for rule in self._rules_begun(origin)}]

    def _rules_begun(self, origin: int) -> list[int]:
        """The rules whose first symbol may come where a nonterminal may."""
        rules = self._expanded.get(origin)
        if rules is None:
            origins, seen = [origin], {origin}
            for nonterminal in origins:  # which grows
                check_time()
                bodies = (self._rules[rule][1] for rule in self._by_origin[nonterminal])
                fresh = {body[0] for body in bodies if body and body[0] >= 0} - seen
                seen |= fresh
                origins += sorted(fresh)
            rules = self._expanded[origin] = [rule for nonterminal in origins for rule in self._by_origin[nonterminal]]
        return rules

    def _items(self) -> list[list[tuple[int, int]]]:
        root = len(self._rules) - 1
        item_sets = []
        for kernel in self._kernels:
            places = [(self._rule_of[item], item - self._first[self._rule_of[item]]) for item in kernel]
            item_sets.append([(rule, dot) for rule, dot in places if rule != root])
        item_sets[0] = [(rule, 0) for rule in self._by_origin[self._start]]
        return item_sets

    # --- lookaheads ---
    @cached_property
    def _nullable(self) -> set[int]:
        """The nonterminals that may have no text."""
        nullable: set[int] = set()
        uses: dict[int, list[int]] = {}
        missing = [len(body) for _, body in self._rules]
        for number, (_, body) in enumerate(self._rules):
            for symbol in body:
                uses.setdefault(symbol, []).append(number)
        work = [origin for (origin, _), count in zip(self._rules, missing, strict=True) if not count]
        while work:
            origin = work.pop()
            if origin in nullable:
                continue
            nullable.add(origin)
            for number in uses.get(origin, ()):
                missing[number] -= 1
                if not missing[number]:
                    work.append(self._rules[number][0])
        return nullable

    @cached_property
    def _nullable_from(self) -> list[int]:
        """The first dot of each rule after which all may be left out."""
        dots = []
        for _, body in self._rules:
            dot = len(body)
            while dot and body[dot - 1] in self._nullable:
                dot -= 1
            dots.append(dot)
        return dots

    def _lookaheads(self) -> list[dict[int, int]]:
        """For each state, the rules that may be reduced there, each with the terminals (as bits) that may come next."""
        transitions: dict[Transition, int] = {}
        for state, moves in enumerate(self._moves):
            for symbol in moves:
                if symbol >= 0:
                    transitions[state, symbol] = len(transitions)
        includes: list[set[int]] = [set() for _ in transitions]
        ends = [self._walk(from_state, number, transitions, includes) for from_state, number in transitions.items()]
        follow = _united(_united(*self._read(transitions)), includes)
        lookaheads: list[dict[int, int]] = [{} for _ in self._moves]
        for number, reduced in enumerate(ends):
            for state, rule in reduced:
                lookaheads[state][rule] = lookaheads[state].get(rule, 0) | follow[number][0]
        return lookaheads

    def _walk(
        self, start: Transition, number: int, transitions: dict[Transition, int], includes: list[set[int]]
    ) -> list[tuple[int, int]]:
        """Where the rules of a transition's nonterminal end, with the rules; ``includes``: whose followers take its."""
        check_time()
        state, origin = start
        # Lark takes items of the kernel, too, as if their rules began in this state: it may allow more than others.
        items = [item for item in self._kernels[state] if self._rules[self._rule_of[item]][0] == origin]
        ends = []
        for item in [*items, *(self._first[rule] for rule in self._by_origin[origin])]:
            rule, from_state = self._rule_of[item], state
            begin = item - self._first[rule]
            for dot, symbol in enumerate(self._rules[rule][1][begin:], begin + 1):
                if symbol >= 0 and dot >= self._nullable_from[rule]:
                    includes[transitions[from_state, symbol]].add(number)
                from_state = self._moves[from_state][symbol]
            if begin == 0:
                ends.append((from_state, rule))
        return ends

    def _read(self, transitions: dict[Transition, int]) -> tuple[list[list[int]], list[list[int]]]:
        """What may be read right after each transition, and the transitions without text that may come there."""
        direct, reads = [], []
        for state, symbol in transitions:
            after = self._moves[state][symbol]
            direct.append([sum(1 << ~following for following in self._moves[after] if following < 0)])
            reads.append([transitions[after, s] for s in self._moves[after] if s in self._nullable])
        direct[transitions[0, self._start]][0] |= 1 << (self._terminals - 1)
        return direct, reads

    def _enter_reductions(self, action: npt.NDArray[np.int32], priority: Callable[[int], int]) -> bool:
        """Enter reductions where nothing is shifted; whether something was shifted in the place of one."""
        conflicts = False
        for row, lookaheads in zip(action, self._lookaheads(), strict=True):
            check_time()
            chosen, ranks, tied = np.zeros_like(row), np.zeros(len(row), np.int64), np.zeros(len(row), np.bool_)
            for rule in sorted(lookaheads, key=priority):
                may_come = _members(lookaheads[rule], len(row))
                tied[may_come] = (chosen[may_come] > 0) & (ranks[may_come] == priority(rule))
                chosen[may_come], ranks[may_come] = (rule + 1) << 1 | 1, priority(rule)
            if tied.any():
                terminal = int(tied.argmax())
                raise RuleConflict(terminal, [rule for rule, bits in lookaheads.items() if bits >> terminal & 1])
            conflicts |= bool(((row > 0) & (chosen > 0)).any())
            np.copyto(row, chosen, where=row == 0)
        return conflicts


def _members(bits: int, count: int) -> npt.NDArray[np.int64]:
    """The numbers of the bits that are set."""
    data = np.frombuffer(bits.to_bytes((count + 7) >> 3, "little"), np.uint8)
    return np.flatnonzero(np.unpackbits(data, bitorder="little"))


def _united(sets: list[list[int]], relation: Sequence[Collection[int]]) -> list[list[int]]:
    """For each node, the bits of all nodes that the relation leads to, its own among them (Tarjan's algorithm).

    Nodes that lead to each other share one list, as in Lark.
    """
    united = list(sets)
    depths = [0] * len(sets)
    done, stack = len(sets) + 1, list[int]()
    for root in range(len(sets)):
        if depths[root]:
            continue
        stack.append(root)
        depths[root] = len(stack)
        path = [(root, len(stack), iter(relation[root]))]
        while path:
            node, depth, others = path[-1]
            other = next(others, -1)
            if other >= 0 and not depths[other]:
                stack.append(other)
                depths[other] = len(stack)
                path.append((other, len(stack), iter(relation[other])))
                continue
            if other >= 0:
                depths[node] = min(depths[node], depths[other])
                united[node][0] |= united[other][0]
                continue
            path.pop()
            if depths[node] == depth:
                while stack[-1] != node:
                    united[stack[-1]], depths[stack.pop()] = united[node], done
                stack.pop()
                depths[node] = done
            if path:
                before = path[-1][0]
                depths[before] = min(depths[before], depths[node])
                united[before][0] |= united[node][0]
    return united
