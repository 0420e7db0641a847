"""Ways to the end from parsers that proofs show to be live: down the stack, step by step."""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from typing import TYPE_CHECKING

from structgen.core.engines.lalr.lexer_simulation import Lexemes
from structgen.core.engines.lalr.plans import Plans
from structgen.core.engines.lalr.ways import Way, Ways
from structgen.core.kernels.lalr import machine as k

if TYPE_CHECKING:
    from structgen.core.engines.lalr.machine import LalrMachine

LONGEST_PLAN = 100
"""Terminals of a plan that are followed one by one before a search takes over."""
Step = tuple[int, str, int]
"""A parser, a text that may come behind any clean lexeme, and the parser after it."""


class Descent:
    """Finds ways in one machine with proofs, and keeps them.

    What a live stack has begun on top can be completed by terminals that are surely read as meant, and each such
    terminal that it may take leaves a live stack. So a search over these never comes to a dead end, and it ends: at the
    end of a text, or at a stack that is lower than the first, from where the next search begins.
    """

    def __init__(self, machine: LalrMachine, lexemes: Lexemes, plans: Plans, ways: Ways) -> None:
        self._machine = machine
        self._tables = machine.tables
        self._lexemes = lexemes
        self._plans = plans
        self._ways = ways
        self._heights: dict[int, int] = {0: 0}

    def find(self, parser: int) -> Way | None:
        """The way of a live parser. None if it is not live."""
        steps: list[Step] = []
        current = parser
        while self._ways.of_known(current) is None:
            found = self._planned(current) or self._searched(current)
            if not found:
                return None
            steps += found
            current = found[-1][2]
        for passed, text, after in reversed(steps):
            self._ways.keep_parser(passed, text, after)
        return self._ways.of_known(parser)

    def _height(self, parser: int) -> int:
        node = self._machine.parser(parser)[0]
        path = []
        while node not in self._heights:
            path.append(node)
            node = self._machine.pair(node)[0]
        height = self._heights[node]
        for passed in reversed(path):
            height += 1
            self._heights[passed] = height
        return height

    def _is_goal(self, parser: int, height: int) -> bool:
        return self._height(parser) < height or self._ways.of_known(parser) is not None

    def _planned(self, parser: int) -> list[Step]:
        """The steps of a plan down to a goal; none if it cannot be followed."""
        steps: list[Step] = []
        passed, current, height = {parser}, parser, self._height(parser)
        while len(steps) < LONGEST_PLAN:
            terminal = next(self._plans.terminals(self._machine.parser(current)[0]), -1)
            way = self._ways.by_terminal(current, terminal)
            if way is None or way[1] in passed or not self._is_proved(way[1]):
                return []
            steps.append((current, *way))
            current = way[1]
            passed.add(current)
            if self._is_goal(current, height):
                return steps
        return []

    def _searched(self, parser: int) -> list[Step]:
        """The steps to a goal that a best-first search finds."""
        height, count = self._height(parser), 0
        queue = [(0, 0, 0, parser)]
        came: dict[int, Step | None] = {parser: None}
        while queue:
            _, _, length, current = heapq.heappop(queue)
            if current != parser and self._is_goal(current, height):
                steps = []
                while (step := came[current]) is not None:
                    steps.append(step)
                    current = step[0]
                return steps[::-1]
            for text, after in self._following(current):
                if after not in came:
                    came[after] = current, text, after
                    count += 1
                    longer = length + len(text)
                    far = longer + self._plans.cost(self._machine.parser(after)[0])
                    heapq.heappush(queue, (far, count, longer, after))
        return []

    def _following(self, parser: int) -> Iterator[Way]:
        """The live parsers after each terminal that may be read for sure, and its text."""
        tables = self._tables
        for terminal in self._lexemes.clean_start(self._machine.lexer_of(parser)):
            if (way := self._ways.by_terminal(parser, terminal)) and self._is_proved(way[1]):
                yield way
        if tables.newline >= 0:
            for column in self._plans.columns(parser):
                after = self._machine.call(k.FEED_TERMINAL, parser, tables.newline, column)
                if after not in (k.DEAD, parser) and self._is_proved(after):
                    yield "\n" + " " * column, after

    def _is_proved(self, parser: int) -> bool:
        group = int(self._machine.heap[self._machine.parser(parser)[0] + k.NODE_CLASS])
        return int(self._machine.heap[group + k.CLASS_LIVE]) == k.YES
