"""Cheapest completions of the stacks of an LALR parser, in terminals."""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from functools import cached_property
from itertools import islice

from structgen.core.engines.lalr.heap import LalrHeap
from structgen.core.engines.lalr.lexer_simulation import Lexemes
from structgen.core.engines.lalr.tables import DEDENT, INDENT

FAR = 1 << 30
UNSURE_COST = 1 << 12
"""Of a terminal that may not be read as meant, where others are: completions can be written then."""
Terminals = tuple[int, ...]
Stack = tuple[int, int]
"""What is below the top of a parser's stack (a node of the machine), and the state on top."""
_END: Stack = (-1, -1)


class StackCompletions:
    """Completions of one machine's stacks.

    Attributes:
        indent, dedent: the indenter's terminals; -2 without one.
    """

    def __init__(self, machine: LalrHeap, lexemes: Lexemes) -> None:
        self._machine = machine
        self._lexemes = lexemes
        self._tables = machine.tables
        self._completions: dict[
            Stack, tuple[int, Terminals, Stack]
        ] = {}  # cost, the next terminals, the stack after them
        self._costs: dict[int, int] = {}
        names = machine.tables.terminals
        self.indent = names.index(INDENT) if INDENT in names else -2
        self.dedent = names.index(DEDENT) if DEDENT in names else -2

    def cost(self, node: int) -> int:
        """Characters of the cheapest completion of a stack, about; FAR if there is none.

        Dijkstra's algorithm over stacks: an item of the top state is completed, and its rule reduced. What it finds is
        kept for all stacks that it passes.
        """
        top = self._machine.pair(node)
        if top not in self._completions:
            self._search(top)
        return self._completions[top][0]

    def terminals(self, node: int) -> Iterator[int]:
        """The terminals of that completion; none without one."""
        if self.cost(node) >= FAR:
            return
        stack = self._machine.pair(node)
        while stack != _END:
            _, words, stack = self._completions[stack]
            yield from words

    def columns(self, parser: int) -> list[int]:
        """The columns that a next line may sensibly have."""
        levels = self._machine.levels(self._machine.parser(parser)[1])
        return [*reversed(levels), levels[-1] + 1] if levels else []

    def next_column(self, parser: int) -> int:
        """The column of the line that a parser's completion begins with."""
        node, indent, _ = self._machine.parser(parser)
        levels, dedents = self._machine.levels(indent), 0
        for terminal in islice(self.terminals(node), 1, None):
            if terminal == self.indent:
                return levels[-1] + 1
            if terminal != self.dedent or dedents + 1 == len(levels):
                break
            dedents += 1
        return levels[-1 - dedents]

    def _search(self, first: Stack) -> None:
        queue: list[tuple[int, int, Stack, Stack | None, Terminals]] = [(0, 0, first, None, ())]
        came: dict[Stack, tuple[Stack | None, Terminals]] = {}
        count = 0
        while queue:
            cost, _, stack, before, words = heapq.heappop(queue)
            if stack == _END or stack in self._completions:
                cost = 0 if stack == _END else self._completions[stack][0]
                if cost < FAR:
                    self._keep(cost, stack, before, words, came)
                    return
                continue
            if stack in came:
                continue
            came[stack] = before, words
            for cheaper, after, more in self._completed_items(stack):
                count += 1
                later = 0 if after == _END else self._completions[after][0] if after in self._completions else 0
                heapq.heappush(queue, (cost + cheaper + later, count, after, stack, more))
        for stack in came:
            self._completions[stack] = FAR, (), _END

    def _keep(
        self,
        cost: int,
        stack: Stack,
        before: Stack | None,
        words: Terminals,
        came: dict[Stack, tuple[Stack | None, Terminals]],
    ) -> None:
        """Enter the completions of all stacks before one whose completion is known."""
        while before is not None:
            cost += sum(map(self.terminal_cost, words))
            self._completions[before] = cost, words, stack
            stack = before
            before, words = came[before]

    def _completed_items(self, stack: Stack) -> Iterator[tuple[int, Stack, Terminals]]:
        """Cost, stack and terminals of completing each item of the top state and reducing its rule."""
        below, state = stack
        if state == self._tables.end:
            yield 0, _END, ()
            return
        for (origin, dot), (cost, words) in self._cheapest[state]:
            below_top, target = below, self._tables.end  # of the items of the first state
            for _ in range(dot - 1):
                below_top = self._machine.pair(below_top)[0]
            if dot:
                target = int(self._tables.goto[self._machine.pair(below_top)[1], origin])
                if target < 0:  # Lark has resolved a conflict for another rule
                    continue
            yield cost, (below_top, target), words

    @cached_property
    def _cheapest(self) -> list[list[tuple[tuple[int, int], tuple[int, Terminals]]]]:
        """Of each state's items, by nonterminal and dot, what is left of the one that is completed most cheaply."""
        cheapest: list[list[tuple[tuple[int, int], tuple[int, Terminals]]]] = []
        for items in self._tables.items:
            best: dict[tuple[int, int], tuple[int, Terminals]] = {}
            for rule, dot in items:
                remaining, key = self._remaining[rule][dot], (self._tables.rules[rule][0], dot)
                if remaining[0] < best.get(key, (FAR, ()))[0]:
                    best[key] = remaining
            cheapest.append(list(best.items()))
        return cheapest

    @cached_property
    def _remaining(self) -> list[list[tuple[int, Terminals]]]:
        """For each rule and dot, cost and terminals of a shortest text of what is after the dot."""
        best: dict[int, tuple[int, Terminals]] = {}
        changed = True
        while changed:
            changed = False
            for origin, expansion in self._tables.rules:
                cost, words = self._joined(expansion, best)
                if cost < best.get(origin, (FAR, ()))[0]:
                    best[origin] = cost, words
                    changed = True
        return [
            [self._joined(expansion[dot:], best) for dot in range(len(expansion) + 1)]
            for _, expansion in self._tables.rules
        ]

    def _joined(self, symbols: tuple[int, ...], best: dict[int, tuple[int, Terminals]]) -> tuple[int, Terminals]:
        cost, words = 0, ()
        for symbol in symbols:
            symbol_cost, more = (
                best.get(symbol, (FAR, ())) if symbol >= 0 else (self.terminal_cost(~symbol), (~symbol,))
            )
            cost, words = min(cost + symbol_cost, FAR), words + more  # type: ignore[assignment]
        return cost, words

    def terminal_cost(self, terminal: int) -> int:
        """Characters of a terminal and a gap."""
        cost = self._costs.get(terminal)
        if cost is None:
            cost = self._costs[terminal] = self._cost(terminal)
        return cost

    def _cost(self, terminal: int) -> int:
        if terminal in (self.indent, self.dedent):
            return int(terminal == self.indent)
        start = self._tables.automata.starts[terminal]
        words = self._lexemes.words(start) if start else []
        if not words:
            return FAR
        is_sure = self._tables.distrust or terminal in self._tables.clean
        return len(words[0]) + 1 + UNSURE_COST * (not is_sure)
